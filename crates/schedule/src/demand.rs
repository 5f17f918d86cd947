//! The processor-demand test for preemptive EDF on one processor, deadlines no longer than periods (Baruah,
//! Rosier and Howell 1990), by Quick Processor-demand Analysis (Zhang and Burns 2009).
//!
//! > All deadlines are met if and only if h(t) = Σ (⌊(t − D_i) / T_i⌋ + 1) · Q_i over all tasks with D_i ≤ t
//! > never exceeds t.
//!
//! What the kernel keeps for ordinary threads (`reserve`) adds its bandwidth times t to h(t).
//!
//! Declared blocking adds, to intervals from D_i on, the longest B_i of the tasks with D_i ≤ t: a less urgent
//! thread can delay a busy period only by what it held when that began (Baker 1991, Spuri 1996).
//!
//! The runtime of the task to be admitted need not be fixed. QPA goes from long intervals to short ones; if
//! the demand of an interval is too high, the runtime is reduced until it fits. Intervals that passed before
//! still pass, since their demand falls too. So a single descent finds the longest feasible runtime.

use crate::Utilization;
use crate::task::Task;
use crate::work::{Unproven, Work};
use punctual_model::Duration;

/// The longest runtime from `least` to `task.runtime` with which `task` is schedulable together with
/// `others`, which are sorted by deadline; a shorter one, if finding the longest takes too much work.
pub(crate) fn longest_runtime(
    others: Others,
    task: Task,
    least: Duration,
    work: &mut Work,
) -> Result<Duration, Unproven> {
    if suffices(others, &task) {
        return Ok(task.runtime);
    }
    let longest = cut_by_first_deadlines(others, &task, least, work)?;
    if longest == least {
        return descend(others, task.with_runtime(least), least, work);
    }
    // With all the time that is left, the intervals to examine may never end; with a little less, few remain.
    const LESS: [u32; 7] = [0, 12, 9, 6, 4, 2, 1];
    let mut search = work.half();
    for less in LESS {
        let runtime = match less {
            0 => longest,
            less => Duration::from_ns(longest.ns() - ((longest.ns() - least.ns()) >> less)),
        };
        match descend(others, task.with_runtime(runtime), least, &mut search.half()) {
            Err(Unproven::TooMuch) => {}
            result => return result,
        }
    }
    descend(others, task.with_runtime(least), least, work)
}

/// What is admitted already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Others<'a> {
    /// Sorted by deadline.
    pub(crate) tasks: &'a [Task],
    /// The bandwidth of what the kernel keeps for ordinary threads: its demand within t is at most this part
    /// of t.
    pub(crate) reserved: Utilization,
}

/// QPA, reducing the runtime to what is feasible.
fn descend(others: Others, task: Task, least: Duration, work: &mut Work) -> Result<Duration, Unproven> {
    if suffices(others, &task) {
        return Ok(task.runtime);
    }
    let tasks = Tasks { others: others.tasks, reserved: others.reserved, task: &task };
    let others = others.tasks;
    let mut runtime = task.runtime;
    let shortest = others.first().map_or(task.deadline, |first| first.deadline.min(task.deadline)).ns();
    let bound = tasks.bound(work)?;
    let mut interval = tasks.last_deadline(bound.saturating_add(1), work)?;
    while let Some(t) = interval {
        let (demand, jobs) = tasks.demand(t, work)?;
        runtime = cut(t, demand, jobs, runtime, least)?;
        // At most t now, so it fits 64 bits.
        let total = (demand + jobs * u128::from(runtime.ns())) as u64;
        if total <= shortest {
            break;
        }
        interval = match total < t {
            // Between deadlines only the kernel's demand changes, and that less than the interval.
            true if tasks.reserved > Utilization::ZERO => tasks.last_deadline(total + 1, work)?,
            true => Some(total),
            false => tasks.last_deadline(t, work)?,
        };
    }
    Ok(runtime)
}

