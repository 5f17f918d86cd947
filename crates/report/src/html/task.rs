//! The section of one task: the same words as the text report, and the figures that go with them.

use super::captions;
use super::jobs::{Jobs, Measure, StreamJobs};
use super::overview::brief;
use super::segments::bars;
use crate::figure::{about, counted};
use crate::models::{arrivals, completion, demand};
use crate::overview::{arrival, notes, policy, primary, same_thread};
use crate::prose::{identity, uncertain};
use crate::visible;
use maud::{Markup, html};
use punctual_model::{Duration, EndedBy, Stream, Task, TimingModel};

/// The section of the task at `position`.
pub(crate) fn section(model: &TimingModel, position: usize, jobs: Option<&Jobs>) -> Markup {
    let task = &model.tasks[position];
    // Streams are counted through all tasks.
    let first: usize = model.tasks[..position].iter().map(|task| task.streams.len()).sum();
    let id = format!("task-{position}");
    html! {
        section.task id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } {
                bdi { (visible(&task.name)) }
                small { " thread " (task.tid) " of process " (task.pid) ", " (policy(task)) }
            }
            @for line in identity(model, task) { p { (line) } }
            (phases(model, task))
            @let uncertain = uncertain(model, task);
            @if !uncertain.is_empty() {
                div.note.warning role="note" {
                    h3 { "What is uncertain" }
                    ul { @for line in uncertain { li { (line) } } }
                }
            }
            @match task.primary.and_then(|index| Some((index, primary(task)?))) {
                None => p { "No job was seen: it never waited and went on while it was watched." },
                Some((_, stream)) if brief(task) => {
                    p { "Only " (counted(stream.jobs, "job")) " seen from release to end: too few for figures that say anything." }
                    ul { @for line in demand(stream).into_iter().chain(completion(stream)) { li { (line) } } }
                },
                Some((index, stream)) => {
                    (content(task, stream, first + index, jobs, true))
                    (others(task, first, jobs))
                },
            }
            p.up { a href="#tasks" { "↑ All tasks" } }
        }
    }
}

/// Words and figures of one stream. The figure's element names its kind and its stream: the script does the rest.
fn content(task: &Task, stream: &Stream, number: usize, jobs: Option<&Jobs>, primary: bool) -> Markup {
    let seen = jobs.and_then(|jobs| jobs.stream(number)).filter(|seen| seen.jobs > 0);
    let lateness = seen.map(|seen| matches!(seen.measure, Measure::Lateness { .. }));
    html! {
        @if let Some(warning) = seen.and_then(|seen| captions::coverage(stream, seen)) {
            p.note.warning { (warning) }
        }
        h3 { "When its jobs come" }
        @if primary {
            ul { @for line in arrivals(task, stream) { li { (line) } } }
        }
        (absent(jobs, seen, "the release raster and the histograms"))
        div.figures {
            @if let Some(seen) = seen {
                (plot("raster", number, if lateness == Some(true) { "Release raster: lateness of each job" } else { "Release raster: separation of jobs" }, captions::raster(seen)))
                (maybe("lateness", number, if lateness == Some(true) { "Histogram of lateness" } else { "Histogram of separation" },
                    captions::histogram(&seen.lateness, if lateness == Some(true) {
                        "How much later than its place in the periodic grid each job was released."
                    } else {
                        "How long after the one before it each job was released."
                    })))
            }
            (maybe("arrivals", number, "Arrival curves η⁺ and η⁻", captions::arrivals(stream)))
        }
        h3 { "What a job needs" }
        @if primary {
            ul { @for line in demand(stream) { li { (line) } } }
        }
        div.figures {
            @if let Some(seen) = seen {
                (maybe("cost", number, "Histogram of cost", captions::histogram(&seen.cost, "How much processor time each job took.")))
            }
            (maybe("wcet", number, "WCET(n) against n·C", captions::wcet(stream)))
            (maybe("request", number, "Request-bound functions", captions::request(stream)))
            @if let Some(model) = stream.suspension.as_ref().filter(|model| model.dynamic_ns > Duration::ZERO) {
                figure {
                    h4 { "Suspension segments" }
                    (bars(model))
                    figcaption { @if let Some(text) = captions::suspension(stream) { (text) } }
                }
            }
        }
        @if stream.response.is_some() {
            h3 { "How long a job takes" }
            @if primary {
                ul { @for line in completion(stream) { li { (line) } } }
            }
            @if let Some(seen) = seen {
                div.figures {
                    (maybe("response", number, "Histogram of response time",
                        captions::histogram(&seen.response, "How long after its arrival (where that is not known: its release) each job was done.")))
                }
            }
        }
    }
}

