//! Chooses between periods so close to each other that lateness can hardly tell them apart.
//!
//! The description length has no word for three things: how evenly the lowest releases lie along the line of
//! a period, that a wrong period has more jitter than it should, and that a period which someone chose is
//! likely to have a short name. (`docs/design/periods.md` has how the bounds were found.)

use crate::periodic::choice::{Candidate, MOST_NAMED, MOST_ROUND};
use crate::periodic::resolve::Evidence;
use crate::ratio::Ratio;
use std::f64::consts::LN_10;

/// Digits by which a multiple of 100 ns may be less likely than nanoseconds that nobody would choose, if it
/// has less jitter.
const HUNDREDS: f64 = 2.0;

/// A short period is refuted if its line drifts away from that of the best whole nanoseconds by so many times
/// the unevenness of the lowest releases there: the least lateness of a machine wanders by some microseconds,
/// which tilts the lowest releases, but does not make them lie evenly along another line.
const UNEVEN: f64 = 16.0;

/// It must be less likely, too: by so many digits for each digit that it saves.
const FOR_DIGIT: f64 = 2.0;

/// Unless jitter tells. A period whose name is the only one as short in so many times twice its distance from
/// the likeliest is close to that by no coincidence: it stays if it has less jitter. One whose name is no
/// rarer than one in [`COMMON`] may be a coincidence, and goes if it has more jitter by one part in
/// [`CLEARLY`].
const RARE: f64 = 200.0;
const COMMON: f64 = 32.0;
const CLEARLY: i128 = 64;

/// By how much a short period that is not refuted may lie lower in the middle than nanoseconds that nobody
/// would choose, in mean latenesses without what stalls add.
const MOST_DROP: f64 = 0.25;

/// The same for frequencies, which lie farther apart.
const NAMED_DROP: f64 = 0.5;

/// How far a frequency may be from the other period, in periods: frequencies lie densely in wider ranges.
const NAMED_APART: f64 = 1e-5;

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
    let nearby = Nearby { evidence, candidates, jitter, greatest };
    let Some(likely) = nearby.likeliest() else { return best };
    let best = match best {
        // Another machine's clock.
        best if best.is_decimal || best.is_long_frequency() => best,
        best if best.digits <= MOST_NAMED && !best.is_long() && !nearby.is_refuted(&best, &likely) => best,
        _ => nearby.rounded(&likely).unwrap_or(likely),
    };
    if best.digits < MOST_ROUND { best } else { nearby.named(&best, &likely).unwrap_or(best) }
}

impl<J: Fn(Ratio) -> i128, G: Fn(Ratio) -> Option<i128>> Nearby<'_, J, G> {
    /// Of whole nanoseconds that nobody rounded, those that the releases make likeliest, or others hardly
    /// less likely that have less jitter.
    fn likeliest(&self) -> Option<Candidate> {
        let long = self.candidates.iter().filter(|candidate| candidate.is_long());
        let long: Vec<(f64, &Candidate)> =
            long.map(|candidate| (self.evidence.mismatch(candidate.period), candidate)).collect();
        let (least, best) = *long.iter().min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let most = |candidate: &Candidate| {
            let digits = if candidate.period.numerator() % 100 == 0 { HUNDREDS } else { 0.0 };
            least + self.evidence.slack() + digits * LN_10
        };
        let typical = (self.jitter)(best.period);
        let alike = long.iter().filter(|(mismatch, candidate)| *mismatch <= most(candidate));
        let alike = alike.map(|(_, candidate)| *candidate);
        let alike = alike.filter(|candidate| (self.jitter)(candidate.period) <= typical);
        let jitter = alike.filter_map(|candidate| Some(((self.greatest)(candidate.period)?, candidate)));
        jitter.min_by_key(|(greatest, _)| *greatest).map(|(_, candidate)| *candidate)
    }

    /// Whether the releases speak against a shorter period so clearly that it cannot be meant.
    fn is_refuted(&self, short: &Candidate, likely: &Candidate) -> bool {
        let evidence = self.evidence;
        let lower = evidence.drop(short.period) - evidence.drop(likely.period);
        let digits = f64::from(likely.digits.saturating_sub(short.digits));
        evidence.count * lower > FOR_DIGIT * LN_10 * digits * evidence.usual_lateness
            && self.is_refuted_by_jitter(short, likely).unwrap_or_else(|| {
                evidence.drift_apart(short.period, likely.period)
                    > UNEVEN * evidence.unevenness(likely.period).max(1.0)
            })
    }

    /// Whether jitter speaks against a shorter period, or for it. `None` if it says nothing.
    fn is_refuted_by_jitter(&self, short: &Candidate, likely: &Candidate) -> Option<bool> {
        let rarity = short.apart() / (2.0 * short.period.difference(likely.period).abs());
        let (all, of_likely) = (self.greatest)(short.period).zip((self.greatest)(likely.period))?;
        let is_typical = || (self.jitter)(short.period) <= (self.jitter)(likely.period);
        if rarity >= RARE && all < of_likely && (short.is_whole() || is_typical()) {
            return Some(false);
        }
        let is_more = (all - of_likely) * CLEARLY > of_likely;
        (short.is_whole() && rarity < COMMON && is_more).then_some(true)
    }

    /// A rounded period, if the likeliest lies so unevenly that it does not refute it.
    fn rounded(&self, likely: &Candidate) -> Option<Candidate> {
        let most = |candidate: &Candidate| match self.is_refuted_by_jitter(candidate, likely) {
            Some(false) => NAMED_DROP * self.evidence.usual_lateness,
            _ => MOST_DROP * self.evidence.usual_lateness,
        };
        let is_meant = |candidate: &&Candidate| {
            candidate.is_whole()
                && !candidate.is_long()
                && candidate.digits <= MOST_ROUND
                && self.evidence.drop(candidate.period) <= most(candidate)
                && !self.is_refuted(candidate, likely)
        };
        self.candidates.iter().find(is_meant).copied()
    }

    /// A frequency that is a fraction of nanoseconds, in place of nanoseconds that nobody would choose.
    fn named(&self, best: &Candidate, likely: &Candidate) -> Option<Candidate> {
        let apart = NAMED_APART * best.period.as_f64();
        let most = NAMED_DROP * self.evidence.usual_lateness;
        let named = self.candidates.iter().filter(|candidate| {
            let is_named = !candidate.is_whole() && !candidate.is_decimal && candidate.digits <= MOST_NAMED;
            is_named
                && candidate.period.difference(best.period).abs() <= apart
                && self.evidence.drop(candidate.period) <= most
                && !self.is_refuted(candidate, likely)
                && self.is_tight(candidate, best)
        });
        named.min_by_key(|candidate| candidate.digits).copied()
    }

    /// Where someone may have chosen the best too, or a program rounded the frequency to it, the frequency
    /// must have less jitter over all releases.
    fn is_tight(&self, named: &Candidate, best: &Candidate) -> bool {
        let period = named.period;
        let down = period.numerator().div_euclid(period.denominator());
        let may_be_rounded = [down, period.rounded()].map(Ratio::whole).contains(&best.period);
        if best.is_long() && !may_be_rounded {
            return true;
        }
        let greatest = |candidate: &Candidate| (self.greatest)(candidate.period);
        greatest(named).zip(greatest(best)).is_some_and(|(named, best)| named < best)
    }
}
