//! The section `table`: a time-triggered schedule, repeated for ever. Which job each processor serves in each
//! slot, and the tasks that the jobs are of. (papers: time-triggered.)
//!
//! Time is counted in slots of equal length from the start of the table. [`crate::check::table`] checks a
//! table against its tasks; making one is the duty of the crate `schedule`.

mod section;
mod validate;

use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest table, in slots.
pub const MOST_SLOTS: u64 = 1 << 20;

/// A time-triggered schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Length of a slot.
    pub slot_ns: Duration,
    /// Slots after which the table is repeated: a multiple of every period.
    pub slots: u64,
    /// The clock whose instants begin slots.
    pub clock: Clock,
    /// The processors that follow the table: numbers of Linux, ascending.
    pub processors: Vec<u32>,
    /// How it was made.
    pub method: Method,
    /// The tasks.
    pub tasks: Vec<TableTask>,
    /// The jobs of one repetition, by task and release.
    pub jobs: Vec<TableJob>,
    /// Which slots belong to which job, by processor and slot. Slots of no run are idle.
    pub runs: Vec<TableRun>,
}

/// A clock that can begin slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// CLOCK_MONOTONIC.
    #[default]
    #[serde(rename = "CLOCK_MONOTONIC")]
    Monotonic,
    /// CLOCK_TAI, which several machines can share.
    #[serde(rename = "CLOCK_TAI")]
    Tai,
}

/// How a table was made, which says what a refusal would have meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Earliest deadline first on one processor: finds a table if there is one.
    Edf,
    /// Maximum flow with migration: finds a table if there is one (without precedence).
    MaximumFlow,
    /// First fit by decreasing utilization, then EDF on each processor. May miss a table.
    FirstFit,
    /// Worst fit by decreasing utilization, then EDF on each processor. May miss a table.
    WorstFit,
    /// A search of all partitions, then EDF on each processor. May end before it has found a table.
    Search,
    /// In some other way, outside Punctual.
    Other,
}

/// A task of a table. Times are in slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableTask {
    /// Its name; no other task of the table has it.
    pub name: String,
    /// Which thread it is; if absent, the thread with the task's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<ThreadPattern>,
    /// Slots from one activation to the next.
    pub period: u64,
    /// Slots that a job needs at most.
    pub wcet: u64,
    /// The slot of the first activation; less than the period.
    #[serde(skip_serializing_if = "crate::section::is_zero", default)]
    pub offset: u64,
    /// Slots from an activation until its job must have ended; at most the period.
    pub deadline: u64,
    /// The processors that it may use; absent if all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processors: Vec<u32>,
    /// Whether nothing else runs on its processors: no other task, no aperiodic job.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub exclusive: bool,
    /// Tasks of the same period whose jobs must end before its own start: places in the list of tasks.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<usize>,
    /// What happens to a job that has used its slots.
    #[serde(skip_serializing_if = "OnOverrun::is_default", default)]
    pub on_overrun: OnOverrun,
}

/// Which thread a task is. Patterns are globs (`*`, `?`); a thread must match all that are given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPattern {
    /// The thread's name (`comm`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comm: Option<String>,
    /// The command line of its process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<String>,
    /// Its control group, as in `/proc/PID/cgroup`: `/system.slice/control.service`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cgroup: Option<String>,
}

/// What happens to a job that has used its slots and has not ended. It loses the processor in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOverrun {
    /// It goes on in the next slot of its task.
    #[default]
    Continue,
    /// It loses the task's next job: the thread gets no slot until the one after that.
    Skip,
    /// Its process is stopped (SIGSTOP).
    Stop,
    /// As `continue`; whoever watches the table is told.
    Tell,
}

/// A job of a table. Its window lies within that of its activation, and is shorter where other tasks must
/// run before or after it. If the window exceeds the table, its rest is at the table's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableJob {
    /// The place of its task in the list of tasks.
    pub task: usize,
    /// The first slot that it may use.
    pub release: u64,
    /// The first slot that it must not use any more.
    pub deadline: u64,
    /// The slots that it gets.
    pub slots: u64,
}

/// Consecutive slots of one processor that belong to one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRun {
    /// The processor.
    pub processor: u32,
    /// The first slot.
    pub from: u64,
    /// The first slot after.
    pub to: u64,
    /// The place of the job in the list of jobs.
    pub job: usize,
}

impl Table {
    /// Length of one repetition; saturates.
    pub fn length(&self) -> Duration {
        Duration::from_ns(self.slot_ns.ns().saturating_mul(self.slots))
    }

    /// The runs of a processor, by slot.
    pub fn runs_on(&self, processor: u32) -> &[TableRun] {
        let from = self.runs.partition_point(|run| run.processor < processor);
        let length = self.runs[from..].partition_point(|run| run.processor == processor);
        &self.runs[from..from + length]
    }

    /// The job that has this slot of a processor; `None` if it is idle.
    pub fn job_at(&self, processor: u32, slot: u64) -> Option<usize> {
        let runs = self.runs_on(processor);
        let run = runs.get(runs.partition_point(|run| run.to <= slot))?;
        (run.from <= slot).then_some(run.job)
    }

    /// The task of a job.
    pub fn task_of(&self, job: usize) -> &TableTask {
        &self.tasks[self.jobs[job].task]
    }

    /// Slots of a processor that belong to jobs.
    pub fn busy_slots(&self, processor: u32) -> u64 {
        self.runs_on(processor).iter().map(TableRun::slots).sum()
    }

    /// Whether a job runs on more than one processor.
    pub fn migrates(&self) -> bool {
        let mut processors = vec![None; self.jobs.len()];
        self.runs.iter().any(|run| *processors[run.job].get_or_insert(run.processor) != run.processor)
    }
}

impl TableTask {
    /// Its processors, of those of the table.
    pub fn allowed<'a>(&'a self, table: &'a [u32]) -> &'a [u32] {
        if self.processors.is_empty() { table } else { &self.processors }
    }
}

impl TableJob {
    /// How far into its window a slot of the table lies, counted from the first activation's repetition;
    /// `None` if it is outside.
    pub fn unwrapped(&self, slot: u64, length: u64) -> Option<u64> {
        [slot, slot + length].into_iter().find(|slot| (self.release..self.deadline).contains(slot))
    }
}

impl TableRun {
    /// Its length.
    pub fn slots(&self) -> u64 {
        self.to - self.from
    }
}

impl OnOverrun {
    fn is_default(&self) -> bool {
        *self == OnOverrun::default()
    }
}

impl Clock {
    /// Its name in Linux: `CLOCK_MONOTONIC`.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Monotonic => "CLOCK_MONOTONIC",
            Clock::Tai => "CLOCK_TAI",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Edf => "EDF",
            Method::MaximumFlow => "maximum flow",
            Method::FirstFit => "first fit decreasing, EDF",
            Method::WorstFit => "worst fit decreasing, EDF",
            Method::Search => "search of partitions, EDF",
            Method::Other => "made elsewhere",
        })
    }
}
