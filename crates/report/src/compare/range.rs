//! A figure over the runs of a configuration, and whether two configurations differ by more than their runs
//! do.

use crate::number::{about, count};
use punctual_model::Duration;

/// Fewest runs of a configuration that tell its spread. Where nothing differs, the ranges of two times five
/// runs are disjoint in one case of 126; of two times two, in one of three.
pub(super) const RUNS_FOR_SPREAD: usize = 5;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Nanoseconds.
    Time,
    /// Activations, releases.
    Count,
}

/// Which of the runs' values stands for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// The least: of what is a least value already.
    Least,
    /// The one in the middle, the lower one of two.
    Middle,
    /// The greatest: of what is a greatest value already.
    Greatest,
}

/// A figure over the runs that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// What stands for all runs.
    pub(super) value: u64,
    pub(super) least: u64,
    pub(super) greatest: u64,
    pub(super) unit: Unit,
    /// How many have it; at least one.
    pub(super) runs: usize,
}

impl Range {
    pub(super) fn over(values: impl Iterator<Item = u64>, whole: Whole, unit: Unit) -> Option<Range> {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        let (least, greatest) = (*values.first()?, *values.last()?);
        let value = match whole {
            Whole::Least => least,
            Whole::Middle => values[(values.len() - 1) / 2],
            Whole::Greatest => greatest,
        };
        Some(Range { value, least, greatest, unit, runs: values.len() })
    }

    /// Whether there are enough runs to know their spread.
    pub(super) fn has_spread(&self) -> bool {
        self.runs >= RUNS_FOR_SPREAD
    }

    /// Whether the spreads of both are known and do not overlap.
    pub(super) fn is_apart(&self, other: &Range) -> bool {
        self.has_spread()
            && other.has_spread()
            && (self.greatest < other.least || other.greatest < self.least)
    }
}

/// How a figure differs from that of the first configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    first: u64,
    other: u64,
    pub(super) unit: Unit,
    /// Whether it exceeds the spread of both.
    pub(super) is_marked: bool,
}

impl Difference {
    pub(super) fn new(first: &Range, other: &Range) -> Difference {
        Difference {
            first: first.value,
            other: other.value,
            unit: other.unit,
            is_marked: first.is_apart(other),
        }
    }

    /// As a part of the first's; there is none of zero, unless both are.
    pub(super) fn ratio(&self) -> Option<f64> {
        match (self.first, self.other) {
            (0, 0) => Some(0.0),
            (0, _) => None,
            (first, other) => Some((other as f64 - first as f64) / first as f64),
        }
    }

    /// What the other has more.
    pub(super) fn amount(&self) -> i128 {
        i128::from(self.other) - i128::from(self.first)
    }

    /// The greater value as a multiple of the less, by which differences of different figures are ordered.
    pub(super) fn factor(&self) -> f64 {
        self.first.max(self.other) as f64 / self.first.min(self.other) as f64
    }

    /// `+12.3 %`; in its unit where the first is zero.
    pub(super) fn size(&self) -> String {
        match self.ratio() {
            Some(ratio) => percent(ratio),
            None if self.unit == Unit::Count => format!("+{}", count(self.other)),
            None => format!("+{}", about(Duration::from_ns(self.other))),
        }
    }

    /// `▲ +12.3 %`.
    pub(super) fn text(&self) -> String {
        let mark = match (self.is_marked, self.other > self.first) {
            (false, _) => "",
            (true, true) => "▲ ",
            (true, false) => "▼ ",
        };
        format!("{mark}{}", self.size())
    }
}

/// `−3.2 %`, with as many digits as say something; `=` where there is no difference.
fn percent(ratio: f64) -> String {
    if ratio == 0.0 {
        return "=".into();
    }
    let sign = if ratio < 0.0 { '−' } else { '+' };
    let percent = ratio.abs() * 100.0;
    match percent {
        _ if percent < 0.05 => format!("{sign}<0.1 %"),
        // As it will be printed, not as it is: 99.96 has three digits before the point then.
        _ if percent < 99.95 => format!("{sign}{percent:.1} %"),
        // Something is left of it.
        _ if ratio < 0.0 && ratio > -1.0 => "−99.9 %".into(),
        _ => format!("{sign}{} %", crate::number::count(percent.round() as u64)),
    }
}

