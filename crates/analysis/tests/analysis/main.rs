//! Bounds of response times: known examples, the published analyses, and simulated schedules.

mod deadlines;
mod earliest;
mod examples;
mod published;
mod round_robin;
mod simulated;

use punctual_analysis::{Arrivals, Platform, Scheduling, System, Task};
use punctual_model::latency::{Staircase, Step};
use punctual_model::{Duration, Execution};
use punctual_test_support::Random;

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

/// A task on processor 0 that never suspends itself.
fn task(scheduling: Scheduling, cost: u64, period: u64) -> Task {
    Task {
        name: String::new(),
        scheduling,
        processors: vec![0],
        arrivals: Arrivals::Periodic { period: ns(period), jitter: Duration::ZERO },
        execution: Execution { wcet_ns: vec![ns(cost)], mean_ns: None },
        suspension: Duration::ZERO,
        suspensions: 0,
        jitter: Duration::ZERO,
        deadline: None,
        deadline_is_period: false,
        gap: None,
    }
}

/// What the kernel takes of processor 0 in random systems: some time of each kind.
fn some_platform(random: &mut Random) -> Platform {
    Platform {
        cpu: 0,
        blocking: ns(random.below(9)),
        switch: ns(random.below(3)),
        interrupts: vec![Staircase::from_iter([Step { span: ns(0), sum: ns(1 + random.below(4)) }])],
        horizon: ns(100_000),
        at_least: false,
    }
}

/// The bounds in ns; `None` where there is none.
fn responses(system: &System) -> Vec<Option<u64>> {
    system.prove().into_iter().map(|bound| bound.ok().map(|it| it.response.ns())).collect()
}
