//! Response-time analysis for preemptive fixed priorities on one processor (Joseph and Pandya 1986; Audsley
//! et al. 1993; Lehoczky 1990).
//!
//! Tasks are sporadic and independent. Tasks that share a priority are assumed to interfere with each other,
//! which is safe for every order among them: for SCHED_FIFO and SCHED_RR. Then all tasks of one level have
//! the same demand
//!
//! > W(t) = Σ ⌈t / T_j⌉ · Q_j over all tasks of this level and of more urgent ones,
//!
//! and the least t with W(t) ≤ t is the level's longest busy period. No job of it takes longer than that; and
//! if it ends within a task's period, then this is the task's exact response time, for the order among equals
//! that is worst for it. So a level is tested at once, however many tasks it has.
//!
//! Deadlines longer than the period are also tested exactly, job by job through the busy period (Lehoczky).
//!
//! Where it is known what the kernel takes ([`Platform`]), W is that of `punctual_analysis`, so that
//! admission and `punctual prove` agree:
//!
//! > W(t) = B + I(t) + Σ ⌈t / T_j⌉ · (Q_j + 2s) − 2s
//!
//! with the blocking B, the interrupts I and a pass of the scheduler s; the first pass is part of B. What the
//! kernel takes for ordinary threads (`reserve`) is added to W, if the specs make it take that.
//!
//! A declared blocking is added to W of its level, once: less urgent threads can only delay a busy period by
//! what they held when it began. Of tasks that share a level, the longest counts.
//!
//! The `response-time-analysis` crate has the same analysis for arrival curves. Its numbers wrap in release
//! builds, its work is not bounded, and it analyses one task at a time, so n tasks take n² terms per
//! iteration. Here the property tests compare with it.

use crate::reserve::Reserve;
use crate::task::Task;
use crate::work::{Unproven, Work};
use punctual_analysis::Platform;
use punctual_model::Duration;

/// Terms of [`Work`] that looking one source of interrupts up takes.
const LOOKUP: usize = 8;

/// The tasks to test: most urgent first, in levels of equal priority.
#[derive(Debug, Default)]
pub(crate) struct FixedPriorities<'a> {
    tasks: Vec<Task>,
    /// Periods and runtimes in arrays of their own, because the sums run over nothing else. Runtimes with
    /// what a job costs the scheduler.
    periods: Vec<u64>,
    runtimes: Vec<u64>,
    /// The end of each level in `tasks`.
    ends: Vec<usize>,
    /// The longest declared blocking of each level's guaranteed tasks.
    blockings: Vec<u64>,
    /// What the kernel takes, if that is known.
    platform: Option<&'a Platform>,
    /// What it takes for ordinary threads.
    reserves: &'a [Reserve],
}

impl<'a> FixedPriorities<'a> {
    /// No tasks yet, on a processor of which the kernel takes this much.
    pub(crate) fn on(platform: Option<&'a Platform>, reserves: &'a [Reserve]) -> Self {
        Self { platform, reserves, ..Self::default() }
    }

    /// What the scheduler takes for each job: two passes.
    fn switches(&self) -> u64 {
        self.platform.map_or(0, |platform| platform.switch.ns().saturating_mul(2))
    }

    /// What the level that ends at `end` can be blocked, by the kernel and by less urgent threads.
    fn blocking(&self, end: usize) -> u64 {
        let level = self.ends.partition_point(|&other| other < end);
        let declared = self.blockings.get(level).copied().unwrap_or_default();
        self.platform.map_or(0, |platform| platform.blocking.ns()).saturating_add(declared)
    }

    /// Appends a task, to the level of the previous one unless [`end_level`](Self::end_level) was called in
    /// between.
    pub(crate) fn push(&mut self, task: Task) {
        self.periods.push(task.period.ns().max(1));
        self.runtimes.push(task.runtime.ns().saturating_add(self.switches()));
        self.tasks.push(task);
    }

