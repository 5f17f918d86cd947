//! Shares as people write them: `12.5%`.

use crate::Duration;
use std::fmt;
use std::str::FromStr;

/// A share in thousandths of a percent, so that what people write is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u64);

/// Why a text is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPercent;

impl Percent {
    /// Nothing.
    pub const ZERO: Percent = Percent(0);
    /// A whole, in the same parts.
    pub const WHOLE: u64 = 100_000;

    /// Whole percent.
    pub const fn whole(percent: u32) -> Percent {
        Percent(percent as u64 * 1_000)
    }

    /// So many parts, of which [`WHOLE`](Self::WHOLE) are a whole.
    pub const fn of_parts(parts: u64) -> Percent {
        Percent(parts)
    }

    /// Half of it, rounded down.
    pub const fn half(self) -> Percent {
        Percent(self.0 / 2)
    }

    /// In parts of which [`WHOLE`](Self::WHOLE) are a whole.
    pub const fn parts(self) -> u64 {
        self.0
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// A number with this share of it on top, rounded up; saturates.
    pub fn above(self, number: u128) -> u128 {
        number.saturating_mul(u128::from(Self::WHOLE + self.0)).div_ceil(u128::from(Self::WHOLE))
    }

    /// The number of which this one is [`above`](Self::above), rounded down.
    pub fn below(self, number: u128) -> u128 {
        number.saturating_mul(u128::from(Self::WHOLE)) / u128::from(Self::WHOLE + self.0)
    }

    /// A time with this share of it on top, rounded up; saturates.
    pub fn above_time(self, time: Duration) -> Duration {
        Duration::from_ns(u64::try_from(self.above(time.ns().into())).unwrap_or(u64::MAX))
    }
}

/// `12`, `12%`, `12.5%`, `0.001%`.
impl FromStr for Percent {
    type Err = NoPercent;

    fn from_str(text: &str) -> Result<Percent, NoPercent> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 {
            return Err(NoPercent);
        }
        let parts = || format!("{decimals:0<3}").parse().ok();
        let whole =
            whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000)?.checked_add(parts()?));
        whole.map(Percent).ok_or(NoPercent)
    }
}

/// `12.5`
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        match rest {
            0 => write!(f, "{whole}"),
            rest => write!(f, "{whole}.{}", format!("{rest:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        for (text, parts, shown) in
            [("12", 12_000, "12"), ("12.5%", 12_500, "12.5"), ("0.001%", 1, "0.001"), ("0.50%", 500, "0.5")]
        {
            let share: Percent = text.parse().expect("a share");
            assert_eq!((share.parts(), share.to_string().as_str()), (parts, shown));
        }
        for wrong in ["", "%", ".5", "5.", "1.2345%", "-1", "+1", "1e2", "1,5", "99999999999999999999"] {
            assert_eq!(wrong.parse::<Percent>(), Err(NoPercent), "{wrong}");
        }
    }

    #[test]
    fn what_is_added_is_rounded_up_and_what_is_taken_down() {
        let share: Percent = "0.04%".parse().expect("a share");
        assert_eq!((share.above(3_000_000), share.above(1), share.below(1)), (3_001_200, 2, 0));
        assert_eq!((Percent::ZERO.above(7), Percent::ZERO.below(7)), (7, 7));
        assert_eq!(Percent::whole(20).above_time(Duration::from_ns(u64::MAX)), Duration::from_ns(u64::MAX));
    }
}
