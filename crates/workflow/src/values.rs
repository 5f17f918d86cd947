//! Values as people write them: times, percentages, deadlines, changes. Front ends say of which option one is
//! wrong.

use crate::error::Result;
use crate::filter::ThreadFilter;
use crate::prove;
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
pub fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number.parse().ok().filter(|percent| *percent <= 1_000).ok_or_else(|| "expected 0% to 1000%".into())
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
    /// The factor, in thousandths.
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
    let percent: f64 = percent.parse().map_err(|_| EXPECTED)?;
    match percent > -100.0 && percent <= 10_000.0 {
        true => {
            Ok(Change { thread: thread.into(), is_period, parts: (1_000.0 + percent * 10.0).round() as u64 })
        }
        false => Err("expected more than -100% and at most +10000%".into()),
    }
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
}
