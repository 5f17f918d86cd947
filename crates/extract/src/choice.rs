//! Which period to print: the one intended, which is not the one with the least jitter.
//!
//! Every period explains the releases, with some jitter. The choice is the one by which they are described in the fewest words:
//!
//! > digits(T) · κ · ln 10 + n · D(T) / μ
//!
//! Lateness is one-sided, so the releases lie above a line. T̂ is the slope of their lower hull's edge over the mean index, μ the
//! mean lateness over that edge's line, D(T) how much lower a line of slope T must lie (at the mean index) to be below all of
//! them, and n · D(T) / μ by how much that makes the latenesses less likely, were they exponential. κ tempers it, since real
//! latenesses are correlated.
//!
//! digits(T) are the digits that it takes to write the period down, in any of these ways:
//!
//! - in nanoseconds, without trailing zeros: 10 ms has one digit. Beyond [`MOST_ROUND_DIGITS`] nobody rounds, so that such a period
//!   counts its trailing zeros too: otherwise 818,480,360 ns would be thought rounder than 818,480,356.
//! - in nanoseconds with digits behind the point, as many as are worth their price: 16,666,666.67 has ten. A digit more makes the
//!   error, and with it the cost of a long observation, ten times smaller. So a period that is no whole number of nanoseconds
//!   (another machine's clock) gets more of them the longer it is observed, and its jitter stays bounded. One that is a whole number
//!   never does: n · D / μ is then small already.
//! - as a fraction of nanoseconds, for T̂ itself: the digits of both parts. Where there is no lateness at all (known arrivals) it
//!   is the only one that fits.
//! - as a frequency in hertz: 60 Hz has one digit, 44.1 kHz / 128 = 344.53125 Hz eight. A second way of writing periods down
//!   doubles the chance of hitting a short one by accident, and people think in periods more often, so it is charged
//!   [`FREQUENCY_SURCHARGE`] digits more.

use crate::hull::Point;
use crate::periodic::Points;
use crate::ratio::Ratio;
use punctual_model::Choice;
use std::f64::consts::LN_10;

/// How many releases say as much as one independent release would. Measured on published release traces.
const KAPPA: f64 = 50.0;

/// Most significant digits of a period that someone may have rounded: microseconds, up to a second.
const MOST_ROUND_DIGITS: u32 = 6;

/// What a frequency costs over a period of as many digits.
const FREQUENCY_SURCHARGE: u32 = 2;

/// Most digits behind the point, of a period in nanoseconds and of a frequency in hertz.
const MOST_DECIMALS: u32 = 12;

/// Ten to that power: keeps every denominator, and with it all products, in range.
const MOST_PARTS: i128 = 10_i128.pow(MOST_DECIMALS);

/// What the choice depends on.
pub(crate) struct Evidence<'a> {
    corners: &'a [Point],
    /// How far each corner lies above the line of the estimate.
    above: Vec<f64>,
    estimate: Ratio,
    middle: f64,
    count: f64,
    mean_lateness: f64,
}

