//! Evaluates curves for any number of jobs and any span of time: past their last entry, and as arrival
//! curves.
//!
//! The tables end at a horizon. Past it they extend soundly: a span of many gaps between releases consists of
//! spans of fewer, so δ⁻ is superadditive and δ⁺ subadditive in the number of gaps, and WCET(n) is
//! subadditive in the number of jobs. Whatever obeys the table obeys its extension. (papers: LiME, Section
//! II-B.)

use crate::arrival::Curve;
use crate::threads::Execution;
use crate::time::Duration;

impl Curve {
    /// δ⁻(n): any `n` consecutive releases span at least this. Past the horizon by superadditivity;
    /// `u64::MAX` ns means that or more. O(1).
    pub fn delta_min(&self, n: u64) -> Duration {
        let bound = extend(&self.delta_min_ns, n.saturating_sub(1)).unwrap_or(0);
        Duration::from_ns(bound.try_into().unwrap_or(u64::MAX))
    }

    /// δ⁺(n): any `n` consecutive releases span at most this. Past the horizon by subadditivity. `None` if no
    /// bound is known or it exceeds `u64::MAX` ns. O(1).
    pub fn delta_max(&self, n: u64) -> Option<Duration> {
        let bound = extend(&self.delta_max_ns, n.saturating_sub(1))?;
        Some(Duration::from_ns(bound.try_into().ok()?))
    }

    /// η⁺(Δ): at most this many releases in any half-open interval `[t, t + Δ)`. `None` if unbounded: the
    /// curve is empty, or any number of releases it covers may coincide. O(log horizon).
    ///
    /// `n` releases fit if and only if their span can be less than Δ, so η⁺(Δ) is the greatest `n` with
    /// δ⁻(n) < Δ.
    pub fn eta_max(&self, span: Duration) -> Option<u64> {
        match span.ns().checked_sub(1) {
            None => Some(0),
            Some(longest) => gaps_within(&self.delta_min_ns, longest)?.checked_add(1),
        }
    }

    /// η⁻(Δ): at least this many releases in any half-open interval `[t, t + Δ)` between the first release
    /// and the last. O(log horizon).
    ///
    /// An interval with exactly `n` releases lies between two more releases, with these `n` between them. So
    /// η⁻(Δ) is the least `n` with Δ < δ⁺(n + 2). Zero if the curve is empty.
    pub fn eta_min(&self, span: Duration) -> u64 {
        match span {
            Duration::ZERO => 0,
            _ => gaps_within(&self.delta_max_ns, span.ns()).unwrap_or(0),
        }
    }
}

/// A value of a curve, and whether it is extrapolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach<T> {
    /// The value.
    pub value: T,
    /// Whether it is extrapolated: then it holds only if no two releases are ever closer than the closest
    /// observed ones.
    pub extrapolated: bool,
}

/// The safe extrapolation, which relies on δ⁻(2) alone. (papers: Jungmann et al., ERTS 2024, Section V-C.)
impl Curve {
    /// δ⁻(n), past the table by δ⁻(n + 1) = δ⁻(n) + δ⁻(2) (Eq. 7). `u64::MAX` ns means that or more. O(1).
    pub fn safe_delta_min(&self, n: u64) -> Reach<Duration> {
        let (table, gaps) = (&self.delta_min_ns, n.saturating_sub(1));
        let entries = table.len() as u64;
        let (Some(first), Some(last)) = (table.first(), table.last()) else {
            return Reach { value: Duration::ZERO, extrapolated: gaps > 0 };
        };
        match gaps {
            0 => Reach { value: Duration::ZERO, extrapolated: false },
            gaps if gaps <= entries => Reach { value: table[gaps as usize - 1], extrapolated: false },
            gaps => {
                let more = u128::from(gaps - entries) * u128::from(first.ns()) + u128::from(last.ns());
                Reach {
                    value: Duration::from_ns(u64::try_from(more).unwrap_or(u64::MAX)),
                    extrapolated: true,
                }
            }
        }
    }

    /// η⁺(Δ), past the table by η⁺(Δ + δ⁻(2)) = η⁺(Δ) + 1 (Eq. 8 for Δ′ = δ⁻(2)): the pseudo-inverse of
    /// [`Curve::safe_delta_min`]. `None` if unbounded. O(log horizon).
    pub fn safe_eta_max(&self, span: Duration) -> Option<Reach<u64>> {
        let Some(longest) = span.ns().checked_sub(1) else {
            return Some(Reach { value: 0, extrapolated: false });
        };
        let (table, first) = (&self.delta_min_ns, self.delta_min_ns.first()?.ns());
        let in_table = table.partition_point(|value| value.ns() <= longest);
        let value = in_table as u64 + 1;
        if in_table < table.len() {
            return Some(Reach { value, extrapolated: false });
        }
        let excess = longest - table.last()?.ns();
        Some(Reach { value: value.checked_add(excess.checked_div(first)?)?, extrapolated: true })
    }
}

