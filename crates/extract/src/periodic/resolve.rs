//! Decides which open gaps are slips, and of how many activations: the shortest description of all releases.
//!
//! From a few starting periods, dynamic programming gives each segment its shift. A segment that is late by d
//! costs n·ln(1 + d/μ), a slip [`SLIP`] digits ([`AGREED`] where the releases around it agree on it), an
//! early release that is left out [`LEFT_OUT`] digits. (Lateness costs less than n·d/μ because real
//! lateness has a heavy tail: one stall must not look like a skip and an extra release.) The joined hull
//! gives a better period, until nothing changes. The shortest description wins; the one without slips takes
//! part.

use crate::hull::{self, Point};
use crate::periodic::joined::{Joined, Located, MOST_DISTRUSTED, NEXT, estimates_of, middle_edge, slope};
use crate::periodic::score::REACH;
use crate::periodic::segment::{EARLY, LOWEST, Segment, Squares};
use crate::ratio::Ratio;
use punctual_model::FEWEST_TYPICAL;
use std::f64::consts::LN_10;
use std::rc::Rc;

/// So many releases tell as much as one independent release. Measured on published release traces.
pub(crate) const KAPPA: f64 = 50.0;

/// Digits that a slip costs, and a release that is left out.
const SLIP: f64 = 0.5;
/// A slip that the 16 releases around it agree on, or a part of one that they agree on a few releases later.
/// It is then certain although few releases follow.
const AGREED: f64 = 0.1;
/// One more, fewer than 16 releases after another: that some were skipped is certain, only not after which.
const NEAR: f64 = 0.02;
const LEFT_OUT: f64 = 3.0;

/// Digits that it costs to distrust a release, which may belong to the activation before: late by nearly a
/// period it looks early, where activations were skipped.
const DISTRUSTED: f64 = 1.0;

/// With a greater mean lateness, in periods, slips would explain noise: a drifting stream always comes close
/// to some grid of its own. Early releases may add to it, which are distrusted only later: until then it may
/// be greater, if it is far less in the end.
const MOST_LATE: f64 = 0.25;
const TENTATIVE: f64 = 0.6;
const FAR_LESS: f64 = 0.5;

/// A release is left out only if it is lower than the next ones by this many times their spacing.
const CLEAR: f64 = 10.0;

/// Known arrivals whose mean lateness is below the period divided by this are on a grid, without noise.
const GRID: f64 = 10_000.0;

/// One unknown arrival among so many known ones does not take them from the grid. It counts as late by less
/// than a period.
const FEWEST_KNOWN: i64 = 1_000;

/// If the lowest latenesses are spaced this many times as far as exponential ones would be, lateness hardly
/// ever comes close to zero. All releases together then tell more about the period than the lowest.
const SPARSE: f64 = 4.0;

/// If they are spaced so much closer, most releases are far less late than the mean: stalls make it. Lateness
/// then counts as if the lowest were spaced as far as those of this many times fewer exponential ones.
const DENSE: f64 = 4.0;

/// A line that is too low by the spacing of the lowest releases is less likely by a factor of e. Where
/// lateness hardly ever comes close to zero, that is at most so many times what it would be for exponential
/// latenesses.
const MOST_SPARSE: f64 = 10.0;

/// How much less likely than the best, as a logarithm, a period is that has to be reckoned with; the same
/// with least squares, and where the lowest latenesses are spaced so many times as far as exponential ones,
/// but without.
const SLACK: f64 = 1.0;
const SLACK_OF_ALL: f64 = 2.0;
const SLACK_OF_SPARSE: f64 = 3.0;
const SPARSE_FOR_LOWEST: f64 = 3.0;

/// The parts of a run in which the lowest releases are compared, and how many of them may differ.
const PARTS: usize = 6;
const UNEVEN: usize = 2;

/// If more parts than that have none of the lowest releases, they count so many times the highest of others,
/// of which there must be so many.
const EMPTY: f64 = 8.0;
const FEWEST_PARTS: usize = 3;

