//! Execution times by what the kernel did meanwhile.

use crate::Page;
use crate::figures::{KernelRow, SPLIT};
use crate::table;
use punctual_model::dataflow::Dataflow;

/// One line for each task; nothing without a kernel recording of the same time.
pub fn table(flow: &Dataflow, page: &Page) -> String {
    let mut rows = rows(flow).peekable();
    if rows.peek().is_none() { String::new() } else { table::of_figures(SPLIT, rows).text(page) }
}

/// The tasks whose executions are split.
pub(crate) fn rows(flow: &Dataflow) -> impl Iterator<Item = KernelRow<'_>> {
    flow.tasks.iter().filter_map(|task| Some(KernelRow { task, parts: task.by_kernel.as_ref()? }))
}
