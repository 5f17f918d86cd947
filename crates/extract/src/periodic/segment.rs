//! What is kept of the consecutive releases between two open gaps.

use crate::hull::Point;
use crate::periodic::block::{BLOCK, Block, Entry, Places};
use crate::periodic::late::{self, LATE, Late};
use crate::periodic::layers::Layers;
use crate::periodic::score::Gap;

/// Most releases left out because they are early.
pub(crate) const EARLY: usize = punctual_model::MAX_EARLY;

/// Lowest releases kept for every period: those that may be left out, one that turns out to be no release,
/// and the next one.
pub(crate) const LOWEST: usize = EARLY + 2;

/// Room for the late releases of a stream, before some are given up.
const ROOM_LATE: usize = late::MOST + 64;

/// Releases in a row.
struct Row<'a> {
    latest: &'a [i64],
    evidence: &'a [i64],
    /// The same as the evidence if `None`.
    floor: Option<&'a [i64]>,
}

/// Sums of products of indices and times, modulo 2^128: results are far smaller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Squares {
    pub xx: i128,
    pub xy: i128,
    pub yy: i128,
}

impl Squares {
    #[inline]
    pub fn of_point(x: i64, y: i64) -> Squares {
        let (x, y) = (i128::from(x), i128::from(y));
        Squares { xx: x * x, xy: x * y, yy: y * y }
    }

    #[inline]
    pub fn append(&mut self, other: Squares) {
        self.xx = self.xx.wrapping_add(other.xx);
        self.xy = self.xy.wrapping_add(other.xy);
        self.yy = self.yy.wrapping_add(other.yy);
    }
}

/// Times this close to a line have squares whose sum over a block fits an `i64`.
const MOST_ABOVE: i64 = 1 << 27;
const _: () = assert!((BLOCK as i128) << 54 < 1 << 63);

/// Sums over the releases of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// Number of releases.
    pub count: i64,
    pub x: i128,
    pub y: i128,
    pub squares: Squares,
}

impl Sums {
    /// Of times in a row, from index 0 on.
    #[inline(always)]
    fn of_row(ys: &[i64]) -> Sums {
        let (first, last) = (ys.first().copied().unwrap_or(0), ys.last().copied().unwrap_or(0));
        let slope = (last - first) / (ys.len() as i64 - 1).max(1);
        let (mut least, mut greatest) = (0, 0);
        let (mut sum, mut product, mut square) = (0_i64, 0_i64, 0_i64);
        let mut line = first;
        for (x, y) in (0_i64..).zip(ys) {
            let above = y.wrapping_sub(line);
            (least, greatest) = (above.min(least), above.max(greatest));
            // Right if all are small; else not used.
            let above = i64::from(above as i32);
            sum = sum.wrapping_add(above);
            product = product.wrapping_add(above.wrapping_mul(x));
            square = square.wrapping_add(above.wrapping_mul(above));
            line = line.wrapping_add(slope);
        }
        if least < -MOST_ABOVE || greatest > MOST_ABOVE {
            return Sums::of_any(ys, first);
        }
        let mut sums = Sums::of_indices(ys.len());
        sums.y = sum.into();
        sums.squares.xy = product.into();
        sums.squares.yy = square.into();
        sums.sheared(slope).moved(0, first)
    }

    /// The same of any times.
    #[cold]
    fn of_any(ys: &[i64], first: i64) -> Sums {
        let mut sums = Sums::of_indices(ys.len());
        for (x, y) in (0..).zip(ys) {
            let y = i128::from(y - first);
            sums.y += y;
            sums.squares.xy += x * y;
            sums.squares.yy = sums.squares.yy.wrapping_add(y * y);
        }
        sums.moved(0, first)
    }

    /// All times are zero.
    fn of_indices(len: usize) -> Sums {
        let (count, len) = (len as i64, len as i128);
        let squares = Squares { xx: len * (len - 1) * (2 * len - 1) / 6, ..Squares::default() };
        Sums { count, x: len * (len - 1) / 2, y: 0, squares }
    }

