//! One source with a release for each activation: what most streams are. So this is fast, and keeps no more
//! than it needs of releases that are near their line: the strip of one slope that holds them all.

use crate::hull::{self, Point};
use crate::modes::fit::{FEWEST, REACH};
use crate::modes::line::Line;
use crate::modes::mode::{Anchor, Later, MOST_DIGITS, rounded};
use crate::modes::releases::{Entry, Row, heights};

pub(super) struct Plain {
    pub first: Entry,
    pub last: Entry,
    lower: Hull,
    upper: Hull,
    anchor: Anchor,
    off: i64,
}

/// A lower hull of bounds.
enum Hull {
    /// All are near their line: the ends of a strip that holds them.
    Ends([Point; 2]),
    Corners(Vec<Point>),
}

impl Plain {
    /// `None` if these releases are something else.
    pub fn new(row: Row<'_>) -> Option<Plain> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above checked that the processor has AVX2.
            return unsafe { Plain::with_avx2(row) };
        }
        Plain::look(row)
    }

    /// The same for processors with AVX2, which look at four releases at a time.
    ///
    /// # Safety
    ///
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2(row: Row<'_>) -> Option<Plain> {
        Plain::look(row)
    }

    #[inline(always)]
    fn look(row: Row<'_>) -> Option<Plain> {
        let count = row.len().checked_sub(1).filter(|count| *count >= FEWEST)? as i64;
        let (first, last) = (row.get(0), row.get(count as usize));
        let (shortest, longest) = row.gaps();
        if shortest <= 0 || longest / 3 >= shortest / 2 {
            return None;
        }
        let mean = (last.evidence - first.evidence) / count;
        let near = (2.0 * REACH * mean as f64) as i64;
        let (mut period, mut strip) = (mean, row.strip(mean));
        let width = strip.1 - strip.0;
        if width > near {
            return None;
        }
        // The strips of neighbours fit each other best if they have the same slope.
        let slack = width / count;
        let rounder =
            (1..=MOST_DIGITS).map(|digits| rounded(mean, digits)).find(|it| (it - mean).abs() <= slack);
        if let Some((rounder, wider)) = rounder.map(|period| (period, row.strip(period)))
            && wider.1 - wider.0 <= width + width / 4
        {
            (period, strip) = (rounder, wider);
        }
        let is_known = |entry: &Entry| entry.evidence < entry.latest;
        let arrivals = if is_known(&first) || is_known(&last) { row.strip_of_arrivals(period) } else { None };
        let (from, to) = arrivals.unwrap_or(strip);
        let line = Line { at: (from + to) as f64 / 2.0, period: period as f64 };
        let (lower, upper) = match row.sides() {
            Some(sides) => (
                Hull::of(sides.iter().map(|side| side.0), period, near),
                Hull::of(sides.iter().map(|side| -side.1), -period, near),
            ),
            None => {
                let ends = |height: i64| ends(first.evidence + height, period, count);
                (Hull::Ends(ends(strip.0)), Hull::Ends(ends(strip.1).map(|end| Point { y: -end.y, ..end })))
            }
        };
        let anchor = Anchor { origin: first.evidence, line, shift: 0, within: 0.0 };
        Some(Plain { first, last, lower, upper, anchor, off: to - from })
    }

    /// Releases: one for each activation.
    pub fn releases(&self) -> u64 {
        self.lower.corners().last().map_or(0, |last| last.x as u64 + 1)
    }

    pub fn later(&self) -> Later<'_> {
        Later {
            lower: self.lower.corners(),
            upper: self.upper.corners(),
            others: &[],
            extra: 0,
            first: 0,
            last: self.releases() as i64 - 1,
            hits: self.releases(),
            jobs: 1,
            within: 0,
            at_last: 1,
            off: self.off,
            begin: self.anchor,
            end: self.anchor,
        }
    }
}

/// The first and the last of some points on a line.
fn ends(at: i64, period: i64, last: i64) -> [Point; 2] {
    [0, last].map(|x| Point { x, y: at + x * period })
}

impl Hull {
    /// Of a bound for each activation.
    #[inline(always)]
    fn of(bounds: impl ExactSizeIterator<Item = i64> + Clone, period: i64, near: i64) -> Hull {
        let last = bounds.len() as i64 - 1;
        let first = bounds.clone().next().unwrap_or_default();
        let (low, high) = heights(first, period, bounds.clone());
        if high - low <= near {
            return Hull::Ends(ends(first + low, period, last));
        }
        // Those that are far are corners; the others are above a strip.
        let (mut low, mut due, mut far) = (high, first, Vec::new());
        for (x, y) in (0..).zip(bounds) {
            match y - due {
                height if height < high - near => far.push(Point { x, y }),
                height => low = low.min(height),
            }
            due += period;
        }
        let is_far = |end: &Point| far.iter().any(|far| far.x == end.x);
        let [begin, end] = ends(first + low, period, last).map(|end| (!is_far(&end)).then_some(end));
        Hull::Corners(hull::lower(begin.into_iter().chain(far).chain(end)))
    }

    fn corners(&self) -> &[Point] {
        match self {
            Hull::Ends(ends) => ends,
            Hull::Corners(corners) => corners,
        }
    }
}
