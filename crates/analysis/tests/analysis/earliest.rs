//! SCHED_DEADLINE on one processor, with deadlines before the periods' ends: the analysis is exact.

use crate::{ns, responses, some_platform, task};
use punctual_analysis::{
    Arrivals, Cause, Job, Method, NoBound, Platform, Scheduling, System, Task, simulate, worst_case,
};
use punctual_model::Duration;
use punctual_model::policy::Reservation;
use punctual_test_support::Random;

/// Times are in these units, so that there is room between them.
const UNIT: u64 = 10;

/// Where the deadline is before the period's end, a job must need less than the runtime.
fn reserved(cost: u64, deadline: u64, period: u64) -> Task {
    let [cost_ns, deadline_ns, period_ns] = [cost, deadline, period].map(|it| ns(it * UNIT));
    let runtime_ns = if deadline < period { cost_ns + ns(1) } else { cost_ns };
    let reservation = Reservation { runtime_ns, deadline_ns, period_ns };
    task(Scheduling::Deadline(reservation), cost * UNIT, period * UNIT)
}

fn times(task: &Task) -> (u64, u64, u64) {
    match task.scheduling {
        Scheduling::Deadline(it) => (it.runtime_ns.ns(), it.deadline_ns.ns(), it.period_ns.ns()),
        _ => unreachable!("all are reserved"),
    }
}

/// How long the kernel may hold a job until the next period.
fn held(task: &Task) -> u64 {
    let (_, deadline, period) = times(task);
    period - deadline
}

/// The densities sum to 1/2 + 2/3, and yet the demand never exceeds the time: dbf(2) = 1, dbf(3) = 3. Before,
/// jobs may be held for 2 and 1.
#[test]
fn a_set_that_the_density_test_refuses() {
    let system = System { tasks: vec![reserved(1, 2, 4), reserved(2, 3, 4)], platforms: Vec::new() };
    assert_eq!(responses(&system), [Some(40), Some(40)]);
    let bounds = system.prove();
    assert!(bounds.iter().flatten().all(|bound| bound.method == Method::HeldEarliestDeadline));
    // One more, and the second job ends after 4.
    let system = System { tasks: vec![reserved(2, 3, 4), reserved(2, 3, 4)], platforms: Vec::new() };
    assert_eq!(system.prove(), [Err(NoBound::Reservations), Err(NoBound::Reservations)]);
}

/// The longest response of a task: all others begin at once, it begins at any time; deadlines that are equal
/// to its own come first. (Spuri 1996.) `None` if any job of a synchronous release is late.
fn brute_force(tasks: &[Task], me: usize, until: u64) -> Option<u64> {
    let jobs = |first: u64| -> Vec<Job> {
        let of = |(index, task): (usize, &Task)| {
            let (_, _, period) = times(task);
            let cost = task.execution.wcet(1).expect("a cost").ns();
            let first = if index == me { first } else { 0 };
            let releases = (0..).map(move |job| first + job * period).take_while(|at| *at < until);
            releases.map(move |release| Job { task: index, release, segments: vec![(cost, 0)] }).collect()
        };
        tasks.iter().enumerate().flat_map(|it| -> Vec<Job> { of(it) }).collect()
    };
    let synchronous = jobs(0);
    let ends = simulate(tasks, &synchronous).ends;
    let is_late = |(job, end): (&Job, &u64)| *end > job.release + times(&tasks[job.task]).1;
    if synchronous.iter().zip(&ends).any(is_late) {
        return None;
    }
    let mut last = tasks.to_vec();
    if let Scheduling::Deadline(reservation) = &mut last[me].scheduling {
        reservation.deadline_ns += ns(1);
    }
    let longest = |first: u64| {
        let jobs = jobs(first);
        let ends = simulate(&last, &jobs).ends;
        jobs.iter().zip(ends).filter(|(job, _)| job.task == me).map(|(job, end)| end - job.release).max()
    };
    (0..times(&tasks[me]).2).step_by(UNIT as usize).filter_map(longest).max()
}

#[test]
fn bounds_are_the_longest_responses_of_brute_force() {
    let mut random = Random(11);
    let (mut exact, mut beyond_density, mut refused) = (0, 0, 0);
    for set in 0..1_500 {
        let number = 2 + random.below(2);
        let tasks: Vec<Task> = (0..number)
            .map(|_| {
                let period = random.one_of(&[4, 5, 6, 8, 10]);
                let cost = 1 + random.below((period / number).max(1));
                let least = (cost + 1).min(period);
                reserved(cost, least + random.below(period - least + 1), period)
            })
            .collect();
        let load: f64 = tasks.iter().map(|it| times(it).0 as f64 / times(it).2 as f64).sum();
        if load > 1.0 {
            continue;
        }
        let density: f64 = tasks.iter().map(|it| times(it).0 as f64 / times(it).1 as f64).sum();
        let system = System { tasks, platforms: Vec::new() };
        // Periods repeat after 120 at most.
        let found: Vec<Option<u64>> = (0..system.tasks.len())
            .map(|me| Some(brute_force(&system.tasks, me, 250 * UNIT)? + held(&system.tasks[me])))
            .collect();
        assert_eq!(
            responses(&system),
            found,
            "set {set}: {:?}",
            system.tasks.iter().map(times).collect::<Vec<_>>()
        );
        for (me, bound) in system.prove().into_iter().enumerate() {
            let Ok(bound) = bound else { continue };
            let worst = worst_case(&system, me, &bound).expect("a schedule");
            assert_eq!(worst.end.saturating_sub(worst.release), bound.response, "{bound:?} {worst:?}");
        }
        match found[0] {
            Some(_) if density > 1.0 => beyond_density += 1,
            Some(_) => exact += 1,
            None => refused += 1,
        }
    }
    assert!(exact > 200 && beyond_density > 100 && refused > 50, "{exact} {beyond_density} {refused}");
}

