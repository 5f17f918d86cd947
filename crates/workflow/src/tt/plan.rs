//! The section `table` of a timing model as a plan for dispatchers.

use crate::error::{Error, Result};
use crate::model_file::{display_name, read_model};
use crate::monitor::Monitor;
use glob::Pattern;
use punctual_model::check;
use punctual_model::table::{self, Table, TableRun, TableTask};
use punctual_report::{counted, visible};
use punctual_tables::{Clock, OnOverrun, Plan, Planned, Run, Selector, Task};
use std::path::Path;
use std::sync::Arc;

/// The thread of a task, given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The task's name.
    pub task: String,
    /// The thread's number.
    pub tid: u32,
}

/// Reads a table, checks it against its tasks, and makes a plan of it.
pub fn read_plan(path: &Path, mappings: &[Mapping]) -> Result<Plan> {
    let name = display_name(path);
    let Some(table) = read_model(path)?.table else {
        return Err(Error::file(format!("{name} has no section `table`"))
            .advise("punctual table makes one from timing models"));
    };
    let refused = |why: String| Error::file(format!("{name} cannot be dispatched")).because(why);
    if let Some(mapping) =
        mappings.iter().find(|mapping| table.tasks.iter().all(|task| task.name != mapping.task))
    {
        return Err(Error::target(format!("there is no task {} in {name}", mapping.task)));
    }
    check_mappings(mappings)?;
    plan(&table, mappings).map_err(refused)
}

/// Each task and each thread once, and threads that are there.
fn check_mappings(mappings: &[Mapping]) -> Result<()> {
    for (at, Mapping { task, tid }) in mappings.iter().enumerate() {
        let why = match mappings[..at].iter().find(|other| other.tid == *tid || other.task == *task) {
            Some(other) if other.task == *task => {
                format!("--thread assigns two threads to {}", visible(task))
            }
            Some(other) => {
                format!(
                    "--thread assigns thread {tid} to both {} and {}",
                    visible(&other.task),
                    visible(task)
                )
            }
            None if punctual_linux::proc::exists(*tid) => continue,
            None => format!("there is no thread {tid}, which --thread assigns to {}", visible(task)),
        };
        return Err(Error::target(why));
    }
    Ok(())
}

/// Warns, in one line, of requirements of its tasks that a table breaks.
pub fn warn_of_violations(plan: &Plan, path: &Path, monitor: &dyn Monitor) {
    let found = plan.table.as_ref().map_or(0, |table| check::table(table).len() as u64);
    if found > 0 {
        let (name, violations) = (display_name(path), counted(found, "violation"));
        monitor.warn(&visible(&format!(
            "{name} breaks requirements of its tasks: {violations}; punctual table --from {name} lists them"
        )));
    }
}

/// A thread cannot be on two processors at once.
///
/// # Errors
/// If a task of the table would have to be.
pub fn refuse_parallel(plan: &Plan, path: &Path) -> Result<()> {
    let Some((task, slot, [one, other])) = plan.table.as_ref().and_then(|table| parallel(table)) else {
        return Ok(());
    };
    let name = display_name(path);
    let why = format!("{} has slot {slot} on processors {one} and {other}", visible(task));
    Err(Error::file(format!("{name} cannot be dispatched"))
        .because(why)
        .advise(format!("punctual table --from {name} lists what the table breaks")))
}

/// The first task that has two processors in a slot, whichever of its jobs these are.
fn parallel(table: &Table) -> Option<(&str, u64, [u32; 2])> {
    let task = |run: &TableRun| table.jobs[run.job].task;
    let mut runs: Vec<&TableRun> = table.runs.iter().collect();
    runs.sort_by_key(|run| (task(run), run.from));
    // Runs of a task that do not overlap end in the order in which they begin.
    let pair = runs.windows(2).find(|pair| task(pair[0]) == task(pair[1]) && pair[1].from < pair[0].to)?;
    let name = table.tasks[task(pair[0])].name.as_str();
    Some((name, pair[1].from, [pair[0].processor, pair[1].processor]))
}

/// Has a sleep of these tasks' threads end their jobs, so that the rest of their slots is given back.
pub fn let_sleep_end_jobs(plan: &mut Plan, tasks: &[String]) -> Result<()> {
    for name in tasks {
        let task = plan.tasks.iter_mut().find(|task| task.name == *name);
        task.ok_or_else(|| Error::target(format!("there is no task {name} in the table")))?.sleep_ends_job =
            true;
    }
    Ok(())
}

pub(super) fn plan(table: &Table, mappings: &[Mapping]) -> Result<Plan, String> {
    let number = |slot: u64| u32::try_from(slot).map_err(|_| format!("slot {slot} is too far"));
    let tasks = table.tasks.iter().map(|task| self::task(task, mappings)).collect::<Result<_, _>>()?;
    let head = Plan {
        slot: table.slot_ns,
        slots: number(table.slots)?,
        clock: match table.clock {
            table::Clock::Monotonic => Clock::Monotonic,
            table::Clock::Tai => Clock::Tai,
        },
        tasks,
        lanes: Vec::new(),
        table: Some(Arc::new(table.clone())),
    };
    let run = |run: &table::TableRun| {
        let (from, to) = (number(run.from)?, number(run.to)?);
        Ok(Run { processor: run.processor, from, to, job: run.job as u32 })
    };
    let runs = table.runs.iter().map(run).collect::<Result<Vec<_>, String>>()?;
    let job = |job: &table::TableJob| Ok(Planned { task: job.task as u32, release: number(job.release)? });
    let jobs = table.jobs.iter().map(job).collect::<Result<Vec<_>, String>>()?;
    Plan::new(head, &table.processors, &runs, &jobs)
}

fn task(task: &TableTask, mappings: &[Mapping]) -> Result<Task, String> {
    let mapped = mappings.iter().find(|mapping| mapping.task == task.name);
    let thread = match (mapped, &task.thread) {
        (Some(mapping), _) => Selector::numbered(mapping.tid),
        (None, None) => Selector::named(&task.name),
        (None, Some(thread)) => Selector {
            tid: None,
            comm: pattern(thread.comm.as_deref())?,
            command: pattern(thread.command.as_deref())?,
            cgroup: thread.cgroup.clone(),
        },
    };
    let on_overrun = match task.on_overrun {
        table::OnOverrun::Continue => OnOverrun::Continue,
        table::OnOverrun::Skip => OnOverrun::Skip,
        table::OnOverrun::Stop => OnOverrun::Stop,
        table::OnOverrun::Tell => OnOverrun::Tell,
    };
    Ok(Task { name: task.name.clone(), thread, on_overrun, sleep_ends_job: false })
}

fn pattern(text: Option<&str>) -> Result<Option<Pattern>, String> {
    let parse = |text| Pattern::new(text).map_err(|error| format!("{text} is no pattern: {error}"));
    text.map(parse).transpose()
}
