//! The least jitter of several runs for every period at once, as a convex hull.
//!
//! With its activations given, a run's least jitter for a period T is the height of the strip of slope T that
//! holds all its releases: `max(u.y − T·u.x) − min(l.y − T·l.x)` over the corners u and l of its two hulls.
//! That is the greatest `y − T·x` over all differences u − l, so the greatest jitter of several runs comes
//! from the hull of all their differences. (papers: LiME, Section IV-C, for one run.)

use crate::hull::{self, LIMIT, Point};
use crate::ratio::Ratio;
use crate::summary::curve::{Extreme, RunNumber};
use serde::{Deserialize, Serialize};

/// Differences are within ± this, so that differences of them fit an `i64`.
const MOST: i64 = LIMIT / 2;

/// Differences u − l, mirrored in y, that are lowest for some negative slope: from left to right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spread {
    corners: Vec<Corner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Corner {
    x: i64,
    y: i64,
    run: RunNumber,
}

impl Corner {
    fn point(&self) -> Point {
        Point { x: self.x, y: self.y }
    }
}

impl Spread {
    /// Of one run, from its lower hull and its upper one, which is mirrored. `None` if out of range.
    pub fn new(lower: &[Point], upper: &[Point]) -> Option<Spread> {
        let turned: Vec<Point> = lower.iter().rev().map(|point| Point { x: -point.x, ..*point }).collect();
        let (mut one, mut other) = (0, 0);
        let mut sums = Vec::with_capacity(upper.len() + turned.len());
        // The sum of two hulls has the edges of both, by slope.
        while let (Some(a), Some(b)) = (upper.get(one), turned.get(other)) {
            sums.push((i128::from(a.x) + i128::from(b.x), i128::from(a.y) + i128::from(b.y)));
            let next = match (upper.get(one + 1), turned.get(other + 1)) {
                (Some(up), Some(turn)) => is_steeper((*b, *turn), (*a, *up)),
                (Some(_), None) => true,
                (None, _) => false,
            };
            if next { one += 1 } else { other += 1 }
        }
        Spread::of(sums)
    }

    /// Of a run that is known only to have this jitter for a period, over so many activations: for any other
    /// period it may have as much more as its last activation is moved.
    pub fn around(period: i64, jitter: i64, activations: u64) -> Option<Spread> {
        let (period, jitter, last) = (i128::from(period), i128::from(jitter), i128::from(activations));
        Spread::of([-last, 0, last].map(|x| (x, -jitter - period * x)))
    }

    fn of(points: impl IntoIterator<Item = (i128, i128)>) -> Option<Spread> {
        let within = |number: i128| i64::try_from(number).ok().filter(|it| (-MOST..=MOST).contains(it));
        let corner = |(x, y)| Some(Corner { x: within(x)?, y: within(y)?, run: 0 });
        Some(Spread::lowest(points.into_iter().map(corner).collect::<Option<_>>()?))
    }

    /// The corners that matter.
    fn lowest(mut corners: Vec<Corner>) -> Spread {
        corners.sort_unstable();
        corners.dedup_by_key(|corner| corner.x);
        let mut kept: Vec<Corner> = Vec::with_capacity(corners.len());
        for corner in corners {
            while let [.., before, last] = kept[..] {
                if hull::turns_up(before.point(), last.point(), corner.point()) {
                    break;
                }
                kept.pop();
            }
            // A line that falls touches no corner to the right of one that is as low.
            if kept.last().is_none_or(|last| corner.y < last.y) {
                kept.push(corner);
            }
        }
        Spread { corners: kept }
    }

    pub fn renumber(&mut self, numbers: &[RunNumber]) {
        self.corners.iter_mut().for_each(|corner| corner.run = numbers[corner.run as usize]);
    }

    pub fn merge(&mut self, other: &Spread) {
        if self.corners != other.corners {
            *self = Spread::lowest([&self.corners[..], &other.corners].concat());
        }
    }

    /// The least jitter for this period, rounded up, and the first run that needs it. Zero of nothing.
    pub fn jitter(&self, period: Ratio) -> Option<Extreme> {
        let height = |corner: &Corner| -hull::above(corner.point(), period.negated());
        let greatest =
            self.corners.iter().max_by_key(|corner| (height(corner), std::cmp::Reverse(corner.run)))?;
        let ns = -(-height(greatest)).div_euclid(period.denominator());
        Some(Extreme { ns: u64::try_from(ns.max(0)).unwrap_or(u64::MAX), run: greatest.run })
    }

    /// The least jitter of any period: that of one of the hull's slopes.
    pub fn least_jitter(&self) -> Option<u64> {
        let slopes = self.corners.windows(2).filter_map(|edge| {
            Ratio::new(
                i128::from(edge[0].y) - i128::from(edge[1].y),
                i128::from(edge[1].x) - i128::from(edge[0].x),
            )
        });
        slopes.filter_map(|period| self.jitter(period)).map(|jitter| jitter.ns).min()
    }

    /// Whether this is what [`Spread::lowest`] returns, of so many runs.
    pub fn is_valid(&self, runs: usize) -> bool {
        let within = |number: i64| (-MOST..=MOST).contains(&number);
        let fits = |corner: &Corner| within(corner.x) && within(corner.y) && (corner.run as usize) < runs;
        self.corners.iter().all(fits) && *self == Spread::lowest(self.corners.clone())
    }
}

/// Whether the first edge is steeper than the second.
fn is_steeper((a, b): (Point, Point), (c, d): (Point, Point)) -> bool {
    let rise = |from: Point, to: Point| i128::from(to.y) - i128::from(from.y);
    let run = |from: Point, to: Point| i128::from(to.x) - i128::from(from.x);
    rise(a, b) * run(c, d) > rise(c, d) * run(a, b)
}