/// The longest runtime up to `runtime` with which the demand of an interval does not exceed its length.
fn cut(t: u64, demand: u128, jobs: u128, runtime: Duration, least: Duration) -> Result<Duration, Unproven> {
    let t = u128::from(t);
    if demand + jobs * u128::from(runtime.ns()) <= t {
        return Ok(runtime);
    }
    if demand + jobs * u128::from(least.ns()) > t {
        return Err(Unproven::Demand {
            interval: Duration::from_ns(t as u64),
            demand: demand + jobs * u128::from(least.ns()),
        });
    }
    // `jobs` is positive, since the runtime matters; and the quotient lies between two runtimes.
    Ok(Duration::from_ns(((t - demand) / jobs.max(1)) as u64))
}

/// With a runtime that uses up all remaining time, QPA has endless intervals to examine. The first deadlines
/// often rule such a runtime out, so some of them are checked beforehand.
fn cut_by_first_deadlines(
    others: Others,
    task: &Task,
    least: Duration,
    work: &mut Work,
) -> Result<Duration, Unproven> {
    const SOME: usize = 8;
    let tasks = Tasks { others: others.tasks, reserved: others.reserved, task };
    let others = others.tasks;
    let later = &others[others.partition_point(|other| other.deadline < task.deadline)..];
    let step = later.len().div_ceil(SOME).max(1);
    let deadlines =
        std::iter::once(task.deadline).chain(later.iter().step_by(step).map(|other| other.deadline));
    let mut runtime = task.runtime;
    for deadline in deadlines.map(Duration::ns) {
        let (demand, jobs) = tasks.demand(deadline, work)?;
        runtime = cut(deadline, demand, jobs, runtime, least)?;
    }
    Ok(runtime)
}

/// A sufficient test in one pass: each task's demand is bounded by a line from its first deadline on (Devi
/// 2003; the first step of Albers and Slomka's approximation). Between deadlines the sum of the lines rises
/// no faster than time, so checking it at the deadlines is enough.
fn suffices(others: Others, task: &Task) -> bool {
    let Others { tasks: others, reserved } = others;
    let place = others.partition_point(|other| other.deadline <= task.deadline);
    let sorted = others[..place].iter().chain([task]).chain(&others[place..]);
    let (mut demand, mut rate, mut at, mut blocking) = (0u128, reserved, 0, 0);
    for task in sorted {
        let deadline = task.deadline.ns();
        demand += rate.part_of(deadline - at) + u128::from(task.runtime.ns());
        rate += task.rate;
        at = deadline;
        blocking = blocking.max(task.blocking.ns());
        if demand + u128::from(blocking) > u128::from(deadline) || rate > Utilization::ONE {
            return false;
        }
    }
    true
}

struct Tasks<'a> {
    others: &'a [Task],
    reserved: Utilization,
    /// With its longest runtime.
    task: &'a Task,
}

