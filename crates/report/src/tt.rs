//! What a time-triggered dispatcher does, and what a check of its recording found: tables and sentences.

use crate::figures::Fit;
use crate::number::{agreeing, count, counted};
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::Duration;
use punctual_tables::check::Outcome;
use punctual_tables::{Errors, GuestStatus, LaneStatus, Status, TaskStatus};
use std::fmt::Write as _;

const PROCESSORS: [Column; 8] = [
    figures("Processor", Fit::Keep),
    figures("Slot", Fit::Keep),
    words("Task", Fit::Keep),
    figures("Turns", Fit::Keep),
    figures("Missed", Fit::Keep),
    figures("Error p50", Fit::Drop(1)),
    figures("p99", Fit::Drop(2)),
    figures("max", Fit::Keep),
];

const TASKS: [Column; 7] = [
    words("Task", Fit::Keep),
    figures("Thread", Fit::Keep),
    figures("Turns", Fit::Keep),
    figures("Without thread", Fit::Drop(2)),
    figures("Overruns", Fit::Keep),
    figures("Ran", Fit::Keep),
    figures("Most outside", Fit::Drop(1)),
];

const GUESTS: [Column; 8] = [
    words("Guest", Fit::Keep),
    figures("Processor", Fit::Keep),
    figures("Thread", Fit::Keep),
    figures("Runtime", Fit::Keep),
    figures("Deadline", Fit::Keep),
    figures("Period", Fit::Keep),
    figures("Turns", Fit::Drop(1)),
    figures("Ran", Fit::Keep),
];

/// Every running dispatcher.
pub fn statuses(all: &[Status], page: &Page) -> String {
    if all.is_empty() {
        return "No table is being dispatched.\n".into();
    }
    all.iter().map(|status| self::status(status, page)).collect::<Vec<_>>().join("\n")
}

/// One dispatcher.
pub fn status(status: &Status, page: &Page) -> String {
    let by = if status.dispatcher == "user" { "user space" } else { &status.dispatcher };
    let mut text = format!(
        "Process {}: {}, {} of {}, dispatched by {by} on {}.\n",
        status.pid,
        visible(&status.table),
        counted(status.slots.into(), "slot"),
        status.slot_ns,
        status.clock.name(),
    );
    let mut processors = Table::new(&PROCESSORS);
    processors.rows = status.processors.iter().map(processor).collect();
    let mut tasks = Table::new(&TASKS);
    tasks.rows = status.tasks.iter().map(task).collect();
    text += &processors.text(page);
    text += &tasks.text(page);
    if !status.guests.is_empty() {
        let mut guests = Table::new(&GUESTS);
        guests.rows = status.guests.iter().map(guest).collect();
        text += &guests.text(page);
    }
    text
}

fn plain(cells: Vec<String>) -> Vec<(String, Tone)> {
    cells.into_iter().map(|text| (text, Tone::Plain)).collect()
}

fn processor(lane: &LaneStatus) -> Vec<(String, Tone)> {
    let error =
        |of: fn(&Errors) -> Duration| lane.error.map_or("–".into(), |errors| of(&errors).to_string());
    plain(vec![
        lane.cpu.to_string(),
        lane.slot.map_or("–".into(), count),
        lane.task.as_deref().map_or("idle".into(), visible),
        count(lane.turns),
        count(lane.missed),
        error(|errors| errors.p50_ns),
        error(|errors| errors.p99_ns),
        error(|errors| errors.max_ns),
    ])
}

fn task(task: &TaskStatus) -> Vec<(String, Tone)> {
    plain(vec![
        visible(&task.name),
        task.tid.map_or("–".into(), |tid| tid.to_string()),
        count(task.turns),
        count(task.unserved),
        count(task.overruns),
        task.ran_ns.to_string(),
        task.outside_max_ns.to_string(),
    ])
}

fn guest(guest: &GuestStatus) -> Vec<(String, Tone)> {
    plain(vec![
        visible(&guest.name),
        guest.cpu.to_string(),
        guest.tid.map_or("–".into(), |tid| tid.to_string()),
        guest.runtime_ns.to_string(),
        guest.deadline_ns.to_string(),
        guest.period_ns.map_or("–".into(), |period| period.to_string()),
        count(guest.turns),
        guest.ran_ns.to_string(),
    ])
}

/// The result of a check: a sentence, and a line for each of the first violations.
pub fn check(outcome: &Outcome) -> String {
    let turns = counted(outcome.turns, "turn");
    let slots = counted(outcome.slots, "slot");
    let mut text = match outcome.is_clean() {
        true => {
            let until = if outcome.is_cut { " until the recording was cut off" } else { "" };
            format!("All {slots}{until} were given as planned, in {turns}{}.\n", guests(outcome))
        }
        false if outcome.turns == 0 => "The recording has no turns.\n".into(),
        false => {
            let kinds =
                outcome.counts.iter().map(|(kind, number)| format!("{} {}", count(*number), kind.name()));
            format!("Of {slots} in {turns}: {}.\n", kinds.collect::<Vec<_>>().join(", "))
        }
    };
    if outcome.overruns > 0 {
        let (jobs, was) = (counted(outcome.overruns, "job"), agreeing(outcome.overruns, "was", "were"));
        let _ = writeln!(text, "{jobs} {was} not done at the end of the slots, and lost the processor.");
    }
    if outcome.skipped > 0 {
        let (turns, was) = (counted(outcome.skipped, "turn"), agreeing(outcome.skipped, "was", "were"));
        let _ = writeln!(text, "{turns} {was} left out after overruns.");
    }
    for violation in &outcome.violations {
        let _ = writeln!(text, "{}", visible(&violation.to_string()));
    }
    let all: u64 = outcome.counts.values().sum();
    let kept = outcome.violations.len() as u64;
    if all > kept {
        let _ = writeln!(text, "… and {}", count(all - kept));
    }
    text
}

/// What was admitted meanwhile.
fn guests(outcome: &Outcome) -> String {
    match outcome.guests {
        0 => String::new(),
        number => format!(", and {} had all slots in time", counted(number, "guest")),
    }
}

/// The same for programs.
pub fn check_json(outcome: &Outcome) -> serde_json::Value {
    let violations: Vec<_> = outcome
        .violations
        .iter()
        .map(|violation| {
            serde_json::json!({
                "kind": violation.kind.name(), "cpu": violation.cpu, "slot": violation.slot,
                "detail": violation.detail,
            })
        })
        .collect();
    let counts: serde_json::Map<String, serde_json::Value> =
        outcome.counts.iter().map(|(kind, number)| (kind.name().into(), (*number).into())).collect();
    serde_json::json!({
        "as_planned": outcome.is_clean(), "cut_off": outcome.is_cut,
        "slots": outcome.slots, "turns": outcome.turns,
        "given": outcome.given, "overruns": outcome.overruns, "early": outcome.early,
        "skipped": outcome.skipped, "guests": outcome.guests,
        "violations": counts, "first": violations,
    })
}
