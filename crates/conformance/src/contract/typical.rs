//! What is typical of the jobs of a thread, and how many of them may be otherwise.
//!
//! Jobs of the next run may exceed the greatest value of one run, and one outlier in it hides a program that
//! became slower. So a contract limits a lower quartile and a median, which neither outliers nor chance move,
//! and lets a share of the jobs exceed the other limits.

use super::group::LEAST_JOBS;
use super::observed::Limits;
use super::{Margin, MedianSeparation};
use punctual_model::arrival::{Periodic, PeriodicOn};
use punctual_model::{Duration, Percent, Quantiles, Stream};

/// A quantile that timing models have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// 50 %.
    P50,
    /// 90 %.
    P90,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
}

impl Quantile {
    /// Every one.
    pub const ALL: [Quantile; 4] = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999];

    /// How many of a thousand values do not exceed it.
    pub const fn per_mille(self) -> u64 {
        match self {
            Quantile::P50 => 500,
            Quantile::P90 => 900,
            Quantile::P99 => 990,
            Quantile::P999 => 999,
        }
    }

    fn of(self, quantiles: &Quantiles) -> Duration {
        match self {
            Quantile::P50 => quantiles.p50_ns,
            Quantile::P90 => quantiles.p90_ns,
            Quantile::P99 => quantiles.p99_ns,
            Quantile::P999 => quantiles.p999_ns,
        }
    }
}

/// The quantile, or the greatest value where that is less or there are no quantiles.
fn value(quantiles: Option<&Quantiles>, greatest: Duration, quantile: Option<Quantile>) -> Duration {
    let found = quantile.zip(quantiles).map(|(quantile, quantiles)| quantile.of(quantiles));
    found.map_or(greatest, |found| found.min(greatest))
}

/// Processor time of a job.
pub fn cost(stream: &Stream, quantile: Option<Quantile>) -> Option<Duration> {
    let greatest = stream.execution.as_ref()?.wcet_ns.first().copied()?;
    Some(value(stream.percentiles.as_ref().and_then(|it| it.cost.as_ref()), greatest, quantile))
}

/// Response time of a job.
pub fn response(stream: &Stream, quantile: Option<Quantile>) -> Option<Duration> {
    let greatest = stream.response.as_ref()?.max_ns;
    Some(value(stream.percentiles.as_ref().and_then(|it| it.response.as_ref()), greatest, quantile))
}

/// Lateness of a release after its activation.
pub fn jitter(stream: &Stream, model: &Periodic, quantile: Option<Quantile>) -> Duration {
    let lateness = stream.percentiles.as_ref().and_then(|it| it.lateness.as_ref());
    let after_arrival = value(lateness, model.jitter_ns, quantile);
    (after_arrival + arrivals_off_grid(stream, model)).min(model.jitter_ns)
}

/// Lateness is that after known arrivals: how far those are off the grid.
fn arrivals_off_grid(stream: &Stream, model: &Periodic) -> Duration {
    match model.on {
        PeriodicOn::Arrival => stream.off_grid(model),
        PeriodicOn::Release => Duration::ZERO,
    }
}

/// Disturbances last longer than a job, and some runs have them and others do not: a smaller share would rest
/// on the independence of jobs. (With 1 %, two of twelve runs on a busy machine broke the contract of another
/// one.)
const LEAST_SHARE: Percent = Percent::whole(5);

/// The share of jobs that may exceed limits from as many jobs as these. `None` without a margin.
///
/// With probability 99.9 %, no more than ln(1000)/n of all jobs exceed the greatest of n independent ones; of
/// a quantile that x of n jobs exceeded, no more than (x + 3·√x + 7)/n.
pub fn may_exceed(streams: &[&Stream], Limits { margin, quantile }: Limits) -> Option<Percent> {
    let Margin::Percent(_) = margin else { return None };
    let jobs = streams.iter().map(|stream| stream.jobs).fold(0, u64::saturating_add).max(1);
    let beyond = jobs.saturating_mul(1_000 - quantile.map_or(1_000, Quantile::per_mille)).div_ceil(1_000);
    let most = u128::from(beyond) + 3 * u128::from(beyond.isqrt()) + 7;
    let parts = (most * u128::from(Percent::WHOLE)).div_ceil(jobs.into());
    // Two digits: the number of jobs is no more exact than that.
    let unit = 10_u128.pow(parts.checked_ilog10().unwrap_or(0).saturating_sub(1));
    let parts = u64::try_from(parts.div_ceil(unit) * unit).unwrap_or(u64::MAX);
    Some(Percent::of_parts(parts).clamp(LEAST_SHARE, crate::chance::GREATEST_SHARE))
}

