//! The lowest points of a stream for every slope.
//!
//! A point matters if it is among the k lowest relative to a line of some slope. If, for any one slope, k
//! points on its left and k on its right are lower, it does not: k lines from left to right pass below it, so
//! k points are lower whatever the slope. Points are taken as they come; now and then those that do not
//! matter are dropped, by that comparison. Keeping others changes no result.

use crate::hull::{self, Point};
use crate::periodic::block::{BLOCK, Places};
use std::cell::RefCell;

/// Points taken before some are dropped.
const ROOM: usize = 96;

/// Points of a block that are compared at a time.
const LANES: usize = 8;

/// If more points than that are left, other comparisons follow.
const MANY: usize = 192;

/// Slopes are multiples of one over this.
const GRAIN: i64 = 1 << 10;

/// Phases of points no further apart than this fit an `i64`.
const MOST_APART: u128 = 1 << 51;

/// Greatest depth.
pub(crate) const MOST_DEPTH: usize = 8;

/// Points in order of x, including the `depth` lowest for every slope.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    points: Vec<Point>,
    /// Number of points after the last reduction.
    reduced: usize,
    depth: u8,
    /// What blocks are compared with, until the index at which a better line is drawn.
    line: Option<(Line, Lowest, i64)>,
}

impl Layers {
    pub fn new(depth: usize) -> Layers {
        Layers { points: Vec::new(), reduced: 0, depth: depth.min(MOST_DEPTH) as u8, line: None }
    }

    /// Adds points to the right of all others, in a row from index `x` on: at the heights `ys`, or mirrored
    /// ones. Those whose bit is set in `without` are left out.
    #[inline(always)]
    pub fn extend(&mut self, x: i64, ys: &[i64], is_mirrored: bool, without: &Places) {
        let Some(last) = ys.len().checked_sub(1) else { return };
        let point = |at: usize| Point { x: x + at as i64, y: if is_mirrored { -ys[at] } else { ys[at] } };
        let mut phases = [i64::MAX; BLOCK];
        let mut keep = Places::default();
        match self.line(point(0), point(last)).filter(|(line, ..)| line.is_near(ys, is_mirrored)) {
            Some((line, mut lowest, until)) => {
                line.phases(x, ys, is_mirrored, &mut phases);
                without.each(|at| phases[at] = i64::MAX);
                lowest.look_through(&phases, self.depth.into(), &mut keep);
                self.line = Some((line, lowest, until));
                if keep.len() > BLOCK / 4 {
                    // They lie along another line.
                    self.look_again(x, ys, is_mirrored, without, &mut keep);
                }
            }
            None => keep = Places::all(ys.len()).without(without),
        }
        if self.points.len() + keep.len() < self.reduced + ROOM {
            keep.each(|at| self.points.push(point(at)));
        } else {
            self.reduce(|points| keep.each(|at| points.push(point(at))));
        }
    }

    /// Compares the points of a block once more, with the line from its first to its last point.
    #[inline(never)]
    fn look_again(&self, x: i64, ys: &[i64], is_mirrored: bool, without: &Places, keep: &mut Places) {
        let end = |at: usize| Point { x: x + at as i64, y: if is_mirrored { -ys[at] } else { ys[at] } };
        let Some(line) = Line::through(end(0), end(ys.len() - 1)) else { return };
        let mut phases = [i64::MAX; BLOCK];
        line.phases(x, ys, is_mirrored, &mut phases);
        without.each(|at| phases[at] = i64::MAX);
        let mut matter = Places::default();
        Lowest::new(self.depth.into()).look_through(&phases, self.depth.into(), &mut matter);
        *keep = keep.with(&matter);
    }

    /// A line to compare the points of a block with, and the lowest phases on its left.
    fn line(&self, first: Point, last: Point) -> Option<(Line, Lowest, i64)> {
        if let Some(line) = self.line.filter(|(.., until)| last.x < *until) {
            return Some(line);
        }
        let first = self.points.first().copied().unwrap_or(first);
        let line = Line::through(first, last)?;
        let mut lowest = Lowest::new(self.depth.into());
        self.points.iter().for_each(|point| line.take(*point, &mut lowest));
        Some((line, lowest, last.x + (last.x - first.x) / 2))
    }

    /// Adds points between the others. Both are in order of x, which differs.
    pub fn insert(&mut self, added: impl Iterator<Item = Point>) {
        self.reduce(|points| {
            points.extend(added);
            points.sort_unstable_by_key(|point| point.x);
        });
    }

    /// All points that matter, and perhaps more.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Corners of the hull.
    pub fn corners(&self) -> usize {
        hull::lower(self.points.iter().copied()).len()
    }

