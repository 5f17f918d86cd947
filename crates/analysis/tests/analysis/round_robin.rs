//! SCHED_RR as Linux has it: FIFO among priorities, and slices among equal ones, charged by whole ticks to
//! whoever runs at the tick. A simulation of its own, one unit of time after the other.

use super::{ns, responses, task};
use punctual_analysis::{Arrivals, Scheduling, System};
use punctual_test_support::Random;
use std::collections::VecDeque;

struct Robin {
    priority: u32,
    cost: u64,
    period: u64,
}

/// When the processor's tick comes, and of how many ticks a slice is.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    phase: u64,
    period: u64,
    slice: u64,
}

/// A task in the queue of its priority: it stays at the head while more urgent ones run.
struct Thread {
    task: usize,
    ticks_left: u64,
}

/// The longest response of each task within `horizon`, and how often a thread lost its turn.
fn simulate(tasks: &[Robin], first: &[u64], ticks: Ticks, horizon: u64) -> (Vec<u64>, u64) {
    let mut longest = vec![0; tasks.len()];
    let mut turns = 0;
    // The releases and remaining times of jobs, by task.
    let mut jobs: Vec<VecDeque<(u64, u64)>> = tasks.iter().map(|_| VecDeque::new()).collect();
    // By priority, from 0.
    let mut queues: Vec<VecDeque<Thread>> = (0..3).map(|_| VecDeque::new()).collect();
    for now in 0..horizon {
        for (index, task) in tasks.iter().enumerate() {
            if now >= first[index] && (now - first[index]) % task.period == 0 {
                if jobs[index].is_empty() {
                    let thread = Thread { task: index, ticks_left: ticks.slice };
                    queues[task.priority as usize].push_back(thread);
                }
                jobs[index].push_back((now, task.cost));
            }
        }
        let Some(queue) = queues.iter_mut().rev().find(|queue| !queue.is_empty()) else { continue };
        let index = queue[0].task;
        let job = &mut jobs[index][0];
        job.1 -= 1;
        if job.1 == 0 {
            longest[index] = longest[index].max(now + 1 - job.0);
            jobs[index].pop_front();
            // It goes on at once with the next job; else it sleeps.
            if jobs[index].is_empty() {
                queue.pop_front();
            }
        }
        let is_tick = (now + 1) % ticks.period == ticks.phase;
        if let Some(running) = queue.front_mut().filter(|running| is_tick && running.task == index) {
            running.ticks_left -= 1;
            if running.ticks_left == 0 {
                running.ticks_left = ticks.slice;
                if queue.len() > 1 {
                    queue.rotate_left(1);
                    turns += 1;
                }
            }
        }
    }
    (longest, turns)
}

fn bounds(tasks: &[Robin]) -> Vec<Option<u64>> {
    let tasks = tasks.iter().map(|it| {
        let mut task = task(Scheduling::Priority(it.priority + 1), it.cost, it.period);
        task.arrivals = Arrivals::Sporadic { separation: ns(it.period) };
        task
    });
    responses(&System { tasks: tasks.collect(), platforms: Vec::new() })
}

#[test]
fn no_schedule_with_slices_exceeds_its_bound() {
    let mut random = Random(11);
    let (mut bounded, mut reached, mut all_turns) = (0u64, 0u64, 0u64);
    for set in 0..3_000 {
        let number = 2 + random.below(4);
        let some = |random: &mut Random| {
            let period = 10 + random.below(60);
            Robin { priority: random.below(3) as u32, cost: 1 + random.below(period / 3), period }
        };
        let tasks: Vec<Robin> = (0..number).map(|_| some(&mut random)).collect();
        let bounds = bounds(&tasks);
        for together in [true, false] {
            let period = 1 + random.below(6);
            let ticks = Ticks { phase: random.below(period), period, slice: 1 + random.below(3) };
            let first: Vec<u64> =
                tasks.iter().map(|task| if together { 0 } else { random.below(task.period) }).collect();
            let (longest, turns) = simulate(&tasks, &first, ticks, 1_000);
            all_turns += turns;
            for (index, bound) in bounds.iter().enumerate() {
                let Some(bound) = bound else { continue };
                assert!(
                    longest[index] <= *bound,
                    "set {set}, task {index}, {ticks:?}: {} exceeds {bound}",
                    longest[index]
                );
                bounded += 1;
                reached += u64::from(longest[index] == *bound);
            }
        }
    }
    let found = format!("{bounded} bounds, {reached} of them reached, {all_turns} turns");
    assert!(bounded > 10_000 && reached > 1_000 && all_turns > 100_000, "{found}");
}

/// Why a slice bounds nothing: the first task needs 2 of 100, and a slice is a tick of 10. It begins just
/// before a tick, which takes its turn away after one unit, and has to wait for all that the other one needs.
#[test]
fn a_slice_is_lost_to_a_tick() {
    let tasks = [Robin { priority: 0, cost: 2, period: 100 }, Robin { priority: 0, cost: 9, period: 100 }];
    let ticks = Ticks { phase: 0, period: 10, slice: 1 };
    let (longest, turns) = simulate(&tasks, &[9, 9], ticks, 100);
    assert_eq!((longest[0], turns), (11, 1));
    assert_eq!(bounds(&tasks)[0], Some(11), "all that both need: no less would be a bound");
}
