//! The table of all tasks: every column sorts, a text filters.

use super::captions::mean;
use crate::figure::{at_least, at_most, count};
use crate::models::utilization;
use crate::overview::{legend, notes, policy, primary, same_thread, short};
use crate::shape::Shape;
use crate::slips::{jitters, period_and_slips};
use crate::visible;
use maud::{Markup, html};
use punctual_model::{Duration, Policy, Stream, Task, TimingModel};

/// Fewer jobs than this say little.
pub(crate) const FEW_JOBS: u64 = 3;

/// What a column's cells are sorted by.
#[derive(Clone, Copy)]
enum Kind {
    Words,
    Figures,
    /// Words with a rank.
    Ranked,
}

const COLUMNS: [(&str, Kind, &str); 14] = [
    ("Thread", Kind::Words, "The thread's name"),
    ("TID", Kind::Figures, "Thread number"),
    ("Policy", Kind::Ranked, "Scheduling policy and priority, most urgent first"),
    ("Separator", Kind::Words, "The call in which it waits for its next job"),
    ("Period or arrival", Kind::Figures, "Period; else releases in a burst, or least separation"),
    (
        "Jitter",
        Kind::Figures,
        "How much later than its place in the grid a job is released: typically at most, and of all releases where that is another",
    ),
    ("WCET", Kind::Figures, "Most processor time of a job"),
    ("Mean", Kind::Figures, "Mean processor time of a job"),
    ("Suspended", Kind::Figures, "Most time asleep inside a job"),
    ("Response", Kind::Figures, "Most time from arrival or release to the end of a job"),
    ("Jobs", Kind::Figures, "Jobs seen from release to end"),
    (
        "Utilization",
        Kind::Figures,
        "Most processor time over many jobs in a row, as a share of the least time that they span",
    ),
    ("Windows", Kind::Figures, "Releases that were not seen themselves"),
    ("Notes", Kind::Words, "What to know before relying on the figures"),
];

/// What is shown, and the number to sort by where the text is no good for that; absent values sort last.
struct Cell {
    text: String,
    number: Option<u128>,
}

fn words(text: String) -> Cell {
    Cell { text, number: None }
}

fn figure(text: String, number: u128) -> Cell {
    Cell { text, number: Some(number) }
}

fn absent() -> Cell {
    Cell { text: "–".into(), number: None }
}

fn time(duration: Option<Duration>) -> Cell {
    duration.map_or_else(absent, |duration| figure(at_most(duration).to_string(), duration.ns().into()))
}

/// The positions of tasks, as they are shown: most urgent first, those that say little last, the phases of a
/// thread together.
pub(crate) fn order(model: &TimingModel) -> Vec<usize> {
    let mut order: Vec<usize> = (0..model.tasks.len()).collect();
    order.sort_by_cached_key(|&position| {
        let task = &model.tasks[position];
        (brief(task), urgency_of_thread(model, task), task.recording.clone(), task.pid, task.tid, task.phase)
    });
    order
}

/// The section with the table.
pub(crate) fn table(model: &TimingModel, order: &[usize]) -> Markup {
    let all: Vec<&Task> = model.tasks.iter().collect();
    html! {
        section #tasks aria-labelledby="tasks-title" {
            h2 #tasks-title { "All tasks" }
            @if model.tasks.is_empty() {
                p { "No task was seen." }
            } @else {
                div.controls hidden {
                    label for="filter" { "Filter" }
                    input #filter type="search" autocomplete="off" spellcheck="false" placeholder="name, TID, policy, call, command …";
                    output #shown for="filter" {}
                }
                div.scroll tabindex="0" role="region" aria-labelledby="tasks-title" {
                    table #overview {
                        thead { tr {
                            @for (title, kind, meaning) in COLUMNS {
                                th scope="col" class=[matches!(kind, Kind::Figures).then_some("figure")] data-ranked=[(!matches!(kind, Kind::Words)).then_some("")]
                                    title=(meaning) { (title) }
                            }
                        } }
                        tbody {
                            @for &position in order { (row(model, position)) }
                        }
                    }
                }
                @for line in legend(&all).lines() { p.legend { (line) } }
            }
        }
    }
}

