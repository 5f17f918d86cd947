//! Distributions rounded to some binary digits, in memory that depends on how many different values there
//! are.
//!
//! A table of all possible values, as in HDR histograms, takes some hundred kilobytes; a trace may have
//! 65,536 tasks.

use punctual_model::dataflow::{Bin, Distribution};
use punctual_model::{Duration, Quantiles};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Buckets in a row that need no hashing, once there are many values. Most values are close to one another.
const NEAR: usize = 64;

/// Values before that.
const FEW: u64 = 32;

/// Most bins of a histogram in a file.
const MOST_BINS: usize = 100;

/// Number of times in each bucket; the least and the greatest exactly. Values below 2^`BITS` are kept
/// exactly; above, as many bits: a bucket is no wider than one part in 2^(`BITS` − 1) of its least value.
/// Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub struct Histogram<const BITS: u32> {
    /// Counts of the buckets from `first` on. A bucket's count is the sum of those here and in `others`.
    near: Box<[u64]>,
    first: u32,
    others: FxHashMap<u32, u64>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

/// Times of jobs, with the error stated by [`punctual_model::QUANTILE_ERROR_PARTS`].
pub(crate) type Times = Histogram<7>;

impl<const BITS: u32> Histogram<BITS> {
    /// Adds a time; returns whether it is greater than all before it.
    #[inline]
    pub fn add(&mut self, time: Duration) -> bool {
        let ns = time.ns();
        self.count_in(bucket::<BITS>(ns), 1);
        let is_first = self.count == 0;
        let is_greatest = is_first || ns > self.max;
        self.count += 1;
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
        self.min = if is_first { ns } else { self.min.min(ns) };
        is_greatest
    }

    /// Adds the same time so many times.
    pub(crate) fn add_times(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.count_in(bucket::<BITS>(ns), times);
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(ns) * u128::from(times));
    }

    #[inline]
    fn count_in(&mut self, bucket: u32, times: u64) {
        match self.near.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(count) => *count = count.saturating_add(times),
            None => self.count_in_others(bucket, times),
        }
    }

    #[inline(never)]
    fn count_in_others(&mut self, bucket: u32, times: u64) {
        let count = self.others.entry(bucket).or_default();
        *count = count.saturating_add(times);
        if self.near.is_empty() && self.count >= FEW {
            self.near = vec![0; NEAR].into();
            self.first = bucket.saturating_sub(NEAR as u32 / 2);
        }
    }

    /// Adds all times of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        other.counts().for_each(|(bucket, count)| self.count_in(bucket, count));
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Counts of buckets, in no order; a bucket may come twice.
    fn counts(&self) -> impl Iterator<Item = (u32, u64)> {
        let near = (self.first..).zip(self.near.iter().copied()).filter(|(_, count)| *count > 0);
        near.chain(self.others.iter().map(|(bucket, count)| (*bucket, *count)))
    }

    /// How many times were added.
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
            mean_ns: self.mean(),
            p95_ns: Some(quantile(950)),
            p99_ns: Some(quantile(990)),
            p999_ns: Some(quantile(999)),
            histogram: self.bins(),
        })
    }

    /// At most [`MOST_BINS`], each of whole buckets.
    fn bins(&self) -> Vec<Bin> {
        let mut values = self.values();
        for bits in (1..BITS).rev() {
            if values.len() <= MOST_BINS {
                break;
            }
            values = coarser(&values, bits);
        }
        if let Some(last) = values.last_mut() {
            last.0 = self.max;
        }
        let bin = |(until, count)| Bin { until_ns: Duration::from_ns(until), count };
        values.into_iter().map(bin).collect()
    }

    /// `None` of nothing.
    pub fn greatest(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_ns(self.max))
    }

    /// Rounded down; `None` of nothing.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        u64::try_from(mean).ok().map(Duration::from_ns)
    }

    /// `None` of nothing.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let quantile = self.ranked()?;
        Some(Quantiles {
            p10_ns: Some(quantile(100)),
            p25_ns: Some(quantile(250)),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
        })
    }

    /// How many times are longer than this: at least so many, without those in its own bucket.
    pub fn at_least_beyond(&self, limit: Duration) -> u64 {
        let beyond = self.counts().filter(|(bucket, _)| start::<BITS>(*bucket).max(self.min) > limit.ns());
        beyond.map(|(_, count)| count).fold(0, u64::saturating_add)
    }

    /// Each bucket and the number of times in it, in order.
    fn buckets(&self) -> Vec<(u32, u64)> {
        let mut counts: Vec<_> = self.counts().collect();
        counts.sort_unstable();
        counts.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            first.1 = first.1.saturating_add(if is_same { later.1 } else { 0 });
            is_same
        });
        counts
    }

    /// The end of each bucket and the number of times in it, in order.
    pub fn values(&self) -> Vec<(u64, u64)> {
        let counts = self.buckets();
        let value = |(bucket, count)| (end::<BITS>(bucket).clamp(self.min, self.max), count);
        counts.into_iter().map(value).collect()
    }

    /// The least value that so many of a thousand are at most, to the end of its bucket.
    fn ranked(&self) -> Option<impl Fn(u64) -> Duration> {
        let values = self.values();
        let count = self.count;
        (count > 0)
            .then_some(move |per_mille: u64| Duration::from_ns(at_rank(&values, rank(count, per_mille))))
    }
}

