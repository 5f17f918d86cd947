//! Checkers that share the threads of the same records: each takes all of these, and judges its own threads.
//! Together they find what one finds. Threads have nothing in common but sums, and limits of what is kept,
//! for which the order counts: that of the records.

use super::{Checker, Judge, MAX_NOTES};
use crate::contract::Contract;
use crate::verdict::{MAX_EXAMPLES, MAX_UNKNOWN, Standing, Tally};
use crate::violation::{Term, Violation};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The threads that a checker judges.
pub struct Share {
    number: u32,
    of: NonZeroU32,
    places: Places,
}

/// In which record each of the first examples of a term was found.
type Places = FxHashMap<(Arc<str>, Term), Vec<u64>>;

impl Share {
    #[inline]
    pub fn has(&self, tid: u32) -> bool {
        tid % self.of == self.number
    }

    /// A violation was found in the record at `place`.
    pub fn found(&mut self, place: u64, violation: &Violation) {
        let places = self.places.entry((violation.task.clone(), violation.term)).or_default();
        if places.len() < MAX_EXAMPLES {
            places.push(place);
        }
    }
}

impl Checker {
    /// Checkers that judge the same records between them: each must be given all of them, in order.
    /// [`Checker::finish_with`] makes one verdict.
    pub fn shares(contract: &Contract, of: NonZeroU32) -> impl Iterator<Item = Checker> {
        (0..of.get()).map(move |number| {
            let mut checker = Checker::new(contract);
            if of.get() > 1 {
                checker.share = Some(Share { number, of, places: Places::default() });
                (checker.judge.most_notes, checker.judge.most_unknown) = (usize::MAX, usize::MAX);
            }
            checker
        })
    }

    /// Takes what another one found in its share.
    pub(super) fn join(&mut self, other: Checker) {
        self.judge.gaps += other.extractor.progress().gaps;
        let Some((share, others)) = self.share.as_mut().zip(other.share) else { return };
        self.judge.join(other.judge, &mut share.places, &others.places);
    }
}

impl Judge {
    fn join(&mut self, other: Judge, places: &mut Places, others: &Places) {
        let all = self.tallies.iter_mut().zip(&mut self.agreed);
        for ((tally, agreed), (their_tally, theirs)) in all.zip(other.tallies.into_iter().zip(other.agreed)) {
            agreed.is_in_doubt |= theirs.is_in_doubt;
            join_tallies(tally, their_tally, agreed.terms, places, others);
        }
        for (note, place) in other.notes {
            let first = self.notes.entry(note).or_insert(place);
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
        keep_first(&mut self.notes, MAX_NOTES, |place| *place);
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

fn join_tallies(mine: &mut Tally, theirs: Tally, agreed: usize, places: &mut Places, others: &Places) {
    mine.threads = mine.threads.saturating_add(theirs.threads);
    mine.jobs = mine.jobs.saturating_add(theirs.jobs);
    mine.unjudged = mine.unjudged.saturating_add(theirs.unjudged);
    mine.has_others |= theirs.has_others;
    for theirs in theirs.standings {
        let key = (mine.task.clone(), theirs.term);
        let position = mine.standings.iter().position(|it| it.term == theirs.term);
        let position = position.unwrap_or_else(|| {
            mine.standings.push(Standing::new(theirs.term, theirs.agreed));
            mine.standings.len() - 1
        });
        let at = others.get(&key).map_or(&[][..], Vec::as_slice);
        join_standings(&mut mine.standings[position], theirs, places.entry(key).or_default(), at);
    }
    // Terms that are there only if they were broken stand in the order in which they were.
    let task = &mine.task;
    let first = |it: &Standing| places.get(&(task.clone(), it.term)).and_then(|it| it.first().copied());
    mine.standings[agreed..].sort_by_key(first);
}

fn join_standings(mine: &mut Standing, theirs: Standing, places: &mut Vec<u64>, others: &[u64]) {
    if let Some(worst) = theirs.worst {
        mine.see(worst);
    }
    mine.violations = mine.violations.saturating_add(theirs.violations);
    let own = places.drain(..).zip(mine.examples.drain(..));
    let mut all: Vec<(u64, Violation)> = own.chain(others.iter().copied().zip(theirs.examples)).collect();
    all.sort_by_key(|(place, _)| *place);
    all.truncate(MAX_EXAMPLES);
    (*places, mine.examples) = all.into_iter().unzip();
}
