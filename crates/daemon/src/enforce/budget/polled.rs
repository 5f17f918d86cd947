//! The budget of a thread that is only looked at from time to time: how much it has taken, whether it has
//! blocked, whether it sleeps. When its jobs began is not known, so all that may have been is allowed for.

use super::{Budget, Running};

/// What was seen of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Before anything was read.
    pub from: u64,
    /// After everything was read.
    pub now: u64,
    /// Processor time since the last look, read before the others. What a running thread takes is known up to
    /// the last tick.
    pub took: u64,
    /// Whether it has blocked since the last look.
    pub has_blocked: bool,
    /// Whether it sleeps.
    pub sleeps: bool,
}

impl Budget {
    /// Takes what was seen.
    ///
    /// A thread that keeps to what it declared is never found exhausted: what it took is taken from the old
    /// budget first, and a new one begins as soon as one may have begun, as early as that may have been: when
    /// the thread woke up, which is after it was last seen asleep, or after the look before it blocked.
    pub fn polled(&mut self, look: Look) {
        self.is_polled = true;
        let since = std::mem::replace(&mut self.looked, look.from);
        if look.has_blocked {
            self.wake.get_or_insert(since);
            self.ready = since;
        }
        self.cost = self.cost.saturating_add(look.took);
        if look.took > 0 && !self.is_stopped {
            let before = self.saved.min(look.took);
            self.saved -= before;
            self.used = self.used.saturating_add(look.took - before);
            self.may_begin(look);
        }
        if look.sleeps {
            self.wake = Some(look.from);
            self.ready = look.from;
        }
        self.running = if look.sleeps { Running::Blocked } else { Running::Unknown(look.from) };
    }

    /// Begins the budgets that may have begun until then.
    fn may_begin(&mut self, Look { now, took, .. }: Look) {
        let due = *self.due.get_or_insert_with(|| match self.running {
            // A job that may have begun long ago: the next may come at once.
            Running::Unknown(since) => {
                self.counted.jobs += 1;
                since
            }
            _ => self.wake.unwrap_or(now),
        });
        let latest = now.saturating_add(self.tolerance);
        let Some(wake) = self.wake.filter(|_| latest >= due) else { return };
        self.wake = None;
        self.due = Some(due.max(wake).saturating_add(self.period));
        // Whether the new one has begun, or this was the end of the old one, is not known.
        let unused = self.runtime.saturating_sub(self.used);
        self.saved = self.saved.saturating_add(unused).min(self.runtime);
        let carried = self.used.saturating_sub(self.runtime);
        self.used = carried.saturating_add(std::mem::take(&mut self.debt));
        // Roughly: a part may be the end of the job before.
        (self.cost, self.is_counted) = (took, false);
        self.counted.jobs += 1;
        // It has blocked between any two of them.
        self.pay(latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const US: u64 = 1000;

    /// A thread as the kernel accounts for it: of a running one, the time is known up to the last tick.
    #[derive(Default)]
    struct Account {
        tick: u64,
        /// When it runs: not overlapping, ascending.
        runs: Vec<(u64, u64)>,
        /// When it blocks, ascending.
        blocks: Vec<u64>,
        /// When it is ready to run, from its wake-up until it blocks.
        ready: Vec<(u64, u64)>,
    }

    impl Account {
        fn taken(&self, at: u64) -> u64 {
            let known = |&(from, to): &(u64, u64)| match at {
                at if at >= to => to - from,
                at => (at / self.tick * self.tick).saturating_sub(from),
            };
            self.runs.iter().map(known).sum()
        }

        fn blocked(&self, at: u64) -> usize {
            self.blocks.iter().filter(|block| **block <= at).count()
        }

        /// A look that takes some time, after one at `before`.
        fn look(&self, before: (u64, u64), from: u64, takes: u64) -> Look {
            let read = (from + takes / 2, from + takes);
            Look {
                from,
                now: read.1,
                took: self.taken(read.0) - self.taken(before.0),
                has_blocked: self.blocked(read.1) > self.blocked(before.1),
                sleeps: !self.ready.iter().any(|(woke, end)| *woke <= read.1 && read.1 < *end),
            }
        }
    }

    #[test]
    fn a_thread_that_goes_on_is_found_at_its_budget() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        let look = |at: u64, took| Look { from: at, now: at, took, has_blocked: false, sleeps: false };
        budget.polled(look(2 * MS, 2 * MS));
        assert_eq!(budget.exhausted(2 * MS), None);
        // When its job began is not known: it may be the end of one.
        budget.polled(look(4 * MS, 2 * MS));
        assert_eq!(budget.exhausted(4 * MS), None);
        budget.polled(look(5 * MS, MS));
        let until = budget.exhausted(5 * MS).expect("it has taken two budgets and more");
        assert_eq!(until, 9 * MS);
        assert_eq!((budget.stop(), budget.counted().overruns), (until, 1));
        // What it takes meanwhile is nobody's loss; what it took too much is paid.
        budget.polled(look(until, MS));
        budget.resume(until);
        assert_eq!(budget.left(), MS);
    }

    #[test]
    fn sleeping_within_a_period_gives_no_new_budget() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        let slept = |at: u64, took| Look { from: at, now: at, took, has_blocked: true, sleeps: true };
        budget.polled(slept(MS, MS));
        // What was there when it was first seen may have been the end of a job.
        for at in 2..=6 {
            budget.polled(slept(at * MS, MS));
            assert_eq!(budget.exhausted(at * MS).is_some(), at > 4, "{at}");
        }
    }