/// Powers of two of the slopes for which the lowest releases are looked at.
const TILTS: u32 = 11;

/// Error of the period from the lowest releases, in units of their spacing over the number of releases.
/// Measured on gamma lateness.
const HULL_ERROR: f64 = 14.0;

/// Known arrivals with a greater mean lateness, in nanoseconds, do not come from the program but from the
/// scheduler's timers, whose clock may run faster or slower than ours by [`DRIFT`].
const EXACT: f64 = 2.0;
const DRIFT: f64 = 1e-6;

/// Fewest releases of which more early ones are distrusted than may be left out.
const FEWEST_EARLY: i64 = 100;

/// No sums of squares are used from this many releases on.
const MOST_SQUARED: i128 = 1 << 20;

/// Most rounds of improving each starting period.
const MOST_ROUNDS: usize = 8;

/// Greatest shift considered, so that indices stay in range.
const MOST_SHIFT: i64 = 1 << 38;

/// Most releases left out because they are early.
pub(crate) fn spare(releases: i64) -> usize {
    if releases < FEWEST_TYPICAL as i64 { 0 } else { (releases / 1_000).clamp(1, EARLY as i64) as usize }
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
    /// The same without what stalls add to it.
    pub usual_lateness: f64,
    from_middle: Vec<f64>,
    above: Vec<f64>,
    least: f64,
    /// Of the description.
    pub length: f64,
    /// Slips with too great a mean lateness, but for releases that may turn out to be early.
    is_tentative: bool,
    /// What all releases tell, if that is more than what the lowest do.
    pub all: Option<All>,
    /// How much lower than the lowest releases a line is less likely by a factor of e.
    grain: f64,
    /// How many of the lowest releases are known for any slope; none where some are distrusted.
    known: usize,
    /// Possible error of the period because arrivals follow another clock.
    drift: f64,
}

/// What the line of least squares through all releases tells about the period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct All {
    /// How far above the estimate its slope is, and the variance of that.
    rise: f64,
    variance: f64,
    /// How far above the estimate the period is expected, with what the lowest releases tell.
    expected: f64,
}

impl Evidence {
    /// The releases, their shifts, and the estimate of the period.
    fn joined_by(&self) -> (Rc<Joined>, Vec<i64>, Ratio) {
        (Rc::clone(&self.joined), self.shifts.clone(), self.estimate)
    }

