//! Exact shares of a processor: integer multiples of 2⁻⁶⁴.
//!
//! The utilization of a spec is rounded up once, when it is computed. Sums and differences are exact from
//! then on: after any sequence of additions and removals the books balance, and never understate the use.

use punctual_model::Duration;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A share of a processor, or a sum of shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utilization(u128);

impl Utilization {
    /// None of a processor.
    pub const ZERO: Self = Self(0);
    /// All of one processor.
    pub const ONE: Self = Self(1 << 64);
    /// 2⁻⁴⁴: by how much sums of shares that were rounded up may exceed a limit.
    pub(crate) const ALLOWANCE: Self = Self(1 << 20);

    /// `runtime` in every `window`, rounded up. With `window` = min(T, D) this is U of ReTiF's Equation 1.
    /// A window of zero counts as 1 ns.
    pub fn new(runtime: Duration, window: Duration) -> Self {
        Self((u128::from(runtime.ns()) << 64).div_ceil(u128::from(window.ns().max(1))))
    }

    /// A limit on sums, from a decimal fraction as people write it; `None` if it is not positive or not
    /// finite.
    ///
    /// 0.7 is not a binary fraction, and utilizations are rounded up; so a limit that is not a whole number
    /// is 2⁻⁴⁴ (6·10⁻¹⁴) greater than written: 7 ms in 10 ms fit, and so do seven times 1 ms. A limit of 1 is
    /// exactly one processor (the same for every whole number), since nothing beyond can be guaranteed.
    pub fn limit(fraction: f64) -> Option<Self> {
        if !(fraction > 0.0 && fraction.is_finite()) {
            return None;
        }
        // Multiplication by a power of two is exact; the cast rounds down and saturates.
        let limit = (fraction * 2f64.powi(64)) as u128;
        let whole = fraction.fract() == 0.0;
        Some(Self(if whole { limit } else { limit.saturating_add(Self::ALLOWANCE.0) }))
    }

    /// The longest runtime in every `window` within this share: the right-hand side of Equation 4.
    pub fn runtime_in(self, window: Duration) -> Duration {
        if self >= Self::ONE {
            return window;
        }
        // Below 2⁶⁴ · 2⁶⁴.
        Duration::from_ns(((self.0 * u128::from(window.ns())) >> 64) as u64)
    }

    /// This share of `span`, rounded up.
    pub(crate) fn part_of(self, span: u64) -> u128 {
        let (whole, fraction) = (self.0 >> 64, self.0 & (Self::ONE.0 - 1));
        let part = (fraction * u128::from(span)).div_ceil(1 << 64);
        whole.saturating_mul(u128::from(span)).saturating_add(part)
    }

    pub(crate) fn from_raw(raw: u128) -> Self {
        Self(raw)
    }

    /// In units of 2⁻⁶⁴ of a processor.
    pub(crate) fn raw(self) -> u128 {
        self.0
    }

    /// This minus `other`; zero if `other` is greater.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// As a fraction of one processor.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 2f64.powi(64)
    }
}

impl Add for Utilization {
    type Output = Self;
    /// Saturates, at 2⁶⁴ processors.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Utilization {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Utilization {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for Utilization {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Utilization {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// As a percentage.
impl std::fmt::Display for Utilization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} %", self.as_f64() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_ms;

    #[test]
    fn decimal_limits_allow_what_they_say() {
        for tenths in 1..=9u64 {
            let limit = Utilization::limit(tenths as f64 / 10.0).unwrap();
            assert!(Utilization::new(MS(tenths), MS(10)) <= limit);
            assert!((0..tenths).map(|_| Utilization::new(MS(1), MS(10))).sum::<Utilization>() <= limit);
            assert!(Utilization::new(Duration::from_ns(tenths * 1_000_000 + 1), MS(10)) > limit);
            assert_eq!(limit.runtime_in(MS(10)), MS(tenths));
        }
        assert_eq!(Utilization::limit(1.0), Some(Utilization::ONE));
    }

    #[test]
    fn limits_must_be_positive_and_finite() {
        for fraction in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Utilization::limit(fraction), None);
        }
    }

    #[test]
    fn one_processor_is_never_exceeded() {
        // Three thirds, each rounded up: the books may overstate the use, never understate it.
        let third = Utilization::new(MS(1), MS(3));
        assert!(third + third + third > Utilization::ONE);
        assert!(third + third + third - Utilization::ONE <= Utilization(3));
    }

    proptest! {
        #[test]
        fn rounding_is_up_and_by_less_than_one(runtime in 1..1u64 << 63, window in 1..1u64 << 63) {
            let Utilization(u) = Utilization::new(Duration::from_ns(runtime), Duration::from_ns(window));
            let window = u128::from(window);
            let exact = u128::from(runtime) << 64;
            // u · window may need more than 128 bits, so compare quotients.
            prop_assert!(u >= exact / window && u <= exact / window + 1);
            prop_assert_eq!(u == exact / window, exact % window == 0);
        }

        #[test]
        fn accepted_runtime_is_the_longest_that_fits(share in 1..1u128 << 64, window in 1..1u64 << 63) {
            let (share, window) = (Utilization(share), Duration::from_ns(window));
            let longest = share.runtime_in(window);
            prop_assert!(Utilization::new(longest, window) <= share);
            prop_assert!(Utilization::new(Duration::from_ns(longest.ns() + 1), window) > share);
        }

        #[test]
        fn sums_are_reversible(parts in prop::collection::vec((1..1u64 << 63, 1..1u64 << 63), 0..50)) {
            let share = |(q, t): (u64, u64)| Utilization::new(Duration::from_ns(q.min(t)),
                Duration::from_ns(t));
            let parts: Vec<_> = parts.into_iter().map(share).collect();
            let mut sum = parts.iter().copied().sum::<Utilization>();
            for part in &parts {
                sum -= *part;
            }
            prop_assert_eq!(sum, Utilization::ZERO);
        }
    }
}
