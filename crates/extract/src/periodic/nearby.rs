//! Chooses between periods so close to each other that lateness can hardly tell them apart.
//!
//! The description length has no word for two things: that a period which someone chose is likely to have a
//! short name, and that a wrong one has more jitter than it should. Neither may overrule clear evidence, so a
//! period gives way only within the bounds below. (`docs/design/periods.md` has how they were found.)

use crate::periodic::choice::{Candidate, MOST_NAMED, MOST_ROUND};
use crate::periodic::resolve::{Evidence, KAPPA};
use crate::ratio::Ratio;
use std::cmp::Reverse;

/// A period of [`MOST_ROUND`] digits is not meant if its jitter exceeds that of the best longer one by one
/// part in so many.
const FALSELY_ROUND: i128 = 100;

/// Where all releases together tell the period, a whole nanosecond gives way to one with less jitter by one
/// part in so many.
const TIGHTER: i128 = 288;

/// A frequency may have more jitter than nanoseconds that nobody would choose, by one part in so many.
const LOOSER: i128 = 16;

/// By how much a frequency may lie lower in the middle, in mean latenesses without what stalls add: the least
/// lateness of a machine wanders by some microseconds, which tilts the lowest releases.
const NAMED_DROP: f64 = 0.25;

/// How far it may be from the other period, in periods: frequencies lie densely in wider ranges.
const NAMED_APART: f64 = 1e-5;

/// Closer than this hardly any is by chance; it may lie twice as low.
const NAMED_CLOSE: f64 = 1e-7;

/// Candidates beside each other, and the jitter that each would have.
struct Nearby<'a, J, G> {
    evidence: &'a Evidence,
    /// The best first.
    candidates: &'a [Candidate],
    /// That of the typical model.
    jitter: J,
    /// That of all releases; `None` if it cannot be told.
    greatest: G,
}

/// The best candidate, or one close to it that is rather meant.
pub(crate) fn preferred(
    evidence: &Evidence,
    candidates: &[Candidate],
    best: Candidate,
    jitter: impl Fn(Ratio) -> i128,
    greatest: impl Fn(Ratio) -> Option<i128>,
) -> Candidate {
    if best.digits < MOST_ROUND {
        return best;
    }
    let nearby = Nearby { evidence, candidates, jitter, greatest };
    let mut best = best;
    if best.is_whole() {
        for prefer in [Nearby::longer, Nearby::tighter, Nearby::rounder] {
            best = prefer(&nearby, &best).unwrap_or(best);
        }
    }
    nearby.named(&best).unwrap_or(best)
}

impl<J: Fn(Ratio) -> i128, G: Fn(Ratio) -> Option<i128>> Nearby<'_, J, G> {
    fn jitter(&self, candidate: &Candidate) -> i128 {
        (self.jitter)(candidate.period)
    }

    /// Whole nanoseconds that nobody rounded.
    fn long(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| candidate.is_whole() && candidate.digits > MOST_ROUND)
    }

    /// The same that cost hardly more than the best: less than one independent release tells them apart.
    fn alike(&self, best: &Candidate) -> impl Iterator<Item = &Candidate> {
        let most = best.cost + KAPPA;
        self.long().filter(move |candidate| candidate.cost < most)
    }

    /// The best of all digits, if rounding to the last of [`MOST_ROUND`] costs jitter.
    fn longer(&self, best: &Candidate) -> Option<Candidate> {
        let is_rounded = best.digits == MOST_ROUND && best.zeros() > 0;
        let longer = self.long().next().filter(|_| is_rounded)?;
        let is_less = self.jitter(best) * FALSELY_ROUND > self.jitter(longer) * (FALSELY_ROUND + 1);
        is_less.then_some(*longer)
    }

    /// The one of least jitter, where lateness hardly ever comes close to zero and the lowest releases tell
    /// little.
    fn tighter(&self, best: &Candidate) -> Option<Candidate> {
        if self.evidence.expected.is_none() || best.digits <= MOST_ROUND {
            return None;
        }
        let most = self.jitter(best) * (TIGHTER - 1);
        let alike = self.alike(best).map(|candidate| (self.jitter(candidate), candidate));
        let (_, tighter) =
            alike.filter(|(jitter, _)| jitter * TIGHTER < most).min_by_key(|(jitter, _)| *jitter)?;
        Some(*tighter)
    }

    /// One that is a multiple of 100 ns, if it has less jitter.
    fn rounder(&self, best: &Candidate) -> Option<Candidate> {
        if best.digits <= MOST_ROUND {
            return None;
        }
        let least = best.zeros().max(1);
        let rounder = self.alike(best).filter(|candidate| candidate.zeros() > least);
        let most = self.jitter(best);
        let rounder = rounder.filter(|candidate| self.jitter(candidate) < most);
        rounder.min_by_key(|candidate| Reverse(candidate.zeros())).copied()
    }

    /// A frequency that is a fraction of nanoseconds, in place of nanoseconds that nobody would choose.
    fn named(&self, best: &Candidate) -> Option<Candidate> {
        let (apart, close) = (NAMED_APART * best.period.as_f64(), NAMED_CLOSE * best.period.as_f64());
        let usual = self.evidence.usual_lateness;
        let named = self.candidates.iter().filter(|candidate| {
            let is_named = !candidate.is_whole() && !candidate.is_decimal && candidate.digits <= MOST_NAMED;
            let off = candidate.period.difference(best.period).abs();
            let lowest = if off <= close { 2.0 * NAMED_DROP * usual } else { NAMED_DROP * usual };
            is_named
                && off <= apart
                && self.evidence.drop(candidate.period) <= lowest
                && self.is_tight(candidate, best)
        });
        named.min_by_key(|candidate| candidate.digits).copied()
    }

    /// Whether a frequency has hardly more jitter. Where a program may have rounded it to the best, it must
    /// have less over all releases: releases that only one of the two leaves out count too.
    fn is_tight(&self, named: &Candidate, best: &Candidate) -> bool {
        let period = named.period;
        let down = period.numerator().div_euclid(period.denominator());
        if [down, period.rounded()].map(Ratio::whole).contains(&best.period) {
            let greatest = |candidate: &Candidate| (self.greatest)(candidate.period);
            return greatest(named).zip(greatest(best)).is_some_and(|(named, best)| named < best);
        }
        self.jitter(named) * LOOSER <= self.jitter(best) * (LOOSER + 1)
    }
}
