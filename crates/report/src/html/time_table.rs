//! A time-triggered table on the page: who has which slot, as a drawing; processors and tasks as tables. It
//! works without scripts.

use super::drawn::Drawn;
use super::scale::percent;
use super::{cell, dispatched};
use crate::figures::{TABLE_PROCESSORS, TABLE_TASKS};
use crate::time_table::{ProcessorRow, TaskRow, summary};
use maud::{Markup, html};
use punctual_model::{Table, TableRun};

/// Slots of one strip.
pub(super) const STRIP: u64 = 120;
/// Strips that are drawn; of a longer table the first.
const MOST_STRIPS: u64 = 60;
pub(super) const LANE: u64 = 22;

/// A link to the section.
pub(crate) fn contents(drawn: &Drawn<'_>) -> Markup {
    html! {
        @if drawn.model.table.is_some() { li { a href="#time-table" { "Time-triggered table" } } }
        (dispatched::contents(drawn))
    }
}

/// The section.
pub(crate) fn sections(drawn: &Drawn<'_>) -> Markup {
    let Some(table) = &drawn.model.table else { return html! {} };
    html! {
        section #time-table aria-labelledby="time-table-title" {
            h2 #time-table-title { "Time-triggered table" }
            p { (summary(table)) }
            (drawing(table))
            h3 { "Processors" }
            (cell::table(TABLE_PROCESSORS, ProcessorRow::all(table), "Processors of the table"))
            h3 { "Tasks" }
            (cell::table(TABLE_TASKS, TaskRow::all(table), "Tasks of the table"))
        }
        (dispatched::sections(drawn))
    }
}

fn drawing(table: &Table) -> Markup {
    let drawn = table.slots.min(STRIP * MOST_STRIPS);
    html! {
        figure.wide.time-table {
            p.key {
                @for (place, task) in table.tasks.iter().enumerate() {
                    svg.sample width="20" height="14" aria-hidden="true" {
                        rect.slots x="1" y="1" width="18" height="12" fill=(colour(place)) {}
                    }
                    bdi { (task.name) } ". "
                }
            }
            @for from in (0..drawn).step_by(STRIP as usize) {
                (strip(table, from, (from + STRIP).min(drawn)))
            }
            figcaption {
                "A row for each processor, the slots of the table from left to right. "
                @if drawn < table.slots {
                    "The first " (drawn) " slots are drawn; the file has all " (table.slots) "."
                }
            }
        }
    }
}

/// Slots `from` to `to` of all processors. Strips have one scale, so a last one may be shorter.
fn strip(table: &Table, from: u64, to: u64) -> Markup {
    let across = |slot: u64| 100.0 * (slot - from) as f64 / STRIP.min(table.slots) as f64;
    html! {
        p.strip { "Slots " (from) " to " (to - 1) }
        ol.raster {
            @for &processor in &table.processors {
                li {
                    span { "CPU " (processor) }
                    svg.states height=(LANE) role="img"
                        aria-label={ "Slots " (from) " to " (to - 1) " of CPU " (processor) } {
                        rect.idle x="0" y="2" width=(percent(across(to))) height=(LANE - 4) {}
                        @for run in inside(table, processor, from, to) {
                            rect.slots x=(percent(across(run.from.max(from)))) y="2"
                                width=(percent(across(run.to.min(to)) - across(run.from.max(from))))
                                height=(LANE - 4) fill=(colour(table.jobs[run.job].task)) {
                                title {
                                    (table.task_of(run.job).name) ": slots " (run.from) " to " (run.to - 1)
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn inside(table: &Table, processor: u32, from: u64, to: u64) -> impl Iterator<Item = &TableRun> {
    table.runs_on(processor).iter().filter(move |run| run.from < to && run.to > from)
}

/// Hues as far apart as can be, however many tasks there are: steps of the golden angle.
pub(super) fn colour(task: usize) -> String {
    format!("hsl({}, 55%, 55%)", task * 13_751 / 100 % 360)
}
