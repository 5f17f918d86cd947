//! Checkers that share the threads of the same records: each takes all of these, and judges its own threads.
//! Together they find what one finds. Threads have nothing in common but sums, and limits of what is kept,
//! for which the order counts: that of the records.

use super::{Checker, Judge, MAX_NOTES};
use crate::contract::Contract;
use crate::verdict::MAX_UNKNOWN;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// The threads that a checker judges.
pub struct Share {
    number: u32,
    of: NonZeroU32,
}

impl Share {
    #[inline]
    pub fn has(&self, tid: u32) -> bool {
        tid % self.of == self.number
    }
}

impl Checker {
    /// Checkers that judge the same records between them: each must be given all of them, in order.
    /// [`Checker::finish_with`] makes one verdict.
    pub fn shares(contract: &Contract, of: NonZeroU32) -> impl Iterator<Item = Checker> {
        (0..of.get()).map(move |number| {
            let mut checker = Checker::new(contract);
            if of.get() > 1 {
                checker.share = Some(Share { number, of });
                (checker.judge.notes.most, checker.judge.most_unknown) = (usize::MAX, usize::MAX);
            }
            checker
        })
    }

    /// Takes what another one found in its share.
    pub(super) fn join(&mut self, other: Checker) {
        self.judge.gaps += other.extractor.progress().gaps;
        self.judge.join(other.judge);
    }
}

impl Judge {
    fn join(&mut self, other: Judge) {
        let all = self.tallies.iter_mut().zip(&mut self.agreed);
        for ((tally, agreed), (their_tally, theirs)) in all.zip(other.tallies.into_iter().zip(other.agreed)) {
            agreed.is_in_doubt |= theirs.is_in_doubt;
            tally.join(their_tally, agreed.terms);
        }
        for (note, place) in other.notes.all {
            let first = self.notes.all.entry(note).or_insert(place);
            *first = place.min(*first);
        }
        for (name, theirs) in other.unknown {
            let mine = self.unknown.entry(name).or_insert(super::Unknown { threads: 0, ..theirs });
            (mine.first, mine.threads) = (mine.first.min(theirs.first), mine.threads + theirs.threads);
        }
        self.unknown_violations += other.unknown_violations;
    }

    /// Leaves what one checker would have kept: the first.
    pub(super) fn keep_first(&mut self) {
        keep_first(&mut self.notes.all, MAX_NOTES, |place| *place);
        keep_first(&mut self.unknown, MAX_UNKNOWN, |unknown| unknown.first);
    }
}

fn keep_first<K: Ord, V>(all: &mut BTreeMap<K, V>, most: usize, place: impl Fn(&V) -> u64) {
    if all.len() > most {
        let mut places: Vec<u64> = all.values().map(&place).collect();
        places.sort_unstable();
        let limit = places[most];
        all.retain(|_, value| place(value) < limit);
    }
}
