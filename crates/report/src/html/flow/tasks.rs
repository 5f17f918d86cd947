//! Times of tasks: box plots, a table, and activation curves.

use super::boxes::{self, Kinds, Row};
use crate::figures::{TIMES, TimesRow};
use crate::html::cell;
use crate::number::{at_least, at_most, count, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::Instant;
use punctual_model::dataflow::{Dataflow, FlowTask, Times};

/// Tasks whose curves are drawn.
const MOST_DRAWN: usize = 200;

/// Box plots and table.
pub(super) fn times(flow: &Dataflow, begin: Instant) -> Markup {
    let distribution = |times: &Option<Times>| times.as_ref().map(|times| times.distribution.clone());
    let found: Vec<_> = flow
        .tasks
        .iter()
        .map(|task| (visible(&task.name), distribution(&task.execution), distribution(&task.queuing)))
        .collect();
    let rows: Vec<Row> = found
        .iter()
        .map(|(name, execution, queuing)| Row {
            name: name.clone(),
            boxes: [execution.as_ref(), queuing.as_ref()],
        })
        .collect();
    let kinds = Kinds {
        names: ["Execution, from start to stop", "Queuing, from activation to start"],
        classes: ["execution", "queuing"],
    };
    html! {
        div.figures {
            (boxes::figure("Execution and queuing times", &rows, &kinds,
                "Queuing times longer than execution times mean that tasks wait for an executor."))
        }
        (table(flow, begin))
    }
}

fn table(flow: &Dataflow, begin: Instant) -> Markup {
    let rows = flow.tasks.iter().flat_map(|task| {
        [("execution", task.execution.as_ref()), ("queuing", task.queuing.as_ref())]
            .map(|(kind, times)| TimesRow { task, kind, times, begin })
    });
    cell::table(TIMES, rows, "Times of tasks as a table")
}

/// Whether a task has curves to draw.
pub(crate) fn has_curve(task: &FlowTask) -> bool {
    task.arrival.curve.as_ref().is_some_and(|curve| !curve.delta_min_ns.is_empty())
}

/// Curves of activations; `first` is where the data of the first task are among those of all streams.
pub(super) fn activations(flow: &Dataflow, first: usize) -> Markup {
    let drawn: Vec<(usize, &FlowTask)> =
        flow.tasks.iter().enumerate().filter(|(_, task)| has_curve(task)).collect();
    html! {
        p {
            "Beyond the observation, curves are dashed: extrapolated by δ⁻(n + 1) = δ⁻(n) + δ⁻(2) and its \
             inverse; safe if no two activations ever come closer than the closest observed."
        }
        @if drawn.is_empty() { p.missing { "No task was activated twice." } }
        @for (position, task) in drawn.iter().take(MOST_DRAWN) {
            h3 { bdi { (visible(&task.name)) } }
            div.figures { (curves(task, first + position)) }
        }
        @if drawn.len() > MOST_DRAWN { p.missing { (counted((drawn.len() - MOST_DRAWN) as u64, "task")) " \
         more in the model file." } }
    }
}

fn curves(task: &FlowTask, stream: usize) -> Markup {
    let Some(curve) = &task.arrival.curve else { return html! {} };
    let (Some(closest), Some(last)) = (curve.delta_min_ns.first(), curve.delta_min_ns.last()) else {
        return html! {};
    };
    let (closest, last, known) = (at_least(*closest), at_least(*last), curve.delta_min_ns.len() as u64 + 1);
    let apart = curve
        .delta_max_ns
        .first()
        .map(|most| format!(", and never more than {} apart", at_most(*most)))
        .unwrap_or_default();
    html! {
        figure.plot data-kind="activations" data-stream=(stream) {
            h4 { "Arrival curves η⁺ and η⁻" }
            figcaption {
                "How many activations any interval of length Δ has, at most (η⁺) and at least (η⁻). Of \
                 " (counted(task.activations, "activation")) ", no two came closer than "
                (closest) (apart) ". Beyond " (last) " the bound is extrapolated."
            }
        }
        figure.plot data-kind="distances" data-stream=(stream) {
            h4 { "Distance functions δ⁻ and δ⁺" }
            figcaption {
                "The time that n activations in a row span, at least (δ⁻) and at most (δ⁺). Beyond \
                 " (count(known)) " activations δ⁻ is extrapolated and δ⁺ is unknown."
            }
        }
    }
}
