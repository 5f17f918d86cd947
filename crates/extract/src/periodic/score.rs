//! Scores a gap between two releases by its neighbours alone: by how much do the lowest phases rise there for
//! good? No estimate of the period is needed.
//!
//! All arithmetic wraps: scores affect how tight a model is, never whether it is sound.

/// Releases on either side that score a gap.
pub(crate) const REACH: usize = 8;

/// Other releases that score a gap: the last ones of a stream are kept for the next gap, the first ones for
/// merging with the piece before.
pub(crate) const AROUND: usize = 2 * REACH - 1;

/// Neighbours agree on a shift if their phases spread less than the period divided by this, and the rise is
/// closer than that to whole periods.
const CERTAIN: i128 = 8;

/// A release for the score: its evidence, and how many activations it is after the one before.
pub(crate) type Step = (i64, i64);

/// A gap between two releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    /// By how much the lowest phases rise or fall there.
    pub score: i64,
    /// Activations skipped in it, if its neighbours agree on a number.
    pub shift: i64,
    /// The score is too low for a slip, or the shift is known.
    pub is_closed: bool,
}

impl Gap {
    /// A gap with a known number of activations.
    pub fn known(advance: i64) -> Gap {
        Gap { score: 0, shift: advance - 1, is_closed: true }
    }

    /// Whether its neighbours agree on a shift that is not known.
    pub fn infers_shift(&self) -> bool {
        !self.is_closed && self.shift > 0
    }

    /// The shift, as far as it is known.
    pub fn known_shift(&self) -> i64 {
        if self.is_closed { self.shift } else { 0 }
    }
}

/// The gap before `releases[middle]`. The second lowest phase of one side is compared with the lowest of the
/// other, so that one bad point makes neither a rise nor a fall. `None` with fewer than three releases on
/// either side.
pub(crate) fn gap(releases: &[i64], advance: &[i64], middle: usize) -> Option<Gap> {
    if middle < 3 || releases.len() < middle + 3 || releases.len() > 2 * REACH {
        return None;
    }
    let mut distances = [0; 2 * REACH];
    let mut count = 0;
    for (index, pair) in releases.windows(2).enumerate() {
        if index + 1 != middle {
            distances[count] = distance(pair[0], (pair[1], advance[index + 1]));
            count += 1;
        }
    }
    let place = releases.len() / 2 - 1;
    let median = *distances[..count].select_nth_unstable(place).1;
    Some(with_median(releases, advance, middle, median))
}

/// Distance of two releases, per activation.
#[inline]
pub(crate) fn distance(before: i64, (at, advance): Step) -> i64 {
    let difference = at.wrapping_sub(before);
    if advance == 1 { difference } else { difference.div_euclid(advance.max(1)) }
}

/// The same of the gap with as many releases on either side as can be, given the median distance of
/// neighbours.
#[inline(always)]
pub(crate) fn of_whole(releases: &[i64], advance: &[i64], median: i64) -> Gap {
    with_median(&releases[..2 * REACH], &advance[..2 * REACH], REACH, median)
}

/// The same, given the median distance of neighbours.
#[inline(always)]
fn with_median(releases: &[i64], advance: &[i64], middle: usize, median: i64) -> Gap {
    let mut phases = [0; 2 * REACH];
    let mut line = 0_i64;
    for (index, (at, advance)) in releases.iter().zip(advance).enumerate() {
        line = if index == 0 { 0 } else { line.wrapping_add(median.wrapping_mul(*advance)) };
        phases[index] = at.wrapping_sub(line);
    }
    let phases = &phases[..releases.len()];
    // Score and shift are differences of phases: it does not matter where the line passes.
    let excess = phases[middle].wrapping_sub(phases[middle - 1]);
    let (before, after) = phases.split_at(middle);
    let (low, high) = (two_lowest(before), two_lowest(after));
    let score = if excess > 0 {
        high.0.wrapping_sub(low.1).min(excess.wrapping_mul(3))
    } else if low.1.wrapping_sub(low.0).wrapping_mul(2) >= median {
        // A staircase down: the releases before were late, and none is extra.
        0
    } else {
        low.0.wrapping_sub(high.1).min(excess.wrapping_mul(-3))
    };
    let score = score.max(0);
    if score.wrapping_mul(10) < median.wrapping_mul(3) {
        return Gap { score, shift: 0, is_closed: true };
    }
    let rise = i128::from(high.0) - i128::from(low.0);
    if rise <= 0 || median <= 0 {
        return Gap { score, shift: 0, is_closed: false };
    }
    let spread = |lowest: i64, side: &[i64]| i128::from(second_highest(side)) - i128::from(lowest);
    let spread = spread(low.0, before).max(spread(high.0, after));
    Gap { score, shift: agreed_shift(rise, spread, median), is_closed: false }
}

/// The shift that both sides agree on, ignoring one late release on either; 0 if they spread too far.
fn agreed_shift(rise: i128, spread: i128, median: i64) -> i64 {
    let median = i128::from(median);
    if CERTAIN * spread >= median {
        return 0;
    }
    let shift = (2 * rise + median) / (2 * median);
    let is_whole = CERTAIN * (rise - shift * median).abs() < median;
    if is_whole && 4 * shift * spread < 7 * median { shift as i64 } else { 0 }
}

#[inline]
fn two_lowest(values: &[i64]) -> (i64, i64) {
    let (mut first, mut second) = (i64::MAX, i64::MAX);
    for &value in values {
        second = second.min(value.max(first));
        first = first.min(value);
    }
    (first, second)
}

#[inline]
fn second_highest(values: &[i64]) -> i64 {
    let (mut first, mut second) = (i64::MIN, i64::MIN);
    for &value in values {
        second = second.max(value.min(first));
        first = first.max(value);
    }
    second
}
