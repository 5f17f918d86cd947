//! Verdicts, room, priorities, and worst schedules.

use crate::{ns, some_platform, task};
use punctual_analysis::{Arrivals, Cause, Scheduling, System, Task, Verdict, verdict, worst_case};
use punctual_model::Duration;
use punctual_test_support::Random;

fn with_deadline(priority: u32, cost: u64, period: u64, deadline: u64) -> Task {
    Task { deadline: Some(ns(deadline)), ..task(Scheduling::Priority(priority), cost, period) }
}

#[test]
fn verdicts() {
    let tasks = vec![
        with_deadline(9, 2, 10, 2),
        with_deadline(8, 3, 10, 4),
        task(Scheduling::Priority(7), 1, 10),
        Task { scheduling: Scheduling::BestEffort, ..with_deadline(1, 1, 10, 10) },
    ];
    let system = System { tasks, platforms: Vec::new() };
    let bounds = system.prove();
    let found: Vec<Verdict> =
        system.tasks.iter().zip(&bounds).map(|(task, bound)| verdict(task, bound)).collect();
    assert_eq!(found, [Verdict::Met, Verdict::Missed, Verdict::NotAsked, Verdict::Missed]);
}

#[test]
fn room_ends_at_the_first_miss() {
    // The second one ends after 40 + 20 = 60 of 100.
    let tasks = vec![with_deadline(9, 20, 100, 100), with_deadline(8, 40, 200, 100)];
    let system = System { tasks, platforms: Vec::new() };
    let rooms = system.sensitivity();
    assert_eq!(rooms[0].expect("room").cost, 3_000, "20 can become 60");
    assert_eq!(rooms[1].expect("room").cost, 2_000, "40 can become 80");
    // The nearer its releases, the more of them come before the second one ends.
    let shorter = rooms[0].expect("room").distance;
    let holds = |parts: u64| {
        let mut changed = system.clone();
        changed.tasks[0].arrivals = changed.tasks[0].arrivals.scaled(parts, 1_000);
        changed.meets_deadlines()
    };
    assert!(holds(shorter) && !holds(shorter - 1), "{shorter}");
    let other = System { tasks: vec![with_deadline(1, 5, 10, 4)], platforms: Vec::new() };
    assert_eq!(other.sensitivity(), [None], "missed already");
}

/// Lehoczky 1990: (1,4) (1,5) (3,9) (3,18); the last one takes 18, so that a shorter deadline is missed.
#[test]
fn a_deadline_that_is_the_period_shrinks_with_it() {
    let mut tasks: Vec<Task> = [(1, 4), (1, 5), (3, 9), (3, 18)]
        .into_iter()
        .zip((1..9).rev())
        .map(|((cost, period), priority)| {
            with_deadline(priority, cost * 1_000, period * 1_000, period * 1_000)
        })
        .collect();
    let distance = |tasks: &[Task]| {
        let system = System { tasks: tasks.to_vec(), platforms: Vec::new() };
        system.sensitivity()[3].expect("room").distance
    };
    assert!(distance(&tasks) < 1_000, "declared");
    tasks[3].deadline_is_period = true;
    assert_eq!(distance(&tasks), 1_000, "its period");
    let shorter = tasks[3].with_distances_scaled(95, 100);
    assert_eq!(shorter.deadline, Some(ns(17_100)));
}

/// All orders of up to five tasks are tried: Audsley's assignment finds one if and only if there is one.
#[test]
fn priorities_are_found_if_there_are_any() {
    let mut random = Random(5);
    let (mut found, mut none) = (0, 0);
    for set in 0..400 {
        let number = 2 + random.below(3);
        let tasks: Vec<Task> = (0..number)
            .map(|_| {
                let period = 5 + random.below(40);
                let cost = 1 + random.below(period * 2 / number);
                with_deadline(1, cost, period, cost + random.below(period))
            })
            .collect();
        let mut system = System { tasks, platforms: Vec::new() };
        let any = orders(number as usize).into_iter().any(|order| {
            set_priorities(&mut system, &order);
            system.meets_deadlines()
        });
        match system.assign(50) {
            Ok(priorities) => {
                let order: Vec<u32> = priorities.into_iter().map(|it| it.expect("a priority")).collect();
                set_priorities(&mut system, &order);
                assert!(any && system.meets_deadlines(), "set {set}: {:#?}", system.tasks);
                found += 1;
            }
            Err(_) => {
                assert!(!any, "set {set}: {:#?}", system.tasks);
                none += 1;
            }
        }
    }
    assert!(found > 50 && none > 50, "{found} found, {none} none");
}

fn set_priorities(system: &mut System, order: &[u32]) {
    for (task, &priority) in system.tasks.iter_mut().zip(order) {
        task.scheduling = Scheduling::Priority(priority);
    }
}

fn orders(number: usize) -> Vec<Vec<u32>> {
    match number {
        0 => vec![Vec::new()],
        number => orders(number - 1)
            .into_iter()
            .flat_map(|order| {
                (0..number).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, number as u32);
                    order
                })
            })
            .collect(),
    }
}

/// The schedule takes as long as the bound, with what the kernel takes, and the parts are those of the bound.
#[test]
fn the_worst_schedule_reaches_the_bound() {
    let mut random = Random(6);
    let mut reached = 0;
    for _ in 0..500 {
        let number = 1 + random.below(4);
        let tasks: Vec<Task> = (0..number)
            .map(|it| {
                let period = 20 + random.below(200);
                let mut task =
                    task(Scheduling::Priority(20 - it as u32 / 2), 1 + random.below(period / 3), period);
                let jitter = ns(random.below(2) * random.below(period));
                (task.jitter, task.arrivals) = (jitter, Arrivals::Periodic { period: ns(period), jitter });
                task
            })
            .collect();
        let system = System { tasks, platforms: vec![some_platform(&mut random)] };
        for (me, bound) in system.prove().into_iter().enumerate() {
            let Some(bound) = bound.ok().filter(|bound| bound.response < ns(10_000)) else { continue };
            let worst = worst_case(&system, me, &bound).expect("simple tasks");
            let jitter = system.tasks[me].jitter;
            let response = worst.end + jitter;
            assert_eq!(response, bound.response + bound.earlier, "{bound:?} {worst:?} {:#?}", system.tasks);
            let own: Duration = worst
                .stretches
                .iter()
                .filter(|stretch| stretch.cause == Cause::Own)
                .fold(Duration::ZERO, |sum, it| sum + it.to.saturating_sub(it.from));
            let part = bound.parts.iter().find(|part| part.cause == Cause::Own).expect("its own part");
            assert_eq!(own, part.duration);
            reached += 1;
        }
    }
    assert!(reached > 500, "{reached}");
}
