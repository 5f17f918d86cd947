//! The last releases of a stream: those that still wait for neighbours on their right, and a block of others
//! whose gaps have not been looked at yet.

use crate::periodic::block::{BLOCK, Block, Entry};
use crate::periodic::scan::Gaps;
use crate::periodic::score::{AROUND, REACH};

#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// Latest bounds of `AROUND` releases and those after them, or of all.
    latest: Vec<i64>,
    /// The same of the evidence; empty as long as that is the latest bound.
    evidence: Vec<i64>,
    /// The same of the floors; empty as long as those are the evidence.
    floor: Vec<i64>,
    /// Activations since the release before; empty as long as that is always one.
    advance: Vec<i64>,
    /// Where the block begins in `latest`.
    begin: usize,
}

impl Default for Tail {
    fn default() -> Tail {
        let [latest, evidence, floor, advance] = [const { Vec::new() }; 4];
        Tail { latest, evidence, floor, advance, begin: REACH }
    }
}

impl Tail {
    /// Adds a release. Once `AROUND` others come before it, the one in the middle joins the block.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if entry.floor != entry.latest || !self.evidence.is_empty() {
            self.keep_apart(entry);
        }
        if entry.advance > 1 || !self.advance.is_empty() {
            self.keep_advance(entry.advance);
        }
        if self.latest.len() == self.latest.capacity() {
            self.make_room();
        }
        self.latest.push(entry.latest);
    }

    #[cold]
    fn keep_advance(&mut self, activations: i64) {
        self.advance.resize(self.latest.len(), 1);
        self.advance.push(activations);
    }

    #[cold]
    fn make_room(&mut self) {
        let room = self.latest.len().clamp(REACH, BLOCK + AROUND - self.latest.len().min(BLOCK));
        self.latest.reserve_exact(room);
    }

    /// Adds evidence and floor where they differ from the latest bound.
    #[inline]
    fn keep_apart(&mut self, entry: Entry) {
        if self.evidence.is_empty() {
            self.evidence.clone_from(&self.latest);
            self.evidence.reserve_exact(self.latest.capacity() - self.latest.len());
        }
        if entry.floor != entry.evidence && self.floor.is_empty() {
            self.floor.clone_from(&self.evidence);
        }
        if entry.floor != entry.evidence || !self.floor.is_empty() {
            self.floor.push(entry.floor);
        }
        self.evidence.push(entry.evidence);
    }

    /// Whether the block has to be taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.latest.len() >= BLOCK + AROUND
    }

    /// Where the block ends.
    fn end(&self) -> usize {
        (self.latest.len() + 1).saturating_sub(REACH).max(self.begin)
    }

    /// The releases of the block.
    pub fn block(&self) -> Block<'_> {
        let Tail { latest, evidence, floor, begin, .. } = self;
        Block { latest, evidence, floor, begin: *begin, end: self.end() }
    }

    /// The first releases of the block; and the one after those alone.
    pub fn split(&self, at: usize) -> (Block<'_>, Block<'_>) {
        let (block, middle) = (self.block(), self.begin + at);
        (Block { end: middle, ..block }, Block { begin: middle, end: middle + 1, ..block })
    }

    /// The gaps before the releases of the block.
    pub fn gaps(&self) -> Gaps<'_> {
        let evidence = if self.evidence.is_empty() { &self.latest } else { &self.evidence };
        let around = self.begin - REACH..evidence.len();
        Gaps { releases: &evidence[around.clone()], advance: self.advance.get(around).unwrap_or_default() }
    }

    /// Takes so many releases out of the block.
    pub fn take(&mut self, releases: usize) {
        self.begin += releases;
    }

    /// Forgets releases that no longer matter. The block has to be empty.
    pub fn forget(&mut self) {
        let gone = self.begin - REACH;
        for values in [&mut self.latest, &mut self.evidence, &mut self.floor, &mut self.advance] {
            values.drain(..gone.min(values.len()));
        }
        self.begin = REACH;
        if self.advance.iter().all(|activations| *activations == 1) {
            self.advance.clear();
        }
        if self.floor == self.evidence {
            self.floor.clear();
        }
        if self.floor.is_empty() && self.evidence == self.latest {
            self.evidence.clear();
        }
    }

    /// The last `AROUND` releases, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        (self.latest.len().saturating_sub(AROUND)..self.latest.len()).map(|at| {
            let latest = self.latest[at];
            let evidence = self.evidence.get(at).copied().unwrap_or(latest);
            let floor = self.floor.get(at).copied().unwrap_or(evidence);
            let advance = self.advance.get(at).copied().unwrap_or(1);
            Entry { floor, evidence, latest, advance }
        })
    }

    /// The bounds of all releases that it holds.
    pub fn bounds(&self) -> impl Iterator<Item = i64> {
        self.latest.iter().chain(&self.evidence).chain(&self.floor).copied()
    }

    /// Moves all times up, relative to another first release.
    pub fn lift(&mut self, y: i64) {
        for values in [&mut self.latest, &mut self.evidence, &mut self.floor] {
            values.iter_mut().for_each(|at| *at += y);
        }
    }
}