    /// n · D(T) / μ: by how much exponential latenesses become less likely with this period.
    pub fn cost(&self, period: Ratio) -> f64 {
        if let Some(All { expected, .. }) = self.all {
            // The same as if the lowest releases had that period.
            return self.count * (self.tilt(period) - expected).abs() * self.count
                / (2.0 * self.mean_lateness);
        }
        let drop = self.drop(period);
        match self.usual_lateness {
            lateness if lateness > 0.0 => self.count * drop / lateness,
            _ if drop <= 0.0 => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// D(T): how much lower a line of this slope has to lie in the middle to stay below all releases.
    pub fn drop(&self, period: Ratio) -> f64 {
        let tilt = self.tilt(period);
        let tilted = self
            .above
            .iter()
            .zip(&self.from_middle)
            .map(|(above, x)| above - tilt * x)
            .fold(f64::INFINITY, f64::min);
        self.least - tilted
    }

    /// How much steeper than the estimate a period is, beyond what clocks may differ.
    fn tilt(&self, period: Ratio) -> f64 {
        let tilt = period.difference(self.estimate);
        tilt - tilt.clamp(-self.drift, self.drift)
    }

    /// The expected period, in whole nanoseconds.
    pub fn nearest(&self) -> i128 {
        let up = self.all.map_or(0.0, |all| all.expected).round_ties_even() as i128;
        self.estimate.rounded_half_even() + up
    }

    /// By how much this period makes the releases less likely, as a logarithm: how it fits the lowest ones,
    /// and all of them.
    pub fn mismatch(&self, period: Ratio) -> f64 {
        let drop = self.drop(period);
        let low = match self.grain {
            grain if grain > 0.0 => drop / grain,
            _ if drop <= 0.0 => 0.0,
            _ => f64::INFINITY,
        };
        let of_all = self.all.map_or(0.0, |all| {
            let off = self.tilt(period) - all.rise;
            off * off / (2.0 * all.variance)
        });
        low + of_all
    }

    /// How much less likely than the best, as a logarithm, a period is that has to be reckoned with: more
    /// where the lowest releases tell little.
    pub fn slack(&self) -> f64 {
        if self.all.is_some() {
            SLACK_OF_ALL
        } else if self.grain * self.count > SPARSE_FOR_LOWEST * self.usual_lateness {
            SLACK_OF_SPARSE
        } else {
            SLACK
        }
    }

    /// By how much the lines of two periods drift apart during the run.
    pub fn drift_apart(&self, period: Ratio, other: Ratio) -> f64 {
        self.count * (self.tilt(period) - self.tilt(other)).abs()
    }

    /// By how much the least lateness differs between [`PARTS`] parts of the run with this period, for all we
    /// know: in [`UNEVEN`] parts it may be greater.
    pub fn unevenness(&self, period: Ratio) -> f64 {
        if self.known == 0 {
            return f64::INFINITY;
        }
        let tilt = self.tilt(period);
        let heights: Vec<f64> =
            self.above.iter().zip(&self.from_middle).map(|(above, x)| above - tilt * x).collect();
        let mut is_low = vec![false; heights.len()];
        // Which releases are known does not depend on the pieces for the lowest relative to some line.
        let step = self.grain.max(1.0) / self.count;
        let steps = (0..TILTS).flat_map(|power| [step, -step].map(|step| step * f64::from(1 << power)));
        for tilt in [0.0].into_iter().chain(steps) {
            let tilted: Vec<f64> =
                heights.iter().zip(&self.from_middle).map(|(height, x)| height - tilt * x).collect();
            let mut sorted = tilted.clone();
            sorted.sort_by(f64::total_cmp);
            let next = sorted[self.known.min(sorted.len()) - 1];
            is_low.iter_mut().zip(&tilted).for_each(|(is_low, height)| *is_low |= *height < next);
        }
        let low = || (0..heights.len()).filter(|at| is_low[*at]);
        let (first, last) = match (low().next(), low().next_back()) {
            (Some(first), Some(last)) if last > first => (self.from_middle[first], self.from_middle[last]),
            _ => return f64::INFINITY,
        };
        let mut least = [f64::INFINITY; PARTS];
        for at in low() {
            let part = ((self.from_middle[at] - first) / (last - first) * PARTS as f64) as usize;
            let least = &mut least[part.min(PARTS - 1)];
            *least = least.min(heights[at]);
        }
        least.sort_by(f64::total_cmp);
        // Parts without any lie higher than those with some.
        let some = least.iter().filter(|least| least.is_finite()).count();
        if some < FEWEST_PARTS {
            return f64::INFINITY;
        }
        let highest = least[some - 1];
        (least[PARTS - 1 - UNEVEN] - least[0]).min(EMPTY * (highest - least[0]))
    }

    /// Whether a period that is wrong by this many nanoseconds would cost anything.
    pub fn tells_apart(&self, error: f64) -> bool {
        self.count * self.count * error > 0.01 * self.usual_lateness
    }
}

/// By how much the period from least squares over all releases exceeds the estimate, and the variance of
/// that. `None` for very many releases, where the sums would not be exact; the lowest ones then tell more
/// anyway. `None` too if releases are farther from the line than they are late on average: stalls then decide
/// where it lies.
fn rise_of_all(
    joined: &Joined,
    set_aside: &[Located],
    estimate: Ratio,
    mean_lateness: f64,
) -> Option<(f64, f64)> {
    let count = i128::from(joined.sums.count) - set_aside.len() as i128;
    let whole = estimate.rounded_half_even();
    let (mut x, mut y, mut squares) = (joined.sums.x, joined.sums.y, joined.sums.squares);
    for Located { point, .. } in set_aside {
        x -= i128::from(point.x);
        y -= i128::from(point.y);
        let squared = Squares::of_point(point.x, point.y);
        squares.append(Squares { xx: -squared.xx, xy: -squared.xy, yy: -squared.yy });
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
    let squared = (zz - xz * slope) / count as f64;
    let rise = Ratio::whole(whole).difference(estimate) + slope;
    let is_usable = rise.is_finite() && squared > 0.0 && squared <= mean_lateness * mean_lateness;
    is_usable.then_some((rise, squared / xx))
}

/// What all hypotheses have in common.
struct Resolver<'a> {
    segments: &'a [Segment],
    count: i64,
    /// How many arrivals are not known.
    unknown: i64,
    /// Latest bounds of what is known not to be releases.
    not_releases: &'a [i64],
    /// Latest bounds of releases during which a signal came: it explains why they are early.
    signalled: &'a [i64],
    best: Option<Evidence>,
    /// The shortest description with slips and too great a mean lateness, unless it is less without early
    /// releases.
    tentative: Option<Evidence>,
    /// Whether releases may be distrusted.
    is_distrusting: bool,
    /// Greatest mean lateness with slips, in periods.
    most_late: f64,
    /// Most early releases that the choice of the period does not look at.
    most_early: usize,
    seen: Vec<Vec<i64>>,
}

/// The evidence with the shortest description. `None` if nothing rises.
pub(crate) fn resolve(
    segments: &[Segment],
    unknown: i64,
    not_releases: &[i64],
    signalled: &[i64],
) -> Option<Evidence> {
    let count = segments.iter().map(|segment| segment.sums.count).sum();
    let mut resolver = Resolver {
        segments,
        count,
        unknown,
        not_releases,
        signalled,
        best: None,
        tentative: None,
        is_distrusting: false,
        most_late: TENTATIVE,
        most_early: spare(count),
        seen: Vec::new(),
    };
    resolver.consider(vec![0; segments.len()]);
    if let Some(longest) = longest(segments).filter(|_| segments.len() > 1) {
        let longest = &segments[longest];
        let starts = estimates_of(longest, spare(count) + 1);
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
    resolver.distrust();
    resolver.distrust_early();
    resolver.best
}

impl Resolver<'_> {
    /// Considers the joined segments with 0, 1, … of the lowest releases left out; returns the period that
    /// they suggest.
    fn consider(&mut self, shifts: Vec<i64>) -> Option<f64> {
        let joined = Rc::new(Joined::new(self.segments, &shifts));
        let not_releases = self.not_releases_of(&joined);
        let periods = joined.estimates(spare(self.count) + 1);
        for period in &periods {
            let mut order = joined.lowest(period.as_f64());
            order.retain(|low| !not_releases.iter().any(|other| other.is(low)));
            for out in 0..=spare(self.count).min(order.len()) {
                self.add(self.evidence(&joined, &shifts, *period, &order[..out], &not_releases));
            }
        }
        self.seen.push(shifts);
        periods.first().map(|period| period.as_f64())
    }

    fn not_releases_of(&self, joined: &Joined) -> Vec<Located> {
        joined.low.iter().filter(|low| self.not_releases.contains(&low.point.y)).copied().collect()
    }

    /// Distrusts the lowest releases of the best evidence, as far as that shortens the description. Only
    /// after the shifts are known, or any sporadic stream would have slips.
    fn distrust(&mut self) {
        self.is_distrusting = true;
        // More early ones than may be left out are covered, but do not tilt the hull.
        self.most_early = MOST_DISTRUSTED;
        let tentative = self.tentative.take();
        if let Some(best) = self.best.as_ref().filter(|best| best.joined.has_slips) {
            let (joined, shifts, estimate) = best.joined_by();
            self.most_late = MOST_LATE;
            self.distrust_lowest(&joined, &shifts, estimate);
        }
        let is_shorter = |found: &&Evidence| self.best.as_ref().is_none_or(|best| found.length < best.length);
        if let Some(found) = tentative.as_ref().filter(is_shorter) {
            let (joined, shifts, estimate) = found.joined_by();
            self.most_late = MOST_LATE * FAR_LESS;
            self.distrust_lowest(&joined, &shifts, estimate);
        }
        self.is_distrusting = false;
        self.most_late = MOST_LATE;
    }

    fn distrust_lowest(&mut self, joined: &Rc<Joined>, shifts: &[i64], estimate: Ratio) {
        let not_releases = self.not_releases_of(joined);
        let mut lowest = Vec::new();
        for gone in joined.lowering(&not_releases) {
            lowest.extend(gone);
            self.add(self.evidence(joined, shifts, estimate, &lowest, &not_releases));
        }
    }

    /// Distrusts more early releases than may be left out, if nothing was skipped: they would tilt the hull.
    fn distrust_early(&mut self) {
        let Some(best) = self.best.as_ref().filter(|best| !best.joined.has_slips) else { return };
        let fewest = spare(self.count) + 1;
        if self.count < FEWEST_EARLY || fewest >= LOWEST {
            return;
        }
        let (joined, shifts, _) = best.joined_by();
        let not_releases = self.not_releases_of(&joined);
        // Of the lowest, so many are known, whatever is left out.
        self.most_early = LOWEST.saturating_sub(self.not_releases.len() + 1);
        for period in joined.estimates(LOWEST) {
            let mut order = joined.lowest(period.as_f64());
            order.retain(|low| !not_releases.iter().any(|other| other.is(low)));
            for out in fewest..=self.most_early.min(order.len()) {
                self.add(self.evidence(&joined, &shifts, period, &order[..out], &not_releases));
            }
        }
    }

    fn add(&mut self, evidence: Option<Evidence>) {
        if let Some(evidence) = evidence {
            let shortest = if evidence.is_tentative { &mut self.tentative } else { &mut self.best };
            if shortest.as_ref().is_none_or(|shortest| evidence.length < shortest.length) {
                *shortest = Some(evidence);
            }
        }
    }

    /// The evidence without the lowest releases. `None` if not credible.
    fn evidence(
        &self,
        joined: &Rc<Joined>,
        shifts: &[i64],
        estimate: Ratio,
        lowest: &[Located],
        not_releases: &[Located],
    ) -> Option<Evidence> {
        let set_aside = [lowest, not_releases].concat();
        let count = i128::from(self.count) - set_aside.len() as i128;
        let points: Vec<Point> = joined
            .low
            .iter()
            .filter(|low| !set_aside.iter().any(|out| out.is(low)))
            .map(|located| located.point)
            .collect();
        let sum_x = joined.sums.x - set_aside.iter().map(|out| i128::from(out.point.x)).sum::<i128>();
        let sum_y = joined.sums.y - set_aside.iter().map(|out| i128::from(out.point.y)).sum::<i128>();
        if count < 3 {
            return None;
        }
        let estimate = if set_aside.is_empty() {
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
        let least = above.iter().copied().fold(f64::INFINITY, f64::min);
        let y = sum_y - count * i128::from(base);
        let mean = match (y.checked_mul(estimate.denominator()), sum_x.checked_mul(estimate.numerator())) {
            (Some(y), Some(x)) => (y - x) as f64 / (estimate.denominator() as f64 * count as f64),
            // Years of observation: the rounding of floats no longer matters.
            _ => y as f64 / count as f64 - estimate.as_f64() * (sum_x as f64 / count as f64),
        };
        let mean_lateness = (mean - least).max(0.0);
        let period = estimate.as_f64();
        let (slips, slip_digits) = self.slips(shifts);
        if slips > 0 && mean_lateness > self.most_late * period {
            return None;
        }
        let mut sorted = above.clone();
        sorted.sort_by(f64::total_cmp);
        // The spacing of so many next ones tells how much the lowest say.
        let others = if self.is_distrusting { NEXT } else { EARLY.saturating_sub(lowest.len()) };
        let apart = sorted[others.min(sorted.len() - 1)] - least;
        // Less than a nanosecond is not early: where all arrivals are exact it would pay to leave one out.
        let clear = (CLEAR * apart).max(mean_lateness.min(period / 20.0)).max(1.0);
        let is_clear = |low: &&Located| least - above_line(&low.point) >= clear;
        let mut left_out: Vec<Located> = lowest.iter().filter(is_clear).copied().collect();
        let (early, distrusted) = (left_out.len(), lowest.len() - left_out.len());
        if early > self.most_early || distrusted > 0 && !self.is_distrusting {
            return None;
        }
        // Among releases that are late by any amount, none is early.
        if early > spare(self.count) && mean_lateness > MOST_LATE * period {
            return None;
        }
        let spacing = (others > 0).then(|| apart / others as f64);
        let all = spacing
            .filter(|spacing| spacing * count as f64 > SPARSE * mean_lateness)
            .and_then(|spacing| {
                rise_of_all(joined, &set_aside, estimate, mean_lateness)
                    .map(|(rise, variance)| (spacing, rise, variance))
            })
            .map(|(spacing, rise, variance)| {
                let of_lowest = HULL_ERROR * spacing / count as f64;
                let expected = rise * of_lowest * of_lowest / (of_lowest * of_lowest + variance);
                All { rise, variance, expected }
            });
        let usual_lateness = match spacing {
            Some(spacing) if spacing > 0.0 => mean_lateness.min(DENSE * spacing * count as f64),
            _ => mean_lateness,
        };
        let known = if self.is_distrusting { 0 } else { LOWEST.saturating_sub(set_aside.len()) };
        let least_grain = usual_lateness / count as f64;
        let grain = spacing.unwrap_or(0.0).min(MOST_SPARSE * least_grain).max(least_grain);
        let drift = if self.unknown == 0 && mean_lateness > EXACT { period * DRIFT } else { 0.0 };
        let digit = self.digit(mean_lateness, period);
        let by_reason = left_out.iter().filter(|out| self.signalled.contains(&out.point.y)).count();
        let length = count as f64 * mean_lateness.max(period / GRID).ln()
            + digit * (slip_digits + LEFT_OUT * (early - by_reason) as f64 + DISTRUSTED * distrusted as f64);
        if early > spare(self.count) {
            // Some would have to stay, and move the offset as much as all of them.
            left_out.clear();
        }
        left_out.extend(not_releases);
        let (joined, shifts, count) = (Rc::clone(joined), shifts.to_vec(), count as f64);
        Some(Evidence {
            joined,
            shifts,
            left_out,
            estimate,
            count,
            mean_lateness,
            usual_lateness,
            from_middle,
            above,
            least,
            length,
            is_tentative: slips > 0 && mean_lateness > MOST_LATE * period,
            all,
            grain,
            known,
            drift,
        })
    }

    /// How many slips these shifts are, and their price in digits.
    fn slips(&self, shifts: &[i64]) -> (i64, f64) {
        let inferred: i64 = self.segments.iter().map(|segment| segment.inferred).sum();
        let (mut slips, mut price, mut after_rise) = (inferred, AGREED * inferred as f64, false);
        for (at, pair) in shifts.windows(2).enumerate() {
            let rise = pair[1] - pair[0];
            if rise != 0 {
                slips += 1;
                price += self.price(at + 1, rise, after_rise);
            }
            after_rise = rise > 0;
        }
        (slips, price)
    }

    /// Digits that a slip before a segment costs; after a rise before the segment before.
    fn price(&self, at: usize, rise: i64, after_rise: bool) -> f64 {
        if rise > 0 && after_rise && self.is_short(at - 1) {
            NEAR
        } else if rise > 0 && (rise == self.segments[at].gap.shift || rise < self.agreed_soon(at)) {
            AGREED
        } else {
            SLIP
        }
    }

    /// The shift that the releases around the next gap agree on, if that is near: a part of it may be here.
    fn agreed_soon(&self, at: usize) -> i64 {
        self.segments.get(at + 1).filter(|_| self.is_short(at)).map_or(0, |next| next.gap.shift)
    }

    fn is_short(&self, at: usize) -> bool {
        self.segments[at].sums.count < 2 * REACH as i64
    }

    /// Cost of a decimal digit.
    fn digit(&self, mean_lateness: f64, period: f64) -> f64 {
        let are_known = self.unknown.saturating_mul(FEWEST_KNOWN) <= self.count;
        let most = period / GRID + period * self.unknown as f64 / self.count as f64;
        if are_known && mean_lateness <= most { LN_10 } else { LN_10 * KAPPA }
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
        // Ends without a rise before the last segment, then those with one.
        let count = shifts.len();
        let mut cost = vec![0.0; count];
        cost.resize(2 * count, f64::INFINITY);
        let mut back: Vec<Vec<usize>> = Vec::with_capacity(lowest.len());
        let most_out = spare(self.count);
        for (number, (segment, (_, phases))) in self.segments.iter().zip(lowest).enumerate() {
            let steps = if number == 0 {
                cost.iter().copied().enumerate().collect()
            } else {
                self.steps(number, &shifts, &cost, digit)
            };
            back.push(steps.iter().map(|step| step.0).collect());
            for (at, shift) in shifts.iter().enumerate() {
                let above = |phase: f64| phase - line - *shift as f64 * period;
                let out = phases.iter().filter(|phase| above(**phase) < -period / 4.0).count();
                let late = phases.get(out).map_or(0.0, |phase| (above(*phase).abs() / spread).ln_1p());
                let left_out = if out <= most_out { out as f64 * LEFT_OUT * digit } else { f64::INFINITY };
                let all = segment.sums.count as f64 * late + left_out;
                cost[at] = steps[at].1 + all;
                cost[count + at] = steps[count + at].1 + all;
            }
        }
        let mut at = least(&cost);
        // Lines with different spreads are compared.
        let total = cost[at] + self.count as f64 * spread.ln();
        let mut path = vec![shifts[at % count]];
        for step in back[1..].iter().rev() {
            at = step[at];
            path.push(shifts[at % count]);
        }
        path.reverse();
        (total, path)
    }

    /// For each end the cheapest way over the gap before a segment: from where, and at what cost.
    fn steps(&self, number: usize, shifts: &[i64], cost: &[f64], digit: f64) -> Vec<(usize, f64)> {
        let count = shifts.len();
        let cheaper = |at: usize| if cost[count + at] < cost[at] { count + at } else { at };
        let lower = |best: usize, at: usize| if cost[at] < cost[best] { at } else { best };
        let least_of = |from: std::ops::Range<usize>| from.map(cheaper).reduce(lower);
        let way = |from: Option<usize>, digits: f64| from.map(|from| (from, cost[from] + digits * digit));
        let best = |ways: [Option<(usize, f64)>; 3], at: usize| {
            let ways = ways.into_iter().flatten();
            ways.reduce(|best, way| if way.1 < best.1 { way } else { best }).unwrap_or((at, f64::INFINITY))
        };
        let (agreed, soon) = (self.segments[number].gap.shift, self.agreed_soon(number));
        let is_near = self.is_short(number - 1);
        let level =
            |at: usize| best([way(Some(cheaper(at)), 0.0), way(least_of(at + 1..count), SLIP), None], at);
        let risen = |at: usize| {
            let is_certain = |rise: i64| rise == agreed || rise < soon;
            let certain = (0..at).filter(|before| is_certain(shifts[at] - shifts[*before])).map(cheaper);
            let near = (0..at).map(|before| count + before).filter(|_| is_near);
            let (certain, near) = (certain.reduce(lower), near.reduce(lower));
            best([way(least_of(0..at), SLIP), way(certain, AGREED), way(near, NEAR)], at)
        };
        (0..count).map(level).chain((0..count).map(risen)).collect()
    }
}

/// The index of the least cost; of equals the first.
fn least(cost: &[f64]) -> usize {
    (0..cost.len()).reduce(|best, at| if cost[at] < cost[best] { at } else { best }).unwrap_or(0)
}
