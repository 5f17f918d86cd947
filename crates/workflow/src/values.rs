//! Values as people write them: times, percentages, deadlines, changes. Front ends say of which option one is
//! wrong.

use crate::error::Result;
use crate::filter::ThreadFilter;
use crate::prove;
use punctual_model::Percent;
use std::time::Duration;

/// A span longer than zero; a number without a unit is in seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    match offset(text)? {
        Duration::ZERO => Err("must be longer than zero".into()),
        time => Ok(time),
    }
}

/// A time since some beginning; a number without a unit is in seconds.
pub fn offset(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .or_else(|| humantime::parse_duration(text).ok())
        .ok_or_else(|| "expected seconds, or a number with a unit such as 500ms, 10s, 5min or 2h".into())
}

/// A percentage, with its sign or without.
pub fn percent(text: &str) -> Result<Percent, String> {
    const EXPECTED: &str = "expected 0% to 1000%, with at most three digits after the point";
    let percent = text.strip_prefix('+').unwrap_or(text).parse().ok();
    percent.filter(|percent| *percent <= Percent::whole(1_000)).ok_or_else(|| EXPECTED.into())
}

/// The deadline of some threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// A pattern of their names.
    pub thread: String,
    /// From the arrival of a job.
    pub time: punctual_model::Duration,
}

impl Deadline {
    /// The threads, and their deadline.
    pub fn resolve(&self) -> Result<(ThreadFilter, punctual_model::Duration)> {
        Ok((ThreadFilter::new(std::slice::from_ref(&self.thread))?, self.time))
    }
}

/// `control*=4ms`
pub fn deadline(text: &str) -> Result<Deadline, String> {
    let (thread, length) = text.rsplit_once('=').ok_or("expected THREAD=TIME, such as control=4ms")?;
    let ns = u64::try_from(time(length)?.as_nanos()).map_err(|_| "is too long")?;
    Ok(Deadline { thread: thread.into(), time: punctual_model::Duration::from_ns(ns) })
}

/// A change of some threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// A pattern of their names.
    pub thread: String,
    /// Whether the period changes rather than the processor time.
    pub is_period: bool,
    /// The factor, in thousandths of a percent.
    pub parts: u64,
}

impl Change {
    /// The change to try.
    pub fn resolve(&self) -> Result<prove::Change> {
        let what = if self.is_period { prove::Changed::Period } else { prove::Changed::Wcet };
        let thread = ThreadFilter::new(std::slice::from_ref(&self.thread))?;
        Ok(prove::Change { thread, what, parts: self.parts })
    }
}

/// `control.wcet=+20%`
pub fn change(text: &str) -> Result<Change, String> {
    const EXPECTED: &str = "expected THREAD.wcet=+20% or THREAD.period=-10%";
    let (subject, amount) = text.rsplit_once('=').ok_or(EXPECTED)?;
    let (thread, what) = subject.rsplit_once('.').ok_or(EXPECTED)?;
    let is_period = match what {
        "wcet" => false,
        "period" => true,
        _ => return Err(EXPECTED.into()),
    };
    let percent = amount.strip_suffix('%').ok_or(EXPECTED)?;
    let (is_less, digits) = match percent.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, percent.strip_prefix('+').unwrap_or(percent)),
    };
    let share: Percent = digits
        .parse()
        .map_err(|_| format!("{EXPECTED}, with at most three digits after the point of the percentage"))?;
    let parts = match is_less {
        true => Percent::WHOLE.checked_sub(share.parts()).filter(|parts| *parts > 0),
        false => Some(Percent::WHOLE + share.parts()).filter(|_| share <= Percent::whole(10_000)),
    };
    let parts = parts.ok_or("expected more than -100% and at most +10000%")?;
    Ok(Change { thread: thread.into(), is_period, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_unit_are_seconds() {
        assert_eq!(time("5"), Ok(Duration::from_secs(5)));
        assert_eq!(time("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(time("1min 30s"), Ok(Duration::from_secs(90)));
        for nonsense in ["0", "0s", "-1", "nan", "inf", "1e30", "much", ""] {
            assert!(time(nonsense).is_err(), "{nonsense}");
        }
        assert_eq!((offset("0"), offset("2s")), (Ok(Duration::ZERO), Ok(Duration::from_secs(2))));
    }

    #[test]
    fn percentages_are_exact_or_refused() {
        assert_eq!(percent("12.34%").map(Percent::parts), Ok(12_340));
        assert_eq!(percent("0.5").map(Percent::parts), Ok(500));
        for wrong in ["1000.001%", "0.0001%", "-1%", "nan", "1e2"] {
            assert!(percent(wrong).is_err_and(|it| it.contains("three digits")), "{wrong}");
        }
        let parts = |text: &str| change(&format!("a.{text}")).map(|change| change.parts);
        assert_eq!((parts("wcet=+0.04%"), parts("wcet=20.04%")), (Ok(100_040), Ok(120_040)));
        assert_eq!((parts("period=-0.05%"), parts("period=-99.999%")), (Ok(99_950), Ok(1)));
        assert!(parts("wcet=+0.0004%").is_err_and(|it| it.contains("three digits")));
        assert!(parts("wcet=-100%").is_err() && parts("wcet=+10000.001%").is_err());
    }
}
