//! A proof as a page: verdicts, what each bound is made of beside its deadline, and for each task what may be
//! asked of the processor and the schedule that reaches its bound. Its only script is the one for light and
//! dark, and it loads nothing.

use super::rows::ProofRow;
use super::{assignments, cause, headline, loads};
use crate::figures::PROVEN_TASKS;
use crate::html::cell;
use crate::html::scale::{Scale, percent};
use crate::html::{THEME, head, theme};
use crate::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_analysis::{Bound, Cause, Proof, RequestBound, WorstCase, request_bound, worst_case};
use punctual_model::Duration;
use std::fmt::Write;

const STYLES: [&str; 2] = [include_str!("../html/assets/page.css"), include_str!("proof.css")];

/// Drawings of curves are in units of a thousandth of their width, and pixels down.
const WIDTH: f64 = 1_000.0;
const CURVE_HEIGHT: f64 = 160.0;
const BAR_HEIGHT: u32 = 18;

/// Tasks whose windows are drawn; of more, those with the least slack.
const MOST_DRAWN: usize = 100;
/// Stretches of a schedule that are drawn.
const MOST_STRETCHES: usize = 2_000;

/// The page of a proof.
pub fn page(proof: &Proof, title: &str) -> String {
    let title = visible(title);
    let rows = ProofRow::by_urgency(proof);
    let drawn = with_least_slack(&rows);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, &STYLES, &[THEME]))
            body {
                a.skip href="#verdicts" { "To the verdicts" }
                header.page { div.headline { h1 { bdi { (title) } } (theme()) } }
                nav.contents aria-label="Contents" {
                    ol {
                        li { a href="#verdicts" { "Verdicts" } }
                        @if !drawn.is_empty() { li { a href="#parts" { "What the bounds are made of" } } }
                        @for row in &drawn {
                            li { a href={ "#task-" (row.task) } { bdi { (visible(&row.task().name)) } } }
                        }
                    }
                }
                main {
                    section #verdicts aria-labelledby="verdicts-title" {
                        h2 #verdicts-title { "Verdicts" }
                        p { (headline(proof)) }
                        (cell::table(PROVEN_TASKS, rows.iter().copied(), "Tasks and their bounds"))
                        @for row in rows.iter().filter(|row| row.bound().is_err()) {
                            p { bdi { (visible(&row.task().name)) } " has no bound: " (row.remark()) "." }
                        }
                        p { (loads(proof)) }
                        @for assigned in assignments(proof) { p { (assigned) } }
                        @for remark in &proof.remarks { p { (visible(remark)) } }
                    }
                    @if !drawn.is_empty() {
                        section #parts aria-labelledby="parts-title" {
                            h2 #parts-title { "What the bounds are made of" }
                            (contributors(proof, &rows))
                        }
                    }
                    @for row in &drawn { (task(proof, row)) }
                    @if (1..rows.len()).contains(&drawn.len()) {
                        p { "The windows of the " (drawn.len()) " tasks with the least slack are drawn." }
                    }
                }
                footer { p { "Made by punctual prove " (env!("CARGO_PKG_VERSION")) "." } }
                script { (PreEscaped(THEME)) }
            }
        }
    };
    markup.into_string()
}

/// Tasks with bounds, in the order of `rows`.
fn with_least_slack<'a>(rows: &[ProofRow<'a>]) -> Vec<ProofRow<'a>> {
    let slack = |row: &ProofRow<'_>| {
        let response = row.bound().map(|bound| bound.response).unwrap_or_default();
        row.task()
            .deadline
            .map_or(i128::MAX, |deadline| i128::from(deadline.ns()) - i128::from(response.ns()))
    };
    let mut places: Vec<usize> = (0..rows.len()).filter(|&place| rows[place].bound().is_ok()).collect();
    places.sort_by_key(|&place| slack(&rows[place]));
    places.truncate(MOST_DRAWN);
    places.sort_unstable();
    places.into_iter().map(|place| rows[place]).collect()
}