    /// The sums of the same releases, each moved up by `slope` times its index.
    fn sheared(mut self, slope: i64) -> Sums {
        let slope = i128::from(slope);
        let Squares { xx, xy, yy } = self.squares;
        let product = |a: i128, b: i128| a.wrapping_mul(b);
        self.y += slope * self.x;
        self.squares = Squares {
            xx,
            xy: xy.wrapping_add(product(slope, xx)),
            yy: yy.wrapping_add(product(2 * slope, xy)).wrapping_add(product(product(slope, slope), xx)),
        };
        self
    }

    #[inline]
    pub fn append(&mut self, other: &Sums) {
        self.count += other.count;
        self.x += other.x;
        self.y += other.y;
        self.squares.append(other.squares);
    }

    /// The sums of the same releases moved by `(x, y)`.
    pub fn moved(&self, x: i64, y: i64) -> Sums {
        let (x, y, count) = (i128::from(x), i128::from(y), i128::from(self.count));
        let product = |a: i128, b: i128| a.wrapping_mul(b);
        let xy =
            product(x, self.y).wrapping_add(product(y, self.x)).wrapping_add(product(product(x, y), count));
        let xx = product(2 * x, self.x).wrapping_add(product(product(x, x), count));
        let yy = product(2 * y, self.y).wrapping_add(product(product(y, y), count));
        let mut squares = self.squares;
        squares.append(Squares { xx, xy, yy });
        Sums { count: self.count, x: self.x + x * count, y: self.y + y * count, squares }
    }
}

/// Releases as points (index, time); only those that can matter are kept.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The gap before it.
    pub gap: Gap,
    pub sums: Sums,
    /// Indices taken: more than releases, if activations were skipped.
    pub span: i64,
    /// Activations skipped inside.
    pub skipped: i64,
    /// Places inside where that is only inferred.
    pub inferred: i64,
    /// The evidence, lowest first.
    pub low: Layers,
    /// The floors, if they differ from the evidence.
    pub floor: Option<Layers>,
    /// The latest bounds, mirrored, but for those in `late`.
    pub high: Layers,
    /// Releases that are kept one by one, in order.
    pub late: Vec<Late>,
    /// The latest bound of its first release.
    pub from: i64,
}

impl Segment {
    /// The segment of one release.
    pub fn new(gap: Gap, entry: Entry) -> Segment {
        let mut segment = Segment::empty(gap, entry.latest);
        let (latest, evidence, floor) = ([entry.latest], [entry.evidence], [entry.floor]);
        let row = Row { latest: &latest, evidence: &evidence, floor: Some(&floor) };
        segment.take(&row, &Places::default());
        segment
    }

    /// The segment of a block; those later than `least` are kept one by one.
    pub fn of_block(gap: Gap, block: &Block, least: i64) -> Segment {
        let mut segment = Segment::empty(gap, block.latest().first().copied().unwrap_or(0));
        segment.extend(block, least);
        segment
    }

    fn empty(gap: Gap, from: i64) -> Segment {
        Segment {
            gap,
            sums: Sums::default(),
            span: 0,
            skipped: 0,
            inferred: 0,
            low: Layers::new(LOWEST),
            floor: None,
            high: Layers::new(LATE + 1),
            late: Vec::new(),
            from,
        }
    }