/// Whether there are too few jobs to say much.
pub(crate) fn brief(task: &Task) -> bool {
    primary(task).is_none_or(|stream| stream.jobs < FEW_JOBS)
}

fn row(model: &TimingModel, position: usize) -> Markup {
    let task = &model.tasks[position];
    let mut cells =
        vec![figure(task.tid.to_string(), task.tid.into()), figure(policy(task), urgency(task).into())];
    cells.extend(match primary(task) {
        Some(stream) => of_stream(stream),
        None => {
            let mut cells: Vec<Cell> = (0..7).map(|_| absent()).collect();
            cells.extend([figure("0".into(), 0), absent(), absent()]);
            cells
        }
    });
    let recording = task.recording.as_ref().map(|recording| format!("from {}", visible(recording)));
    cells.push(words(recording.into_iter().chain(notes(model, task)).collect::<Vec<_>>().join(", ")));
    html! {
        tr class=[brief(task).then_some("brief")] data-words=(visible(&format!("{} {}", task.command, task.recording.as_deref().unwrap_or_default()))) {
            th scope="row" { a href={ "#task-" (position) } { bdi { (visible(&task.name)) } } }
            @for (cell, (_, kind, _)) in cells.iter().zip(&COLUMNS[1..]) {
                @match kind {
                    Kind::Words => td { bdi { (cell.text) } },
                    Kind::Figures => td.figure data-v=[cell.number] { (cell.text) },
                    Kind::Ranked => td data-v=[cell.number] { (cell.text) },
                }
            }
        }
    }
}

fn of_stream(stream: &Stream) -> Vec<Cell> {
    let (arrival, jitter) = match Shape::of(stream) {
        Shape::Periodic(model) => (
            figure(period_and_slips(model), model.period_ns.ns().into()),
            figure(jitters(model), model.usual_jitter().ns().into()),
        ),
        Shape::Bursts { jobs, span } => {
            (figure(format!("≤ {jobs} in {}", at_least(span)), span.ns().into()), absent())
        }
        Shape::Sporadic(separation) => {
            (figure(format!("≥ {} apart", at_least(separation)), separation.ns().into()), absent())
        }
        Shape::Unknown => (absent(), absent()),
    };
    let mean = mean(stream);
    vec![
        words(short(&stream.separator)),
        arrival,
        jitter,
        time(stream.execution.as_ref().and_then(|execution| execution.wcet_ns.first().copied())),
        mean.map_or_else(absent, |mean| figure(mean.to_string(), mean.ns().into())),
        time(stream.suspension.as_ref().map(|model| model.dynamic_ns)),
        time(stream.response.as_ref().map(|model| model.max_ns)),
        figure(count(stream.jobs), stream.jobs.into()),
        share(stream),
        figure(count(stream.uncertain_releases), stream.uncertain_releases.into()),
    ]
}

/// Utilization; a text of percent with two decimals sorts by its digits.
fn share(stream: &Stream) -> Cell {
    utilization(stream).map_or_else(absent, |(_, percent)| {
        let digits: String = percent.chars().filter(char::is_ascii_digit).collect();
        figure(format!("{percent} %"), digits.parse().unwrap_or(u128::MAX))
    })
}

/// SCHED_DEADLINE, then by priority, then the rest.
fn urgency(task: &Task) -> u32 {
    match task.policy {
        Policy::Deadline => 0,
        Policy::Fifo | Policy::Rr => 100_u32.saturating_sub(task.priority),
        _ => 1_000,
    }
}

/// The phases of a thread stay together, where the most urgent one belongs.
fn urgency_of_thread(model: &TimingModel, task: &Task) -> u32 {
    // Tasks are in the order of processes and threads in every model that Punctual writes, but need not be.
    model.tasks.iter().filter(|other| same_thread(task, other)).map(urgency).min().unwrap_or(u32::MAX)
}
