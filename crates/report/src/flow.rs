//! Dataflow programs: the graph, tables of tasks and chains, and where the worst latency went.

mod chains;
mod dot;
mod graph;
mod kernel;
mod tasks;

pub use dot::dot;

use crate::figure::{about, agreeing, counted};
use crate::{Page, visible, wrapped};
use punctual_model::dataflow::{Dataflow, Distribution};
use punctual_model::{Duration, Instant, TimingModel};

/// Everything that is known of the program; nothing where the model is of none.
pub fn program(model: &TimingModel, page: &Page) -> String {
    let Some(flow) = &model.dataflow else { return String::new() };
    let sections = [
        Some(paragraph(summary(model).trim_end(), page)),
        Some(headed("Graph", graph::graph(flow, page))),
        Some(headed("Execution times of tasks, from start to stop", tasks::execution(flow, page, begin(model)))),
        Some(headed("Execution times by what the kernel did with the thread", kernel::table(flow, page))),
        Some(headed("Queuing times of tasks, from activation to start", tasks::queuing(flow, page, begin(model)))),
        Some(headed("Activations of tasks: distance functions δ⁻(n) – δ⁺(n)", tasks::distances(flow, page))),
        Some(headed("Activations of tasks: arrival curves η⁻(Δ) – η⁺(Δ)", tasks::counts(flow, page))),
        Some(tasks::legend(flow, page)),
        Some(headed("Chains: end-to-end latency", chains::table(flow, page))),
        Some(chains::details(flow, page, begin(model))),
    ];
    let sections: Vec<String> = sections.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    sections.join("\n")
}

/// One paragraph: what was traced, how much, and what is missing.
pub fn summary(model: &TimingModel) -> String {
    let Some(flow) = &model.dataflow else { return String::new() };
    let mut what = vec!["Dataflow program".to_owned()];
    what.extend(flow.program.as_deref().map(visible));
    what.extend(flow.platform.as_deref().map(|platform| format!("on {}", visible(platform))));
    let mut with: Vec<String> = Vec::new();
    with.extend(flow.policy.as_deref().map(|policy| format!("policy {}", visible(policy))));
    with.extend(flow.executors.map(|executors| counted(executors.into(), "executor")));
    let with = if with.is_empty() { String::new() } else { format!(" ({})", with.join(", ")) };
    let span = about(model.observation.until_ns.since(model.observation.from_ns));
    let counts = [counted(flow.tasks.len() as u64, "task"), counted(flow.channels.len() as u64, "channel")].join(", ");
    format!("{}{with}: {} in {span}, {counts}; {}.\n", what.join(" "), counted(flow.events, "event"), loss(flow))
}

/// What is missing of the trace.
fn loss(flow: &Dataflow) -> String {
    let mut parts = Vec::new();
    if flow.discarded_events > 0 {
        parts.push(format!("{} DISCARDED for want of room", counted(flow.discarded_events, "event")));
    }
    if flow.missing_packets > 0 {
        parts.push(format!("{} MISSING", counted(flow.missing_packets, "packet")));
    }
    if flow.damaged_packets > 0 {
        parts.push(format!("{} DAMAGED", counted(flow.damaged_packets, "packet")));
    }
    match parts.is_empty() {
        true => "nothing lost".into(),
        false => {
            parts.join(", ")
                + agreeing(
                    parts.len() as u64,
                    "; what may have been changed by it is counted, not guessed",
                    "; what may have been changed by them is counted, not guessed",
                )
        }
    }
}

fn begin(model: &TimingModel) -> Instant {
    model.observation.from_ns
}

/// When something was, since the trace began, in seconds to the microsecond.
pub(crate) fn since(begin: Instant, at: Instant) -> String {
    let us = at.since(begin).ns() / 1_000;
    format!("+{}.{:06} s", us / 1_000_000, us % 1_000_000)
}

fn headed(title: &str, text: String) -> String {
    if text.is_empty() { text } else { format!("{title}\n{text}") }
}

/// Text of several sentences, folded to the page.
fn paragraph(text: &str, page: &Page) -> String {
    match page.width {
        Some(width) => textwrap::fill(text, wrapped(usize::from(width))) + "\n",
        None => format!("{text}\n"),
    }
}

/// Least, quartiles and greatest as cells; bounds are rounded to the safe side.
pub(crate) fn cells(distribution: &Distribution) -> [String; 5] {
    let Distribution { min_ns, quartile_1_ns, median_ns, quartile_3_ns, max_ns, .. } = distribution;
    let text = |duration: Duration| duration.to_string();
    [
        text(crate::figure::at_least(*min_ns)),
        text(about(*quartile_1_ns)),
        text(about(*median_ns)),
        text(about(*quartile_3_ns)),
        text(crate::figure::at_most(*max_ns)),
    ]
}

#[cfg(test)]
mod tests;
