//! Chooses the period to print: the intended one, which is not the one with the least jitter.
//!
//! Every period explains the releases, with some jitter. The chosen one gives the shortest description:
//!
//! > digits(T) · κ · ln 10 + n · D(T) / μ
//!
//! Lateness is one-sided, so the releases lie above a line. T̂ is the slope of their lower hull's edge at the
//! mean index, μ the mean lateness above that edge's line, D(T) how much lower (at the mean index) a line of
//! slope T must lie to stay below all releases, and n · D(T) / μ by how much exponential latenesses become
//! less likely then. κ tempers this, since real latenesses are correlated.
//!
//! digits(T) is the number of digits it takes to write the period in the shortest of these ways:
//!
//! - in nanoseconds, without trailing zeros: 10 ms has one digit. Nobody rounds to more than [`MOST_ROUND`]
//!   digits, so longer periods count their trailing zeros too: else 818,480,360 ns would pass for rounder
//!   than 818,480,356.
//! - in nanoseconds with decimals, as many as are worth their price, and [`NOT_WHOLE`] digits more. One
//!   decimal makes the error, and with it the cost of a long observation, ten times smaller. So a period that
//!   is not a whole number of nanoseconds (another machine's clock) gets more decimals the longer it is
//!   observed, and its jitter stays bounded.
//! - as a fraction of nanoseconds, for T̂ itself: the digits of both parts. Without any lateness (known
//!   arrivals) it is the only one that fits.
//! - as a frequency in hertz: 60 Hz has one digit. A second notation doubles the chance of hitting a short
//!   number by accident, and people think in periods more often, so it costs [`FREQUENCY`] digits more; with
//!   more than [`MOST_ROUND_FREQUENCY`] digits, or a fraction of a hertz, [`LONG_FREQUENCY`] on top.
//! - as a frequency over a power of two: a sampling rate over the length of a buffer, 44.1 kHz / 128. Rates
//!   have at most [`MOST_ROUND_RATE`] digits, or are 44.1 kHz times or over a power of two: those with more
//!   digits lie so densely that there is one close to any period.
//!
//! A period with decimals gives way to a whole one without more jitter ([`Candidate::is_decimal`]), and any
//! period to one with fewer digits and clearly less jitter. Between periods that lateness can hardly tell
//! apart, [`nearby`](super::nearby) chooses. A frequency that remains then, but is longer than those that
//! someone chooses ([`Candidate::is_long_frequency`]), gives way to whole nanoseconds like decimals.

use crate::periodic::resolve::{Evidence, KAPPA};
use crate::ratio::Ratio;
use punctual_model::Choice;
use std::f64::consts::LN_10;

/// Most significant digits of a rounded period: microseconds, up to a second.
pub(crate) const MOST_ROUND: u32 = 6;

const NS_PER_SECOND: i128 = 1_000_000_000;

/// Most significant digits of a frequency that someone chose.
const MOST_ROUND_FREQUENCY: u32 = 4;

/// Extra digits charged to a period that is not a whole number of nanoseconds, to a frequency, and to a long
/// one.
const NOT_WHOLE: u32 = 4;
const FREQUENCY: u32 = 2;
const LONG_FREQUENCY: u32 = 2;

/// Significant digits of the longest frequency that someone chose, if its name is as long as [`MOST_NAMED`].
const LONGEST: u32 = 3;

/// Most decimals of a period in nanoseconds and of a frequency in hertz.
const MOST_DECIMALS: u32 = 12;

/// Most digits of a chosen frequency, with what is charged for its notation: those of
/// 44.1 kHz / 128.
pub(crate) const MOST_NAMED: u32 = 7;

/// Greatest denominator of decimals, so that all products stay in range.
const MOST_PARTS: i128 = 10_i128.pow(MOST_DECIMALS);

/// Most buffers (of a power of two samples) per second.
const MOST_BUFFERS: i128 = 10_000;

/// Most digits of a sampling rate, and the odd parts of the others: 22.05, 44.1, 88.2, 176.4 kHz …, without
/// and with a zero at the end.
const MOST_ROUND_RATE: u32 = 2;
const RATES: [i128; 2] = [441, 2_205];

/// A period that might be printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub period: Ratio,
    pub choice: Choice,
    /// Neither whole nanoseconds nor a frequency.
    pub is_decimal: bool,
    /// It takes so many to write the period down, with all that is charged for its notation.
    pub digits: u32,
    /// Length of the description.
    pub cost: f64,
}

impl Candidate {
    /// Whether it is a whole number of nanoseconds.
    pub fn is_whole(&self) -> bool {
        self.period.denominator() == 1
    }

    /// Whether it is a frequency too long to have been chosen.
    pub fn is_long_frequency(&self) -> bool {
        !self.is_whole() && !self.is_decimal && self.digits > MOST_NAMED
    }

    /// How far apart periods with names as short as this one are, in nanoseconds.
    pub fn apart(&self) -> f64 {
        if self.is_whole() {
            let ns = self.period.numerator();
            return 10_f64.powi((length(ns) - digits(ns)) as i32);
        }
        // The longest are sampling rates such as 44.1 kHz, which are few, and hertz with a fraction.
        let digits = if self.digits < MOST_NAMED { self.digits - FREQUENCY } else { LONGEST };
        self.period.as_f64() / 10_f64.powi(digits as i32)
    }

    /// Whether it is whole nanoseconds that nobody rounded.
    pub fn is_long(&self) -> bool {
        let ns = self.period.numerator();
        self.is_whole() && (ns % 10 != 0 || digits(ns) > MOST_ROUND)
    }
}

