//! All threads over time: a row for each, with the processor time of its jobs and the longest response.
//!
//! Drawn here rather than by a script, so that it is there on paper and without one.

use super::jobs::{BINS, Jobs, Worst};
use crate::derived::primary;
use crate::figures::{self, Value};
use crate::number::{at_most, count, counted};
use crate::text::{policy, since};
use crate::visible;
use maud::{Markup, html};
use punctual_model::{Duration, Task, ThreadIds, TimingModel};
use std::collections::HashMap;

/// More rows are left to the table.
const MOST_ROWS: usize = 200;
const HEIGHT: u64 = 22;

/// A thread: its tasks, by position.
struct Row {
    tasks: Vec<usize>,
    /// The task with the most jobs.
    main: usize,
}

/// The threads of a model, in the order of `order`.
fn rows(model: &TimingModel, order: &[usize]) -> Vec<Row> {
    let jobs = |position: usize| primary(&model.tasks()[position]).map_or(0, |stream| stream.jobs);
    let ids = ThreadIds::new(model.tasks());
    let mut places = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for &position in order {
        let place = *places.entry(ids.of(&model.tasks()[position])).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => {
                row.tasks.push(position);
                if jobs(position) > jobs(row.main) {
                    row.main = position;
                }
            }
            None => rows.push(Row { tasks: vec![position], main: position }),
        }
    }
    rows
}

/// The threads as a list of links, which stays in view.
pub(crate) fn contents(model: &TimingModel, order: &[usize]) -> Markup {
    html! {
        ol.threads {
            @for row in rows(model, order) {
                @let task = &model.tasks()[row.main];
                li { a href={ "#task-" (row.main) } {
                    bdi { (visible(&task.name)) }
                    small { (policy(task.policy, task.priority, task.nice)) (arrival(task)) }
                } }
            }
        }
    }
}

/// `, 5 ms`.
fn arrival(task: &Task) -> String {
    let row = figures::ThreadRow::new(&ThreadIds::default(), task);
    let entry = figures::THREADS.iter().find(|entry| entry.figure.field == "arrival");
    entry
        .and_then(|entry| (entry.value)(&row))
        .filter(|value| matches!(value, Value::Period(_)))
        .map_or_else(String::new, |value| {
            format!(" · {}", crate::text::value(&value, figures::Rounding::None))
        })
}

/// The section; nothing without threads.
pub(crate) fn section(model: &TimingModel, order: &[usize], jobs: Option<&Jobs>) -> Markup {
    let rows = rows(model, order);
    let length = length(model);
    if rows.is_empty() || length.is_zero() {
        return html! {};
    }
    let marks = marks(length);
    let most = most(model, jobs);
    html! {
        section #time aria-labelledby="time-title" {
            h2 #time-title { "All threads over time" }
            figure.lanes {
                (axis(&marks, length))
                ol {
                    @for row in rows.iter().take(MOST_ROWS) { (lane(model, row, jobs, most, length, &marks)) }
                }
                @if rows.len() > MOST_ROWS {
                    p.missing { (counted((rows.len() - MOST_ROWS) as u64, "thread")) " more in the table." }
                }
                figcaption {
                    "A grey bar is the time in which a thread was observed, from the beginning of the \
                     observation. "
                    @if jobs.is_some() {
                        "The height of the blue area is its share of a processor; full height is \
                         " (most.div_ceil(10)) " %. A triangle marks the job with the longest response: "
                         "click it to see the job."
                    } @else {
                        "What its jobs did is drawn with " a href="#recording" { "a recording" } "."
                    }
                }
            }
        }
    }
}

/// The greatest share of a processor of any thread, in thousandths: all rows are to one scale.
fn most(model: &TimingModel, jobs: Option<&Jobs>) -> u64 {
    let streams: usize = model.tasks().iter().map(|task| task.streams.len()).sum();
    let all = (0..streams).filter_map(|position| jobs?.stream(position));
    all.flat_map(|stream| stream.shares()).max().unwrap_or(0).max(1)
}

/// How long the axis is: recordings that were made apart have one each.
fn length(model: &TimingModel) -> Duration {
    let until = |task: &Task| task.until_ns.since(origin(model, task));
    model.tasks().iter().map(until).max().unwrap_or_default()
}

/// From when a task's row is counted.
pub(super) fn origin(model: &TimingModel, task: &Task) -> punctual_model::Instant {
    match &task.recording {
        None => model.threads.as_ref().map_or(task.from_ns, |threads| threads.from_ns.min(task.from_ns)),
        recording => {
            let of_it = model.tasks().iter().filter(|other| other.recording == *recording);
            of_it.map(|other| other.from_ns).min().unwrap_or(task.from_ns)
        }
    }
}

fn lane(
    model: &TimingModel,
    row: &Row,
    jobs: Option<&Jobs>,
    most: u64,
    length: Duration,
    marks: &[Duration],
) -> Markup {
    let main = &model.tasks()[row.main];
    let seen = |position: usize| {
        let first: usize = model.tasks()[..position].iter().map(|task| task.streams.len()).sum();
        jobs?.stream(first + model.tasks()[position].primary?)
    };
    let worst = row.tasks.iter().filter_map(|&position| Some((position, seen(position)?.slowest?)));
    let worst = worst.max_by_key(|(_, worst)| worst.response);
    html! {
        li {
            a href={ "#task-" (row.main) } { bdi { (visible(&main.name)) } }
            svg height=(HEIGHT) role="img" aria-label={ (visible(&main.name)) " over time" } {
                @for mark in marks {
                    line.grid-line x1=(percent(*mark, length)) x2=(percent(*mark,
                        length)) y1="0" y2=(HEIGHT) {}
                }
                @for &position in &row.tasks {
                    @let task = &model.tasks()[position];
                    @let origin = origin(model, task);
                    @let (from, until) = (task.from_ns.since(origin), task.until_ns.since(origin));
                    rect.observed x=(percent(from, length)) y=(HEIGHT - 2) height="2"
                        width=(percent(until.saturating_sub(from), length)) {
                        title {
                            (policy(task.policy, task.priority,
                                task.nice)) ", from " (since(from)) " to " (since(until))
                        }
                    }
                    @if let Some(seen) = seen(position) {
                        // Bins span the task's own time.
                        svg x=(percent(from, length)) width=(percent(until.saturating_sub(from),
                            length)) height=(HEIGHT)
                            viewBox={ "0 0 " (BINS) " " (HEIGHT) } preserveAspectRatio="none" {
                            path.busy d=(area(&seen.shares(), most)) {}
                        }
                    }
                }
                @if let Some((position, worst)) = worst {
                    (marker(position, &worst, worst.released.since(origin(model, &model.tasks()[position])),
                        length))
                }
            }
        }
    }
}

