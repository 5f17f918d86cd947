//! Counts of values in buckets whose width grows with the value: of any range in bounded memory, to less than
//! half a percent.
//!
//! Within an octave all buckets have the same width, a power of two, and begin at multiples of it: buckets
//! can be joined to wider ones of equal width without dividing a count.

const BITS: u32 = 8;
const PER_OCTAVE: usize = 1 << BITS;

/// Counts per bucket, and the exact extremes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// The first octave counts each value below 2^BITS; the ones after it, values from 2^(octave + BITS - 1)
    /// on. Absent without a value.
    octaves: Vec<Option<Box<[u64; PER_OCTAVE]>>>,
    count: u64,
    /// Least and greatest value.
    range: Option<(u64, u64)>,
}

/// Buckets as a page has them: `index` counts buckets of 2^bits per octave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Buckets of an octave, as a power of two.
    pub(crate) bits: u32,
    /// Index and count of those with a count, in order.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl Histogram {
    /// Adds a value. O(1).
    pub(crate) fn push(&mut self, value: u64) {
        let (octave, within) = place(value);
        if octave >= self.octaves.len() {
            self.octaves.resize(octave + 1, None);
        }
        let counts = self.octaves[octave].get_or_insert_with(|| Box::new([0; PER_OCTAVE]));
        counts[within] += 1;
        self.count += 1;
        self.range = match self.range {
            Some((least, greatest)) => Some((least.min(value), greatest.max(value))),
            None => Some((value, value)),
        };
    }

    /// Values in all.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Least and greatest value; `None` without any.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    /// A value that at least this many per mille of all do not exceed: the end of a bucket, or the greatest
    /// value.
    pub(crate) fn quantile(&self, per_mille: u64) -> Option<u64> {
        let (_, greatest) = self.range?;
        let wanted = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1_000);
        let mut seen = 0;
        for (octave, within, count) in self.nonzero() {
            seen += u128::from(count);
            if seen >= wanted {
                return Some(last_of(octave, within).min(greatest));
            }
        }
        Some(greatest)
    }

    /// At most `most` buckets (but no fewer than one per octave): the finest that are so few.
    pub(crate) fn buckets(&self, most: usize) -> Buckets {
        let mut bits = BITS;
        loop {
            let mut counts: Vec<(u64, u64)> = Vec::new();
            for (octave, within, count) in self.nonzero() {
                let index = ((octave as u64) << bits) | (within as u64 >> (BITS - bits));
                match counts.last_mut() {
                    Some((last, sum)) if *last == index => *sum += count,
                    _ => counts.push((index, count)),
                }
            }
            if counts.len() <= most || bits == 0 {
                return Buckets { bits, counts };
            }
            bits -= 1;
        }
    }

    fn nonzero(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let octaves =
            self.octaves.iter().enumerate().filter_map(|(octave, counts)| Some((octave, counts.as_ref()?)));
        octaves
            .flat_map(|(octave, counts)| {
                counts.iter().enumerate().map(move |(within, &count)| (octave, within, count))
            })
            .filter(|(.., count)| *count > 0)
    }
}

fn place(value: u64) -> (usize, usize) {
    match value.checked_ilog2() {
        Some(power) if power >= BITS => {
            let shift = power - BITS;
            (shift as usize + 1, (value >> shift) as usize & (PER_OCTAVE - 1))
        }
        _ => (0, value as usize),
    }
}

/// The greatest value of a bucket.
fn last_of(octave: usize, within: usize) -> u64 {
    match octave.checked_sub(1) {
        None => within as u64,
        Some(shift) => (((PER_OCTAVE + within) as u64) << shift) + ((1 << shift) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.push(*value));
        histogram
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0_u64..600, 0_u64..10_000_000, any::<u64>()], 1..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_value_is_counted_once(values in values(), most in 1_usize..100) {
            let histogram = histogram(&values);
            let buckets = histogram.buckets(most);
            prop_assert_eq!(buckets.counts.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
            prop_assert!(buckets.counts.len() <= most || buckets.bits == 0);
            prop_assert!(buckets.counts.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!(histogram.range(), values.iter().min().copied()
                .zip(values.iter().max().copied()));
        }

        #[test]
        fn a_value_is_in_its_bucket(value in any::<u64>()) {
            let (octave, within) = place(value);
            let last = last_of(octave, within);
            prop_assert!(value <= last);
            prop_assert!((last - value) as f64 <= value as f64 / 256.0);
            prop_assert_eq!(place(last), (octave, within));
            prop_assert!(last == u64::MAX || place(last + 1) != (octave, within));
        }

        #[test]
        fn the_right_share_of_values_does_not_exceed_a_quantile(values in values(),
            per_mille in 0_u64..=1_000) {
            let quantile = histogram(&values).quantile(per_mille).unwrap();
            let within = values.iter().filter(|value| **value <= quantile).count() as u64;
            prop_assert!(within * 1_000 >= values.len() as u64 * per_mille);
            prop_assert!(quantile <= *values.iter().max().unwrap());
        }
    }

    #[test]
    fn close_values_are_distinguished() {
        // 300 µs and 302 µs, one of 3 ms far away.
        let buckets = histogram(&[300_000, 300_010, 302_000, 3_000_000]).buckets(100);
        assert_eq!(buckets.counts.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(histogram(&[]).range(), None);
        assert_eq!(histogram(&[]).quantile(500), None);
    }
}
