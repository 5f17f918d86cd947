//! One thread that is held to its runtime: what its events mean, and what is done about them.

use super::account::Account;
use super::budget::Budget;
use super::meter::{Births, Meter, NEVER, Record, What};
use super::{Born, Changes, Event, Notice, Overruns, Policy, Target};
use punctual_linux::scheduling::{self, Refused, Scheduling, State};
use punctual_protocol::Enforced;
use std::io;

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

/// How a thread is measured.
#[derive(Debug)]
pub(super) enum Measure {
    /// By perf events.
    Events(Meter),
    /// By the kernel's own accounts.
    Accounts(Account),
}

/// What is open of a thread.
#[derive(Debug)]
pub(super) struct Events {
    /// If it is held to its runtime.
    pub(super) meter: Option<Measure>,
    /// If it had other processors before.
    pub(super) births: Option<Births>,
}

/// Why nothing is open of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmeasured {
    /// It is ending, or another thread is about to take its number over by executing a program.
    Ending,
    /// It cannot be, and why.
    Refused(String),
}

/// A thread that is held to its runtime, or whose children are sent home.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) spec: u64,
    pub(super) target: Target,
    budget: Budget,
    pub(super) meter: Option<Measure>,
    births: Option<Births>,
    scheduled: Scheduled,
    /// When to look without an event.
    look_at: Option<u64>,
    /// Since when it has its policy, until it is measured.
    unmeasured: Option<u64>,
    /// Whether it, or another thread of its spec, has taken something of its budget before.
    is_again: bool,
    /// Whether it is demoted since its user has changed threads behind the daemon's back.
    is_barred: bool,
    /// How many budgets in a row it has exceeded, and until when the next one counts as one of them.
    in_a_row: (u32, u64),
    put_back: u64,
    /// Whether its policy is what someone else made it, and stays.
    is_foreign: bool,
    /// Whether it was let take more than its budget, by configuration.
    was_let: bool,
    problem: Option<String>,
    told: Option<u64>,
}

impl Watched {
    /// Of a thread that may have taken something of its budget already.
    pub(super) fn new(spec: u64, target: Target, owed: Option<&Budget>, now: u64) -> Watched {
        let times = target.times();
        let mut budget = owed.map_or_else(|| Budget::new(times, now), |owed| owed.taken_over(times, now));
        budget.wait_until(target.begins, now);
        Watched {
            spec,
            target,
            budget,
            meter: None,
            births: None,
            scheduled: Scheduled::AsAdmitted,
            look_at: None,
            unmeasured: Some(now),
            is_again: owed.is_some(),
            is_barred: false,
            in_a_row: (0, 0),
            put_back: 0,
            is_foreign: false,
            was_let: false,
            problem: None,
            told: None,
        }
    }

    /// Begins demoted, if nothing of its budget is left, or its user is barred until then. Whoever attaches
    /// it gives it no other policy meanwhile.
    pub(super) fn begin_demoted(&mut self, policy: &Policy, barred: Option<u64>, now: u64) {
        if policy.stops() && self.target.is_held() && self.budget.is_spent(now) {
            let due = self.budget.stop();
            self.wait_for(due);
        }
        if let Some(until) = barred.filter(|_| !self.target.is_guest) {
            self.is_barred = true;
            self.wait_for(until);
        }
    }

    fn wait_for(&mut self, until: u64) {
        let until = match self.scheduled {
            Scheduled::Demoted(other) => other.max(until),
            Scheduled::AsAdmitted => until,
        };
        (self.scheduled, self.look_at) = (Scheduled::Demoted(until), Some(until));
    }

    /// Demotes it until then; it is not looked at before. What was open of it is to be closed.
    pub(super) fn bar(&mut self, until: u64) -> Events {
        if self.target.is_held() {
            self.settle();
        }
        if let Err(error) = scheduling::schedule(self.target.thread.number, &self.target.demoted) {
            self.problem = Some(format!("it cannot be demoted: {error}"));
        }
        self.is_barred = true;
        self.wait_for(until.max(self.budget.due()));
        Events { meter: self.meter.take(), births: self.births.take() }
    }

    pub(super) fn is_barred(&self) -> bool {
        self.is_barred
    }

