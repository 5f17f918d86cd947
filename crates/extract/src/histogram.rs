//! Distributions in memory that depends on how many different values there are, to some binary digits.
//!
//! A table of all values that could be, as HDR histograms have it, takes some hundred kilobytes; a trace may
//! have 65,536 tasks.

use punctual_model::dataflow::Distribution;
use punctual_model::{Duration, Quantiles};
use rustc_hash::FxHashMap;

/// How many times were in each bucket; the least and the greatest exactly. Values below 2^`BITS` are kept
/// exactly; above, as many bits: a bucket is no wider than one part in 2^(`BITS` − 1) of its least value.
/// Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub struct Histogram<const BITS: u32> {
    buckets: FxHashMap<u32, u64>,
    count: u64,
    min: u64,
    max: u64,
}

impl<const BITS: u32> Histogram<BITS> {
    /// Adds a time; whether it is greater than all before it.
    #[inline]
    pub fn add(&mut self, time: Duration) -> bool {
        let ns = time.ns();
        *self.buckets.entry(bucket::<BITS>(ns)).or_default() += 1;
        let is_first = self.count == 0;
        let is_greatest = is_first || ns > self.max;
        self.count += 1;
        self.max = self.max.max(ns);
        self.min = if is_first { ns } else { self.min.min(ns) };
        is_greatest
    }

    /// Adds all times of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// `None` of nothing.
    pub fn distribution(&self) -> Option<Distribution> {
        let quantile = self.ranked()?;
        Some(Distribution {
            count: self.count,
            min_ns: Duration::from_ns(self.min),
            quartile_1_ns: quantile(250),
            median_ns: quantile(500),
            quartile_3_ns: quantile(750),
            max_ns: Duration::from_ns(self.max),
        })
    }

    /// `None` of nothing.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let quantile = self.ranked()?;
        Some(Quantiles {
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
        })
    }

    /// The end of each bucket and how many times are in it, in order.
    pub fn values(&self) -> Vec<(u64, u64)> {
        let mut values: Vec<(u64, u64)> = self
            .buckets
            .iter()
            .map(|(bucket, count)| (end::<BITS>(*bucket).clamp(self.min, self.max), *count))
            .collect();
        values.sort_unstable();
        values
    }

    /// The least value that so many of a thousand are at most, to the end of its bucket.
    fn ranked(&self) -> Option<impl Fn(u64) -> Duration> {
        let values = self.values();
        let count = self.count;
        (count > 0)
            .then_some(move |per_mille: u64| Duration::from_ns(at_rank(&values, rank(count, per_mille))))
    }
}

/// The place of the value that so many of a thousand do not exceed, from 1.
pub(crate) fn rank(count: u64, per_mille: u64) -> u128 {
    (u128::from(count) * u128::from(per_mille)).div_ceil(1_000).max(1)
}

/// The value at this place among values in order, each so often.
pub(crate) fn at_rank(values: &[(u64, u64)], rank: u128) -> u64 {
    let mut below = 0_u128;
    let found = values.iter().find(|(_, count)| {
        below += u128::from(*count);
        below >= rank
    });
    found.or(values.last()).map_or(0, |(value, _)| *value)
}

/// Its highest bits, and how many were left out; in order of value.
#[inline]
fn bucket<const BITS: u32>(ns: u64) -> u32 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS);
    (shift << BITS) + (ns >> shift) as u32
}

/// The greatest value in a bucket.
fn end<const BITS: u32>(bucket: u32) -> u64 {
    let (shift, bits) = (bucket >> BITS, u64::from(bucket & ((1 << BITS) - 1)));
    (bits << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram<const BITS: u32>(values: &[u64]) -> Histogram<BITS> {
        let mut histogram = Histogram::default();
        for ns in values {
            histogram.add(Duration::from_ns(*ns));
        }
        histogram
    }

    #[test]
    fn quartiles_of_few_are_exact() {
        let mut histogram = Histogram::<11>::default();
        assert_eq!(histogram.distribution(), None);
        assert!([5, 1, 4].map(|ns| histogram.add(Duration::from_ns(ns))) == [true, false, false]);
        assert!(histogram.add(Duration::from_ns(9)) && !histogram.add(Duration::from_ns(9)));
        let found = histogram.distribution().unwrap();
        let ns = [found.min_ns, found.quartile_1_ns, found.median_ns, found.quartile_3_ns, found.max_ns]
            .map(Duration::ns);
        assert_eq!((found.count, ns), (5, [1, 4, 5, 9, 9]));
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0..5_000_u64, any::<u64>(), 0..1_u64 << 40], 1..200)
    }

    proptest! {
        #[test]
        fn quartiles_have_three_digits(values in values()) {
            let found = histogram::<11>(&values).distribution().unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!((found.min_ns.ns(), found.max_ns.ns()), (sorted[0], sorted[sorted.len() - 1]));
            for (quarter, found) in [(1, found.quartile_1_ns), (2, found.median_ns), (3, found.quartile_3_ns)] {
                let exact = sorted[(values.len() * quarter).div_ceil(4) - 1];
                prop_assert!(found.ns() >= exact && found.ns() - exact <= exact / 1_000, "{} for {}", found.ns(), exact);
            }
        }

        #[test]
        fn quantiles_are_as_exact_as_is_said_and_pieces_merge(values in values(), cut in any::<prop::sample::Index>()) {
            let whole = histogram::<7>(&values);
            let cut = cut.index(values.len());
            let mut merged = histogram::<7>(&values[..cut]);
            merged.merge(&histogram(&values[cut..]));
            prop_assert_eq!(merged.quantiles(), whole.quantiles());
            prop_assert_eq!(merged.values(), whole.values());
            let found = whole.quantiles().unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (per_mille, found) in [(500, found.p50_ns), (900, found.p90_ns), (990, found.p99_ns), (999, found.p999_ns)] {
                let exact = sorted[(values.len() * per_mille).div_ceil(1_000) - 1];
                let error = exact / punctual_model::QUANTILE_ERROR_PARTS;
                prop_assert!(found.ns() >= exact && found.ns() - exact <= error, "{} for {}", found.ns(), exact);
            }
        }
    }
}
