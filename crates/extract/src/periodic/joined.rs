//! Segments joined with given shifts: the points of all of them, and the periods that the lowest suggest.

use crate::hull::{self, Point};
use crate::periodic::late::LATE;
use crate::periodic::layers::Matters;
use crate::periodic::segment::{LOWEST, Segment, Sums};
use crate::ratio::Ratio;
use std::collections::HashMap;

/// Most releases distrusted, in all and of one segment: of each segment, the next lowest ones are known.
pub(crate) const MOST_DISTRUSTED: usize = 16;
const MOST_OF_SEGMENT: usize = 2;

/// How many of the next lowest are known at least, but for the lowest one.
pub(crate) const NEXT: usize = LOWEST - MOST_OF_SEGMENT - 2;

/// A point and its segment: together with the index, that identifies a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub point: Point,
    pub segment: usize,
}

impl Located {
    pub fn is(&self, other: &Located) -> bool {
        (self.segment, self.point.x) == (other.segment, other.point.x)
    }
}

/// Segments joined with given shifts.
#[derive(Debug)]
pub(crate) struct Joined {
    pub low: Vec<Located>,
    /// The same as `low` if empty.
    pub floor: Vec<Located>,
    /// Mirrored.
    pub high: Vec<Located>,
    /// Late releases kept one by one, mirrored.
    pub late: Vec<Located>,
    pub sums: Sums,
    /// Whether activations were skipped, or releases are extra.
    pub has_slips: bool,
    /// The first release's evidence.
    pub base: i64,
}

impl Joined {
    pub fn new(segments: &[Segment], shifts: &[i64]) -> Joined {
        let mut joined = Joined {
            low: Vec::new(),
            floor: Vec::new(),
            high: Vec::new(),
            late: Vec::new(),
            sums: Sums::default(),
            has_slips: segments.iter().any(|segment| segment.skipped > 0)
                || shifts.iter().any(|shift| *shift != shifts[0]),
            base: 0,
        };
        let has_floor = segments.iter().any(|segment| segment.floor.is_some());
        let mut start = 0;
        for (number, segment) in segments.iter().enumerate() {
            let x = start + shifts[number] - shifts[0];
            let locate = |points: &[Point], into: &mut Vec<Located>| {
                into.extend(
                    points
                        .iter()
                        .map(|point| Located { point: Point { x: point.x + x, ..*point }, segment: number }),
                );
            };
            locate(segment.low.points(), &mut joined.low);
            locate(segment.high.points(), &mut joined.high);
            if has_floor {
                locate(segment.floor.as_ref().unwrap_or(&segment.low).points(), &mut joined.floor);
            }
            joined.sums.append(&segment.sums.moved(x, 0));
            locate_late(segment, x, number, &mut joined.late);
            start += segment.span;
        }
        // After an extra release, indices occur twice.
        joined.low.sort_by_key(|located| (located.point.x, located.point.y));
        joined.floor.sort_by_key(|located| (located.point.x, located.point.y));
        joined.high.sort_by_key(|located| (located.point.x, located.point.y));
        joined.base = joined.low.first().map_or(0, |first| first.point.y);
        thin(&mut joined.low, LOWEST + if joined.has_slips { MOST_DISTRUSTED } else { 0 });
        thin(&mut joined.floor, LOWEST);
        thin(&mut joined.high, LATE + 1);
        joined
    }

    /// Floors of all releases that can be lowest.
    pub fn floor(&self) -> &[Located] {
        if self.floor.is_empty() { &self.low } else { &self.floor }
    }

    /// Periods suggested by the lowest points: by all of them, then without the lowest, and so on.
    pub fn estimates(&self, count: usize) -> Vec<Ratio> {
        estimates(Lowered::new(self.low.clone(), &self.sums), count)
    }

    /// The releases that lower the hull most, in groups of equal ones, without those in `others`.
    pub fn lowering(&self, others: &[Located]) -> Vec<Vec<Located>> {
        let points =
            self.low.iter().filter(|low| !others.iter().any(|other| other.is(low))).copied().collect();
        let mut of_segment = HashMap::new();
        let is_known = |gone: &Vec<Located>| {
            gone.iter().all(|located| {
                let count: &mut usize = of_segment.entry(located.segment).or_default();
                *count += 1;
                *count <= MOST_OF_SEGMENT
            })
        };
        Lowered::new(points, &self.sums)
            .map(|(_, gone)| gone)
            .take(MOST_DISTRUSTED)
            .take_while(is_known)
            .collect()
    }

