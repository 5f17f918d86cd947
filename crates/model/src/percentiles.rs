//! Percentiles of the times of a stream.

use crate::section::Valid;
use crate::time::Duration;
use crate::valid::rising;
use serde::{Deserialize, Serialize};

/// Percentiles of the times of a stream. Each is at least the exact value, and at most one part in
/// [`QUANTILE_ERROR_PARTS`] above it; lateness only if arrivals are known, otherwise it is from a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Time from the arrival (known, or of the typical periodic model) to the latest bound of the release.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lateness: Option<Quantiles>,
    /// Processor time of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Quantiles>,
    /// Response time of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Quantiles>,
}

/// A percentile is at most one part in this many above the exact value.
pub const QUANTILE_ERROR_PARTS: u64 = 64;

/// The least values that so many of all do not exceed, for threads. Dataflow programs have a
/// [`crate::dataflow::Distribution`], for box plots; both come from the same histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 10 %; files of earlier versions have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p10_ns: Option<Duration>,
    /// 25 %; likewise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p25_ns: Option<Duration>,
    /// 50 %.
    pub p50_ns: Duration,
    /// 90 %.
    pub p90_ns: Duration,
    /// 99 %.
    pub p99_ns: Duration,
    /// 99.9 %.
    pub p999_ns: Duration,
}

impl Quantiles {
    /// The upper tail: each value with how many in a thousand do not exceed it, in ascending order.
    pub fn each(&self) -> [(u64, Duration); 4] {
        [(500, self.p50_ns), (900, self.p90_ns), (990, self.p99_ns), (999, self.p999_ns)]
    }
}

impl Percentiles {
    pub(crate) fn validate(&self, path: &str) -> Valid {
        let all = [("lateness", &self.lateness), ("cost", &self.cost), ("response", &self.response)];
        let mut present = all.into_iter().filter_map(|(name, quantiles)| Some((name, quantiles.as_ref()?)));
        present.try_for_each(|(name, quantiles)| {
            let fields = [
                ("p10_ns", quantiles.p10_ns.unwrap_or_default()),
                ("p25_ns", quantiles.p25_ns.or(quantiles.p10_ns).unwrap_or_default()),
                ("p50_ns", quantiles.p50_ns),
                ("p90_ns", quantiles.p90_ns),
                ("p99_ns", quantiles.p99_ns),
                ("p999_ns", quantiles.p999_ns),
            ];
            rising(&format!("{path}.{name}"), &fields)
        })
    }
}
