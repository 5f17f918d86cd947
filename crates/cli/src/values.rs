//! Values of options: times and sizes as people write them.

use clap::builder::RangedI64ValueParser;
use punctual_model::processor_list;
pub use punctual_workflow::values::{Change, Deadline, change, deadline, offset, percent, time};
use punctual_workflow::{Quantile, tt};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// How often a display changes.
pub fn interval(text: &str) -> Result<Duration, String> {
    let interval = offset(text)?;
    let is_sensible = (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&interval);
    if is_sensible { Ok(interval) } else { Err("expected 100ms to 1min".into()) }
}

/// What the name of a timing model ends in, for names that are derived from it.
pub fn model_ending(path: &Path) -> &'static str {
    // A table keeps its kind: robot.table.html.
    if path.to_string_lossy().ends_with(".table.json") { ".json" } else { ".timing.json" }
}

/// A quantile that timing models have.
pub fn quantile(text: &str) -> Result<Quantile, String> {
    let found = percent(text).ok().and_then(|share| {
        Quantile::ALL.into_iter().find(|quantile| quantile.per_mille() * 100 == share.parts())
    });
    found.ok_or_else(|| "expected 50%, 90%, 99% or 99.9%".into())
}

/// The length of a curve.
pub fn horizon() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=100_000)
}

/// The number of a process.
pub fn pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected numbers of processes, such as 1234 or 1234,1240".into())
}

pub fn workers(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number of workers, at least 1".into())
}

/// The size of a recording.
pub fn limit(text: &str) -> Result<u64, String> {
    let size: bytesize::ByteSize = text.parse().map_err(|_| "expected a size such as 500MiB or 2GiB")?;
    Some(size.as_u64()).filter(|size| *size >= 8 << 20).ok_or_else(|| "expected at least 8MiB".into())
}

/// The size of a buffer.
pub fn buffer(text: &str) -> Result<u32, String> {
    let size: bytesize::ByteSize = text.parse().map_err(|_| "expected a size such as 512KiB or 4MiB")?;
    let allowed = (64 << 10)..=(1 << 30);
    u32::try_from(size.as_u64())
        .ok()
        .filter(|size| allowed.contains(size))
        .ok_or_else(|| "expected 64KiB to 1GiB".into())
}

/// Numbers of processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub BTreeSet<u32>);

/// A list of processors as the kernel writes them: `0-1,4`.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let cpus = processor_list(text).map(|cpus| Cpus(cpus.into_iter().collect()));
    cpus.ok_or_else(|| "expected processors such as 0-1,4".into())
}

/// How often something happens; `None`: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(pub Option<Duration>);

/// Measuring threads have a real-time priority: more often than this, they would leave no time for others.
const SHORTEST_PERIOD: Duration = Duration::from_micros(50);
/// They end at the end of their period, so the command does not before.
const LONGEST_PERIOD: Duration = Duration::from_secs(1);

/// A span that is long enough, or `off`.
pub fn period(text: &str) -> Result<Period, String> {
    match text {
        "off" => Ok(Period(None)),
        text => match time(text)? {
            period if period < SHORTEST_PERIOD => Err("must be 50us or longer".into()),
            period if period > LONGEST_PERIOD => Err("must be 1s or shorter".into()),
            period => Ok(Period(Some(period))),
        },
    }
}

/// When a table begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start(pub tt::Start);

/// Nanoseconds on a clock, or `+TIME` from now.
pub fn start(text: &str) -> Result<Start, String> {
    // Clocks of the kernel end after 292 years; half of that is left for how long this one has run.
    let is_far = |ns: u128| ns > i64::MAX as u128;
    let start = match text.strip_prefix('+') {
        Some(time) => match offset(time)? {
            time if is_far(time.as_nanos() * 2) => return Err("expected less than 146 years".into()),
            time => tt::Start::After(time),
        },
        None => {
            let ns: u64 = text.parse().map_err(|_| "expected nanoseconds on the table's clock, or +TIME")?;
            if is_far(ns.into()) {
                return Err("expected less than 2^63 ns, where clocks of the kernel end".into());
            }
            tt::Start::At(punctual_model::Instant::from_ns(ns))
        }
    };
    Ok(Start(start))
}

/// The thread of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping(pub tt::Mapping);

/// `TASK=TID`; a task's name may hold a `=`.
pub fn mapping(text: &str) -> Result<Mapping, String> {
    let parts = text.rsplit_once('=').and_then(|(task, tid)| Some((task, tid.parse().ok()?)));
    let (task, tid) = parts.ok_or("expected a task and the number of its thread, such as control=812")?;
    Ok(Mapping(tt::Mapping { task: task.to_owned(), tid }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_as_the_kernel_does() {
        assert_eq!(cpus("0-1,4"), Ok(Cpus([0, 1, 4].into())));
        assert_eq!(cpus("3"), Ok(Cpus([3].into())));
        for nonsense in ["", "a", "2-1", "1-", "-1", "0,,1", "99999999"] {
            assert!(cpus(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn tables_begin_at_an_instant_or_after_a_time() {
        use punctual_model::Instant;
        assert_eq!(start("1500"), Ok(Start(tt::Start::At(Instant::from_ns(1500)))));
        assert_eq!(start("+2s"), Ok(Start(tt::Start::After(Duration::from_secs(2)))));
        assert!(start("2s").is_err() && start("+").is_err() && start("-1").is_err());
        assert!(start("+18446744074s").is_err() && start("18446744073709551615").is_err());
        assert!(start("9223372036854775807").is_ok());
    }

    #[test]
    fn a_thread_is_mapped_by_the_last_equals_sign() {
        let control = |tid| Ok(Mapping(tt::Mapping { task: "a=b".into(), tid }));
        assert_eq!(mapping("a=b=12"), control(12));
        assert!(mapping("a").is_err() && mapping("a=b").is_err() && mapping("a=").is_err());
    }

    #[test]
    fn periods_may_be_off() {
        assert_eq!(period("off"), Ok(Period(None)));
        assert_eq!(period("1ms"), Ok(Period(Some(Duration::from_millis(1)))));
        assert_eq!(period("50us"), Ok(Period(Some(SHORTEST_PERIOD))));
        assert!(period("0").is_err() && period("49us").is_err());
        assert!(period("1").is_ok() && period("1001ms").is_err() && period("1h").is_err());
    }

    #[test]
    fn sizes_have_bounds() {
        assert_eq!(buffer("4MiB"), Ok(4 << 20));
        assert!(buffer("1KiB").is_err() && buffer("8GiB").is_err() && buffer("much").is_err());
        assert!(workers("0").is_err() && workers("-1").is_err() && workers("8").is_ok());
        assert_eq!(limit("2GiB"), Ok(2 << 30));
        assert!(limit("1MiB").is_err() && limit("much").is_err());
    }
}
