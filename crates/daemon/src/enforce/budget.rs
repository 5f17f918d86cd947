//! What a thread may take of its processor, and whether it has: a budget of Q in every T, from the thread's
//! context switches. Pure; docs/design/enforcement.md says why it is sound.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC.

mod polled;

pub use polled::Look;

use super::meter::{Record, What};

/// The least tolerance for the lateness of timers, and the greatest.
const TOLERANCE: (u64, u64) = (50_000, 1_000_000);

/// Whether a thread is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    /// Not known since then.
    Unknown(u64),
    /// Since then.
    Since(u64),
    /// Ready to, since then.
    Preempted(u64),
    /// It has blocked.
    Blocked,
}

/// What was counted of one thread since it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Jobs that have begun.
    pub jobs: u64,
    /// The greatest processor time of one of them, in ns.
    pub worst: u64,
    /// Budgets that were exceeded.
    pub overruns: u64,
    /// Activations that ended later than the deadline after they could run, for certain.
    pub misses: u64,
}

/// The budget of one thread.
#[derive(Clone, Debug)]
pub struct Budget {
    runtime: u64,
    period: u64,
    deadline: u64,
    tolerance: u64,
    running: Running,
    /// When the next budget is due: GCRA's theoretical arrival time.
    due: Option<u64>,
    /// What was taken of the current budget.
    used: u64,
    /// What the next budget pays for the one before.
    debt: u64,
    /// When the current activation could run, at the latest.
    released: Option<u64>,
    /// Processor time of the current job.
    cost: u64,
    /// Whether that it is exceeded has been counted.
    is_counted: bool,
    /// Whether it is stopped: what it takes then is nobody's loss.
    is_stopped: bool,
    /// Whether it is only looked at from time to time.
    is_polled: bool,
    /// If so: when a job that may have begun since then could run at the earliest.
    wake: Option<u64>,
    /// When it was last looked at.
    looked: u64,
    /// Since when it has not blocked, at the earliest.
    ready: u64,
    /// What is left of the budget before this one, at most a whole one: what is taken may belong to that.
    saved: u64,
    counted: Counted,
}

impl Budget {
    /// Of `runtime` in every `period`, both above 0, for a thread that is measured from `now` on. Activations
    /// that end later than `deadline` are counted.
    pub fn new((runtime, period, deadline): (u64, u64, u64), now: u64) -> Budget {
        Budget {
            runtime,
            period,
            deadline,
            released: None,
            tolerance: (period / 8).clamp(TOLERANCE.0.min(period), TOLERANCE.1),
            running: Running::Unknown(now),
            due: None,
            used: 0,
            debt: 0,
            cost: 0,
            is_counted: false,
            is_stopped: false,
            is_polled: false,
            wake: None,
            looked: now,
            ready: now,
            saved: 0,
            counted: Counted::default(),
        }
    }

    /// Of another runtime, period and deadline, for the same thread. That is no new budget: while something
    /// of this one is used, the next is due when it was, and what is used up stays used up.
    pub fn with(&self, times: (u64, u64, u64), now: u64) -> Budget {
        let is_used = self.used > 0;
        let earlier = |due: u64| if is_used { due } else { due.min(now.saturating_add(times.1)) };
        let used = match self.used.checked_sub(self.runtime) {
            Some(beyond) => times.0.saturating_add(beyond),
            None => self.used.min(times.0),
        };
        Budget {
            due: self.due.map(earlier),
            running: match self.running {
                Running::Unknown(_) if !is_used => Running::Unknown(now),
                known => known,
            },
            used,
            debt: self.debt,
            cost: self.cost,
            is_counted: self.is_counted,
            is_stopped: self.is_stopped,
            is_polled: self.is_polled,
            wake: self.wake,
            looked: self.looked,
            ready: self.ready,
            saved: self.saved.min(times.0),
            counted: self.counted,
            ..Budget::new(times, now)
        }
    }

    /// For the same thread, which was not held meanwhile, and is from now on.
    pub fn taken_over(&self, times: (u64, u64, u64), now: u64) -> Budget {
        let mut budget = self.with(times, now);
        if std::mem::take(&mut budget.is_stopped) {
            // Whole budgets of what it took beyond are paid by the time until the next.
            budget.used = budget.runtime.saturating_add(std::mem::take(&mut budget.debt).max(1));
        }
        Budget {
            running: Running::Unknown(now),
            ready: now,
            // It may have blocked meanwhile.
            wake: budget.wake.or(Some(budget.looked)),
            cost: 0,
            is_counted: false,
            counted: Counted::default(),
            ..budget
        }
    }