impl<'a> Evidence<'a> {
    /// What these points say; `None` where they do not rise.
    pub fn new(points: &'a Points) -> Option<Evidence<'a>> {
        let corners = points.hull.points();
        let count = i128::from(points.count);
        let (left, right) =
            corners.windows(2).map(|edge| (edge[0], edge[1])).find(|(_, right)| points.sum_x <= i128::from(right.x) * count)?;
        let estimate = Ratio::new(i128::from(right.y - left.y), i128::from(right.x - left.x))?;
        if !estimate.is_positive() {
            return None;
        }
        let above = corners
            .iter()
            .map(|point| {
                let (x, y) = (i128::from(point.x - left.x), i128::from(point.y - left.y));
                (y * estimate.denominator() - x * estimate.numerator()) as f64 / estimate.denominator() as f64
            })
            .collect();
        let x = points.sum_x - i128::from(left.x) * count;
        let y = points.sum_y - i128::from(left.y) * count;
        let mean_lateness = match (y.checked_mul(estimate.denominator()), x.checked_mul(estimate.numerator())) {
            (Some(y), Some(x)) => (y - x) as f64 / (estimate.denominator() as f64 * count as f64),
            // Years of observation: what a float cannot tell apart no longer matters.
            _ => y as f64 / count as f64 - estimate.as_f64() * (x as f64 / count as f64),
        };
        Some(Evidence {
            corners,
            above,
            estimate,
            middle: points.sum_x as f64 / count as f64,
            count: count as f64,
            mean_lateness: mean_lateness.max(0.0),
        })
    }

    /// n · D(T) / μ: what the releases' latenesses cost under this period.
    fn cost(&self, period: Ratio) -> f64 {
        let tilt = period.difference(self.estimate);
        let drop =
            self.corners.iter().zip(&self.above).map(|(point, above)| tilt * (point.x as f64 - self.middle) - above).fold(0.0, f64::max);
        if drop == 0.0 { 0.0 } else { self.count * drop / self.mean_lateness }
    }

    /// Whether a period that is wrong by this many nanoseconds would cost anything.
    fn tells_apart(&self, error: f64) -> bool {
        self.count * self.count * error > 0.1 * self.mean_lateness
    }
}

/// The period to print, and why. `least_jitter` is rounded like the estimate, and decides between equals.
pub(crate) fn choose(evidence: &Evidence<'_>, least_jitter: Ratio) -> (Ratio, Choice) {
    let mut best = Best { evidence, least_jitter, period: evidence.estimate, length: f64::INFINITY, choice: Choice::Estimated };
    let estimate = evidence.estimate;
    best.consider(estimate, digits(estimate.numerator()) + digits(estimate.denominator()), Choice::Estimated);
    consider_whole(&mut best);
    consider_decimals(&mut best);
    consider_frequencies(&mut best);
    (best.period, best.choice)
}

/// Whole nanoseconds: the estimate rounded at every power of ten, and its neighbours.
fn consider_whole(best: &mut Best<'_, '_>) {
    let estimate = best.evidence.estimate;
    let mut grain = 1;
    while grain <= 10 * estimate.rounded() {
        let down = estimate.numerator().div_euclid(estimate.denominator() * grain);
        let fit = Ratio::new(best.least_jitter.numerator(), best.least_jitter.denominator() * grain);
        for multiple in [down, down + 1, fit.map_or(0, Ratio::rounded)] {
            best.consider_whole(multiple * grain);
        }
        grain *= 10;
    }
    for neighbour in -2..=2 {
        best.consider_whole(estimate.rounded() + neighbour);
    }
}

/// Nanoseconds with digits behind the point, as long as one more makes a difference.
fn consider_decimals(best: &mut Best<'_, '_>) {
    let estimate = best.evidence.estimate;
    let (mut parts, mut error) = (10, 1.0);
    while parts <= MOST_PARTS && best.evidence.tells_apart(error) {
        let down = (estimate.numerator() * parts).div_euclid(estimate.denominator());
        for multiple in [down, down + 1] {
            if let Some(period) = Ratio::new(multiple, parts) {
                best.consider(period, digits(multiple), Choice::Estimated);
            }
        }
        parts *= 10;
        error /= 10.0;
    }
}

/// Hertz: the estimate's frequency rounded at every power of ten, from gigahertz down.
fn consider_frequencies(best: &mut Best<'_, '_>) {
    let estimate = best.evidence.estimate;
    // The period of a frequency of one grain, in nanoseconds.
    let mut grain = 1;
    for _ in 0..10 + MOST_DECIMALS {
        let multiple = (estimate.denominator() * grain).div_euclid(estimate.numerator());
        if multiple >= MOST_PARTS {
            return;
        }
        for multiple in [multiple, multiple + 1] {
            if let Some(period) = Ratio::new(grain, multiple) {
                best.consider(period, digits(multiple) + FREQUENCY_SURCHARGE, Choice::Rounded);
            }
        }
        grain *= 10;
    }
}

/// The best period so far.
struct Best<'e, 'a> {
    evidence: &'e Evidence<'a>,
    least_jitter: Ratio,
    period: Ratio,
    length: f64,
    choice: Choice,
}

impl Best<'_, '_> {
    fn consider_whole(&mut self, nanoseconds: i128) {
        let choice = if nanoseconds % 10 == 0 { Choice::Rounded } else { Choice::Estimated };
        let digits = match digits(nanoseconds) {
            round @ ..=MOST_ROUND_DIGITS => round,
            _ => nanoseconds.unsigned_abs().checked_ilog10().unwrap_or(0) + 1,
        };
        self.consider(Ratio::whole(nanoseconds), digits, choice);
    }

    fn consider(&mut self, period: Ratio, digits: u32, choice: Choice) {
        if !period.is_positive() || period.numerator() > i128::from(i64::MAX) {
            return;
        }
        let length = f64::from(digits) * KAPPA * LN_10 + self.evidence.cost(period);
        let distance = |period: Ratio| period.difference(self.least_jitter).abs();
        if period == self.period {
            self.length = self.length.min(length);
            self.choice = if choice == Choice::Rounded { choice } else { self.choice };
        } else if length < self.length || (length == self.length && distance(period) < distance(self.period)) {
            (self.period, self.length, self.choice) = (period, length, choice);
        }
    }
}

/// Decimal digits without trailing zeros; one for zero.
fn digits(number: i128) -> u32 {
    let mut number = number.unsigned_abs();
    while number != 0 && number % 10 == 0 {
        number /= 10;
    }
    number.checked_ilog10().unwrap_or(0) + 1
}
