//! Late jobs on the page: for each thread the causes as a bar and as a table, advice, and its worst jobs as
//! Gantt charts. All of it works without scripts.

use super::cell;
use super::drawn::{Drawn, Fact};
use super::scale::{Scale, percent};
use super::stack::{BAR_HEIGHT, Drawable, drawn_parts, named_parts};
use crate::figures::CAUSES;
use crate::number::{at_most, count, three_digits};
use crate::prose::begin;
use crate::text::since;
use crate::visible;
use crate::why::{CauseRow, advice, late, words_of};
use maud::{Markup, html};
use punctual_model::causes::{Causes, Kind, LateJob, LateTask, Part, Role};
use punctual_model::{Duration, Instant, TimingModel};

const LANE: u32 = 18;
/// Stretches that a chart shows at most.
const MOST_STRETCHES: usize = 600;

/// How stretches of a lane are drawn, and what that means.
const KEY: [(&str, &str); 7] = [
    ("runs", "runs"),
    ("ready", "ready, not running"),
    ("blocked", "blocked"),
    ("waiting", "not begun"),
    ("taken", "interrupted"),
    ("stopped", "stopped"),
    ("unknown", "not known"),
];

/// How many jobs were late, in the head of the page.
pub(crate) fn facts(model: &TimingModel) -> Vec<Fact> {
    let tasks = || model.causes.iter().flat_map(|causes| &causes.tasks);
    let (late, jobs): (u64, u64) = (tasks().map(|it| it.late).sum(), tasks().map(|it| it.jobs).sum());
    vec![Fact::new("Late jobs", format!("{} of {}", count(late), count(jobs)))]
}

/// A link to the section.
pub(crate) fn contents(drawn: &Drawn<'_>) -> Markup {
    html! { @if drawn.model.causes.is_some() { li { a href="#late" { "Late jobs" } } } }
}

/// The section.
pub(crate) fn sections(drawn: &Drawn<'_>) -> Markup {
    let Some(causes) = &drawn.model.causes else { return html! {} };
    html! {
        section #late aria-labelledby="late-title" {
            h2 #late-title { "Late jobs" }
            @for lack in &causes.lacks { p.note { (crate::why::lack(*lack)) } }
            @for task in &causes.tasks {
                @if task.late == 0 { p { (late(task)) } } @else { (one(drawn.model, task, causes)) }
            }
        }
    }
}

fn one(model: &TimingModel, task: &LateTask, causes: &Causes) -> Markup {
    let label = format!("Causes of late jobs of {}", visible(&task.task));
    html! {
        h3 { bdi { (visible(&task.task)) } }
        p { (late(task)) }
        (bar(task))
        (cell::table(CAUSES, CauseRow::all(task), &label))
        @let advice = advice(task);
        @if !advice.is_empty() {
            p { b { "What helps" } }
            ul { @for advice in advice { li { (advice) } } }
        }
        @for job in &task.worst { (chart(model, job, task, causes)) }
    }
}

/// All late time of a task by cause.
fn bar(task: &LateTask) -> Markup {
    let listed = task.causes.iter().zip(CauseRow::all(task));
    let mut parts: Vec<Drawable> = listed
        .map(|(cause, row)| Drawable {
            class: class(cause.reason.kind),
            name: row.cause,
            duration: three_digits(row.time),
        })
        .collect();
    if let Some(others) = task.others {
        parts.push(Drawable {
            class: "unknown",
            name: "other causes".into(),
            duration: three_digits(others.ns),
        });
    }
    let whole = parts.iter().fold(Duration::ZERO, |sum, part| sum + part.duration);
    let scale = Scale::linear(whole);
    html! {
        figure.wide.late-causes {
            h4 { "The time of late jobs by main cause" }
            (scale.axis())
            ol.rows {
                li {
                    svg.bars height=(BAR_HEIGHT + 6) aria-hidden="true" { (drawn_parts(&parts, &scale)) }
                    (named_parts(&parts))
                }
            }
        }
    }
}

/// How time of this kind is drawn.
fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Own => "runs",
        Kind::Preempted | Kind::Queued | Kind::Throttled | Kind::Dispatch => "ready",
        Kind::Blocked => "blocked",
        Kind::Backlog | Kind::LateWakeup => "waiting",
        Kind::Interrupt | Kind::Softirq | Kind::Steal => "taken",
        Kind::Stopped => "stopped",
        Kind::Unknown => "unknown",
    }
}

/// What a thread, or an interrupt, did in the time of a job.
struct Lane {
    name: String,
    stretches: Vec<Stretch>,
}

struct Stretch {
    class: &'static str,
    from: Instant,
    time: Duration,
    title: String,
}

