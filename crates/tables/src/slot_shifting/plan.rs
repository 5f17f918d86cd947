//! What a table guarantees on one processor, over and over.

use super::Interval;
use super::timeline::{Run, earliest_deadline_first};
use crate::making::greatest_common_divisor;
use punctual_model::table::MOST_SLOTS;
use std::fmt;

/// A job of a table: it gets `wcet` slots from its earliest start to its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedJob {
    /// The task whose job it is, as the caller numbers them.
    pub task: usize,
    /// The first slot that it may use, from the start of the table.
    pub earliest: u64,
    /// The first slot that it must not use any more.
    pub deadline: u64,
    /// Slots that it needs at most.
    pub wcet: u64,
}

impl PlannedJob {
    /// The same job when the table is repeated from `start` on.
    pub(super) fn repeated(self, start: u64) -> Self {
        Self { earliest: self.earliest + start, deadline: self.deadline + start, ..self }
    }
}

/// A periodic task that is added to a plan. All numbers are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    /// What each job needs at most.
    pub wcet: u64,
    /// From one release to the next.
    pub period: u64,
    /// From a job's release to its deadline; with the offset, at most the period.
    pub deadline: u64,
    /// From the beginning of the plan to the first release.
    pub offset: u64,
}

/// Jobs that have to share more slots than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The first slot.
    pub from: u64,
    /// The first slot after.
    pub to: u64,
    /// The slots needed by jobs that must run within.
    pub needed: u64,
}

/// Why jobs do not make a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// A job's window is empty, shorter than what it needs, or exceeds the plan.
    Window(PlannedJob),
    /// Some jobs have too little time.
    Overload(Overload),
    /// The plan would have more slots than this crate keeps.
    TooLong(u64),
}

impl fmt::Display for PlanError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window(PlannedJob { task, earliest, deadline, wcet }) => write!(
                to,
                "task {task}: {wcet} slots do not fit between slots {earliest} and {deadline} of the table"
            ),
            Self::Overload(Overload { from, to: end, needed }) => write!(
                to,
                "jobs need {needed} slots between slots {from} and {end}: {} too many",
                needed - (end - from)
            ),
            Self::TooLong(slots) => write!(to, "the table has {slots} slots; the most is {MOST_SLOTS}"),
        }
    }
}

impl std::error::Error for PlanError {}

/// The jobs of a table on one processor. All meet their deadlines under EDF.
#[derive(Clone, Debug)]
pub struct Plan {
    length: u64,
    /// By deadline.
    jobs: Vec<PlannedJob>,
    schedule: Vec<Run>,
}

impl Plan {
    /// A plan that is repeated after `length` slots; or why it is not feasible.
    pub fn new(length: u64, mut jobs: Vec<PlannedJob>) -> Result<Self, PlanError> {
        if !(1..=MOST_SLOTS).contains(&length) {
            return Err(PlanError::TooLong(length));
        }
        if let Some(job) = jobs.iter().find(|job| {
            let fits = job.deadline.checked_sub(job.earliest).is_some_and(|window| window >= job.wcet);
            job.wcet == 0 || !fits || job.deadline > length
        }) {
            return Err(PlanError::Window(*job));
        }
        jobs.sort_by_key(|job| (job.deadline, job.earliest));
        let schedule = earliest_deadline_first(&jobs).map_err(PlanError::Overload)?;
        Ok(Self { length, jobs, schedule })
    }

    /// Slots after which it is repeated.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its jobs, by deadline.
    pub fn jobs(&self) -> &[PlannedJob] {
        &self.jobs
    }

    /// The plan with a periodic task added.
    pub fn with_periodic(&self, task: usize, added: Periodic) -> Result<Self, PlanError> {
        let Periodic { wcet, period, deadline, offset } = added;
        let end = offset.saturating_add(deadline);
        let first = PlannedJob { task, earliest: offset, deadline: end, wcet };
        if period == 0 || end > period {
            return Err(PlanError::Window(first));
        }
        let cycles = period / greatest_common_divisor(self.length, period);
        let length = self.length.saturating_mul(cycles);
        if length > MOST_SLOTS {
            return Err(PlanError::TooLong(length));
        }
        let repeated =
            (0..cycles).flat_map(|cycle| self.jobs.iter().map(move |job| job.repeated(cycle * self.length)));
        let added = (0..length / period).map(|number| first.repeated(number * period));
        Self::new(length, repeated.chain(added).collect())
    }

    /// The plan without the jobs of a task: what remains meets its deadlines all the more.
    pub fn without(&self, task: usize) -> Self {
        let kept: Vec<PlannedJob> = self.jobs.iter().copied().filter(|job| job.task != task).collect();
        Self::new(self.length, kept).unwrap_or_else(|_| self.clone())
    }

    /// Its intervals with their spare capacities.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut needs = Vec::new();
        for jobs in self.jobs.chunk_by(|a, b| a.deadline == b.deadline) {
            let start = needs.last().map_or(0, |&(end, _)| end);
            let earliest = jobs[0].earliest;
            if earliest > start {
                needs.push((earliest, 0));
            }
            needs.push((jobs[0].deadline, jobs.iter().map(|job| job.wcet).sum()));
        }
        let end = needs.last().map_or(0, |&(end, _)| end);
        if end < self.length {
            needs.push((self.length, 0));
        }
        spare_capacities(&needs)
    }

    /// When each job runs if there are no others: EDF.
    pub fn schedule(&self) -> &[Run] {
        &self.schedule
    }
}

/// From the end of each interval and the slots its jobs need.
fn spare_capacities(needs: &[(u64, u64)]) -> Vec<Interval> {
    let starts = std::iter::once(0).chain(needs.iter().map(|&(end, _)| end));
    let mut intervals: Vec<Interval> = starts
        .zip(needs)
        .map(|(start, &(end, need))| Interval { end, spare: (end - start) as i64 - need as i64 })
        .collect();
    let mut borrowed = 0;
    for interval in intervals.iter_mut().rev() {
        interval.spare += borrowed;
        borrowed = interval.spare.min(0);
    }
    intervals
}
