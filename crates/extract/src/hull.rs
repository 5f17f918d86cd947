//! Lower convex hulls of points that come from left to right: exact, in a few dozen points.
//!
//! An upper hull is the lower hull of the mirrored points. What the points mean is up to `periodic`.

use crate::ratio::Ratio;

/// Coordinates are within ± this, so that differences fit an `i64`.
pub(crate) const LIMIT: i64 = 1 << 62;

/// One point, within [`LIMIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub x: i64,
    pub y: i64,
}

/// Adds a point to the right of a lower hull. Amortised O(1).
#[inline]
pub(crate) fn push(hull: &mut Vec<Point>, point: Point) {
    while let [.., before, last] = hull[..] {
        if turns_up(before, last, point) {
            break;
        }
        hull.pop();
    }
    hull.push(point);
}

/// The lower hull of points in order of x.
pub(crate) fn lower(points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    let mut hull = Vec::new();
    points.into_iter().for_each(|point| push(&mut hull, point));
    hull
}

/// The slopes of a hull's edges, from left to right: strictly increasing.
pub(crate) fn slopes(hull: &[Point]) -> impl Iterator<Item = Ratio> + '_ {
    hull.windows(2).filter_map(|edge| slope(edge[0], edge[1]))
}

/// Height at x = 0 of the highest line of this slope below all points of a hull, times the slope's
/// denominator. O(log h).
pub(crate) fn intercept(hull: &[Point], line: Ratio) -> Option<i128> {
    let flatter = |edge: &Point, next: &Point| {
        i128::from(next.y - edge.y) * line.denominator() < line.numerator() * i128::from(next.x - edge.x)
    };
    let (mut low, mut high) = (0, hull.len().checked_sub(1)?);
    while low < high {
        let middle = low + (high - low) / 2;
        if flatter(&hull[middle], &hull[middle + 1]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(above(hull[low], line))
}

/// Height at x = 0 of the line of this slope through a point, times the slope's denominator.
pub(crate) fn above(point: Point, line: Ratio) -> i128 {
    i128::from(point.y) * line.denominator() - i128::from(point.x) * line.numerator()
}

/// Whether the path from `a` through `b` to `c` turns upwards, so that `b` is a corner of the lower hull.
#[inline]
pub(crate) fn turns_up(a: Point, b: Point, c: Point) -> bool {
    i128::from(b.y - a.y) * i128::from(c.x - b.x) < i128::from(c.y - b.y) * i128::from(b.x - a.x)
}

fn slope(a: Point, b: Point) -> Option<Ratio> {
    Ratio::new(i128::from(b.y - a.y), i128::from(b.x - a.x))
}

/// Removes corners until at most `most` are left. An edge is replaced by the point below it where its two
/// neighbours meet, cheapest edges first. The hull then lies further below the points than it has to.
#[cold]
pub(crate) fn cut_corners(hull: &mut Vec<Point>, most: usize) {
    while hull.len() > most.max(4) {
        let before = hull.len();
        cut_some(hull, most);
        if hull.len() == before {
            return;
        }
    }
}

fn cut_some(hull: &mut Vec<Point>, most: usize) {
    let mut cuts: Vec<(f64, usize, Point)> = hull
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

    let mut replaced: Vec<Option<Point>> = vec![None; hull.len()];
    let mut excess = hull.len() - most;
    for (_, edge, corner) in cuts {
        if excess == 0 {
            break;
        }
        // Neighbouring edges share a point, and each is the line along which the other is extended.
        if replaced[edge - 1].is_none() && replaced[edge].is_none() && replaced[edge + 1].is_none() {
            replaced[edge] = Some(corner);
            excess -= 1;
        }
    }
    let old = std::mem::take(hull);
    let mut index = 0;
    while index < old.len() {
        match replaced[index] {
            Some(corner) => {
                push(hull, corner);
                index += 2;
            }
            None => {
                push(hull, old[index]);
                index += 1;
            }
        }
    }
}

/// A point between the two inner of four corners, on or just below both outer edges' extensions, near where
/// they meet. Rounding is downwards, so that the inner corners stay above the new path. `None` if out of
/// range.
fn meeting_point(corners: &[Point]) -> Option<Point> {
    let [a, b, c, d] = [corners[0], corners[1], corners[2], corners[3]];
    let first = (b.y - a.y) as f64 / (b.x - a.x) as f64;
    let second = (d.y - c.y) as f64 / (d.x - c.x) as f64;
    let along = ((c.y - b.y) as f64 - second * (c.x - b.x) as f64) / (first - second);
    // A conversion from a float saturates, and one of NaN gives 0, so this is always between the inner
    // corners.
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

    /// Whether no point lies below any edge's line, and slopes increase.
    fn is_below(hull: &[Point], points: &[Point]) -> bool {
        let slopes: Vec<Ratio> = slopes(hull).collect();
        let mut lines = slopes.iter().map(|&slope| (slope, intercept(hull, slope).unwrap()));
        slopes.is_sorted_by(|a, b| a < b)
            && lines.all(|(slope, line)| points.iter().all(|point| above(*point, slope) >= line))
    }

    #[test]
    fn a_hull_has_the_corners_alone() {
        let points = [(0, 0), (1, 5), (2, -1), (3, -2), (4, -3), (5, 4), (9, 4)].map(|(x, y)| Point { x, y });
        let hull = lower(points);
        assert_eq!(hull, [(0, 0), (4, -3), (9, 4)].map(|(x, y)| Point { x, y }));
        assert!(is_below(&hull, &points));
        // Lines of slope 0 and 1 touch the lowest corner; one of slope 7/5 the whole last edge.
        assert_eq!(
            (intercept(&hull, Ratio::whole(0)), intercept(&hull, Ratio::whole(1))),
            (Some(-3), Some(-7))
        );
        assert_eq!(intercept(&hull, Ratio::new(7, 5).unwrap()), Some(-43));
        assert_eq!(intercept(&[], Ratio::whole(1)), None);
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
            let mut hull = lower(points.clone());
            assert!(hull.len() > 192);
            cut_corners(&mut hull, 192);
            assert!(hull.len() <= 192);
            assert!(is_below(&hull, &points), "steepness {steepness}");
            assert_eq!((hull.first(), hull.last()), (points.first(), points.last()));
        }
    }
}
