//! From occurrences of interrupts to what any window may hold of them.

use punctual_model::latency::InterruptCurves;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;

/// Up to which length windows of interrupts are observed: longer than any bound of use.
pub const HORIZON: Duration = Duration::from_ms(10);

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

/// Takes in the occurrences of one source in order, and keeps those that a window of the horizon may hold
/// together with the next.
#[derive(Clone, Debug)]
pub struct Tracker {
    horizon: Duration,
    recent: VecDeque<Occurrence>,
    seen: InterruptCurves,
}

impl Tracker {
    /// Windows up to `horizon` will be exact; longer ones are not asked for.
    pub fn new(horizon: Duration) -> Self {
        Self { horizon, recent: VecDeque::new(), seen: InterruptCurves::default() }
    }

    /// The next occurrence; none may begin before the one before it. O(occurrences within the horizon).
    pub fn add(&mut self, next: Occurrence) {
        self.seen.count += 1;
        if let Some(last) = self.recent.back() {
            let separation = next.entry.since(last.entry);
            let least = self.seen.min_separation_ns.map_or(separation, |least| least.min(separation));
            self.seen.min_separation_ns = Some(least);
        }
        // The last one is kept however long ago it was, for the separation.
        while self.recent.len() > 1 && next.entry.since(self.recent[0].exit) >= self.horizon {
            self.recent.pop_front();
        }
        self.recent.push_back(next);
        let mut sum = Duration::ZERO;
        for (others, first) in self.recent.iter().rev().enumerate() {
            let span = next.entry.since(first.exit);
            if span >= self.horizon {
                break;
            }
            sum += first.execution;
            self.seen.insert(others, span, sum);
        }
    }

    /// Forgets what came before, because something was not seen: no window spans the gap.
    pub fn gap(&mut self) {
        self.recent.clear();
    }

    /// What is known by now.
    pub fn curves(&self) -> &InterruptCurves {
        &self.seen
    }
}
