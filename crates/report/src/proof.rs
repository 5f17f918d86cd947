//! Proofs as text and for programs: verdicts, bounds, what they are made of.

mod document;
mod json;
mod rows;

pub use document::page as html;
pub use json::{json, tasks as json_of_tasks};
pub use rows::ProofRow;

use crate::figures::PROVEN_TASKS;
use crate::number::{counted, few};
use crate::{Page, paragraph, table, visible};
use punctual_analysis::{Cause, Proof, Verdict, WorstCase, worst_case};
use std::fmt::Write;

/// Stretches of a schedule that are shown at most.
const MOST_STRETCHES: usize = 100;

/// Names in a sentence at most.
const MOST_NAMES: usize = 10;

/// Everything about a proof.
pub fn proof(proof: &Proof, page: &Page) -> String {
    let rows: Vec<ProofRow<'_>> = ProofRow::by_urgency(proof);
    let mut text = paragraph(&headline(proof), page);
    text.push('\n');
    text += &table::of_figures(PROVEN_TASKS, rows.into_iter()).text(page);
    text.push('\n');
    text += &paragraph(&loads(proof), page);
    for assigned in assignments(proof) {
        text += &paragraph(&assigned, page);
    }
    for remark in &proof.remarks {
        text += &paragraph(&visible(remark), page);
    }
    text
}

/// Whether all deadlines hold, and for whom not.
pub fn headline(proof: &Proof) -> String {
    let verdicts = proof.verdicts();
    let of = |wanted: Verdict| -> Vec<String> {
        let tasks = proof.system.tasks.iter().zip(&verdicts);
        tasks.filter(|(_, verdict)| **verdict == wanted).map(|(task, _)| visible(&task.name)).collect()
    };
    let (missed, met) = (of(Verdict::Missed), of(Verdict::Met));
    let asked = counted((missed.len() + met.len()) as u64, "deadline");
    match missed.len() {
        0 if met.is_empty() => "No deadline was asked for.".into(),
        0 => format!("{asked} asked for; all are met."),
        number => format!("{asked} asked for; {number} NOT PROVEN: {}.", some(&missed)),
    }
}

/// A list of names that is not too long for a sentence.
fn some(names: &[String]) -> String {
    few(names, MOST_NAMES, " and ")
}

/// `Load: CPU 0 31.2 %, CPU 1 4.1 %.`
fn loads(proof: &Proof) -> String {
    let loads = proof.loads().into_iter().map(|(cpu, load)| match load {
        Some(load) => format!("CPU {cpu} {:.1} %", (load * 1_000.0).ceil() / 10.0),
        None => format!("CPU {cpu} unknown"),
    });
    format!("Load: {}.", loads.collect::<Vec<_>>().join(", "))
}

/// What was assigned, in sentences.
fn assignments(proof: &Proof) -> impl Iterator<Item = String> {
    reserved(proof).into_iter().chain(priorities(proof))
}

/// Deadlines of reservations; `None` if no task is in one.
fn reserved(proof: &Proof) -> Option<String> {
    let name = |task: usize| visible(&proof.system.tasks[task].name);
    match proof.reserved_deadlines.as_ref()? {
        Ok(deadlines) => {
            let list: Vec<String> = deadlines
                .iter()
                .enumerate()
                .filter_map(|(task, deadline)| Some(format!("{} {}", name(task), (*deadline)?)))
                .collect();
            (!list.is_empty()).then(|| {
                format!(
                    "With these deadlines and periods of the reservations, all tasks in one meet theirs: {}.",
                    list.join(", ")
                )
            })
        }
        Err(tasks) => {
            let names: Vec<String> = tasks.iter().map(|&task| name(task)).collect();
            Some(format!(
                "No deadlines of the reservations were found with which {} meet their own.",
                some(&names)
            ))
        }
    }
}

fn priorities(proof: &Proof) -> Option<String> {
    let name = |task: usize| visible(&proof.system.tasks[task].name);
    Some(match proof.priorities.as_ref()? {
        Ok(priorities) => {
            let mut list: Vec<(u32, usize)> = priorities
                .iter()
                .enumerate()
                .filter_map(|(task, priority)| Some(((*priority)?, task)))
                .collect();
            if list.is_empty() && proof.reserved_deadlines.is_some() {
                return None;
            }
            list.sort_unstable_by(|one, other| other.cmp(one));
            let list = list.into_iter().map(|(priority, task)| format!("{} {priority}", name(task)));
            format!("Priorities that meet all deadlines: {}.", list.collect::<Vec<_>>().join(", "))
        }
        Err(tasks) => {
            let names: Vec<String> = tasks.iter().map(|&task| name(task)).collect();
            format!("No priorities meet all deadlines: none of {} can be the least urgent.", some(&names))
        }
    })
}

/// What a part of a bound is for.
pub(crate) fn cause(proof: &Proof, cause: Cause) -> String {
    match cause {
        Cause::Own => "own".into(),
        Cause::Suspension => "suspended".into(),
        Cause::Jitter => "jitter".into(),
        Cause::Task(task) => visible(&proof.system.tasks[task].name),
        Cause::Blocking => "kernel".into(),
        Cause::Switches => "switches".into(),
        Cause::Interrupts => "interrupts".into(),
        Cause::Throttling => "throttled".into(),
    }
}

/// One task: what its bound is made of, and a schedule that reaches it.
pub fn task(proof: &Proof, task: usize, page: &Page) -> String {
    let name = visible(&proof.system.tasks[task].name);
    let bound = match &proof.bounds[task] {
        Ok(bound) => bound,
        Err(reason) => return paragraph(&format!("{name}: {}.", proof.reason(task, reason)), page),
    };
    let mut text = paragraph(&format!("{name} takes at most {} ({}):", bound.response, bound.method), page);
    for part in &bound.parts {
        let _ = writeln!(text, "{:>14}  {}", part.duration.to_string(), cause(proof, part.cause));
    }
    if !bound.earlier.is_zero() {
        let _ =
            writeln!(text, "{:>14}  released later than the window begins", format!("− {}", bound.earlier));
    }
    text.push('\n');
    match worst_case(&proof.system, task, bound) {
        Some(worst) => text + &schedule(proof, &worst, page),
        None => {
            text + &paragraph("No schedule is shown: the bound may be more than any schedule takes.", page)
        }
    }
}

/// A schedule, one stretch a line.
fn schedule(proof: &Proof, worst: &WorstCase, page: &Page) -> String {
    let head = format!(
        "The worst schedule: all that delays it is released at once; its job, released at {}, ends at {}.",
        worst.release, worst.end
    );
    let mut text = paragraph(&head, page);
    for stretch in worst.stretches.iter().take(MOST_STRETCHES) {
        let _ = writeln!(text, "{:>14} to {:<14} {}", stretch.from, stretch.to, cause(proof, stretch.cause));
    }
    if worst.stretches.len() > MOST_STRETCHES {
        let more = worst.stretches.len() - MOST_STRETCHES;
        let _ = writeln!(text, "{:>14} and {more} more", "…");
    }
    text
}
