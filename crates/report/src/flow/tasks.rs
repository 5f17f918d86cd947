//! Tables of tasks: times of their instances, and when they are activated.

use crate::figures::{Fit, TIMES, TimesRow};
use crate::number::{at_least, at_most, count, counted};
use crate::table::{self, Column, Table, Tone, words};
use crate::{Page, paragraph, visible};
use punctual_model::dataflow::{Count, Dataflow, Distance, FlowTask, Times};
use punctual_model::{Duration, Instant};

pub fn execution(flow: &Dataflow, page: &Page, begin: Instant) -> String {
    times(flow, page, begin, "execution", |task| task.execution.as_ref())
}

pub fn queuing(flow: &Dataflow, page: &Page, begin: Instant) -> String {
    times(flow, page, begin, "queuing", |task| task.queuing.as_ref())
}

fn times(
    flow: &Dataflow,
    page: &Page,
    begin: Instant,
    kind: &'static str,
    times_of: fn(&FlowTask) -> Option<&Times>,
) -> String {
    if flow.tasks.is_empty() {
        return String::new();
    }
    let rows = flow.tasks.iter().map(|task| TimesRow { task, kind, times: times_of(task), begin });
    table::of_figures(TIMES, rows).text(page)
}

/// How many activations a distance is of, as columns.
const DISTANCES: [u64; 5] = [2, 5, 10, 100, 10_000];

pub fn distances(flow: &Dataflow, page: &Page) -> String {
    let columns = [
        words("Task", Fit::Keep),
        table::figures("Activations", Fit::Keep),
        table::figures("n = 2", Fit::Keep),
        table::figures("n = 5", Fit::Drop(2)),
        table::figures("n = 10", Fit::Keep),
        table::figures("n = 100", Fit::Drop(3)),
        table::figures("n = 10,000", Fit::Drop(4)),
    ];
    let cell = |task: &FlowTask, n: u64| match &task.arrival.curve {
        Some(curve) => distance(&Distance::new(curve, n)),
        None => "–".to_owned(),
    };
    table(flow, page, &columns, |task| DISTANCES.map(|n| cell(task, n)).to_vec())
}

/// Lengths of intervals, as columns, in nanoseconds.
const SPANS: [u64; 5] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

pub fn counts(flow: &Dataflow, page: &Page) -> String {
    let columns = [
        words("Task", Fit::Keep),
        table::figures("Activations", Fit::Keep),
        table::figures("Δ = 1 ms", Fit::Drop(4)),
        table::figures("Δ = 10 ms", Fit::Keep),
        table::figures("Δ = 100 ms", Fit::Keep),
        table::figures("Δ = 1 s", Fit::Drop(2)),
        table::figures("Δ = 10 s", Fit::Drop(3)),
    ];
    let cell = |task: &FlowTask, span: u64| match &task.arrival.curve {
        Some(curve) => number(&Count::new(curve, Duration::from_ns(span))),
        None => "–".to_owned(),
    };
    table(flow, page, &columns, |task| SPANS.map(|span| cell(task, span)).to_vec())
}

fn table(
    flow: &Dataflow,
    page: &Page,
    columns: &[Column],
    cells: impl Fn(&FlowTask) -> Vec<String>,
) -> String {
    let mut table = Table::new(columns);
    for task in flow.tasks.iter().filter(|task| task.arrival.curve.is_some()) {
        let row = [visible(&task.name), count(task.activations)].into_iter().chain(cells(task));
        table.rows.push(row.map(|cell| (cell, Tone::Plain)).collect());
    }
    if table.rows.is_empty() { String::new() } else { table.text(page) }
}

/// `1 ms – 2 ms`; beyond the observation there is only a lower bound.
fn distance(distance: &Distance) -> String {
    let least = at_least(distance.min_ns);
    match distance.max_ns.filter(|_| !distance.extrapolated) {
        Some(greatest) => format!("{least} – {}", at_most(greatest)),
        None => format!("≥ {least} *"),
    }
}

/// `3 – 5`; beyond the observation there is only an upper bound.
fn number(found: &Count) -> String {
    match (found.min.filter(|_| !found.extrapolated), found.max) {
        (Some(min), Some(max)) => format!("{} – {}", count(min), count(max)),
        (None, Some(max)) if found.extrapolated => format!("≤ {} *", count(max)),
        (None, Some(max)) => format!("≤ {}", count(max)),
        (_, None) => "unbounded *".into(),
    }
}

/// The terms in the tables that a newcomer cannot know.
pub fn legend(flow: &Dataflow, page: &Page) -> String {
    let mut text = String::new();
    if flow.tasks.iter().any(|task| task.arrival.curve.is_some()) {
        text += &paragraph(
            "*: beyond the observation, extrapolated by δ⁻(n + 1) = δ⁻(n) + δ⁻(2) and its inverse; safe if \
             no two activations ever come closer than the closest observed.",
            page,
        );
    }
    let sum = |counter: fn(&FlowTask) -> u64| flow.tasks.iter().map(counter).sum::<u64>();
    if sum(|task| task.in_flight) > 0 {
        text += &paragraph("not ended: instances still active at the end of the trace.", page);
    }
    let (incomplete, missing) = (sum(|task| task.incomplete), sum(|task| task.missing_activations));
    if incomplete > 0 {
        let line = format!(
            "incomplete: {} without activation, start or stop in the trace; no figure counts them.",
            counted(incomplete, "instance")
        );
        text += &paragraph(&line, page);
    }
    for task in flow.tasks.iter().filter(|task| task.unexplained > 0) {
        let line = format!(
            "{} of {} came without enough data at its inputs as declared: it has a condition of its own, or \
             the declaration of its inputs is wrong.",
            counted(task.unexplained, "activation"),
            visible(&task.name)
        );
        text += &paragraph(&line, page);
    }
    if missing > 0 {
        let line = format!(
            "missing: at least {} absent from the trace, by their numbers; no curve spans one.",
            counted(missing, "activation")
        );
        text += &paragraph(&line, page);
    }
    text
}
