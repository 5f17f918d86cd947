//! Chains: a table of their latencies, and for each the way that took longest.

use super::{cells, paragraph, since};
use crate::figure::{at_most, count, counted};
use crate::table::{Column, Fit, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::dataflow::{Chain, Dataflow, Latency, WorstPath};
use punctual_model::{Duration, Instant};
use std::fmt::Write;

const COLUMNS: [Column; 12] = [
    words("Chain", Fit::Fold),
    words("Latency", Fit::Keep),
    figures("Count", Fit::Keep),
    figures("Min", Fit::Keep),
    figures("Quartile 1", Fit::Drop(8)),
    figures("Median", Fit::Keep),
    figures("Quartile 3", Fit::Drop(7)),
    figures("Max", Fit::Keep),
    figures("= queuing", Fit::Drop(4)),
    figures("+ execution", Fit::Drop(5)),
    figures("+ waiting", Fit::Drop(6)),
    words("Not followed", Fit::Fold),
];

/// The chain as it is asked for, with arrows.
fn name(chain: &Chain) -> String {
    chain.tasks.iter().map(|task| visible(task)).collect::<Vec<_>>().join(" → ")
}

pub fn table(flow: &Dataflow, page: &Page) -> String {
    if flow.chains_omitted {
        return paragraph(
            "There are too many paths from sources to sinks to list them all; --chain TASK,TASK,… follows those that are wanted.",
            page,
        );
    }
    if flow.chains.is_empty() {
        return paragraph("There is none: no task's data activate another.", page);
    }
    let mut table = Table::new(&COLUMNS);
    for chain in &flow.chains {
        let (sources, sinks) = missing(chain);
        table.rows.push(row(name(chain), "reaction", chain.reaction.as_ref(), &sources));
        table.rows.push(row(String::new(), "age", chain.age.as_ref(), &sinks));
    }
    let (mut text, left_out) = table.print(page);
    if !left_out.is_empty() {
        text += &format!("(the terminal is too narrow for: {})\n", left_out.join(", "));
    }
    text += &paragraph(
        "reaction: from a source's activation to the end of the first sink instance that has read its datum or a later one. age: from the activation of the source of the newest datum that a sink instance has read to its end. The parts are those of the worst.",
        page,
    );
    text
}

fn row(name: String, kind: &str, latency: Option<&Latency>, notes: &[String]) -> Vec<(String, Tone)> {
    let mut row = vec![name, kind.to_owned()];
    match latency {
        Some(Latency { distribution, worst }) => {
            row.push(count(distribution.count));
            row.extend(cells(distribution));
            row.extend([worst.queuing_ns, worst.execution_ns, worst.waiting_ns].map(|part| at_most(part).to_string()));
        }
        None => {
            row.push("0".into());
            row.extend(vec!["–".to_owned(); 8]);
        }
    }
    let mut row: Vec<(String, Tone)> = row.into_iter().map(|cell| (cell, Tone::Plain)).collect();
    row.push((notes.join(", "), Tone::Plain));
    row
}

/// What is not in the figures: of sources, and of sinks.
fn missing(chain: &Chain) -> (Vec<String>, Vec<String>) {
    let told = |parts: &[(u64, &str)]| {
        let some = parts.iter().filter(|(number, _)| *number > 0);
        some.map(|(number, what)| format!("{} {what}", count(*number))).collect::<Vec<_>>()
    };
    let sources = [(chain.in_flight, "on the way"), (chain.lost, "lost"), (chain.incomplete, "incomplete"), (chain.overtaken, "overtaken")];
    let sinks = [(chain.sinks_in_flight, "not ended"), (chain.sinks_lost, "lost"), (chain.sinks_incomplete, "incomplete")];
    (told(&sources), told(&sinks))
}

/// The worst of each chain, step by step.
pub fn details(flow: &Dataflow, page: &Page, begin: Instant) -> String {
    let mut text = String::new();
    for chain in &flow.chains {
        for (kind, latency) in [("reaction", &chain.reaction), ("age", &chain.age)] {
            let Some(Latency { worst, distribution }) = latency else { continue };
            let same = kind == "age" && chain.reaction.as_ref().is_some_and(|reaction| reaction.worst == *worst);
            let (name, total) = (name(chain), at_most(distribution.max_ns));
            let _ = match same {
                true => writeln!(text, "Worst age of {name}: {total}, the same."),
                false => write!(text, "Worst {kind} of {name}: {total}\n{}", steps(worst, begin)),
            };
        }
        if chain.overwritten > 0 {
            let of = chain.reaction.as_ref().map_or(0, |reaction| reaction.distribution.count);
            let said = format!(
                "{} of the {} had no reaction of {} own: the sink read a later datum, too or instead.",
                count(chain.overwritten),
                counted(of, "datum").replace("datums", "data"),
                if chain.overwritten == 1 { "its" } else { "their" }
            );
            text += &paragraph(&said, page);
        }
    }
    if flow.chains.iter().any(|chain| chain.lost + chain.sinks_lost > 0) {
        text += &paragraph("lost: events are missing that might have changed the way of this datum, so it is in no figure.", page);
    }
    if flow.chains.iter().any(|chain| chain.overtaken > 0) {
        text += &paragraph("overtaken: data that were pushed when the sink had read a later one already.", page);
    }
    text
}

fn steps(worst: &WorstPath, begin: Instant) -> String {
    let mut lines: Vec<[String; 5]> = Vec::new();
    let waited = |span: Duration, why: &str| format!("waited {}{why}", span);
    let ahead = worst.stages().next().map_or(Duration::ZERO, |first| first.waiting());
    let mut before = String::new();
    if ahead > Duration::ZERO {
        let first = worst.path.first().map(|step| visible(&step.task)).unwrap_or_default();
        lines.push([
            since(begin, worst.from_ns),
            first,
            format!("#{}", worst.source_instance),
            String::new(),
            "a later datum was read, too or instead".into(),
        ]);
        before = waited(ahead, " for that; ");
    }
    for (index, stage) in worst.stages().enumerate() {
        let step = stage.step;
        let wait = match index {
            0 => before.clone(),
            _ => {
                let parts = [(stage.busy(), " for the end of the instance before; "), (stage.waiting(), " for another input; ")];
                parts.into_iter().filter(|(span, _)| *span > Duration::ZERO).map(|(span, why)| waited(span, why)).collect()
            }
        };
        let what = format!("{wait}queued {}, executed {}", stage.queuing(), stage.execution());
        let then = match &step.channel {
            Some(channel) => format!(" until it pushed on {}", visible(channel)),
            None => " to its end".into(),
        };
        lines.push([since(begin, step.activation_ns), visible(&step.task), format!("#{}", step.instance), String::new(), what + &then]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (at, task, number) = (width(0), width(1), width(2));
    lines.iter().map(|line| format!("  {:>at$}  {:task$}  {:>number$}  {}\n", line[0], line[1], line[2], line[4])).collect()
}
