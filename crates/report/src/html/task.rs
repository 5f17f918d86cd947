//! The section of one task: the text of the terminal report, key figures, worst jobs and plots.

use super::captions;
use super::jobs::{Jobs, Measure, StreamJobs};
use super::overview::{FEW_JOBS, brief};
use super::segments::bars;
use crate::busy::without_jobs;
use crate::derived::{is_merged, primary};
use crate::figures::{Group, THREADS, ThreadRow, Unit};
use crate::models::{arrivals, completion, demand};
use crate::number::{about, at_most, count, counted};
use crate::overview::{arrival, policy};
use crate::prose::{begin, identity, number, uncertain};
use crate::{percentiles, text, visible};
use maud::{Markup, html};
use punctual_model::{Duration, EndedBy, Stream, Task, ThreadIds, TimingModel};

/// The section of the task at `position`.
pub(crate) fn section(model: &TimingModel, position: usize, jobs: Option<&Jobs>) -> Markup {
    let task = &model.tasks()[position];
    // Streams are counted through all tasks.
    let first: usize = model.tasks()[..position].iter().map(|task| task.streams.len()).sum();
    let id = format!("task-{position}");
    html! {
        section.task id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } {
                bdi { (visible(&task.name)) }
                small { " " (number(task)) ", " (policy(task)) }
            }
            @if let Some(recording) = &task.recording {
                p {
                    @if is_merged(task) { "Of " } @else { "From the recording " }
                    bdi { (visible(recording)) }
                }
            }
            @for line in identity(model, task) { p { (line) } }
            (phases(model, task))
            @let uncertain = uncertain(model, task);
            @if !uncertain.is_empty() {
                div.note.warning role="note" {
                    h3 { "Caveats" }
                    ul { @for line in uncertain { li { (line) } } }
                }
            }
            @match task.primary.and_then(|index| Some((index, primary(task)?))) {
                None => p { (without_jobs(task)) },
                Some((_, stream)) if brief(task) => {
                    p { "Only " (counted(stream.jobs, "job")) " seen from release to end: too few for \
                                                               meaningful figures." }
                    ul { @for line in demand(stream).into_iter().chain(completion(stream)) { li { (line) } } }
                },
                Some((index, stream)) => {
                    (facts(task, stream))
                    details.words {
                        summary { "In words" }
                        (words("When its jobs come", &arrivals(task, stream, begin(model, task))))
                        (words("What a job needs", &demand(stream)))
                        (words("How long a job takes", &completion(stream)))
                    }
                    (worst(model, position, first + index, jobs))
                    (content(model, task, stream, first + index, jobs))
                    (others(model, task, stream, first, jobs))
                },
            }
            p.up { a href="#tasks" { "↑ All tasks" } }
        }
    }
}

/// The key figures of a stream.
fn facts(task: &Task, stream: &Stream) -> Markup {
    let row = ThreadRow { stream: Some(stream), ..ThreadRow::new(&ThreadIds::default(), task) };
    let shown = THREADS
        .iter()
        .filter(|entry| entry.figure.key)
        .filter_map(|entry| Some((entry.figure, (entry.value)(&row)?)))
        // Where nothing was skipped and nothing extra, there is nothing to say.
        .filter(|(figure, value)| figure.compared != Some(Group::Slips) || value.number() != Some(0))
        .map(|(figure, value)| (figure, text::value(&value, figure.rounding)));
    html! {
        dl.facts.key-figures {
            @for (figure, value) in shown {
                div title=(figure.meaning) {
                    dt { (figure.title) @if !figure.symbol.is_empty() { " " var { (figure.symbol) } } }
                    dd { (value) }
                }
            }
        }
        (distribution(stream))
    }
}

