//! Interrupts of one source on one processor: how many and how much of them any window may hold.

use super::staircase::Staircase;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// Windows beyond the horizon double in length up to so many times, at most.
pub(super) const MAX_LONG_WINDOWS: usize = 32;

/// What was observed of the interrupts of one source on one processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Where they come from.
    pub source: InterruptSource,
    /// Whether some may have been missed: there may be more of them, and longer ones.
    #[serde(skip_serializing_if = "Not::not", default)]
    pub at_least: bool,
    /// When the longest one ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub longest_at_ns: Option<Instant>,
    /// How many and how long.
    pub curves: InterruptCurves,
}

/// A source of interrupts. Sources with one number and two names are two sources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InterruptSource {
    /// What kind of interrupts.
    pub kind: InterruptKind,
    /// Number of the interrupt, its vector or softirq; NMIs have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub number: Option<u32>,
    /// Name of the handler, as in `/proc/interrupts`.
    pub name: String,
}

/// A kind of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// Non-maskable.
    Nmi,
    /// Of a device, by the kernel's number.
    Irq,
    /// Of the processor itself, by its vector: timers, requests of other processors.
    Vector,
    /// A softirq. Not part of the bound: under PREEMPT_RT softirqs run in threads.
    Softirq,
}

/// What is known of the interrupts of one source on one processor.
///
/// A window begins with the interrupt that is being served when a thread becomes ready, since that may be the
/// one which made it ready: such an interrupt counts whole, however little of it is left. So `n` interrupts
/// fit into every window longer than the time from the exit of the first to the entry of the last. (The paper
/// counts from entry to entry, which leaves out an interrupt that is served at the beginning.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptCurves {
    /// How many were observed.
    pub count: u64,
    /// The least time from one entry to the next; absent before the second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_separation_ns: Option<Duration>,
    /// δ⁻: `delta_min_ns[i]` is the least time from the exit of an interrupt to the entry of the (i + 1)-th
    /// after it. Windows longer than that may hold i + 2. Up to the horizon.
    pub delta_min_ns: Vec<Duration>,
    /// WCET(n): `wcet_ns[i]` is the greatest total execution time of up to i + 1 consecutive interrupts that
    /// a window of the horizon held.
    pub wcet_ns: Vec<Duration>,
    /// The greatest total execution time in any window, by the window's length.
    pub execution: Staircase,
    /// Beyond the horizon: `long_execution_ns[i]` bounds the total execution time in any window of 2^(i+1)
    /// horizons. Empty where longer windows were not observed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub long_execution_ns: Vec<Duration>,
}

impl InterruptCurves {
    /// The greatest execution time of one interrupt; zero before the first.
    pub fn wcet(&self) -> Duration {
        self.wcet_ns.first().copied().unwrap_or_default()
    }

    /// The greatest number of interrupts in any window of length `window`. O(log n).
    pub fn arrivals(&self, window: Duration) -> u64 {
        match self.count == 0 || window.is_zero() {
            true => 0,
            false => 1 + self.delta_min_ns.partition_point(|&span| span < window) as u64,
        }
    }

    /// Takes in that `others` + 1 consecutive interrupts, `span` apart from the exit of the first to the
    /// entry of the last, had `sum` of execution time.
    pub fn insert(&mut self, others: usize, span: Duration, sum: Duration) {
        if let Some(gap) = others.checked_sub(1) {
            least(&mut self.delta_min_ns, gap, span);
        }
        raise(&mut self.wcet_ns, others, sum);
        self.execution.insert(span, sum);
    }

    /// What holds for both observations, which must not overlap in time, and have the same horizon.
    pub fn merge(&mut self, other: &InterruptCurves) {
        if self.count == 0 {
            self.long_execution_ns.clone_from(&other.long_execution_ns);
        } else if other.count > 0 {
            // Of windows that one has not observed, nothing is known.
            self.long_execution_ns.truncate(other.long_execution_ns.len());
            let both = self.long_execution_ns.iter_mut().zip(&other.long_execution_ns);
            both.for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        }
        self.count = self.count.saturating_add(other.count);
        self.min_separation_ns = match (self.min_separation_ns, other.min_separation_ns) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        for (index, &span) in other.delta_min_ns.iter().enumerate() {
            least(&mut self.delta_min_ns, index, span);
        }
        for (index, &sum) in other.wcet_ns.iter().enumerate() {
            raise(&mut self.wcet_ns, index, sum);
        }
        self.execution.merge(&other.execution);
    }
}

fn least(table: &mut Vec<Duration>, index: usize, value: Duration) {
    match table.get_mut(index) {
        Some(entry) => *entry = value.min(*entry),
        None => table.push(value),
    }
}

/// Raises an entry to at least `value`, and those behind it: more interrupts never take less.
fn raise(table: &mut Vec<Duration>, index: usize, value: Duration) {
    if index == table.len() {
        table.push(table.last().map_or(value, |last| value.max(*last)));
    }
    let lower = table[index..].iter_mut().take_while(|entry| **entry < value);
    lower.for_each(|entry| *entry = value);
}
