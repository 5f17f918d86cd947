//! Measured latencies: of wake-ups, and of timers.

use super::variables::{ThreadId, Variable};
use crate::policy::Policy;
use crate::section::is_zero;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The greatest number of wake-ups in [`Measured::worst`].
pub const MAX_WORST: usize = 5;

/// Scheduling latencies of one thread on one processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The observed thread; absent for the measuring thread of Punctual itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<RealTimeThread>,
    /// Wake-ups of which the latency is known.
    pub wakeups: u64,
    /// Wake-ups of which it is not, since an event of them was not seen. Their latencies may have been
    /// greater than [`Measured::max_ns`].
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unmeasured: u64,
    /// The sum of all latencies.
    pub total_ns: Duration,
    /// The greatest. If a wake-up was not seen, that is at least how long the thread was on the run queue
    /// after it, where the kernel's account tells.
    pub max_ns: Duration,
    /// The greatest of those that the bound is for: wake-ups during which no thread ran that the scheduler
    /// preferred. Absent without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bounded_max_ns: Option<Duration>,
    /// Of the measuring thread: the greatest time from when it was due until it ran in user space, as
    /// cyclictest measures it. What held its timer's interrupt off is in it, and the way back from the
    /// kernel; the bound is for neither. Absent for observed threads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_due_max_ns: Option<Duration>,
    /// The wake-ups with the greatest latencies, the greatest first; at most [`MAX_WORST`].
    pub worst: Vec<Wakeup>,
}

/// A thread and how it is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealTimeThread {
    /// Which thread.
    pub id: ThreadId,
    /// Its policy.
    pub policy: Policy,
    /// Its real-time priority (1 to 99) under SCHED_FIFO and SCHED_RR, else 0.
    pub priority: u32,
}

/// One wake-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wakeup {
    /// When the thread became ready.
    pub at_ns: Instant,
    /// From then until it ran.
    pub latency_ns: Duration,
    /// What the latency is made of, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub split: Option<Split>,
    /// What ran on the processor meanwhile, in order, as far as it was recorded. With variables, this is all
    /// of the latency but the rest: at each instant the innermost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ran: Vec<Ran>,
}

/// The parts of a latency; their sum is the latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Split {
    /// Interrupts, softirqs and NMIs.
    pub interrupts_ns: Duration,
    /// Threads that the scheduler preferred.
    pub threads_ns: Duration,
    /// The variables: preemption or interrupts disabled, and the scheduler. Zero where the kernel does not
    /// show them.
    #[serde(skip_serializing_if = "no_time", default)]
    pub sections_ns: Duration,
    /// All else. Where the kernel does not show the variables, they are part of it.
    pub rest_ns: Duration,
}

fn no_time(duration: &Duration) -> bool {
    duration.is_zero()
}

/// What ran for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ran {
    /// What it was.
    pub kind: RanKind,
    /// Name of the thread, or of the interrupt's handler.
    pub name: String,
    /// Thread, or number of the interrupt; 0 if it has none.
    pub number: u32,
    /// Where in the kernel a section began, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opened: Option<String>,
    /// How long a section had been open at the wake-up, without interrupts; absent if it began later.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before_ns: Option<Duration>,
    /// When it began, or the wake-up if that was later.
    pub from_ns: Instant,
    /// For how long, from then on. Of a variable, the sum of all its sections.
    pub duration_ns: Duration,
}

/// What kind of thing ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RanKind {
    /// A thread.
    #[default]
    Thread,
    /// An interrupt.
    Interrupt,
    /// A softirq.
    Softirq,
    /// A non-maskable interrupt.
    Nmi,
    /// A thread with preemption or interrupts disabled: D_POID.
    Poid,
    /// Preemption disabled to schedule, before the scheduler masked interrupts: D_PSD without D_ST.
    Psd,
    /// The scheduler, from its masking of interrupts on: D_ST.
    St,
    /// All enabled, although the scheduler is to be called: D_PAIE.
    Paie,
}

impl RanKind {
    /// The variable that it is part of, as the paper calls it; `None` if it is not.
    pub const fn variable(self) -> Option<&'static str> {
        match self {
            RanKind::Poid => Some("D_POID"),
            RanKind::Psd => Some("D_PSD"),
            RanKind::St => Some("D_ST"),
            RanKind::Paie => Some("D_PAIE"),
            RanKind::Thread | RanKind::Interrupt | RanKind::Softirq | RanKind::Nmi => None,
        }
    }
}

/// How late the timers of one processor expired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timers {
    /// Timers that expired.
    pub expired: u64,
    /// The sum of their latenesses.
    pub total_ns: Duration,
    /// The greatest; its culprit is the thread that was interrupted.
    pub lateness: Variable,
}

impl Measured {
    /// Orders the entries of one processor: the measuring thread first, then by thread.
    pub fn key(&self) -> impl Ord + use<> {
        self.thread.as_ref().map(|thread| (thread.id.clone(), thread.policy.number(), thread.priority))
    }

    /// Whether a latency that is not known may have been greater than [`Measured::max_ns`].
    pub fn is_at_least(&self) -> bool {
        self.unmeasured > 0
    }

    /// The mean latency; `None` without a wake-up.
    pub fn mean(&self) -> Option<Duration> {
        self.total_ns.ns().checked_div(self.wakeups).map(Duration::from_ns)
    }

    /// Takes in one wake-up, and whether a thread that the scheduler preferred ran meanwhile. Only a latency
    /// among the greatest asks for what happened.
    pub fn add(&mut self, latency: Duration, was_delayed_by_threads: bool, wakeup: impl FnOnce() -> Wakeup) {
        self.wakeups += 1;
        self.total_ns += latency;
        self.max_ns = self.max_ns.max(latency);
        if !was_delayed_by_threads {
            self.bounded_max_ns = self.bounded_max_ns.max(Some(latency));
        }
        if self.worst.len() < MAX_WORST || self.worst.last().is_some_and(|last| last.latency_ns < latency) {
            self.worst.push(wakeup());
            self.rank();
        }
    }

    /// What holds for both observations of the same thread.
    pub fn merge(&mut self, other: Measured) {
        self.wakeups = self.wakeups.saturating_add(other.wakeups);
        self.unmeasured = self.unmeasured.saturating_add(other.unmeasured);
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.bounded_max_ns = self.bounded_max_ns.max(other.bounded_max_ns);
        self.from_due_max_ns = self.from_due_max_ns.max(other.from_due_max_ns);
        self.worst.extend(other.worst);
        self.rank();
    }

    fn rank(&mut self) {
        self.worst.sort_by(Wakeup::rank);
        self.worst.truncate(MAX_WORST);
    }
}

impl Split {
    /// The sum of all parts.
    pub fn total(&self) -> Duration {
        self.interrupts_ns + self.threads_ns + self.sections_ns + self.rest_ns
    }
}

impl Wakeup {
    /// The greater latency first; a total order, so that merging does not depend on the order of pieces.
    pub(super) fn rank(&self, other: &Wakeup) -> Ordering {
        let rest = |it: &Wakeup| (it.at_ns, it.split, it.ran.clone());
        other.latency_ns.cmp(&self.latency_ns).then_with(|| rest(self).cmp(&rest(other)))
    }
}
