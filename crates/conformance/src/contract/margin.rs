//! How far the limits of a contract are from the observed values.

use punctual_model::{Duration, Percent};

/// What is added to the greatest, and taken from the least, observed value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Margin {
    /// Nothing: limits are the observed values.
    #[default]
    None,
    /// So many percent; limits are rounded to three significant digits, away from the value.
    Percent(Percent),
}

impl Margin {
    /// Half of it.
    pub fn half(self) -> Margin {
        match self {
            Margin::None => Margin::None,
            Margin::Percent(percent) => Margin::Percent(percent.half()),
        }
    }

    /// A limit for values that are at most this one.
    pub fn above(self, value: Duration) -> Duration {
        match self {
            Margin::None => value,
            Margin::Percent(percent) => {
                let scaled = percent.above(value.ns().into());
                let unit = last_digit(scaled);
                Duration::from_ns(u64::try_from(scaled.div_ceil(unit) * unit).unwrap_or(u64::MAX))
            }
        }
    }

    /// A limit for values that are at least this one.
    pub fn below(self, value: Duration) -> Duration {
        match self {
            Margin::None => value,
            Margin::Percent(percent) => {
                let scaled = percent.below(value.ns().into());
                let unit = last_digit(scaled);
                Duration::from_ns((scaled / unit * unit) as u64)
            }
        }
    }
}

/// What the third digit of a number is worth.
fn last_digit(number: u128) -> u128 {
    10_u128.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2))
}
