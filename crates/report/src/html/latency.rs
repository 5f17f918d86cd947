//! Scheduling latency on the page: bounds as stacked bars (paper, Figures 26 and 27), interrupts as
//! staircases, stacks of culprits. All of it works without scripts, and each drawing stands with a table that
//! says the same.

use super::cell;
use super::drawn::Drawn;
use super::scale::{Scale, percent};
use super::stack::{BAR_HEIGHT, Drawable, drawn_parts, named_parts};
use crate::analysed::{Analysed, has_latency, measured_name, source_name, thread_name};
use crate::figures::{BOUNDS, BoundRow, INTERRUPTS, MEASURED, PROCESSORS, VARIABLES};
use crate::latency::{happened, headline, interference_free, summary, terms, unreliable_on};
use crate::number::counted;
use crate::visible;
use maud::{Markup, PreEscaped, html};
use punctual_latency::{Bounds, Cause, InterruptModel, Outcome};
use punctual_model::Duration;
use punctual_model::latency::{Interrupt, InterruptKind, Measured};
use std::fmt::Write;

/// Drawings are in units of a thousandth of their width, and pixels down.
const WIDTH: f64 = 1_000.0;
const CURVE_HEIGHT: f64 = 120.0;
/// Steps that a drawing shows; of more, some are joined, so that it is never below them.
const MOST_STEPS: usize = 400;

/// Links to the sections.
pub(crate) fn contents(drawn: &Drawn<'_>) -> Markup {
    let processors = drawn.model.latency.iter().flat_map(|latency| &latency.processors);
    html! {
        li { a href="#latency" { "Scheduling latency" } }
        @for cpu in processors {
            li { a href={ "#latency-cpu-" (cpu.cpu) } { "CPU " (cpu.cpu) } }
        }
    }
}

/// All sections.
pub(crate) fn sections(drawn: &Drawn<'_>) -> Markup {
    let Some(latency) = &drawn.model.latency else { return html! {} };
    let processors = Analysed::all(latency);
    html! {
        section #latency aria-labelledby="latency-title" {
            h2 #latency-title { "Scheduling latency" }
            p { (headline(&processors)) }
            p { (summary(latency)) }
            (cell::table(PROCESSORS, processors.iter(), "Processors as a table"))
        }
        @for analysis in &processors {
            @let id = format!("latency-cpu-{}", analysis.processor.cpu);
            section id=(id) aria-labelledby={ (id) "-title" } {
                h2 id={ (id) "-title" } { "CPU " (analysis.processor.cpu) }
                (processor(analysis))
            }
        }
    }
}

fn processor(analysis: &Analysed<'_>) -> Markup {
    html! {
        @match &analysis.bounds {
            Ok(bounds) => {
                @if let Some(doubts) = unreliable_on(analysis) { p.note { b { (doubts) } } }
                div.figures { (bars(bounds, analysis.measured_max())) }
                p { (terms(bounds)) "." }
                @let rows = InterruptModel::ALL.into_iter().map(|model| BoundRow { bounds, model });
                (cell::table(BOUNDS, rows, "Bounds as a table"))
            },
            Err(reason) => p.note { "There is no bound: " (reason.to_string()) "." },
        }
        @if let Some(variables) = &analysis.processor.variables {
            h3 { "Kernel with preemption or interrupts disabled" }
            p { (interference_free(variables)) "." }
            (cell::table(VARIABLES, analysis.variables().into_iter(), "Variables as a table"))
            (stacks(analysis))
        }
        h3 { "Interrupts" }
        @if analysis.processor.interrupts.is_empty() { p { "None were seen." } } @else {
            (cell::table(INTERRUPTS, analysis.interrupts().into_iter(), "Interrupts as a table"))
            @for interrupt in &analysis.processor.interrupts {
                (curves(interrupt, analysis.section.horizon_ns))
            }
        }
        @if let Some(timers) = &analysis.processor.timers {
            h3 { "Timers" }
            p { (crate::latency::lateness(timers, analysis.section.from_ns)) }
        }
        @if !analysis.processor.measured.is_empty() {
            h3 { "Measured latencies" }
            (cell::table(MEASURED, analysis.measured().into_iter(), "Measured latencies as a table"))
            div.figures { (latencies(analysis)) }
            @for measured in &analysis.processor.measured { (worst(measured, analysis)) }
        }
    }
}

/// The parts of a latency, by the class of their colour.
const PARTS: [(&str, &str); 4] =
    [("irq", "interrupts"), ("preferred", "threads"), ("sections", "kernel"), ("rest", "rest")];