/// For each task a bar from the beginning of the window, with release and deadline of its worst job.
fn contributors(proof: &Proof, rows: &[ProofRow<'_>]) -> Markup {
    let bounded: Vec<_> = rows.iter().filter_map(|row| Some((row, row.bound().ok()?))).collect();
    let ends = |(row, bound): &(&ProofRow<'_>, &Bound)| {
        let deadline = row.task().deadline.unwrap_or_default();
        bound.earlier + bound.response.max(deadline)
    };
    let scale = Scale::linear(bounded.iter().map(ends).max().unwrap_or_default());
    html! {
        figure.wide.contributors {
            h4 { "The bound of each task, by what takes the time" }
            p.key {
                (sample("deadline")) "deadline. "
                (sample("released")) "release of the worst job, where it is not at the beginning."
            }
            (scale.axis())
            ol.rows {
                @for (row, bound) in &bounded {
                    li data-task=(row.task) {
                        span {
                            bdi { (visible(&row.task().name)) } ": "
                            b { (bound.response) }
                            @if let Some(deadline) = row.task().deadline { ", deadline " (deadline) }
                        }
                        svg.bars height=(BAR_HEIGHT + 6) aria-hidden="true" {
                            (scale.grid())
                            (stack(proof, bound, &scale))
                            @if !bound.earlier.is_zero() { (mark("released", bound.earlier, &scale)) }
                            @if let Some(deadline) = row.task().deadline {
                                (mark("deadline", bound.earlier + deadline, &scale))
                            }
                        }
                        ul.parts {
                            @for part in &bound.parts {
                                li {
                                    (swatch(part.cause)) bdi { (cause(proof, part.cause)) } " "
                                    (part.duration)
                                }
                            }
                        }
                    }
                }
            }
            (scale.axis())
            figcaption {
                "A bar begins with the window in which the task's worst job ends. The bound counts from the \
                 release of that job. Tasks without a bound have no bar."
            }
        }
    }
}

fn sample(class: &str) -> Markup {
    html! {
        svg.sample width="32" height="14" aria-hidden="true" {
            line class=(class) x1="16" x2="16" y1="0" y2="14" {}
        }
    }
}

fn mark(class: &str, at: Duration, scale: &Scale) -> Markup {
    let at = percent(scale.percent(at));
    html! { line class=(class) x1=(at) x2=(at) y1="0" y2=(BAR_HEIGHT + 6) {} }
}

fn swatch(of: Cause) -> Markup {
    html! {
        svg.sample width="20" height="12" aria-hidden="true" { (rect(of, "1", "18".into(), 10, None)) }
    }
}

fn stack(proof: &Proof, bound: &Bound, scale: &Scale) -> Markup {
    let mut until = Duration::ZERO;
    html! {
        @for part in &bound.parts {
            @let from = scale.percent(until);
            @let to = { until += part.duration; scale.percent(until) };
            @let title = format!("{}: {}", cause(proof, part.cause), part.duration);
            (rect(part.cause, &percent(from), percent(to - from), BAR_HEIGHT, Some(title)))
        }
    }
}

/// Causes have classes; tasks have hues as far apart as can be, however many there are.
fn rect(of: Cause, x: &str, width: String, height: u32, title: Option<String>) -> Markup {
    let (class, fill) = match of {
        Cause::Own => ("cause own", None),
        Cause::Suspension => ("cause suspended", None),
        Cause::Jitter => ("cause jitter", None),
        Cause::Task(task) => ("cause", Some(format!("hsl({}, 55%, 55%)", task * 13_751 / 100 % 360))),
        Cause::Blocking => ("cause kernel", None),
        Cause::Switches => ("cause switches", None),
        Cause::Interrupts => ("cause irq", None),
        Cause::Throttling => ("cause unsplit", None),
    };
    html! {
        rect class=(class) x=(x) y="3" width=(width) height=(height) fill=[fill] {
            @if let Some(title) = title { title { (title) } }
        }
    }
}

/// The window of a task: demand and supply, and the schedule that reaches the bound.
fn task(proof: &Proof, row: &ProofRow<'_>) -> Markup {
    let Ok(bound) = row.bound() else { return html! {} };
    let id = format!("task-{}", row.task);
    let demand = request_bound(&proof.system, row.task, &proof.bounds);
    let worst = worst_case(&proof.system, row.task, bound);
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { bdi { (visible(&row.task().name)) } }
            p { "Responds within " b { (bound.response) } " (" (bound.method) ")." }
            @if let Some(demand) = &demand { (curve(demand)) }
            @match &worst {
                Some(worst) => (schedule(proof, worst)),
                None => p { "No schedule is drawn: the bound may be more than any schedule takes." },
            }
        }
    }
}

fn curve(demand: &RequestBound) -> Markup {
    let scale = Scale::linear(demand.window);
    let most = demand.steps.last().map_or(1, |step| step.1.ns()).max(demand.window.ns()).max(1) as f64;
    let y = |value: Duration| CURVE_HEIGHT - value.ns() as f64 / most * (CURVE_HEIGHT - 4.0);
    let mut path = String::from("M0 ");
    let mut before = None;
    for &(time, asked) in &demand.steps {
        let x = scale.percent(time) * WIDTH / 100.0;
        // A demand that stays the same is one line.
        if before != Some(asked) {
            let start = if before.is_none() { "" } else { "V" };
            let _ = write!(path, "{start}{:.1}", y(asked));
        }
        let _ = write!(path, "H{x:.1}");
        before = Some(asked);
    }
    let supply = format!("M0 {CURVE_HEIGHT}L{WIDTH} {:.1}", y(demand.window));
    html! {
        figure.wide.request-bound {
            h4 { "Request bound and supply" }
            @let view = format!("0 0 {WIDTH} {CURVE_HEIGHT}");
            svg.steps viewBox=(view) preserveAspectRatio="none" height=(CURVE_HEIGHT) role="img"
                aria-label="Request bound and supply" {
                path.supply d=(PreEscaped(supply)) {}
                path.request d=(PreEscaped(path)) {}
            }
            (scale.axis())
            figcaption {
                "Across: time since the window began. Up: processor time; the staircase is what may be asked \
                 for, the dashed line what the processor gives. The window ends where they meet, after "
                (demand.window) "."
            }
        }
    }
}