    /// How often it was put back.
    pub(super) fn times_put_back(&self) -> u64 {
        self.put_back
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
            demoted_for: match self.scheduled {
                Scheduled::Demoted(until) => {
                    Some(punctual_model::Duration::from_ns(until.saturating_sub(super::now())))
                }
                Scheduled::AsAdmitted => None,
            },
            put_back: self.put_back,
            problem: self.problem.clone(),
        })
    }

    /// Another runtime, period or scheduling.
    pub(super) fn retarget(&mut self, target: Target, now: u64) {
        if target.times() != self.target.times() {
            if let Some(Measure::Events(_)) = self.meter {
                // What it has taken since the last look counts: its clock begins anew.
                self.count(now);
            }
            self.budget = self.budget.with(target.times(), now);
            if let Some(Measure::Events(meter)) = self.meter.as_ref().filter(|_| !self.is_demoted()) {
                // A clock that cannot be set is heard of when it is looked at.
                let _ = meter.set_limit(self.budget.left().max(GRAIN));
            }
        }
        if target.begins != self.target.begins {
            self.budget.wait_until(target.begins, now);
        }
        self.target = target;
    }

    /// When what it has taken of its budget is paid, and when the next one is due.
    pub(super) fn next_due(&mut self) -> Option<(u64, u64)> {
        if !self.target.is_held() {
            return None;
        }
        self.count(super::now());
        Some((self.budget.paid(), self.budget.due()))
    }

    /// Begins to measure, or says why it cannot be.
    pub(super) fn begin(
        &mut self,
        events: Result<Events, Unmeasured>,
        policy: &Policy,
        now: u64,
    ) -> Option<Notice> {
        match events {
            Ok(Events { meter: None, births }) => {
                self.births = births;
                // Nobody has told of what it did before.
                if self.births.is_some() { self.heed_changes(policy) } else { None }
            }
            Ok(Events { meter: Some(meter), births }) => {
                self.births = births;
                // What it took before is not known. One that is attached again may have run all the time.
                let since = self.unmeasured.take().filter(|_| self.is_again && !self.is_demoted());
                self.budget.has_taken(since.map_or(0, |since| now.saturating_sub(since)), now);
                self.budget = self.budget.with(self.target.times(), now);
                self.meter = Some(meter);
                let left = self.budget.left().max(GRAIN);
                self.set_limit(if self.is_demoted() { NEVER } else { left });
                if !self.is_demoted() {
                    self.look_at = self.polls(policy).then_some(now.saturating_add(left));
                }
                self.heed_changes(policy)
            }
            Err(Unmeasured::Ending) => {
                if !self.is_demoted() {
                    self.look_at = Some(now.saturating_add(RETRY));
                }
                None
            }
            Err(Unmeasured::Refused(why)) if !self.target.is_held() || self.meter.is_some() => {
                self.fails(format!("what it starts stays on its processor: {why}"))
            }
            Err(Unmeasured::Refused(why)) => self.fails(format!("its runtime is not enforced: {why}")),
        }
    }

    pub(super) fn notice(&self, event: Event) -> Notice {
        Notice { spec: self.spec, thread: self.target.thread.number, event }
    }

    fn fails(&mut self, reason: String) -> Option<Notice> {
        let is_new = self.problem.as_ref() != Some(&reason);
        self.problem = Some(reason.clone());
        is_new.then(|| self.notice(Event::Failed(reason)))
    }

    /// Nobody is told any more of what it starts, and where it runs.
    pub(super) fn take_births(&mut self) -> Events {
        Events { meter: None, births: self.births.take() }
    }

    /// It stays where it is.
    fn leave_there(&mut self) {
        if let Some(births) = &mut self.births {
            births.stop_waiting();
        }
    }

    /// Its thread has ended.
    pub(super) fn ended(&mut self) -> Events {
        self.look_at = None;
        Events { meter: self.meter.take(), births: self.births.take() }
    }

    /// Its events have ended, with the thread or without it: when it executes a program of other rights, or
    /// another of its process executes one. Whether it is to be measured anew.
    pub(super) fn lost(&mut self) -> (Events, bool) {
        self.settle();
        if !self.target.thread.lives() {
            return (self.ended(), false);
        }
        if !self.is_demoted() {
            self.look_at = None;
        }
        (Events { meter: self.meter.take(), births: self.births.take() }, true)
    }

    /// What it has taken, when nobody holds it any more, or it has ended.
    pub(super) fn owed(&mut self) -> Option<Budget> {
        if !self.target.is_held() {
            return None;
        }
        self.settle();
        Some(self.budget.clone())
    }

    /// Counts what it has taken until now, after which nothing is known.
    fn settle(&mut self) {
        let now = super::now();
        self.count(now);
        self.budget.lose_sight(now);
    }

    /// Counts what it has taken until now.
    fn count(&mut self, now: u64) {
        self.take(&mut Vec::new());
        self.budget.see(now);
        if self.budget.is_unknown() {
            // It has not switched yet, but may have run all the time.
            let is_demoted = self.is_demoted();
            let taken = match self.meter.as_mut() {
                Some(Measure::Events(meter)) => meter.taken(),
                Some(Measure::Accounts(_)) => 0,
                None if is_demoted => 0,
                None => self.unmeasured.take().map_or(0, |since| now.saturating_sub(since)),
            };
            self.budget.has_taken(taken, now);
        }
    }

    /// Takes what its meter has recorded.
    fn take(&mut self, records: &mut Vec<Record>) {
        records.clear();
        match self.meter.as_mut() {
            Some(Measure::Events(meter)) => {
                meter.read(records);
                // Waits end with a switch: without a record there was none.
                if !records.is_empty() {
                    let waited = meter.waited();
                    self.budget.advance(records, waited);
                }
            }
            Some(Measure::Accounts(account)) => match account.look() {
                Ok(look) => self.budget.polled(look),
                // It has ended, or is measured anew.
                Err(_) => self.meter = None,
            },
            None => {}
        }
    }

    /// Whether it is looked at without an event.
    fn polls(&self, policy: &Policy) -> bool {
        policy.polls || matches!(self.meter, Some(Measure::Accounts(_)))
    }

    /// Whether it is time to measure it anew. Asked once.
    pub(super) fn lacks_events(&mut self, now: u64) -> bool {
        let lacks = !self.is_demoted() && self.meter.is_none();
        lacks && self.look_at.take_if(|at| *at <= now).is_some()
    }

    /// What it has started since the last call, and where it is sent: to the processors that the thread had
    /// before it was attached.
    pub(super) fn born(&mut self) -> Option<Born> {
        let born = self.births.as_mut()?.read();
        let since = born.iter().map(|&(_, at)| at).min()?;
        let children = born.into_iter().map(|(child, _)| child).collect();
        Some(Born { children, since, from: self.target.applied.processors, home: self.target.home })
    }

    /// Takes its events, and does what is to be done.
    pub(super) fn look(&mut self, policy: &Policy, records: &mut Vec<Record>) -> Option<Notice> {
        // Before the records are read: later ones belong to the next look.
        let now = super::now();
        if self.meter.is_none() && !self.is_demoted() {
            let is_here = !self.target.is_held() && self.target.thread.lives();
            return if is_here { self.heed_changes(policy) } else { None };
        }
        self.take(records);
        if !self.target.thread.lives() {
            self.look_at = None;
            return None;
        }
        if self.meter.is_none() && !self.is_demoted() {
            self.look_at = Some(now.saturating_add(RETRY));
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
        match done {
            // Nobody tells of that again.
            Some(Notice { event: Event::Exhausted, .. }) => done,
            done => changed.or(done),
        }
    }

    /// What it is to have now.
    fn expected(&self) -> State {
        let applied = self.target.applied;
        if self.is_demoted() { State { scheduling: self.target.demoted, ..applied } } else { applied }
    }

    /// Whether someone else changed it, and what is done about that.
    fn heed_changes(&mut self, policy: &Policy) -> Option<Notice> {
        if self.is_barred || self.target.is_guest {
            return None;
        }
        let number = self.target.thread.number;
        let (is, expected) = (State::read(number).ok()?, self.expected());
        // Of one that is not held, only that it leaves its processor is told.
        let scheduling = if self.target.is_held() { expected.scheduling } else { is.scheduling };
        let expected = State { scheduling, ..expected };
        self.is_foreign = false;
        if is.scheduling.matches(&expected.scheduling) && is.processors == expected.processors {
            return None;
        }
        // It was not others that kept it from running meanwhile.
        self.budget.lose_backlog(super::now());
        let what = match is.scheduling.matches(&expected.scheduling) {
            true => format!("processors {:?}", is.processors),
            false => is.scheduling.to_string(),
        };
        match policy.changes {
            Changes::Show => {
                self.is_foreign = !is.scheduling.matches(&expected.scheduling);
                self.leave_there();
                None
            }
            Changes::Detach => {
                // The registry detaches it when it has its turn. Until then, it is not to go on elsewhere.
                let is_moved = is.scheduling.matches(&expected.scheduling) && !self.is_demoted();
                if is_moved && scheduling::schedule(number, &self.target.demoted).is_ok() {
                    self.scheduled = Scheduled::Demoted(u64::MAX);
                }
                self.look_at = None;
                Some(self.notice(Event::Changed(what)))
            }
            Changes::PutBack => {
                let waits = self.wait_for_arrival(&expected, &is);
                match expected.enact(number, &is) {
                    Ok(()) => {
                        self.put_back += 1;
                        if let Err(error) = waits {
                            return self.fails(format!("watching for its arrival: {error}"));
                        }
                        self.may_tell(QUIET.1).then(|| self.notice(Event::PutBack(what)))
                    }
                    Err(error) if error.is_gone() => None,
                    Err(error) => {
                        self.leave_there();
                        self.fails(format!("someone else changed it to {what}: {error}"))
                    }
                }
            }
        }
    }

    /// Before it is put back. The kernel moves a sleeping thread only when it wakes, so until it has arrived
    /// it can be sent away again without a migration.
    fn wait_for_arrival(&mut self, expected: &State, is: &State) -> io::Result<()> {
        let stays = expected.processors;
        let births = self.births.as_mut().filter(|_| stays.is_one() && is.processors != stays);
        births.map_or(Ok(()), |births| births.wait_for_arrival(stays))
    }

    /// Stops it if its budget is used up; else sets its clock to what is left.
    fn hold(&mut self, now: u64, has_fired: bool, policy: &Policy) -> Option<Notice> {
        if policy.stops() && std::mem::take(&mut self.was_let) {
            self.budget.forgive(now);
        }
        let Some(due) = self.budget.exhausted(now) else {
            let left = self.budget.left().max(GRAIN);
            if has_fired {
                self.set_limit(left);
            }
            self.look_at = self.polls(policy).then_some(now + left);
            return None;
        };
        match policy.overruns {
            // What someone else made of it is not taken from it.
            _ if self.is_foreign => self.leave_until(due, now, policy),
            Overruns::Count => {
                self.was_let = true;
                self.leave_until(due, now, policy)
            }
            Overruns::Warn => {
                self.was_let = true;
                self.leave_until(due, now, policy);
                self.may_tell(QUIET.1).then(|| self.notice(Event::Overrun))
            }
            Overruns::Demote | Overruns::Detach => match self.demote() {
                Ok(()) if policy.overruns == Overruns::Detach && self.exceeds_again(now) => {
                    Some(self.notice(Event::Exhausted))
                }
                Ok(()) => self.may_tell(QUIET.0).then(|| self.notice(Event::Overrun)),
                Err(error) => {
                    self.leave_until(now.saturating_add(RETRY), now, policy);
                    if error.is_gone() { None } else { self.fails(error.to_string()) }
                }
            },
        }
    }

    /// Counts budgets in a row that were exceeded. Whether there are too many: one may be for a job that
    /// began late, and the next for what that left over.
    fn exceeds_again(&mut self, now: u64) -> bool {
        const MOST: u32 = 3;
        let (number, until) = self.in_a_row;
        let number = if now < until { number + 1 } else { 1 };
        self.in_a_row = (number, self.budget.due().saturating_add(self.target.period));
        number >= MOST
    }

    /// Looks at it again when the next budget is due.
    fn leave_until(&mut self, due: u64, now: u64, policy: &Policy) -> Option<Notice> {
        let wait = due.saturating_sub(now).max(GRAIN);
        self.set_limit(wait);
        self.look_at = self.polls(policy).then_some(now + wait);
        None
    }

    fn set_limit(&mut self, limit: u64) {
        if let Some(Measure::Events(meter)) = &self.meter {
            if let Err(error) = meter.set_limit(limit) {
                self.problem = Some(format!("its clock cannot be set: {error}"));
            }
        }
    }

    fn demote(&mut self) -> Result<(), Refused> {
        scheduling::schedule(self.target.thread.number, &self.target.demoted)?;
        if let Some(Measure::Accounts(_)) = self.meter {
            // With that, the kernel has accounted for what it took until now.
            self.take(&mut Vec::new());
        }
        let until = self.budget.stop();
        (self.scheduled, self.look_at) = (Scheduled::Demoted(until), Some(until));
        self.set_limit(NEVER);
        Ok(())
    }

    fn promote(&mut self, now: u64, policy: &Policy) -> Option<Notice> {
        let number = self.target.thread.number;
        let promoted = match self.is_barred {
            // Nobody has looked where it was.
            true => State::read(number).and_then(|is| self.target.applied.enact(number, &is)),
            false => scheduling::schedule(number, &self.target.applied.scheduling),
        };
        if let Err(error) = promoted {
            self.look_at = (!error.is_gone()).then_some(now + RETRY);
            return self.fails(format!("it cannot be promoted again: {error}"));
        }
        self.is_barred = false;
        if self.target.is_held() {
            self.budget.resume(now);
        }
        let left = self.budget.left().max(GRAIN);
        (self.scheduled, self.problem) = (Scheduled::AsAdmitted, None);
        // One whose events were lost meanwhile is measured anew.
        self.look_at =
            if self.meter.is_none() { Some(now) } else { self.polls(policy).then_some(now + left) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::Accounting;
    use punctual_linux::thread::Thread;
    use std::sync::Arc;

    const MS: u64 = 1_000_000;
    const POLLS: Policy = Policy {
        overruns: Overruns::Demote,
        changes: Changes::Show,
        polls: true,
        accounting: Accounting::Never,
    };

    /// This thread, of which the kernel refuses to make what it is to be when it is demoted.
    fn watched() -> Watched {
        let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let (applied, mut demoted) = (State::read(number).unwrap(), Scheduling::ordinary());
        demoted.policy = 77;
        let target = Target {
            thread: Arc::new(Thread::pin(number).unwrap().0),
            user: 0,
            is_guest: false,
            applied,
            home: applied.processors,
            demoted,
            runtime: MS,
            period: 10 * MS,
            deadline: 10 * MS,
            begins: 0,
        };
        Watched::new(1, target, None, 0)
    }

    #[test]
    fn a_refused_demotion_is_tried_again_later() {
        let mut watched = watched();
        watched.budget.advance(&[Record { time: 0, what: What::In }], 0);
        watched.look_at = Some(0);
        let told = watched.hold(5 * MS, true, &POLLS);
        assert!(matches!(told, Some(Notice { event: Event::Failed(_), .. })), "{told:?}");
        assert_eq!((watched.is_demoted(), watched.due()), (false, Some(5 * MS + RETRY)));
        // That is told once.
        assert_eq!(watched.hold(5 * MS + RETRY, true, &POLLS), None);
    }

    #[test]
    fn a_thread_without_events_is_measured_anew() {
        let mut watched = watched();
        let (events, lives) = watched.lost();
        assert!(lives && events.meter.is_none());
        let ending = || Err(Unmeasured::Ending);
        assert_eq!(watched.begin(ending(), &POLLS, MS), None);
        assert_eq!(watched.due(), Some(MS + RETRY));
        assert!(!watched.lacks_events(MS));
        assert!(watched.lacks_events(MS + RETRY) && !watched.lacks_events(MS + RETRY));
        // One that is demoted is promoted first.
        (watched.scheduled, watched.look_at) = (Scheduled::Demoted(7 * MS), Some(7 * MS));
        let _ = watched.lost();
        assert_eq!(watched.begin(ending(), &POLLS, MS), None);
        assert_eq!((watched.due(), watched.lacks_events(7 * MS)), (Some(7 * MS), false));
        assert_eq!(watched.promote(7 * MS, &POLLS), None);
        assert!(watched.lacks_events(7 * MS));
    }
}
