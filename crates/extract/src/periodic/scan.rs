//! Finds the gaps of a block that need a score: few, since most are about as long as their neighbours, or
//! score no more than those that are open already.
//!
//! Distances are compared as short numbers, several gaps at a time, in units small enough that hardly any gap
//! is scored in vain. What is said of a gap holds for exact numbers too.

use crate::periodic::block::{BLOCK, Places};
use crate::periodic::score::{self, AROUND, REACH};

/// Gaps looked at together.
const LANES: usize = 8;

/// Typical distances have so many binary digits, at most; and all are cut to so many.
const TYPICAL: u32 = 22;
const MOST: i64 = 1 << 26;

/// So many of the other distances are close to the median where neighbours agree on a shift: all but two on
/// either side, around one late release.
const CLOSE: i32 = AROUND as i32 - 5;

/// Distances around the gaps of a block.
const DISTANCES: usize = BLOCK + AROUND - 1;

/// The gaps that need a score.
#[derive(Debug)]
pub(crate) struct Scan {
    needed: Places,
    /// Of the distances around each gap, in units.
    medians: [i32; BLOCK + LANES],
    /// Binary digits of a unit.
    unit: u32,
    /// The gap that is counted as the first.
    first: usize,
}

/// Gaps of consecutive releases, with [`REACH`] releases before the first gap and as many after the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps<'a> {
    pub releases: &'a [i64],
    /// Activations since the release before; all one if empty.
    pub advance: &'a [i64],
}

impl Gaps<'_> {
    fn len(&self) -> usize {
        (self.releases.len() + 1).saturating_sub(2 * REACH)
    }

    fn advance(&self, at: usize) -> i64 {
        self.advance.get(at).copied().unwrap_or(1)
    }

    /// Activations of a gap.
    pub fn advance_of(&self, gap: usize) -> i64 {
        self.advance(gap + REACH)
    }

    fn distance(&self, at: usize) -> i64 {
        score::distance(self.releases[at], (self.releases[at + 1], self.advance(at + 1)))
    }

    /// The score of a gap.
    pub fn score(&self, gap: usize, median: Option<i64>) -> score::Gap {
        let around = gap..gap + 2 * REACH;
        let median = median.unwrap_or_else(|| {
            let others = (gap..gap + AROUND).filter(|at| *at != gap + REACH - 1);
            let mut distances: Vec<i64> = others.map(|at| self.distance(at)).collect();
            *distances.select_nth_unstable(AROUND / 2).1
        });
        match self.advance.get(around.clone()) {
            Some(advance) => score::of_whole(&self.releases[around], advance, median),
            None => score::of_whole(&self.releases[around], &[1; 2 * REACH], median),
        }
    }
}

impl Scan {
    /// The gaps that need a score, if those that score up to `least` do not.
    pub fn new(gaps: Gaps, least: i64) -> Scan {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above checked that the processor has AVX2.
            return unsafe { Scan::with_avx2(gaps, least) };
        }
        Scan::look(gaps, least)
    }

    /// The same for processors with AVX2, which look at eight gaps at a time.
    ///
    /// # Safety
    ///
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2(gaps: Gaps, least: i64) -> Scan {
        Scan::look(gaps, least)
    }

    #[inline(always)]
    fn look(gaps: Gaps, least: i64) -> Scan {
        let (len, unit) = (gaps.len(), unit(gaps.releases));
        let mut scan = Scan { needed: Places::default(), medians: [0; BLOCK + LANES], unit, first: 0 };
        let mut distances = [0; DISTANCES + LANES];
        if gaps.releases.is_empty() {
            return scan;
        }
        if gaps.advance.is_empty() {
            let before = gaps.releases.iter();
            for ((short, at), before) in distances.iter_mut().zip(&gaps.releases[1..]).zip(before) {
                *short = cut(at.wrapping_sub(*before), unit);
            }
        } else {
            (0..gaps.releases.len() - 1).for_each(|at| distances[at] = cut(gaps.distance(at), unit));
        }
        let least = (least >> unit).min(4 * MOST) as i32;
        for from in (0..len).step_by(LANES) {
            let (medians, is_needed) = look_at(&distances[from..from + AROUND - 1 + LANES], least);
            scan.medians[from..from + LANES].copy_from_slice(&medians);
            if is_needed.contains(&true) {
                let lanes = 0..LANES.min(len - from);
                lanes.filter(|lane| is_needed[*lane]).for_each(|lane| scan.needed.set(from + lane));
            }
        }
        (0..len)
            .filter(|gap| gaps.advance.get(gap + REACH).is_some_and(|advance| *advance > 1))
            .for_each(|gap| scan.needed.set(gap));
        scan
    }

    /// Counts gaps from this one on.
    pub fn forget(&mut self, gaps: usize) {
        self.first += gaps;
    }

    /// The next gap that needs a score, from this one on, and the median of the other distances around it
    /// where that is known exactly.
    pub fn next(&self, from: usize) -> Option<(usize, Option<i64>)> {
        let gap = self.needed.next(self.first + from)?;
        let median = i64::from(self.medians[gap]);
        Some((gap - self.first, Some(median).filter(|median| self.unit == 0 && median.abs() < MOST)))
    }
}