/// How likely ranges of so many runs lie apart although nothing differs: one case of this many. All orders of
/// the runs are as likely then, and two of them have all of one side first.
pub(super) fn one_chance_in(runs: usize, others: usize) -> f64 {
    let mut orders = 1.0;
    for place in 1..=runs {
        orders *= (others + place) as f64 / place as f64;
    }
    orders / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(values: &[u64]) -> Range {
        Range::over(values.iter().copied(), Whole::Greatest, Unit::Time).expect("a value")
    }

    #[test]
    fn touching_ranges_overlap() {
        let five = |least, greatest| range(&[least, least, least, greatest, greatest]);
        assert!(five(10, 12).is_apart(&five(13, 20)));
        assert!(five(13, 20).is_apart(&five(10, 12)));
        assert!(!five(10, 13).is_apart(&five(13, 20)));
        assert!(!five(10, 30).is_apart(&five(13, 20)));
    }

    #[test]
    fn fewer_than_five_runs_have_no_spread() {
        assert!(!range(&[10]).is_apart(&range(&[13, 20])));
        assert!(!range(&[10, 12]).is_apart(&range(&[1_000])));
        assert!(!range(&[10, 11, 12, 13]).is_apart(&range(&[20, 21, 22, 23, 24])));
        assert!(!range(&[20, 21, 22, 23, 24]).is_apart(&range(&[10, 11, 12, 13])));
    }

    #[test]
    fn the_median_represents_the_runs() {
        let value =
            |whole| Range::over([40, 10, 30, 20].into_iter(), whole, Unit::Time).expect("values").value;
        assert_eq!([Whole::Least, Whole::Middle, Whole::Greatest].map(value), [10, 20, 40]);
        assert_eq!(Range::over(std::iter::empty(), Whole::Least, Unit::Time), None);
    }

    #[test]
    fn differences_in_words() {
        let text = |first: &[u64], other: &[u64]| Difference::new(&range(first), &range(other)).text();
        let five = |least, greatest| [least, least, least, greatest, greatest];
        assert_eq!(text(&five(100, 200), &five(300, 400)), "▲ +100 %");
        assert_eq!(text(&five(300, 400), &five(100, 200)), "▼ −50.0 %");
        assert_eq!(text(&[100, 200], &[300, 400]), "+100 %");
        assert_eq!(text(&[1_000], &[1_032]), "+3.2 %");
        assert_eq!(text(&[1_000], &[1_000]), "=");
        assert_eq!(text(&[1_000_000], &[1_000_001]), "+<0.1 %");
        assert_eq!(text(&[10], &[12_345]), "+123,350 %");
        assert_eq!(text(&[10_000], &[19_996]), "+100 %");
        assert_eq!(text(&[10_000], &[1]), "−99.9 %");
        assert_eq!(text(&[10_000], &[0]), "−100 %");
        assert_eq!(text(&[0], &[5_000]), "+5 µs");
        assert_eq!(text(&[0], &[0]), "=");
        assert_eq!(text(&[u64::MAX], &[0]), "−100 %");
        let counted = |values: &[u64]| Range { unit: Unit::Count, ..range(values) };
        assert_eq!(Difference::new(&counted(&[0]), &counted(&[5_000])).text(), "+5,000");
    }

    #[test]
    fn ranges_of_two_runs_are_disjoint_in_a_third_of_all_cases() {
        // Of AABB, ABAB, ABBA, BAAB, BABA, BBAA two are apart.
        assert_eq!(one_chance_in(2, 2), 3.0);
        assert_eq!(one_chance_in(3, 3), 10.0);
        assert_eq!(one_chance_in(2, 3), 5.0);
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0_u64..50, 1..8)
    }

    proptest! {
        #[test]
        fn a_range_does_not_differ_from_itself(values in prop::collection::vec(any::<u64>(), 1..6)) {
            let range = range(&values);
            prop_assert!(!range.is_apart(&range));
            prop_assert_eq!(Difference::new(&range, &range).text(), "=");
        }

        #[test]
        fn disjointness_is_symmetric(a in values(), b in values()) {
            let (one, other) = (range(&a), range(&b));
            prop_assert_eq!(one.is_apart(&other), other.is_apart(&one));
            let apart = a.iter().all(|x| b.iter().all(|y| x < y))
                || a.iter().all(|x| b.iter().all(|y| x > y));
            prop_assert_eq!(one.is_apart(&other), apart && a.len() >= 5 && b.len() >= 5);
        }
    }
}
