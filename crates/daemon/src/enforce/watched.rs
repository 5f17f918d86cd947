//! One thread that is held to its runtime: what its events mean, and what is done about them.

use super::budget::Budget;
use super::meter::{Births, Meter, NEVER, Record, What};
use super::{Changes, Event, Notice, Overruns, Policy, Target};
use crate::kernel::{self, Processors, Refused, Scheduling, State};
use punctual_protocol::Enforced;

/// The least limit of a thread's clock, so that one processor causes a bounded number of looks: 5,000 a
/// second.
pub(super) const GRAIN: u64 = 200_000;
/// Between two attempts at what the kernel refused.
const RETRY: u64 = 100_000_000;
/// Between two notices about one thread, where they are for information, or a warning.
const QUIET: (u64, u64) = (60_000_000_000, 1_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheduled {
    /// As admitted.
    AsAdmitted,
    /// As before, until then.
    Demoted(u64),
}

/// What is open of a thread.
#[derive(Debug)]
pub(super) struct Events {
    /// If it is held to its runtime.
    pub(super) meter: Option<Meter>,
    /// If it had other processors before.
    pub(super) births: Option<Births>,
}

/// A thread that is held to its runtime, or whose children are sent home.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) spec: u64,
    pub(super) target: Target,
    budget: Budget,
    pub(super) meter: Option<Meter>,
    births: Option<Births>,
    scheduled: Scheduled,
    /// When to look without an event.
    look_at: Option<u64>,
    put_back: u64,
    /// Whether its policy is what someone else made it, and stays.
    is_foreign: bool,
    problem: Option<String>,
    told: Option<u64>,
}

impl Watched {
    pub(super) fn new(spec: u64, target: Target, now: u64) -> Watched {
        let budget = Budget::new(target.times(), now);
        Watched {
            spec,
            target,
            budget,
            meter: None,
            births: None,
            scheduled: Scheduled::AsAdmitted,
            look_at: None,
            put_back: 0,
            is_foreign: false,
            problem: None,
            told: None,
        }
    }

    pub(super) fn is_demoted(&self) -> bool {
        self.scheduled != Scheduled::AsAdmitted
    }

    /// When it is to be looked at without an event.
    pub(super) fn due(&self) -> Option<u64> {
        self.look_at
    }

    /// For `GetSpec`.
    pub(super) fn enforced(&self) -> Option<Enforced> {
        let counted = self.budget.counted();
        self.target.is_held().then(|| Enforced {
            jobs: counted.jobs,
            worst_cost: punctual_model::Duration::from_ns(counted.worst),
            overruns: counted.overruns,
            misses: counted.misses,
            demoted: self.is_demoted(),
            put_back: self.put_back,
            problem: self.problem.clone(),
        })
    }

    /// Another runtime, period or scheduling.
    pub(super) fn retarget(&mut self, target: Target, now: u64) {
        if target.times() != self.target.times() {
            self.budget = self.budget.with(target.times(), now);
            if let Some(meter) = self.meter.as_ref().filter(|_| !self.is_demoted()) {
                // A clock that cannot be set is heard of when it is looked at.
                let _ = meter.set_limit(target.runtime.max(GRAIN));
            }
        }
        self.target = target;
    }

    /// Begins to measure, or says why it cannot be.
    pub(super) fn begin(
        &mut self,
        events: Result<Events, String>,
        policy: &Policy,
        now: u64,
    ) -> Option<Notice> {
        match events {
            Ok(Events { meter: None, births }) => {
                self.births = births;
                None
            }
            Ok(Events { meter: Some(meter), births }) => {
                self.births = births;
                // What it took before is not known.
                self.budget = self.budget.with(self.target.times(), now);
                self.meter = Some(meter);
                self.look_at = policy.polls.then_some(now + self.target.runtime.max(GRAIN));
                None
            }
            Err(why) if !self.target.is_held() => {
                self.fails(format!("what it starts stays on its processor: {why}"))
            }
            Err(why) => self.fails(format!("its runtime is not enforced: {why}")),
        }
    }

    fn notice(&self, event: Event) -> Notice {
        Notice { spec: self.spec, thread: self.target.thread.number, event }
    }

    fn fails(&mut self, reason: String) -> Option<Notice> {
        let is_new = self.problem.as_ref() != Some(&reason);
        self.problem = Some(reason.clone());
        is_new.then(|| self.notice(Event::Failed(reason)))
    }

    /// Its thread has ended.
    pub(super) fn ended(&mut self) -> Events {
        self.look_at = None;
        Events { meter: self.meter.take(), births: self.births.take() }
    }

    /// What it has started since the last call, and where it is sent: to the processors that the thread had
    /// before it was attached.
    pub(super) fn born(&mut self) -> Vec<(u32, State, Processors)> {
        let born = self.births.as_mut().map(Births::read).unwrap_or_default();
        born.into_iter().map(|child| (child, self.target.applied, self.target.home)).collect()
    }

