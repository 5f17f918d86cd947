//! Instants, durations and release windows: integer nanoseconds of CLOCK_MONOTONIC.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time on CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

/// A span of time in whole nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

impl Instant {
    /// The instant `ns` nanoseconds after the clock's zero.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to here, zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Duration = Duration(0);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds; saturates.
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds; saturates.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Whole nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Whether it is zero.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// In seconds, rounded.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This minus `other`; zero if `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

/// Prints all digits, in the unit that leaves one to three of them before the point: `41 µs`, `5.339 ms`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, mut rest) = (self.0 / unit, self.0 % unit);
        let mut digits = unit.ilog10() as usize;
        while digits > 0 && rest % 10 == 0 {
            rest /= 10;
            digits -= 1;
        }
        match digits {
            0 => f.pad(&format!("{whole} {name}")),
            _ => f.pad(&format!("{whole}.{rest:0digits$} {name}")),
        }
    }
}

/// When something happened whose exact time is unknown: somewhere in `[earliest, latest]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    earliest: Instant,
    latest: Instant,
}

impl Window {
    /// The window `[earliest, latest]`; `None` if it would be empty.
    pub fn new(earliest: Instant, latest: Instant) -> Option<Self> {
        (earliest <= latest).then_some(Self { earliest, latest })
    }

    /// The window of something observed exactly.
    pub const fn at(instant: Instant) -> Self {
        Self { earliest: instant, latest: instant }
    }

    /// The first instant at which it may have happened.
    pub const fn earliest(self) -> Instant {
        self.earliest
    }

    /// The last instant at which it may have happened.
    pub const fn latest(self) -> Instant {
        self.latest
    }

    /// Whether it was observed exactly.
    pub fn is_exact(self) -> bool {
        self.earliest == self.latest
    }

    /// The length of the window.
    pub const fn width(self) -> Duration {
        self.latest.since(self.earliest)
    }
}
