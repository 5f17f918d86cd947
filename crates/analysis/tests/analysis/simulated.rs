//! No simulated schedule takes longer than its bound, and some take as long.

use crate::{ns, task};
use punctual_analysis::{Arrivals, Bound, Job, Method, NoBound, Scheduling, System, Task, simulate};
use punctual_model::policy::Reservation;
use punctual_model::{Duration, Execution};
use punctual_test_support::Random;

const SETS: u64 = 10_000;

/// Tasks with all that the analyses know: jitter, suspension, equal priorities, reservations, affinities.
fn some_tasks(random: &mut Random, processors: u64) -> Vec<Task> {
    let number = 1 + random.below(3 * processors + 3);
    let share = 10 + random.below(90);
    (0..number)
        .map(|_| {
            let period = random.one_of(&[8, 10, 12, 15, 20, 30, 40, 60]);
            let cost = (period * processors * share / number / 100).clamp(1, period);
            let mut task = task(some_scheduling(random, cost, period), cost, period);
            task.processors = some_processors(random, processors);
            if random.below(3) == 0 {
                task.jitter = ns(random.below(period));
                task.arrivals = Arrivals::Periodic { period: ns(period), jitter: task.jitter };
            }
            if random.below(3) == 0 {
                task.execution = some_curve(random, &task.execution);
            }
            if random.below(4) == 0 && cost > 1 {
                (task.suspension, task.suspensions) = (ns(1 + random.below(period)), 1 + random.below(2));
            }
            task
        })
        .collect()
}

fn some_scheduling(random: &mut Random, cost: u64, period: u64) -> Scheduling {
    match random.below(8) {
        0 => {
            let deadline = random.one_of(&[period, (cost + period).div_ceil(2)]);
            Scheduling::Deadline(Reservation {
                runtime_ns: ns(deadline.min(cost + u64::from(deadline < period))),
                deadline_ns: ns(deadline),
                period_ns: ns(period),
            })
        }
        1 => Scheduling::BestEffort,
        _ => Scheduling::Priority(1 + random.below(6) as u32),
    }
}

fn some_processors(random: &mut Random, processors: u64) -> Vec<u32> {
    let all = 0..processors as u32;
    match random.below(3) {
        0 => all.collect(),
        1 => {
            let some: Vec<u32> = all.clone().filter(|_| random.below(2) == 0).collect();
            if some.is_empty() { all.collect() } else { some }
        }
        _ => vec![random.below(processors) as u32],
    }
}

/// Jobs that obey the task, as dense and as long as possible most of the time, and their arrivals.
fn some_jobs(random: &mut Random, index: usize, task: &Task, until: u64) -> Vec<(u64, Job)> {
    let Arrivals::Periodic { period, jitter } = task.arrivals else { return Vec::new() };
    let of = |jobs: u64| task.execution.wcet(jobs).map_or(0, Duration::ns);
    let (is_strict, is_sporadic) = (random.below(2) == 0, random.below(3) == 0);
    let mut arrival = if is_strict { 0 } else { random.below(period.ns()) };
    let mut jobs: Vec<(u64, Job)> = Vec::new();
    while arrival < until {
        let late = if is_strict && !jobs.is_empty() { 0 } else { random.below(jitter.ns() + 1) };
        let late = if is_strict && jobs.is_empty() { jitter.ns() } else { late };
        let release = (arrival + late).max(jobs.last().map_or(0, |(_, job)| job.release));
        // In pairs: any number of consecutive jobs is within WCET(n).
        let number = jobs.len() as u64 % 2;
        let cost = of(number + 1) - of(number);
        let needed = if is_strict { cost } else { 1 + random.below(cost) };
        let segments = some_segments(random, task, needed, is_strict);
        jobs.push((arrival, Job { task: index, release, segments }));
        arrival += period.ns() + if is_sporadic { random.below(period.ns()) } else { 0 };
    }
    jobs
}

fn some_segments(random: &mut Random, task: &Task, cost: u64, is_strict: bool) -> Vec<(u64, u64)> {
    let mut segments = Vec::new();
    let (mut left, mut suspension) = (cost, task.suspension.ns());
    for _ in 0..task.suspensions {
        let part = 1 + random.below(left.saturating_sub(1));
        let suspended = if is_strict { suspension / task.suspensions } else { random.below(suspension + 1) };
        if left <= part {
            break;
        }
        segments.push((part, suspended));
        (left, suspension) = (left - part, suspension - suspended);
    }
    segments.push((left, 0));
    segments
}

/// The longest simulated response of each task.
fn longest(tasks: &[Task], jobs: &[(u64, Job)]) -> Vec<u64> {
    let simulated: Vec<Job> = jobs.iter().map(|(_, job)| job.clone()).collect();
    let schedule = simulate(tasks, &simulated);
    let mut longest = vec![0; tasks.len()];
    for ((arrival, job), end) in jobs.iter().zip(schedule.ends) {
        longest[job.task] = longest[job.task].max(end - arrival);
    }
    longest
}

/// Whether it obeys its bound's assumptions in the simulation, which does not throttle reservations.
fn is_never_throttled(task: &Task, bound: &Result<Bound, NoBound>) -> bool {
    match task.scheduling {
        Scheduling::Deadline(_) => matches!(bound, Ok(bound) if bound.method != Method::Reservation),
        _ => true,
    }
}

