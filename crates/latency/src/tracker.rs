//! From occurrences of interrupts to what any window may hold of them.

use punctual_model::latency::InterruptCurves;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;

/// Up to which length windows of interrupts are observed exactly: longer than any bound of use.
pub const HORIZON: Duration = Duration::from_ms(10);

/// So many windows beyond the horizon are observed, each twice as long as the one before.
const LONG_WINDOWS: usize = 10;

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
    long: [LongWindow; LONG_WINDOWS],
    seen: InterruptCurves,
}

impl Tracker {
    /// Windows up to `horizon` will be exact, longer ones are rounded up by at most a sixteenth of their
    /// length.
    pub fn new(horizon: Duration) -> Self {
        let long = std::array::from_fn(|doubled| LongWindow::new(horizon.ns().saturating_mul(2 << doubled)));
        let long_execution_ns = vec![Duration::ZERO; LONG_WINDOWS];
        let seen = InterruptCurves { long_execution_ns, ..InterruptCurves::default() };
        Self { horizon, recent: VecDeque::new(), long, seen }
    }

    /// The next occurrence; none may begin before the one before it. O(occurrences within the horizon).
    pub fn add(&mut self, next: Occurrence) {
        self.seen.count += 1;
        for (window, most) in self.long.iter_mut().zip(&mut self.seen.long_execution_ns) {
            *most = window.add(next).max(*most);
        }
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
        self.long.iter_mut().for_each(LongWindow::clear);
    }

    /// What is known by now.
    pub fn curves(&self) -> &InterruptCurves {
        &self.seen
    }
}

/// A window longer than the horizon has room for many occurrences, so they are summed up by when they ended:
/// in sixteenths of the window.
#[derive(Clone, Debug)]
struct LongWindow {
    length: u64,
    /// Which sixteenth since the beginning of time, and how much execution ended in it.
    ended: VecDeque<(u64, u128)>,
    sum: u128,
}

impl LongWindow {
    fn new(length: u64) -> Self {
        Self { length, ended: VecDeque::new(), sum: 0 }
    }

    /// How much a window may hold that ends with `next`: at most what one does that is a sixteenth longer.
    fn add(&mut self, next: Occurrence) -> Duration {
        let sixteenth = (self.length / 16).max(1);
        let first = next.entry.ns().saturating_sub(self.length) / sixteenth;
        while let Some(&(_, gone)) = self.ended.front().filter(|(at, _)| *at < first) {
            self.sum -= gone;
            self.ended.pop_front();
        }
        let execution = u128::from(next.execution.ns());
        self.sum += execution;
        let at = next.exit.ns() / sixteenth;
        match self.ended.back_mut().filter(|(last, _)| *last == at) {
            Some((_, sum)) => *sum += execution,
            None => self.ended.push_back((at, execution)),
        }
        Duration::from_ns(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    fn clear(&mut self) {
        self.ended.clear();
        self.sum = 0;
    }
}
