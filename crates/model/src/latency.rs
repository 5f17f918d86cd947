//! The section `latency`: how late the kernel can make a thread. For each processor the variables of the
//! bound, each with what caused its greatest value; interrupts; and measured latencies. (papers:
//! scheduling-latency.)
//!
//! The bound itself is not in the file: it follows from the section (crate `latency`), under any model of
//! interrupts.

mod interrupts;
mod measured;
mod merge;
mod staircase;
mod validate;

pub use interrupts::{Interrupt, InterruptCurves, InterruptKind, InterruptSource};
pub use measured::{MAX_WORST, Measured, Ran, RanKind, RealTimeThread, Split, Timers, Wakeup};
pub use staircase::{Staircase, Step};

use crate::section::is_zero;
use crate::section::{Loss, MergeError, Section, Span, Valid};
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::ops::Not;

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
    /// Windows of interrupts are exact up to this length.
    pub horizon_ns: Duration,
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

/// The greatest durations on one processor, less the time of interrupts and NMIs inside. (papers:
/// scheduling-latency, Table 1.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables {
    /// D_POID: preemption or interrupts disabled by a thread, but not to schedule.
    pub poid: Variable,
    /// D_PSD: preemption disabled to schedule, until the scheduler enables it again.
    pub psd: Variable,
    /// D_ST: interrupts disabled by the scheduler for a context switch, until it enables preemption.
    pub st: Variable,
    /// D_PAIE: preemption and interrupts enabled, although the scheduler is to be called.
    pub paie: Variable,
}

/// The greatest value of one variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Variable {
    /// The greatest observed duration.
    pub max_ns: Duration,
    /// Whether something was missed that may have been longer.
    #[serde(skip_serializing_if = "Not::not", default)]
    pub at_least: bool,
    /// What took that long; absent where nothing was observed, or its record was lost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub culprit: Option<Culprit>,
}

/// Who kept a processor from scheduling, when and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Culprit {
    /// When it ended.
    pub at_ns: Instant,
    /// The thread that was running.
    pub thread: ThreadId,
    /// The place in the kernel where it began: `function+0x1c`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opened: Option<String>,
    /// The place where it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub closed: Option<String>,
    /// The kernel stack at its end, innermost frame first: `function+0x1c` or `function+0x1c [module]`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stack: Vec<String>,
}

/// A thread, by name and number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId {
    /// The thread's name (`comm`); `swapper/N` is the idle thread.
    pub name: String,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
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

impl Section for SchedulingLatency {
    fn span(&self) -> Span {
        Span { from_ns: self.from_ns, until_ns: self.until_ns }
    }

    fn losses(&self) -> Vec<Loss> {
        let sum =
            |count: fn(&Processor) -> u64| self.processors.iter().map(count).fold(0, u64::saturating_add);
        Loss::list([
            ("skipped_events", sum(|cpu| cpu.skipped_events)),
            ("lost_records", sum(|cpu| cpu.lost_records)),
            ("went_offline", sum(|cpu| cpu.went_offline)),
            ("negative_durations", sum(|cpu| cpu.negative_durations)),
            ("unmeasured_wakeups", sum(Processor::unmeasured)),
        ])
    }

    fn validate(&self, path: &str) -> Valid {
        validate::latency(path, self)
    }

    /// What holds for both observations, in any order and partition. They must be of the same kernel, and not
    /// overlap in time.
    fn merge(self, other: SchedulingLatency) -> Result<SchedulingLatency, MergeError> {
        merge::latency(self, other)
    }
}

impl Processor {
    /// Wake-ups of which the latency is not known.
    fn unmeasured(&self) -> u64 {
        self.measured.iter().map(|thread| thread.unmeasured).fold(0, u64::saturating_add)
    }
}

impl Variables {
    /// Each with its name in the file, in the paper's order.
    pub fn each(&self) -> [(&'static str, &Variable); 4] {
        [("poid", &self.poid), ("psd", &self.psd), ("st", &self.st), ("paie", &self.paie)]
    }
}
