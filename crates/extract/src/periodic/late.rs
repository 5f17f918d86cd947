//! Which releases are later than their neighbours: those that a typical model may leave out.
//!
//! How late a release is depends on the period, which is known only at the end. But a release that is later
//! than its neighbours on both sides is late whatever the period; and that is a function of the neighbours,
//! whatever pieces the releases come in. So the [`MOST`] that are later than their neighbours by most are
//! kept one by one.

use crate::periodic::block::{BLOCK, Block};
use crate::periodic::score::REACH;

/// Most releases left out because they are late that are not kept one by one.
pub(crate) const LATE: usize = 4;

/// Most late releases kept.
pub(crate) const MOST: usize = punctual_model::MAX_LATE - LATE;

/// A release is compared with its neighbours in multiples of a nanosecond over this.
const PARTS: i64 = 5;

/// Releases compared at a time.
const LANES: usize = 8;

/// Binary digits of an index, and of how late a release is.
const INDEX: u32 = 40;
const DIGITS: u32 = 18;

/// A late release, in few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// How late it is, to [`DIGITS`] digits, and its index in the segment.
    packed: u64,
    /// Its latest bound.
    pub latest: i64,
}

impl Late {
    pub fn new(by: i64, x: i64, latest: i64) -> Late {
        Late { packed: rank(by) << INDEX | x.unsigned_abs(), latest }
    }

    /// How much later than its neighbours, or after its known arrival, it is, rounded down.
    pub fn by(&self) -> u64 {
        self.packed >> INDEX
    }

    /// Its index in the segment.
    pub fn x(&self) -> i64 {
        (self.packed & ((1 << INDEX) - 1)) as i64
    }

    /// The same at an index so much greater.
    pub fn moved(self, x: i64) -> Late {
        Late { packed: self.packed + x.unsigned_abs(), ..self }
    }
}

/// The first [`DIGITS`] digits and how many there are, in order of value.
fn rank(by: i64) -> u64 {
    let by = by.max(0).unsigned_abs();
    let shift = (u64::BITS - by.leading_zeros()).saturating_sub(DIGITS);
    (u64::from(shift) << DIGITS) + (by >> shift)
}

/// The greatest lateness of a rank.
pub(crate) fn end(rank: u64) -> i64 {
    let (mut low, mut high) = (0, i64::MAX);
    while low < high {
        let middle = high - (high - low) / 2;
        if self::rank(middle) <= rank { low = middle } else { high = middle - 1 }
    }
    low
}

/// How late each release of a block is, if by more than `least`; else any number up to that.
#[inline(always)]
pub(crate) fn lateness(block: &Block, least: i64, by: &mut [i64; BLOCK]) {
    let mut around = block.around();
    let mut rows = by[..block.len()].chunks_exact_mut(LANES);
    for by in &mut rows {
        by.copy_from_slice(&among_neighbours::<LANES>(around, least));
        around = &around[LANES..];
    }
    for by in rows.into_remainder() {
        [*by] = among_neighbours::<1>(around, least);
        around = &around[1..];
    }
    if !block.has_latest_alone() {
        for ((by, latest), evidence) in by.iter_mut().zip(block.latest()).zip(block.evidence()) {
            let known = latest.wrapping_sub(*evidence).wrapping_mul(PARTS);
            *by = if latest == evidence { *by } else { known };
        }
    }
}

/// By how much releases, from the one at [`REACH`] on, are above all lines from the neighbours on either
/// side. The slope is the median of three spans of [`PARTS`] distances, so that one late release does not
/// tilt it. A late release and those held up behind it are late together, so some neighbours are further
/// away.
#[inline(always)]
fn among_neighbours<const N: usize>(around: &[i64], least: i64) -> [i64; N] {
    let around = &around[..2 * REACH - 1 + N];
    let row = |from: usize| -> [i64; N] { std::array::from_fn(|lane| around[from + lane]) };
    let [first, second, third, fourth] = [row(0), row(5), row(10), row(15)];
    let mut slope = [0; N];
    for lane in 0..N {
        let (a, b, c) = (
            second[lane].wrapping_sub(first[lane]),
            third[lane].wrapping_sub(second[lane]),
            fourth[lane].wrapping_sub(third[lane]),
        );
        slope[lane] = a.min(b).max(a.max(b).min(c));
    }
    let (middle, mut lowest) = (row(REACH), [i64::MAX; N]);
    lower(&mut lowest, row(REACH - 1), middle, slope, -1);
    lower(&mut lowest, row(REACH - 3), middle, slope, -3);
    lower(&mut lowest, row(REACH - 5), middle, slope, -5);
    lower(&mut lowest, row(REACH - 8), middle, slope, -8);
    let highest = lowest.iter().fold(i64::MAX, |highest, above| highest.min(*above));
    if highest < least.wrapping_neg() {
        let mut after = [i64::MAX; N];
        lower(&mut after, row(REACH + 1), middle, slope, 1);
        lower(&mut after, row(REACH + 3), middle, slope, 3);
        lower(&mut after, row(REACH + 5), middle, slope, 5);
        lower(&mut after, row(REACH + 7), middle, slope, 7);
        for lane in 0..N {
            lowest[lane] = lowest[lane].max(after[lane]);
        }
    }
    lowest.map(i64::wrapping_neg)
}

/// Lowers to how far the releases so many steps away are above lines through those in the middle.
#[inline(always)]
fn lower<const N: usize>(
    lowest: &mut [i64; N],
    row: [i64; N],
    middle: [i64; N],
    slope: [i64; N],
    steps: i64,
) {
    for lane in 0..N {
        let apart = row[lane].wrapping_sub(middle[lane]).wrapping_mul(PARTS);
        lowest[lane] = lowest[lane].min(apart.wrapping_sub(slope[lane].wrapping_mul(steps)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_order_and_fit() {
        let ends = [0, 1, 5, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1 << 40, i64::MAX];
        assert!(ends.is_sorted_by_key(|by| rank(*by)));
        assert!(rank(i64::MAX) < 1 << (u64::BITS - INDEX));
        for by in ends {
            assert_eq!((rank(end(rank(by))), end(rank(by)) >= by), (rank(by), true));
            assert!(by == i64::MAX || rank(end(rank(by)) + 1) > rank(by));
        }
        let late = Late::new(1 << 30, (1 << 39) + 5, -7).moved(1);
        assert_eq!((late.by(), late.x(), late.latest), (rank(1 << 30), (1 << 39) + 6, -7));
    }
}