    /// Appends points, moved by `(x, y)`, to the right of all others.
    pub fn append(&mut self, later: &Layers, x: i64, y: i64) {
        self.points.extend(later.points.iter().map(|point| Point { x: point.x + x, y: point.y + y }));
        if self.points.len() >= self.reduced + ROOM {
            self.reduce(|_| ());
        }
    }

    /// Moves all points up or down.
    pub fn lift(&mut self, y: i64) {
        self.points.iter_mut().for_each(|point| point.y += y);
        self.line = None;
    }

    /// Drops every point outside the first layers, and releases spare memory: for points to which few others
    /// will come.
    pub fn settle(&mut self) {
        self.line = None;
        self.reduce_with(|points, depth, matters| {
            matters.look(points, depth, 0, |point| *point);
            matters.leave_out(points);
            matters.peel(points, depth);
        });
        self.points.shrink_to_fit();
    }

    /// Keeps only the hull, of at most `most` points; returns whether corners had to be cut.
    pub fn flatten(&mut self, most: usize) -> bool {
        self.depth = 1;
        self.settle();
        let is_cut = self.points.len() > most;
        if is_cut {
            hull::cut_corners(&mut self.points, most * 3 / 4);
        }
        self.reduced = self.points.len();
        is_cut
    }

    /// Adds points, and drops those that do not matter.
    fn reduce(&mut self, add: impl FnOnce(&mut Vec<Point>)) {
        let new = self.reduced;
        self.reduce_with(|points, depth, matters| {
            add(points);
            matters.look(points, depth, 0, |point| *point);
            matters.leave_out(points);
            // A run of points along a line that is not the one from the first to the last: each of them is
            // lower than all others on one side.
            if points.len() > MANY && new < points.len() {
                matters.look(points, depth, new, |point| *point);
                matters.leave_out(points);
            }
            if points.len() > MANY {
                matters.peel(points, depth);
            }
        });
        if self.points.capacity() < self.reduced + ROOM {
            self.points.reserve_exact(ROOM + ROOM / 8);
        } else if self.points.capacity() > self.reduced + 3 * ROOM {
            self.points.shrink_to(self.reduced + ROOM + ROOM / 8);
        }
    }

    /// Reduces the points where there is room for all those of a block.
    fn reduce_with(&mut self, reduce: impl FnOnce(&mut Vec<Point>, usize, &mut Matters)) {
        thread_local! {
            static WORK: RefCell<(Vec<Point>, Matters)> = RefCell::default();
        }
        WORK.with_borrow_mut(|(points, matters)| {
            points.clear();
            points.extend_from_slice(&self.points);
            reduce(points, self.depth.into(), matters);
            self.points.clear();
            self.points.reserve_exact(points.len());
            self.points.extend_from_slice(points);
        });
        self.reduced = self.points.len();
    }
}

/// A line that phases are measured from: its slope is a multiple of one over [`GRAIN`].
#[derive(Clone, Copy, Debug)]
struct Line {
    from: Point,
    grains: i64,
}

impl Line {
    /// The line from one point to another; `None` if they are too far apart.
    #[inline(always)]
    fn through(from: Point, to: Point) -> Option<Line> {
        let (apart, steps) = (to.y.checked_sub(from.y)?, (to.x - from.x).max(1));
        (u128::from(apart.unsigned_abs()) <= MOST_APART).then(|| Line { from, grains: apart * GRAIN / steps })
    }

    /// Whether the phases at all these heights fit.
    #[inline(always)]
    fn is_near(&self, ys: &[i64], is_mirrored: bool) -> bool {
        let origin = self.origin(is_mirrored);
        let mut bounds = [(origin, origin); LANES];
        let mut chunks = ys.chunks_exact(LANES);
        for chunk in &mut chunks {
            for lane in 0..LANES {
                bounds[lane] = (bounds[lane].0.min(chunk[lane]), bounds[lane].1.max(chunk[lane]));
            }
        }
        let is_near = |y: i64| u128::from(y.abs_diff(origin)) <= MOST_APART;
        bounds.iter().all(|(least, greatest)| is_near(*least) && is_near(*greatest))
            && chunks.remainder().iter().all(|y| is_near(*y))
    }

    /// Where it begins, among heights that may be mirrored.
    #[inline(always)]
    fn origin(&self, is_mirrored: bool) -> i64 {
        if is_mirrored { -self.from.y } else { self.from.y }
    }

