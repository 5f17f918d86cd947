//! What the analyses know of a task.

use crate::arrivals::Arrivals;
use punctual_model::policy::Reservation;
use punctual_model::{Duration, Execution};

/// A task: a thread that must meet deadlines, or that delays others.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name, for messages.
    pub name: String,
    /// How Linux schedules it.
    pub scheduling: Scheduling,
    /// Processors that it may use, ascending; empty if they are unknown, so that it may be any.
    pub processors: Vec<u32>,
    /// When its jobs are released.
    pub arrivals: Arrivals,
    /// Processor time of its jobs: WCET(n).
    pub execution: Execution,
    /// The most that a job suspends itself.
    pub suspension: Duration,
    /// How often a job suspends itself at most.
    pub suspensions: u64,
    /// The longest time from an arrival to its release. Responses count from the arrival.
    pub jitter: Duration,
    /// From the arrival of a job until it must have ended.
    pub deadline: Option<Duration>,
    /// Whether the deadline is the period, so that it changes with the distances between releases.
    pub deadline_is_period: bool,
    /// What is missing to prove it. Its other fields hold what is known.
    pub gap: Option<Gap>,
}

/// What is not known of a task, as a sentence part: `its wcet is not agreed on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It delays others by what was observed of it, which is too little for a verdict on the task itself.
    Evidence(String),
    /// Its priority: the task may be more urgent than all others of its policy. An assignment gives it one.
    Priority(String),
    /// It took longer than its deadline when it was observed, which its bound does not explain. It delays
    /// others by what was observed of it.
    Seen(String),
    /// How much it needs, where, or when: nothing bounds how long it delays those that it may delay.
    Demand(String),
}

impl Gap {
    /// What is not known.
    pub fn text(&self) -> &str {
        match self {
            Gap::Evidence(text) | Gap::Priority(text) | Gap::Seen(text) | Gap::Demand(text) => text,
        }
    }
}

/// How Linux schedules a task, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_DEADLINE.
    Deadline(Reservation),
    /// SCHED_FIFO or SCHED_RR with a priority from 1 to 99.
    ///
    /// Equal priorities delay each other in full, also under SCHED_RR: the kernel charges slices by samples
    /// at its tick, so a thread may lose a slice of which it had hardly anything.
    Priority(u32),
    /// Any other policy: runs when no task above does. It has no bound and delays none of them.
    BestEffort,
    /// Not known: it may delay any other.
    Unknown,
}

impl Task {
    /// Whether it runs on one processor only.
    pub fn is_pinned(&self) -> bool {
        self.processors.len() == 1
    }

    /// Whether the two may run on the same processor.
    pub(crate) fn meets(&self, other: &Task) -> bool {
        let is_anywhere = self.processors.is_empty() || other.processors.is_empty();
        is_anywhere || self.processors.iter().any(|cpu| other.processors.binary_search(cpu).is_ok())
    }

    /// Whether nothing bounds how long it delays those that it may delay.
    pub(crate) fn delays_without_bound(&self) -> bool {
        matches!(self.gap, Some(Gap::Priority(_) | Gap::Demand(_)))
    }

    /// WCET(n) in ns; `None` if it is unknown or exceeds 64 bits.
    pub(crate) fn cost(&self, jobs: u64) -> Option<u64> {
        self.execution.wcet(jobs).map(Duration::ns)
    }

    /// The most that its jobs take of any window of so many ns, if each ends within its deadline; `None` if
    /// that is unknown.
    pub fn most_in(&self, window: u64) -> Option<u64> {
        if matches!(self.scheduling, Scheduling::BestEffort) {
            return Some(0);
        }
        if matches!(self.gap, Some(Gap::Demand(_))) {
            return None;
        }
        let late = self.deadline.unwrap_or(Duration::ZERO).ns().saturating_add(self.suspension.ns());
        let jobs = self.arrivals.most(window.checked_add(late)?)?;
        Some(self.cost(jobs)?.min(window))
    }

    /// Its share of one processor in the long run, without suspension; `None` if unbounded or unknown.
    pub fn utilization(&self) -> Option<f64> {
        if matches!(self.gap, Some(Gap::Demand(_))) {
            return None;
        }
        let costs = &self.execution.wcet_ns;
        let mean = costs.last()?.ns() as f64 / costs.len() as f64;
        Some(self.arrivals.rate()? * mean)
    }

    /// The same with its processor time multiplied by `numerator` / `denominator`, rounded up.
    pub fn with_cost_scaled(&self, numerator: u64, denominator: u64) -> Task {
        let scale = |cost: &Duration| {
            let product = (u128::from(cost.ns()) * u128::from(numerator)).div_ceil(denominator.max(1).into());
            Duration::from_ns(u64::try_from(product).unwrap_or(u64::MAX))
        };
        let wcet_ns = self.execution.wcet_ns.iter().map(scale).collect();
        Task { execution: Execution { wcet_ns, mean_ns: None }, ..self.clone() }
    }

    /// The same with the distances between its releases multiplied by `numerator` / `denominator`, rounded
    /// down; with them its deadline, if that is the period.
    pub fn with_distances_scaled(&self, numerator: u64, denominator: u64) -> Task {
        let scaled = |time: Duration| {
            let product = u128::from(time.ns()) * u128::from(numerator) / u128::from(denominator.max(1));
            Duration::from_ns(u64::try_from(product).unwrap_or(u64::MAX))
        };
        let deadline = match self.deadline_is_period {
            true => self.deadline.map(scaled),
            false => self.deadline,
        };
        let arrivals = self.arrivals.scaled(numerator, denominator);
        Task { arrivals, deadline, ..self.clone() }
    }
}