/// A link to the job with the longest response.
fn marker(position: usize, worst: &Worst, at: Duration, length: Duration) -> Markup {
    let name = format!(
        "Longest response: job {}, released at {}, {}",
        count(worst.number),
        since(at),
        at_most(worst.response)
    );
    html! {
        a href={ "#task-" (position) "-worst" } aria-label=(name) {
            svg x=(percent(at, length)) overflow="visible" {
                title { (name) }
                rect.target x="-8" y="-2" width="16" height=(HEIGHT + 2) {}
                path.worst d="M-5,0 L5,0 L0,9 Z" {}
            }
        }
    }
}

/// Shares of a processor as the outline of an area; `most` has the full height.
fn area(shares: &[u64], most: u64) -> String {
    let top = |share: u64| match share {
        0 => HEIGHT - 2,
        // Even the least is seen.
        share => HEIGHT - 2 - (share * (HEIGHT - 3)).div_ceil(most).clamp(1, HEIGHT - 3),
    };
    let mut path = format!("M0,{}", HEIGHT - 2);
    let mut at = HEIGHT - 2;
    for (bin, share) in shares.iter().enumerate() {
        let now = top(*share);
        if now != at {
            path += &format!("H{bin}V{now}");
            at = now;
        }
    }
    path + &format!("H{BINS}V{}Z", HEIGHT - 2)
}

/// A place on the axis.
fn percent(at: Duration, length: Duration) -> String {
    let thousandths = u128::from(at.ns()) * 100_000 / u128::from(length.ns().max(1));
    format!("{}.{:03}%", thousandths / 1_000, thousandths % 1_000)
}

/// Round times, up to a dozen.
fn marks(length: Duration) -> Vec<Duration> {
    let decade = 10_u64.pow(length.ns().checked_ilog10().unwrap_or(0));
    let steps = [10, 5, 2].map(|part| decade / part).into_iter().chain([decade, 2 * decade]);
    let step = steps.filter(|step| *step > 0).find(|step| length.ns() / step <= 10).unwrap_or(decade);
    (0..=length.ns() / step).map(|number| Duration::from_ns(number * step)).collect()
}

fn axis(marks: &[Duration], length: Duration) -> Markup {
    html! {
        svg.axis height="18" aria-hidden="true" {
            @for mark in marks {
                text.from[mark.is_zero()] x=(percent(*mark, length)) y="12" { (mark) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{best_effort_phase, model, task};
    use punctual_model::{Instant, Job, Release, Window};

    #[test]
    fn a_thread_is_a_row_with_its_phases_and_its_worst_job() {
        let ctl = task("ctl", 7, 80);
        let model = model(vec![ctl.clone(), best_effort_phase(ctl), task("low", 8, 10)]);
        let mut jobs = Jobs::new(&model);
        let at = |ms: u64| Instant::from_ns(1_000_000_000 + ms * 1_000_000);
        for (number, (release, end)) in [(0, 400), (5_000, 5_900), (9_000, 9_001)].into_iter().enumerate() {
            let (start, end) = (at(release), at(end));
            let job = Job {
                release: Release { arrival: None, window: Window::at(start) },
                start,
                end,
                cost: end.since(start),
                suspended: Duration::ZERO,
            };
            jobs.job(7, 0, &model.tasks()[0].streams[0].separator, number as u64, &job);
        }
        let page = section(&model, &[0, 1, 2], Some(&jobs)).into_string();
        assert_eq!(page.matches("<li>").count(), 2, "{page}");
        assert!(page.contains("Longest response: job 1, released at +5.000000 s, 900 ms"), "{page}");
        assert!(page.contains("href=\"#task-0-worst\"") && page.contains("x=\"50.000%\""), "{page}");
        assert!(page.contains("class=\"busy\""));
        let without = section(&model, &[0, 1, 2], None).into_string();
        assert!(without.contains("class=\"observed\"") && !without.contains("busy"));
        assert!(section(&crate::example::model(vec![]), &[], None).into_string().is_empty());
    }

    #[test]
    fn marks_are_round_and_few() {
        for (length, last, number) in
            [(6_007, 6_000, 7), (10_000, 10_000, 11), (15_000, 14_000, 8), (999, 900, 10)]
        {
            let marks = marks(Duration::from_ms(length));
            assert_eq!(
                (marks.last().map(|mark| mark.ns() / 1_000_000), marks.len()),
                (Some(last), number),
                "{length}"
            );
        }
    }

    #[test]
    fn the_slightest_activity_is_visible() {
        let mut shares = vec![0; BINS];
        (shares[3], shares[4]) = (1, 1_000);
        assert_eq!(area(&shares, 1_000), format!("M0,20H3V19H4V1H5V20H{BINS}V20Z"));
    }
}