#[test]
fn no_schedule_exceeds_its_bound() {
    let mut random = Random(3);
    let (mut bounded, mut reached) = (0u64, 0u64);
    for set in 0..SETS {
        let processors = random.one_of(&[1, 1, 2, 3]);
        let tasks = some_tasks(&mut random, processors);
        let system = System { tasks, platforms: Vec::new() };
        let bounds = system.prove();
        if !system.tasks.iter().zip(&bounds).all(|(task, bound)| is_never_throttled(task, bound)) {
            continue;
        }
        for _ in 0..3 {
            let jobs: Vec<(u64, Job)> = (0..system.tasks.len())
                .flat_map(|index| some_jobs(&mut random, index, &system.tasks[index], 400))
                .collect();
            let longest = longest(&system.tasks, &jobs);
            for (index, bound) in bounds.iter().enumerate() {
                let Ok(bound) = bound else { continue };
                let simulated = ns(longest[index]);
                assert!(
                    simulated <= bound.response,
                    "set {set}, task {index}: {simulated} exceeds {bound:?}\n{:#?}",
                    system.tasks
                );
                bounded += 1;
                reached += u64::from(simulated == bound.response);
            }
        }
    }
    assert!(bounded > 60_000 && reached > 5_000, "{bounded} bounds, {reached} of them reached");
}

/// Task sets with the shares of periods of an automotive system (Kramer, Ziegenbein, Hamann, WATERS 2015), in
/// ms, on one processor; the shorter the period, the more urgent; utilization shared out by UUniFast.
#[test]
fn automotive_sets() {
    const SHARES: [(u64, u64); 9] =
        [(1, 3), (2, 2), (5, 2), (10, 25), (20, 25), (50, 3), (100, 20), (200, 1), (1_000, 4)];
    const MS: u64 = 1_000;
    let all: u64 = SHARES.iter().map(|(_, share)| share).sum();
    let mut random = Random(7);
    let mut compared = 0;
    for set in 0..300 {
        let number = 5 + random.below(15);
        let mut left = 0.5 + random.below(45) as f64 / 100.0;
        let tasks: Vec<Task> = (0..number)
            .map(|it| {
                let next = left * random.unit().powf(1.0 / (number - it) as f64);
                let share = if it + 1 == number { left } else { left - next };
                left = next;
                let mut at = random.below(all);
                let found = SHARES.iter().find(|(_, share)| {
                    let is_here = at < *share;
                    at = at.saturating_sub(*share);
                    is_here
                });
                let period = found.expect("a period").0 * MS;
                let cost = ((period as f64 * share) as u64).max(1);
                task(Scheduling::Priority(99 - (period / MS).ilog2() * 8), cost, period)
            })
            .collect();
        let system = System { tasks, platforms: Vec::new() };
        let jobs: Vec<(u64, Job)> = (0..system.tasks.len())
            .flat_map(|index| worst_jobs(index, &system.tasks[index], 1_000 * MS))
            .collect();
        let longest = longest(&system.tasks, &jobs);
        for (index, bound) in system.prove().into_iter().enumerate() {
            let Ok(bound) = bound else { continue };
            assert!(ns(longest[index]) <= bound.response, "set {set}, task {index}: {bound:?}");
            compared += 1;
        }
    }
    assert!(compared > 2_000, "{compared}");
}

/// All tasks released at once, as densely as possible, at their full cost, without suspension and with
/// priorities of their own: the analysis of one processor is exact.
#[test]
fn exact_where_it_should_be() {
    let mut random = Random(4);
    let mut compared = 0;
    for set in 0..2_000 {
        let number = 1 + random.below(5);
        let mut tasks: Vec<Task> = (0..number)
            .map(|it| {
                let period = 5 + random.below(60);
                let mut task =
                    task(Scheduling::Priority(90 - it as u32), 1 + random.below(period / 2), period);
                if random.below(2) == 0 {
                    task.jitter = ns(random.below(period));
                    task.arrivals = Arrivals::Periodic { period: ns(period), jitter: task.jitter };
                }
                task
            })
            .collect();
        tasks.iter_mut().for_each(|task| task.execution = some_curve(&mut random, &task.execution));
        let system = System { tasks, platforms: Vec::new() };
        for (index, bound) in system.prove().into_iter().enumerate() {
            let Ok(bound) = bound else { continue };
            if bound.response.ns() > 2_000 {
                continue;
            }
            let window = (bound.response + bound.earlier).ns();
            let jobs: Vec<(u64, Job)> =
                (0..=index).flat_map(|it| worst_jobs(it, &system.tasks[it], window)).collect();
            let longest = longest(&system.tasks, &jobs);
            assert_eq!(longest[index], bound.response.ns(), "set {set}, task {index} of {:#?}", system.tasks);
            compared += 1;
        }
    }
    assert!(compared > 3_000, "{compared}");
}

/// A WCET curve below n times the first entry.
fn some_curve(random: &mut Random, execution: &Execution) -> Execution {
    let first = execution.wcet_ns[0];
    let second = first + ns(1 + random.below(first.ns()));
    Execution { wcet_ns: vec![first, second], mean_ns: None }
}

/// From the critical instant 0 on: releases as early as δ⁻ allows, costs as WCET(n) allows.
fn worst_jobs(index: usize, task: &Task, window: u64) -> Vec<(u64, Job)> {
    let Arrivals::Periodic { period, .. } = task.arrivals else { return Vec::new() };
    let of = |jobs: u64| task.execution.wcet(jobs).map_or(0, Duration::ns);
    let offset = task.jitter.ns();
    (1..=task.arrivals.most(window).unwrap_or(0))
        .map(|job| {
            let release = task.arrivals.span(job) + 1_000;
            let arrival = (1_000 - offset + (job - 1) * period.ns()).min(release);
            (arrival, Job { task: index, release, segments: vec![(of(job) - of(job - 1), 0)] })
        })
        .collect()
}
