//! Interrupts of one source on one processor: how many and how much of them any window may hold.

use crate::staircase::Staircase;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;

/// One run of an interrupt's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// When the processor entered it.
    pub entry: Instant,
    /// When the processor left it.
    pub exit: Instant,
    /// Its execution time, without NMIs inside.
    pub execution: Duration,
}

/// What is known of the interrupts of one source on one processor.
///
/// A window begins with the interrupt that is being served when a thread becomes ready, since that may be the
/// one which made it ready: such an interrupt counts whole, however little of it is left. So `n` interrupts
/// fit into every window longer than the time from the exit of the first to the entry of the last. (The paper
/// counts from entry to entry, which leaves out an interrupt that is served at the beginning.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// How many were observed.
    pub count: u64,
    /// The greatest execution time.
    pub wcet: Duration,
    /// The least time from one entry to the next; `None` before the second.
    pub separation: Option<Duration>,
    /// Sum of execution times in nanoseconds, by the length of the window.
    pub execution: Staircase,
    /// Number of interrupts, by the length of the window.
    pub arrivals: Staircase,
}

impl Interrupts {
    /// What holds for both observations, which must not overlap in time.
    pub fn merge(&mut self, other: &Interrupts) {
        self.count += other.count;
        self.wcet = self.wcet.max(other.wcet);
        self.separation = match (self.separation, other.separation) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.execution.merge(&other.execution);
        self.arrivals.merge(&other.arrivals);
    }
}

/// Takes in the occurrences of one source in order, and keeps those that a window of the horizon may hold
/// together with the next.
#[derive(Clone, Debug)]
pub struct Tracker {
    horizon: Duration,
    recent: VecDeque<Occurrence>,
    seen: Interrupts,
}

impl Tracker {
    /// Windows up to `horizon` will be exact; longer ones are not asked for.
    pub fn new(horizon: Duration) -> Self {
        Self { horizon, recent: VecDeque::new(), seen: Interrupts::default() }
    }

    /// The next occurrence; none may begin before the one before it. O(occurrences within the horizon).
    pub fn add(&mut self, next: Occurrence) {
        self.seen.count += 1;
        self.seen.wcet = self.seen.wcet.max(next.execution);
        if let Some(last) = self.recent.back() {
            let separation = next.entry.since(last.entry);
            self.seen.separation =
                Some(self.seen.separation.map_or(separation, |least| least.min(separation)));
        }
        // The last one is kept however long ago it was, for the separation.
        while self.recent.len() > 1 && next.entry.since(self.recent[0].exit) >= self.horizon {
            self.recent.pop_front();
        }
        self.recent.push_back(next);
        let mut sum = 0;
        for (others, first) in self.recent.iter().rev().enumerate() {
            let span = next.entry.since(first.exit);
            sum += first.execution.ns();
            if span >= self.horizon {
                break;
            }
            self.seen.execution.insert(span, sum);
            self.seen.arrivals.insert(span, others as u64 + 1);
        }
    }

    /// Forgets what came before, because something was not seen: no window spans the gap.
    pub fn gap(&mut self) {
        self.recent.clear();
    }

    /// What is known by now.
    pub fn interrupts(&self) -> &Interrupts {
        &self.seen
    }
}
