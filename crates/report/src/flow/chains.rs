//! Chains: a table of their latencies, and the longest path of each.

use super::distribution::{greatest, since};
use super::ends::{alternatives, doubts};
use crate::figures::{LATENCY, LatencyRow};
use crate::number::{count, counted};
use crate::table;
use crate::{Page, indented, paragraph, visible};
use punctual_model::dataflow::{Chain, Channel, Dataflow, Latency, Stage, WorstPath};
use punctual_model::{Duration, Instant};
use std::fmt::Write;

/// The chain, with arrows.
fn name(chain: &Chain) -> String {
    chain.tasks.iter().map(|task| visible(task)).collect::<Vec<_>>().join(" → ")
}

pub fn table(flow: &Dataflow, page: &Page) -> String {
    if flow.chains_omitted {
        return paragraph(
            "There are too many paths from sources to sinks to list them all; name those that you want with \
             --chain TASK,TASK,…",
            page,
        );
    }
    if flow.chains.is_empty() {
        return paragraph("No chains: no task's data activate another.", page);
    }
    let mut table = table::of_figures(LATENCY, rows(flow));
    // A chain is named in the first of its two rows.
    table.rows.iter_mut().skip(1).step_by(2).for_each(|row| row[0].0.clear());
    let mut text = table.text(page);
    text += &paragraph(
        "reaction: from a source's activation to the end of the first sink instance that has read its datum \
         or a later one. age: from the activation of the source of the newest datum that a sink instance has \
         read to its end. Queuing, execution and waiting are those of the greatest.",
        page,
    );
    text
}

/// Reaction time and data age of each chain.
pub(crate) fn rows(flow: &Dataflow) -> impl Iterator<Item = LatencyRow<'_>> {
    flow.chains
        .iter()
        .flat_map(move |chain| [true, false].map(|is_reaction| LatencyRow { flow, chain, is_reaction }))
}

/// Latencies rest on an assumption: the trace does not say how these inputs buffer data, or, where tracing
/// began while the program ran, what they held then.
pub(crate) fn unknown_inputs(connections: &[String]) -> String {
    const MOST: usize = 6;
    let more = if connections.len() > MOST {
        format!(", and {} more", connections.len() - MOST)
    } else {
        String::new()
    };
    format!(
        "The trace does not say how these inputs buffer data, or what they held when it began: {}{more}. An \
         instance is assumed to have read everything pushed since the previous activation. If an input is a \
         queue or keeps the newest value, latencies through it may be others; declare it where the trace is \
         made, or trace the program from its start.",
        connections[..connections.len().min(MOST)].join(", ")
    )
}

/// The worst of each chain, step by step.
pub fn details(flow: &Dataflow, page: &Page, begin: Instant) -> String {
    let mut text = String::new();
    for chain in &flow.chains {
        for (kind, latency) in [("reaction", &chain.reaction), ("age", &chain.age)] {
            let Some(Latency { worst, distribution, .. }) = latency else { continue };
            let same =
                kind == "age" && chain.reaction.as_ref().is_some_and(|reaction| reaction.worst == *worst);
            let (name, total) = (name(chain), greatest(distribution));
            let _ = match same {
                true => writeln!(text, "Worst age of {name}: {total}, the same."),
                false => write!(text, "Worst {kind} of {name}: {total}\n{}", steps(flow, worst, begin, page)),
            };
        }
        if chain.overwritten > 0 {
            let reactions = chain.reaction.as_ref().map_or(0, |reaction| reaction.distribution.count);
            let line = format!(
                "{} of the {} had no reaction of {} own: the sink read a later datum as well, or instead.",
                count(chain.overwritten),
                counted(reactions, "datum").replace("datums", "data"),
                if chain.overwritten == 1 { "its" } else { "their" }
            );
            text += &paragraph(&line, page);
        }
    }
    for line in doubts(flow) {
        text += &paragraph(&line, page);
    }
    let unknown: Vec<String> = flow
        .unknown_inputs()
        .into_iter()
        .map(|(from, to)| format!("{} → {}", visible(from), visible(to)))
        .collect();
    if !unknown.is_empty() {
        text += &paragraph(&unknown_inputs(&unknown), page);
        for line in alternatives(flow) {
            text += &paragraph(&line, page);
        }
    }
    if flow.chains.iter().any(|chain| chain.lost + chain.sinks_lost > 0) {
        text += &paragraph(
            "lost: events are missing that could have changed the path of this datum, or a channel on it is \
             connected to a task twice; no figure counts it.",
            page,
        );
    }
    if flow.chains.iter().any(|chain| chain.incomplete + chain.sinks_incomplete > 0) {
        text += &paragraph(
            "incomplete: the sink instance that read the datum has no start or stop in the trace.",
            page,
        );
    }
    if flow.chains.iter().any(|chain| chain.overtaken > 0) {
        text += &paragraph("overtaken: data pushed after the sink had read a later one.", page);
    }
    text
}

/// How long a datum lay on a channel before the instance that read it was activated, and why: only a task
/// with another input can have waited for that one.
pub(crate) fn waited(flow: &Dataflow, stage: &Stage) -> String {
    let mut text = String::new();
    if stage.busy > Duration::ZERO {
        text += &format!("waited {} while the task was busy with earlier data; ", stage.busy);
    }
    if stage.waiting() > Duration::ZERO {
        let is_input =
            |channel: &&Channel| channel.activates.iter().any(|activates| activates.task == stage.step.task);
        let others =
            if flow.channels.iter().filter(is_input).count() > 1 { ", for other inputs" } else { "" };
        text += &format!("waited {} on the channel{others}; ", stage.waiting());
    }
    text
}

fn steps(flow: &Dataflow, worst: &WorstPath, begin: Instant, page: &Page) -> String {
    let mut lines: Vec<[String; 4]> = Vec::new();
    let ahead = worst.stages().next().map_or(Duration::ZERO, |first| first.waiting());
    let mut before = String::new();
    if ahead > Duration::ZERO {
        let first = worst.path.first().map(|step| visible(&step.task)).unwrap_or_default();
        lines.push([
            since(begin, worst.from_ns),
            first,
            format!("#{}", worst.source_instance),
            "a later datum was read as well, or instead".into(),
        ]);
        before = format!("waited {ahead} for that; ");
    }
    for (index, stage) in worst.stages().enumerate() {
        let step = stage.step;
        let wait = match index {
            0 => before.clone(),
            _ => waited(flow, &stage),
        };
        let what = format!("{wait}queued {}, executed {}", stage.queuing(), stage.execution());
        let then = match &step.channel {
            Some(channel) => format!(" until it pushed on {}", visible(channel)),
            None => " to its end".into(),
        };
        lines.push([
            since(begin, step.activation_ns),
            visible(&step.task),
            format!("#{}", step.instance),
            what + &then,
        ]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (at, task, number) = (width(0), width(1), width(2));
    lines
        .iter()
        .map(|line| format!("  {:>at$}  {:task$}  {:>number$}  {}", line[0], line[1], line[2], line[3]))
        .map(|line| indented(&line, at + task + number + 8, page))
        .collect()
}