    /// Its next budget is not due before `begins`, and there is nothing left of this one.
    pub fn wait_until(&mut self, begins: u64, now: u64) {
        if begins > now {
            self.due = Some(self.due().max(begins));
            self.used = self.used.max(self.runtime.saturating_add(1));
            (self.saved, self.is_counted) = (0, true);
        }
    }

    /// Whether it is used up, and the next one is not due.
    pub fn is_spent(&self, now: u64) -> bool {
        let is_due = self.due.is_none_or(|due| due.saturating_sub(self.tolerance) <= now);
        self.used > self.runtime && !is_due
    }

    /// When the next budget is due; 0 if that is whenever it begins to run.
    pub fn due(&self) -> u64 {
        self.due.unwrap_or(0)
    }

    /// When what was taken of the current budget is paid at the rate of Q in T: at the latest when the next
    /// one is due. 0 as for [`Budget::due`].
    pub fn paid(&self) -> u64 {
        let Some(due) = self.due else { return 0 };
        if self.used.saturating_add(self.debt) >= self.runtime {
            return due;
        }
        let taken = u128::from(self.used) * u128::from(self.period);
        let rest = self.period.saturating_sub(taken.div_ceil(u128::from(self.runtime)) as u64);
        due.saturating_sub(rest)
    }

    /// What was counted so far.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// Takes what happened, in the order in which it did. Since the last call the thread has waited for its
    /// processor for `waited` in total.
    pub fn advance(&mut self, records: &[Record], waited: u64) {
        // Whatever of that was not after a preemption was before a start.
        let late = waited.saturating_sub(self.preempted_for(records));
        // Which of several starts it was that had to wait is not known.
        let is_certain = self.starts(records) == 1;
        for record in records {
            match record.what {
                What::In => self.run(record.time, late, is_certain),
                What::Out { preempted } => self.pause(record.time, preempted),
                What::Sample => self.is_seen(record.time),
                // Nothing is known of it until the next one.
                What::Lost => self.running = Running::Blocked,
            }
        }
    }

    fn preempted_for(&self, records: &[Record]) -> u64 {
        let mut since = match self.running {
            Running::Preempted(since) => Some(since),
            _ => None,
        };
        let mut sum = 0;
        for record in records {
            match record.what {
                What::In => sum += since.take().map_or(0, |since| record.time.saturating_sub(since)),
                What::Out { preempted } => since = preempted.then_some(record.time),
                What::Sample | What::Lost => {}
            }
        }
        sum
    }

    /// How often it began to run after it had blocked.
    fn starts(&self, records: &[Record]) -> usize {
        let mut has_blocked = matches!(self.running, Running::Blocked | Running::Unknown(_));
        let is_start = |record: &&Record| match record.what {
            What::In => std::mem::take(&mut has_blocked),
            What::Out { preempted } => {
                has_blocked = !preempted;
                false
            }
            What::Sample | What::Lost => false,
        };
        records.iter().filter(is_start).count()
    }

    /// It begins to run, having waited for at most `late`, or for as long if that is certain.
    fn run(&mut self, now: u64, late: u64, is_certain: bool) {
        let has_blocked = matches!(self.running, Running::Blocked | Running::Unknown(_));
        self.running = Running::Since(now);
        if has_blocked {
            self.ready = now.saturating_sub(late);
            self.released = Some(if is_certain { now.saturating_sub(late) } else { now });
        }
        if has_blocked
            && !self.is_stopped
            && self.due.is_none_or(|due| now.saturating_add(self.tolerance) >= due)
        {
            self.counted.jobs += 1;
            self.cost = 0;
            self.renew(now.saturating_sub(late));
        }
    }

    /// A budget begins.
    fn renew(&mut self, start: u64) {
        self.due = Some(self.due.map_or(start, |due| due.max(start)).saturating_add(self.period));
        self.used = std::mem::take(&mut self.debt);
        self.is_counted = false;
    }