    /// Adds the releases of a block. Those later than `least` are kept one by one.
    pub fn extend(&mut self, block: &Block, least: i64) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above checked that the processor has AVX2.
            return unsafe { self.extend_with_avx2(block, least) };
        }
        self.extend_by(block, least);
    }

    /// The same for processors with AVX2, which compare four times at a time.
    ///
    /// # Safety
    ///
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn extend_with_avx2(&mut self, block: &Block, least: i64) {
        self.extend_by(block, least);
    }

    #[inline(always)]
    fn extend_by(&mut self, block: &Block, least: i64) {
        if block.len() == 0 {
            return;
        }
        let (mut by, mut late) = ([0; BLOCK], Places::default());
        late::lateness(block, least, &mut by);
        for (at, by) in by[..block.len()].iter().enumerate().filter(|(_, by)| **by > least) {
            late.set(at);
            self.keep_late(Late::new(*by, self.span + at as i64, block.latest()[at]));
        }
        self.take(&Row { latest: block.latest(), evidence: block.evidence(), floor: block.floor() }, &late);
    }

    #[inline(never)]
    fn keep_late(&mut self, late: Late) {
        let kept = self.late.len();
        if kept == self.late.capacity() {
            // Few streams ever keep many.
            self.late.reserve_exact(if kept < 64 {
                kept.max(4)
            } else {
                ROOM_LATE.saturating_sub(kept).max(64)
            });
        }
        self.late.push(late);
    }

    /// Adds releases in a row; those in `late` are kept one by one.
    #[inline(always)]
    fn take(&mut self, row: &Row, late: &Places) {
        let x = self.span;
        self.sums.append(&Sums::of_row(row.evidence).moved(x, 0));
        self.span = x + row.latest.len() as i64;
        if self.floor.is_none() && row.floor.is_some_and(|floor| floor != row.evidence) {
            self.floor = Some(self.low.clone());
        }
        let none = Places::default();
        if let Some(floor) = &mut self.floor {
            floor.extend(x, row.floor.unwrap_or(row.evidence), false, &none);
        }
        self.low.extend(x, row.evidence, false, &none);
        self.high.extend(x, row.latest, true, late);
    }

    /// Keeps a late release like all others.
    pub fn give_up(&mut self, is_given_up: impl Fn(&Late) -> bool) {
        let gone = self.late.iter().filter(|late| is_given_up(late));
        self.high.insert(gone.map(|late| Point { x: late.x(), y: -late.latest }));
        self.late.retain(|late| !is_given_up(late));
        if self.late.capacity() > ROOM_LATE {
            self.late.shrink_to(ROOM_LATE);
        }
    }

    /// Appends a segment, after `shift` skipped activations.
    pub fn append(&mut self, later: &Segment, shift: i64) {
        let x = self.span + shift;
        self.sums.append(&later.sums.moved(x, 0));
        self.span = x + later.span;
        self.skipped += later.skipped + shift;
        self.inferred += later.inferred + i64::from(later.gap.infers_shift() && shift > 0);
        if self.floor.is_some() || later.floor.is_some() {
            let floor = self.floor.get_or_insert_with(|| self.low.clone());
            floor.append(later.floor.as_ref().unwrap_or(&later.low), x, 0);
        }
        self.low.append(&later.low, x, 0);
        self.high.append(&later.high, x, 0);
        self.late.reserve_exact(later.late.len());
        self.late.extend(later.late.iter().map(|late| late.moved(x)));
    }

    /// Appends a segment without the shift before it unless that is known, and without its late releases kept
    /// one by one.
    pub fn append_unshifted(&mut self, mut later: Segment) {
        later.give_up(|_| true);
        self.append(&later, later.gap.known_shift());
    }

    /// Moves all times up, relative to another first release.
    pub fn lift(&mut self, y: i64) {
        self.sums = self.sums.moved(0, y);
        self.from += y;
        self.low.lift(y);
        self.high.lift(-y);
        self.floor.iter_mut().for_each(|floor| floor.lift(y));
        self.late.iter_mut().for_each(|late| late.latest += y);
    }

    /// Drops what does not matter.
    pub fn settle(&mut self) {
        self.low.settle();
        self.high.settle();
        self.floor.iter_mut().for_each(Layers::settle);
    }

    /// Keeps plain hulls of at most `most` points; returns whether corners had to be cut.
    pub fn flatten(&mut self, most: usize) -> bool {
        let floor = self.floor.as_mut().is_some_and(|floor| floor.flatten(most));
        self.low.flatten(most) | self.high.flatten(most) | floor
    }

    /// Corners of the hulls: the same whatever other points are kept.
    pub fn corners(&self) -> usize {
        self.low.corners() + self.high.corners() + self.floor.as_ref().map_or(0, Layers::corners)
    }

    /// Points kept.
    pub fn size(&self) -> usize {
        self.low.points().len()
            + self.high.points().len()
            + self.floor.as_ref().map_or(0, |floor| floor.points().len())
    }
}
