//! Slots of one processor at run time.

use super::intervals::Intervals;
use super::{Interval, Periodic, Plan, PlanError};
use punctual_model::counted;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::num::NonZeroU64;

/// How many slots ahead an aperiodic job's deadline may be: what is planned until then is kept.
pub const FARTHEST: u64 = 1 << 16;

/// A guaranteed job, in the order in which jobs were first known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u64);

/// Whose job it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A task of the plan.
    Task(usize),
    /// A job that was accepted at run time.
    Aperiodic,
}

/// A slot that is given to a guaranteed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The job.
    pub job: JobId,
    /// Whose job it is.
    pub owner: Owner,
    /// The first slot after its deadline.
    pub deadline: u64,
    /// The slots that it may still get after this one.
    pub left: u64,
}

/// Why an aperiodic job is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Slots that are free until its deadline.
    pub free: u64,
    /// Slots that it needs.
    pub needed: u64,
    /// The earliest deadline with which it would be accepted now, if there is any within sight.
    pub earliest_deadline: Option<u64>,
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { free, needed, earliest_deadline } = self;
        write!(to, "needs {} until its deadline, and {free} are free; ", counted(*needed, "slot"))?;
        match earliest_deadline {
            Some(slot) => {
                write!(to, "the earliest deadline that would be accepted is the start of slot {slot}")
            }
            None => to.write_str("no deadline would be accepted"),
        }
    }
}

impl std::error::Error for Refused {}

/// A job that is known, and not over.
#[derive(Clone, Copy, Debug)]
struct Job {
    id: JobId,
    owner: Owner,
    release: u64,
    deadline: u64,
    left: u64,
}

/// Gives out the slots of a processor: to jobs of a plan that is repeated for ever, and to aperiodic jobs
/// that are accepted if all guarantees still hold with them.
#[derive(Clone, Debug)]
pub struct Processor {
    plan: Plan,
    /// The plan's own intervals, from its beginning.
    cycle: Intervals,
    now: u64,
    /// From now to the horizon.
    intervals: Intervals,
    /// Jobs that may run, by deadline; of equal ones the first known.
    ready: BTreeMap<(u64, JobId), Job>,
    /// Later jobs, by release.
    coming: VecDeque<Job>,
    /// Where the plan is repeated next: jobs and intervals are known until there.
    horizon: u64,
    /// Jobs and intervals before this slot are not those of the present plan, or were changed.
    settled: u64,
    known: u64,
}

impl Processor {
    /// A processor whose plan begins with slot 0.
    pub fn new(plan: Plan) -> Self {
        let mut processor = Self {
            cycle: Intervals::from(&plan),
            plan,
            now: 0,
            intervals: Intervals::default(),
            ready: BTreeMap::new(),
            coming: VecDeque::new(),
            horizon: 0,
            settled: 0,
            known: 0,
        };
        processor.repeat_plan();
        processor
    }

    /// The slot that is given out next.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The known intervals, the current one first.
    pub fn intervals(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter()
    }

    /// The slots until `deadline` that no guaranteed job needs, for a job that is ready now.
    pub fn slack(&self, deadline: u64) -> u64 {
        let Some(excess) = deadline.checked_sub(self.horizon) else { return self.intervals.slack(deadline) };
        let length = self.plan.length();
        self.intervals.slack(self.horizon)
            + excess / length * self.cycle.slack(length)
            + self.cycle.slack(excess % length)
    }

    /// Accepts an aperiodic job that is ready now and needs at most `wcet` slots until `deadline`; or says
    /// why not. Exact: what is refused for want of slots cannot be guaranteed by any schedule of this
    /// processor.
    pub fn accept(&mut self, wcet: NonZeroU64, deadline: u64) -> Result<JobId, Refused> {
        let free = self.slack(deadline);
        if wcet.get() > free || deadline > self.now + FARTHEST {
            let earliest_deadline = self.earliest_deadline(wcet);
            return Err(Refused { free, needed: wcet.get(), earliest_deadline });
        }
        self.know_until(deadline);
        self.intervals.reserve(deadline, wcet.get());
        let job = Job {
            id: self.next_id(),
            owner: Owner::Aperiodic,
            release: self.now,
            deadline,
            left: wcet.get(),
        };
        self.ready.insert((deadline, job.id), job);
        Ok(job.id)
    }

    /// The earliest deadline until which `wcet` slots are free, if there is one within sight.
    pub fn earliest_deadline(&self, wcet: NonZeroU64) -> Option<u64> {
        let (mut impossible, mut possible) = (self.now, self.now + FARTHEST);
        if self.slack(possible) < wcet.get() {
            return None;
        }
        while possible - impossible > 1 {
            let between = impossible.midpoint(possible);
            if self.slack(between) >= wcet.get() { possible = between } else { impossible = between }
        }
        Some(possible)
    }

    /// Adds a periodic task to the plan, for good: from the slot that is returned on, where the plan would
    /// have been repeated next; all that is guaranteed before stays as it is.
    pub fn add_periodic(&mut self, task: usize, added: Periodic) -> Result<u64, PlanError> {
        let plan = self.plan.with_periodic(task, added)?;
        self.forget();
        self.plan = plan;
        self.cycle = Intervals::from(&self.plan);
        self.settled = self.horizon;
        Ok(self.horizon)
    }