    fn pause(&mut self, now: u64, preempted: bool) {
        self.is_seen(now);
        if !self.is_stopped {
            self.catch_up(now);
        }
        self.counted.worst = self.counted.worst.max(self.cost);
        self.running = if preempted { Running::Preempted(now) } else { Running::Blocked };
        // With a deadline beyond the period, jobs may have run one after the other, each in time.
        if let Some(released) = self.released.take_if(|_| !preempted) {
            let is_one = self.deadline <= self.period;
            self.counted.misses += u64::from(is_one && now.saturating_sub(released) > self.deadline);
        }
    }

    /// It runs at `now`.
    fn is_seen(&mut self, now: u64) {
        let since = match self.running {
            Running::Since(since) => since,
            Running::Unknown(since) => {
                if self.due.is_none() {
                    self.counted.jobs += 1;
                    self.renew(since);
                }
                since
            }
            // A record is missing.
            Running::Preempted(_) | Running::Blocked => now,
        };
        let took = now.saturating_sub(since);
        self.cost = self.cost.saturating_add(took);
        if !self.is_stopped {
            self.used = self.used.saturating_add(took);
        }
        self.running = Running::Since(now.max(since));
    }

    /// Looks at `now`, after all that happened until then: if the budget is used up, when the next one is
    /// due. Counts that once for each budget.
    pub fn exhausted(&mut self, now: u64) -> Option<u64> {
        self.see(now);
        self.due?;
        self.catch_up(now);
        if self.used <= self.runtime {
            return None;
        }
        if !std::mem::replace(&mut self.is_counted, true) {
            self.counted.overruns += 1;
        }
        self.due.map(|due| due.saturating_sub(self.tolerance))
    }

    /// It went on without blocking, and other budgets have become due meanwhile: others have delayed it, so
    /// jobs run one after the other. However many: they may be shorter than what a look takes.
    fn catch_up(&mut self, now: u64) {
        if self.used > self.runtime {
            // What it did not ask for is lost.
            self.due = self.due.map(|due| due.max(self.ready));
            self.pay(now.saturating_add(self.tolerance));
        }
        self.counted.worst = self.counted.worst.max(self.cost);
    }

    /// Pays for what it took beyond its budget with those that are due until `latest`. Each is another job's.
    fn pay(&mut self, latest: u64) {
        let Some(due) = self.due.filter(|due| self.used > self.runtime && *due <= latest) else { return };
        let asked = (self.used - self.runtime).div_ceil(self.runtime);
        let count = asked.min(((latest - due) / self.period).saturating_add(1));
        self.used -= count * self.runtime;
        self.is_counted = false;
        self.due = Some(due.saturating_add(count.saturating_mul(self.period)));
        if self.cost > self.runtime {
            let jobs = count.min((self.cost - self.runtime).div_ceil(self.runtime));
            self.counted.jobs += jobs;
            self.counted.worst = self.counted.worst.max(self.runtime);
            self.cost -= jobs * self.runtime;
        }
    }

    /// What is left of the budget.
    pub fn left(&self) -> u64 {
        self.runtime.saturating_sub(self.used).saturating_add(self.saved)
    }

    /// Stops it at an exhausted budget; returns when the next one is due. What it took beyond this one is
    /// paid by the following.
    pub fn stop(&mut self) -> u64 {
        let beyond = self.used.saturating_sub(self.runtime);
        self.is_stopped = true;
        self.debt = beyond % self.runtime;
        let due = self.due.unwrap_or(0).saturating_add((beyond / self.runtime).saturating_mul(self.period));
        self.due = Some(due);
        due.saturating_sub(self.tolerance)
    }

    /// It could not have the budgets that have become due until now, as it was not scheduled as admitted.
    pub fn lose_backlog(&mut self, now: u64) {
        self.ready = now;
    }

    /// What it has taken beyond its budget until now is no debt: it was let do that.
    pub fn forgive(&mut self, now: u64) {
        self.see(now);
        (self.used, self.debt) = (self.used.min(self.runtime), 0);
    }

    /// Takes what it has taken until now, if it runs.
    pub fn see(&mut self, now: u64) {
        if let Running::Since(_) = self.running {
            self.is_seen(now);
        }
    }

    /// Whether nothing is known of it since it is measured.
    pub fn is_unknown(&self) -> bool {
        matches!(self.running, Running::Unknown(_))
    }

