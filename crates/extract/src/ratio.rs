//! Exact fractions: slopes of hull edges, and candidate periods.

use std::cmp::Ordering;

/// A fraction in lowest terms with a denominator above zero.
///
/// Numerators stay below 2^63 and denominators below 2^62 everywhere in this crate, so that products of two
/// of them fit an `i128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    numerator: i128,
    denominator: i128,
}

/// The quotient, rounded up.
pub(crate) const fn div_ceil(dividend: i128, divisor: i128) -> i128 {
    -(-dividend).div_euclid(divisor)
}

impl Ratio {
    /// `numerator / denominator`; `None` where the denominator is not above zero.
    pub fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        if denominator <= 0 {
            return None;
        }
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs()) as i128;
        Some(Ratio { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    pub const fn whole(number: i128) -> Ratio {
        Ratio { numerator: number, denominator: 1 }
    }

    pub const fn numerator(self) -> i128 {
        self.numerator
    }

    pub const fn denominator(self) -> i128 {
        self.denominator
    }

    pub const fn is_positive(self) -> bool {
        self.numerator > 0
    }

    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    pub const fn negated(self) -> Ratio {
        Ratio { numerator: -self.numerator, denominator: self.denominator }
    }

    /// `self - other`, rounded once, after the exact difference: nearly equal slopes keep all their digits.
    pub fn difference(self, other: Ratio) -> f64 {
        let exact = self.numerator * other.denominator - other.numerator * self.denominator;
        exact as f64 / (self.denominator as f64 * other.denominator as f64)
    }

    /// The nearest whole number, halves to the even one.
    pub const fn rounded_half_even(self) -> i128 {
        let down = self.numerator.div_euclid(self.denominator);
        let twice = 2 * self.numerator.rem_euclid(self.denominator);
        down + (twice > self.denominator || (twice == self.denominator && down % 2 != 0)) as i128
    }

    /// The nearest whole number, halves upwards.
    pub const fn rounded(self) -> i128 {
        (2 * self.numerator + self.denominator).div_euclid(2 * self.denominator)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (self.numerator * other.denominator).cmp(&(other.numerator * self.denominator))
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_reduced_and_ordered() {
        let third = Ratio::new(50_000_000, 3).unwrap();
        assert_eq!(Ratio::new(100_000_000, 6), Some(third));
        assert!(third > Ratio::whole(16_666_666) && third < Ratio::whole(16_666_667));
        assert_eq!((third.rounded(), third.negated().rounded()), (16_666_667, -16_666_667));
        assert_eq!(Ratio::new(1, 0), None);
        assert_eq!(Ratio::new(0, 7), Some(Ratio::whole(0)));
    }
}
