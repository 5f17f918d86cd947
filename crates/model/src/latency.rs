//! The section `latency`: how late the kernel can make a thread. For each processor the variables of the
//! bound, each with what caused its greatest value; interrupts; and measured latencies. (papers:
//! scheduling-latency.)
//!
//! The bound itself is not in the file: it follows from the section (crate `latency`), under any model of
//! interrupts.

mod interrupts;
mod measured;
mod merge;
mod section;
mod staircase;
mod validate;
mod variables;

pub use interrupts::{Interrupt, InterruptCurves, InterruptKind, InterruptSource};
pub use measured::{MAX_WORST, Measured, Ran, RanKind, RealTimeThread, Split, Timers, Wakeup};
pub use staircase::{Staircase, Step};
pub use variables::{Culprit, ThreadId, Variable, Variables};

use crate::section::is_zero;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What delays threads on each processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulingLatency {
    /// When the observation began.
    pub from_ns: Instant,
    /// When it ended.
    pub until_ns: Instant,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// How preemptible the kernel was. The bound's rules are those of [`Preemption::Rt`].
    pub preemption: Preemption,
    /// Why the variables were not observed; absent where they were. Older files do not have it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_variables: Option<NoVariables>,
    /// Windows of interrupts are exact up to this length.
    pub horizon_ns: Duration,
    /// Of the recordings that this was replayed from, those that were cut off or damaged: everything may have
    /// been greater.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub damaged_recordings: u64,
    /// The processors that were observed, by ascending number.
    pub processors: Vec<Processor>,
    /// The kernel's runtime-verification monitors that watched the bound's rules, by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub monitors: Vec<Monitor>,
}

/// How preemptible a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// `PREEMPT_NONE`.
    None,
    /// `PREEMPT_VOLUNTARY`.
    Voluntary,
    /// `PREEMPT`.
    Full,
    /// `PREEMPT_LAZY`.
    Lazy,
    /// `PREEMPT_RT`.
    Rt,
    /// Not known.
    Unknown,
}

/// Why the variables of the bound cannot be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoVariables {
    /// An older recording does not say why.
    Unknown,
    /// The processors are not ones that Punctual knows well enough.
    Architecture,
    /// The kernel lacks the scheduler's tracepoints of Linux 6.12.
    KernelVersion,
    /// The kernel is built without the tracepoints `preemptirq:*`.
    KernelOptions,
    /// tracefs was not mounted.
    Tracefs,
    /// tracefs could not be read with the privileges of the measurement.
    Privileges,
}

/// What delays threads on one processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Its number.
    pub cpu: u32,
    /// For how long it was observed.
    pub observed_ns: Duration,
    /// Events that are known to have been missed: the kernel skipped the observing programs, or other events
    /// show that there was one.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped_events: u64,
    /// Records that found no room on their way to user space.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub lost_records: u64,
    /// How often it went offline.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub went_offline: u64,
    /// Durations that came out negative: a defect of the observation.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub negative_durations: u64,
    /// The variables of threads; absent where the kernel does not show them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub variables: Option<Variables>,
    /// Interrupts, by source.
    pub interrupts: Vec<Interrupt>,
    /// How late timers expired; absent where that was not observed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timers: Option<Timers>,
    /// Measured latencies on this processor, by thread.
    pub measured: Vec<Measured>,
}

/// A runtime-verification monitor of the kernel that watched some of the rules R1 to R14.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its name in tracefs: `scpd`.
    pub name: String,
    /// The rules that it watches: `R6`.
    pub rules: Vec<String>,
    /// For how long it watched.
    pub watched_ns: Duration,
    /// How often it found a rule violated.
    pub violations: u64,
}

impl Preemption {
    /// Its name in kernel configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Preemption::None => "PREEMPT_NONE",
            Preemption::Voluntary => "PREEMPT_VOLUNTARY",
            Preemption::Full => "PREEMPT",
            Preemption::Lazy => "PREEMPT_LAZY",
            Preemption::Rt => "PREEMPT_RT",
            Preemption::Unknown => "an unknown preemption model",
        }
    }
}
