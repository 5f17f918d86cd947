//! Checks that the parts of a table fit together: numbers within their ranges, places that exist, orders.
//! Whether every job gets its slots is what [`crate::check::table`] tells.

use super::{MOST_SLOTS, Table, TableJob, TableRun, TableTask};
use crate::error::ReadError;
use crate::section::Valid;
use crate::valid::not_zero;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Longest table: the kernel's timers count in 63 bits.
const LONGEST_NS: u64 = i64::MAX as u64;

pub(super) fn table(path: &str, table: &Table) -> Valid {
    not_zero(&format!("{path}.slot_ns"), table.slot_ns.ns())?;
    within(&format!("{path}.slots"), table.slots, 1, MOST_SLOTS)?;
    within(&format!("{path}.slot_ns"), table.slot_ns.ns(), 1, LONGEST_NS / table.slots)?;
    processors(&format!("{path}.processors"), &table.processors, None)?;
    if table.processors.is_empty() {
        return Err(ReadError::value(format!("{path}.processors"), "at least one processor", "none"));
    }
    each(&format!("{path}.tasks"), &table.tasks, |path, it| task(path, it, table))?;
    names(path, &table.tasks)?;
    acyclic(path, &table.tasks)?;
    each(&format!("{path}.jobs"), &table.jobs, |path, it| job(path, it, table))?;
    ordered(&format!("{path}.jobs"), &table.jobs, |job| (job.task, job.release))?;
    each(&format!("{path}.runs"), &table.runs, |path, it| run(path, it, table))?;
    ordered(&format!("{path}.runs"), &table.runs, |run| (run.processor, run.from))
}

fn each<T>(path: &str, all: &[T], check: impl Fn(&str, &T) -> Valid) -> Valid {
    all.iter().enumerate().try_for_each(|(index, value)| check(&format!("{path}[{index}]"), value))
}

fn within(path: &str, value: u64, least: u64, most: u64) -> Valid {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(ReadError::value(path, format!("a number from {least} to {most}"), value)),
    }
}

fn ordered<T, K: Ord>(path: &str, all: &[T], key: impl Fn(&T) -> K) -> Valid {
    match all.windows(2).position(|pair| key(&pair[0]) > key(&pair[1])) {
        Some(index) => {
            let place = format!("{path}[{}]", index + 1);
            Err(ReadError::value(place, "one that comes after the entry before", "one that does not"))
        }
        None => Ok(()),
    }
}

/// Ascending numbers, all of them among `known` if that is given.
fn processors(path: &str, numbers: &[u32], known: Option<&[u32]>) -> Valid {
    if let Some(index) = numbers.windows(2).position(|pair| pair[0] >= pair[1]) {
        let expected = format!("more than the number before ({})", numbers[index]);
        return Err(ReadError::value(format!("{path}[{}]", index + 1), expected, numbers[index + 1]));
    }
    let known = known.unwrap_or(numbers);
    match numbers.iter().position(|number| known.binary_search(number).is_err()) {
        Some(index) => {
            let expected = "a processor of the table's `processors`";
            Err(ReadError::value(format!("{path}[{index}]"), expected, numbers[index]))
        }
        None => Ok(()),
    }
}

fn task(path: &str, task: &TableTask, table: &Table) -> Valid {
    within(&format!("{path}.period"), task.period, 1, table.slots)?;
    if table.slots % task.period != 0 {
        let expected = format!("a divisor of the table's `slots` ({})", table.slots);
        return Err(ReadError::value(format!("{path}.period"), expected, task.period));
    }
    within(&format!("{path}.deadline"), task.deadline, 1, task.period)?;
    within(&format!("{path}.wcet"), task.wcet, 1, task.deadline)?;
    within(&format!("{path}.offset"), task.offset, 0, task.period - 1)?;
    processors(&format!("{path}.processors"), &task.processors, Some(&table.processors))?;
    each(&format!("{path}.after"), &task.after, |path, &before| {
        let before = place(path, before, &table.tasks, "task")?;
        match before.period == task.period {
            true => Ok(()),
            false => {
                let expected = format!("a task with the same period ({})", task.period);
                Err(ReadError::value(path, expected, before.period))
            }
        }
    })
}

/// What is at this place of a list.
fn place<'a, T>(path: &str, index: usize, all: &'a [T], what: &str) -> Result<&'a T, ReadError> {
    let expected = || match all.len() {
        0 => format!("nothing, as there is no {what}"),
        count => format!("the place of a {what}, up to {}", count - 1),
    };
    all.get(index).ok_or_else(|| ReadError::value(path, expected(), index))
}

fn names(path: &str, tasks: &[TableTask]) -> Valid {
    let mut known = BTreeSet::new();
    let repeated = |task: &TableTask| task.name.is_empty() || !known.insert(task.name.clone());
    match tasks.iter().position(repeated) {
        Some(index) => {
            let found: &dyn Display = &format!("{:?}", tasks[index].name);
            Err(ReadError::value(format!("{path}.tasks[{index}].name"), "a unique name", found))
        }
        None => Ok(()),
    }
}

/// No task waits for itself, through others or not.
fn acyclic(path: &str, tasks: &[TableTask]) -> Valid {
    let mut waits: Vec<usize> = tasks.iter().map(|task| task.after.len()).collect();
    let mut free: Vec<usize> = (0..tasks.len()).filter(|&task| waits[task] == 0).collect();
    while let Some(before) = free.pop() {
        for (index, task) in tasks.iter().enumerate() {
            let fewer = task.after.iter().filter(|&&it| it == before).count();
            if fewer > 0 {
                waits[index] -= fewer;
                free.extend((waits[index] == 0).then_some(index));
            }
        }
    }
    match waits.iter().position(|&waits| waits > 0) {
        Some(index) => Err(ReadError::value(
            format!("{path}.tasks[{index}].after"),
            "tasks that need not wait for this one",
            "a circle",
        )),
        None => Ok(()),
    }
}

fn job(path: &str, job: &TableJob, table: &Table) -> Valid {
    let task = place(&format!("{path}.task"), job.task, &table.tasks, "task")?;
    within(&format!("{path}.deadline"), job.deadline, 1, 2 * table.slots)?;
    within(
        &format!("{path}.release"),
        job.release,
        job.deadline.saturating_sub(task.period),
        job.deadline - 1,
    )?;
    within(&format!("{path}.slots"), job.slots, 1, job.deadline - job.release)
}

fn run(path: &str, run: &TableRun, table: &Table) -> Valid {
    place(&format!("{path}.job"), run.job, &table.jobs, "job")?;
    processors(&format!("{path}.processor"), &[run.processor], Some(&table.processors))
        .map_err(|error| error.map_path(|_| format!("{path}.processor")))?;
    within(&format!("{path}.to"), run.to, 1, table.slots)?;
    within(&format!("{path}.from"), run.from, 0, run.to - 1)
}