    /// How far heights in a row are above it.
    #[inline(always)]
    fn phases(&self, x: i64, ys: &[i64], is_mirrored: bool, phases: &mut [i64; BLOCK]) {
        let origin = self.origin(is_mirrored);
        let unit = if is_mirrored { -GRAIN } else { GRAIN };
        let line = |at: i64| self.grains.wrapping_mul(x - self.from.x + at);
        let mut lines: [i64; LANES] = std::array::from_fn(|lane| line(lane as i64));
        let step = self.grains.wrapping_mul(LANES as i64);
        for (phases, ys) in phases.chunks_exact_mut(LANES).zip(ys.chunks(LANES)) {
            for lane in 0..ys.len().min(LANES) {
                phases[lane] = ys[lane].wrapping_sub(origin).wrapping_mul(unit).wrapping_sub(lines[lane]);
            }
            for line in &mut lines {
                *line = line.wrapping_add(step);
            }
        }
    }

    /// Takes the phase of a point. One that is too far away is not compared.
    #[inline(always)]
    fn take(&self, point: Point, lowest: &mut Lowest) {
        let above = point.y.wrapping_sub(self.from.y);
        if u128::from(point.y.abs_diff(self.from.y)) <= MOST_APART {
            lowest.take(
                above.wrapping_mul(GRAIN).wrapping_sub(self.grains.wrapping_mul(point.x - self.from.x)),
            );
        }
    }
}

/// Finds the points that matter.
#[derive(Default)]
pub(crate) struct Matters {
    phases: Vec<i64>,
    keep: Vec<bool>,
    /// Places of the points in no layer yet, and of those in the current layer.
    rest: Vec<u32>,
    layer: Vec<u32>,
}

impl Matters {
    /// Compares points, in order of x, relative to the line from the one at `from` to the last.
    pub fn look<T>(&mut self, points: &[T], depth: usize, from: usize, point: impl Fn(&T) -> Point) {
        self.keep.clear();
        self.phases.clear();
        let (Some(first), Some(last)) = (points.get(from).map(&point), points.last().map(&point)) else {
            return;
        };
        let apart = last.y.wrapping_sub(first.y);
        let grains = (i128::from(apart) * i128::from(GRAIN) / i128::from((last.x - first.x).max(1))) as i64;
        let rise = |x: i64| i128::from(grains) * i128::from(x - first.x) / i128::from(GRAIN);
        let ends = points
            .first()
            .into_iter()
            .chain(points.last())
            .map(|each| rise(point(each).x).unsigned_abs())
            .max();
        let farthest = points.iter().fold(0, |farthest, each| point(each).y.abs_diff(first.y).max(farthest));
        if u128::from(farthest).max(ends.unwrap_or(0)) > MOST_APART {
            self.keep.resize(points.len(), true);
            return;
        }
        self.phases.extend(points.iter().map(|each| {
            let point = point(each);
            (point.y - first.y).wrapping_mul(GRAIN).wrapping_sub(grains.wrapping_mul(point.x - first.x))
        }));
        let mut lowest = Lowest::new(depth);
        self.keep.extend(self.phases.iter().map(|phase| lowest.take(*phase)));
        let mut lowest = Lowest::new(depth);
        for (keep, phase) in self.keep.iter_mut().zip(&self.phases).rev() {
            *keep |= lowest.take(*phase);
        }
    }

    /// Drops the points that do not matter.
    pub fn leave_out<T>(&self, points: &mut Vec<T>) {
        let mut place = 0;
        points.retain(|_| {
            place += 1;
            self.keep[place - 1]
        });
    }

    /// Keeps the first layers: the hull, the hull of the rest, and so on. The k lowest points for every slope
    /// are in the first k.
    fn peel(&mut self, points: &mut Vec<Point>, depth: usize) {
        self.keep.clear();
        self.keep.resize(points.len(), false);
        self.rest.clear();
        self.rest.extend(0..points.len() as u32);
        for _ in 0..depth {
            self.layer.clear();
            for &place in &self.rest {
                while let [.., before, last] = self.layer[..] {
                    if hull::turns_up(points[before as usize], points[last as usize], points[place as usize])
                    {
                        break;
                    }
                    self.layer.pop();
                }
                self.layer.push(place);
            }
            self.layer.iter().for_each(|place| self.keep[*place as usize] = true);
            let keep = &self.keep;
            self.rest.retain(|place| !keep[*place as usize]);
        }
        self.leave_out(points);
    }
}

/// The lowest values so far, in order. With a smaller depth, the first places hold the least possible value,
/// so that the last place is always the same.
#[derive(Clone, Copy, Debug)]
struct Lowest([i64; MOST_DEPTH]);

impl Lowest {
    fn new(depth: usize) -> Lowest {
        let unused = MOST_DEPTH - depth.clamp(1, MOST_DEPTH);
        Lowest(std::array::from_fn(|at| if at < unused { i64::MIN } else { i64::MAX }))
    }

