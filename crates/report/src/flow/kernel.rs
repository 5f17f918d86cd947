//! Execution times by what the kernel did meanwhile.

use crate::figure::{about, count};
use crate::table::{Column, Fit, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::dataflow::{Dataflow, Distribution};

const PARTS: [Column; 9] = [
    words("Task", Fit::Keep),
    figures("Executions", Fit::Keep),
    figures("Not split", Fit::Drop(1)),
    figures("Running: median", Fit::Keep),
    figures("max", Fit::Keep),
    figures("Preempted: median", Fit::Keep),
    figures("max", Fit::Keep),
    figures("Suspended: median", Fit::Keep),
    figures("max", Fit::Keep),
];

/// One line for each task; nothing where no recording of the kernel's was given.
pub fn table(flow: &Dataflow, page: &Page) -> String {
    let mut table = Table::new(&PARTS);
    for task in &flow.tasks {
        let Some(parts) = &task.by_kernel else { continue };
        let mut row = vec![visible(&task.name), count(parts.executions), count(task.executions.saturating_sub(parts.executions))];
        let cells = |part: &Distribution| [about(part.median_ns).to_string(), about(part.max_ns).to_string()];
        row.extend([&parts.running, &parts.preempted, &parts.suspended].into_iter().flat_map(cells));
        table.rows.push(row.into_iter().map(|cell| (cell, Tone::Plain)).collect());
    }
    if table.rows.is_empty() { String::new() } else { table.print(page).0 }
}
