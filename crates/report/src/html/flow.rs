//! Dataflow programs on the page. All but the activation curves works without scripts, and each figure stands
//! with a table or text that says the same.

mod boxes;
mod chains;
mod graph;
mod histograms;
mod kernel;
mod layout;
mod series;
pub(crate) mod states;
mod tasks;

pub use states::States;
pub(crate) use tasks::has_curve;

use super::drawn::{Drawn, Fact};
use crate::flow::summary;
use crate::number::{agreeing, count, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::dataflow::{Chain, Dataflow, FlowTask};
use punctual_model::{Section, TimingModel};

/// The facts at the head of the page.
pub(crate) fn facts(model: &TimingModel) -> Vec<Fact> {
    let Some(flow) = &model.dataflow else { return Vec::new() };
    let lost = [
        (flow.discarded_events, "event"),
        (flow.missing_packets, "missing packet"),
        (flow.damaged_packets, "damaged packet"),
    ];
    let lost: Vec<String> = lost
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| counted(number, what))
        .collect();
    let lost = match (lost.is_empty(), flow.missing_events()) {
        (false, _) => lost.join(", "),
        (true, 0) => "nothing up to the last event".into(),
        (true, missing) => format!("at least {}", counted(missing, "event")),
    };
    let facts = [
        ("Program", flow.program.as_deref().map(visible)),
        ("Platform", flow.platform.as_deref().map(visible)),
        ("Scheduling policy", flow.policy.as_deref().map(visible)),
        ("Executors", flow.executors.map(|executors| count(executors.into()))),
        (
            "Tasks and channels",
            Some(format!("{}, {}", count(flow.tasks.len() as u64), count(flow.channels.len() as u64))),
        ),
        (
            "Chains",
            Some(if flow.chains_omitted { "too many".into() } else { count(flow.chains.len() as u64) }),
        ),
        ("Events", Some(count(flow.events))),
    ];
    let facts = facts.into_iter().filter_map(|(name, text)| Some(Fact::new(name, text?)));
    let lost = Fact { name: "Lost of the trace", text: lost, is_loss: !flow.losses().is_empty() };
    facts.chain([lost]).collect()
}

/// Links to the sections.
pub(crate) fn contents(_: &Drawn<'_>) -> Markup {
    html! {
        @for (id, title) in [
            ("dataflow", "Dataflow program"), ("flow-chains", "Chains"), ("flow-tasks", "Tasks"),
            ("flow-states", "Tasking graph"), ("flow-activations", "Activations"),
        ] {
            li { a href={ "#" (id) } { (title) } }
        }
    }
}

/// All sections.
pub(crate) fn sections(drawn: &Drawn<'_>) -> Markup {
    let Some(flow) = &drawn.model.dataflow else { return html! {} };
    // The data of its first task are behind those of all streams.
    let first = drawn.model.tasks().iter().map(|task| task.streams.len()).sum();
    let begin = flow.from_ns;
    let name = flow
        .program
        .as_deref()
        .map_or_else(|| "Dataflow program".to_owned(), |name| format!("Dataflow program {}", visible(name)));
    html! {
        section #dataflow aria-labelledby="dataflow-title" {
            h2 #dataflow-title { bdi { (name) } }
            p { (summary(drawn.model)) }
            @let unfollowed = unfollowed(flow);
            @if !unfollowed.is_empty() {
                div.note.warning role="note" {
                    h3 { "Not followed" }
                    ul { @for line in unfollowed { li { (line) } } }
                }
            }
            div.figures { (graph::figure(flow)) }
        }
        section #flow-chains aria-labelledby="flow-chains-title" {
            h2 #flow-chains-title { "Chains" }
            (chains::chains(flow, begin))
        }
        section #flow-tasks aria-labelledby="flow-tasks-title" {
            h2 #flow-tasks-title { "Tasks of the dataflow program" }
            @if flow.tasks.is_empty() {
                p { "No task was seen." }
            } @else {
                (tasks::times(flow, begin))
                (kernel::split(flow))
            }
        }
        section #flow-states aria-labelledby="flow-states-title" {
            h2 #flow-states-title { "Tasking graph" }
            @match drawn.states {
                Some(states) => div.figures { (states::figure(states, begin)) },
                None => p.missing {
                    "The tasking graph needs the trace that the model was made from: punctual report \
                     FILE.timing.json TRACE, or punctual report TRACE."
                },
            }
        }
        section #flow-activations aria-labelledby="flow-activations-title" {
            h2 #flow-activations-title { "When tasks are activated" }
            (tasks::activations(flow, first))
        }
    }
}

