//! [`Causes`] as a section.

use super::{Cause, Causes, LateTask, Limit, MAX_CAUSES, Others, validate};
use crate::policy::Policy;
use crate::section::{Loss, MergeError, Section, Span, Valid};
use crate::time::Duration;
use std::cmp::Reverse;

/// The greatest number of causes that are told apart while they are summed up.
const MOST_KEPT: usize = 1_024;

/// The greatest number of a task's late jobs after a merge.
const MOST_WORST: usize = 8;

impl Section for Causes {
    fn span(&self) -> Option<Span> {
        Some(Span { from_ns: self.from_ns, until_ns: self.until_ns })
    }

    /// None of its own: time that was not seen is a part of jobs.
    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }

    fn validate(&self, path: &str) -> Valid {
        validate::causes(path, self)
    }

    /// Threads of the same name, policy and kind of limit become one.
    fn merge(mut self, other: Causes) -> Result<Causes, MergeError> {
        self.join(other);
        self.tasks.iter_mut().for_each(LateTask::bound);
        Ok(self)
    }
}

impl Causes {
    /// Merges others, without leaving out a cause: the result is the same in any order.
    pub fn join(&mut self, other: Causes) {
        self.from_ns = self.from_ns.min(other.from_ns);
        self.until_ns = self.until_ns.max(other.until_ns);
        self.lacks.extend(other.lacks);
        self.lacks.sort();
        self.lacks.dedup();
        for task in other.tasks {
            match self.tasks.iter_mut().find(|known| known.is_like(&task)) {
                Some(known) => known.join(task),
                None => self.tasks.push(task),
            }
        }
        self.sort();
    }

    /// The threads with most late jobs first.
    pub fn sort(&mut self) {
        self.tasks.sort_by_cached_key(|it| {
            (Reverse(it.late), it.task.clone(), it.policy.number(), it.priority, it.limit, it.tid)
        });
    }
}

impl LateTask {
    fn is_like(&self, other: &LateTask) -> bool {
        let of = |it: &LateTask| (it.policy, it.priority, it.limit);
        self.task == other.task && of(self) == of(other)
    }

    /// A task of which no job was seen yet.
    pub fn new(task: String, limit: Limit, limit_ns: Duration) -> LateTask {
        LateTask {
            task,
            tid: 0,
            policy: Policy::Other,
            priority: 0,
            jobs: 0,
            late: 0,
            perhaps: 0,
            cut_off_ns: None,
            limit,
            limit_ns,
            usual_cost_ns: Duration::ZERO,
            longest_ns: Duration::ZERO,
            causes: Vec::new(),
            others: None,
            worst: Vec::new(),
        }
    }

    /// The same task, as if no job had been seen yet.
    pub fn without_jobs(&self) -> LateTask {
        let LateTask { tid, policy, priority, usual_cost_ns, .. } = *self;
        let task = LateTask::new(self.task.clone(), self.limit, self.limit_ns);
        LateTask { tid, policy, priority, usual_cost_ns, ..task }
    }

    /// Adds jobs of the same task.
    pub fn join(&mut self, other: LateTask) {
        self.tid = self.tid.min(other.tid);
        self.jobs = self.jobs.saturating_add(other.jobs);
        self.late = self.late.saturating_add(other.late);
        self.perhaps = self.perhaps.saturating_add(other.perhaps);
        self.cut_off_ns = self.cut_off_ns.max(other.cut_off_ns);
        self.limit_ns = self.limit_ns.min(other.limit_ns);
        self.usual_cost_ns = self.usual_cost_ns.max(other.usual_cost_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        for cause in other.causes {
            self.add(cause);
        }
        if let Some(more) = other.others {
            self.others.get_or_insert_default().add(more);
        }
        self.sort();
        self.worst.extend(other.worst);
        self.worst.sort_by_key(|job| (Reverse(job.response_ns), job.tid, job.begin_ns));
        self.worst.truncate(MOST_WORST);
    }

    /// Adds late jobs with one cause.
    pub fn add(&mut self, cause: Cause) {
        let same = |known: &&mut Cause| known.reason == cause.reason && known.inversion == cause.inversion;
        match self.causes.iter_mut().find(same) {
            Some(known) => known.merge(cause),
            None => self.causes.push(cause),
        }
        if self.causes.len() > MOST_KEPT {
            self.bound();
        }
    }

    /// Puts the causes in order, and counts those beyond [`MAX_CAUSES`] as others.
    pub fn bound(&mut self) {
        self.sort();
        for cause in self.causes.drain(MAX_CAUSES.min(self.causes.len())..) {
            self.others.get_or_insert_default().add(Others { jobs: cause.jobs, ns: cause.ns });
        }
    }

    fn sort(&mut self) {
        self.causes.sort_by(|one, other| {
            let most = (other.ns, other.jobs).cmp(&(one.ns, one.jobs));
            most.then_with(|| one.order().cmp(&other.order()))
        });
    }
}

impl Cause {
    fn merge(&mut self, other: Cause) {
        self.jobs = self.jobs.saturating_add(other.jobs);
        self.ns += other.ns;
        self.least_ns = self.least_ns.min(other.least_ns);
        self.faulting_jobs = self.faulting_jobs.saturating_add(other.faulting_jobs);
        let faults = |it: &Cause| (it.faults, it.major_faults);
        (self.faults, self.major_faults) = faults(self).max(faults(&other));
        let longest = |it: &Cause| (it.longest.ns, Reverse(it.longest.from_ns), it.longest.tid);
        if longest(&other) > longest(self) {
            self.longest = other.longest;
        }
    }

    /// What decides between causes of the same time.
    fn order(&self) -> impl Ord {
        let reason = &self.reason;
        let names = [&reason.thread, &reason.interrupt, &reason.call, &reason.object].map(Option::clone);
        (reason.kind, names, reason.policy.map(crate::Policy::number), reason.priority, self.inversion)
    }
}

impl Others {
    /// More of them.
    pub fn add(&mut self, more: Others) {
        self.jobs = self.jobs.saturating_add(more.jobs);
        self.ns += more.ns;
    }
}