/// The schedule takes as long as the bound, with bursts, jitter and what the kernel takes.
#[test]
fn the_worst_schedule_reaches_the_bound() {
    let mut random = Random(12);
    let mut methods = [0, 0];
    for _ in 0..1_000 {
        let number = 1 + random.below(4);
        let tasks: Vec<Task> = (0..number)
            .map(|_| {
                let period = 40 + random.below(200);
                let cost = 1 + random.below(period / (2 * number));
                let deadline = period - random.below(2) * random.below(period / 2);
                // Room for what the kernel takes.
                let runtime_ns = ns((cost + 25).min(deadline));
                let reservation =
                    Reservation { runtime_ns, deadline_ns: ns(deadline), period_ns: ns(period) };
                let mut task = task(Scheduling::Deadline(reservation), cost, period + random.below(20));
                task.jitter = ns(random.below(2) * random.below(9));
                task
            })
            .collect();
        let system = System { tasks, platforms: vec![some_platform(&mut random)] };
        for (me, bound) in system.prove().into_iter().enumerate() {
            let Ok(bound) = bound else { continue };
            let method = match bound.method {
                Method::EarliestDeadline => 0,
                Method::HeldEarliestDeadline => 1,
                _ => continue,
            };
            let worst = worst_case(&system, me, &bound).expect("a schedule");
            let response = worst.end.saturating_sub(worst.release) + system.tasks[me].jitter;
            assert_eq!(response, bound.response, "{bound:?} {worst:?} {:#?}", system.tasks);
            let own = worst.stretches.iter().filter(|it| it.cause == Cause::Own);
            let own = own.fold(Duration::ZERO, |sum, it| sum + it.to.saturating_sub(it.from));
            assert_eq!(own, bound.parts.iter().find(|it| it.cause == Cause::Own).expect("its own").duration);
            methods[method] += 1;
        }
    }
    assert!(methods.iter().all(|&reached| reached > 300), "{methods:?}");
}

/// The deadlines that are assigned keep those of the tasks, with their jitter, if any deadlines do.
#[test]
fn deadlines_are_found_if_there_are_any() {
    let mut random = Random(23);
    let (mut found, mut none) = (0, 0);
    for set in 0..600 {
        let tasks: Vec<Task> = (0..2)
            .map(|_| {
                let period = random.one_of(&[4, 5, 6, 8]);
                let cost = 1 + random.below(period / 2);
                let jitter = ns(random.below(2) * UNIT);
                // Jobs fit: a release comes at least a period after the one before it.
                let mut task = reserved(cost, period, period);
                task.jitter = jitter;
                let period = ns(period * UNIT) + jitter;
                task.arrivals = Arrivals::Periodic { period, jitter };
                task.deadline = Some(ns((cost + random.below(8)) * UNIT));
                task
            })
            .collect();
        let system = System { tasks, platforms: Vec::new() };
        let choices = |task: usize| {
            let (cost, _, period) = times(&system.tasks[task]);
            (cost..=period).step_by(UNIT as usize).map(|it| Some(ns(it)))
        };
        let any = choices(0)
            .any(|one| choices(1).any(|other| system.with_deadlines(&[one, other]).meets_deadlines()));
        match system.assign_deadlines() {
            Ok(deadlines) => {
                assert!(any && system.with_deadlines(&deadlines).meets_deadlines(), "set {set}: {system:#?}");
                found += 1;
            }
            Err(_) => {
                assert!(!any, "set {set}: {system:#?}");
                none += 1;
            }
        }
    }
    assert!(found > 50 && none > 50, "{found} found, {none} none");
}

/// What the kernel takes is in the runtime; releases come as soon as the jitter allows.
#[test]
fn the_least_reservation_is_one_that_jobs_fit() {
    let us = |us: u64| ns(us * 1_000);
    let mut task = reserved(1_000, 1_000, 1_000);
    task.scheduling = Scheduling::Unknown;
    task.jitter = us(200);
    task.arrivals = Arrivals::Periodic { period: us(1_000), jitter: us(200) };
    task.deadline = Some(us(700));
    let platform = Platform { cpu: 0, blocking: us(3), switch: us(1), ..Platform::default() };
    let mut system = System { tasks: vec![task], platforms: vec![platform] };
    let least = system.least_reservation(0).expect("a reservation");
    let expected = Reservation { runtime_ns: us(15), deadline_ns: us(500), period_ns: us(500) };
    assert_eq!(least, expected);
    system.tasks[0].scheduling = Scheduling::Deadline(least);
    assert_eq!(system.prove()[0].as_ref().expect("a bound").method, Method::EarliestDeadline);
    // Without a deadline, the least distance between releases: 800.
    system.tasks[0].deadline = None;
    assert_eq!(system.least_reservation(0).map(|it| it.period_ns), Some(us(800)));
    system.tasks[0].deadline = Some(us(210));
    assert_eq!(system.least_reservation(0), None, "10 after the latest release");
}
