//! A task with all the parameters that an admission test needs.

use crate::{Parameters, Utilization};
use punctual_model::Duration;

/// A sporadic task: (Q^a, T, D), all of them at least 1 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) runtime: Duration,
    pub(crate) period: Duration,
    pub(crate) deadline: Duration,
    /// B: how long less urgent threads can delay a job.
    pub(crate) blocking: Duration,
    /// Whether its own deadlines must be met: false if its admission test was ignored. It interferes with
    /// others either way.
    pub(crate) guaranteed: bool,
    /// Q^a / T.
    pub(crate) rate: Utilization,
}

impl Task {
    /// `None` if runtime or period was not declared.
    pub(crate) fn from_parameters(
        parameters: &Parameters,
        runtime: Option<Duration>,
        guaranteed: bool,
    ) -> Option<Self> {
        let (runtime, period) = (runtime?, parameters.period?);
        let deadline = parameters.deadline.unwrap_or(period);
        let blocking = parameters.blocking.unwrap_or_default();
        Some(Self { blocking, ..Self::new(runtime, period, deadline, guaranteed) })
    }

    pub(crate) fn new(runtime: Duration, period: Duration, deadline: Duration, guaranteed: bool) -> Self {
        let blocking = Duration::ZERO;
        Self { runtime, period, deadline, blocking, guaranteed, rate: Utilization::new(runtime, period) }
    }

    /// The same with another runtime.
    pub(crate) fn with_runtime(self, runtime: Duration) -> Self {
        let blocking = self.blocking;
        Self { blocking, ..Self::new(runtime, self.period, self.deadline, self.guaranteed) }
    }

    /// U = Q^a / min(T, D) (ReTiF, Equation 1).
    pub(crate) fn utilization(&self) -> Utilization {
        if self.deadline >= self.period { self.rate } else { Utilization::new(self.runtime, self.deadline) }
    }
}
