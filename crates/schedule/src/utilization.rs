//! Shares of a processor, exactly: whole numbers of 2⁻⁶⁴.
//!
//! The utilization of a spec is rounded up once, when it is formed. Sums and differences are exact from then
//! on: whatever comes and goes, the books end where they began, and never say less than what is used.

use punctual_model::Duration;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A share of a processor, or a sum of such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utilization(u128);

impl Utilization {
    /// None of a processor.
    pub const ZERO: Self = Self(0);
    /// All of one processor.
    pub const ONE: Self = Self(1 << 64);

    /// `runtime` in every `window`, rounded up. With `window` = min(T, D) this is U of ReTiF's Equation 1.
    /// Windows of nothing count as 1 ns.
    pub fn new(runtime: Duration, window: Duration) -> Self {
        Self((u128::from(runtime.ns()) << 64).div_ceil(u128::from(window.ns().max(1))))
    }

    /// A limit on sums, from a decimal fraction as people write it; `None` if it is not positive or not
    /// finite.
    ///
    /// 0.7 is no binary fraction, and utilizations are rounded up; so below 1 the limit is 2⁻⁴⁴ (6·10⁻¹⁴)
    /// more than what is written: 7 ms in 10 ms fit, and so do seven times 1 ms. At 1 it is exactly one
    /// processor, and so at every whole number, since beyond that nothing can be guaranteed.
    pub fn limit(fraction: f64) -> Option<Self> {
        const ALLOWANCE: u128 = 1 << 20;
        if !(fraction > 0.0 && fraction.is_finite()) {
            return None;
        }
        // A multiplication by a power of two is exact; the cast rounds down, and ends at the greatest number.
        let limit = (fraction * 2f64.powi(64)) as u128;
        let whole = fraction.fract() == 0.0;
        Some(Self(if whole { limit } else { limit.saturating_add(ALLOWANCE) }))
    }

    /// The longest runtime in every `window` that takes no more than this share: the right-hand side of
    /// Equation 4.
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

    /// Whole 2⁻⁶⁴ of a processor.
    pub(crate) fn raw(self) -> u128 {
        self.0
    }

    /// This less `other`; nothing, if that is more.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// For people: 1 is one processor.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 2f64.powi(64)
    }
}

impl Add for Utilization {
    type Output = Self;
    /// Saturates; a sum of 2⁶³ whole processors is needed for that.
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
    fn what_is_written_in_decimals_fits() {
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
    fn what_is_no_limit_is_refused() {
        for fraction in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Utilization::limit(fraction), None);
        }
    }

    #[test]
    fn one_processor_is_never_exceeded() {
        // Three thirds, each rounded up: the books may say more than is used, never less.
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
            let parts: Vec<_> = parts.into_iter().map(|(q, t)| Utilization::new(Duration::from_ns(q.min(t)), Duration::from_ns(t))).collect();
            let mut sum = parts.iter().copied().sum::<Utilization>();
            for part in &parts {
                sum -= *part;
            }
            prop_assert_eq!(sum, Utilization::ZERO);
        }
    }
}
