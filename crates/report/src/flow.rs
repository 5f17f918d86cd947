//! Dataflow programs: the graph, tables of tasks and chains, and the parts of the worst latencies.

mod chains;
mod distribution;
mod dot;
mod ends;
mod graph;
mod kernel;
mod misses;
mod tasks;

pub(crate) use chains::{rows as latency_rows, unknown_inputs, waited};
pub(crate) use distribution::{cells, greatest, since};
pub use dot::dot;
pub(crate) use ends::{doubts, title};
pub(crate) use kernel::rows as kernel_rows;
pub use misses::misses;

use crate::number::{about, counted};
use crate::{Page, paragraph, visible};
use punctual_model::dataflow::{Chain, Channel, Dataflow};
use punctual_model::{Instant, TimingModel};

/// Everything known about the program; empty without one.
pub fn program(model: &TimingModel, page: &Page) -> String {
    let Some(flow) = &model.dataflow else { return String::new() };
    let chains = headed(title(flow), chains::table(flow, page));
    sections(
        paragraph(summary(model).trim_end(), page),
        flow,
        [graph::graph(flow, page), chains],
        page,
        flow.from_ns,
    )
}

/// Everything known about the task of this name; `None` if there is none.
pub fn task(model: &TimingModel, name: &str, page: &Page) -> Option<String> {
    let flow = model.dataflow.as_ref()?;
    let task = flow.tasks.iter().find(|task| task.name == name)?;
    let is_its = |channel: &&Channel| {
        channel.pushed_by.iter().any(|by| by.task == name)
            || channel.activates.iter().any(|activates| activates.task == name)
    };
    let has_it = |chain: &&Chain| chain.tasks.iter().any(|task| task == name);
    let around =
        Dataflow { channels: flow.channels.iter().filter(is_its).cloned().collect(), ..Dataflow::default() };
    let part = Dataflow {
        tasks: vec![task.clone()],
        chains: flow.chains.iter().filter(has_it).cloned().collect(),
        ..flow.clone()
    };
    let program = flow
        .program
        .as_deref()
        .map_or_else(|| "a dataflow program".into(), |name| format!("dataflow program {}", visible(name)));
    let head = format!("{} (task {} of {program})", visible(name), task.id);
    let head = if page.colour { format!("\x1b[1m{head}\x1b[0m\n") } else { format!("{head}\n") };
    let chains =
        if part.chains.is_empty() { String::new() } else { headed(title(&part), chains::table(&part, page)) };
    Some(sections(head, &part, [graph::graph(&around, page), chains], page, flow.from_ns))
}

fn sections(
    first: String,
    flow: &Dataflow,
    [graph, chains]: [String; 2],
    page: &Page,
    begin: Instant,
) -> String {
    let sections = [
        first,
        headed("Graph", graph),
        headed("Execution times of tasks, from start to stop", tasks::execution(flow, page, begin)),
        headed("Execution times by what the kernel did with the thread", kernel::table(flow, page)),
        headed("Queuing times of tasks, from activation to start", tasks::queuing(flow, page, begin)),
        headed("Activations of tasks: distance functions δ⁻(n) – δ⁺(n)", tasks::distances(flow, page)),
        headed("Activations of tasks: arrival curves η⁻(Δ) – η⁺(Δ)", tasks::counts(flow, page)),
        tasks::legend(flow, page),
        chains,
        chains::details(flow, page, begin),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
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
    let span = about(flow.until_ns.since(flow.from_ns));
    let counts =
        [counted(flow.tasks.len() as u64, "task"), counted(flow.channels.len() as u64, "channel")].join(", ");
    format!(
        "{}{with}: {} in {span}, {counts}; {}.\n",
        what.join(" "),
        counted(flow.events, "event"),
        loss(flow)
    )
}

/// What is missing of the trace.
fn loss(flow: &Dataflow) -> String {
    let mut parts = Vec::new();
    if flow.discarded_events > 0 {
        parts.push(format!("{} DISCARDED for lack of room", counted(flow.discarded_events, "event")));
    }
    if flow.missing_packets > 0 {
        parts.push(format!("{} MISSING", counted(flow.missing_packets, "packet")));
    }
    if flow.damaged_packets > 0 {
        parts.push(format!("{} DAMAGED", counted(flow.damaged_packets, "packet")));
    }
    let missing = flow.missing_events();
    if parts.is_empty() && missing > 0 {
        parts.push(format!("at least {} MISSING, by their numbers", counted(missing, "event")));
    }
    match parts.is_empty() {
        true => format!("nothing lost up to the last event{}", unended(flow)),
        false => parts.join(", ") + "; figures leave out what that may have changed",
    }
}

/// Killed programs leave such traces, and some that were stopped.
fn unended(flow: &Dataflow) -> String {
    match flow.tasks.iter().map(|task| task.in_flight).fold(0, u64::saturating_add) {
        0 => String::new(),
        number => format!(", with {} still active", counted(number, "instance")),
    }
}

fn headed(title: &str, text: String) -> String {
    if text.is_empty() { text } else { format!("{title}\n{text}") }
}

#[cfg(test)]
mod tests;
