//! The WCET curve: the greatest total cost of consecutive jobs, exact up to a horizon. (papers: LiME, Section
//! II-B.)
//!
//! The curve ends before the first total of 52 days or more, which would not be exact.

use crate::batch::{BATCH, WIDTH};
use crate::curve::EXACT;
use crate::kernel;
use crate::ring::Ring;
use crate::short::Numbers;
use punctual_model::Duration;

/// WCET(1) … WCET(horizon) of a stream of jobs. Memory grows with the jobs up to the horizon, then stays.
/// Pieces merge exactly.
#[derive(Clone, Debug)]
pub struct CostSummary {
    horizon: usize,
    count: u64,
    /// Total cost so far, relative to some point; and the same after each of the last jobs.
    total: f64,
    totals: Ring,
    /// The newest jobs, not yet in the curve.
    pending: usize,
    greatest: Vec<f64>,
    /// The first costs, for merging with the piece before this one.
    head: Numbers,
}

impl CostSummary {
    /// A summary of no jobs, for WCET(1) … WCET(horizon).
    pub fn new(horizon: usize) -> Self {
        // WCET(1) is always needed.
        let horizon = horizon.max(1);
        let totals = Ring::new(horizon);
        CostSummary {
            horizon,
            count: 0,
            total: 0.0,
            totals,
            pending: 0,
            greatest: Vec::new(),
            head: Numbers::default(),
        }
    }

    /// Adds the next job's cost.
    #[inline]
    pub fn push(&mut self, cost: Duration) {
        if self.head.len() < self.horizon {
            self.head.push(cost.ns());
        }
        if self.count == 0 {
            self.totals.push(self.total);
        }
        self.total += cost.ns() as f64;
        self.totals.push(self.total);
        self.count += 1;
        self.pending += 1;
        if self.pending == BATCH {
            self.flush();
        }
        if self.total >= EXACT {
            // Older totals lose digits, so all comparisons with them come first.
            self.flush();
            self.totals.rebase(self.total);
            self.total = 0.0;
        }
    }

    /// Appends a piece with the same horizon that follows this one: as if its jobs had been pushed here.
    pub fn merge(&mut self, later: &CostSummary) {
        for cost in later.head.iter() {
            self.push(Duration::from_ns(cost));
        }
        let pushed = later.head.len() as u64;
        if pushed == later.count {
            return;
        }
        // Every run across the border is done; left are runs within the later piece, and its newest jobs.
        self.flush();
        self.horizon = self.horizon.min(later.horizon);
        self.count += later.count - pushed;
        let entries = self.entries();
        resize(&mut self.greatest, entries);
        for (mine, theirs) in self.greatest.iter_mut().zip(later.up_to_date()) {
            *mine = mine.max(theirs);
        }
        self.total = later.total;
        self.totals = later.totals.clone();
    }

    /// Jobs so far.
    pub fn jobs(&self) -> u64 {
        self.count
    }

    /// WCET(1), WCET(2), …; empty without a job.
    pub fn curve(&self) -> Vec<Duration> {
        let mut greatest = self.up_to_date();
        greatest.truncate(self.entries());
        greatest.truncate(greatest.partition_point(|&total| total < EXACT));
        greatest.iter().map(|&total| Duration::from_ns(total as u64)).collect()
    }

    /// How many entries the curve may have: fewer than its horizon only if totals are too great to be exact.
    pub(crate) fn reach(&self) -> u64 {
        let length = self.curve().len();
        if length < self.entries() { length as u64 } else { self.horizon as u64 }
    }

    fn entries(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX).min(self.horizon)
    }

    fn flush(&mut self) {
        let mut greatest = std::mem::take(&mut self.greatest);
        self.extend(&mut greatest);
        (self.greatest, self.pending) = (greatest, 0);
    }

    fn up_to_date(&self) -> Vec<f64> {
        let mut greatest = self.greatest.clone();
        self.extend(&mut greatest);
        greatest
    }

    /// Updates `greatest` with the pending jobs.
    fn extend(&self, greatest: &mut Vec<f64>) {
        resize(greatest, self.entries());
        kernel::growth(self.totals.newest_first(), self.pending, greatest);
    }
}

/// Makes room for this many entries, rounded up to whole blocks of the kernel.
fn resize(greatest: &mut Vec<f64>, entries: usize) {
    let entries = entries.next_multiple_of(WIDTH);
    if entries > greatest.len() {
        greatest.resize(entries, f64::NEG_INFINITY);
    }
}
