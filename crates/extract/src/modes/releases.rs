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
        if !self.sides.is_empty() {
            self.sides.push((entry.floor, entry.latest));
        } else if entry.floor != entry.latest {
            self.begin_sides(entry);
        }
        if self.evidence.len() == self.evidence.capacity() {
            self.evidence.reserve_exact(self.evidence.len().clamp(3, ROOM));
        }
        self.evidence.push(entry.evidence);
    }

    #[cold]
    fn begin_sides(&mut self, entry: Entry) {
        self.sides.reserve_exact(self.evidence.capacity() + 1);
        self.sides.extend(self.evidence.iter().map(|&at| (at, at)));
        self.sides.push((entry.floor, entry.latest));
    }

    pub fn len(&self) -> usize {
        self.evidence.len()
    }

    pub fn row(&self) -> Row<'_> {
        Row { evidence: &self.evidence, sides: &self.sides }
    }

    /// The first ones.
    pub fn first(&self, count: usize) -> Row<'_> {
        Row { evidence: &self.evidence[..count], sides: &self.sides[..count.min(self.sides.len())] }
    }

    /// The place after the longest gap among those that begin at `from`.
    pub fn longest_gap(&self, from: usize, gaps: usize) -> usize {
        let gap = |at: usize| self.evidence[at].wrapping_sub(self.evidence[at - 1]);
        let places = from.max(1)..(from + gaps).min(self.len());
        places.rev().max_by_key(|at| gap(*at)).unwrap_or(from)
    }

    pub fn of(row: Row<'_>) -> Releases {
        let mut all = Releases { evidence: Vec::with_capacity(row.len()), sides: Vec::new() };
        row.iter().for_each(|entry| all.push(entry));
        all
    }

    pub fn drop_first(&mut self, count: usize) {
        self.evidence.drain(..count);
        self.sides.drain(..count.min(self.sides.len()));
        if self.sides.iter().zip(&self.evidence).all(|(sides, at)| *sides == (*at, *at)) {
            self.sides.clear();
        }
    }
}

/// Some releases in a row.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    evidence: &'a [i64],
    sides: &'a [(i64, i64)],
}

impl Row<'_> {
    pub fn len(self) -> usize {
        self.evidence.len()
    }

    pub fn get(self, at: usize) -> Entry {
        let evidence = self.evidence[at];
        let (floor, latest) = self.sides.get(at).copied().unwrap_or((evidence, evidence));
        Entry { floor, evidence, latest }
    }

    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    pub fn to_vec(self) -> Vec<Entry> {
        self.iter().collect()
    }

    /// Floor and latest bound of each, unless they are the evidence.
    pub fn sides(&self) -> Option<&[(i64, i64)]> {
        (!self.sides.is_empty()).then_some(self.sides)
    }

    /// The shortest and the longest one.
    #[inline(always)]
    pub fn gaps(self) -> (i64, i64) {
        let gaps = self.evidence.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        gaps.fold((i64::MAX, 0), |(low, high), gap| (gap.min(low), gap.max(high)))
    }

    /// The lowest and the highest evidence, above the first one and a line of this slope.
    #[inline(always)]
    pub fn strip(self, period: i64) -> (i64, i64) {
        heights(self.evidence[0], period, self.evidence.iter().copied())
    }

    /// The same of known arrivals alone.
    #[inline(always)]
    pub fn strip_of_arrivals(self, period: i64) -> Option<(i64, i64)> {
        let (mut due, mut low, mut high) = (self.evidence[0], i64::MAX, i64::MIN);
        for (at, side) in self.evidence.iter().zip(self.sides) {
            let is_known = *at < side.1;
            low = low.min(if is_known { at - due } else { i64::MAX });
            high = high.max(if is_known { at - due } else { i64::MIN });
            due += period;
        }
        (low <= high).then_some((low, high))
    }
}

/// The lowest and the highest of some times, above a line of this slope.
#[inline(always)]
pub(super) fn heights(mut due: i64, period: i64, times: impl Iterator<Item = i64>) -> (i64, i64) {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for at in times {
        (low, high) = (low.min(at - due), high.max(at - due));
        due += period;
    }
    (low, high)
}
