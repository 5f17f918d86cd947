//! Roughly how long the last distances are: enough to tell that most gaps need no score.
//!
//! Distances are counted in levels of equal height, so that adding one and dropping one takes a few
//! instructions, without branches: in sporadic streams, places in a sorted list are unpredictable.

use crate::periodic::tail::AROUND;

/// Number of levels.
const LEVELS: usize = 64;

/// Distances remembered: more than are counted, so that counting can catch up.
pub(crate) const REMEMBERED: usize = 32;

/// The median is at one of these levels after [`Levels::fit`], and may move between the latter.
const FIT: std::ops::Range<i64> = 16..32;
const MOST: std::ops::Range<i64> = 12..44;

#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// Binary digits of a level's height.
    digits: u32,
    /// How many of the last [`AROUND`] distances are at this level or below.
    counts: [u8; LEVELS],
    /// Distances counted so far.
    counted: usize,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels { digits: 0, counts: [0; LEVELS], counted: 0 }
    }
}

/// Between which lengths a distance is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    pub least: i64,
    pub greatest: i64,
}

impl Levels {
    /// Counts the last distances; there are `count` so far.
    #[inline(always)]
    pub fn catch_up(&mut self, distances: &[i64; REMEMBERED], count: usize) {
        if self.counted + (REMEMBERED - AROUND) / 2 < count {
            self.count_again(distances, count);
        }
        for at in self.counted..count {
            let new = self.level(distances[at % REMEMBERED]);
            let old = self.level(distances[(at - AROUND) % REMEMBERED]);
            for (level, count) in (0_u8..).zip(&mut self.counts) {
                *count = *count + u8::from(new <= level) - u8::from(old <= level);
            }
        }
        self.counted = count;
    }

    #[inline(always)]
    fn count_again(&mut self, distances: &[i64; REMEMBERED], count: usize) {
        self.counts = [0; LEVELS];
        for at in count - AROUND..count {
            let new = self.level(distances[at % REMEMBERED]);
            for (level, count) in (0_u8..).zip(&mut self.counts) {
                *count += u8::from(new <= level);
            }
        }
        self.counted = count;
    }

    /// Between which lengths the median of all but one is. `None` if the levels do not fit.
    #[inline(always)]
    pub fn median(&self) -> Option<Between> {
        // The same with that one is one of the two in the middle.
        let middle = AROUND as u8 / 2;
        let below = |most: u8| self.counts.iter().map(|count| u8::from(*count <= most)).sum::<u8>();
        let (low, high) = (i64::from(below(middle)), i64::from(below(middle + 1)));
        let fits = low > 0 && high < LEVELS as i64 - 1;
        fits.then(|| Between { least: low << self.digits, greatest: ((high + 1) << self.digits) - 1 })
    }

    /// The most distances that can be in between.
    #[inline(always)]
    pub fn most(&self, between: Between) -> usize {
        let (from, until) = (self.level(between.least), self.level(between.greatest));
        let below = if from == 0 { 0 } else { self.counts[usize::from(from) - 1] };
        usize::from(self.counts[usize::from(until)] - below)
    }

    /// Chooses levels for distances about as long as the median.
    pub fn fit(&mut self, median: i64) {
        if median > 0 && !MOST.contains(&(median >> self.digits)) {
            self.digits = median.ilog2().saturating_sub(FIT.start.ilog2());
            self.counted = 0;
        }
    }

    #[inline(always)]
    fn level(&self, distance: i64) -> u8 {
        (distance >> self.digits).clamp(0, LEVELS as i64 - 1) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_hold(distances in prop::collection::vec(prop_oneof![900_i64..1_100, -5_i64..5_000, any::<i64>()], 16..80), calls in 1_usize..12) {
            let mut levels = Levels::default();
            levels.fit(1_000);
            let mut ring = [0; REMEMBERED];
            for (at, distance) in distances.iter().enumerate() {
                ring[at % REMEMBERED] = *distance;
                if at + 1 < AROUND || at % calls > 0 {
                    continue;
                }
                levels.catch_up(&ring, at + 1);
                let last = &distances[at + 1 - AROUND..=at];
                for without in 0..AROUND {
                    let mut others = last.to_vec();
                    others.remove(without);
                    others.sort_unstable();
                    let median = others[AROUND / 2];
                    let Some(between) = levels.median() else { continue };
                    prop_assert!(between.least <= median && median <= between.greatest);
                }
                let between = Between { least: 900, greatest: 1_050 };
                let inside = last.iter().filter(|distance| (900..=1_050).contains(*distance)).count();
                prop_assert!(inside <= levels.most(between));
            }
        }
    }
}