/// For each thread its greatest latency as a bar, stacked by what it is made of.
fn latencies(analysis: &Analysed<'_>) -> Markup {
    let measured = || analysis.processor.measured.iter().filter(|it| has_latency(it));
    let scale = Scale::linear(measured().map(|it| it.max_ns).max().unwrap_or_default());
    html! {
        figure.wide.latency-parts {
            h4 { "The greatest latency of each thread, and what it is made of" }
            (scale.axis())
            ol.rows {
                @for measured in measured() {
                    li {
                        span {
                            bdi { (measured_name(measured, analysis.processor.cpu)) } ": "
                            b { @if measured.is_at_least() { "≥ " } (measured.max_ns) }
                        }
                        svg.bars height=(BAR_HEIGHT + 6) aria-hidden="true" {
                            (scale.grid())
                            (drawn_parts(&parts(measured), &scale))
                        }
                        (named_parts(&parts(measured)))
                    }
                }
            }
            (scale.axis())
            figcaption {
                "Interrupts include softirqs. Threads are those that the scheduler preferred. "
                @if analysis.processor.variables.is_some() {
                    "Kernel is the kernel with preemption or interrupts disabled, and the scheduler. The \
                     rest is all else."
                } @else {
                    "The rest is all else, such as the kernel with preemption or interrupts disabled."
                }
                " How late timers expired before a wake-up is not part of it."
            }
        }
    }
}

fn parts(measured: &Measured) -> Vec<Drawable> {
    let Some(split) = measured.worst.first().and_then(|worst| worst.split) else {
        return vec![Drawable { class: "unsplit", name: "not known".into(), duration: measured.max_ns }];
    };
    let durations = [split.interrupts_ns, split.threads_ns, split.sections_ns, split.rest_ns];
    let parts = PARTS.into_iter().zip(durations).filter(|(_, duration)| !duration.is_zero());
    parts.map(|((class, name), duration)| Drawable { class, name: name.into(), duration }).collect()
}

/// For each model of interrupts a bar stacked by cause, and the measured maximum.
fn bars(bounds: &Bounds<'_>, measured: Option<Duration>) -> Markup {
    let lengths = InterruptModel::ALL.map(|model| match bounds.under(model).outcome {
        Outcome::Converged(length) => Some(length),
        Outcome::DoesNotConverge => None,
    });
    let greatest = lengths.into_iter().flatten().chain(measured).max().unwrap_or_default();
    let scale = Scale::linear(greatest);
    html! {
        figure.wide.latency-bars {
            h4 { "The bound by how interrupts are taken to interfere, and what it is made of" }
            p.key {
                @for (class, name) in [
                    ("poid", "D_POID or D_ST"), ("paie", "D_PAIE"), ("psd", "D_PSD"), ("irq", "interrupts"),
                    ("nmi", "NMIs"),
                ] {
                    svg.sample width="32" height="14" aria-hidden="true" {
                        rect.cause.(class) x="2" y="1" width="28" height="12" {}
                    }
                    (name) ". "
                }
                @if measured.is_some() {
                    svg.sample width="32" height="14" aria-hidden="true" {
                        line.measured x1="16" x2="16" y1="0" y2="14" {}
                    }
                    "greatest measured latency."
                }
            }
            (scale.axis())
            ol.rows {
                @for (model, length) in InterruptModel::ALL.into_iter().zip(lengths) {
                    li data-model=(model.field()) {
                        span { (model.name()) ": " @match length {
                            Some(length) => b { (length) },
                            None => b { "does not converge" },
                        } }
                        svg.bars height=(BAR_HEIGHT + 6) aria-hidden="true" {
                            (scale.grid())
                            @if length.is_some() { (drawn_parts(&stack(bounds, model), &scale)) }
                            @if let Some(measured) = measured {
                                @let at = percent(scale.percent(measured));
                                line.measured x1=(at) x2=(at) y1="0" y2=(BAR_HEIGHT + 6) {}
                            }
                        }
                        @if length.is_some() { (named_parts(&stack(bounds, model))) }
                    }
                }
            }
            (scale.axis())
            figcaption {
                "Sliding window is the bound: interrupts as in the worst observed window of its length. "
                @if measured.is_some() {
                    "The line is the greatest measured latency that the bound is for."
                } @else {
                    "No latency was measured."
                }
            }
        }
    }
}

fn stack(bounds: &Bounds<'_>, model: InterruptModel) -> Vec<Drawable> {
    let parts = bounds.parts(model).into_iter().filter(|part| !part.duration.is_zero());
    let drawable = |part: punctual_latency::Part<'_>| Drawable {
        class: class(&part.cause),
        name: name(&part.cause),
        duration: part.duration,
    };
    parts.map(drawable).collect()
}