/// A limit of the lower quartile of the cost. Half of the margin lies between it and what was observed, so
/// that a program that is slower by the whole margin exceeds it for certain.
///
/// Disturbances only add to costs. They hardly move the tenth percentile of the observed run, from which the
/// limit is made, nor the quartile of the next run, which is compared with it.
pub fn quartile_cost(streams: &[&Stream], margin: Margin) -> Option<Duration> {
    let Margin::Percent(_) = margin else { return None };
    let limit = |costs: &Quantiles| {
        let above = |observed| margin.half_above_kernel(observed);
        let quartile = costs.p25_ns.unwrap_or(costs.p50_ns);
        let least = above(costs.p10_ns.unwrap_or(quartile));
        // A few jobs are of another kind.
        if quartile > least { above(quartile) } else { least }
    };
    enough(streams).filter_map(|stream| stream.percentiles.as_ref()?.cost.as_ref()).map(limit).max()
}

/// Limits of the median separation, where a change by the whole margin exceeds them for certain.
pub fn agreed_separation(streams: &[&Stream], margin: Margin) -> Option<MedianSeparation> {
    let Margin::Percent(_) = margin else { return None };
    let bounds: Option<Vec<MedianSeparation>> = enough(streams).map(median_separation_of).collect();
    let bounds = bounds?;
    let (least, most) = (bounds.iter().map(|it| it.least).min()?, bounds.iter().map(|it| it.most).max()?);
    let half = margin.half();
    let agreed = MedianSeparation { least: half.below(least), most: half.above(most) };
    let tells = agreed.most < margin.above(least) && agreed.least > margin.below(most);
    tells.then_some(agreed)
}

/// Streams with enough jobs for a median.
fn enough<'a>(streams: &'a [&'a Stream]) -> impl Iterator<Item = &'a Stream> {
    streams.iter().copied().filter(|stream| stream.jobs >= LEAST_JOBS)
}

/// Bounds of the median time from a release to the next, as far as the model tells.
pub fn median_separation_of(stream: &Stream) -> Option<MedianSeparation> {
    let spread = |bounds: &MedianSeparation| bounds.most.saturating_sub(bounds.least);
    by_grid(stream).into_iter().chain(by_mean(stream)).min_by_key(spread)
}

/// Nine of ten releases are late by at most their quantile, so four of five separations, and half of them
/// with slips, differ from the period by no more than that.
fn by_grid(stream: &Stream) -> Option<MedianSeparation> {
    let model = stream.arrival.periodic.as_ref()?;
    let late = stream.percentiles.as_ref()?.lateness.as_ref()?.p90_ns + arrivals_off_grid(stream, model);
    let slips = model.skipped.saturating_add(model.extra);
    let period = model.period_ns;
    (late < period && slips.saturating_mul(4) <= stream.releases)
        .then(|| MedianSeparation { least: period.saturating_sub(late), most: period + late })
}

/// At most half of the separations exceed the least one by more than twice as much as their mean does.
/// (Markov's inequality.)
fn by_mean(stream: &Stream) -> Option<MedianSeparation> {
    let curve = stream.arrival.curve.as_ref()?;
    let least = *curve.delta_min_ns.first()?;
    let gaps = curve.delta_max_ns.len() as u64;
    let mean = Duration::from_ns(curve.delta_max_ns.last()?.ns().div_ceil(gaps));
    Some(MedianSeparation { least, most: mean + mean.saturating_sub(least) })
}
