//! The lower convex hull of points that come from left to right: exact, in a few dozen points.
//!
//! An upper hull is the lower hull of the mirrored points. Nothing here knows what the points mean (that is `periodic`).

use crate::ratio::Ratio;

/// Most points that a hull keeps. Real streams need a few dozen; only a rate that drifts without end needs more.
pub(crate) const CAP: usize = 256;

/// How many points are left once a full hull has had its corners cut, so that cutting stays rare.
const AFTER_CUT: usize = CAP * 3 / 4;

/// Coordinates stay within ± this, so that differences fit an `i64`.
pub(crate) const LIMIT: i64 = 1 << 62;

/// One point, within [`LIMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub x: i64,
    pub y: i64,
}

/// A lower convex hull: edge slopes strictly increase from left to right, and no point that was pushed lies below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hull {
    points: Vec<Point>,
    /// Most points that there were at any time.
    most: usize,
    cut: bool,
}

impl Hull {
    /// Adds a point to the right of all others. Amortised O(1).
    #[inline]
    pub fn push(&mut self, point: Point) {
        while let [.., before, last] = self.points[..] {
            if turns_up(before, last, point) {
                break;
            }
            self.points.pop();
        }
        self.points.push(point);
        self.most = self.most.max(self.points.len());
        if self.points.len() > CAP {
            self.cut_corners();
        }
    }

    /// The hull's corners, from left to right.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether corners were cut: the hull then lies below the points by more than it must.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The slopes of the edges, from left to right: strictly increasing.
    pub fn slopes(&self) -> impl Iterator<Item = Ratio> + '_ {
        self.points.windows(2).filter_map(|edge| slope(edge[0], edge[1]))
    }

    /// How high the highest line of this slope below all points passes at x = 0, times the slope's denominator. O(log h).
    pub fn intercept(&self, line: Ratio) -> Option<i128> {
        let flatter =
            |edge: &Point, next: &Point| i128::from(next.y - edge.y) * line.denominator() < line.numerator() * i128::from(next.x - edge.x);
        let (mut low, mut high) = (0, self.points.len().checked_sub(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            if flatter(&self.points[middle], &self.points[middle + 1]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let touched = self.points[low];
        Some(i128::from(touched.y) * line.denominator() - i128::from(touched.x) * line.numerator())
    }

    /// Adds the hull of points that lie to the right of all points here, moved by `(x, y)`.
    pub fn append(&mut self, later: &Hull, x: i64, y: i64) {
        self.cut |= later.cut;
        for point in &later.points {
            self.push(Point { x: point.x + x, y: point.y + y });
        }
    }

    /// Whether appending gives the same as if the later points had come here one by one, after up to `between` others: not where
    /// corners might have been cut on the way.
    pub fn can_append(&self, later: &Hull, between: usize) -> bool {
        self.points.len() + between + later.most <= CAP
    }

    /// Takes corners away by extending the edges beside one until they meet, below it: where that costs least.
    #[cold]
    fn cut_corners(&mut self) {
        self.cut = true;
        let mut cuts: Vec<(f64, usize, Point)> = self
            .points
            .windows(4)
            .enumerate()
            .filter_map(|(index, window)| {
                let corner = meeting_point(window)?;
                let edge = [window[1], window[2]];
                let along = (corner.x - edge[0].x) as f64 / (edge[1].x - edge[0].x) as f64;
                let depth = (edge[0].y - corner.y) as f64 + along * (edge[1].y - edge[0].y) as f64;
                Some((depth, index + 1, corner))
            })
            .collect();
        cuts.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));

        let mut replaced: Vec<Option<Point>> = vec![None; self.points.len()];
        let mut excess = self.points.len() - AFTER_CUT;
        for (_, edge, corner) in cuts {
            if excess == 0 {
                break;
            }
            // Neighbouring edges share a point, and each is the line that the other is extended along.
            if replaced[edge - 1].is_none() && replaced[edge].is_none() && replaced[edge + 1].is_none() {
                replaced[edge] = Some(corner);
                excess -= 1;
            }
        }
        let old = std::mem::replace(&mut self.points, Vec::with_capacity(CAP + 1));
        let mut index = 0;
        while index < old.len() {
            match replaced[index] {
                Some(corner) => {
                    self.push(corner);
                    index += 2;
                }
                None => {
                    self.push(old[index]);
                    index += 1;
                }
            }
        }
    }
}