    /// Ends a level: the tasks that follow are less urgent.
    pub(crate) fn end_level(&mut self) {
        let begin = self.ends.last().copied().unwrap_or_default();
        let guaranteed = self.tasks[begin..].iter().filter(|task| task.guaranteed);
        self.blockings.push(guaranteed.map(|task| task.blocking.ns()).max().unwrap_or_default());
        self.ends.push(self.tasks.len());
    }

    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Whether all guaranteed tasks of level `first` and of less urgent ones meet their deadlines. More
    /// urgent levels are skipped: nothing below interferes with them.
    pub(crate) fn prove(&self, first: usize, work: &mut Work) -> Result<(), Unproven> {
        let mut linear = Linear::on(self.platform, self.reserves);
        let mut begin = 0;
        let mut busy = 0;
        for (level, &end) in self.ends.iter().enumerate() {
            let members = begin..end;
            members.clone().for_each(|task| linear.add(&self.with_kernel(task)));
            begin = end;
            let at_stake = |task: &usize| self.tasks[*task].guaranteed;
            if level < first
                || members.clone().filter(at_stake).all(|task| linear.suffices_for(&self.with_kernel(task)))
            {
                continue;
            }
            // A blocking of its own makes a busy period longer than those of the levels below.
            let known = if self.blockings.iter().all(|blocking| *blocking == 0) { busy } else { 0 };
            busy = self.prove_level(members.filter(at_stake), end, known, work)?;
        }
        Ok(())
    }

    /// A task with what its jobs cost the scheduler.
    fn with_kernel(&self, task: usize) -> Task {
        match self.platform {
            None => self.tasks[task],
            Some(_) => self.tasks[task].with_runtime(Duration::from_ns(self.runtimes[task])),
        }
    }

    /// A lower bound of every window of the level that ends at `end`: one job of each task.
    fn least_window(&self, end: usize) -> u64 {
        let jobs = self.runtimes[..end].iter().fold(0, |sum: u64, &runtime| sum.saturating_add(runtime));
        jobs.saturating_sub(self.switches())
    }

    /// [`prove`](Self::prove) for guaranteed tasks of the level that ends at `end`. `busy` is a lower bound
    /// of this level's busy period; returns a tighter one.
    fn prove_level(
        &self,
        members: impl Iterator<Item = usize> + Clone,
        end: usize,
        busy: u64,
        work: &mut Work,
    ) -> Result<u64, Unproven> {
        let bound = |task: usize| self.tasks[task].deadline.min(self.tasks[task].period).ns();
        let Some(tightest) = members.clone().min_by_key(|&task| bound(task)) else { return Ok(busy) };
        // One sum is often enough: if all that can be released by then is also done by then, the busy period
        // is over.
        if self.demand(bound(tightest), end, work)? <= u128::from(bound(tightest)) {
            return Ok(busy);
        }
        let constrained = |task: &usize| self.tasks[*task].deadline <= self.tasks[*task].period;
        let most = match members.clone().filter(constrained).min_by_key(|&task| bound(task)) {
            Some(task) => (task, bound(task)),
            None => (tightest, members.clone().map(bound).max().unwrap_or_default()),
        };
        let begin = busy.max(self.least_window(end));
        let busy = match self.busy_period(begin, most.1, end, work)? {
            Ok(busy) => busy,
            Err(response) if constrained(&most.0) => return Err(Unproven::Late { task: most.0, response }),
            Err(_) => u64::MAX,
        };
        for task in members.filter(|&task| bound(task) < busy) {
            self.prove_jobs(task, end, work)?;
        }
        Ok(if busy == u64::MAX { begin } else { busy })
    }

    /// The least t ≥ `begin` with W(t) ≤ t; if that exceeds `most`, a lower bound of it as an error.
    fn busy_period(
        &self,
        begin: u64,
        most: u64,
        end: usize,
        work: &mut Work,
    ) -> Result<Result<u64, u128>, Unproven> {
        let mut t = begin.max(1);
        while t <= most {
            let demand = self.demand(t, end, work)?;
            if demand <= u128::from(t) {
                return Ok(Ok(t));
            }
            match u64::try_from(demand) {
                Ok(demand) => t = demand,
                Err(_) => return Ok(Err(demand)),
            }
        }
        Ok(Err(t.into()))
    }

