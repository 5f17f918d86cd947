//! The graph for Graphviz: tasks as boxes, channels as ellipses.

use super::graph::is_never_last;
use crate::number::{at_most, count};
use punctual_model::dataflow::Dataflow;
use std::fmt::Write;

/// A text that `dot` draws. Lines are as thick for any number of pushes; the number is written beside them.
pub fn dot(flow: &Dataflow) -> String {
    let title = flow.program.as_deref().unwrap_or("dataflow program");
    let mut text = format!(
        "digraph {} {{\n\trankdir = LR;\n\tnode [fontname = \"sans-serif\"];\n\tedge [fontname = \
         \"sans-serif\"];\n",
        quoted(title)
    );
    for task in &flow.tasks {
        let times =
            task.execution.as_ref().map(|times| format!("\nC ≤ {}", at_most(times.distribution.max_ns)));
        let label = quoted(&format!("{}{}", task.name, times.unwrap_or_default()));
        let _ = writeln!(text, "\t{} [shape = box, label = {label}];", quoted(&format!("task {}", task.id)));
    }
    for channel in &flow.channels {
        let node = quoted(&format!("channel {}", channel.id));
        let _ = writeln!(text, "\t{node} [shape = ellipse, label = {}];", quoted(&channel.name));
        if channel.from_outside > 0 {
            let outside = quoted(&format!("outside {}", channel.id));
            let _ = writeln!(text, "\t{outside} [shape = point];");
            let _ =
                writeln!(text, "\t{outside} -> {node} [label = {}];", quoted(&count(channel.from_outside)));
        }
        let task = |name: &str| {
            flow.tasks.iter().find(|task| task.name == name).map(|task| quoted(&format!("task {}", task.id)))
        };
        for pushed_by in &channel.pushed_by {
            let Some(task) = task(&pushed_by.task) else { continue };
            let _ = writeln!(text, "\t{task} -> {node} [label = {}];", quoted(&count(pushed_by.pushes)));
        }
        for activates in &channel.activates {
            let Some(task) = task(&activates.task) else { continue };
            let style = if is_never_last(activates, channel) { ", style = dashed" } else { "" };
            let _ = writeln!(
                text,
                "\t{node} -> {task} [label = {}{style}];",
                quoted(&count(activates.activations))
            );
        }
    }
    text + "}\n"
}

/// A string of Graphviz: only quotes and backslashes mean something.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{}\"", text.chars().filter(|letter| !letter.is_control()).collect::<String>())
}