    /// It has taken so much while nothing was known of it.
    pub fn has_taken(&mut self, took: u64, now: u64) {
        let Running::Unknown(since) = self.running else { return };
        if took > 0 {
            self.running = Running::Since(now.saturating_sub(took).max(since));
            if self.due.is_none() {
                self.counted.jobs += 1;
                self.renew(since);
            }
            self.is_seen(now);
            self.running = Running::Unknown(now);
        }
    }

    /// From now on it is not known whether it runs.
    pub fn lose_sight(&mut self, now: u64) {
        self.see(now);
        self.running = Running::Unknown(now);
        self.ready = now;
    }

    /// Goes on after it was stopped.
    pub fn resume(&mut self, now: u64) {
        self.see(now);
        self.is_stopped = false;
        if self.running != Running::Blocked {
            self.renew(now);
        } else {
            // The next budget begins with its next job. What is looked at has used up the old one first.
            self.used = if self.is_polled { self.runtime } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn at(time: u64, what: What) -> Record {
        Record { time, what }
    }

    const BLOCKS: What = What::Out { preempted: false };
    const PREEMPTED: What = What::Out { preempted: true };

    #[test]
    fn a_thread_that_goes_on_is_found_at_its_budget() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        budget.advance(&[at(5 * MS, What::In)], 0);
        assert_eq!(budget.exhausted(6 * MS), None);
        assert_eq!(budget.left(), MS);
        // The next budget is due a period after the start, less the tolerance.
        assert_eq!(budget.exhausted(7 * MS), None);
        assert_eq!(budget.exhausted(7 * MS + 1), Some(14 * MS));
        assert_eq!(budget.exhausted(8 * MS), Some(14 * MS));
        assert_eq!(budget.counted(), Counted { jobs: 1, worst: 3 * MS, overruns: 1, misses: 0 });
        assert_eq!(budget.stop(), 14 * MS);
        budget.resume(14 * MS);
        // It pays for the millisecond that it got too much.
        assert_eq!(budget.left(), MS);
        assert_eq!(budget.exhausted(15 * MS), None);
        assert_eq!(budget.exhausted(15 * MS + 1), Some(24 * MS));
    }

    #[test]
    fn what_was_taken_is_paid_at_the_rate_of_the_runtime_in_the_period() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        assert_eq!(budget.paid(), 0);
        budget.advance(&[at(5 * MS, What::In), at(6 * MS, BLOCKS)], 0);
        assert_eq!((budget.paid(), budget.due()), (10 * MS, 15 * MS));
        budget.advance(&[at(7 * MS, What::In), at(9 * MS, BLOCKS)], 0);
        assert_eq!((budget.paid(), budget.due()), (15 * MS, 15 * MS), "it has had more than it may");
        // A hundred years.
        let (runtime, period) = (1_576_800_000_000_000_000, 3_153_600_000_000_000_000);
        let mut budget = Budget::new((runtime, period, period), 0);
        budget.advance(&[at(0, What::In), at(MS, BLOCKS)], 0);
        assert_eq!((budget.paid(), budget.due()), (2 * MS, period));
    }