fn schedule(proof: &Proof, worst: &WorstCase) -> Markup {
    let scale = Scale::linear(worst.end);
    let shown = &worst.stretches[..worst.stretches.len().min(MOST_STRETCHES)];
    let mut causes: Vec<Cause> = Vec::new();
    for stretch in shown {
        if !causes.contains(&stretch.cause) {
            causes.push(stretch.cause);
        }
    }
    html! {
        figure.wide.worst-schedule {
            h4 { "A schedule that reaches the bound" }
            (scale.axis())
            ol.raster {
                @for of in causes {
                    li {
                        span { bdi { (cause(proof, of)) } }
                        svg.states height=(BAR_HEIGHT + 6) aria-hidden="true" {
                            @for stretch in shown.iter().filter(|stretch| stretch.cause == of) {
                                @let (from, to) = (scale.percent(stretch.from), scale.percent(stretch.to));
                                @let title = format!("{} to {}", stretch.from, stretch.to);
                                (rect(of, &percent(from), percent(to - from), BAR_HEIGHT, Some(title)))
                            }
                            @if of == Cause::Own && !worst.release.is_zero() {
                                (mark("released", worst.release, &scale))
                            }
                        }
                    }
                }
            }
            (scale.axis())
            figcaption {
                "Everything that delays the task is released at once, and again as early as it may. The job \
                 that is released at " (worst.release) " ends at " (worst.end) "."
                @if shown.len() < worst.stretches.len() {
                    " The first " (shown.len()) " of " (worst.stretches.len()) " stretches are drawn."
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::{Arrivals, Scheduling, System, Task, Thread};
    use punctual_model::{Execution, Policy};

    fn proof(tasks: &[(&str, u32, u64, u64)]) -> Proof {
        let ms = Duration::from_ms;
        let task = |&(name, priority, cost, period): &(&str, u32, u64, u64)| Task {
            name: name.into(),
            scheduling: Scheduling::Priority(priority),
            processors: vec![0],
            arrivals: Arrivals::Sporadic { separation: ms(period) },
            execution: Execution { wcet_ns: vec![ms(cost)], mean_ns: None },
            suspension: Duration::ZERO,
            suspensions: 0,
            jitter: Duration::ZERO,
            deadline: Some(ms(period)),
            deadline_is_period: false,
            gap: None,
        };
        let system = System { tasks: tasks.iter().map(task).collect(), platforms: Vec::new() };
        let thread = |&(_, priority, ..): &(&str, u32, u64, u64)| Thread {
            tid: priority,
            policy: Some(Policy::Fifo),
            priority,
        };
        Proof {
            bounds: system.prove(),
            system,
            threads: tasks.iter().map(thread).collect(),
            late: Vec::new(),
            rooms: None,
            priorities: None,
            reserved_deadlines: None,
            observed_on: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Lehoczky 1990: (1,4) (1,5) (3,9) (3,18) → 1, 2, 7, 18.
    #[test]
    fn bars_curves_and_schedules_show_the_bound() {
        let page = page(&proof(&[("a", 4, 1, 4), ("b", 3, 1, 5), ("c", 2, 3, 9), ("d", 1, 3, 18)]), "proof");
        for bound in ["<b>1 ms</b>", "<b>2 ms</b>", "<b>7 ms</b>", "<b>18 ms</b>"] {
            assert!(page.contains(bound), "{bound}");
        }
        let last = page.split("id=\"task-3\"").nth(1).expect("its section");
        assert!(last.contains("The window ends where they meet, after 18 ms."), "{last}");
        assert!(last.contains("released at 0 ns ends at 18 ms"), "{last}");
        // 3 of 18 ms are its own, 5 those of a, 4 of b and 6 of c.
        let bar = page.split("data-task=\"3\"").nth(1).expect("its bar");
        let bar = bar.split("</ul>").next().expect("its end");
        for part in ["own</bdi> 3 ms", "a</bdi> 5 ms", "b</bdi> 4 ms", "c</bdi> 6 ms"] {
            assert!(bar.contains(part), "{part}: {bar}");
        }
        assert!(bar.contains("class=\"deadline\" x1=\"100%\""), "{bar}");
    }

    #[test]
    fn names_are_text_and_tasks_without_a_bound_are_listed() {
        let page = page(&proof(&[("<b>", 2, 9, 10), ("over", 1, 9, 10)]), "</title>");
        assert!(!page.contains("<b> ") && !page.contains("</title></title>"), "{page}");
        assert!(!page.contains("id=\"task-1\""), "{page}");
        assert!(page.contains("over</bdi> has no bound: the processor may never finish"), "{page}");
    }
}
