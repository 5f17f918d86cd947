//! Streams of several rates, bursts, and rates that change.

use super::{Arrival, Fraction};
use crate::error::ReadError;
use crate::section::Valid;
use crate::time::{Duration, Instant};
use crate::valid::not_zero;
use serde::{Deserialize, Serialize};

/// Greatest number of modes of a stream.
pub const MAX_MODES: usize = 64;

/// A span of time in which the same periodic sources release all jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// Latest bound of its first release.
    pub from_ns: Instant,
    /// Latest bound of its last release.
    pub until_ns: Instant,
    /// Its releases.
    pub releases: u64,
    /// What releases them; nothing where no sources are known that explain them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sources: Vec<Source>,
}

/// A periodic source of releases. Activation k (from 0) arrives at `offset + k·P`, with P the exact period,
/// and releases at most one job, or those of one burst: from its arrival until `jitter` later, and until the
/// length of a burst after that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The period, rounded to whole nanoseconds; greater than zero.
    pub period_ns: Duration,
    /// The exact period, if it is not a whole number of nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period_exact: Option<Fraction>,
    /// Arrival of the first activation, on the observation's clock (may lie before the clock's zero).
    pub offset_ns: i64,
    /// Longest time from arrival to release.
    pub jitter_ns: Duration,
    /// The same without the few releases that are outliers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usual_jitter_ns: Option<Duration>,
    /// Activations from the first to the last one with a release.
    pub activations: u64,
    /// If each activation may release several jobs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub burst: Option<Burst>,
}

/// Jobs that one activation releases in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Most jobs: two or more.
    pub jobs: u64,
    /// Longest time from the first to the last release.
    pub within_ns: Duration,
}

impl Arrival {
    /// The shortest time between two activations of one source, if any is periodic.
    pub fn shortest_period(&self) -> Option<Duration> {
        let of_modes = self.modes.iter().flat_map(|mode| &mode.sources).map(|source| source.period_ns);
        self.periodic.iter().map(|periodic| periodic.period_ns).chain(of_modes).min()
    }
}

impl Source {
    /// The jitter without outliers.
    pub fn usual_jitter(&self) -> Duration {
        self.usual_jitter_ns.unwrap_or(self.jitter_ns)
    }
}

impl Mode {
    /// Whether another mode has sources of the same periods and bursts.
    pub fn is_like(&self, other: &Mode) -> bool {
        let alike = |(one, other): (&Source, &Source)| {
            one.period_ns == other.period_ns
                && one.burst.map(|burst| burst.jobs) == other.burst.map(|burst| burst.jobs)
        };
        self.sources.len() == other.sources.len() && self.sources.iter().zip(&other.sources).all(alike)
    }
}

/// Modes follow one another; their sources have periods.
pub(super) fn validate(path: &str, arrival: &Arrival) -> Valid {
    let modes = &arrival.modes;
    if modes.len() > MAX_MODES {
        return Err(ReadError::value(path.to_owned(), format!("at most {MAX_MODES} modes"), modes.len()));
    }
    let mut last = Instant::from_ns(0);
    for (number, mode) in modes.iter().enumerate() {
        for (name, at) in [("from_ns", mode.from_ns), ("until_ns", mode.until_ns)] {
            if at < last {
                let path = format!("{path}[{number}].{name}");
                return Err(ReadError::value(path, format!("at least {}", last.ns()), at.ns()));
            }
            last = at;
        }
        for (place, source) in mode.sources.iter().enumerate() {
            valid_source(&format!("{path}[{number}].sources[{place}]"), source)?;
        }
    }
    Ok(())
}

fn valid_source(path: &str, source: &Source) -> Valid {
    not_zero(&format!("{path}.period_ns"), source.period_ns.ns())?;
    super::validate::exact(path, source.period_ns, source.period_exact)?;
    if let Some(usual) = source.usual_jitter_ns.filter(|usual| *usual > source.jitter_ns) {
        return Err(ReadError::value(
            format!("{path}.usual_jitter_ns"),
            format!("no more than `jitter_ns` ({})", source.jitter_ns.ns()),
            usual.ns(),
        ));
    }
    match source.burst {
        Some(burst) if burst.jobs < 2 => {
            Err(ReadError::value(format!("{path}.burst.jobs"), "two or more", burst.jobs))
        }
        _ => Ok(()),
    }
}
