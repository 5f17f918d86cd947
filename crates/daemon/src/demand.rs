//! How long all that is asked of a processor may take, if every deadline is met.

use punctual_model::Duration;
use punctual_schedule::{Offer, Parameters};

/// All of a processor, as a rate.
const ALL: u128 = 1 << 32;
/// A greater backlog is not added up: it counts as unknown.
const MOST: u128 = 1 << 90;

/// What specs may ask of a processor. Sums are exact: whatever was added can be taken away again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// What is left of their jobs at some instant, at most, and one more job of each, in ns.
    pub backlog: u128,
    /// What they ask for from then on, in 2⁻³² of the processor.
    pub rate: u128,
    /// How many of them may miss their deadlines, since they were not tested.
    pub unknown: u64,
}

impl Demand {
    /// Of one spec: it meets its deadlines, so it has at most ⌈D / T⌉ jobs at any instant, and ⌈x / T⌉ more
    /// in x from then on, each of Q + B. Who declares less runs below all that declare both, and asks for
    /// nothing.
    pub fn new(offer: &Offer, parameters: &Parameters) -> Demand {
        let ignored = Demand { unknown: 1, ..Demand::default() };
        if offer.ignored {
            return ignored;
        }
        let Some((runtime, period)) = offer.accepted_runtime.zip(parameters.period) else {
            return Demand::default();
        };
        let [runtime, period] = [runtime, period].map(|it| u128::from(it.ns().max(1)));
        let deadline = parameters.deadline.map_or(period, |it| u128::from(it.ns()));
        let cost = runtime + u128::from(parameters.blocking.map_or(0, Duration::ns));
        match cost.checked_mul(deadline.div_ceil(period) + 1) {
            Some(backlog) if backlog <= MOST => {
                Demand { backlog, rate: (cost * ALL).div_ceil(period), unknown: 0 }
            }
            _ => ignored,
        }
    }

    /// What the kernel takes: `runtime` in each `period`, wherever that begins.
    pub fn reserve(runtime: Duration, period: Duration) -> Demand {
        let [runtime, period] = [runtime, period].map(|it| u128::from(it.ns().max(1)));
        Demand { backlog: 2 * runtime, rate: (runtime * ALL).div_ceil(period), unknown: 0 }
    }

    /// Together with others.
    pub fn add(&mut self, other: &Demand) {
        self.backlog += other.backlog;
        self.rate += other.rate;
        self.unknown += other.unknown;
    }

    /// Without what was added before.
    pub fn remove(&mut self, other: &Demand) {
        self.backlog -= other.backlog;
        self.rate -= other.rate;
        self.unknown -= other.unknown;
    }

    /// Within how many ns from any instant all of it has been done, at some instant: the least x with
    /// Σ (⌈D / T⌉ + 1 + x / T) · (Q + B) ≤ x. `None` if that is not known.
    pub fn drained_within(&self) -> Option<u64> {
        let left = ALL.checked_sub(self.rate).filter(|left| *left > 0 && self.unknown == 0)?;
        u64::try_from(self.backlog.checked_mul(ALL)?.div_ceil(left)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(runtime: u64, period: u64, deadline: u64) -> Demand {
        let [runtime, period, deadline] = [runtime, period, deadline].map(Duration::from_ns);
        let offer = Offer { processor: 0, accepted_runtime: Some(runtime), ignored: false };
        let parameters =
            Parameters { period: Some(period), deadline: Some(deadline), ..Parameters::default() };
        Demand::new(&offer, &parameters)
    }

    #[test]
    fn what_is_asked_is_done_after_a_while() {
        assert_eq!(Demand::default().drained_within(), Some(0));
        // Two jobs of 10 at once; then a tenth of the processor is taken: 20 / 0.9.
        let mut sum = spec(10, 100, 100);
        assert_eq!(sum.drained_within(), Some(23));
        // Another one has up to four jobs of 20 at once, and then one more: 120 / 0.7.
        sum.add(&spec(20, 100, 400));
        assert_eq!(sum.drained_within(), Some(172));
        let reserve = Demand::reserve(Duration::from_ns(10), Duration::from_ns(100));
        sum.add(&reserve);
        assert_eq!(sum.drained_within(), Some(234));
        sum.remove(&reserve);
        assert_eq!(sum.drained_within(), Some(172));
        sum.add(&spec(70, 100, 100));
        assert_eq!(sum.drained_within(), None, "all of the processor is asked for");
    }

    #[test]
    fn what_was_not_tested_says_nothing() {
        let offer = Offer { processor: 0, accepted_runtime: None, ignored: true };
        let mut sum = Demand::new(&offer, &Parameters::default());
        assert_eq!(sum.drained_within(), None);
        sum.add(&Demand::new(&Offer { ignored: false, ..offer }, &Parameters::default()));
        assert_eq!(sum.unknown, 1);
        sum.add(&spec(u64::MAX, 1, u64::MAX));
        assert_eq!(sum.unknown, 2);
    }
}
