//! The section `threads` on the page: over time, in a table, with what is missing. Each task has a section of
//! its own: [`super::task`].

use super::drawn::{Drawn, Fact};
use super::jobs::Jobs;
use super::overview::table;
use super::task::transitions;
use super::time;
use crate::clock;
use crate::number::{agreeing, count, counted};
use crate::overview::listed;
use maud::{Markup, html};
use punctual_model::{Section, Threads, TimingModel};

/// How much was observed.
pub(crate) fn facts(model: &TimingModel) -> Vec<Fact> {
    let Some(seen) = &model.threads else { return Vec::new() };
    let losses = seen.losses();
    vec![
        Fact::new("Tasks", count(seen.tasks.len() as u64)),
        Fact::new("Records", count(seen.records)),
        Fact { name: "Lost", text: listed(&losses).unwrap_or("nothing".into()), is_loss: !losses.is_empty() },
    ]
}

/// Links to what is about all threads.
pub(crate) fn contents(drawn: &Drawn<'_>) -> Markup {
    html! {
        @if !drawn.order.is_empty() { li { a href="#time" { "Over time" } } }
        li { a href="#tasks" { "All tasks" } }
    }
}

/// Links to each thread, as a list of their own; nothing without threads.
pub(crate) fn list(drawn: &Drawn<'_>) -> Markup {
    html! { @if drawn.model.threads.is_some() { (time::contents(drawn.model, &drawn.order)) } }
}

/// What is about all threads.
pub(crate) fn sections(drawn: &Drawn<'_>) -> Markup {
    html! {
        (time::section(drawn.model, &drawn.order, drawn.jobs))
        (table(drawn.model, &drawn.order))
        @if let Some(advice) = crate::why::unexplained(drawn.model) { p.note { (advice) } }
        (transitions(drawn.model, &drawn.order))
    }
}

/// Caveats of the observation and of the jobs; nothing without threads.
pub(crate) fn notes(drawn: &Drawn<'_>) -> Markup {
    html! {
        @if let Some(seen) = &drawn.model.threads {
            @let warnings = incomplete(seen);
            @if !warnings.is_empty() {
                div.note.warning role="note" {
                    h2 { "Caveats" }
                    ul { @for warning in warnings { li { (warning) } } }
                }
            }
            (recording(drawn.jobs))
        }
    }
}

/// What is missing, and what that means for the figures.
fn incomplete(seen: &Threads) -> Vec<String> {
    let mut text = Vec::new();
    if seen.lost_records > 0 {
        text.push(format!(
            "{} {} lost. Where a record is missing, the thread's task ends and another begins: no figure \
             spans a gap.",
            counted(seen.lost_records, "record"),
            agreeing(seen.lost_records, "was", "were"),
        ));
    }
    if seen.untracked_threads > 0 {
        text.push(format!(
            "{} could not be observed: there was no room for them, or they ended before they were seen.",
            counted(seen.untracked_threads, "thread")
        ));
    }
    if seen.skipped_events > 0 {
        text.push(format!(
            "The kernel skipped {} of the observing programs. Missing events were reconstructed; where that \
             was not exact, releases are windows.",
            counted(seen.skipped_events, "run")
        ));
    }
    if let Some(stolen) = crate::overview::stolen(seen) {
        text.push(format!(
            "{stolen} Jobs that were due then are late or took longer; costs are never too small."
        ));
    }
    text.extend(crate::overview::noted(seen));
    text.extend(clock::steps(seen));
    if seen.omitted_tasks > 0 {
        text.push(format!("{} left out because there were too many.", counted(seen.omitted_tasks, "task")));
    }
    text
}

/// How to get the jobs, where they are missing.
fn recording(jobs: Option<&Jobs>) -> Markup {
    html! {
        @match jobs {
            None => div.note role="note" id="recording" {
                p {
                    "This page was made from a timing model alone. Release rasters and histograms need the \
                     jobs, which are in a recording. To make one and draw it:"
                }
                pre { code {
                    "punctual record -o DIR\n"
                    "punctual replay DIR -o FILE.timing.json\n"
                    "punctual report FILE.timing.json DIR -o report.html"
                } }
            },
            Some(jobs) => @if jobs.unknown() > 0 {
                div.note.warning role="note" {
                    p {
                        (counted(jobs.unknown(), "job")) " of what was recorded " (agreeing(jobs.unknown(),
                            "belongs", "belong"))
                        " to no task of the model and " (agreeing(jobs.unknown(), "is", "are")) " not shown."
                    }
                }
            },
        }
    }
}
