//! The variables of the bound: the greatest durations for which a thread, or the scheduler, keeps a processor
//! from scheduling, each with its culprit.

use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::ops::Not;

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

impl Variables {
    /// Each with its name in the file, in the paper's order.
    pub fn each(&self) -> [(&'static str, &Variable); 4] {
        [("poid", &self.poid), ("psd", &self.psd), ("st", &self.st), ("paie", &self.paie)]
    }
}
