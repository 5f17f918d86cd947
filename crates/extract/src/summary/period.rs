//! The periods that runs print, and how many releases say so.

use super::json;
use crate::ratio::Ratio;
use punctual_model::{Choice, Duration, Fraction, Periodic};
use serde::{Deserialize, Serialize};

/// Most different periods kept: those that are shortest to write. Runs agree on a few.
const MOST: usize = 64;

/// A period, and its votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Period {
    numerator: u64,
    denominator: u64,
    /// Releases of the runs that have this period.
    votes: u64,
    #[serde(with = "json")]
    pub choice: Choice,
}

impl Period {
    pub fn new(model: &Periodic, releases: u64) -> Period {
        let Fraction { numerator, denominator } =
            model.period_exact.unwrap_or(Fraction { numerator: model.period_ns.ns(), denominator: 1 });
        Period { numerator, denominator, votes: releases, choice: model.choice }
    }

    /// Shorter ones first. A property of the period alone, so that which are kept does not depend on the
    /// order of merges.
    fn order(&self) -> (u32, u64, u64) {
        (digits(self.numerator) + digits(self.denominator), self.denominator, self.numerator)
    }

    pub fn ratio(&self) -> Option<Ratio> {
        Ratio::new(self.numerator.into(), self.denominator.into()).filter(|ratio| ratio.is_positive())
    }

    pub fn is_fraction(&self) -> bool {
        self.denominator > 1
    }

    pub fn exact(&self) -> Option<Fraction> {
        let Period { numerator, denominator, .. } = *self;
        self.is_fraction().then_some(Fraction { numerator, denominator })
    }

    pub fn rounded(&self) -> Option<Duration> {
        u64::try_from(self.ratio()?.rounded()).ok().filter(|ns| *ns > 0).map(Duration::from_ns)
    }
}

/// Digits without the zeros at the end.
fn digits(mut number: u64) -> u32 {
    while number > 0 && number % 10 == 0 {
        number /= 10;
    }
    number.checked_ilog10().map_or(0, |log| log + 1)
}

/// Adds the votes of other runs.
pub(crate) fn merge(periods: &mut Vec<Period>, others: &[Period]) {
    periods.extend(others);
    periods.sort_by_key(Period::order);
    periods.dedup_by(|later, first| {
        let is_same = later.order() == first.order();
        if is_same {
            first.votes = first.votes.saturating_add(later.votes);
            first.choice = if rank(later.choice) < rank(first.choice) { later.choice } else { first.choice };
        }
        is_same
    });
    periods.truncate(MOST);
}

fn rank(choice: Choice) -> u8 {
    match choice {
        Choice::Rounded => 0,
        Choice::Estimated => 1,
        Choice::LeastJitter => 2,
    }
}

/// The one with most votes; of equals the first.
pub(crate) fn elected(periods: &[Period]) -> Option<&Period> {
    periods.iter().rev().max_by_key(|period| period.votes)
}

pub(crate) fn are_valid(periods: &[Period]) -> bool {
    let is_lowest = |period: &Period| {
        period.ratio().is_some_and(|ratio| {
            (ratio.numerator(), ratio.denominator()) == (period.numerator.into(), period.denominator.into())
        }) && period.numerator < 1 << 63
            && period.denominator < 1 << 62
            && period.rounded().is_some()
    };
    periods.len() <= MOST
        && periods.is_sorted_by(|one, next| one.order() < next.order())
        && periods.iter().all(is_lowest)
}
