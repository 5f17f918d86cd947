//! What a client declares of a task (ReTiF, Table 3), and the bounds that no plugin can lift.

use punctual_model::Duration;

/// Declared timing needs. All of them may be left out; which a plugin needs is its own (ReTiF, Table 6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Q: what a job takes at most.
    pub runtime: Option<Duration>,
    /// Q^d ≥ Q: what a job would like to have; the accepted runtime lies between.
    pub desired_runtime: Option<Duration>,
    /// T: the least distance of two releases.
    pub period: Option<Duration>,
    /// D: from a release to the latest end; the period, if not given.
    pub deadline: Option<Duration>,
    /// P: higher is more urgent, as with `sched_setscheduler(2)`.
    pub priority: Option<u32>,
    /// The one plugin to ask; all in their order, if not given.
    pub plugin: Option<String>,
    /// Take it even if the admission test says no, where the rules allow that.
    pub ignore_admission: bool,
}

/// What the kernel accepts at all; read from it once, by the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Least runtime of SCHED_DEADLINE: 1,024 ns (`DL_SCALE`).
    pub least_runtime: Duration,
    /// `sched_deadline_period_min_us`.
    pub least_period: Duration,
    /// `sched_deadline_period_max_us`.
    pub greatest_period: Duration,
    /// `sched_get_priority_min/max(2)` of SCHED_FIFO.
    pub priorities: (u32, u32),
}

/// A parameter that is beyond a bound; says which. Messages name the parameter, its value, the bound and where the bound comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// As in the protocol: `runtime_ns`, `period_ns`, …
    pub parameter: &'static str,
    /// What was asked for.
    pub value: u64,
    /// What it has to be, for people: "at least 1024 (SCHED_DEADLINE's least runtime)".
    pub bound: String,
}