/// Percentiles of lateness, cost and response, beside the greatest.
fn distribution(stream: &Stream) -> Markup {
    let rows = percentiles::rows(stream);
    let shown = rows.iter().map(|row| row.values.len()).max().unwrap_or(0);
    html! {
        @if !rows.is_empty() {
            div.scroll.percentiles tabindex="0" role="region" aria-label="Percentiles" {
                table {
                    thead { tr {
                        th scope="col" { "At most" }
                        @for title in &percentiles::TITLES[..shown] { th.figure scope="col" { (title) } }
                        th.figure scope="col" { "all" }
                    } }
                    tbody {
                        @for row in &rows {
                            tr {
                                th scope="row" { (row.what) @if row.is_sampled { " (estimated)" } }
                                @for place in 0..shown {
                                    td.figure { @if let Some(value) =
                                        row.values.get(place) { (at_most(*value)) } @else { "–" } }
                                }
                                td.figure { (at_most(row.greatest)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn words(heading: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            h4 { (heading) }
            ul { @for line in lines { li { (line) } } }
        }
    }
}

/// The jobs that were worst, each with its place in the raster and in the timeline.
fn worst(model: &TimingModel, position: usize, number: usize, jobs: Option<&Jobs>) -> Markup {
    let Some(seen) = jobs.and_then(|jobs| jobs.stream(number)) else { return html! {} };
    let is_late = matches!(seen.measure, Measure::Lateness(_));
    let rows = [
        ("Longest response", "responses", seen.slowest),
        ("Highest cost", "responses", seen.dearest),
        (if is_late { "Latest release" } else { "Closest release" }, "raster", seen.latest),
    ];
    let begin = begin(model, &model.tasks()[position]);
    let time = |ns: i64| match ns < 0 {
        true => format!("−{}", at_most(Duration::from_ns(ns.unsigned_abs()))),
        false => at_most(Duration::from_ns(ns.unsigned_abs())).to_string(),
    };
    html! {
        @if rows.iter().any(|(.., worst)| worst.is_some()) {
            div.scroll.worst id={ "task-" (position) "-worst" } tabindex="0" role="region"
                aria-label="Worst jobs" {
                table {
                    thead { tr {
                        th scope="col" { "Worst job" } th.figure scope="col" { "Number" }
                        th.figure scope="col" { "Released" }
                        th.figure scope="col" { @if is_late { "Lateness" } @else { "After the last" } }
                        th.figure scope="col" { "Cost" } th.figure scope="col" { "Response" }
                        th scope="col" { "Timeline" }
                    } }
                    tbody {
                        @for (what, kind, worst) in rows.iter()
                            .filter_map(|(what, kind, worst)| Some((what, kind, worst.as_ref()?))) {
                            tr {
                                th scope="row" { (what) }
                                td.figure {
                                    button.show type="button" hidden data-stream=(number) data-kind=(kind)
                                        data-job=(worst.number)
                                        data-at-us=((worst.released.since(begin).ns() / 1_000)) title="Show \
                                         it among the jobs around it" {
                                        "job " (worst.number)
                                    }
                                    span { "job " (worst.number) }
                                }
                                td.figure { (text::since(worst.released.since(begin))) }
                                td.figure {
                                    @if worst.is_truncated { "≥ " }
                                    (worst.measure.map_or("–".into(), time))
                                }
                                td.figure { (at_most(worst.cost)) }
                                td.figure { (at_most(worst.response)) }
                                td { (count(worst.released.ns())) " ns" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A figure and its caption; without a caption there is nothing to draw.
fn plot(kind: &'static str, title: &'static str, caption: Option<String>) -> Option<Figure> {
    Some(Figure { kind, title, caption: caption?, inside: None })
}

/// One figure. Its element names its kind and its stream; what the script does not draw is inside.
struct Figure {
    kind: &'static str,
    title: &'static str,
    caption: String,
    inside: Option<Markup>,
}

/// Figures of one stream, by what they are about.
fn content(model: &TimingModel, task: &Task, stream: &Stream, number: usize, jobs: Option<&Jobs>) -> Markup {
    let seen = jobs.and_then(|jobs| jobs.stream(number)).filter(|seen| seen.jobs > 0);
    html! {
        @if let Some(warning) = seen.and_then(|seen| captions::coverage(stream, seen)) {
            p.note.warning { (warning) }
        }
        h3 { "When its jobs come" }
        (absent(jobs, seen))
        (figures(number, coming(stream, seen)))
        h3 { "What a job needs" }
        (figures(number, needing(stream, seen)))
        @let taking = taking(model, task, stream, seen);
        @if !taking.is_empty() {
            h3 { "How long a job takes" }
            (figures(number, taking))
        }
    }
}

fn coming(stream: &Stream, seen: Option<&StreamJobs>) -> Vec<Figure> {
    let mut list = Vec::new();
    if let Some(seen) = seen {
        let (raster, title) = match seen.measure {
            Measure::Lateness(_) => ("Release raster: lateness of each job", "Histogram of lateness"),
            Measure::Separation { .. } => ("Release raster: separation of jobs", "Histogram of separation"),
        };
        let drawn = seen.worst.count() > 0;
        list.extend(plot("raster", raster, drawn.then(|| captions::raster(stream, seen))));
        list.extend(plot("lateness", title, captions::regularity(stream, seen)));
    }
    list.extend(plot("arrivals", "Arrival curves η⁺ and η⁻", captions::arrivals(stream)));
    list
}

fn needing(stream: &Stream, seen: Option<&StreamJobs>) -> Vec<Figure> {
    let mut list = Vec::new();
    let (means, table) = ("The processor time of each job.", percentiles::cost(stream));
    let caption = |seen: &StreamJobs| captions::histogram(&seen.cost, means, table.is_some());
    list.extend(seen.and_then(|seen| plot("cost", "Histogram of cost", caption(seen))));
    list.extend(plot("wcet", "WCET(n) against n·C", captions::wcet(stream)));
    list.extend(plot("request", "Request-bound functions", captions::request(stream)));
    let sleeping = stream.suspension.as_ref().filter(|model| model.dynamic_ns > Duration::ZERO);
    list.extend(sleeping.map(|model| Figure {
        kind: "segments",
        title: "Suspension segments",
        caption: captions::suspension(model),
        inside: Some(bars(model)),
    }));
    list
}

fn taking(model: &TimingModel, task: &Task, stream: &Stream, seen: Option<&StreamJobs>) -> Vec<Figure> {
    let over_time = |seen: &StreamJobs| {
        plot("responses", "Response time of each job", captions::responses(model, task, stream, seen))
    };
    let means = "From arrival (where it is unknown, release) to the end of each job.";
    let table = percentiles::response(stream);
    let caption = |seen: &StreamJobs| captions::histogram(&seen.response, means, table.is_some());
    let histogram = |seen: &StreamJobs| plot("response", "Histogram of response time", caption(seen));
    seen.into_iter().flat_map(|seen| over_time(seen).into_iter().chain(histogram(seen))).collect()
}

/// Two side by side where the page is wide enough; rasters, and a last one that would stand alone, over the
/// whole width.
fn figures(number: usize, list: Vec<Figure>) -> Markup {
    let wide = |figure: &Figure| matches!(figure.kind, "raster" | "responses");
    let alone = list.iter().filter(|figure| !wide(figure)).count() % 2 == 1;
    let last = list.len().saturating_sub(1);
    html! {
        div.figures {
            @for (index, figure) in list.iter().enumerate() {
                @let class = if wide(figure) || (alone && index == last) { "wide" } else { "" };
                @match &figure.inside {
                    Some(inside) => figure class=(class) {
                        h4 { (figure.title) }
                        (inside)
                        figcaption { (figure.caption) }
                    },
                    None => figure class={ "plot " (class) } data-kind=(figure.kind) data-stream=(number) {
                        h4 { (figure.title) }
                        figcaption { (figure.caption) }
                    },
                }
            }
        }
    }
}

/// A remark where jobs are missing.
fn absent(jobs: Option<&Jobs>, seen: Option<&StreamJobs>) -> Markup {
    html! {
        @match (jobs, seen) {
            (None, _) => p.missing {
                "The release raster and the histograms of lateness, cost and response need \
                 " a href="#recording" { "a recording" } "."
            },
            (Some(_), None) => p.missing { "No release raster or histograms: none of the recordings has a \
                job of this stream." },
            _ => {},
        }
    }
}

/// The other separators of the task, each to be opened.
fn others(model: &TimingModel, task: &Task, primary: &Stream, first: usize, jobs: Option<&Jobs>) -> Markup {
    let others: Vec<(usize, &Stream)> =
        task.streams.iter().enumerate().filter(|(index, _)| Some(*index) != task.primary).collect();
    html! {
        @if !others.is_empty() {
            h3 { "Other separators" }
            @for (index, stream) in others {
                @if same_jobs(stream, primary) {
                    p { (in_brief(stream)) ": the same jobs as above." }
                } @else {
                    details {
                        summary { (in_brief(stream)) }
                        @if drawn(task, stream) {
                            (facts(task, stream))
                            (content(model, task, stream, first + index, jobs))
                        } @else {
                            p { "Too few jobs for meaningful figures." }
                        }
                    }
                }
            }
        }
    }
}

/// Whether a stream of a task has figures.
pub(crate) fn drawn(task: &Task, stream: &Stream) -> bool {
    let primary = primary(task);
    !brief(task)
        && stream.jobs >= FEW_JOBS
        && primary.is_some_and(|primary| std::ptr::eq(primary, stream) || !same_jobs(stream, primary))
}

/// Whether two separators divide a task alike, so that every figure is the same.
fn same_jobs(one: &Stream, other: &Stream) -> bool {
    let models = |stream: &Stream| (stream.jobs, stream.execution.clone(), stream.suspension.clone());
    one.arrival.curve == other.arrival.curve
        && one.arrival.sporadic == other.arrival.sporadic
        && models(one) == models(other)
}

fn in_brief(stream: &Stream) -> String {
    let (separator, jobs) = (visible(&stream.separator.to_string()), counted(stream.jobs, "job"));
    format!("{separator}: {jobs}, {}", arrival(stream))
}

/// The phases of a thread, as links.
fn phases(model: &TimingModel, task: &Task) -> Markup {
    let ids = ThreadIds::near(model.tasks(), task);
    let is_phase = |other: &Task| ids.of(other) == ids.of(task);
    let phases: Vec<(usize, &Task)> =
        model.tasks().iter().enumerate().filter(|(_, other)| is_phase(other)).collect();
    html! {
        @if phases.len() > 1 {
            nav aria-label={ "Phases of thread " (task.tid) } {
                ol.phases {
                    @for (position, phase) in phases {
                        @let is_shown = phase.phase == task.phase && phase.from_ns == task.from_ns;
                        li { (step(position, phase, is_shown)) }
                    }
                }
            }
        }
    }
}

fn step(position: usize, task: &Task, here: bool) -> Markup {
    let text = format!(
        "{} for {}, until {}",
        policy(task),
        about(task.until_ns.since(task.from_ns)),
        end(task.ended_by)
    );
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
        EndedBy::AffinityChange => "its affinity changed",
        EndedBy::Exec => "it executed another program",
        EndedBy::Exit => "it ended",
        EndedBy::Loss => "records were lost",
    }
}

fn notes(ids: &ThreadIds<'_>, task: &Task) -> String {
    THREADS
        .iter()
        .filter(|entry| entry.figure.unit == Unit::Notes)
        .map(|entry| text::cell(entry, &ThreadRow::new(ids, task)))
        .collect()
}

/// All threads with more than one phase, together, in the order of the table of all tasks.
pub(crate) fn transitions(model: &TimingModel, order: &[usize]) -> Markup {
    let ids = ThreadIds::new(model.tasks());
    let tasks = order.iter().map(|&position| (position, &model.tasks()[position]));
    let changing: Vec<(usize, &Task)> = tasks.filter(|(_, task)| ids.phases(task) > 1).collect();
    html! {
        @if !changing.is_empty() {
            section #transitions aria-labelledby="transitions-title" {
                h2 #transitions-title { "Task transitions" }
                p { "These threads changed during the observation: a new task begins where the policy, \
                     priority, affinity or program of a thread changes, or where records of it are missing." }
                div.scroll tabindex="0" role="region" aria-labelledby="transitions-title" {
                    table {
                        thead { tr {
                            th scope="col" { "Thread" } th.figure scope="col" { "TID" }
                            th.figure scope="col" { "Phase" } th scope="col" { "Policy" }
                            th.figure scope="col" { "Observed for" } th scope="col" { "Until" }
                            th scope="col" { "Notes" }
                        } }
                        tbody {
                            @for (position, task) in changing {
                                tr {
                                    th scope="row" {
                                        a href={ "#task-" (position) } { bdi { (visible(&task.name)) } }
                                    }
                                    td.figure { (task.tid) }
                                    td.figure { (task.phase + 1) }
                                    td { (policy(task)) }
                                    td.figure { (about(task.until_ns.since(task.from_ns))) }
                                    td { (end(task.ended_by)) }
                                    td { (notes(&ids, task)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
