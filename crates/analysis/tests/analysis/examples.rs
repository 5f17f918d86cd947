//! Examples with known numbers.

use crate::{ns, responses, task};
use punctual_analysis::{Arrivals, Cause, Method, NoBound, Platform, Scheduling, System};
use punctual_model::Duration;
use punctual_model::arrival::Curve;
use punctual_model::latency::{Staircase, Step};
use punctual_model::policy::Reservation;

/// The first is the most urgent.
fn by_priority(tasks: &[(u64, u64)]) -> System {
    let tasks = tasks.iter().zip((1..99).rev());
    let tasks = tasks.map(|(&(cost, period), priority)| task(Scheduling::Priority(priority), cost, period));
    System { tasks: tasks.collect(), platforms: Vec::new() }
}

#[test]
fn lehoczky_1990() {
    let system = by_priority(&[(52, 100), (52, 140)]);
    assert_eq!(responses(&system), [Some(52), Some(156)]);
    let system = by_priority(&[(26, 70), (62, 100)]);
    assert_eq!(responses(&system), [Some(26), Some(118)]);
    let system = by_priority(&[(1, 4), (1, 5), (3, 9), (3, 18)]);
    assert_eq!(responses(&system), [Some(1), Some(2), Some(7), Some(18)]);
}

/// papers: LiME, Fig. 7 and the four request bounds of its text. Kernel migration threads: at most 40 jobs
/// are released in 300 ms, at least 21.28 µs apart; one needs at most 107.5 µs, 40 in a row 0.99 ms, and
/// 14,100 (as many as the separation allows) 344.3 ms.
#[test]
fn request_bounds_of_lime_fig_7() {
    let ms = |ms: f64| (ms * 1e6) as u64;
    let separation = 21_277;
    let (curve, one) = (ms(300.0) / 40, ms(0.1075));
    let in_a_row = |jobs: u64| match jobs {
        1 => one,
        2..=40 => one + (ms(0.99) - one) * (jobs - 1) / 39,
        _ => ms(0.99) + (ms(344.3) - ms(0.99)) * (jobs - 40) / 14_060,
    };
    let sporadic = Arrivals::Sporadic { separation: ns(separation) };
    let delta_min_ns = (1..=40).map(|gap| ns(separation.max(gap * curve))).collect();
    let bursts = Arrivals::Curve(Curve { delta_min_ns, delta_max_ns: Vec::new() });
    let several: Vec<Duration> = (1..=14_100).map(|jobs| ns(in_a_row(jobs))).collect();
    let bound = |arrivals: &Arrivals, wcet_ns: &[Duration]| {
        let mut it = task(Scheduling::Priority(1), 1, 1);
        it.execution.wcet_ns = wcet_ns.to_vec();
        let jobs = arrivals.most(ms(300.0)).expect("bounded");
        it.execution.wcet(jobs).expect("bounded").ns() as f64 / 1e6
    };
    let found = [
        bound(&sporadic, &several[..1]),
        bound(&sporadic, &several),
        bound(&bursts, &several[..1]),
        bound(&bursts, &several),
    ];
    for (found, published) in found.into_iter().zip([1_515.8, 344.3, 4.3, 0.99]) {
        assert!((found - published).abs() < 0.001 * published, "{found} ms, {published} ms");
    }
}

#[test]
fn the_parts_sum_up() {
    let mut system = by_priority(&[(26, 70), (62, 100)]);
    system.tasks[1].jitter = ns(5);
    let bound = system.prove().remove(1).expect("a bound");
    let of =
        |cause| bound.parts.iter().filter(|part| part.cause == cause).map(|part| part.duration.ns()).sum();
    let (own, other, jitter): (u64, u64, u64) = (of(Cause::Own), of(Cause::Task(0)), of(Cause::Jitter));
    assert_eq!((own, other, jitter, bound.earlier), (5 * 62, 8 * 26, 5, ns(400)), "the fifth job: {bound:?}");
    assert_eq!((bound.response, bound.job), (ns(118 + 5), 5));
}

#[test]
fn too_much_has_no_bound() {
    let system = by_priority(&[(52, 100), (70, 140)]);
    assert_eq!(system.prove()[1], Err(NoBound::Overload));
    let mut system = by_priority(&[(1, 4), (1, 5)]);
    system.tasks[0].execution.wcet_ns.clear();
    assert_eq!(system.prove()[1], Err(NoBound::Cost(0)));
    system.tasks[1].scheduling = Scheduling::BestEffort;
    assert_eq!(system.prove()[1], Err(NoBound::BestEffort));
}

/// Work that fits, and a suspension that does not if it counts as work.
#[test]
fn too_long_a_suspension_is_not_called_an_overload() {
    let mut system = by_priority(&[(48, 1_000), (100, 1_000)]);
    system.tasks[1].suspension = ns(852);
    assert!(system.prove()[1].is_ok());
    system.tasks[1].suspension = ns(1_100);
    let why = system.prove().remove(1).expect_err("no bound");
    assert_eq!(why, NoBound::Suspension);
    let text = why.text(1, &system.tasks);
    assert!(
        text.contains("counts its suspension (up to 1.1 µs a job)") && text.contains("not an overload"),
        "{text}"
    );
    system.tasks[0].execution.wcet_ns = vec![ns(950)];
    assert_eq!(system.prove()[1], Err(NoBound::Overload));
}

