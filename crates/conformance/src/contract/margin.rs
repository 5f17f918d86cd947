//! How far the limits of a contract are from the observed values.

use punctual_model::{Duration, Percent};

/// What the kernel takes of a job depends on what else the machine does, since its code and data are in a
/// cache or not. **Measured**: of 220 runs of ten programs, the usual costs of threads that only wake another
/// one, some 40 µs of which nearly all is the kernel's, lay between 27 and 74 µs.
const LEAST: Duration = Duration::from_us(30);

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

    /// A limit for times of so many jobs, in which the kernel has a share, that are at most this one: at
    /// least [`LEAST`] above it for each.
    pub fn above_kernel(self, value: Duration, jobs: u64) -> Duration {
        let least = Duration::from_ns(LEAST.ns().saturating_mul(jobs));
        match self {
            Margin::None => value,
            Margin::Percent(_) => self.above(value).max(value + least),
        }
    }

    /// Halfway between a value and its limit, with three digits.
    pub fn half_above_kernel(self, value: Duration) -> Duration {
        let half = u128::from(value.ns() + self.above_kernel(value, 1).saturating_sub(value).ns() / 2);
        let unit = last_digit(half);
        Duration::from_ns((half.div_ceil(unit) * unit) as u64)
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