/// The periods that might be printed, the best first.
pub(crate) fn candidates(evidence: &Evidence) -> Vec<Candidate> {
    let mut found = Found { evidence, all: Vec::new() };
    let estimate = evidence.estimate;
    let is_fraction = estimate.denominator() > 1;
    let length = digits(estimate.numerator())
        + digits(estimate.denominator())
        + if is_fraction { NOT_WHOLE } else { 0 };
    found.add(estimate, length, Choice::Estimated, is_fraction);
    found.add_whole();
    found.add_decimals();
    found.add_frequencies();
    found.add_rates();
    let distance = |candidate: &Candidate| candidate.period.difference(estimate).abs();
    let mut all = found.all;
    all.sort_by(|a, b| {
        a.cost.total_cmp(&b.cost).then(distance(a).total_cmp(&distance(b))).then(a.period.cmp(&b.period))
    });
    if let Some(&Candidate { period, .. }) = all.first() {
        // The same number may be round in another notation.
        if all.iter().any(|candidate| candidate.period == period && candidate.choice == Choice::Rounded) {
            all[0].choice = Choice::Rounded;
        }
    }
    all
}

struct Found<'a> {
    evidence: &'a Evidence,
    all: Vec<Candidate>,
}

impl Found<'_> {
    fn add(&mut self, period: Ratio, digits: u32, choice: Choice, is_decimal: bool) {
        if period.is_positive() && period.numerator() <= i128::from(i64::MAX) {
            let cost = f64::from(digits) * LN_10 * KAPPA + self.evidence.cost(period);
            self.all.push(Candidate { period, choice, is_decimal, digits, cost });
        }
    }

    /// Whole nanoseconds: the estimate rounded at every power of ten, and close to it.
    fn add_whole(&mut self) {
        let estimate = self.evidence.estimate;
        let nearest = estimate.rounded_half_even();
        let mut grain = 1;
        loop {
            let down = estimate.numerator().div_euclid(estimate.denominator() * grain) * grain;
            self.add_nanoseconds(down);
            self.add_nanoseconds(down + grain);
            if grain > nearest {
                break;
            }
            grain *= 10;
        }
        for neighbour in -2..=2 {
            self.add_nanoseconds(nearest + neighbour);
            self.add_nanoseconds(self.evidence.nearest() + neighbour);
        }
    }

    fn add_nanoseconds(&mut self, period: i128) {
        let choice = if period % 10 == 0 { Choice::Rounded } else { Choice::Estimated };
        let length = match digits(period) {
            round @ ..=MOST_ROUND => round,
            _ => length(period),
        };
        self.add(Ratio::whole(period), length, choice, false);
    }

    /// Nanoseconds with decimals, as long as one more makes a difference.
    fn add_decimals(&mut self) {
        let estimate = self.evidence.estimate;
        let mut parts = 10;
        while parts <= MOST_PARTS && self.evidence.tells_apart(1.0 / parts as f64) {
            let down = (estimate.numerator() * parts).div_euclid(estimate.denominator());
            for multiple in [down, down + 1] {
                if let Some(period) = Ratio::new(multiple, parts) {
                    self.add(
                        period,
                        length(multiple) + NOT_WHOLE,
                        Choice::Estimated,
                        period.denominator() > 1,
                    );
                }
            }
            parts *= 10;
        }
    }

    /// Hertz: the estimate's frequency rounded at every power of ten, from gigahertz down.
    fn add_frequencies(&mut self) {
        let estimate = self.evidence.estimate;
        // The period of a frequency of one grain, in nanoseconds.
        let mut grain = 1;
        for _ in 0..10 + MOST_DECIMALS {
            let down = (estimate.denominator() * grain).div_euclid(estimate.numerator());
            for multiple in [down, down + 1] {
                if let Some(period) = Ratio::new(grain, multiple).filter(|_| multiple <= MOST_PARTS) {
                    let is_whole = (NS_PER_SECOND * multiple) % grain == 0;
                    let is_long = !is_whole || digits(multiple) > MOST_ROUND_FREQUENCY;
                    let long = if is_long { LONG_FREQUENCY } else { 0 };
                    self.add(period, digits(multiple) + FREQUENCY + long, Choice::Rounded, false);
                }
            }
            grain *= 10;
        }
    }

    /// A sampling rate over the length of a buffer, which is a power of two from 16 to 8,192.
    fn add_rates(&mut self) {
        let estimate = self.evidence.estimate;
        for power in 4..14 {
            for decimals in 5..9 {
                let grain = (1_i128 << power) * 10_i128.pow(decimals);
                let Some(multiple) = Ratio::new(grain * estimate.denominator(), estimate.numerator()) else {
                    continue;
                };
                let multiple = multiple.rounded_half_even();
                let is_rate = (1..MOST_BUFFERS).contains(&multiple) && is_sampling_rate(multiple);
                if let Some(period) = Ratio::new(grain, multiple).filter(|_| is_rate) {
                    self.add(period, digits(multiple) + 2 * FREQUENCY, Choice::Rounded, false);
                }
            }
        }
    }
}

/// Whether so many samples per second, or a power of ten times as many, are usual.
fn is_sampling_rate(rate: i128) -> bool {
    digits(rate) <= MOST_ROUND_RATE || RATES.contains(&(rate >> rate.trailing_zeros()))
}

/// Decimal digits without trailing zeros; one for zero.
fn digits(number: i128) -> u32 {
    let mut number = number.unsigned_abs();
    while number != 0 && number % 10 == 0 {
        number /= 10;
    }
    number.checked_ilog10().unwrap_or(0) + 1
}

/// Decimal digits.
fn length(number: i128) -> u32 {
    number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1
}
