//! Dataflow programs on the page. All but the activation curves works without scripts, and each figure stands
//! with a table or text that says the same.

mod boxes;
mod chains;
mod graph;
mod kernel;
mod layout;
mod states;
mod tasks;

pub use states::States;
pub(crate) use tasks::has_curve;

use crate::flow::summary;
use crate::number::{agreeing, count, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::TimingModel;
use punctual_model::dataflow::{Chain, Dataflow, FlowTask};

/// The facts at the head of the page.
pub(crate) fn facts(flow: &Dataflow) -> Vec<(&'static str, String)> {
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
        ("Lost of the trace", Some(lost)),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

/// All sections; `first` is where the data of its first task are among those of all streams.
pub(crate) fn sections(model: &TimingModel, states: Option<&States>, first: usize) -> Markup {
    let Some(flow) = &model.dataflow else { return html! {} };
    let begin = flow.from_ns;
    let name = flow
        .program
        .as_deref()
        .map_or_else(|| "Dataflow program".to_owned(), |name| format!("Dataflow program {}", visible(name)));
    html! {
        section #dataflow aria-labelledby="dataflow-title" {
            h2 #dataflow-title { bdi { (name) } }
            p { (summary(model)) }
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
            @if flow.tasks.is_empty() { p { "No task was seen." } } @else { (tasks::times(flow, begin)) (kernel::split(flow)) }
        }
        section #flow-states aria-labelledby="flow-states-title" {
            h2 #flow-states-title { "Tasking graph" }
            @match states {
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
    let mut lines = Vec::new();
    let mut say = |number: u64, noun: &str, what: String| {
        if number > 0 {
            lines.push(format!("{} {what}", counted(number, noun)));
        }
    };
    let was = |number: u64| agreeing(number, "was", "were");
    let tasks = |of: fn(&FlowTask) -> u64| flow.tasks.iter().map(of).fold(0, u64::saturating_add);
    let chains = |of: fn(&Chain) -> u64| flow.chains.iter().map(of).fold(0, u64::saturating_add);
    say(
        flow.discarded_events,
        "event",
        format!("{} discarded by the tracer for lack of room.", was(flow.discarded_events)),
    );
    say(
        flow.missing_packets,
        "packet",
        format!("of the trace {} missing.", agreeing(flow.missing_packets, "is", "are")),
    );
    say(
        flow.damaged_packets,
        "packet",
        format!(
            "of the trace {} damaged; the damaged parts are left out.",
            agreeing(flow.damaged_packets, "is", "are")
        ),
    );
    let incomplete = tasks(|task| task.incomplete);
    say(
        incomplete,
        "instance",
        format!(
            "of tasks {} no activation, start or stop in the trace; no figure counts them.",
            agreeing(incomplete, "has", "have")
        ),
    );
    let pushes = flow.channels.iter().map(|channel| channel.missing_pushes).fold(0, u64::saturating_add);
    say(pushes, "push", format!("at least {} missing, by their numbers.", agreeing(pushes, "is", "are")));
    let unexplained = tasks(|task| task.unexplained);
    say(
        unexplained,
        "activation",
        "came without enough data at the task's inputs as declared: the task has a condition of its own, or \
         the declaration is wrong."
            .into(),
    );
    let missing = tasks(|task| task.missing_activations);
    say(
        missing,
        "activation",
        format!("at least {} missing, by their numbers; no curve spans one.", agreeing(missing, "is", "are")),
    );
    let in_flight = tasks(|task| task.in_flight);
    say(in_flight, "instance", "of tasks still active at the end of the trace.".into());
    let lost = chains(|chain| chain.lost.saturating_add(chain.sinks_lost));
    say(
        lost,
        "time",
        "the path of a datum along a chain could not be followed: events are missing that could have changed \
         it, or a channel on it is connected to a task twice."
            .into(),
    );
    let incomplete = chains(|chain| chain.incomplete.saturating_add(chain.sinks_incomplete));
    say(
        incomplete,
        "time",
        "a datum reached an instance of a sink that has no start or stop in the trace.".into(),
    );
    let way = chains(|chain| chain.in_flight);
    say(
        way,
        "source instance",
        format!("of a chain had {} datum on the way at the end of the trace.", agreeing(way, "its", "their")),
    );
    let overtaken = chains(|chain| chain.overtaken);
    say(
        overtaken,
        "source instance",
        format!(
            "of a chain pushed {} datum after the sink had read a later one.",
            agreeing(overtaken, "its", "their")
        ),
    );
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

#[cfg(test)]
mod tests;
