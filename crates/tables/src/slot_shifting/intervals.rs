//! Capacity intervals and their spare capacities.
//!
//! Each interval ends at a deadline, or where the jobs of the next one can start at the earliest. With its
//! length |I_i| and the slots W_i that jobs with a deadline at its end still need, its spare capacity is
//!
//! > SC_i = |I_i| − W_i + min(0, SC_{i+1}):
//!
//! an interval that needs more than it has borrows from the one before (Fohler 1995, Section 4).
//!
//! On one processor the sum that the acceptance test takes is exact. With S_k = Σ_{i ≤ k} (|I_i| − W_i) over
//! the intervals from now on, SC_i = min_{k ≥ i} S_k − S_{i−1}, so
//!
//! > SC_1 + Σ_{1 < i ≤ l} max(0, SC_i) = min_{k ≥ l} S_k,
//!
//! which is what the demand of all deadlines from the end of I_l on leaves of the time until then: a job that
//! is ready now and has that deadline fits if and only if it needs no more.

use super::Plan;
use std::collections::VecDeque;

/// An interval of slots with its spare capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first slot after it.
    pub end: u64,
    /// Slots that its jobs do not need; negative if it borrows from the interval before.
    pub spare: i64,
}

/// Intervals without gaps between them. The first has begun: what has passed of it is no longer counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    now: u64,
    all: VecDeque<Interval>,
}

impl From<&Plan> for Intervals {
    fn from(plan: &Plan) -> Self {
        Self { now: 0, all: plan.intervals().into() }
    }
}

impl Intervals {
    /// Appends intervals that borrow nothing from those before.
    pub(super) fn append(&mut self, later: impl Iterator<Item = Interval>) {
        self.all.extend(later);
    }

    /// Removes those after a slot at which one ends, from which they borrow nothing.
    pub(super) fn end_at(&mut self, slot: u64) {
        self.all.truncate(self.all.partition_point(|interval| interval.end <= slot));
    }

    /// All of them, the current one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Interval> {
        self.all.iter()
    }

    /// The slots until `deadline` that no guaranteed job needs, if jobs that are ready now use them.
    pub(super) fn slack(&self, deadline: u64) -> u64 {
        let mut start = self.now;
        let mut slack = 0;
        for (place, interval) in self.all.iter().enumerate() {
            let length = deadline.min(interval.end) as i64 - start as i64;
            if length <= 0 {
                break;
            }
            let spare = interval.spare.min(length);
            slack += if place == 0 { spare } else { spare.max(0) };
            start = interval.end;
        }
        slack.max(0) as u64
    }

    /// Takes slots until `deadline` for a job; there must be as much slack.
    pub(super) fn reserve(&mut self, deadline: u64, slots: u64) {
        let place = self.split(deadline);
        self.change(place, -(slots as i64));
    }

    /// Gives back slots of a job with this deadline.
    pub(super) fn give_back(&mut self, deadline: u64, slots: u64) {
        self.change(self.place(deadline), slots as i64);
    }

    /// A slot is over in which a job with this deadline ran, or no guaranteed job.
    pub(super) fn advance(&mut self, deadline: Option<u64>) {
        let place = deadline.map(|deadline| self.place(deadline));
        if place != Some(0) {
            self.change(0, -1);
        }
        // The slot was lent to a later interval, which needs one less now.
        if let Some(place) = place.filter(|&place| place > 0) {
            self.change(place, 1);
        }
        self.now += 1;
        if self.all.front().is_some_and(|interval| interval.end <= self.now) {
            self.all.pop_front();
        }
    }

    /// The interval that ends at or after `deadline`.
    fn place(&self, deadline: u64) -> usize {
        self.all.partition_point(|interval| interval.end < deadline)
    }

    /// The interval that ends at `deadline`; the one around it is split if there is none.
    fn split(&mut self, deadline: u64) -> usize {
        let place = self.place(deadline);
        let start = place.checked_sub(1).map_or(self.now, |before| self.all[before].end);
        if let Some(around) = self.all.get_mut(place).filter(|around| around.end > deadline) {
            let length = (deadline - start) as i64;
            // Its jobs have their deadlines at its end, so they stay with the second half.
            around.spare -= length;
            let spare = length + around.spare.min(0);
            self.all.insert(place, Interval { end: deadline, spare });
        }
        place
    }

    /// Changes the need of an interval, and what it and those before it borrow.
    fn change(&mut self, place: usize, by: i64) {
        let mut by = by;
        for interval in self.all.range_mut(..=place).rev() {
            let borrowed = interval.spare.min(0);
            interval.spare += by;
            by = interval.spare.min(0) - borrowed;
            if by == 0 {
                break;
            }
        }
    }
}
