//! Releases in a row, and the set of some of their places: what gaps, late releases and layers are looked for
//! in.

use crate::periodic::score::REACH;

/// Most releases of a block.
pub(crate) const BLOCK: usize = 256;

/// A release, relative to the first one of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The lesser of known arrival and earliest bound: the offset must not lie above it.
    pub floor: i64,
    /// The known arrival, or else the latest bound: what the period is estimated from.
    pub evidence: i64,
    /// The latest bound.
    pub latest: i64,
    /// Activations since the release before.
    pub advance: i64,
}

impl Entry {
    pub fn lifted(self, y: i64) -> Entry {
        let add = |at: i64| at.wrapping_add(y);
        Entry { floor: add(self.floor), evidence: add(self.evidence), latest: add(self.latest), ..self }
    }
}

/// Releases in a row of a segment, and their neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    /// Latest bounds, from [`REACH`] before the first release or earlier.
    pub latest: &'a [i64],
    /// The same of the evidence; empty if that is the latest bound.
    pub evidence: &'a [i64],
    /// The same of the floors; empty if those are the evidence.
    pub floor: &'a [i64],
    /// Where the first release is in `latest`, and where the last one ends.
    pub begin: usize,
    pub end: usize,
}

impl<'a> Block<'a> {
    pub fn len(&self) -> usize {
        self.end - self.begin
    }

    pub fn latest(&self) -> &'a [i64] {
        &self.latest[self.begin..self.end]
    }

    pub fn evidence(&self) -> &'a [i64] {
        if self.evidence.is_empty() { self.latest() } else { &self.evidence[self.begin..self.end] }
    }

    /// The floors; `None` if they are the evidence.
    pub fn floor(&self) -> Option<&'a [i64]> {
        (!self.floor.is_empty()).then(|| &self.floor[self.begin..self.end])
    }

    /// Whether no arrival is known.
    pub fn has_latest_alone(&self) -> bool {
        self.evidence.is_empty()
    }

    /// The latest bounds, with [`REACH`] before the first and one fewer after the last.
    pub fn around(&self) -> &'a [i64] {
        &self.latest[self.begin - REACH..self.end + REACH - 1]
    }
}

/// Some of the places in a block, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places([u64; BLOCK / 64]);

impl Places {
    /// The first ones.
    pub fn all(len: usize) -> Places {
        let mut all = Places::default();
        (0..len).for_each(|at| all.set(at));
        all
    }

    #[inline]
    pub fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// The first place from this one on.
    pub fn next(&self, from: usize) -> Option<usize> {
        (from / 64..self.0.len()).find_map(|word| {
            let bits =
                if word == from / 64 { self.0[word] >> (from % 64) << (from % 64) } else { self.0[word] };
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Those in both.
    pub fn with(mut self, others: &Places) -> Places {
        self.0.iter_mut().zip(&others.0).for_each(|(mine, other)| *mine &= other);
        self
    }

    pub fn without(mut self, others: &Places) -> Places {
        self.0.iter_mut().zip(&others.0).for_each(|(mine, other)| *mine &= !other);
        self
    }

    /// Calls `act` with each place, in order.
    #[inline(always)]
    pub fn each(&self, mut act: impl FnMut(usize)) {
        for (word, bits) in self.0.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                act(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}
