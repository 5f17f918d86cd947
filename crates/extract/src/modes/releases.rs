//! Releases in a row, in as little memory as they need.

use crate::hull::LIMIT;
use punctual_model::{Instant, Release};

/// A release, on the observation's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The lesser of known arrival and earliest bound.
    pub floor: i64,
    /// The known arrival, or else the latest bound.
    pub evidence: i64,
    pub latest: i64,
}

impl Entry {
    /// `None` if a time is out of range.
    #[inline]
    pub fn of(release: &Release) -> Option<Entry> {
        let window = release.window;
        let arrival = release.arrival.filter(|arrival| *arrival <= window.latest());
        let evidence = arrival.unwrap_or(window.latest());
        let floor = arrival.map_or(window.earliest(), |arrival| arrival.min(window.earliest()));
        let is_in_range = window.latest().ns() <= LIMIT as u64;
        let ns = |at: Instant| at.ns() as i64;
        is_in_range.then(|| Entry { floor: ns(floor), evidence: ns(evidence), latest: ns(window.latest()) })
    }

    /// Whether neither bound of the next release runs backwards.
    pub fn precedes(self, next: Entry) -> bool {
        self.floor <= next.floor && self.latest <= next.latest
    }
}

/// Most room that is made at once.
const ROOM: usize = 96;

#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    evidence: Vec<i64>,
    /// Floor and latest bound of each; empty as long as they are the evidence.
    sides: Vec<(i64, i64)>,
}

impl Releases {
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if entry.floor != entry.latest || !self.sides.is_empty() {
            self.push_sides(entry);
        }
        if self.evidence.len() == self.evidence.capacity() {
            self.evidence.reserve_exact(self.evidence.len().clamp(3, ROOM));
        }
        self.evidence.push(entry.evidence);
    }

    fn push_sides(&mut self, entry: Entry) {
        if self.sides.is_empty() {
            self.sides.reserve_exact(self.evidence.capacity() + 1);
            self.sides.extend(self.evidence.iter().map(|&at| (at, at)));
        }
        self.sides.push((entry.floor, entry.latest));
    }

    pub fn len(&self) -> usize {
        self.evidence.len()
    }

    pub fn get(&self, at: usize) -> Entry {
        let evidence = self.evidence[at];
        let (floor, latest) = self.sides.get(at).copied().unwrap_or((evidence, evidence));
        Entry { floor, evidence, latest }
    }

    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The place after the longest gap among those that begin at `from`.
    pub fn longest_gap(&self, from: usize, gaps: usize) -> usize {
        let gap = |at: usize| self.evidence[at].wrapping_sub(self.evidence[at - 1]);
        let places = from.max(1)..(from + gaps).min(self.len());
        places.rev().max_by_key(|at| gap(*at)).unwrap_or(from)
    }

    pub fn of(entries: &[Entry]) -> Releases {
        let mut all = Releases { evidence: Vec::with_capacity(entries.len()), sides: Vec::new() };
        entries.iter().for_each(|entry| all.push(*entry));
        all
    }

    /// Moves the first ones elsewhere.
    pub fn take_first(&mut self, count: usize, to: &mut Vec<Entry>) {
        to.clear();
        to.extend((0..count).map(|at| self.get(at)));
        self.evidence.drain(..count);
        self.sides.drain(..count.min(self.sides.len()));
        if self.sides.iter().zip(&self.evidence).all(|(sides, at)| *sides == (*at, *at)) {
            self.sides.clear();
        }
    }
}