/// Two of equal priority on two processors: the suspension of one leaves neither a bound.
#[test]
fn a_suspension_on_several_processors_is_named() {
    let mut system = by_priority(&[(200, 10_000), (200, 10_000)]);
    for task in &mut system.tasks {
        (task.scheduling, task.processors) = (Scheduling::Priority(50), vec![0, 1]);
    }
    system.tasks[0].suspension = ns(1_000);
    assert!(system.prove().iter().all(Result::is_ok));
    system.tasks[0].suspension = ns(12_000);
    let bounds = system.prove();
    assert_eq!(bounds, [Err(NoBound::Suspension), Err(NoBound::Depends(0))]);
    let text = NoBound::Suspension.text(0, &system.tasks);
    assert!(text.contains("up to 12 µs a job") && text.ends_with("or a longer period helps"), "{text}");
    let other = NoBound::Depends(0).text(1, &system.tasks);
    assert!(other.ends_with(" suspends itself, delays it and has no bound"), "{other}");
    // Alone, it is the same; on one processor, jobs may wait for each other.
    let mut alone = System { tasks: vec![system.tasks[0].clone()], platforms: Vec::new() };
    assert_eq!(alone.prove(), [Err(NoBound::Suspension)]);
    // Jobs that overlap without a suspension.
    alone.tasks[0].suspension = ns(0);
    alone.tasks[0].arrivals = Arrivals::Periodic { period: ns(10_000), jitter: ns(9_900) };
    assert_eq!(alone.prove(), [Err(NoBound::Overlap)]);
}

/// 10 of the kernel's own, 3 for each pass of the scheduler, and 5 of interrupts in any window of 100.
#[test]
fn the_kernel_takes_its_share() {
    let mut system = by_priority(&[(20, 200), (30, 1_000)]);
    system.platforms = vec![Platform {
        cpu: 0,
        blocking: ns(10),
        switch: ns(3),
        interrupts: vec![Staircase::from_iter([Step { span: ns(0), sum: ns(5) }])],
        horizon: ns(100),
        at_least: false,
    }];
    assert_eq!(responses(&system), [Some(20 + 10 + 5), Some(30 + 10 + 20 + 2 * 3 + 5)]);
}

#[test]
fn a_suspended_task_has_carry_in() {
    // The high task may run at the very end of one period and at the beginning of the next.
    let mut system = by_priority(&[(2, 10), (4, 20)]);
    (system.tasks[0].suspension, system.tasks[0].suspensions) = (ns(5), 1);
    assert_eq!(responses(&system), [Some(7), Some(4 + 2 * 2)]);
}

#[test]
fn equal_priorities_delay_each_other() {
    let mut system = by_priority(&[(3, 10), (4, 20)]);
    system.tasks[1].scheduling = system.tasks[0].scheduling;
    assert_eq!(responses(&system), [Some(7), Some(7)]);
}

fn reservation(runtime: u64, deadline: u64, period: u64) -> Scheduling {
    let (runtime_ns, deadline_ns, period_ns) = (ns(runtime), ns(deadline), ns(period));
    Scheduling::Deadline(Reservation { runtime_ns, deadline_ns, period_ns })
}

#[test]
fn deadlines_come_before_priorities() {
    let tasks = vec![
        task(reservation(2, 6, 6), 2, 6),
        task(reservation(4, 8, 8), 4, 8),
        task(Scheduling::Priority(99), 1, 24),
    ];
    let system = System { tasks, platforms: Vec::new() };
    let bounds = system.prove();
    // Spuri's analysis of (2, 6) and (4, 8): both meet their deadlines, and no schedule is worse.
    assert_eq!(responses(&system), [Some(4), Some(6), Some(15)]);
    assert!(bounds[..2].iter().flatten().all(|bound| bound.method == Method::EarliestDeadline));
}

#[test]
fn a_reservation_serves_jobs_that_exceed_it() {
    let system = System { tasks: vec![task(reservation(2, 10, 10), 5, 40)], platforms: Vec::new() };
    let bound = system.prove().remove(0).expect("a bound");
    assert_eq!((bound.method, bound.response), (Method::Reservation, ns(40)));
    let system = System { tasks: vec![task(reservation(2, 10, 10), 5, 20)], platforms: Vec::new() };
    assert_eq!(system.prove()[0], Err(NoBound::Served));
}

/// A reservation that serves less than its task needs: the reason says so, as both are pinned already.
#[test]
fn the_reason_of_a_delay_without_a_bound_is_true() {
    let tasks = vec![task(reservation(2, 10, 10), 5, 20), task(Scheduling::Priority(5), 1, 100)];
    let system = System { tasks, platforms: Vec::new() };
    let reason = system.prove().remove(1).expect_err("no bound");
    assert_eq!(reason, NoBound::Depends(0));
    let text = reason.text(1, &system.tasks);
    assert!(text.contains("more than its reservation serves") && !text.contains("pin both"), "{text}");
}

#[test]
fn several_processors() {
    let mut tasks: Vec<_> = (0..3).map(|it| task(Scheduling::Priority(90 - it), 4, 10)).collect();
    tasks.iter_mut().for_each(|task| task.processors = vec![0, 1]);
    let system = System { tasks, platforms: Vec::new() };
    let bounds = system.prove();
    assert!(bounds.iter().flatten().all(|bound| bound.method == Method::GlobalFixedPriority));
    let found: Vec<u64> = bounds.iter().flatten().map(|bound| bound.response.ns()).collect();
    assert_eq!(found.len(), 3, "{bounds:?}");
    assert_eq!(found, [4, 4, 8], "two of three run at once");
}
