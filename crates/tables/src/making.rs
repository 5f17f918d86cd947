//! Makes time-triggered tables: which job each processor serves in each slot, so that every job of every task
//! gets its slots between its release and its deadline.
//!
//! | processors | method | finds a table if there is one |
//! |---|---|---|
//! | one | EDF (Dertouzos 1974); precedence by modified windows (Chetto, Silly, Bouchentouf 1990) | yes |
//! | several, with migration | maximum flow (Horn 1974), wrap-around (McNaughton 1959) | yes, without order |
//! | several, without migration | worst fit, first fit, search of partitions; EDF | if the search ends |
//!
//! A task that needs a processor for itself gets the last that it may use and no other such task needs; where
//! there is no table then, another one.
//!
//! Deterministic: the same request gives the same table. What cannot be scheduled is refused with the
//! processors, the slots and the excess.

mod exclusive;
mod flow;
mod migration;
mod partition;
mod refusal;
mod slots;
mod uniprocessor;
mod windows;
mod wrap;

pub use migration::replan;
pub use refusal::Refusal;
pub use slots::{Margin, SlotError, Timing, TimingInSlots, in_slots};

use punctual_model::table::{Clock, MOST_SLOTS, Method};
use punctual_model::{Duration, Section, Table, TableJob, TableRun, TableTask};
use windows::Windows;

/// What a table is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Length of a slot.
    pub slot: Duration,
    /// The clock whose instants begin slots.
    pub clock: Clock,
    /// The processors that follow the table, ascending.
    pub processors: Vec<u32>,
    /// Whether a job may continue on another processor.
    pub migration: bool,
    /// The tasks.
    pub tasks: Vec<TableTask>,
}

/// Makes a table.
///
/// # Errors
/// If there is none, or (several processors without migration, or with precedence) none was found.
pub fn make(request: &Request) -> Result<Table, Refusal> {
    let mut table = empty(request)?;
    table.validate("table").map_err(Refusal::Invalid)?;
    let (method, windows, runs) = schedule(&table, request.migration)?;
    table.method = method;
    table.jobs = windows.jobs(&table.tasks, table.slots);
    table.runs = tidied(runs);
    Ok(table)
}

type Schedule = (Method, Windows, Vec<TableRun>);

/// By the first choice of processors for tasks that need them for themselves that leaves a schedule.
fn schedule(table: &Table, migration: bool) -> Result<Schedule, Refusal> {
    let mut refusal = None;
    for allowed in exclusive::choices(&table.processors, &table.tasks)? {
        let problem = Problem::new(table, allowed);
        problem.utilization()?;
        match problem.schedule(migration) {
            Ok(schedule) => return Ok(schedule),
            Err(refused) => refusal = refusal.or(Some(refused)),
        }
    }
    Err(refusal.unwrap_or(Refusal::Unplaced { tasks: Vec::new(), closest: None, is_certain: false }))
}

/// The table without jobs.
fn empty(request: &Request) -> Result<Table, Refusal> {
    let slots = hyperperiod(&request.tasks)?;
    Ok(Table {
        slot_ns: request.slot,
        slots,
        clock: request.clock,
        processors: request.processors.clone(),
        method: Method::Other,
        tasks: request.tasks.clone(),
        jobs: Vec::new(),
        runs: Vec::new(),
    })
}

/// The least common multiple of all periods.
fn hyperperiod(tasks: &[TableTask]) -> Result<u64, Refusal> {
    let mut slots = 1;
    for task in tasks {
        let period = task.period.max(1);
        slots = slots / greatest_common_divisor(slots, period) * period;
        if slots > MOST_SLOTS {
            let periods = tasks.iter().map(|task| (task.name.clone(), task.period)).collect();
            return Err(Refusal::TooLong { periods });
        }
    }
    Ok(slots)
}

pub(crate) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// What all methods know of a request.
struct Problem<'a> {
    slots: u64,
    processors: &'a [u32],
    tasks: &'a [TableTask],
    /// The processors that each task may use, without those that others have for themselves.
    allowed: Vec<Vec<u32>>,
}

impl<'a> Problem<'a> {
    fn new(table: &'a Table, allowed: Vec<Vec<u32>>) -> Self {
        let Table { slots, processors, tasks, .. } = table;
        Self { slots: *slots, processors, tasks, allowed }
    }

    fn schedule(&self, migration: bool) -> Result<Schedule, Refusal> {
        match (self.processors, migration) {
            ([processor], _) => {
                let windows = Windows::overlapping(self.tasks)?;
                let runs = uniprocessor::edf(self, &windows, &self.all(), *processor)?;
                Ok((Method::Edf, windows, runs))
            }
            (_, true) => {
                let windows = Windows::disjoint(self.tasks)?;
                let runs = migration::schedule(self, &windows)?;
                Ok((Method::MaximumFlow, windows, runs))
            }
            (_, false) => partition::schedule(self),
        }
    }

    fn all(&self) -> Vec<usize> {
        (0..self.tasks.len()).collect()
    }

    /// Slots that a task needs in one repetition.
    fn demand(&self, task: usize) -> u64 {
        self.slots / self.tasks[task].period * self.tasks[task].wcet
    }

    /// Slots that some tasks need in one repetition.
    fn demand_of(&self, tasks: &[usize]) -> u64 {
        tasks.iter().map(|&task| self.demand(task)).sum()
    }

    /// Whether all of these tasks may use a processor.
    fn may_use(&self, tasks: &[usize], processor: u32) -> bool {
        tasks.iter().all(|&task| self.allowed[task].contains(&processor))
    }

    /// All tasks together cannot need more than there is.
    fn utilization(&self) -> Result<(), Refusal> {
        let needed: u64 = (0..self.tasks.len()).map(|task| self.demand(task)).sum();
        let available = self.slots * self.processors.len() as u64;
        match needed > available {
            true => {
                Err(Refusal::Utilization { needed, slots: self.slots, processors: self.processors.to_vec() })
            }
            false => Ok(()),
        }
    }

    /// The jobs of some tasks, with their places in the list of all jobs.
    fn jobs_of(&self, windows: &Windows, tasks: &[usize]) -> Vec<(usize, TableJob)> {
        let mut first = 0;
        let mut found = Vec::new();
        for (place, task) in self.tasks.iter().enumerate() {
            let count = (self.slots / task.period) as usize;
            if tasks.contains(&place) {
                let jobs = windows.jobs_of(place, task, self.slots);
                found.extend(jobs.enumerate().map(|(number, job)| (first + number, job)));
            }
            first += count;
        }
        found
    }
}

/// Runs by processor and slot, those of one job that touch as one.
fn tidied(mut runs: Vec<TableRun>) -> Vec<TableRun> {
    runs.sort_by_key(|run| (run.processor, run.from));
    let mut tidy: Vec<TableRun> = Vec::with_capacity(runs.len());
    for run in runs {
        match tidy.last_mut() {
            Some(last) if (last.processor, last.job, last.to) == (run.processor, run.job, run.from) => {
                last.to = run.to;
            }
            _ => tidy.push(run),
        }
    }
    tidy
}