    #[test]
    fn a_long_sleep_saves_nothing() {
        let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), 0);
        let look =
            |at: u64, took, sleeps| Look { from: at, now: at, took, has_blocked: sleeps && took > 0, sleeps };
        budget.polled(look(MS, MS, true));
        (2..1000).for_each(|at| budget.polled(look(at * MS, 0, true)));
        let mut taken = 0;
        for at in 1000..1010 {
            budget.polled(look(at * MS, MS, true));
            if budget.exhausted(at * MS).is_some() {
                break;
            }
            taken += 1;
        }
        assert!(taken <= 5, "the old budget and a new one: {taken}");
    }

    /// One job: its distance to the one before beyond the period, its wait for the processor, its cost, how
    /// long it is preempted and after which share of its cost, all in µs.
    type Job = (u64, u64, u64, u64, u64);

    fn jobs() -> impl Strategy<Value = Vec<Job>> {
        let waits = prop_oneof![Just(0), 0..4000u64];
        prop::collection::vec((0..15_000u64, waits.clone(), 1..=2000u64, waits, 0..=100u64), 1..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Whoever keeps to what was declared is never stopped: whenever it is looked at, however long a look
        /// takes, however late others and timers make it, whatever the kernel knows of a running thread, and
        /// even if it is first looked at in the middle of a job.
        #[test]
        fn who_keeps_to_it_is_never_stopped(
            jobs in jobs(), timer_late in 0..1000u64,
            tick in prop::sample::select(vec![1u64, 1000, 4000, 10_000]),
            begins in 0..12_000u64, looks in prop::collection::vec((1..9000u64, 0..300u64), 1..200),
        ) {
            let mut account = Account { tick: tick * US, ..Account::default() };
            let mut arrival = 0;
            for (index, (more, wait, cost, preempted, share)) in jobs.into_iter().enumerate() {
                arrival += 10 * MS + more * US;
                let release = arrival + if index % 3 == 0 { timer_late * US } else { 0 };
                let (start, first) = (release + wait * US, cost * US * share / 100);
                let (stopped, goes_on) = (start + first, start + first + preempted * US);
                let end = goes_on + cost * US - first;
                account.runs.extend([(start, stopped), (goes_on, end)]);
                account.blocks.push(end);
                account.ready.push((release, end));
            }
            let mut at = begins * US;
            let mut budget = Budget::new((2 * MS, 10 * MS, 10 * MS), at);
            let mut before = (at, at);
            for (gap, takes) in looks {
                at += gap * US;
                let look = account.look(before, at, takes * US);
                before = (at + takes * US / 2, look.now);
                at = look.now;
                budget.polled(look);
                prop_assert_eq!(budget.exhausted(look.now), None, "{:?} {:?}", look, budget);
            }
            prop_assert_eq!(budget.counted().overruns, 0);
        }

        /// Whatever a thread does, it gets Q in T in the long run, and beyond that a bounded amount: a
        /// few budgets, and what is found too late, once.
        #[test]
        fn whoever_takes_more_gets_its_share(
            runtime in 200..9000u64, tick in prop::sample::select(vec![1u64, 1000, 4000]),
            does in prop::collection::vec((0..6000u64, prop_oneof![Just(0), 0..3000u64, 0..40_000u64]), 100),
            late in prop::collection::vec(0..500u64, 1..20),
        ) {
            let (runtime, period, tick) = (runtime * US, 10 * MS, tick * US);
            let mut budget = Budget::new((runtime, period, period), 0);
            let (mut time, mut taken, mut told, mut blocks, mut look_at) = (0u64, 0u64, 0u64, 0u64, runtime);
            let (mut seen, mut late, mut stopped) = ((0, 0), late.into_iter().cycle(), None::<u64>);
            for (runs, sleeps) in does {
                for (is_running, mut left) in [(true, runs * US), (false, sleeps * US)] {
                    while left > 0 {
                        let until = look_at.max(time) + late.next().unwrap_or(0) * US;
                        let step = left.min(until.max(time) - time);
                        (time, left) = (time + step, left - step);
                        if is_running && stopped.is_none() {
                            taken += step;
                        }
                        if is_running {
                            told += step;
                        }
                        if time < until {
                            continue;
                        }
                        // Up to a tick of what it takes now is not known.
                        let unknown = if is_running { (time % tick).min(told - seen.0) } else { 0 };
                        let known = told - unknown;
                        let has_blocked = blocks > seen.1;
                        let sleeps = !is_running;
                        let took = known - seen.0;
                        budget.polled(Look { from: time, now: time, took, has_blocked, sleeps });
                        seen = (known, blocks);
                        if stopped.is_some_and(|until| time >= until) {
                            budget.resume(time);
                            stopped = None;
                        }
                        look_at = match stopped {
                            Some(until) => until,
                            None if budget.exhausted(time).is_some() => {
                                // When it is stopped, the kernel accounts for it.
                                let took = told - std::mem::replace(&mut seen.0, told);
                                let look = Look { from: time, now: time, took, has_blocked: false, sleeps };
                                budget.polled(look);
                                let until = budget.stop();
                                stopped = Some(until);
                                until
                            }
                            None => time + budget.left().max(200 * US),
                        };
                        let share = (time / period + 5) * runtime + 2 * (tick + 1200 * US);
                        prop_assert!(taken <= share, "{taken} of {share} at {time}: {budget:?}");
                    }
                    blocks += u64::from(is_running && runs > 0);
                }
            }
        }

        /// Whoever takes all it can get gets at least its share.
        #[test]
        fn who_takes_all_gets_its_share(
            runtime in 200..9000u64, late in prop::collection::vec(0..500u64, 50),
        ) {
            let (runtime, period) = (runtime * US, 10 * MS);
            let mut budget = Budget::new((runtime, period, period), 0);
            let (mut now, mut taken) = (0, 0);
            for late in late {
                let runs = budget.left().max(200 * US) + late * US;
                (now, taken) = (now + runs, taken + runs);
                let look = Look { from: now, now, took: runs, has_blocked: false, sleeps: false };
                budget.polled(look);
                if budget.exhausted(now).is_some() {
                    now = now.max(budget.stop());
                    budget.resume(now);
                }
                prop_assert!(taken <= (now / period + 3) * runtime + (200 + late) * US, "{taken} at {now}");
            }
            prop_assert!(taken >= now / period * runtime, "{taken} at {now}");
        }
    }
}