impl Execution {
    /// WCET(n): any `n` consecutive jobs take at most this much processor time together. Past the horizon by
    /// subadditivity. `None` if no bound is known or it exceeds `u64::MAX` ns. O(1).
    pub fn wcet(&self, n: u64) -> Option<Duration> {
        let bound = extend(&self.wcet_ns, n)?;
        Some(Duration::from_ns(bound.try_into().ok()?))
    }
}

/// The least that bounds for 1, 2, … jobs in a row come to together, for as many as `entries`: short rows
/// may be bounded more tightly than the long one that they make up, and a row takes no more than a longer
/// one. Some sequence of jobs reaches it.
pub fn together_at_most(bounds: &[Duration], entries: usize) -> Vec<Duration> {
    let mut closed: Vec<Duration> = Vec::with_capacity(entries);
    for count in (1..=entries).filter(|_| !bounds.is_empty()) {
        let given = bounds.get(count - 1..).and_then(|longer| longer.iter().min());
        let split = (1..=count / 2).map(|part| closed[part - 1] + closed[count - part - 1]);
        closed.extend(split.chain(given.copied()).min());
    }
    closed
}

/// The greatest that least spans of 1, 2, … gaps come to together, for as many as `entries`: a long span is
/// no shorter than the short ones in it. Some sequence of releases is as dense.
pub fn together_at_least(spans: &[Duration], entries: usize) -> Vec<Duration> {
    let mut closed: Vec<Duration> = Vec::with_capacity(entries);
    for count in (1..=entries).filter(|_| !spans.is_empty()) {
        let given = spans.get(count - 1).copied();
        let split = (1..=count / 2).map(|part| closed[part - 1] + closed[count - part - 1]);
        let before = closed.last().copied();
        closed.extend(split.chain(given).chain(before).max());
    }
    closed
}

/// The value for `n` of a table of those for 1, 2, … (zero for 0): as many whole tables as fit, plus the
/// entry for the remainder. `None` if the table is empty.
fn extend(table: &[Duration], n: u64) -> Option<u128> {
    if n == 0 {
        return Some(0);
    }
    let last = table.last()?;
    let horizon = table.len() as u64;
    let rest = match (n % horizon) as usize {
        0 => 0,
        rest => table.get(rest - 1)?.ns(),
    };
    // Both factors fit 64 bits, and so does the addend: no overflow.
    Some(u128::from(n / horizon) * u128::from(last.ns()) + u128::from(rest))
}

/// The greatest number whose extended value ([`extend`]) is at most `limit`. `None` if there is no greatest,
/// the table is empty, or the number exceeds 64 bits.
fn gaps_within(table: &[Duration], limit: u64) -> Option<u64> {
    let last = table.last()?.ns();
    let whole = limit.checked_div(last)?;
    let rest = limit % last;
    let part = table.partition_point(|value| value.ns() <= rest) as u64;
    whole.checked_mul(table.len() as u64)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest (`most`) or least sum of so many numbers in a row, up to 4 each, where every shorter row
    /// keeps to its bound.
    fn brute_force(bounds: &[u64], count: usize, most: bool) -> u64 {
        // Others follow, which may take no time.
        let keeps = |row: &[u64]| {
            let zeros = if most { bounds.len() } else { 0 };
            let row: Vec<u64> = row.iter().copied().chain(std::iter::repeat_n(0, zeros)).collect();
            let sums = |length: usize| row.windows(length).map(|part| part.iter().sum::<u64>());
            let mut all = (1..=bounds.len()).flat_map(|length| sums(length).map(move |sum| (length, sum)));
            all.all(|(length, sum)| if most { sum <= bounds[length - 1] } else { sum >= bounds[length - 1] })
        };
        let rows = (0..5_usize.pow(count as u32)).map(|number| {
            (0..count).map(|place| (number / 5_usize.pow(place as u32) % 5) as u64).collect::<Vec<u64>>()
        });
        let sums = rows.filter(|row| keeps(row)).map(|row| row.iter().sum::<u64>());
        if most { sums.max() } else { sums.min() }.expect("one keeps to them")
    }

    #[test]
    fn bounds_together_are_those_of_all_sequences() {
        let ns = |list: &[u64]| list.iter().map(|ns| Duration::from_ns(*ns)).collect::<Vec<_>>();
        for bounds in [[2, 3, 4], [4, 1, 7], [3, 6, 9], [4, 8, 5], [1, 9, 9], [3, 4, 10]] {
            let (most, least) = (together_at_most(&ns(&bounds), 6), together_at_least(&ns(&bounds), 6));
            for count in 1..=6 {
                assert_eq!(most[count - 1].ns(), brute_force(&bounds, count, true), "{bounds:?} {count}");
                // Numbers up to 4 can keep to no greater bounds.
                if bounds.iter().zip(1..).all(|(bound, length)| *bound <= 4 * length) {
                    assert_eq!(
                        least[count - 1].ns(),
                        brute_force(&bounds, count, false),
                        "{bounds:?} {count}"
                    );
                }
            }
        }
        assert_eq!((together_at_most(&[], 3), together_at_least(&[], 3)), (Vec::new(), ns(&[])));
    }
}
