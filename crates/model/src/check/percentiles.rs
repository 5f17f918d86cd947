//! Checks of percentiles. Meaningful only for the jobs and releases they were made from.

use super::RecordedJob;
use super::violation::{Bound, Model, Value, Violation};
use crate::job::Release;
use crate::percentiles::{Percentiles, QUANTILE_ERROR_PARTS, Quantiles};
use crate::time::Duration;

/// Checks that each percentile of cost and response, and of lateness if all arrivals are known, is at least
/// the exact one and not further above it than [`QUANTILE_ERROR_PARTS`] allows. Lateness from inferred
/// arrivals comes from a sample and cannot be checked.
pub fn percentiles(model: &Percentiles, releases: &[Release], jobs: &[RecordedJob]) -> Vec<Violation> {
    let mut found = Vec::new();
    let lateness: Option<Vec<Duration>> =
        releases.iter().map(|release| Some(release.window.latest().since(release.arrival?))).collect();
    if let (Some(quantiles), Some(lateness)) = (&model.lateness, lateness) {
        found.extend(quantiles_of(Model::LatenessPercentile, quantiles, lateness));
    }
    if let Some(quantiles) = &model.cost {
        found.extend(quantiles_of(
            Model::CostPercentile,
            quantiles,
            jobs.iter().map(|(job, _)| job.cost).collect(),
        ));
    }
    if let Some(quantiles) = &model.response {
        found.extend(quantiles_of(
            Model::ResponsePercentile,
            quantiles,
            jobs.iter().map(|(job, _)| job.response()).collect(),
        ));
    }
    found
}

fn quantiles_of(model: fn(u64) -> Model, quantiles: &Quantiles, mut values: Vec<Duration>) -> Vec<Violation> {
    values.sort_unstable();
    let mut found = Vec::new();
    for (permille, quantile) in quantiles.each() {
        // The least value that this share of all values does not exceed.
        let rank = (values.len() as u64 * permille).div_ceil(1_000) as usize;
        let Some(exact) = rank.checked_sub(1).and_then(|index| values.get(index)).copied() else { continue };
        let most = Duration::from_ns(exact.ns().saturating_add(exact.ns() / QUANTILE_ERROR_PARTS));
        if quantile < exact {
            found.push(Violation::at_job(
                model(permille),
                0,
                Bound::AtMost(Value::Span(quantile)),
                Value::Span(exact),
            ));
        }
        if quantile > most {
            found.push(Violation::at_job(
                model(permille),
                0,
                Bound::AtLeast(Value::Span(quantile)),
                Value::Span(exact),
            ));
        }
    }
    found
}