    /// Checks each job of a task in the busy period of its level, for periods shorter than that (Lehoczky).
    fn prove_jobs(&self, task: usize, end: usize, work: &mut Work) -> Result<(), Unproven> {
        let (runtime, period, deadline) =
            (self.runtimes[task], self.periods[task], self.tasks[task].deadline.ns());
        let mut t = self.least_window(end).max(1);
        for job in 1u64.. {
            let release = (job - 1).checked_mul(period).ok_or(Unproven::TooMuch)?;
            let latest = release.checked_add(deadline).ok_or(Unproven::TooMuch)?;
            let own = u128::from(job) * u128::from(runtime);
            loop {
                // W counts ⌈t / T⌉ jobs of this task; only those up to this one run before its end.
                let counted = u128::from(t.div_ceil(period)) * u128::from(runtime);
                let demand = (self.demand(t, end, work)? + own).saturating_sub(counted);
                if demand <= u128::from(t) {
                    break;
                }
                if demand > u128::from(latest) {
                    return Err(Unproven::Late { task, response: demand - u128::from(release) });
                }
                t = demand as u64;
            }
            if t > latest {
                return Err(Unproven::Late { task, response: u128::from(t - release) });
            }
            if t - release <= period {
                break;
            }
            t = t.saturating_add(runtime);
        }
        Ok(())
    }

    /// W(t) over the tasks before `end`.
    fn demand(&self, t: u64, end: usize, work: &mut Work) -> Result<u128, Unproven> {
        let sources = self.platform.map_or(0, |platform| platform.interrupts.len());
        work.spend(end + LOOKUP * sources + self.reserves.len())?;
        let terms = self.periods[..end].iter().zip(&self.runtimes[..end]);
        let jobs: u128 =
            terms.map(|(&period, &runtime)| u128::from(t.div_ceil(period)) * u128::from(runtime)).sum();
        Ok(jobs + self.kernel(t, end) - u128::from(self.switches()))
    }

    /// B + I(t) of a level, with what ordinary threads get; beyond 64 bits, more than any deadline.
    fn kernel(&self, t: u64, end: usize) -> u128 {
        let interrupts = self.platform.map_or(Some(0), |platform| platform.interference(t));
        let reserved: u128 = self.reserves.iter().map(|reserve| reserve.taken(t)).sum();
        interrupts.map_or(u128::from(u64::MAX), u128::from) + u128::from(self.blocking(end)) + reserved
    }
}

/// An upper bound of response times that needs only sums over the tasks so far, so that its cost does not
/// depend on their number (Bini, Nguyen, Richard and Baruah 2009):
/// R_i ≤ (Q_i + Σ Q_j (1 − U_j)) / (1 − Σ U_j), for deadlines of any length if Σ U_j + U_i ≤ 1.
#[derive(Debug, Default)]
struct Linear {
    /// Σ Q_j (1 − U_j), rounded up.
    carried: u128,
    rate: crate::Utilization,
}

impl Linear {
    /// Interrupts count as a task that takes, in each horizon, the most that they take in one: a window of
    /// any length has no more.
    fn on(platform: Option<&Platform>, reserves: &[Reserve]) -> Self {
        let mut linear = Self::default();
        for reserve in reserves {
            linear.carried += 2 * u128::from(reserve.runtime.ns());
            linear.rate += reserve.rate();
        }
        let Some(platform) = platform else { return linear };
        linear.carried += u128::from(platform.blocking.ns());
        if !platform.interrupts.is_empty() {
            let horizon = platform.horizon.max(Duration::from_ns(1));
            let most = platform.interference(horizon.ns()).unwrap_or(u64::MAX);
            linear.add(&Task::new(Duration::from_ns(most), horizon, horizon, false));
        }
        linear
    }

    fn add(&mut self, task: &Task) {
        let runtime = task.runtime.ns();
        // The rate is rounded up, by less than what these 2 ns compensate.
        let less = task.rate.part_of(runtime).saturating_sub(2);
        self.carried += u128::from(runtime).saturating_sub(less);
        self.rate += task.rate;
    }

