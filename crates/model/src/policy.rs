//! How Linux schedules a thread.

use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// The default policy.
    #[serde(rename = "SCHED_OTHER")]
    Other,
    /// First in, first out, by priority.
    #[serde(rename = "SCHED_FIFO")]
    Fifo,
    /// Round robin, by priority.
    #[serde(rename = "SCHED_RR")]
    Rr,
    /// Throughput.
    #[serde(rename = "SCHED_BATCH")]
    Batch,
    /// Very low priority.
    #[serde(rename = "SCHED_IDLE")]
    Idle,
    /// Earliest deadline first with reservations.
    #[serde(rename = "SCHED_DEADLINE")]
    Deadline,
    /// Scheduled by a BPF program (sched_ext).
    #[serde(rename = "SCHED_EXT")]
    Ext,
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