/// A histogram in a file: its buckets in ascending order.
#[derive(Serialize, Deserialize)]
struct Packed {
    min: u64,
    max: u64,
    sum: u128,
    buckets: Vec<(u32, u64)>,
}

impl<const BITS: u32> Serialize for Histogram<BITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Histogram { min, max, sum, .. } = *self;
        Packed { min, max, sum, buckets: self.buckets() }.serialize(serializer)
    }
}

impl<'de, const BITS: u32> Deserialize<'de> for Histogram<BITS> {
    /// Refuses what no times make.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Packed { min, max, sum, buckets } = Packed::deserialize(deserializer)?;
        let mut histogram = Histogram { min, max, sum, ..Histogram::default() };
        let count = buckets.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        let ends = buckets.first().zip(buckets.last()).map(|(first, last)| (first.0, last.0));
        let fits = match ends {
            None => (min, max, sum) == (0, 0, 0),
            Some(ends) => ends == (bucket::<BITS>(min), bucket::<BITS>(max)) && min <= max,
        };
        let is_sorted = buckets.is_sorted_by(|one, next| one.0 < next.0);
        let Some(count) = count.filter(|_| fits && is_sorted && buckets.iter().all(|(_, count)| *count > 0))
        else {
            return Err(de::Error::custom(
                "a histogram with ascending buckets from its least to its greatest value",
            ));
        };
        let bounds = u128::from(min) * u128::from(count)..=u128::from(max) * u128::from(count);
        if !bounds.contains(&sum) {
            return Err(de::Error::custom("a histogram whose sum its values can have"));
        }
        if buckets.len() > NEAR / 2 {
            histogram.near = vec![0; NEAR].into();
            histogram.first = buckets[buckets.len() / 2].0.saturating_sub(NEAR as u32 / 2);
        }
        histogram.others.reserve(buckets.len().saturating_sub(histogram.near.len()));
        buckets.into_iter().for_each(|(bucket, count)| histogram.count_in(bucket, count));
        histogram.count = count;
        Ok(histogram)
    }
}

/// Joins the counts of values that agree in so many of their highest bits.
fn coarser(values: &[(u64, u64)], bits: u32) -> Vec<(u64, u64)> {
    let highest = |ns: u64| {
        let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(bits);
        (ns >> shift) << shift
    };
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (value, count) in values {
        match joined.last_mut().filter(|last| highest(last.0) == highest(*value)) {
            Some(last) => *last = (*value, last.1 + count),
            None => joined.push((*value, *count)),
        }
    }
    joined
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
    let digits = u64::BITS - (ns | 1 << (BITS - 1)).leading_zeros();
    let shift = digits - BITS;
    (shift << BITS) + (ns >> shift) as u32
}

/// The least value in a bucket.
fn start<const BITS: u32>(bucket: u32) -> u64 {
    let (shift, bits) = (bucket >> BITS, u64::from(bucket & ((1 << BITS) - 1)));
    bits << shift
}

/// The greatest value in a bucket.
fn end<const BITS: u32>(bucket: u32) -> u64 {
    start::<BITS>(bucket) | ((1 << (bucket >> BITS)) - 1)
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
        let beside = [found.mean_ns, found.p99_ns].map(|time| time.map(Duration::ns));
        assert_eq!(beside, [Some(28 / 5), Some(9)]);
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
            let ranks = [
                (250, found.quartile_1_ns),
                (500, found.median_ns),
                (750, found.quartile_3_ns),
                (990, found.p99_ns.unwrap()),
            ];
            for (per_mille, found) in ranks {
                let exact = sorted[(values.len() * per_mille).div_ceil(1_000) - 1];
                let is_near = found.ns() >= exact && found.ns() - exact <= exact / 1_000;
                prop_assert!(is_near, "{} for {}", found.ns(), exact);
            }
            let mean = values.iter().map(|ns| u128::from(*ns)).sum::<u128>() / values.len() as u128;
            prop_assert_eq!(found.mean_ns.map(|mean| u128::from(mean.ns())), Some(mean));
        }

        #[test]
        fn quantiles_keep_their_error_and_pieces_merge(
            values in values(),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = histogram::<7>(&values);
            let cut = cut.index(values.len());
            let mut merged = histogram::<7>(&values[..cut]);
            merged.merge(&histogram(&values[cut..]));
            prop_assert_eq!(merged.quantiles(), whole.quantiles());
            prop_assert_eq!(merged.mean(), whole.mean());
            prop_assert_eq!(merged.values(), whole.values());
            let found = whole.quantiles().unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (per_mille, found) in found.each() {
                let per_mille = per_mille as usize;
                let exact = sorted[(values.len() * per_mille).div_ceil(1_000) - 1];
                let error = exact / punctual_model::QUANTILE_ERROR_PARTS;
                let is_near = found.ns() >= exact && found.ns() - exact <= error;
                prop_assert!(is_near, "{} for {}", found.ns(), exact);
            }
        }
    }
}
