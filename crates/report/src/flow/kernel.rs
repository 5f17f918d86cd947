//! Execution times by what the kernel did meanwhile.

use super::cells;
use crate::figure::count;
use crate::table::{Column, Fit, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::dataflow::{Dataflow, Distribution};

/// What the cells are, in text and on the page.
pub(crate) const PARTS: [Column; 9] = [
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
    table.rows =
        rows(flow).into_iter().map(|row| row.into_iter().map(|cell| (cell, Tone::Plain)).collect()).collect();
    if table.rows.is_empty() { String::new() } else { table.print(page).0 }
}

/// The cells of each task of which something is known.
pub(crate) fn rows(flow: &Dataflow) -> Vec<Vec<String>> {
    let known = flow.tasks.iter().filter_map(|task| Some((task, task.by_kernel.as_ref()?)));
    let row = known.map(|(task, parts)| {
        let mut row = vec![
            visible(&task.name),
            count(parts.executions),
            count(task.executions.saturating_sub(parts.executions)),
        ];
        let cells = |part: &Distribution| {
            let [_, _, median, _, greatest] = cells(part);
            [median, greatest]
        };
        row.extend([&parts.running, &parts.preempted, &parts.suspended].into_iter().flat_map(cells));
        row
    });
    row.collect()
}