/// Whether the way from `a` over `b` to `c` bends upwards, so that `b` is a corner of the lower hull.
#[inline]
fn turns_up(a: Point, b: Point, c: Point) -> bool {
    i128::from(b.y - a.y) * i128::from(c.x - b.x) < i128::from(c.y - b.y) * i128::from(b.x - a.x)
}

fn slope(a: Point, b: Point) -> Option<Ratio> {
    Ratio::new(i128::from(b.y - a.y), i128::from(b.x - a.x))
}

/// A point on or below both outer edges of four corners, close to where their extensions meet, between the inner two.
/// What rounding takes, it takes downwards: the two inner corners stay above the new way. `None` where that is out of range.
fn meeting_point(corners: &[Point]) -> Option<Point> {
    let [a, b, c, d] = [corners[0], corners[1], corners[2], corners[3]];
    let first = (b.y - a.y) as f64 / (b.x - a.x) as f64;
    let second = (d.y - c.y) as f64 / (d.x - c.x) as f64;
    let along = ((c.y - b.y) as f64 - second * (c.x - b.x) as f64) / (first - second);
    // A conversion from a float saturates, and one of NaN gives 0, so this is always between the inner corners.
    let x = b.x + (along.round() as i64).clamp(0, c.x - b.x);
    let on = |from: Point, to: Point, through: Point| {
        let rise = i128::from(to.y - from.y) * i128::from(x - through.x);
        i128::from(through.y) + rise.div_euclid(i128::from(to.x - from.x))
    };
    let y = i64::try_from(on(a, b, b).min(on(c, d, c))).ok()?;
    (y >= -LIMIT).then_some(Point { x, y })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hull(points: &[Point]) -> Hull {
        let mut hull = Hull::default();
        points.iter().for_each(|&point| hull.push(point));
        hull
    }

    /// Whether no point lies below any edge's line, and edges bend upwards.
    fn is_below(hull: &Hull, points: &[Point]) -> bool {
        let slopes: Vec<Ratio> = hull.slopes().collect();
        let mut lines = slopes.iter().map(|&slope| (slope, hull.intercept(slope).unwrap()));
        let above = |(slope, intercept): (Ratio, i128)| {
            let height = |point: &Point| i128::from(point.y) * slope.denominator() - i128::from(point.x) * slope.numerator();
            points.iter().all(|point| height(point) >= intercept)
        };
        slopes.is_sorted_by(|a, b| a < b) && lines.all(above)
    }

    #[test]
    fn corners_are_kept_as_long_as_there_is_room() {
        let points = [(0, 0), (1, 5), (2, -1), (3, -2), (4, -3), (5, 4), (9, 4)].map(|(x, y)| Point { x, y });
        let hull = hull(&points);
        assert_eq!(hull.points(), [(0, 0), (4, -3), (9, 4)].map(|(x, y)| Point { x, y }));
        assert!(!hull.is_cut() && is_below(&hull, &points));
        // Lines of slope 0 and 1 touch the lowest corner; one of slope 7/5 the whole last edge.
        assert_eq!((hull.intercept(Ratio::whole(0)), hull.intercept(Ratio::whole(1))), (Some(-3), Some(-7)));
        assert_eq!(hull.intercept(Ratio::new(7, 5).unwrap()), Some(-43));
        assert_eq!(Hull::default().intercept(Ratio::whole(1)), None);
    }

    #[test]
    fn cut_corners_stay_below_all_points() {
        for steepness in [1, 3, 1_000, 1 << 30] {
            let (mut x, mut y) = (0, 0);
            let points: Vec<Point> = (-1_000_i64..1_000)
                .map(|index| {
                    let step = 1 + index.rem_euclid(7) * index.rem_euclid(11);
                    x += step;
                    y += step * index * steepness;
                    Point { x, y }
                })
                .collect();
            let hull = hull(&points);
            assert!(hull.is_cut() && hull.points().len() <= CAP);
            assert!(is_below(&hull, &points), "steepness {steepness}");
            assert_eq!((hull.points().first(), hull.points().last()), (points.first(), points.last()));
        }
    }
}