    /// Forgets the repetitions of the plan that nothing needs which is guaranteed now: they were known for
    /// the sake of jobs that are over.
    fn forget(&mut self) {
        let ready = self.ready.values().map(|job| job.deadline).max().unwrap_or(0);
        let latest = ready.max(self.now).max(self.settled);
        let length = self.plan.length();
        self.horizon -= self.horizon.saturating_sub(latest) / length * length;
        self.coming.retain(|job| job.release < self.horizon);
        self.intervals.end_at(self.horizon);
    }

    /// Removes a periodic task that was added, with all its jobs.
    pub fn remove_periodic(&mut self, task: usize) {
        self.plan = self.plan.without(task);
        self.cycle = Intervals::from(&self.plan);
        let is_its = |job: &Job| job.owner == Owner::Task(task);
        let ready: Vec<JobId> = self.ready.values().filter(|job| is_its(job)).map(|job| job.id).collect();
        ready.into_iter().for_each(|job| _ = self.complete(job));
        let Self { coming, intervals, .. } = self;
        coming.retain(|job| {
            if is_its(job) {
                intervals.give_back(job.deadline, job.left);
            }
            !is_its(job)
        });
    }

    /// Whether accepted jobs still need slots.
    pub fn has_aperiodic(&self) -> bool {
        self.ready.values().any(|job| job.owner == Owner::Aperiodic)
    }

    /// Whether nothing is under way and the plan begins anew with this slot.
    pub fn repeats_plan(&self) -> bool {
        self.now == self.horizon && self.ready.is_empty()
    }

    /// A job is over although it might have got more slots: gives them back. Whether there was such a job.
    pub fn complete(&mut self, job: JobId) -> bool {
        let Some(key) = self.ready.keys().find(|(_, id)| *id == job).copied() else { return false };
        if let Some(job) = self.ready.remove(&key) {
            self.intervals.give_back(job.deadline, job.left);
        }
        true
    }

    /// A job of the plan, released in slot `release`, is over before it began: gives back its slots. Whether
    /// there was such a job.
    pub fn cancel(&mut self, task: usize, release: u64) -> bool {
        self.know_until(release + 1);
        let is_it = |job: &Job| job.owner == Owner::Task(task) && job.release == release;
        if let Some(ready) = self.ready.values().find(|job| is_it(job)).map(|job| job.id) {
            return self.complete(ready);
        }
        let Some(place) = self.coming.iter().position(is_it) else { return false };
        if let Some(job) = self.coming.remove(place) {
            self.intervals.give_back(job.deadline, job.left);
            // It is not to come back.
            self.settled = self.settled.max(job.deadline);
        }
        true
    }

    /// What is repeated.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Gives out a slot: to the ready job with the earliest deadline, or to no guaranteed job.
    pub fn next_slot(&mut self) -> Option<Granted> {
        self.release();
        let earliest = self.ready.keys().next().copied();
        self.give(earliest)
    }

    /// Gives out a slot as a table has it: to the ready job of this task, or to no guaranteed job. Jobs of
    /// the plan keep their deadlines if all slots since their releases were given by the same table, which
    /// meets them.
    pub fn next_slot_for(&mut self, task: Option<usize>) -> Option<Granted> {
        self.release();
        let is_its = |job: &Job| task.is_some_and(|task| job.owner == Owner::Task(task));
        let job = self.ready.iter().find(|(_, job)| is_its(job)).map(|(key, _)| *key);
        self.give(job)
    }

    /// Makes jobs ready that may run from the present slot on.
    fn release(&mut self) {
        self.know_until(self.now + 1);
        let released = self.coming.partition_point(|job| job.release <= self.now);
        self.ready.extend(self.coming.drain(..released).map(|job| ((job.deadline, job.id), job)));
    }

    fn give(&mut self, to: Option<(u64, JobId)>) -> Option<Granted> {
        let granted = to.and_then(|key| {
            let job = self.ready.get_mut(&key)?;
            job.left -= 1;
            let granted = Granted { job: job.id, owner: job.owner, deadline: job.deadline, left: job.left };
            if granted.left == 0 {
                self.ready.remove(&key);
            }
            Some(granted)
        });
        self.intervals.advance(granted.map(|granted| granted.deadline));
        self.now += 1;
        granted
    }

    fn know_until(&mut self, slot: u64) {
        while self.horizon < slot {
            self.repeat_plan();
        }
    }

    /// The plan alone meets all deadlines, so it borrows nothing from what is before it.
    fn repeat_plan(&mut self) {
        let start = self.horizon;
        let shifted = |interval: &Interval| Interval { end: interval.end + start, ..*interval };
        self.intervals.append(self.cycle.iter().map(shifted));
        let mut jobs: Vec<_> = self.plan.jobs().iter().map(|job| job.repeated(start)).collect();
        jobs.sort_by_key(|job| job.earliest);
        for job in jobs {
            let id = self.next_id();
            let owner = Owner::Task(job.task);
            let (release, deadline, left) = (job.earliest, job.deadline, job.wcet);
            self.coming.push_back(Job { id, owner, release, deadline, left });
        }
        self.horizon += self.plan.length();
    }

    fn next_id(&mut self) -> JobId {
        self.known += 1;
        JobId(self.known)
    }
}