/// What the figures leave out, and why.
fn unfollowed(flow: &Dataflow) -> Vec<String> {
    let left_out = [trace_losses(flow), task_losses(flow), chain_losses(flow)].concat().into_iter();
    let mut lines: Vec<String> = left_out
        .filter(|left_out| left_out.number > 0)
        .map(|LeftOut { number, noun, what }| format!("{} {what}", counted(number, noun)))
        .collect();
    let unknown: Vec<String> = flow
        .unknown_inputs()
        .into_iter()
        .map(|(from, to)| format!("{} → {}", visible(from), visible(to)))
        .collect();
    if !unknown.is_empty() {
        lines.push(crate::flow::unknown_inputs(&unknown));
    }
    lines
}

/// So many of something that figures leave out, and what happened to them.
#[derive(Clone)]
struct LeftOut {
    number: u64,
    noun: &'static str,
    what: String,
}

fn left_out(number: u64, noun: &'static str, what: impl Into<String>) -> LeftOut {
    LeftOut { number, noun, what: what.into() }
}

fn are(number: u64) -> &'static str {
    agreeing(number, "is", "are")
}

fn trace_losses(flow: &Dataflow) -> Vec<LeftOut> {
    let Dataflow { discarded_events, missing_packets, damaged_packets, .. } = *flow;
    let pushes = flow.channels.iter().map(|channel| channel.missing_pushes).fold(0, u64::saturating_add);
    let was = agreeing(discarded_events, "was", "were");
    let damaged = are(damaged_packets);
    vec![
        left_out(discarded_events, "event", format!("{was} discarded by the tracer for lack of room.")),
        left_out(missing_packets, "packet", format!("of the trace {} missing.", are(missing_packets))),
        left_out(
            damaged_packets,
            "packet",
            format!("of the trace {damaged} damaged; the damaged parts are left out."),
        ),
        left_out(pushes, "push", format!("at least {} missing, by their numbers.", are(pushes))),
    ]
}

fn task_losses(flow: &Dataflow) -> Vec<LeftOut> {
    let sum = |count: fn(&FlowTask) -> u64| flow.tasks.iter().map(count).fold(0, u64::saturating_add);
    let incomplete = sum(|task| task.incomplete);
    let missing = sum(|task| task.missing_activations);
    let have = agreeing(incomplete, "has", "have");
    vec![
        left_out(
            incomplete,
            "instance",
            format!("of tasks {have} no activation, start or stop in the trace; no figure counts them."),
        ),
        left_out(
            sum(|task| task.unexplained),
            "activation",
            "came without enough data at the task's inputs as declared: the task has a condition of its \
             own, or the declaration is wrong.",
        ),
        left_out(
            missing,
            "activation",
            format!("at least {} missing, by their numbers; no curve spans one.", are(missing)),
        ),
        left_out(sum(|task| task.in_flight), "instance", "of tasks still active at the end of the trace."),
    ]
}

fn chain_losses(flow: &Dataflow) -> Vec<LeftOut> {
    let sum = |count: fn(&Chain) -> u64| flow.chains.iter().map(count).fold(0, u64::saturating_add);
    let on_the_way = sum(|chain| chain.in_flight);
    let overtaken = sum(|chain| chain.overtaken);
    let its = |number: u64| agreeing(number, "its", "their");
    vec![
        left_out(
            sum(|chain| chain.lost.saturating_add(chain.sinks_lost)),
            "time",
            "the path of a datum along a chain could not be followed: events are missing that could have \
             changed it, or a channel on it is connected to a task twice.",
        ),
        left_out(
            sum(|chain| chain.incomplete.saturating_add(chain.sinks_incomplete)),
            "time",
            "a datum reached an instance of a sink that has no start or stop in the trace.",
        ),
        left_out(
            on_the_way,
            "source instance",
            format!("of a chain had {} datum on the way at the end of the trace.", its(on_the_way)),
        ),
        left_out(
            overtaken,
            "source instance",
            format!("of a chain pushed {} datum after the sink had read a later one.", its(overtaken)),
        ),
    ]
}

#[cfg(test)]
mod tests;