/// Says that jobs are missing, where they are.
fn absent(jobs: Option<&Jobs>, seen: Option<&StreamJobs>, what: &str) -> Markup {
    html! {
        @match (jobs, seen) {
            (None, _) => p.missing { "Not drawn: " (what) ". They need " a href="#recording" { "a recording" } "." },
            (Some(_), None) => p.missing { "Not drawn: " (what) ". The recording has no job of this stream." },
            _ => {},
        }
    }
}

fn maybe(kind: &str, stream: usize, title: &str, caption: Option<String>) -> Markup {
    html! { @if let Some(caption) = caption { (plot(kind, stream, title, caption)) } }
}

fn plot(kind: &str, stream: usize, title: &str, caption: String) -> Markup {
    html! {
        figure.plot data-kind=(kind) data-stream=(stream) {
            h4 { (title) }
            figcaption { (caption) }
        }
    }
}

/// The other ways to divide the task into jobs, each to be opened.
fn others(task: &Task, first: usize, jobs: Option<&Jobs>) -> Markup {
    let others: Vec<(usize, &Stream)> = task.streams.iter().enumerate().filter(|(index, _)| Some(*index) != task.primary).collect();
    html! {
        @if !others.is_empty() {
            h3 { "Other ways to divide it into jobs" }
            @for (index, stream) in others {
                details {
                    summary { (told(stream)) }
                    (content(task, stream, first + index, jobs, false))
                }
            }
        }
    }
}

fn told(stream: &Stream) -> String {
    let (arrival, jitter) = arrival(stream);
    let mut line = format!("{}: {}, {arrival}", visible(&stream.separator.to_string()), counted(stream.jobs, "job"));
    if jitter != "–" {
        line += &format!(" (jitter {jitter})");
    }
    line
}

/// The phases of a thread, in each of their sections.
fn phases(model: &TimingModel, task: &Task) -> Markup {
    let phases: Vec<(usize, &Task)> = model.tasks.iter().enumerate().filter(|(_, other)| same_thread(task, other)).collect();
    html! {
        @if phases.len() > 1 {
            nav aria-label={ "Phases of thread " (task.tid) } {
                ol.phases {
                    @for (position, phase) in phases {
                        li { (step(position, phase, phase.phase == task.phase && phase.from_ns == task.from_ns)) }
                    }
                }
            }
        }
    }
}

fn step(position: usize, task: &Task, here: bool) -> Markup {
    let text = format!("{} for {}, until {}", policy(task), about(task.until_ns.since(task.from_ns)), end(task.ended_by));
    html! {
        @if here { strong { (text) } } @else { a href={ "#task-" (position) } { (text) } }
    }
}

/// Why a task ended, after "until".
fn end(ended_by: EndedBy) -> &'static str {
    match ended_by {
        EndedBy::ObservationEnd => "the observation ended",
        EndedBy::PolicyChange => "its policy changed",
        EndedBy::PriorityChange => "its priority, nice value or reservation changed",
        EndedBy::AffinityChange => "the processors that it may use changed",
        EndedBy::Exec => "it executed another program",
        EndedBy::Exit => "it ended",
        EndedBy::Loss => "records of it were lost",
    }
}

/// All threads with more than one phase, together.
pub(crate) fn transitions(model: &TimingModel) -> Markup {
    let several = |task: &Task| model.tasks.iter().filter(|other| same_thread(task, other)).count() > 1;
    let changing: Vec<(usize, &Task)> = model.tasks.iter().enumerate().filter(|(_, task)| several(task)).collect();
    html! {
        @if !changing.is_empty() {
            section #transitions aria-labelledby="transitions-title" {
                h2 #transitions-title { "Task transitions" }
                p { "These threads changed while they were watched: a new task begins where the policy, priority, processors or program of a thread change, or where records of it are missing." }
                div.scroll tabindex="0" role="region" aria-labelledby="transitions-title" {
                    table {
                        thead { tr {
                            th scope="col" { "Thread" } th.figure scope="col" { "TID" } th.figure scope="col" { "Phase" } th scope="col" { "Policy" }
                            th.figure scope="col" { "Watched for" } th scope="col" { "Until" } th scope="col" { "Notes" }
                        } }
                        tbody {
                            @for (position, task) in changing {
                                tr {
                                    th scope="row" { a href={ "#task-" (position) } { bdi { (visible(&task.name)) } } }
                                    td.figure { (task.tid) }
                                    td.figure { (task.phase + 1) }
                                    td { (policy(task)) }
                                    td.figure { (about(task.until_ns.since(task.from_ns))) }
                                    td { (end(task.ended_by)) }
                                    td { (notes(model, task).join(", ")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
