//! A dispatched table on the page: how late turns began, as a histogram, and one repetition of the table
//! beside what was given. It works without scripts.

use super::cell;
use super::drawn::Drawn;
use super::scale::percent;
use super::time_table::{LANE, STRIP, colour, inside};
use crate::dispatched::Dispatched;
use crate::figures::DISPATCHED_PROCESSORS;
use crate::number::{count, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::{Duration, Table};
use punctual_trace::dispatch::Turn;

const BAR: u64 = 14;

/// The section, where a recording is known.
pub(crate) fn sections(drawn: &Drawn<'_>) -> Markup {
    let (Some(table), Some(dispatched)) = (&drawn.model.table, drawn.dispatched) else { return html! {} };
    let by = if dispatched.is_sched_ext { "sched_ext" } else { "user space" };
    html! {
        section #dispatched aria-labelledby="dispatched-title" {
            h2 #dispatched-title { "Table against reality" }
            p { "Dispatched by " (by) "." }
            @for line in crate::tt::check(&dispatched.outcome).lines().take(20) { p { (line) } }
            (cell::table(DISPATCHED_PROCESSORS, dispatched.rows(), "Processors as they were dispatched"))
            (histogram(dispatched))
            (repetition(table, dispatched))
        }
    }
}

/// A link to the section.
pub(crate) fn contents(drawn: &Drawn<'_>) -> Markup {
    html! {
        @if drawn.dispatched.is_some() { li { a href="#dispatched" { "Table against reality" } } }
    }
}

fn histogram(dispatched: &Dispatched) -> Markup {
    let ranges = dispatched.ranges();
    let most = ranges.iter().map(|range| range.1).max().unwrap_or(1).max(1);
    html! {
        figure.wide.slot-errors {
            h3 { "How late turns began" }
            ol.rows {
                @for (bound, turns) in &ranges {
                    li {
                        span { "≤ " (bound) ": " b { (count(*turns)) } }
                        svg.bars height=(BAR) aria-hidden="true" {
                            rect.slots x="0" y="1" height=(BAR - 2) width=(percent(share(*turns, most))) {}
                        }
                    }
                }
            }
            figcaption {
                "From the beginning of a turn's first slot until the processor was handed over. The bounds \
                 are powers of two. Bars are as long as the square roots of the numbers, so that rare ones \
                 can be seen. Missed turns are not among them."
            }
        }
    }
}

fn share(turns: u64, most: u64) -> f64 {
    100.0 * (turns as f64 / most as f64).sqrt()
}

/// The worst repetition, or the part of it that has the worst turn.
fn repetition(table: &Table, dispatched: &Dispatched) -> Markup {
    let Some(worst) = dispatched.worst() else { return html! {} };
    let (begin, end) = dispatched.repetition();
    let from = begin + (worst.slot - begin) / STRIP * STRIP;
    let to = (from + STRIP).min(end);
    let why = match worst.is_missed {
        true => "one was missed".to_owned(),
        false => format!("one began {} late", worst.error),
    };
    html! {
        figure.wide.time-table {
            h3 { "Slots " (count(from)) " to " (count(to - 1)) ", of which " (why) }
            ol.raster {
                @for &processor in &table.processors {
                    (lane(&format!("CPU {processor} as planned"), html! {
                        @for run in inside(table, processor, from - begin, to - begin) {
                            @let task = table.jobs[run.job].task;
                            @let (left, right) = (run.from.max(from - begin), run.to.min(to - begin));
                            (stretch((left, right), from - begin, to - from, &colour(task),
                                &table.tasks[task].name))
                        }
                    }))
                    (lane(&format!("CPU {processor} as given"), html! {
                        @for turn in dispatched.turns(processor) {
                            (given(table, dispatched, turn, from, to))
                        }
                    }))
                }
            }
            figcaption {
                "Above, the table. Below, what was recorded: each turn from when the processor was handed \
                 over, for as long as its thread used the processor, and a frame where a turn was missed. \
                 Colours as above; guests are grey."
            }
        }
    }
}

fn lane(name: &str, drawing: Markup) -> Markup {
    html! {
        li {
            span { (name) }
            svg.states height=(LANE) role="img" aria-label=(name) {
                rect.idle x="0" y="2" width="100%" height=(LANE - 4) {}
                (drawing)
            }
        }
    }
}

fn stretch((left, right): (u64, u64), from: u64, slots: u64, fill: &str, name: &str) -> Markup {
    let across = |slot: u64| 100.0 * (slot - from) as f64 / slots as f64;
    html! {
        rect.slots x=(percent(across(left))) y="2" width=(percent(across(right) - across(left)))
            height=(LANE - 4) fill=(fill) { title { (visible(name)) ": slots " (left) " to " (right - 1) } }
    }
}

/// What came of a turn: when its owner got the processor, and for how long.
fn given(table: &Table, dispatched: &Dispatched, turn: &Turn, from: u64, to: u64) -> Markup {
    let Some(task) = turn.task else { return html! {} };
    let (name, fill) = match table.tasks.get(task as usize) {
        Some(known) => (known.name.as_str(), colour(task as usize)),
        None => (dispatched.guest(task), "var(--ink-soft)".to_owned()),
    };
    let slots = |time: Duration| time.ns() as f64 / table.slot_ns.ns().max(1) as f64;
    let (begin, end) = (turn.slot as f64, (turn.slot + u64::from(turn.slots)) as f64);
    let (left, right) = match turn.is_missed {
        true => (begin, end),
        false => {
            let left = begin + slots(turn.error);
            (left, (left + slots(turn.ran)).min(end))
        }
    };
    let (left, right) = (left.max(from as f64), right.min(to as f64));
    let across = |slot: f64| 100.0 * (slot - from as f64) / (to - from) as f64;
    html! {
        @if right > left {
            rect class=(if turn.is_missed { "missed" } else { "slots" }) x=(percent(across(left))) y="2"
                width=(percent(across(right) - across(left))) height=(LANE - 4)
                fill=(if turn.is_missed { "none" } else { fill.as_str() }) {
                title {
                    (visible(name)) ": slot " (turn.slot) ", " (counted(turn.slots.into(), "slot")) ", "
                    @if turn.is_missed { "missed" } @else { (turn.error) " late, ran " (turn.ran) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dispatched::tests::example;
    use crate::example::time_table;
    use crate::html::dispatched_page;
    use punctual_model::TimingModel;

    #[test]
    fn a_dispatched_table_is_drawn_beside_its_plan() {
        let table = time_table();
        let model = TimingModel { table: Some(table), ..TimingModel::new("CLOCK_MONOTONIC") };
        let page = dispatched_page(&model, &example(), "robot");
        assert!(page.contains("Table against reality"));
        assert!(page.contains("≤ 1.024 ms: <b>1</b>"), "the late one");
        assert!(page.contains("Slots 10 to 19, of which one was missed"));
        assert!(page.contains("sense: slot 16, 2 slots, missed"));
        assert!(page.contains("act: slot 12, 1 slot, 700 µs late, ran 1 ms"));
        assert!(page.contains("CPU 1 as planned") && page.contains("CPU 1 as given"));
        let alone = crate::html::page(&model, None, None, "robot");
        assert!(!alone.contains("Table against reality"), "there is no recording");
    }
}
