//! Bounds of response times: known examples, the published analyses, and simulated schedules.

mod deadlines;
mod earliest;
mod examples;
mod published;
mod round_robin;
mod simulated;

use punctual_analysis::{Arrivals, Scheduling, System, Task};
use punctual_model::{Duration, Execution};

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

/// The bounds in ns; `None` where there is none.
fn responses(system: &System) -> Vec<Option<u64>> {
    system.prove().into_iter().map(|bound| bound.ok().map(|it| it.response.ns())).collect()
}