    /// Takes its events, and does what is to be done.
    pub(super) fn look(&mut self, policy: &Policy, records: &mut Vec<Record>) -> Option<Notice> {
        // Before the records are read: later ones belong to the next look.
        let now = super::now();
        let meter = self.meter.as_mut()?;
        records.clear();
        meter.read(records);
        let waited = meter.waited();
        self.budget.advance(records, waited);
        if !self.target.thread.lives() {
            self.look_at = None;
            return None;
        }
        let changed = self.heed_changes(policy);
        if changed.as_ref().is_some_and(|notice| matches!(notice.event, Event::Changed(_))) {
            return changed;
        }
        let done = match self.scheduled {
            Scheduled::Demoted(until) if now >= until => self.promote(now, policy),
            Scheduled::Demoted(_) => None,
            Scheduled::AsAdmitted => {
                let has_fired = records.iter().any(|record| record.what == What::Sample);
                self.hold(now, has_fired, policy)
            }
        };
        changed.or(done)
    }

    /// What it is to have now.
    fn expected(&self) -> State {
        let applied = self.target.applied;
        if self.is_demoted() { State { scheduling: self.target.demoted, ..applied } } else { applied }
    }

    /// Whether someone else changed it, and what is done about that.
    fn heed_changes(&mut self, policy: &Policy) -> Option<Notice> {
        let number = self.target.thread.number;
        let (is, expected) = (State::read(number).ok()?, self.expected());
        self.is_foreign = false;
        if is.scheduling.matches(&expected.scheduling) && is.processors == expected.processors {
            return None;
        }
        let what = match is.scheduling.matches(&expected.scheduling) {
            true => format!("processors {:?}", is.processors),
            false => is.scheduling.to_string(),
        };
        match policy.changes {
            Changes::Show => {
                self.is_foreign = !is.scheduling.matches(&expected.scheduling);
                None
            }
            Changes::Detach => {
                self.look_at = None;
                Some(self.notice(Event::Changed(what)))
            }
            Changes::PutBack => match expected.enact(number, &is) {
                Ok(()) => {
                    self.put_back += 1;
                    self.may_tell(QUIET.1).then(|| self.notice(Event::PutBack(what)))
                }
                Err(error) if error.is_gone() => None,
                Err(error) => self.fails(format!("someone else changed it to {what}: {error}")),
            },
        }
    }

    /// Stops it if its budget is used up; else sets its clock to what is left.
    fn hold(&mut self, now: u64, has_fired: bool, policy: &Policy) -> Option<Notice> {
        let Some(due) = self.budget.exhausted(now) else {
            let left = self.budget.left().max(GRAIN);
            if has_fired {
                self.set_limit(left);
            }
            self.look_at = policy.polls.then_some(now + left);
            return None;
        };
        match policy.overruns {
            // What someone else made of it is not taken from it.
            _ if self.is_foreign => self.leave_until(due, now, policy),
            Overruns::Count => self.leave_until(due, now, policy),
            Overruns::Warn => {
                self.leave_until(due, now, policy);
                self.may_tell(QUIET.1).then(|| self.notice(Event::Overrun))
            }
            Overruns::Demote | Overruns::Detach => match self.demote() {
                Ok(()) if policy.overruns == Overruns::Detach => Some(self.notice(Event::Exhausted)),
                Ok(()) => self.may_tell(QUIET.0).then(|| self.notice(Event::Overrun)),
                Err(error) if error.is_gone() => None,
                Err(error) => {
                    self.set_limit(RETRY);
                    self.fails(error.to_string())
                }
            },
        }
    }

    /// Looks at it again when the next budget is due.
    fn leave_until(&mut self, due: u64, now: u64, policy: &Policy) -> Option<Notice> {
        let wait = due.saturating_sub(now).max(GRAIN);
        self.set_limit(wait);
        self.look_at = policy.polls.then_some(now + wait);
        None
    }

    fn set_limit(&mut self, limit: u64) {
        let set = self.meter.as_ref().map_or(Ok(()), |meter| meter.set_limit(limit));
        if let Err(error) = set {
            self.problem = Some(format!("its clock cannot be set: {error}"));
        }
    }

    fn demote(&mut self) -> Result<(), Refused> {
        kernel::schedule(self.target.thread.number, &self.target.demoted)?;
        let until = self.budget.stop();
        (self.scheduled, self.look_at) = (Scheduled::Demoted(until), Some(until));
        self.set_limit(NEVER);
        Ok(())
    }

    fn promote(&mut self, now: u64, policy: &Policy) -> Option<Notice> {
        if let Err(error) = kernel::schedule(self.target.thread.number, &self.target.applied.scheduling) {
            self.look_at = (!error.is_gone()).then_some(now + RETRY);
            return self.fails(format!("it cannot be promoted again: {error}"));
        }
        self.budget.resume(now);
        let left = self.budget.left().max(GRAIN);
        (self.scheduled, self.problem) = (Scheduled::AsAdmitted, None);
        self.look_at = policy.polls.then_some(now + left);
        self.set_limit(left);
        None
    }

    /// At most one notice in so long.
    fn may_tell(&mut self, quiet: u64) -> bool {
        let now = super::now();
        let may = self.told.is_none_or(|told| now - told >= quiet);
        if may {
            self.told = Some(now);
        }
        may
    }
}

/// What a thread is while it is demoted: as before, but not real-time.
pub(super) fn demoted(before: &Scheduling) -> Scheduling {
    match before.policy as i32 {
        libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => before.without_slice(),
        _ => Scheduling::ordinary(),
    }
}
