//! Decides which open gaps are slips, and of how many activations: the shortest description of all releases.
//!
//! From a few starting periods, dynamic programming gives each segment its shift. A segment that is late by d
//! costs n·ln(1 + d/μ), a slip [`SLIP`] digits, an early release that is left out [`LEFT_OUT`] digits.
//! (Lateness costs less than n·d/μ because real lateness has a heavy tail: one stall must not look like a
//! skip and an extra release.) The joined hull gives a better period, until nothing changes. The shortest
//! description wins; the one without slips takes part.

use crate::hull::{self, Point};
use crate::periodic::layers::Matters;
use crate::periodic::segment::{EARLY, LATE, LOWEST, Segment, Squares, Sums};
use crate::ratio::Ratio;
use std::f64::consts::LN_10;
use std::rc::Rc;

/// So many releases tell as much as one independent release. Measured on published release traces.
pub(crate) const KAPPA: f64 = 50.0;

/// Digits that a slip costs, and a release that is left out.
const SLIP: f64 = 0.5;
const LEFT_OUT: f64 = 3.0;

/// With a greater mean lateness, in periods, slips are meaningless.
const MOST_LATE: f64 = 0.6;

/// A release is left out only if it is lower than the next ones by this many times their spacing.
const CLEAR: f64 = 10.0;

/// Known arrivals whose mean lateness is below the period divided by this are on a grid, without noise.
const GRID: f64 = 10_000.0;

/// If the lowest latenesses are spaced this many times as far as exponential ones would be, lateness hardly
/// ever comes close to zero. All releases together then tell more about the period than the lowest.
const SPARSE: f64 = 4.0;

/// Error of the period from the lowest releases, in units of their spacing over the number of releases.
/// Measured on gamma lateness.
const HULL_ERROR: f64 = 14.0;

/// Known arrivals with a greater mean lateness, in nanoseconds, do not come from the program but from the
/// scheduler's timers, whose clock may run faster or slower than ours by [`DRIFT`].
const EXACT: f64 = 2.0;
const DRIFT: f64 = 1e-6;

/// No sums of squares are used from this many releases on.
const MOST_SQUARED: i128 = 1 << 20;

/// Most rounds of improving each starting period.
const MOST_ROUNDS: usize = 8;

/// Greatest shift considered, so that indices stay in range.
const MOST_SHIFT: i64 = 1 << 38;

/// Most releases left out because they are early.
pub(crate) fn spare(releases: i64) -> usize {
    if releases < 20 { 0 } else { (releases / 1_000).clamp(1, EARLY as i64) as usize }
}

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
    /// The first release's evidence.
    base: i64,
}

