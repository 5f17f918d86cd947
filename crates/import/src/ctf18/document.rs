//! What the metadata of a trace say.

use super::types::Type;
use std::collections::BTreeMap;

/// A whole trace, as declared.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// CTF 2: roles say what integers mean. In CTF 1.8 names say it, and LTTng puts an underscore before
    /// those of events.
    pub is_ctf2: bool,
    /// Whether integers are big-endian where they do not say so themselves.
    pub is_big: bool,
    pub packet_header: Option<Type>,
    /// What is true of the trace, for people and for importers.
    pub env: BTreeMap<String, String>,
    pub clocks: Vec<Clock>,
    pub streams: BTreeMap<u64, StreamClass>,
    pub events: Vec<EventClass>,
}

/// A clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    pub name: String,
    pub uuid: Option<String>,
    /// Ticks in a second; greater than zero.
    pub frequency: u64,
    /// Since the epoch, at its zero.
    pub offset_s: i64,
    pub offset_ticks: i64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { name: String::new(), uuid: None, frequency: 1_000_000_000, offset_s: 0, offset_ticks: 0 }
    }
}

const NS: i128 = 1_000_000_000;

impl Clock {
    /// Nanoseconds of so many ticks.
    #[inline]
    pub fn ns(&self, ticks: u64) -> i128 {
        if self.frequency == NS as u64 {
            return i128::from(ticks);
        }
        i128::from(ticks) * NS / i128::from(self.frequency)
    }

    /// Nanoseconds from the epoch to its zero.
    pub fn zero(&self) -> i128 {
        i128::from(self.offset_s) * NS + i128::from(self.offset_ticks) * NS / i128::from(self.frequency)
    }

    /// Whether it is the same clock, though perhaps measured against the epoch at another time.
    pub fn is_same(&self, other: &Clock) -> bool {
        self.name == other.name && self.uuid == other.uuid && self.frequency == other.frequency
    }
}

/// What the packets and events of a stream begin with.
#[derive(Clone, Debug, Default)]
pub struct StreamClass {
    pub packet_context: Option<Type>,
    pub event_header: Option<Type>,
    pub event_context: Option<Type>,
}

#[derive(Clone, Debug, Default)]
pub struct EventClass {
    pub name: String,
    pub id: u64,
    pub stream: u64,
    pub context: Option<Type>,
    pub fields: Option<Type>,
}