impl Tasks<'_> {
    fn all(&self) -> impl Iterator<Item = &Task> {
        self.others.iter().chain([self.task])
    }

    /// h(t) of the others and of the kernel, and the task's own number of jobs.
    fn demand(&self, t: u64, work: &mut Work) -> Result<(u128, u128), Unproven> {
        work.spend(self.others.len() + 1)?;
        let jobs = |task: &Task| {
            t.checked_sub(task.deadline.ns()).map_or(0, |rest| u128::from(rest / task.period.ns().max(1)) + 1)
        };
        // They are sorted: the rest have no deadline within t.
        let begun = self.others.iter().take_while(|task| task.deadline.ns() <= t);
        let demand: u128 = begun.map(|task| jobs(task) * u128::from(task.runtime.ns())).sum();
        Ok((demand + self.reserved.part_of(t) + u128::from(self.blocking(t)), jobs(self.task)))
    }

    /// The longest blocking of the tasks with deadlines up to `t`.
    fn blocking(&self, t: u64) -> u64 {
        let begun = self.others.iter().take_while(|task| task.deadline.ns() <= t).chain([self.task]);
        begun.filter(|task| task.deadline.ns() <= t).map(|task| task.blocking.ns()).max().unwrap_or_default()
    }

    /// The greatest absolute deadline below `t`, if all tasks begin at 0.
    fn last_deadline(&self, t: u64, work: &mut Work) -> Result<Option<u64>, Unproven> {
        work.spend(self.others.len() + 1)?;
        let last = |task: &Task| {
            let (deadline, period) = (task.deadline.ns(), task.period.ns().max(1));
            let rest = t.checked_sub(deadline)?.checked_sub(1)?;
            Some(deadline + rest / period * period)
        };
        Ok(self.all().filter_map(last).max())
    }

    /// Longest interval to examine: the lesser of the bound by utilization and the synchronous busy period.
    fn bound(&self, work: &mut Work) -> Result<u64, Unproven> {
        let by_utilization = self.bound_by_utilization();
        // The busy period is often shorter, but takes long to find when utilization is high. So the search
        // stops early if the other bound is known.
        const ROUNDS: usize = 16;
        let blocking = u128::from(self.blocking(u64::MAX));
        let mut busy = self.all().fold(0u64, |sum, task| sum.saturating_add(task.runtime.ns())).max(1);
        for round in 0.. {
            match by_utilization {
                Some(bound) if busy >= bound || round >= ROUNDS => return Ok(bound),
                _ => work.spend(self.others.len() + 1)?,
            }
            let released = |task: &Task| {
                u128::from(busy.div_ceil(task.period.ns().max(1))) * u128::from(task.runtime.ns())
            };
            let demand = self.all().map(released).sum::<u128>() + self.reserved.part_of(busy) + blocking;
            if demand <= u128::from(busy) {
                break;
            }
            busy = u64::try_from(demand).map_err(|_| Unproven::TooMuch)?;
        }
        Ok(busy)
    }

    /// max(D_max, Σ (T_i − D_i) · U_i / (1 − U)), if it fits 64 bits.
    fn bound_by_utilization(&self) -> Option<u64> {
        let rate = self.reserved + self.all().map(|task| task.rate).sum();
        let shortened = |task: &Task| {
            u128::from(task.period.saturating_sub(task.deadline).ns()).checked_mul(task.rate.raw())
        };
        let shortened = self.all().try_fold(0u128, |sum, task| sum.checked_add(shortened(task)?))?;
        let longest = self.all().map(|task| task.deadline.ns()).max()?;
        let free = (Utilization::ONE - rate).raw();
        let blocked = u128::from(self.blocking(u64::MAX)).checked_mul(Utilization::ONE.raw())?;
        let bound = shortened.checked_add(blocked)?.checked_add(free)?.checked_div(free)?;
        let bound = u64::try_from(bound).ok()?;
        Some(bound.max(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use response_time_analysis as published;

    fn task((runtime, period, deadline): (u64, u64, u64)) -> Task {
        Task::new(Duration::from_ns(runtime), Duration::from_ns(period), Duration::from_ns(deadline), true)
    }

    /// The longest runtime of the last task.
    fn longest(tasks: &[(u64, u64, u64)], least: u64) -> Result<u64, Unproven> {
        let (&last, others) = tasks.split_last().unwrap();
        let mut others: Vec<_> = others.iter().copied().map(task).collect();
        others.sort_by_key(|task| task.deadline);
        longest_runtime(alone(&others), task(last), Duration::from_ns(least), &mut Work::unlimited())
            .map(Duration::ns)
    }

    #[test]
    fn buttazzo_processor_demand() {
        let tasks = [(2, 6, 4), (2, 8, 5), (3, 9, 7)];
        let all: Vec<_> = tasks.into_iter().map(task).collect();
        let tasks_of = Tasks { others: &all[..2], reserved: Utilization::ZERO, task: &all[2] };
        // L* = 25, rounded up.
        assert!((25..=26).contains(&tasks_of.bound_by_utilization().unwrap()));
        assert!(tasks_of.bound(&mut Work::default()).unwrap() <= 25);
        let demand =
            |t| tasks_of.demand(t, &mut Work::default()).map(|(others, jobs)| others + jobs * 3).unwrap();
        assert_eq!([4, 5, 7, 10, 13, 16, 21, 22].map(demand), [2, 4, 7, 9, 11, 16, 18, 20]);
        assert_eq!(longest(&tasks, 3), Ok(3));
        // Nothing is left at 7.
        assert_eq!(longest(&[(2, 6, 4), (2, 8, 5), (4, 12, 7)], 3), Ok(3));
        assert!(matches!(
            longest(&[(2, 6, 4), (2, 8, 5), (4, 12, 7)], 4),
            Err(Unproven::Demand { demand: 8.., .. })
        ));
    }

    /// On a processor of which the kernel keeps nothing.
    fn alone(tasks: &[Task]) -> Others<'_> {
        Others { tasks, reserved: Utilization::ZERO }
    }

    #[test]
    fn a_reserve_counts_by_its_bandwidth() {
        let longest = |others: &[(u64, u64, u64)], last: (u64, u64, u64)| {
            let others: Vec<Task> = others.iter().map(|&spec| task(spec)).collect();
            let tenth = Utilization::new(Duration::from_ns(1), Duration::from_ns(10));
            let reserved = tenth - Utilization::ALLOWANCE;
            let others = Others { tasks: &others, reserved };
            longest_runtime(others, task(last), Duration::from_ns(1), &mut Work::unlimited())
        };
        // 100 + 400 + 500 within 1,000; 30 + 270 within 300, and then 130 + 540 + 630 within 1,300.
        assert_eq!(longest(&[(400, 1_000, 1_000)], (500, 1_000, 1_000)), Ok(Duration::from_ns(500)));
        assert_eq!(longest(&[], (300, 1_000, 300)), Ok(Duration::from_ns(270)));
        assert_eq!(longest(&[(270, 1_000, 300)], (630, 1_000, 1_300)), Ok(Duration::from_ns(630)));
        assert_eq!(longest(&[(270, 1_000, 300)], (631, 1_000, 1_300)), Ok(Duration::from_ns(630)));
        let late = longest(&[(270, 1_000, 300)], (1, 1_000, 300));
        assert_eq!(late, Err(Unproven::Demand { interval: Duration::from_ns(300), demand: 301 }));
    }

    #[test]
    fn a_processor_can_be_fully_used() {
        assert_eq!(longest(&[(1, 2, 2), (1, 4, 4), (2, 8, 8)], 1), Ok(2));
        assert_eq!(longest(&[(1, 2, 2), (2, 4, 4)], 1), Ok(2));
        assert_eq!(longest(&[(1, 2, 1), (2, 4, 4)], 1), Ok(2));
        assert_eq!(
            longest(&[(1, 2, 1), (1, 4, 1)], 1),
            Err(Unproven::Demand { interval: Duration::from_ns(1), demand: 2 })
        );
    }

    #[test]
    fn large_numbers_neither_overflow_nor_take_forever() {
        let great = i64::MAX as u64;
        let work = &mut Work::default();
        let others = [task((1, 2, 1)), task((great / 4, great, great / 2))];
        let longest = longest_runtime(
            alone(&others),
            task((great / 4, great, great - 1)),
            Duration::from_ns(great / 4),
            work,
        );
        assert!(!matches!(longest, Ok(runtime) if runtime.ns() > great / 4));
    }

    #[test]
    fn blocking_delays_from_the_deadline_on() {
        let with = |blocking: u64| {
            let blocked = Task { blocking: Duration::from_ns(blocking), ..task((2, 8, 5)) };
            let others = [task((2, 6, 4)), blocked];
            longest_runtime(alone(&others), task((3, 9, 7)), Duration::from_ns(1), &mut Work::unlimited())
        };
        // Within 5: 2 + 2, and 1 is left. Within 7: 4, and what is left of the rest.
        assert_eq!(with(0), Ok(Duration::from_ns(3)));
        assert_eq!(with(1), Ok(Duration::from_ns(2)));
        assert_eq!(with(2), Err(Unproven::Demand { interval: Duration::from_ns(5), demand: 6 }));
    }

    /// A shorter runtime is tried before the least.
    #[test]
    fn much_of_the_longest_runtime_is_found_although_that_takes_too_much_work() {
        // It asks for all the time the other one leaves: each interval that QPA examines is hardly shorter
        // than the one before.
        let others = [task((99_999, 100_000, 99_999))];
        let open = task((100_000, 10_000_000_000, 9_999_999_999));
        let least = Duration::from_ns(5);
        let longest = |mut work: Work| longest_runtime(alone(&others), open, least, &mut work).unwrap();
        let (all, found) = (longest(Work::unlimited()), longest(Work::default()));
        assert!(all > Duration::from_us(99) && found <= all, "{found} of {all}");
        assert!(found.ns() > all.ns() / 2, "{found} of {all}");
    }

    /// Whether each task's response time is within its deadline, by the published analysis.
    fn published_says(tasks: &[(u64, u64, u64)]) -> Option<bool> {
        use published::{arrival::Sporadic, demand::RBF, edf::fully_preemptive, time::Service, wcet::Scalar};
        let bounds: Vec<_> = tasks
            .iter()
            .map(|&(runtime, period, _)| {
                let arrivals = Sporadic { min_inter_arrival: period.into(), jitter: 0.into() };
                RBF::new(arrivals, Scalar::new(Service::from(runtime)))
            })
            .collect();
        for (at, &(_, _, deadline)) in tasks.iter().enumerate() {
            let task = |other: usize| fully_preemptive::Task {
                rbf: &bounds[other],
                deadline: tasks[other].2.into(),
            };
            let others: Vec<_> = (0..tasks.len()).filter(|&other| other != at).map(task).collect();
            let response =
                fully_preemptive::dedicated_uniproc_rta(&task(at), &others, 200_000.into()).ok()?;
            if u64::from(response) > deadline {
                return Some(false);
            }
        }
        Some(true)
    }

    fn tasks() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
        let period = prop_oneof![2..20u64, 2..300u64];
        let task = (period, 0.0..0.5f64, 0.0..=1.0f64).prop_map(|(period, share, tight)| {
            let runtime = ((period as f64 * share) as u64).max(1);
            (runtime, period, runtime + ((period - runtime) as f64 * tight) as u64)
        });
        prop::collection::vec(task, 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn verdicts_equal_those_of_the_published_analysis(tasks in tasks()) {
            // QPA requires that the others are schedulable and the threshold is not exceeded.
            let rate: Utilization = tasks.iter().map(|&spec| task(spec).rate).sum();
            if rate > Utilization::ONE {
                return Ok(());
            }
            let (last, others) = tasks.split_last().unwrap();
            let Some(schedulable) = published_says(&tasks) else { return Ok(()) };
            prop_assert_eq!(longest(&tasks, last.0).is_ok(), schedulable);
            // If the runtime is not fixed, the longest feasible one is found.
            let longer = (last.0..=last.2).take_while(|&runtime| {
                let with: Vec<_> = others.iter().copied().chain([(runtime, last.1, last.2)]).collect();
                with.iter().map(|&spec| task(spec).rate).sum::<Utilization>() <= Utilization::ONE
                    && published_says(&with) == Some(true)
            });
            if let Some(expected) = longer.last() {
                let rates: Utilization = others.iter().map(|&spec| task(spec).rate).sum();
                let most = (Utilization::ONE - rates).runtime_in(Duration::from_ns(last.1)).ns().min(last.2);
                let open: Vec<_> = others.iter().copied().chain([(most, last.1, last.2)]).collect();
                prop_assert_eq!(longest(&open, 1), Ok(expected));
            }
        }
    }
}
