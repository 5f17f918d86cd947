//! The activations of a periodic model: activation k arrives at `offset + k·P` and is released at most
//! `jitter` later.
//!
//! Exact integers, so that fractions of nanoseconds do not drift.

use crate::arrival::{Fraction, Periodic, PeriodicOn, Source};
use crate::job::Release;
use crate::time::Duration;

/// A period with its offset and jitter.
pub(super) struct Grid {
    offset: i128,
    jitter: i128,
    numerator: i128,
    denominator: i128,
}

/// The first and last instant at which a release may have been, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) first: i128,
    pub(super) last: i128,
}

impl Extent {
    /// The window of a release, extended to its known arrival if the model is measured on arrivals. One that
    /// is later than the release means nothing.
    pub(super) fn new(release: &Release, on: PeriodicOn) -> Extent {
        let (earliest, latest) = (release.window.earliest(), release.window.latest());
        let arrival = release.arrival.filter(|arrival| on == PeriodicOn::Arrival && *arrival <= latest);
        let first = arrival.map_or(earliest, |arrival| arrival.min(earliest));
        Extent { first: first.ns().into(), last: latest.ns().into() }
    }
}

impl Extent {
    /// The latest bound of a release, extended to its known arrival. One that is later than the release means
    /// nothing.
    pub(super) fn latest(release: &Release) -> Extent {
        let latest = release.window.latest();
        let first = release.arrival.filter(|arrival| *arrival <= latest).unwrap_or(latest);
        Extent { first: first.ns().into(), last: latest.ns().into() }
    }
}

impl Grid {
    /// The period of `model` (the exact one, if it has a valid one) with this offset and jitter.
    pub(super) fn new(model: &Periodic, offset_ns: i64, jitter: Duration) -> Grid {
        Grid::of(model.period_ns, model.period_exact, offset_ns, jitter.ns())
    }

    /// The period and offset of `source` with this jitter.
    pub(super) fn of_source(source: &Source, jitter: u64) -> Grid {
        Grid::of(source.period_ns, source.period_exact, source.offset_ns, jitter)
    }

    fn of(period: Duration, exact: Option<Fraction>, offset_ns: i64, jitter: u64) -> Grid {
        let (numerator, denominator) = match exact {
            Some(exact) if exact.denominator > 0 => (exact.numerator, exact.denominator),
            _ => (period.ns(), 1),
        };
        Grid {
            offset: offset_ns.into(),
            jitter: jitter.into(),
            numerator: numerator.into(),
            denominator: denominator.into(),
        }
    }

    /// The first whole nanosecond at which activation `k` may be released.
    pub(super) fn arrival(&self, k: i64) -> i128 {
        // Rounded up, by rounding down the negated product. A product of 63 and 64 bits does not overflow.
        let product = i128::from(k) * self.numerator;
        self.offset.saturating_sub((-product).div_euclid(self.denominator))
    }

    /// The last whole nanosecond at which activation `k` may be released.
    pub(super) fn limit(&self, k: i64) -> i128 {
        let product = i128::from(k) * self.numerator;
        self.offset.saturating_add(product.div_euclid(self.denominator)).saturating_add(self.jitter)
    }

    /// Whether the whole extent lies where activation `k` may be released.
    pub(super) fn fits(&self, k: i64, extent: Extent) -> bool {
        self.arrival(k) <= extent.first && extent.last <= self.limit(k)
    }

    /// Whether no two activations overlap, so that a release belongs to exactly one.
    pub(super) fn is_disjoint(&self) -> bool {
        self.jitter.saturating_mul(self.denominator) < self.numerator
    }

    /// The least activation that may be released at `instant` or later.
    pub(super) fn least_until(&self, instant: i128) -> i64 {
        least(|k| self.limit(k) >= instant)
    }

    /// The least activation that arrives at `instant` or later.
    pub(super) fn least_from(&self, instant: i128) -> i64 {
        least(|k| self.arrival(k) >= instant)
    }
}

/// The least number for which `holds`, which must be monotone; the greatest number if there is none.
fn least(holds: impl Fn(i64) -> bool) -> i64 {
    let (mut from, mut until) = (-i64::MAX, i64::MAX);
    while from < until {
        // Rounded down, so that it is never `until`. The difference needs one bit more than its ends.
        let middle = from.wrapping_add((until.wrapping_sub(from) as u64 / 2) as i64);
        if holds(middle) {
            until = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}
