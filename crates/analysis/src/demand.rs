//! How much processor time tasks and the kernel may take in a window.

use crate::bound::{Cause, NoBound, Part};
use crate::platform::Platform;
use crate::system::System;
use crate::task::Task;
use crate::window::sum;
use punctual_model::Duration;

/// A task that delays the one that is analysed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other {
    /// Its index.
    pub(crate) task: usize,
    /// How long before the window the jobs may have been released that still run in it.
    pub(crate) carry_in: u64,
}

/// All that may take processor time in windows of one task.
#[derive(Debug)]
pub(crate) struct Demand<'a> {
    pub(crate) system: &'a System,
    pub(crate) me: usize,
    pub(crate) others: Vec<Other>,
    /// The processors on which the task may run.
    pub(crate) platforms: Vec<&'a Platform>,
}

impl<'a> Demand<'a> {
    pub(crate) fn new(system: &'a System, me: usize, others: Vec<Other>) -> Demand<'a> {
        let own = &system.tasks[me].processors;
        let platforms = system.platforms.iter().filter(|it| own.contains(&it.cpu)).collect();
        Demand { system, me, others, platforms }
    }

    pub(crate) fn task(&self) -> &'a Task {
        &self.system.tasks[self.me]
    }

    /// Fails if the demand of this task or of one that delays it has no bound at all, or the processors
    /// cannot give it in the long run: then windows would be tried until they are too long.
    pub(crate) fn check(&self) -> Result<(), NoBound> {
        for index in self.tasks() {
            let task = &self.system.tasks[index];
            if task.arrivals.most(1).is_none() {
                return Err(NoBound::Arrivals(index));
            }
            if task.cost(1).is_none() {
                return Err(NoBound::Cost(index));
            }
        }
        let suspended = self.task().suspension.ns() as f64 * self.task().arrivals.rate().unwrap_or(0.0);
        let suspended = if self.processors() == 1 { suspended } else { 0.0 };
        if self.fits(self.utilization() + suspended) { Ok(()) } else { Err(self.endless()) }
    }

    /// Why windows of the task may never end.
    pub(crate) fn endless(&self) -> NoBound {
        match !self.task().suspension.is_zero() && self.fits(self.utilization()) {
            true => NoBound::Suspension,
            false => NoBound::Overload,
        }
    }

    fn fits(&self, utilization: f64) -> bool {
        // Far more than rounding can amount to.
        utilization <= self.processors() as f64 * (1.0 + 1e-6)
    }

    /// The share of one processor that the task and those that delay it take in the long run.
    fn utilization(&self) -> f64 {
        self.tasks().map(|task| self.system.tasks[task].utilization().unwrap_or(0.0)).sum()
    }

    fn tasks(&self) -> impl Iterator<Item = usize> {
        self.others.iter().map(|other| other.task).chain([self.me])
    }

    fn processors(&self) -> usize {
        self.task().processors.len()
    }

    /// What the first `jobs` of the task take themselves, with what their releases and suspensions let the
    /// kernel take.
    pub(crate) fn own(&self, jobs: u64) -> Option<u64> {
        sum([
            self.task().cost(jobs),
            jobs.checked_mul(self.task().suspension.ns()),
            self.blocking(jobs),
            self.switches(jobs),
        ])
    }

    /// Whenever the task suspends itself, a less urgent one may run, and keep the processor once more.
    fn blocking(&self, jobs: u64) -> Option<u64> {
        let longest = self.platforms.iter().map(|it| it.blocking.ns()).max().unwrap_or(0);
        jobs.checked_mul(self.task().suspensions)?.checked_add(1)?.checked_mul(longest)
    }

    /// The first pass of the scheduler is part of the blocking.
    fn switches(&self, jobs: u64) -> Option<u64> {
        let releases = (jobs - 1).checked_add(jobs.checked_mul(self.task().suspensions)?)?;
        releases.checked_mul(2 * self.switch())
    }

    fn switch(&self) -> u64 {
        self.platforms.iter().map(|it| it.switch.ns()).max().unwrap_or(0)
    }

    /// What the jobs of another task take that may run in a window of `span`. Each job, and each time it
    /// resumes, costs two passes of the scheduler.
    ///
    /// Jobs that were released up to R before the window may still run in it. The first of them ends at most
    /// R after its release; if it is older than R − C, it has less than C left. Then the last one is released
    /// later by as much, so that both together take at most C (Bertogna and Cirinei 2007): C and the others
    /// of those released in R − C before the window or in it.
    pub(crate) fn other(&self, other: Other, span: u64) -> Option<u64> {
        let task = &self.system.tasks[other.task];
        let jobs = task.arrivals.most(span.checked_add(other.carry_in)?)?;
        let passes = jobs.checked_mul(task.suspensions.checked_add(1)?)?.checked_mul(2 * self.switch())?;
        let all = task.cost(jobs)?;
        let one = task.cost(1)?;
        let recent = task.arrivals.most(span.checked_add(other.carry_in.saturating_sub(one))?)?;
        let aligned = one.checked_add(task.cost(recent.saturating_sub(1))?)?;
        let work = if other.carry_in == 0 { all } else { all.min(aligned) };
        work.checked_add(passes)
    }

    /// What interrupts take in a window of `span`.
    pub(crate) fn interrupts(&self, span: u64) -> Option<u64> {
        sum(self.platforms.iter().map(|it| it.interference(span)))
    }

    /// The parts of a window of `span` that holds `jobs` of the task; `others` tells what each task takes.
    pub(crate) fn parts(&self, jobs: u64, span: u64, others: impl Fn(Other) -> Option<u64>) -> Vec<Part> {
        let task = self.task();
        let own = [
            (Cause::Jitter, Some(task.jitter.ns())),
            (Cause::Own, task.cost(jobs)),
            (Cause::Suspension, jobs.checked_mul(task.suspension.ns())),
        ];
        let kernel = [
            (Cause::Blocking, self.blocking(jobs)),
            (Cause::Switches, self.switches(jobs)),
            (Cause::Interrupts, self.interrupts(span)),
        ];
        let others = self.others.iter().map(|&other| (Cause::Task(other.task), others(other)));
        let all = own.into_iter().chain(others).chain(kernel);
        let parts =
            all.map(|(cause, ns)| Part { cause, duration: Duration::from_ns(ns.unwrap_or(u64::MAX)) });
        parts.filter(|part| !part.duration.is_zero()).collect()
    }
}
