//! The numbers of one channel's pushes or one task's instances: which exist, and which must have existed.

use punctual_model::Instant;

/// Most unfinished instances kept.
const MOST_UNENDED: usize = 64;

/// Counts events that exist, and those that must have existed.
#[derive(Clone, Debug, Default)]
pub struct Numbered {
    pub count: u64,
    pub end: u64,
    /// Activations outside any push.
    pub alone: u64,
    /// Time of the last event, in nanoseconds; and of the last one before the first missing one, unless a gap
    /// explains it.
    pub last: u64,
    pub jumped: Option<u64>,
    /// Instances of a task that had not ended when the next was activated, without a gap between, and their
    /// activations. Only the first few are kept.
    pub unended: Vec<(u64, u64)>,
    pub open: Option<(u64, u64)>,
}

impl Numbered {
    #[inline]
    pub fn add(&mut self, number: u64, at: Instant, gap_until: u64) {
        self.see(number, gap_until);
        self.last = at.ns();
        self.count += 1;
        self.end = self.end.max(number + 1);
    }

    /// Handles an event that can only follow the one with this number.
    #[inline]
    pub fn see(&mut self, number: u64, gap_until: u64) {
        // The missing events came after the last one.
        if number > self.end && gap_until < self.last.max(1) {
            self.jumped.get_or_insert(self.last);
        }
    }

    pub fn activation(&mut self, number: u64, at: Instant, gap_until: u64) {
        if let Some(open) = self.open.replace((number, at.ns())) {
            // Otherwise its end may lie in that gap.
            if self.unended.len() < MOST_UNENDED && gap_until < open.1 {
                self.unended.push(open);
            }
        }
    }

    /// Handles the start or stop of an instance.
    #[inline]
    pub fn execution(&mut self, number: u64, is_stop: bool, gap_until: u64) {
        self.see(number + 1, gap_until);
        self.end = self.end.max(number + 1);
        if is_stop {
            self.open = self.open.filter(|open| open.0 != number);
            if !self.unended.is_empty() {
                self.unended.retain(|unended| unended.0 != number);
            }
        }
    }

    pub fn missing(&self) -> u64 {
        self.end.saturating_sub(self.count)
    }
}