/// The lanes of a job: its thread, and all that its parts name.
fn lanes(job: &LateJob, thread: &str) -> Vec<Lane> {
    let mut lanes = vec![Lane { name: thread.to_owned(), stretches: Vec::new() }];
    lay_out(&job.parts, 0, &mut lanes);
    lanes
}

/// Puts a thread's parts into its lane, and what they name into others.
fn lay_out(parts: &[Part], lane: usize, lanes: &mut Vec<Lane>) {
    for part in parts {
        let stretch = |class, title| Stretch { class, from: part.from_ns, time: part.ns, title };
        lanes[lane].stretches.push(stretch(class(part.reason.kind), words_of(part)));
        let by = part.reason.thread.as_ref().or(part.reason.interrupt.as_ref());
        match (&part.waited_for, by, part.reason.kind) {
            (Some(chain), ..) => {
                let is_same = chain.role == Role::Previous;
                let place = place(if is_same { "job before" } else { &chain.thread }, lanes);
                lay_out(&chain.parts, place, lanes);
            }
            (None, Some(by), Kind::Preempted | Kind::Queued | Kind::Throttled | Kind::Dispatch) => {
                let place = place(by, lanes);
                lanes[place].stretches.push(stretch("runs", "runs".into()));
            }
            (None, Some(by), Kind::Interrupt | Kind::Softirq) => {
                let place = place(by, lanes);
                lanes[place].stretches.push(stretch("taken", "runs".into()));
            }
            _ => {}
        }
    }
}

/// The lane of this name; a new one if there is none.
fn place(name: &str, lanes: &mut Vec<Lane>) -> usize {
    lanes.iter().position(|lane| lane.name == name).unwrap_or_else(|| {
        lanes.push(Lane { name: name.to_owned(), stretches: Vec::new() });
        lanes.len() - 1
    })
}

/// A job as a Gantt chart.
fn chart(model: &TimingModel, job: &LateJob, task: &LateTask, causes: &Causes) -> Markup {
    let lanes = lanes(job, &task.task);
    let scale = Scale::linear(job.response_ns);
    let stretches: usize = lanes.iter().map(|lane| lane.stretches.len()).sum();
    let used = |class: &str| lanes.iter().any(|lane| lane.stretches.iter().any(|it| it.class == class));
    let title = format!(
        "Job {} at {}: {}",
        job.job,
        since(job.begin_ns.since(causes.from_ns)),
        at_most(job.response_ns)
    );
    html! {
        figure.wide.late-job {
            h4 { (title) }
            @if stretches > MOST_STRETCHES {
                p { "It has " (count(stretches as u64)) " stretches: too many to draw." }
            } @else {
                p.key {
                    @for (class, name) in KEY.into_iter().filter(|(class, _)| used(class)) {
                        svg.sample width="20" height="14" aria-hidden="true" {
                            rect.cause.(class) x="1" y="1" width="18" height="12" {}
                        }
                        (name) ". "
                    }
                }
                ol.raster {
                    @for lane in &lanes { (drawn_lane(lane, job, &scale)) }
                    li { span {} (scale.axis()) }
                }
            }
            @let text = crate::why::line(job, causes);
            figcaption { (text) ". " (among_others(model, job, task)) }
        }
    }
}

/// A button that leads to the job among the others of its thread, which the script shows if they are on the
/// page.
fn among_others(model: &TimingModel, job: &LateJob, late: &LateTask) -> Markup {
    let mut first = 0;
    for task in model.tasks() {
        let is_its = task.tid == job.tid && task.name == late.task;
        if let Some(primary) = task.primary.filter(|_| is_its && task.until_ns >= job.end_ns) {
            let at = job.begin_ns.since(begin(model, task));
            return html! {
                button.show type="button" hidden data-stream=(first + primary) data-kind="responses"
                    data-job=(job.job) data-at-us=(at.ns() / 1_000) {
                    "Show it among the jobs around it"
                }
            };
        }
        first += task.streams.len();
    }
    html! {}
}

fn drawn_lane(lane: &Lane, job: &LateJob, scale: &Scale) -> Markup {
    let at = |instant: Instant| scale.percent(instant.since(job.begin_ns));
    html! {
        li {
            span title=(visible(&lane.name)) { bdi { (visible(&lane.name)) } }
            svg.states height=(LANE) role="img" aria-label={ "What " (visible(&lane.name)) " did" } {
                @for Stretch { class, from, time, title } in &lane.stretches {
                    rect.cause.(class) x=(percent(at(*from))) y="2" height=(LANE - 4)
                        width=(percent(at(*from + *time) - at(*from))) {
                        title { (title) ", " (time) }
                    }
                }
            }
        }
    }
}
