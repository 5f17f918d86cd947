//! Numbers: durations to four significant digits, rounded towards the safe side; exact periods; counts.

use punctual_model::{Duration, Periodic};

/// To four significant digits, never less than `duration`: for upper bounds.
pub(crate) fn at_most(duration: Duration) -> Duration {
    let grain = grain(duration);
    Duration::from_ns(duration.ns().div_ceil(grain).saturating_mul(grain))
}

/// To four significant digits, never more than `duration`: for lower bounds.
pub(crate) fn at_least(duration: Duration) -> Duration {
    let grain = grain(duration);
    Duration::from_ns(duration.ns() / grain * grain)
}

/// To the nearest of four significant digits: for means and spans of observation.
pub(crate) fn about(duration: Duration) -> Duration {
    let grain = grain(duration);
    Duration::from_ns(duration.ns().saturating_add(grain / 2) / grain * grain)
}

/// To the nearest of three significant digits: for quartiles, which have no more.
pub(crate) fn three_digits(duration: Duration) -> Duration {
    let grain = if duration.ns() < 1_000 { 1 } else { 10 * grain(duration) };
    Duration::from_ns(duration.ns().saturating_add(grain / 2) / grain * grain)
}

/// One unit of the fourth significant digit, in nanoseconds.
fn grain(duration: Duration) -> u64 {
    let digits = duration.ns().checked_ilog10().unwrap_or(0);
    10_u64.pow(digits.saturating_sub(3))
}

/// A period, exactly: `5 ms`; `60 Hz` where only the frequency is round; else the duration to the nanosecond.
pub(crate) fn period(periodic: &Periodic) -> String {
    frequency(periodic).unwrap_or_else(|| periodic.period_ns.to_string())
}

/// The frequency of a period that is no whole number of nanoseconds, where at most six decimals of a hertz
/// say it exactly.
pub(crate) fn frequency(periodic: &Periodic) -> Option<String> {
    let exact = periodic.period_exact.filter(|exact| exact.denominator > 1)?;
    let micro_hertz = u128::from(exact.denominator) * 1_000_000_000_000_000;
    let period = u128::from(exact.numerator);
    if period == 0 || micro_hertz % period != 0 {
        return None;
    }
    let (whole, decimals) = (micro_hertz / period / 1_000_000, micro_hertz / period % 1_000_000);
    let text = format!("{whole}.{decimals:06}");
    Some(format!("{} Hz", text.trim_end_matches('0').trim_end_matches('.')))
}

/// A count with its thousands set apart: `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// A count and what is counted: `1 task`, `1,200 tasks`.
pub fn counted(number: u64, noun: &str) -> String {
    let several = if noun.ends_with("sh") { "es" } else { "s" };
    format!("{} {noun}{}", count(number), agreeing(number, "", several))
}

/// What agrees with a count: `agreeing(1, "was", "were")`.
pub(crate) fn agreeing<'a>(number: u64, one: &'a str, several: &'a str) -> &'a str {
    if number == 1 { one } else { several }
}

/// A list for a sentence: the first ones, and behind `and` how many more there are.
pub fn few(all: &[String], most: usize, and: &str) -> String {
    let named = all[..all.len().min(most)].join(", ");
    match all.len().saturating_sub(most) {
        0 => named,
        more => format!("{named}{and}{more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use punctual_model::Fraction;

    #[test]
    fn bounds_are_rounded_to_the_safe_side() {
        let value = Duration::from_ns(4_961_237);
        assert_eq!(at_least(value).to_string(), "4.961 ms");
        assert_eq!(at_most(value).to_string(), "4.962 ms");
        assert_eq!(about(value).to_string(), "4.961 ms");
        assert_eq!(at_most(Duration::from_ns(9_999_001)).to_string(), "10 ms");
        assert_eq!(at_most(Duration::from_ns(41_000)).to_string(), "41 µs");
        for ns in [0, 1, 9_999] {
            assert_eq!((at_least(Duration::from_ns(ns)).ns(), at_most(Duration::from_ns(ns)).ns()), (ns, ns));
        }
        assert_eq!(at_most(Duration::from_ns(u64::MAX)).ns(), u64::MAX);
        let three = [0, 7, 999, 1_000, 1_234, 1_235, 9_996, 4_961_237]
            .map(|ns| three_digits(Duration::from_ns(ns)).ns());
        assert_eq!(three, [0, 7, 999, 1_000, 1_230, 1_240, 10_000, 4_960_000]);
    }

    #[test]
    fn periods_are_exact() {
        let mut periodic = example::periodic(5_339_123, 0);
        assert_eq!(period(&periodic), "5.339123 ms");
        periodic.period_exact = Some(Fraction { numerator: 50_000_000, denominator: 3 });
        assert_eq!(period(&periodic), "60 Hz");
        // 44.1 kHz in blocks of 128: 344.53125 Hz.
        periodic.period_exact = Some(Fraction { numerator: 1_280_000_000, denominator: 441 });
        assert_eq!(period(&periodic), "344.53125 Hz");
        periodic.period_exact = Some(Fraction { numerator: 10_678_247, denominator: 2 });
        assert_eq!(period(&periodic), "5.339123 ms");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "job"), "1 job");
        assert_eq!(counted(12_000, "job"), "12,000 jobs");
    }
}
