//! What is kept of the consecutive releases between two open gaps.

use crate::hull::Point;
use crate::periodic::layers::Layers;
use crate::periodic::score::Gap;

/// Most releases left out because they are early, and because they are late.
pub(crate) const EARLY: usize = 4;
pub(crate) const LATE: usize = punctual_model::MAX_LEFT_OUT;

/// Lowest releases kept for every period: those that may be left out, one that turns out to be no release,
/// and the next one.
pub(crate) const LOWEST: usize = EARLY + 2;

/// A release, relative to the first one of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The lesser of known arrival and earliest bound: the offset must not lie above it.
    pub floor: i64,
    /// The known arrival, or else the latest bound: what the period is estimated from.
    pub evidence: i64,
    /// The latest bound.
    pub latest: i64,
    /// Activations since the release before.
    pub advance: i64,
}

impl Entry {
    pub fn lifted(self, y: i64) -> Entry {
        let add = |at: i64| at.wrapping_add(y);
        Entry { floor: add(self.floor), evidence: add(self.evidence), latest: add(self.latest), ..self }
    }
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
    pub fn push(&mut self, x: i64, y: i64) {
        let (x, y) = (i128::from(x), i128::from(y));
        self.append(Squares { xx: x * x, xy: x * y, yy: y * y });
    }

    #[inline]
    pub fn append(&mut self, other: Squares) {
        self.xx = self.xx.wrapping_add(other.xx);
        self.xy = self.xy.wrapping_add(other.xy);
        self.yy = self.yy.wrapping_add(other.yy);
    }

    /// The sums of `segment` with its releases moved by `(x, y)`.
    pub fn moved(mut self, segment: &Segment, x: i64, y: i64) -> Squares {
        let (x, y, count) = (i128::from(x), i128::from(y), i128::from(segment.count));
        let product = |a: i128, b: i128| a.wrapping_mul(b);
        let (sum_x, sum_y) = (segment.sum_x, segment.sum_y);
        let xy =
            product(x, sum_y).wrapping_add(product(y, sum_x)).wrapping_add(product(product(x, y), count));
        let xx = product(2 * x, sum_x).wrapping_add(product(product(x, x), count));
        let yy = product(2 * y, sum_y).wrapping_add(product(product(y, y), count));
        self.append(Squares { xx, xy, yy });
        self
    }
}

/// Releases as points (index, time); only those that can matter are kept.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The gap before it.
    pub gap: Gap,
    /// Number of releases.
    pub count: i64,
    /// Indices taken: more than releases, if activations were skipped.
    pub span: i64,
    pub sum_x: i128,
    pub sum_y: i128,
    pub squares: Squares,
    /// Activations skipped inside.
    pub skipped: i64,
    /// The evidence, lowest first.
    pub low: Layers,
    /// The floors, if they differ from the evidence.
    pub floor: Option<Layers>,
    /// The latest bounds, mirrored.
    pub high: Layers,
    /// The latest bound of its first release.
    pub from: i64,
}

impl Segment {
    pub fn new(gap: Gap, entry: Entry) -> Segment {
        let mut segment = Segment {
            gap,
            count: 0,
            span: 0,
            sum_x: 0,
            sum_y: 0,
            squares: Squares::default(),
            skipped: 0,
            low: Layers::new(LOWEST),
            floor: None,
            high: Layers::new(LATE + 1),
            from: entry.latest,
        };
        segment.push(0, entry);
        segment
    }

    /// Adds a release, after `shift` skipped activations.
    #[inline]
    pub fn push(&mut self, shift: i64, entry: Entry) {
        let x = self.span + shift;
        self.count += 1;
        self.span = x + 1;
        self.sum_x += i128::from(x);
        self.sum_y += i128::from(entry.evidence);
        self.squares.push(x, entry.evidence);
        self.skipped += shift;
        if entry.floor != entry.evidence && self.floor.is_none() {
            self.floor = Some(self.low.clone());
        }
        if let Some(floor) = &mut self.floor {
            floor.push(Point { x, y: entry.floor });
        }
        self.low.push(Point { x, y: entry.evidence });
        self.high.push(Point { x, y: -entry.latest });
    }

    /// Appends a segment, after `shift` skipped activations.
    pub fn append(&mut self, later: &Segment, shift: i64) {
        let x = self.span + shift;
        self.squares.append(later.squares.moved(later, x, 0));
        self.sum_x += later.sum_x + i128::from(later.count) * i128::from(x);
        self.sum_y += later.sum_y;
        self.count += later.count;
        self.span = x + later.span;
        self.skipped += later.skipped + shift;
        if self.floor.is_some() || later.floor.is_some() {
            let floor = self.floor.get_or_insert_with(|| self.low.clone());
            floor.append(later.floor.as_ref().unwrap_or(&later.low), x, 0);
        }
        self.low.append(&later.low, x, 0);
        self.high.append(&later.high, x, 0);
    }

    /// Moves all times up, relative to another first release.
    pub fn lift(&mut self, y: i64) {
        self.squares = self.squares.moved(self, 0, y);
        self.sum_y += i128::from(self.count) * i128::from(y);
        self.from += y;
        self.low.lift(y);
        self.high.lift(-y);
        self.floor.iter_mut().for_each(|floor| floor.lift(y));
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

    /// Points kept.
    pub fn size(&self) -> usize {
        self.low.points().len()
            + self.high.points().len()
            + self.floor.as_ref().map_or(0, |floor| floor.points().len())
    }
}