fn class(cause: &Cause<'_>) -> &'static str {
    match cause {
        Cause::Variable("D_PSD", _) => "psd",
        Cause::Variable("D_PAIE", _) => "paie",
        Cause::Variable(..) => "poid",
        Cause::Interrupt(interrupt) if interrupt.source.kind == InterruptKind::Nmi => "nmi",
        Cause::Interrupt(_) => "irq",
    }
}

fn name(cause: &Cause<'_>) -> String {
    match cause {
        Cause::Variable(symbol, variable) => {
            let by =
                variable.culprit.as_ref().map(|culprit| format!(", by {}", thread_name(&culprit.thread)));
            format!("{symbol}{}", by.unwrap_or_default())
        }
        Cause::Interrupt(interrupt) => source_name(&interrupt.source),
    }
}

/// The kernel stacks of those who caused the greatest variables.
fn stacks(analysis: &Analysed<'_>) -> Markup {
    html! {
        @for row in analysis.variables() {
            @let culprit = row.variable.culprit.as_ref();
            @if let Some(culprit) = culprit.filter(|culprit| !culprit.stack.is_empty()) {
                details.stack {
                    summary {
                        (row.symbol) ", " (row.variable.max_ns) ": kernel stack of "
                        bdi { (thread_name(&culprit.thread)) }
                    }
                    ol { @for frame in &culprit.stack { li { code { (visible(frame)) } } } }
                }
            }
        }
    }
}

/// How many interrupts, and how much of them, windows hold.
fn curves(interrupt: &Interrupt, horizon: Duration) -> Markup {
    let curves = &interrupt.curves;
    let first = [(Duration::ZERO, u64::from(curves.count > 0))];
    let more = curves.delta_min_ns.iter().zip(2..).map(|(&span, number)| (span, number));
    let arrivals: Vec<(Duration, u64)> = first.into_iter().chain(more).collect();
    let execution: Vec<(Duration, u64)> =
        curves.execution.steps().iter().map(|step| (step.span, step.sum.ns())).collect();
    let most = |steps: &[(Duration, u64)]| steps.last().map_or(0, |step| step.1);
    html! {
        details.curves {
            summary { bdi { (source_name(&interrupt.source)) } ": in windows up to " (horizon) }
            div.figures {
                (staircase(
                    &format!("Arrivals: up to {} in a window", counted(most(&arrivals), "interrupt")),
                    "arrivals", &arrivals, horizon,
                ))
                (staircase(
                    &format!("Execution: up to {} in a window", Duration::from_ns(most(&execution))),
                    "execution", &execution, horizon,
                ))
            }
        }
    }
}

fn staircase(title: &str, class: &str, steps: &[(Duration, u64)], horizon: Duration) -> Markup {
    let scale = Scale::linear(horizon);
    html! {
        figure.staircase {
            h4 { (title) }
            @let view = format!("0 0 {WIDTH} {CURVE_HEIGHT}");
            svg.steps.(class) viewBox=(view) preserveAspectRatio="none" height=(CURVE_HEIGHT) role="img"
                aria-label=(title) {
                path d=(PreEscaped(path(&joined(steps), &scale))) {}
            }
            (scale.axis())
            figcaption { "Across: length of the window. Up: from zero to the greatest." }
        }
    }
}

/// At most [`MOST_STEPS`]; of those that are joined, the first span and the greatest value.
fn joined(steps: &[(Duration, u64)]) -> Vec<(Duration, u64)> {
    let size = steps.len().div_ceil(MOST_STEPS).max(1);
    steps.chunks(size).map(|chunk| (chunk[0].0, chunk[chunk.len() - 1].1)).collect()
}

fn path(steps: &[(Duration, u64)], scale: &Scale) -> String {
    let most = steps.last().map_or(1, |step| step.1).max(1) as f64;
    let mut path = format!("M0 {CURVE_HEIGHT}");
    for &(span, value) in steps {
        let x = scale.percent(span) * WIDTH / 100.0;
        let y = CURVE_HEIGHT - value as f64 / most * (CURVE_HEIGHT - 4.0);
        let _ = write!(path, "H{x:.1}V{y:.1}");
    }
    path + &format!("H{WIDTH}")
}

/// What ran during the worst wake-ups of a thread.
fn worst(measured: &Measured, analysis: &Analysed<'_>) -> Markup {
    let known: Vec<_> = measured.worst.iter().filter(|wakeup| !wakeup.ran.is_empty()).collect();
    let thread = measured_name(measured, analysis.processor.cpu);
    html! {
        @if !known.is_empty() {
            details.wakeups {
                summary { "The latest wake-ups of " bdi { (thread) } ", and what ran" }
                ol { @for wakeup in known { li { (happened(wakeup, analysis)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::example::{figure_24, measured_only};
    use punctual_model::{SchedulingLatency, TimingModel};

    fn drawn(section: SchedulingLatency) -> String {
        let model = TimingModel { latency: Some(section), ..TimingModel::new("CLOCK_MONOTONIC") };
        let order = Vec::new();
        sections(&Drawn { model: &model, order, jobs: None, states: None, dispatched: None }).into_string()
    }

    #[test]
    fn bars_are_stacked_by_cause_and_the_measured_maximum_stands_beside_them() {
        let page = drawn(figure_24());
        // 22.51, 19.702 and 55.83 of 118.469 µs, the greatest bar.
        let sliding = page.split("data-model=\"sliding_window\"").nth(1).expect("a row");
        let row = sliding.split("</ul>").next().expect("its end");
        assert!(row.contains("<b>98.042 µs</b>"), "{row}");
        assert!(row.contains("class=\"cause poid\" x=\"0%\" y=\"3\" width=\"19%\""), "{row}");
        assert!(row.contains("class=\"cause psd\" x=\"19%\" y=\"3\" width=\"16.63%\""), "{row}");
        let bar = row.split("</svg>").next().expect("a drawing");
        assert_eq!(bar.matches("class=\"cause irq\"").count(), 4, "{row}");
        assert!(row.contains("class=\"measured\" x1=\"22.79%\""), "{row}");
        assert!(page.contains("<b>does not converge</b>"));
        // The parts are named below the bar, not only where a mouse is.
        let named = row.split("class=\"parts\"").nth(1).expect("a list");
        for part in ["D_POID, by php (25708)</bdi> 22.51 µs", "irq 33 nvme0q1</bdi> 16.914 µs"] {
            assert!(named.contains(part), "{part}: {named}");
        }
        assert!(page.contains("wake_up_new_task+0x1c5"));
    }

    #[test]
    fn a_staircase_is_never_below_its_steps() {
        let steps: Vec<_> = (0..5_000).map(|at| (Duration::from_us(at), at + 1)).collect();
        let joined = joined(&steps);
        assert!(joined.len() <= MOST_STEPS);
        let value = |steps: &[(Duration, u64)], at: Duration| {
            steps.iter().rev().find(|step| step.0 <= at).map_or(0, |step| step.1)
        };
        for at in (0..5_000).step_by(7).map(Duration::from_us) {
            assert!(value(&joined, at) >= value(&steps, at));
        }
        let scale = Scale::linear(Duration::from_ms(10));
        assert_eq!(
            path(&[(Duration::ZERO, 1), (Duration::from_ms(5), 2)], &scale),
            "M0 120H0.0V62.0H500.0V4.0H1000"
        );
    }

    #[test]
    fn without_a_bound_the_page_says_why() {
        let page = drawn(measured_only());
        assert!(page.contains("There is no bound: the kernel lacks the tracepoints preemptirq:*"));
        assert!(page.contains("busy (72) 2 ms") && !page.contains("latency-bars"), "{page}");
        // 4 µs of interrupts, 2 ms of threads and 6 µs of 2.01 ms.
        let bar = page.split("latency-parts").nth(1).expect("a figure");
        assert!(bar.contains("<b>2.01 ms</b>"), "{bar}");
        assert!(bar.contains("class=\"cause preferred\" x=\"0.2%\" y=\"3\" width=\"99.5%\""), "{bar}");
        assert!(bar.contains("class=\"cause rest\" x=\"99.7%\" y=\"3\" width=\"0.3%\""), "{bar}");
        assert!(bar.contains("<bdi>threads</bdi> 2 ms") && bar.contains("<bdi>rest</bdi> 6 µs"), "{bar}");
        // Columns of the bound have no values here.
        assert!(!page.contains(">Without interrupts</th>") && !page.contains(">of bound</th>"), "{page}");
    }

    #[test]
    fn names_of_threads_and_interrupts_are_text() {
        let mut section = figure_24();
        section.processors[0].interrupts[0].source.name = "<script>".to_owned();
        let variables = section.processors[0].variables.as_mut().expect("there");
        variables.poid.culprit.as_mut().expect("there").thread.name = "<b>".to_owned();
        let page = drawn(section);
        assert!(!page.contains("<script>") && !page.contains("<b> ("), "{page}");
    }
}