    /// Whether an added task meets its deadline even if all others are more urgent.
    fn suffices_for(&self, task: &Task) -> bool {
        let deadline = task.deadline.ns();
        let others = (self.rate - task.rate).part_of(deadline);
        let carried = self.carried + task.rate.part_of(task.runtime.ns()) + u128::from(task.blocking.ns());
        self.rate <= crate::Utilization::ONE && carried.saturating_add(others) <= u128::from(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_model::Duration;
    use response_time_analysis as published;

    /// Tasks (runtime, period, deadline), most urgent first, each on a level of its own.
    fn set(tasks: &[(u64, u64, u64)]) -> FixedPriorities<'static> {
        let mut set = FixedPriorities::default();
        for &(runtime, period, deadline) in tasks {
            set.push(Task::new(
                Duration::from_ns(runtime),
                Duration::from_ns(period),
                Duration::from_ns(deadline),
                true,
            ));
            set.end_level();
        }
        set
    }

    /// The shortest deadline with which the last task passes the test.
    fn response(tasks: &[(u64, u64)]) -> u64 {
        let mut tasks: Vec<_> =
            tasks.iter().map(|&(runtime, period)| (runtime, period, u64::MAX >> 2)).collect();
        let last = tasks.len() - 1;
        (1..10_000)
            .find(|&deadline| {
                tasks[last].2 = deadline;
                set(&tasks).prove(last, &mut Work::unlimited()).is_ok()
            })
            .expect("it has a response time")
    }

    #[test]
    fn burns_and_wellings() {
        let tasks = [(3, 7), (3, 12), (5, 20)];
        assert_eq!([response(&tasks[..1]), response(&tasks[..2]), response(&tasks)], [3, 6, 20]);
    }

    #[test]
    fn buttazzo_deadline_monotonic() {
        let mut tasks = vec![(1, 4, 3), (1, 5, 4), (2, 6, 5), (1, 11, 10)];
        assert_eq!(set(&tasks).prove(0, &mut Work::default()), Ok(()));
        assert_eq!(response(&[(1, 4), (1, 5), (2, 6), (1, 11)]), 10);
        tasks[3].2 = 9;
        assert!(matches!(
            set(&tasks).prove(0, &mut Work::default()),
            Err(Unproven::Late { task: 3, response: 10.. })
        ));
    }

    #[test]
    fn lehoczky_arbitrary_deadlines() {
        // The first job of the second task takes 114, its fifth 118; the busy period ends with the seventh.
        assert_eq!(response(&[(26, 70), (62, 100)]), 118);
    }

    /// Buttazzo, Hard Real-Time Computing Systems, 7.9: R = B + C + Σ ⌈R / T⌉ · C of the more urgent ones.
    #[test]
    fn blocking_counts_once() {
        let with = |blocking: u64, deadline: u64| {
            let mut set = FixedPriorities::default();
            for (at, (runtime, period)) in [(3, 7), (3, 12), (5, 40)].into_iter().enumerate() {
                let [runtime, period] = [runtime, period].map(Duration::from_ns);
                let task =
                    Task::new(runtime, period, Duration::from_ns(if at == 1 { deadline } else { 40 }), true);
                let blocking = Duration::from_ns(if at == 1 { blocking } else { 0 });
                set.push(Task { blocking, ..task });
                set.end_level();
            }
            set.prove(0, &mut Work::unlimited()).is_ok()
        };
        // 3 + 3 = 6; with 1 it is 7; with 2 the first one comes again: 2 + 3 + 2 · 3 = 11.
        assert!(with(0, 6) && !with(0, 5));
        assert!(with(1, 7) && !with(1, 6));
        assert!(with(2, 11) && !with(2, 10));
        // The third one, which declares none, is not delayed by it: 5 + 2 · 3 + 3 · 3 = 20.
        assert!(with(2, 12));
    }

    #[test]
    fn full_use_of_harmonic_periods() {
        assert_eq!(set(&[(1, 2, 2), (1, 4, 4), (1, 8, 8), (1, 8, 8)]).prove(0, &mut Work::default()), Ok(()));
        assert!(set(&[(1, 2, 2), (1, 4, 4), (1, 8, 8), (2, 8, 8)]).prove(0, &mut Work::default()).is_err());
    }

    #[test]
    fn tasks_of_equal_priority_interfere_with_each_other() {
        let tasks = [(2, 10, 4), (2, 10, 3)].map(|(q, t, d)| {
            Task::new(Duration::from_ns(q), Duration::from_ns(t), Duration::from_ns(d), true)
        });
        let mut shared = FixedPriorities::default();
        tasks.iter().for_each(|&task| shared.push(task));
        shared.end_level();
        assert!(matches!(
            shared.prove(0, &mut Work::default()),
            Err(Unproven::Late { task: 1, response: 4 })
        ));
        // The one whose test was ignored may itself be late.
        let mut shared = FixedPriorities::default();
        shared.push(tasks[0]);
        shared.push(Task { guaranteed: false, ..tasks[1] });
        shared.end_level();
        assert_eq!(shared.prove(0, &mut Work::default()), Ok(()));
    }

    #[test]
    fn large_numbers_neither_overflow_nor_take_forever() {
        let great = i64::MAX as u64;
        let tasks = vec![(great / 2, great, great); 3];
        assert!(matches!(set(&tasks).prove(0, &mut Work::default()), Err(Unproven::Late { task: 2, .. })));
        // The busy period of the last one takes a step for each of 2⁶² jobs.
        let endless = [(1, 2, 2), (great / 2 - 1, great, great)];
        assert_eq!(set(&endless).prove(0, &mut Work::default()), Ok(()));
        let endless = [(2, 3, 3), (great / 3, great, great - 7)];
        assert!(set(&endless).prove(0, &mut Work::default()).is_err());
    }

    /// The response time by the published analysis; `None` if it finds none up to a limit.
    fn published_response(tasks: &[(u64, u64)]) -> Option<u64> {
        use published::{arrival::Sporadic, demand::RBF, wcet::Scalar};
        let bound = |&(runtime, period): &(u64, u64)| {
            let arrivals = Sporadic { min_inter_arrival: period.into(), jitter: 0.into() };
            RBF::new(arrivals, Scalar::new(published::time::Service::from(runtime)))
        };
        let (last, others) = tasks.split_last()?;
        let others: Vec<_> = others.iter().map(bound).collect();
        let response = published::fixed_priority::fully_preemptive::dedicated_uniproc_rta(
            &bound(last),
            &others,
            200_000.into(),
        );
        response.ok().map(u64::from)
    }

    fn tasks() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let period = prop_oneof![2..20u64, 2..400u64];
        let task = (period, 0.0..0.6f64)
            .prop_map(|(period, share)| (((period as f64 * share) as u64).max(1), period));
        prop::collection::vec(task, 1..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn response_times_equal_those_of_the_published_analysis(tasks in tasks()) {
            let responses: Vec<_> = (1..=tasks.len()).map(|n| published_response(&tasks[..n])).collect();
            let known = responses.iter().take_while(|response| response.is_some()).count();
            let with = |responses: &[Option<u64>]| -> Vec<_> {
                tasks.iter().zip(responses).map(|(&(q, t), response)| (q, t, response.unwrap_or(1))).collect()
            };
            prop_assert_eq!(set(&with(&responses[..known])).prove(0, &mut Work::unlimited()), Ok(()));
            for task in (0..known).filter(|&task| responses[task] > Some(1)) {
                let mut shorter = responses[..known].to_vec();
                shorter[task] = shorter[task].map(|response| response - 1);
                let verdict = set(&with(&shorter)).prove(task, &mut Work::unlimited());
                let is_late = matches!(verdict, Err(Unproven::Late { task: late, response })
                    if late == task && response <= responses[task].unwrap().into());
                prop_assert!(is_late, "{:?}", verdict);
            }
            if known < tasks.len() {
                let mut lax = responses[..=known].to_vec();
                lax[known] = Some(150_000);
                prop_assert!(set(&with(&lax)).prove(known, &mut Work::unlimited()).is_err());
            }
        }

        #[test]
        fn a_limit_on_work_never_turns_a_no_into_a_yes(tasks in tasks(), steps in 0..200usize) {
            let tasks: Vec<_> = tasks.into_iter().map(|(q, t)| (q, t, t)).collect();
            let mut work = Work::unlimited();
            work.spend(usize::MAX - steps).unwrap();
            if set(&tasks).prove(0, &mut work).is_ok() {
                prop_assert_eq!(set(&tasks).prove(0, &mut Work::unlimited()), Ok(()));
            }
        }
    }
}
