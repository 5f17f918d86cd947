//! The last releases of a stream. When the one in the middle leaves, the gap before it is scored.
//!
//! Most gaps are about as long as their neighbours, which a few bits tell. The others need the median of the
//! distances around them.

use crate::periodic::score::{self, Gap, REACH, Step};
use crate::periodic::segment::Entry;

/// Other releases that score a gap: the last ones of a stream are kept for the next gap, the first ones for
/// merging with the piece before.
pub(crate) const AROUND: usize = 2 * REACH - 1;

/// Distances kept: more than there are around a gap, so that the sorted ones can catch up.
const REMEMBERED: usize = 32;

/// Releases between two attempts to find the usual distance.
const PATIENCE: usize = 16;

/// Distances that may be far from the median where neighbours agree on a shift.
const FAR: usize = 5;

/// Bits of the distances around a gap: the one in the middle, and the others.
const MIDDLE: u32 = 1 << (REACH - 1);
const OTHERS: u32 = ((1 << AROUND) - 1) & !MIDDLE;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    ring: [Entry; 2 * REACH],
    /// Releases so far.
    count: usize,
    /// One bit for each release, the newest lowest: whether its distance from the one before is `usual`.
    regular: u32,
    /// The least and the greatest usual distance.
    usual: (i64, i64),
    looked_at: usize,
    distances: [i64; REMEMBERED],
    /// The last `AROUND` distances at `sorted_at`, in order.
    sorted: [i64; AROUND],
    sorted_at: usize,
}

impl Tail {
    /// Adds a release. Once `AROUND` others come before it, the one in the middle leaves, with the gap before
    /// it. If its neighbours agree on no shift and its score is not above `least`, that gap may be given as
    /// closed, without its score.
    #[inline]
    pub fn push(&mut self, entry: Entry, least: i64) -> Option<(Gap, Entry)> {
        let before = self.ring[self.count.wrapping_sub(1) % (2 * REACH)];
        let distance = score::distance(before.evidence, (entry.evidence, entry.advance));
        self.ring[self.count % (2 * REACH)] = entry;
        self.distances[self.count % REMEMBERED] = distance;
        self.count += 1;
        self.regular = self.regular << 1 | u32::from(self.usual.0 <= distance && distance <= self.usual.1);
        if self.count <= AROUND {
            return None;
        }
        let middle = self.ring[(self.count - REACH) % (2 * REACH)];
        let gap = if middle.advance > 1 {
            Gap::known(middle.advance)
        } else if self.regular & MIDDLE != 0 && (self.regular & OTHERS).count_ones() >= REACH as u32 {
            // Both the median and this gap are usual distances; the score is at most three times their
            // difference.
            Gap::CLOSED
        } else {
            self.score(least)
        };
        Some((gap, middle))
    }

    fn score(&mut self, least: i64) -> Gap {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above checked that the processor has AVX2.
            return unsafe { self.score_with_avx2(least) };
        }
        self.score_gap(least)
    }

    /// The same for processors with AVX2, which compare four distances at a time.
    ///
    /// # Safety
    ///
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn score_with_avx2(&mut self, least: i64) -> Gap {
        self.score_gap(least)
    }

    #[inline(always)]
    fn score_gap(&mut self, least: i64) -> Gap {
        self.sort();
        let middle = self.distances[(self.count - REACH) % REMEMBERED];
        // The median of all but the one in the middle.
        let median = self.sorted[if middle <= self.sorted[REACH - 1] { REACH } else { REACH - 1 }];
        if (self.usual.0 > median || self.usual.1 < median) && self.count >= self.looked_at + PATIENCE {
            self.look(median);
        }
        let bound = middle.abs_diff(median).saturating_mul(3);
        if bound.saturating_mul(10) < median.unsigned_abs().saturating_mul(3) && median > 0 {
            return Gap::CLOSED;
        }
        if bound <= least.unsigned_abs() && median > 0 && !self.may_agree(median) {
            return Gap::CLOSED;
        }
        let mut steps: [Step; 2 * REACH] = Default::default();
        for (index, step) in steps.iter_mut().enumerate() {
            let entry = &self.ring[(self.count + index) % (2 * REACH)];
            *step = (entry.evidence, entry.advance);
        }
        score::with_median(&steps, REACH, median)
    }

    /// Whether the neighbours may agree on a shift: all but five distances lie close to the median. Those are
    /// the one in the middle, and two on either side, around one late release.
    #[inline(always)]
    fn may_agree(&self, median: i64) -> bool {
        let (from, until) = (median - median / 4 - 1, median + median / 4 + 1);
        let are_close = |at: usize| self.sorted[at] >= from && self.sorted[at + AROUND - 1 - FAR] <= until;
        self.sorted[FAR] >= from && self.sorted[AROUND - 1 - FAR] <= until && (0..=FAR).any(are_close)
    }

    /// Updates the sorted distances.
    #[inline(always)]
    fn sort(&mut self) {
        if self.sorted_at + (REMEMBERED - AROUND) / 2 < self.count {
            let newest = self.count - AROUND..self.count;
            self.sorted
                .iter_mut()
                .zip(newest)
                .for_each(|(sorted, at)| *sorted = self.distances[at % REMEMBERED]);
            self.sorted.sort_unstable();
        } else {
            for at in self.sorted_at..self.count {
                let (old, new) =
                    (self.distances[(at - AROUND) % REMEMBERED], self.distances[at % REMEMBERED]);
                replace(&mut self.sorted, old, new);
            }
        }
        self.sorted_at = self.count;
    }

    #[cold]
    fn look(&mut self, median: i64) {
        self.looked_at = self.count;
        let from = median.saturating_sub(median / 24);
        self.usual = (from, from.saturating_add(from / 11));
        self.regular = (self.count - AROUND..self.count).fold(0, |regular, at| {
            let distance = self.distances[at % REMEMBERED];
            regular << 1 | u32::from(self.usual.0 <= distance && distance <= self.usual.1)
        });
    }

    /// The last `AROUND` releases, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let len = self.count.min(AROUND);
        (self.count - len..self.count).map(|at| &self.ring[at % (2 * REACH)])
    }

    /// Moves all times up, relative to another first release.
    pub fn lift(&mut self, y: i64) {
        self.ring.iter_mut().for_each(|entry| *entry = entry.lifted(y));
    }
}

/// Replaces a value and keeps the order. Without branches, since places are hard to predict.
#[inline(always)]
fn replace(sorted: &mut [i64; AROUND], old: i64, new: i64) {
    // Without the old value; and the same one place further on.
    let mut right = [i64::MAX; AROUND];
    let mut left = [i64::MIN; AROUND];
    for at in 0..AROUND - 1 {
        let kept = if sorted[at] < old { sorted[at] } else { sorted[at + 1] };
        (right[at], left[at + 1]) = (kept, kept);
    }
    for at in 0..AROUND {
        sorted[at] = new.min(right[at]).max(left[at]);
    }
}
