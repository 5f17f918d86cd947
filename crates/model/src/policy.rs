//! How Linux schedules a thread.

use crate::time::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A scheduling policy of Linux. The file, recordings, the kernel side and the daemon's protocol share this
/// type, each with its own notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The default policy.
    Other,
    /// First in, first out, by priority.
    Fifo,
    /// Round robin, by priority.
    Rr,
    /// Throughput.
    Batch,
    /// Very low priority.
    Idle,
    /// Earliest deadline first with reservations.
    Deadline,
    /// Scheduled by a BPF program (sched_ext).
    Ext,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 7] =
        [Policy::Other, Policy::Fifo, Policy::Rr, Policy::Batch, Policy::Idle, Policy::Deadline, Policy::Ext];

    /// The kernel's number for it, as in `<linux/sched.h>`.
    pub const fn number(self) -> u32 {
        match self {
            Policy::Other => 0,
            Policy::Fifo => 1,
            Policy::Rr => 2,
            Policy::Batch => 3,
            Policy::Idle => 5,
            Policy::Deadline => 6,
            Policy::Ext => 7,
        }
    }

    /// The policy with this number; `None` if the kernel has none.
    pub fn from_number(number: u32) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.number() == number)
    }

    /// Its name in the kernel's headers and in the timing-model file: `SCHED_FIFO`.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Other => "SCHED_OTHER",
            Policy::Fifo => "SCHED_FIFO",
            Policy::Rr => "SCHED_RR",
            Policy::Batch => "SCHED_BATCH",
            Policy::Idle => "SCHED_IDLE",
            Policy::Deadline => "SCHED_DEADLINE",
            Policy::Ext => "SCHED_EXT",
        }
    }

    /// The policy with this [`name`](Policy::name).
    pub fn from_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Its name without the prefix `SCHED_`: `FIFO`.
    pub fn short_name(self) -> &'static str {
        &self.name()["SCHED_".len()..]
    }

    /// The short name in lowercase, as the daemon's protocol has it: `fifo`. Replies contain it, so it is not
    /// made from the other each time.
    pub const fn lowercase_name(self) -> &'static str {
        match self {
            Policy::Other => "other",
            Policy::Fifo => "fifo",
            Policy::Rr => "rr",
            Policy::Batch => "batch",
            Policy::Idle => "idle",
            Policy::Deadline => "deadline",
            Policy::Ext => "ext",
        }
    }

    /// Whether a thread has a real-time priority under it.
    pub const fn has_priority(self) -> bool {
        matches!(self, Policy::Fifo | Policy::Rr)
    }

    /// Whether a thread has a nice value under it.
    pub const fn has_nice(self) -> bool {
        matches!(self, Policy::Other | Policy::Batch | Policy::Ext)
    }

    /// Whether it runs before all threads that are not real-time.
    pub const fn is_real_time(self) -> bool {
        self.has_priority() || matches!(self, Policy::Deadline)
    }
}

/// As in the file: its [`name`](Policy::name).
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
        deserializer.deserialize_str(ByName(Policy::name))
    }
}

/// Reads a policy by the name that this gives to it.
struct ByName(fn(Policy) -> &'static str);

impl de::Visitor<'_> for ByName {
    type Value = Policy;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a scheduling policy ({})", Policy::ALL.map(self.0).join(", "))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Policy, E> {
        let found = Policy::ALL.into_iter().find(|policy| self.0(*policy) == name);
        found
            .ok_or_else(|| E::custom(format_args!("expected {}, found {name:?}", &self as &dyn de::Expected)))
    }
}

/// The notation of the daemon's protocol, `"fifo"`: `#[serde(with = "punctual_model::policy::lowercase")]`.
pub mod lowercase {
    use super::{ByName, Policy};
    use serde::{Deserializer, Serializer};

    /// Writes the short name in lowercase.
    ///
    /// # Errors
    /// If the serializer has one.
    pub fn serialize<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(policy.lowercase_name())
    }

    /// Reads the short name in lowercase.
    ///
    /// # Errors
    /// If it is not the name of a policy.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
        deserializer.deserialize_str(ByName(Policy::lowercase_name))
    }
}

/// Parameters of a SCHED_DEADLINE thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Budget per period.
    pub runtime_ns: Duration,
    /// Relative deadline.
    pub deadline_ns: Duration,
    /// Period.
    pub period_ns: Duration,
}

impl Reservation {
    /// The kernel takes no shorter runtime (`DL_SCALE`).
    pub const LEAST_RUNTIME: Duration = Duration::from_ns(1 << 10);
    /// The shortest and the longest period that the kernel takes, unless
    /// `sched_deadline_period_{min,max}_us` say otherwise.
    pub const PERIODS: (Duration, Duration) = (Duration::from_us(100), Duration::from_us(1 << 22));

    /// Whether the kernel takes it, by its defaults (`__checkparam_dl`).
    pub fn is_possible(&self) -> bool {
        let is_ordered = Self::LEAST_RUNTIME <= self.runtime_ns
            && self.runtime_ns <= self.deadline_ns
            && self.deadline_ns <= self.period_ns;
        is_ordered && Self::PERIODS.0 <= self.period_ns && self.period_ns <= Self::PERIODS.1
    }
}