    /// Takes a value; returns whether fewer than `depth` values before it are as low.
    #[inline]
    fn take(&mut self, value: i64) -> bool {
        if value >= self.0[MOST_DEPTH - 1] {
            return false;
        }
        for at in (1..MOST_DEPTH).rev() {
            self.0[at] = value.min(self.0[at]).max(self.0[at - 1]);
        }
        self.0[0] = self.0[0].min(value);
        true
    }

    /// Finds the values that matter in a block, to the right of all values taken: those lower than all but
    /// `depth` on the left, or on the right.
    #[inline(always)]
    fn look_through(&mut self, phases: &[i64; BLOCK], depth: usize, keep: &mut Places) {
        let mut least = [i64::MAX; BLOCK / LANES];
        for (least, phases) in least.iter_mut().zip(phases.chunks_exact(LANES)) {
            *least = phases.iter().fold(i64::MAX, |least, phase| least.min(*phase));
        }
        for (chunk, least) in least.iter().enumerate() {
            if *least < self.greatest() {
                let places = chunk * LANES..(chunk + 1) * LANES;
                places.filter(|at| self.take(phases[*at])).for_each(|at| keep.set(at));
            }
        }
        let mut lowest = Lowest::new(depth);
        for (chunk, least) in least.iter().enumerate().rev() {
            if *least < lowest.greatest() {
                let places = (chunk * LANES..(chunk + 1) * LANES).rev();
                places.filter(|at| lowest.take(phases[*at])).for_each(|at| keep.set(at));
            }
        }
    }

    /// The last place.
    #[inline]
    fn greatest(&self) -> i64 {
        self.0[MOST_DEPTH - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lowest phases over a line of this slope.
    fn lowest(points: &[Point], slope: i64, depth: usize) -> Vec<i64> {
        let mut phases: Vec<i64> = points.iter().map(|point| point.y - slope * point.x).collect();
        phases.sort_unstable();
        phases.truncate(depth);
        phases
    }

    fn streams() -> impl Strategy<Value = Vec<Point>> {
        let late = prop_oneof![6 => 0_i64..1_000, 2 => Just(0_i64), 1 => 0_i64..100_000, 1 => -5_000_i64..0];
        (prop::collection::vec(late, 0..3_000), -20_i64..20, 0_i64..3).prop_map(|(late, bend, noise)| {
            let point = |(x, late): (usize, i64)| Point {
                x: x as i64,
                y: x as i64 * 1_000 + bend * (x * x) as i64 / 50 + late * noise,
            };
            late.into_iter().enumerate().map(point).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_lowest_points_of_every_slope_are_kept(
            points in streams(),
            depth in 1_usize..8,
            cut in any::<prop::sample::Index>(),
        ) {
            let cut = cut.index(points.len() + 1);
            let taken = |points: &[Point]| {
                let mut layers = Layers::new(depth);
                for (number, block) in points.chunks(100).enumerate() {
                    let ys: Vec<i64> = block.iter().map(|point| point.y).collect();
                    layers.extend(number as i64 * 100, &ys, false, &Places::default());
                }
                layers
            };
            let mut whole = taken(&points);
            let (x, y) = (cut as i64, 77);
            let mut pieces = taken(&points[..cut]);
            let moved = points[cut..].iter().map(|point| Point { x: point.x - x, y: point.y - y });
            let moved: Vec<Point> = moved.collect();
            pieces.append(&taken(&moved), x, y);
            let settled = points.len() % 2 == 0;
            if settled {
                whole.settle();
                pieces.settle();
            }
            for slope in [-100_000, 0, 900, 990, 999, 1_000, 1_001, 1_010, 1_100, 2_000, 100_000] {
                let expected = lowest(&points, slope, depth);
                prop_assert_eq!(lowest(whole.points(), slope, depth), &expected[..]);
                prop_assert_eq!(lowest(pieces.points(), slope, depth), &expected[..]);
            }
        }
    }

    #[test]
    fn few_points_are_kept() {
        let mut layers = Layers::new(5);
        let mut random = 1_u64;
        for block in 0..10_000 {
            let mut ys = [0; 100];
            for (at, y) in ys.iter_mut().enumerate() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *y = (block * 100 + at as i64) * 1_000_000 + (random >> 48) as i64;
            }
            layers.extend(block * 100, &ys, false, &Places::default());
        }
        assert!(layers.points().len() < ROOM + 300, "{}", layers.points().len());
        layers.settle();
        assert!(layers.points().len() < 120, "{}", layers.points().len());
    }
}
