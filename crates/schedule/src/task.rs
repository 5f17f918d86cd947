//! A task of which everything is known that an admission test needs.

use crate::{Parameters, Utilization};
use punctual_model::Duration;

/// A sporadic task: (Q^a, T, D), all of them at least 1 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) runtime: Duration,
    pub(crate) period: Duration,
    pub(crate) deadline: Duration,
    /// Whether its own deadlines are to be kept; not, where its admission was ignored. It disturbs others all
    /// the same.
    pub(crate) guaranteed: bool,
    /// Q^a / T.
    pub(crate) rate: Utilization,
}

impl Task {
    /// `None` where runtime or period was not declared.
    pub(crate) fn from_parameters(
        parameters: &Parameters,
        runtime: Option<Duration>,
        guaranteed: bool,
    ) -> Option<Self> {
        let (runtime, period) = (runtime?, parameters.period?);
        let deadline = parameters.deadline.unwrap_or(period);
        Some(Self::new(runtime, period, deadline, guaranteed))
    }

    pub(crate) fn new(runtime: Duration, period: Duration, deadline: Duration, guaranteed: bool) -> Self {
        Self { runtime, period, deadline, guaranteed, rate: Utilization::new(runtime, period) }
    }

    /// The same with another runtime.
    pub(crate) fn with_runtime(self, runtime: Duration) -> Self {
        Self::new(runtime, self.period, self.deadline, self.guaranteed)
    }

    /// U = Q^a / min(T, D) (ReTiF, Equation 1).
    pub(crate) fn utilization(&self) -> Utilization {
        if self.deadline >= self.period { self.rate } else { Utilization::new(self.runtime, self.deadline) }
    }
}
