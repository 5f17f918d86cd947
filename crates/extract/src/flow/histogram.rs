//! Distributions in memory that depends on how many different values there are, to three significant digits.
//!
//! A table of all values that could be, as HDR histograms have it, takes some hundred kilobytes; a trace may have 65,536 tasks.

use punctual_model::Duration;
use punctual_model::dataflow::Distribution;
use rustc_hash::FxHashMap;

/// Values below this are kept exactly; above, as many bits: 1 in 1,024 is the coarsest.
const EXACT_BITS: u32 = 11;

/// How many times were in each bucket; the least and the greatest exactly.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: FxHashMap<u32, u64>,
    count: u64,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Adds a time; whether it is greater than all before it.
    #[inline]
    pub fn add(&mut self, time: Duration) -> bool {
        let ns = time.ns();
        *self.buckets.entry(bucket(ns)).or_default() += 1;
        let is_first = self.count == 0;
        let is_greatest = is_first || ns > self.max;
        self.count += 1;
        self.max = self.max.max(ns);
        self.min = if is_first { ns } else { self.min.min(ns) };
        is_greatest
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// `None` of nothing.
    pub fn distribution(&self) -> Option<Distribution> {
        let mut buckets: Vec<(u32, u64)> = self.buckets.iter().map(|(bucket, count)| (*bucket, *count)).collect();
        buckets.sort_unstable();
        // The least value that as many are at most, to the end of its bucket.
        let quantile = |quarter: u64| {
            let rank = (u128::from(self.count) * u128::from(quarter)).div_ceil(4).max(1);
            let mut below = 0_u128;
            let found = buckets.iter().find(|(_, count)| {
                below += u128::from(*count);
                below >= rank
            });
            let ns = found.map_or(self.max, |(bucket, _)| end(*bucket)).clamp(self.min, self.max);
            Duration::from_ns(ns)
        };
        (self.count > 0).then(|| Distribution {
            count: self.count,
            min_ns: Duration::from_ns(self.min),
            quartile_1_ns: quantile(1),
            median_ns: quantile(2),
            quartile_3_ns: quantile(3),
            max_ns: Duration::from_ns(self.max),
        })
    }
}

/// Its highest bits, and how many were left out; in order of value.
#[inline]
fn bucket(ns: u64) -> u32 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(EXACT_BITS);
    (shift << EXACT_BITS) + (ns >> shift) as u32
}

/// The greatest value in a bucket.
fn end(bucket: u32) -> u64 {
    let (shift, bits) = (bucket >> EXACT_BITS, u64::from(bucket & ((1 << EXACT_BITS) - 1)));
    (bits << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quartiles_of_few_are_exact() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.distribution(), None);
        assert!([5, 1, 4].map(|ns| histogram.add(Duration::from_ns(ns))) == [true, false, false]);
        assert!(histogram.add(Duration::from_ns(9)) && !histogram.add(Duration::from_ns(9)));
        let found = histogram.distribution().unwrap();
        let ns = [found.min_ns, found.quartile_1_ns, found.median_ns, found.quartile_3_ns, found.max_ns].map(Duration::ns);
        assert_eq!((found.count, ns), (5, [1, 4, 5, 9, 9]));
    }

    proptest! {
        #[test]
        fn quartiles_have_three_digits(values in prop::collection::vec(prop_oneof![0..5_000_u64, any::<u64>(), 0..1_u64 << 40], 1..200)) {
            let mut histogram = Histogram::default();
            for ns in &values {
                histogram.add(Duration::from_ns(*ns));
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let found = histogram.distribution().unwrap();
            prop_assert_eq!((found.min_ns.ns(), found.max_ns.ns()), (sorted[0], sorted[sorted.len() - 1]));
            for (quarter, found) in [(1, found.quartile_1_ns), (2, found.median_ns), (3, found.quartile_3_ns)] {
                let exact = sorted[(values.len() * quarter).div_ceil(4) - 1];
                prop_assert!(found.ns() >= exact && found.ns() - exact <= exact / 1_000, "{} for {}", found.ns(), exact);
            }
        }
    }
}