    /// The lowest points relative to a line of this slope, the lowest first.
    pub fn lowest(&self, period: f64) -> Vec<Located> {
        let base = self.base;
        let mut phases: Vec<(f64, Located)> = self
            .low
            .iter()
            .map(|located| ((located.point.y - base) as f64 - period * located.point.x as f64, *located))
            .collect();
        phases.sort_by(|a, b| {
            a.0.total_cmp(&b.0).then((a.1.point.x, a.1.point.y).cmp(&(b.1.point.x, b.1.point.y)))
        });
        phases.into_iter().map(|(_, located)| located).collect()
    }
}

fn locate_late(segment: &Segment, x: i64, number: usize, into: &mut Vec<Located>) {
    into.extend(
        segment
            .late
            .iter()
            .map(|late| Located { point: Point { x: late.x() + x, y: -late.latest }, segment: number }),
    );
}

/// Drops points that do not matter once all segments are joined.
fn thin(points: &mut Vec<Located>, depth: usize) {
    let mut matters = Matters::default();
    matters.look(points, depth, 0, |located| located.point);
    matters.leave_out(points);
}

/// Takes the lowest releases away, one after the other: of the hull's edge at the mean index, the end without
/// which the hull is higher there.
struct Lowered {
    points: Vec<Located>,
    /// Sum of all indices, and how many there are.
    sum_x: i128,
    count: i128,
    edge: Option<[Point; 2]>,
}

impl Lowered {
    fn new(points: Vec<Located>, sums: &Sums) -> Lowered {
        let mut lowered = Lowered { points, sum_x: sums.x, count: sums.count.into(), edge: None };
        lowered.edge = lowered.edge_without(None);
        lowered
    }

    fn edge_without(&self, gone: Option<Point>) -> Option<[Point; 2]> {
        let rest = self.points.iter().map(|located| located.point).filter(|point| Some(*point) != gone);
        middle_edge(&hull::lower(rest), self.sum_x, self.count)
    }

    /// How high an edge is at the mean index.
    fn height(&self, edge: Option<[Point; 2]>) -> f64 {
        let base = self.points.first().map_or(0, |first| first.point.y);
        let mean = self.sum_x as f64 / self.count as f64;
        edge.map_or(f64::NEG_INFINITY, |[a, b]| {
            (a.y - base) as f64 + (mean - a.x as f64) * ((b.y - a.y) as f64 / (b.x - a.x) as f64)
        })
    }
}

impl Iterator for Lowered {
    /// An edge, and what is taken away from it.
    type Item = ([Point; 2], Vec<Located>);

    fn next(&mut self) -> Option<Self::Item> {
        let edge = self.edge?;
        let [left, right] = edge.map(|end| self.edge_without(Some(end)));
        let is_left = self.height(left) >= self.height(right);
        let end = if is_left { edge[0] } else { edge[1] };
        self.edge = if is_left { left } else { right };
        let points = std::mem::take(&mut self.points);
        let (gone, rest) = points.into_iter().partition(|located| located.point == end);
        self.points = rest;
        Some((edge, gone))
    }
}

/// The slope of the hull's edge at the mean index; then that without the point whose removal raises the hull
/// there most, and so on.
fn estimates(lowered: Lowered, count: usize) -> Vec<Ratio> {
    let mut found = Vec::new();
    for (edge, _) in lowered.take(count) {
        found.extend(slope(edge).filter(|slope| !found.contains(slope)));
    }
    found
}

/// The periods that a segment suggests by itself.
pub(crate) fn estimates_of(segment: &Segment, count: usize) -> Vec<Ratio> {
    let points = segment.low.points().iter().map(|point| Located { point: *point, segment: 0 }).collect();
    estimates(Lowered::new(points, &segment.sums), count)
}

/// The edge of a hull at the mean index, `sum / count`.
pub(crate) fn middle_edge(hull: &[Point], sum: i128, count: i128) -> Option<[Point; 2]> {
    let edge = hull.windows(2).find(|edge| sum <= i128::from(edge[1].x) * count && edge[1].x > edge[0].x)?;
    Some([edge[0], edge[1]])
}

/// The slope of an edge, an estimate of the period. `None` unless it is above zero.
pub(crate) fn slope([a, b]: [Point; 2]) -> Option<Ratio> {
    let slope = Ratio::new(i128::from(b.y) - i128::from(a.y), i128::from(b.x) - i128::from(a.x))?;
    slope.is_positive().then_some(slope)
}
