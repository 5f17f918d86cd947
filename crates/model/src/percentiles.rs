//! Percentiles of the times of a stream.

use crate::read::ReadError;
use crate::section::Valid;
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// How the times of one stream are distributed. Each value is at least the exact one, and at most one part in
/// [`QUANTILE_ERROR_PARTS`] above it; of lateness only where arrivals are known, else it is that of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// From the arrival (known, or that of the typical periodic model) to the latest bound of the release.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lateness: Option<Quantiles>,
    /// Processor time of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Quantiles>,
    /// Response time of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Quantiles>,
}

/// A quantile is at most one part in so many above the exact one.
pub const QUANTILE_ERROR_PARTS: u64 = 64;

/// The least values that so many per cent of all do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of them.
    pub p50_ns: Duration,
    /// 90 %.
    pub p90_ns: Duration,
    /// 99 %.
    pub p99_ns: Duration,
    /// 99.9 %.
    pub p999_ns: Duration,
}

impl Quantiles {
    /// Each with how many in a thousand do not exceed it, the least first.
    pub fn each(&self) -> [(u64, Duration); 4] {
        [(500, self.p50_ns), (900, self.p90_ns), (990, self.p99_ns), (999, self.p999_ns)]
    }
}

impl Percentiles {
    pub(crate) fn validate(&self, path: &str) -> Valid {
        let all = [("lateness", &self.lateness), ("cost", &self.cost), ("response", &self.response)];
        let all = all.into_iter().filter_map(|(name, quantiles)| Some((name, quantiles.as_ref()?)));
        for (name, quantiles) in all {
            let names = ["p50_ns", "p90_ns", "p99_ns", "p999_ns"];
            let values = quantiles.each().map(|(_, value)| value);
            if let Some(index) = values.windows(2).position(|pair| pair[1] < pair[0]) {
                let (path, expected) = (
                    format!("{path}.{name}.{}", names[index + 1]),
                    format!("no less than `{}`", names[index]),
                );
                return Err(ReadError::value(
                    path,
                    format!("{expected} ({})", values[index].ns()),
                    values[index + 1].ns(),
                ));
            }
        }
        Ok(())
    }
}