impl Joined {
    pub fn new(segments: &[Segment], shifts: &[i64]) -> Joined {
        let mut joined = Joined {
            low: Vec::new(),
            floor: Vec::new(),
            high: Vec::new(),
            late: Vec::new(),
            sums: Sums::default(),
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
        thin(&mut joined.low, LOWEST);
        thin(&mut joined.floor, LOWEST);
        thin(&mut joined.high, LATE + 1);
        joined
    }

    /// Floors of all releases that can be lowest.
    pub fn floor(&self) -> &[Located] {
        if self.floor.is_empty() { &self.low } else { &self.floor }
    }

    /// Periods suggested by the lowest points: by all of them, then without the lowest, and so on.
    fn estimates(&self, count: usize) -> Vec<Ratio> {
        estimates(
            self.low.iter().map(|located| located.point).collect(),
            (self.sums.x, self.sums.count),
            count,
        )
    }

    /// The lowest points relative to a line of this slope, the lowest first.
    fn lowest(&self, period: f64) -> Vec<Located> {
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

/// The slope of the hull's edge at the mean index; then that without the point whose removal raises the hull
/// there most, and so on.
fn estimates(mut points: Vec<Point>, (sum_x, releases): (i128, i64), count: usize) -> Vec<Ratio> {
    let mean = sum_x as f64 / releases as f64;
    let middle =
        |points: &[Point]| middle_edge(&hull::lower(points.iter().copied()), sum_x, i128::from(releases));
    let base = points.first().map_or(0, |first| first.y);
    let height = |points: &[Point]| {
        middle(points).map_or(f64::NEG_INFINITY, |[a, b]| {
            (a.y - base) as f64 + (mean - a.x as f64) * ((b.y - a.y) as f64 / (b.x - a.x) as f64)
        })
    };
    let mut found = Vec::new();
    for _ in 0..count {
        let Some(edge) = middle(&points) else { break };
        found.extend(slope(edge).filter(|slope| !found.contains(slope)));
        let [mut left, mut right] = [points.clone(), points];
        left.retain(|point| *point != edge[0]);
        right.retain(|point| *point != edge[1]);
        points = if height(&left) >= height(&right) { left } else { right };
    }
    found
}

/// The edge of a hull at the mean index, `sum / count`.
fn middle_edge(hull: &[Point], sum: i128, count: i128) -> Option<[Point; 2]> {
    let edge = hull.windows(2).find(|edge| sum <= i128::from(edge[1].x) * count && edge[1].x > edge[0].x)?;
    Some([edge[0], edge[1]])
}

/// The slope of an edge, an estimate of the period. `None` unless it is above zero.
fn slope([a, b]: [Point; 2]) -> Option<Ratio> {
    let slope = Ratio::new(i128::from(b.y) - i128::from(a.y), i128::from(b.x) - i128::from(a.x))?;
    slope.is_positive().then_some(slope)
}

/// Mean distance of releases in the longest segment: long silences and slips lie between segments.
pub(crate) fn mean_gap(segments: &[Segment]) -> f64 {
    let points = longest(segments).map_or(&[][..], |at| segments[at].low.points());
    match points {
        [first, .., last] => (last.y - first.y) as f64 / (last.x - first.x).max(1) as f64,
        _ => 0.0,
    }
}

/// The segment with the most releases; of equals the first.
fn longest(segments: &[Segment]) -> Option<usize> {
    (0..segments.len())
        .reduce(|best, at| if segments[at].sums.count > segments[best].sums.count { at } else { best })
}

/// The releases joined with given shifts, without those left out: the basis for choosing a period.
pub(crate) struct Evidence {
    pub joined: Rc<Joined>,
    /// One for each segment.
    pub shifts: Vec<i64>,
    /// Releases left out because they are early, or are not releases.
    pub left_out: Vec<Located>,
    pub estimate: Ratio,
    pub count: f64,
    pub mean_lateness: f64,
    from_middle: Vec<f64>,
    above: Vec<f64>,
    lowest: f64,
    length: f64,
    /// How far above the estimate the period is expected, if all releases tell more than the lowest.
    expected: Option<f64>,
    /// Possible error of the period because arrivals follow another clock.
    drift: f64,
}

impl Evidence {
    /// n · D(T) / μ: by how much exponential latenesses become less likely with this period.
    pub fn cost(&self, period: Ratio) -> f64 {
        let tilt = period.difference(self.estimate);
        let tilt = tilt - tilt.clamp(-self.drift, self.drift);
        if let Some(expected) = self.expected {
            // The same as if the lowest releases had that period.
            return self.count * (tilt - expected).abs() * self.count / (2.0 * self.mean_lateness);
        }
        let tilted = self
            .above
            .iter()
            .zip(&self.from_middle)
            .map(|(above, x)| above - tilt * x)
            .fold(f64::INFINITY, f64::min);
        let drop = self.lowest - tilted;
        match self.mean_lateness {
            lateness if lateness > 0.0 => self.count * drop / lateness,
            _ if drop <= 0.0 => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// The expected period, in whole nanoseconds.
    pub fn nearest(&self) -> i128 {
        let up = self.expected.unwrap_or(0.0).round_ties_even() as i128;
        self.estimate.rounded_half_even() + up
    }

    /// Whether a period that is wrong by this many nanoseconds would cost anything.
    pub fn tells_apart(&self, error: f64) -> bool {
        self.count * self.count * error > 0.01 * self.mean_lateness
    }
}

/// By how much the period from least squares over all releases exceeds the estimate, and the variance of
/// that. `None` for very many releases, where the sums would not be exact; the lowest ones then tell more
/// anyway.
fn rise_of_all(joined: &Joined, left_out: &[Located], estimate: Ratio) -> Option<(f64, f64)> {
    let count = i128::from(joined.sums.count) - left_out.len() as i128;
    let whole = estimate.rounded_half_even();
    let (mut x, mut y, mut squares) = (joined.sums.x, joined.sums.y, joined.sums.squares);
    for Located { point, .. } in left_out {
        x -= i128::from(point.x);
        y -= i128::from(point.y);
        let of_point = Squares::of(point.x, point.y);
        squares.append(Squares { xx: -of_point.xx, xy: -of_point.xy, yy: -of_point.yy });
    }
    if count >= MOST_SQUARED || x >= 1 << 60 {
        return None;
    }
    // Subtract base and whole periods from the times: what is left is small.
    let base = i128::from(joined.base);
    let product = |a: i128, b: i128| a.wrapping_mul(b);
    let xy = squares.xy.wrapping_sub(product(base, x));
    let yy = squares.yy.wrapping_sub(product(2 * base, y)).wrapping_add(product(product(base, base), count));
    let z = y - count * base - product(whole, x);
    let xz = xy.wrapping_sub(product(whole, squares.xx));
    let zz = yy.wrapping_sub(product(2 * whole, xy)).wrapping_add(product(product(whole, whole), squares.xx));
    let centred = |sum: i128, a: i128, b: i128| {
        Some((sum.checked_mul(count)?.checked_sub(a.checked_mul(b)?)?) as f64 / count as f64)
    };
    let (xx, xz, zz) = (centred(squares.xx, x, x)?, centred(xz, x, z)?, centred(zz, z, z)?);
    let slope = xz / xx;
    let variance = (zz - xz * slope) / count as f64 / xx;
    let known = Ratio::whole(whole).difference(estimate);
    Some((known + slope, variance)).filter(|(rise, variance)| rise.is_finite() && *variance > 0.0)
}

/// What all hypotheses have in common.
struct Resolver<'a> {
    segments: &'a [Segment],
    count: i64,
    /// Whether all arrivals are known.
    knows_arrivals: bool,
    /// Latest bounds of what is known not to be releases.
    not_releases: &'a [i64],
    best: Option<Evidence>,
    seen: Vec<Vec<i64>>,
}

/// The evidence with the shortest description. `None` if nothing rises.
pub(crate) fn resolve(segments: &[Segment], knows_arrivals: bool, not_releases: &[i64]) -> Option<Evidence> {
    let count = segments.iter().map(|segment| segment.sums.count).sum();
    let mut resolver =
        Resolver { segments, count, knows_arrivals, not_releases, best: None, seen: Vec::new() };
    resolver.consider(vec![0; segments.len()]);
    if let Some(longest) = longest(segments).filter(|_| segments.len() > 1) {
        let longest = &segments[longest];
        let starts =
            estimates(longest.low.points().to_vec(), (longest.sums.x, longest.sums.count), spare(count) + 1);
        for period in starts.iter().map(|slope| slope.as_f64()).chain([mean_gap(segments)]) {
            let mut period = Some(period).filter(|period| *period > 0.0);
            for _ in 0..MOST_ROUNDS {
                let Some(from) = period else { break };
                let shifts = resolver.assign(from);
                if resolver.seen.contains(&shifts) {
                    break;
                }
                period = resolver.consider(shifts);
            }
        }
    }
    resolver.best
}

impl Resolver<'_> {
    /// Considers the joined segments with 0, 1, … of the lowest releases left out; returns the period that
    /// they suggest.
    fn consider(&mut self, shifts: Vec<i64>) -> Option<f64> {
        let joined = Rc::new(Joined::new(self.segments, &shifts));
        let not_releases: Vec<Located> =
            joined.low.iter().filter(|low| self.not_releases.contains(&low.point.y)).copied().collect();
        let periods = joined.estimates(spare(self.count) + 1);
        for period in &periods {
            let mut order = joined.lowest(period.as_f64());
            order.retain(|low| !not_releases.iter().any(|other| other.is(low)));
            for out in 0..=spare(self.count).min(order.len()) {
                if let Some(evidence) = self.evidence(&joined, &shifts, *period, &order[..out], &not_releases)
                {
                    if self.best.as_ref().is_none_or(|best| evidence.length < best.length) {
                        self.best = Some(evidence);
                    }
                }
            }
        }
        self.seen.push(shifts);
        periods.first().map(|period| period.as_f64())
    }

    /// `None` if not credible.
    fn evidence(
        &self,
        joined: &Rc<Joined>,
        shifts: &[i64],
        estimate: Ratio,
        left_out: &[Located],
        not_releases: &[Located],
    ) -> Option<Evidence> {
        let early = left_out.len();
        let left_out = [left_out, not_releases].concat();
        let count = i128::from(self.count) - left_out.len() as i128;
        let points: Vec<Point> = joined
            .low
            .iter()
            .filter(|low| !left_out.iter().any(|out| out.is(low)))
            .map(|located| located.point)
            .collect();
        let sum_x = joined.sums.x - left_out.iter().map(|out| i128::from(out.point.x)).sum::<i128>();
        let sum_y = joined.sums.y - left_out.iter().map(|out| i128::from(out.point.y)).sum::<i128>();
        if count < 3 {
            return None;
        }
        let estimate = if left_out.is_empty() {
            estimate
        } else {
            middle_edge(&hull::lower(points.iter().copied()), sum_x, count).and_then(slope)?
        };
        let base = joined.base;
        let above_line = |point: &Point| {
            let (x, y) = (i128::from(point.x), i128::from(point.y) - i128::from(base));
            (y * estimate.denominator() - x * estimate.numerator()) as f64 / estimate.denominator() as f64
        };
        let above: Vec<f64> = points.iter().map(above_line).collect();
        let from_middle =
            points.iter().map(|point| (i128::from(point.x) * count - sum_x) as f64 / count as f64).collect();
        let lowest = above.iter().copied().fold(f64::INFINITY, f64::min);
        let y = sum_y - count * i128::from(base);
        let mean = match (y.checked_mul(estimate.denominator()), sum_x.checked_mul(estimate.numerator())) {
            (Some(y), Some(x)) => (y - x) as f64 / (estimate.denominator() as f64 * count as f64),
            // Years of observation: the rounding of floats no longer matters.
            _ => y as f64 / count as f64 - estimate.as_f64() * (sum_x as f64 / count as f64),
        };
        let mean_lateness = (mean - lowest).max(0.0);
        let period = estimate.as_f64();
        let slips = shifts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if slips > 0 && mean_lateness > MOST_LATE * period {
            return None;
        }
        let depth = lowest
            - left_out[..early].iter().map(|out| above_line(&out.point)).fold(f64::NEG_INFINITY, f64::max);
        let mut sorted = above.clone();
        sorted.sort_by(f64::total_cmp);
        let apart = sorted[(EARLY - early).min(sorted.len() - 1)] - lowest;
        if depth < (CLEAR * apart).max(mean_lateness.min(period / 20.0)) {
            return None;
        }
        let spacing = (EARLY > early).then(|| apart / (EARLY - early) as f64);
        let expected = spacing
            .filter(|spacing| spacing * count as f64 > SPARSE * mean_lateness)
            .and_then(|spacing| {
                rise_of_all(joined, &left_out, estimate).map(|(rise, variance)| (spacing, rise, variance))
            })
            .map(|(spacing, rise, variance)| {
                let of_lowest = HULL_ERROR * spacing / count as f64;
                rise * of_lowest * of_lowest / (of_lowest * of_lowest + variance)
            });
        let drift = if self.knows_arrivals && mean_lateness > EXACT { period * DRIFT } else { 0.0 };
        let digit = self.digit(mean_lateness, period);
        let length = count as f64 * mean_lateness.max(period / GRID).ln()
            + digit * (SLIP * slips as f64 + LEFT_OUT * early as f64);
        let (joined, shifts, count) = (Rc::clone(joined), shifts.to_vec(), count as f64);
        Some(Evidence {
            joined,
            shifts,
            left_out,
            estimate,
            count,
            mean_lateness,
            from_middle,
            above,
            lowest,
            length,
            expected,
            drift,
        })
    }

    /// Cost of a decimal digit.
    fn digit(&self, mean_lateness: f64, period: f64) -> f64 {
        let is_on_grid = self.knows_arrivals && mean_lateness * GRID <= period;
        if is_on_grid { LN_10 } else { LN_10 * KAPPA }
    }

    /// The cheapest shift of each segment for this period, by dynamic programming.
    fn assign(&self, period: f64) -> Vec<i64> {
        let base =
            self.segments.first().and_then(|first| first.low.points().first()).map_or(0, |point| point.y);
        let mut start = 0;
        let mut lowest: Vec<(i64, Vec<f64>)> = Vec::with_capacity(self.segments.len());
        for segment in self.segments {
            let phase = |point: &Point| (point.y - base) as f64 - period * (point.x + start) as f64;
            let mut phases: Vec<f64> = segment.low.points().iter().map(phase).collect();
            phases.sort_by(f64::total_cmp);
            phases.truncate(EARLY + 1);
            lowest.push((start, phases));
            start += segment.span;
        }
        let longest = longest(self.segments).unwrap_or(0);
        let (start, low) = &lowest[longest];
        let segment = &self.segments[longest];
        let apart = low
            .windows(2)
            .take(spare(self.count))
            .filter(|pair| pair[1] - pair[0] > period / 8.0)
            .map(|pair| pair[1]);
        let mut best = (f64::INFINITY, vec![0; self.segments.len()]);
        for line in low.first().copied().into_iter().chain(apart) {
            let sum = (segment.sums.y - i128::from(segment.sums.count) * i128::from(base)) as f64
                - period * (segment.sums.x + i128::from(segment.sums.count) * i128::from(*start)) as f64;
            let lateness = sum / segment.sums.count as f64 - line;
            let found = self.cheapest(&lowest, period, line, lateness);
            if found.0 < best.0 {
                best = found;
            }
        }
        best.1.iter().map(|shift| shift - best.1[0]).collect()
    }

    /// The cheapest shifts relative to this line, and their cost.
    fn cheapest(&self, lowest: &[(i64, Vec<f64>)], period: f64, line: f64, lateness: f64) -> (f64, Vec<i64>) {
        let spread = lateness.max(period / 1_000.0);
        let digit = self.digit(lateness, period);
        let places = lowest.iter().flat_map(|(_, phases)| phases.iter().take(2));
        let mut shifts: Vec<i64> =
            places.map(|phase| ((phase - line) / period).round_ties_even() as i64).chain([0]).collect();
        shifts.retain(|shift| (-MOST_SHIFT..=MOST_SHIFT).contains(shift));
        shifts.sort_unstable();
        shifts.dedup();
        let mut cost = vec![0.0; shifts.len()];
        let mut back: Vec<Vec<usize>> = Vec::with_capacity(lowest.len());
        let most_out = spare(self.count);
        for (number, (segment, (_, phases))) in self.segments.iter().zip(lowest).enumerate() {
            let cheapest = least(&cost);
            let change = cost[cheapest] + if number > 0 { SLIP * digit } else { 0.0 };
            back.push((0..shifts.len()).map(|at| if cost[at] <= change { at } else { cheapest }).collect());
            for (cost, shift) in cost.iter_mut().zip(&shifts) {
                let above = |phase: f64| phase - line - *shift as f64 * period;
                let out = phases.iter().filter(|phase| above(**phase) < -period / 4.0).count();
                let late = phases.get(out).map_or(0.0, |phase| (above(*phase).abs() / spread).ln_1p());
                let left_out = if out <= most_out { out as f64 * LEFT_OUT * digit } else { f64::INFINITY };
                *cost = cost.min(change) + (segment.sums.count as f64 * late + left_out);
            }
        }
        let mut at = least(&cost);
        let total = cost[at];
        let mut path = vec![shifts[at]];
        for step in back[1..].iter().rev() {
            at = step[at];
            path.push(shifts[at]);
        }
        path.reverse();
        (total, path)
    }
}

/// The index of the least cost; of equals the first.
fn least(cost: &[f64]) -> usize {
    (0..cost.len()).reduce(|best, at| if cost[at] < cost[best] { at } else { best }).unwrap_or(0)
}