    #[test]
    fn sleeping_within_a_period_gives_no_new_budget() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        for start in [0, 2, 4] {
            budget.advance(&[at(start * MS, What::In), at((start + 1) * MS, BLOCKS)], 0);
        }
        assert!(budget.exhausted(6 * MS).is_some());
        assert_eq!(budget.counted(), Counted { jobs: 1, worst: 3 * MS, overruns: 1, misses: 0 });
    }

    #[test]
    fn a_thread_that_runs_when_it_is_first_measured_is_found() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        budget.advance(&[at(2 * MS + 1, What::Sample)], 0);
        assert_eq!(budget.exhausted(2 * MS + 1), Some(9 * MS));
    }

    #[test]
    fn waiting_for_the_processor_is_no_use_of_it() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        budget.advance(
            &[at(0, What::In), at(MS, PREEMPTED), at(6 * MS, What::In), at(6 * MS + 1, BLOCKS)],
            5 * MS,
        );
        assert_eq!(budget.exhausted(7 * MS), None);
        // It started 8 ms late, so its next job may come after 3.
        budget.advance(&[at(18 * MS, What::In), at(20 * MS - 1, BLOCKS)], 8 * MS);
        budget.advance(&[at(21 * MS, What::In), at(23 * MS - 1, BLOCKS)], 0);
        assert_eq!(budget.exhausted(24 * MS), None);
        assert_eq!(budget.counted().jobs, 3);
    }

    #[test]
    fn jobs_that_run_one_after_the_other_are_told_apart() {
        // Delayed for two periods and a half, it does what it has to for three of them, each 1.5 ms.
        let mut budget = Budget::new((2 * MS, 10 * MS, 20 * MS), 0);
        budget.advance(&[at(25 * MS, What::In)], 25 * MS);
        assert_eq!(budget.exhausted(27 * MS + 1), None, "the second may have begun");
        assert_eq!(budget.exhausted(29 * MS + 1), None, "and the third");
        budget.advance(&[at(29 * MS + MS / 2, BLOCKS)], 0);
        budget.advance(&[at(30 * MS, What::In), at(31 * MS + MS / 2, BLOCKS)], 0);
        assert_eq!(budget.exhausted(32 * MS), None);
        // That it was late is not known: each of them may have ended within 20 ms.
        assert_eq!(budget.counted(), Counted { jobs: 4, worst: 2 * MS, overruns: 0, misses: 0 });
        // There were no more of them by then.
        budget.advance(&[at(40 * MS, What::In), at(42 * MS + 1, What::Sample)], 0);
        assert_eq!(budget.exhausted(42 * MS + 1), Some(49 * MS));
    }

    #[test]
    fn who_lowered_itself_has_no_backlog() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        budget.advance(&[at(0, What::In), at(MS, PREEMPTED), at(1000 * MS, What::In)], 999 * MS);
        let mut lowered = budget.clone();
        lowered.lose_backlog(1000 * MS);
        assert_eq!(lowered.exhausted(1003 * MS), None, "what was left, and one budget");
        assert!(lowered.exhausted(1003 * MS + 1).is_some());
        assert_eq!(budget.exhausted(1005 * MS + 1), None, "others have delayed it");
    }

    #[test]
    fn what_it_was_let_take_is_no_debt() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        budget.advance(&[at(0, What::In)], 0);
        assert_eq!(budget.exhausted(1_005 * MS), Some(1_009 * MS));
        budget.forgive(1_006 * MS);
        assert_eq!(budget.exhausted(1_007 * MS), Some(1_009 * MS));
        assert_eq!(budget.stop(), 1_009 * MS, "not for minutes");
    }

    #[test]
    fn a_sleep_saves_nothing() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        budget.advance(&[at(0, What::In), at(MS, BLOCKS)], 0);
        budget.lose_sight(MS);
        budget = budget.taken_over((2 * MS, 10 * MS, 10 * MS), 1000 * MS);
        budget.advance(&[at(1001 * MS, What::Sample)], 0);
        assert_eq!(budget.exhausted(1001 * MS), None);
        assert!(budget.exhausted(1004 * MS + 1).is_some(), "one budget, and what was left of the old one");
    }

    #[test]
    fn late_ends_are_misses() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 5 * MS), 0);
        let job = |start: u64, end: u64| [at(start * MS, What::In), at(end * MS, BLOCKS)];
        budget.advance(&job(0, 1), 0);
        assert_eq!(budget.counted().misses, 0);
        // It waited for 5 ms before it started.
        budget.advance(&job(15, 16), 5 * MS);
        assert_eq!(budget.counted().misses, 1);
        // One of both did, or both a little.
        budget.advance(&[job(25, 26), job(35, 36)].concat(), 5 * MS);
        assert_eq!(budget.counted().misses, 1);
    }

    /// One job: its distance to the one before beyond the period, its start after the release, its cost, how
    /// long it is preempted and after which share of its cost, all in µs; and whether it is looked at.
    type Job = (u64, u64, u64, u64, u64, bool);

    fn jobs() -> impl Strategy<Value = Vec<Job>> {
        prop::collection::vec(
            (0..5000u64, 0..4000u64, 1..=2000u64, 0..3900u64, 0..=100u64, any::<bool>()),
            1..60,
        )
    }

    impl Budget {
        /// What [`Budget::catch_up`] does, one by one.
        fn pay_one_after_another(&mut self, now: u64) {
            let mut due = self.due.unwrap().max(self.ready);
            while self.used > self.runtime && due <= now.saturating_add(self.tolerance) && due < u64::MAX {
                self.used -= self.runtime;
                due = due.saturating_add(self.period);
            }
            self.due = Some(due);
        }
    }

    /// Times up to the greatest, and many of a few ns.
    fn ends() -> impl Strategy<Value = u64> {
        prop_oneof![1..4u64, 1..100 * MS, u64::MAX - 3..=u64::MAX, (0..64u32).prop_map(|bit| 1 << bit)]
    }

    #[test]
    fn who_comes_back_gets_no_new_budget() {
        let times = (2 * MS, 10 * MS, 10 * MS);
        let mut budget = Budget::new(times, 0);
        budget.advance(&[at(0, What::In), at(MS, BLOCKS)], 0);
        budget.lose_sight(MS);
        // It comes back each millisecond, and runs for one.
        budget = budget.taken_over(times, 2 * MS);
        assert_eq!((budget.left(), budget.due()), (MS, 10 * MS));
        budget.advance(&[at(2 * MS, What::In)], 0);
        assert_eq!(budget.exhausted(4 * MS), Some(9 * MS));
        assert_eq!(budget.stop(), 9 * MS);
        budget.lose_sight(4 * MS);
        // Back from a demotion, it is still used up, and pays for what it got too much.
        budget = budget.taken_over(times, 5 * MS);
        assert_eq!(budget.exhausted(5 * MS), Some(9 * MS));
        budget.advance(&[at(5 * MS, What::In)], 0);
        assert_eq!(budget.stop(), 9 * MS);
        budget.resume(10 * MS);
        assert_eq!((budget.left(), budget.due()), (MS, 20 * MS));
    }

    #[test]
    fn another_period_gives_no_new_budget() {
        let times = (2 * MS, 100 * MS, 100 * MS);
        let mut budget = Budget::new(times, 0);
        budget.advance(&[at(0, What::In), at(2 * MS, BLOCKS)], 0);
        let short = budget.with((MS, 2 * MS, 2 * MS), 2 * MS);
        assert_eq!((short.left(), short.due()), (0, 100 * MS));
        let back = short.with(times, 4 * MS);
        assert_eq!((back.left(), back.due()), (0, 100 * MS));
        // Nothing was taken: then the next one comes as early as is promised now.
        let unused = Budget { used: 0, ..budget };
        assert_eq!(unused.with((MS, 2 * MS, 2 * MS), 2 * MS).due(), 4 * MS);
    }

    #[test]
    fn a_budget_of_a_nanosecond_is_looked_at_at_once() {
        let mut budget = Budget::new((1, 2, 2), 0);
        budget.advance(&[at(0, What::In)], 0);
        // An hour of them: one by one they would take minutes.
        let now = 3_600_000 * MS;
        assert!(budget.exhausted(now).is_some());
        assert_eq!(budget.counted().overruns, 1);
        let until = budget.stop();
        assert!(until > now, "it pays for what it took");
        budget.resume(until);
        assert_eq!(budget.left(), 1);
    }

    proptest! {
        /// Whoever keeps to what was declared is never stopped, however late others make it.
        #[test]
        fn who_keeps_to_it_is_never_stopped(jobs in jobs(), timer_late in 0..1000u64) {
            const US: u64 = 1000;
            let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
            let (mut arrival, mut records, mut waited) = (100 * US, Vec::new(), 0);
            for (index, (more, wait, cost, preempted, share, looks)) in jobs.into_iter().enumerate() {
                arrival += 10 * MS + more * US;
                let release = arrival + if index % 3 == 0 { timer_late * US } else { 0 };
                let start = release + wait * US;
                let first = cost * US * share / 100;
                records.push(at(start, What::In));
                records.push(at(start + first, PREEMPTED));
                records.push(at(start + first + preempted * US, What::In));
                let end = start + cost * US + preempted * US;
                records.push(at(end, BLOCKS));
                waited += (wait + preempted) * US;
                if looks {
                    budget.advance(&records, waited);
                    records.clear();
                    waited = 0;
                    prop_assert_eq!(budget.exhausted(end), None);
                }
            }
            prop_assert_eq!(budget.counted().overruns, 0);
        }

        /// So is who keeps to it and is delayed for many periods, so that its jobs run one after the other.
        #[test]
        fn who_is_delayed_for_periods_is_never_stopped(
            jobs in jobs(), delays in prop::collection::vec(prop_oneof![4 => Just(0), 1 => 0..70_000u64], 60),
            deadline in 1..90u64, looks_within in any::<bool>(),
        ) {
            const US: u64 = 1000;
            let mut budget = Budget::new((2 * MS, 10 * MS, deadline * MS), 0);
            let (mut arrival, mut records, mut waited) = (100 * US, Vec::new(), 0);
            let (mut end, mut late) = (0, 0u64);
            let count = jobs.len() as u64;
            for (index, (more, wait, cost, preempted, share, looks)) in jobs.into_iter().enumerate() {
                arrival += 10 * MS + if index % 2 == 0 { more * US } else { 0 };
                let wait = (delays[index] + wait) * US;
                // It blocks only if it has nothing to do.
                match index > 0 && end >= arrival {
                    true => records.push(at(end, PREEMPTED)),
                    false if index > 0 => records.push(at(end, BLOCKS)),
                    false => {}
                }
                if looks {
                    budget.advance(&records, waited);
                    records.clear();
                    waited = 0;
                    prop_assert_eq!(budget.exhausted(end), None);
                }
                let start = arrival.max(end) + wait;
                let (first, preempted) = (cost * US * share / 100, preempted * US);
                waited += wait + preempted;
                records.push(at(start, What::In));
                records.push(at(start + first, PREEMPTED));
                if looks_within {
                    budget.advance(&records, std::mem::take(&mut waited) - preempted);
                    records.clear();
                    waited = preempted;
                    prop_assert_eq!(budget.exhausted(start + first), None);
                }
                records.push(at(start + first + preempted, What::In));
                end = start + cost * US + preempted;
                late += u64::from(end - arrival > deadline * MS);
            }
            records.push(at(end, BLOCKS));
            budget.advance(&records, waited);
            prop_assert_eq!(budget.exhausted(end), None);
            let counted = budget.counted();
            prop_assert_eq!(counted.overruns, 0);
            prop_assert!(counted.misses <= late, "{} of {late}", counted.misses);
            prop_assert!(counted.jobs <= count, "{} of {count}", counted.jobs);
            prop_assert!(counted.worst <= 2 * MS);
        }

        /// However short or long budgets are, a look takes no longer, counts at most one overrun and comes to
        /// the same as paying one budget after another.
        #[test]
        fn budgets_of_any_length_are_paid_at_once(
            runtime in ends(), period in ends(), ran in ends(), times in 1..4usize,
        ) {
            let runtime = runtime.min(period);
            let mut budget = Budget::new((runtime, period, period), 0);
            budget.advance(&[at(0, What::In)], 0);
            let mut now = 0u64;
            for _ in 0..times {
                now = now.saturating_add(ran);
                let mut step_by_step = budget.clone();
                let before = budget.counted().overruns;
                let is_exhausted = budget.exhausted(now).is_some();
                prop_assert!(budget.counted().overruns <= before + 1);
                prop_assert_eq!(is_exhausted, budget.used > runtime);
                step_by_step.is_seen(now);
                if step_by_step.used / runtime < 1000 && step_by_step.due != Some(u64::MAX) {
                    step_by_step.pay_one_after_another(now);
                    prop_assert_eq!((budget.used, budget.due), (step_by_step.used, step_by_step.due));
                }
                if is_exhausted {
                    let until = budget.stop();
                    prop_assert!(budget.debt < runtime);
                    now = now.max(until);
                    budget.resume(now);
                }
            }
        }

        /// Whoever takes all it can get gets its share, and no more than one budget and what was found too
        /// late beyond it.
        #[test]
        fn who_takes_all_gets_its_share(runtime in 1..9000u64, late in prop::collection::vec(0..500u64, 50)) {
            const US: u64 = 1000;
            let (runtime, period) = (runtime * US, 10 * MS);
            let mut budget = Budget::new((runtime, period, period), 0);
            budget.advance(&[at(0, What::In)], 0);
            let (mut now, mut taken) = (0, 0);
            for late in late {
                let runs = budget.left() + late * US;
                (now, taken) = (now + runs, taken + runs);
                if budget.exhausted(now).is_some() {
                    now = now.max(budget.stop());
                    budget.resume(now);
                }
                let share = (now / period + 2) * runtime + late * US;
                prop_assert!(taken <= share, "{taken} of {share} at {now}");
            }
            prop_assert!(taken >= now / period * runtime);
        }
    }
}
