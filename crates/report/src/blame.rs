//! Which run of several each extreme is from, as a table.

use crate::figures::Fit;
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::{Duration, Separator};

/// An extreme of a task that several runs have.
pub struct Blame {
    /// The task's name.
    pub task: String,
    /// Its number in the timing model.
    pub number: u32,
    /// The stream.
    pub separator: Separator,
    /// What is extreme.
    pub what: String,
    /// Its value.
    pub value: Duration,
    /// The first of the runs that have it.
    pub run: String,
}

const COLUMNS: [Column; 6] = [
    words("Task", Fit::Keep),
    figures("Number", Fit::Drop(1)),
    words("Separator", Fit::Drop(2)),
    words("Extreme", Fit::Keep),
    figures("Value", Fit::Keep),
    words("Run", Fit::Keep),
];

/// The table; a line that says so if no task is in several runs.
pub fn text(extremes: &[Blame], page: &Page) -> String {
    if extremes.is_empty() {
        return "No task is in several runs: nothing to blame.\n".to_owned();
    }
    let mut table = Table::new(&COLUMNS);
    let row = |it: &Blame| {
        let cells = [
            visible(&it.task),
            it.number.to_string(),
            it.separator.to_string(),
            it.what.clone(),
            it.value.to_string(),
            visible(&it.run),
        ];
        cells.into_iter().map(|cell| (cell, Tone::Plain)).collect()
    };
    table.rows = extremes.iter().map(row).collect();
    table.text(page)
}
