//! A time-triggered table as text: how long it is, how it was made, how full each processor is.

use crate::number::counted;
use crate::{Page, paragraph};
use punctual_model::Table;

/// What a table is, in one paragraph.
pub fn time_table(table: &Table, page: &Page) -> String {
    let busy = table.processors.iter().map(|&processor| {
        let percent = 100.0 * table.busy_slots(processor) as f64 / table.slots as f64;
        format!("CPU {processor} {percent:.1} %")
    });
    let text = format!(
        "Time-triggered table of {} of {}, repeated every {}; {} on {}; method: {}. Busy: {}.",
        counted(table.slots, "slot"),
        table.slot_ns,
        table.length(),
        counted(table.tasks.len() as u64, "task"),
        counted(table.processors.len() as u64, "processor"),
        table.method,
        busy.collect::<Vec<_>>().join(", "),
    );
    paragraph(&text, page)
}