/// Binary digits of a unit of which distances are not too many: by the least mean of a few stretches, as
/// there may be long gaps.
fn unit(releases: &[i64]) -> u32 {
    let stretch = (releases.len() / 4).max(1);
    let means = releases
        .windows(stretch + 1)
        .step_by(stretch)
        .map(|some| some[stretch].abs_diff(some[0]) / stretch as u64);
    let typical = means.min().unwrap_or(0);
    (u64::BITS - typical.leading_zeros()).saturating_sub(TYPICAL)
}

#[inline(always)]
fn cut(distance: i64, unit: u32) -> i32 {
    (distance >> unit).clamp(-MOST, MOST) as i32
}

/// Compares and swaps pairs of rows.
macro_rules! sort {
    ($rows:ident: $($a:literal $b:literal),*) => {
        $(for lane in 0..LANES {
            let (a, b) = ($rows[$a][lane], $rows[$b][lane]);
            ($rows[$a][lane], $rows[$b][lane]) = (a.min(b), a.max(b));
        })*
    };
}

/// The medians of the other distances around gaps, and which gaps need a score.
#[inline(always)]
fn look_at(distances: &[i32], least: i32) -> ([i32; LANES], [bool; LANES]) {
    let row = |from: usize| -> [i32; LANES] { std::array::from_fn(|lane| distances[from + lane]) };
    let others: [[i32; LANES]; AROUND - 1] = [
        row(0),
        row(1),
        row(2),
        row(3),
        row(4),
        row(5),
        row(6),
        row(8),
        row(9),
        row(10),
        row(11),
        row(12),
        row(13),
        row(14),
    ];
    let mut rows = others;
    // What of a sorting network leads to the eighth of fourteen.
    sort!(rows: 0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 1 2, 5 6, 9 10, 0 4,
        1 5, 2 6, 3 7, 8 12, 9 13, 2 4, 3 5, 10 12, 11 13, 1 2, 3 4, 5 6, 9 10, 11 12, 1 9, 2 10, 3 11, 4 12,
        5 13, 4 8, 5 9, 6 10, 7 11, 6 8, 7 9, 7 8);
    let (medians, middle) = (rows[7], row(REACH - 1));
    let mut close = [0_i32; LANES];
    for row in others {
        for lane in 0..LANES {
            // Their phases spread less than an eighth of the median. Both are rounded.
            let apart = (row[lane] - medians[lane]).abs();
            close[lane] += i32::from(apart <= (medians[lane] >> 3) + 3);
        }
    }
    let mut is_needed = [false; LANES];
    for lane in 0..LANES {
        // The score is at most three times this.
        let (median, apart) = (medians[lane], (middle[lane] - medians[lane]).abs() + 1);
        let is_usual = 10 * apart <= median;
        let is_low = 3 * apart <= least && close[lane] < CLOSE;
        let is_known = median > 0 && median < MOST as i32 && middle[lane].abs() < MOST as i32;
        is_needed[lane] = !(is_known && (is_usual || is_low));
    }
    (medians, is_needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::score::Gap;
    use proptest::prelude::*;

    fn streams() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        let late = prop_oneof![8 => 0_i64..100, 3 => 0_i64..900, 1 => -5_000_i64..50_000, 1 => Just(1 << 30)];
        let advance = prop_oneof![30 => Just(1_i64), 1 => 2_i64..4];
        let release = (late, advance);
        (prop::collection::vec(release, 0..BLOCK + AROUND), 1_i64..1 << 30, any::<bool>()).prop_map(
            |(releases, scale, advances)| {
                let mut k = 0;
                releases
                    .into_iter()
                    .map(|(late, advance)| {
                        k += advance;
                        (k * 1_000 * scale + late * scale, if advances { advance } else { 1 })
                    })
                    .unzip()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// What is passed over has no shift, and scores too little.
        #[test]
        fn no_gap_is_missed(
            (releases, advance) in streams(),
            least in prop_oneof![Just(0_i64), any::<i64>().prop_map(|least| (least >> 1).abs())],
        ) {
            let any_skipped = advance.iter().any(|activations| *activations > 1);
            let advance = if any_skipped { advance } else { Vec::new() };
            let gaps = Gaps { releases: &releases, advance: &advance };
            let scan = Scan::new(gaps, least);
            let plain = Scan::look(gaps, least);
            let mut from = 0;
            for gap in 0..gaps.len() {
                let next = scan.next(from);
                prop_assert_eq!(next, plain.next(from));
                if next.is_some_and(|(next, _)| next == gap) {
                    if let Some((_, Some(median))) = next {
                        prop_assert_eq!(gaps.score(gap, Some(median)), gaps.score(gap, None));
                    }
                    from = gap + 1;
                    continue;
                }
                prop_assert_eq!(gaps.advance_of(gap), 1);
                let Gap { score, shift, is_closed } = gaps.score(gap, None);
                let is_nothing = shift == 0 && (is_closed || score <= least);
                prop_assert!(is_nothing, "gap {}: {}, {}", gap, score, shift);
            }
        }
    }
}
