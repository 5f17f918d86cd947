//! A time-triggered table as text: how it was made, its processors and tasks, who has which slot; and what it
//! does not keep to.

mod json;
mod rows;

pub use json::json;
pub use rows::{ProcessorRow, TaskRow};

use crate::figures::{TABLE_PROCESSORS, TABLE_TASKS};
use crate::number::counted;
use crate::{Page, paragraph, table, visible};
use punctual_model::Table;
use punctual_model::check::TableViolation;
use punctual_model::table::Method;
use std::fmt::Write;

/// Slots that the picture shows at most; a longer table is in the report and in the file.
const MOST_DRAWN: u64 = 512;
/// Slots in a line, where the page has no width.
const LINE: u64 = 100;
/// What stands for tasks in the picture, in their order.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Everything about a table.
pub fn time_table(time_table: &Table, page: &Page) -> String {
    let processors = table::of_figures(TABLE_PROCESSORS, ProcessorRow::all(time_table)).text(page);
    let tasks = table::of_figures(TABLE_TASKS, TaskRow::all(time_table)).text(page);
    [paragraph(&summary(time_table), page), processors, tasks, picture(time_table, page)].join("\n")
}

/// What a table is, in one sentence.
pub(crate) fn summary(table: &Table) -> String {
    format!(
        "Time-triggered table: {} of {} on {}, repeated every {}; {}, {}; {}.",
        counted(table.slots, "slot"),
        table.slot_ns,
        table.clock.name(),
        table.length(),
        counted(table.tasks.len() as u64, "task"),
        counted(table.jobs.len() as u64, "job"),
        made(table.method),
    )
}

/// How a table was made.
fn made(method: Method) -> String {
    if method == Method::Other { method.to_string() } else { format!("made by {method}") }
}

/// What a table does not keep to, one line each; empty if it keeps to everything.
pub fn violations(found: &[TableViolation]) -> String {
    found.iter().fold(String::new(), |mut text, violation| {
        let _ = writeln!(text, "{}", visible(&violation.to_string()));
        text
    })
}

/// A line for each processor, a letter for each slot.
fn picture(table: &Table, page: &Page) -> String {
    let drawn = table.slots.min(MOST_DRAWN);
    let label = table.processors.iter().map(|cpu| cpu.to_string().len()).max().unwrap_or(1) + 5;
    let line = page.width.map_or(LINE, |width| u64::from(width).saturating_sub(label as u64 + 1).max(10));
    let line = if line > 10 { line / 10 * 10 } else { line };
    let mut text = paragraph(&legend(table, drawn), page);
    let mut from = 0;
    while from < drawn {
        let to = (from + line).min(drawn);
        let _ = writeln!(text, "{:>label$} {}", "slot", ruler(from, to));
        for &processor in &table.processors {
            let slots: String = (from..to).map(|slot| letter(table, processor, slot)).collect();
            let _ = writeln!(text, "{:>label$} {slots}", format!("CPU {processor}"));
        }
        from = to;
    }
    text
}

fn legend(table: &Table, drawn: u64) -> String {
    let tasks = table.tasks.iter().zip(LETTERS.chars());
    let names: Vec<String> =
        tasks.map(|(task, letter)| format!("{letter} {}", visible(&task.name))).collect();
    let more = if table.tasks.len() > LETTERS.len() { ", * any other" } else { "" };
    let rest = match table.slots > drawn {
        true => format!(" The first {drawn} slots; the file has all of them."),
        false => String::new(),
    };
    format!("{}{more}, · idle.{rest}", names.join(", "))
}

fn letter(table: &Table, processor: u32, slot: u64) -> char {
    match table.job_at(processor, slot) {
        Some(job) => LETTERS.chars().nth(table.jobs[job].task).unwrap_or('*'),
        None => '·',
    }
}

/// Every tenth slot with its number.
fn ruler(from: u64, to: u64) -> String {
    let mut text = String::new();
    let mut slot = from;
    while slot < to {
        let number = slot.to_string();
        let room = (to - slot).min(10) as usize;
        let _ = match number.len() <= room {
            true => write!(text, "{number:<room$}"),
            false => write!(text, "{:<room$}", ""),
        };
        slot += 10;
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::time_table as example;

    #[test]
    fn a_table_is_drawn() {
        let page = Page { width: None, colour: false };
        let text = time_table(&example(), &page);
        assert!(text.starts_with("Time-triggered table: 10 slots of 3 ms on CLOCK_MONOTONIC"), "{text}");
        assert!(text.contains("CPU 1 aab···aa··\n CPU 2 ···bb·····\n"), "{text}");
        assert!(text.contains("a sense, b act, · idle."), "{text}");
    }

    #[test]
    fn it_says_how_a_table_was_made() {
        let made = |method| summary(&Table { method, ..example() });
        assert!(made(Method::Edf).ends_with("; made by EDF."));
        assert!(made(Method::Other).ends_with("; made elsewhere."));
    }

    #[test]
    fn long_tables_are_cut_and_say_so() {
        let mut table = example();
        table.slots = 10_000;
        let page = Page { width: Some(80), colour: false };
        let text = picture(&table, &page);
        assert!(text.contains("The first 512 slots"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
