//! The longest times of a stream, to count those beyond a limit that is known only at the end.

use crate::short::Numbers;
use punctual_model::{Duration, MANY_LATE};
use serde::{Deserialize, Serialize};

const MOST: usize = MANY_LATE as usize;

/// The [`MOST`] longest of all times that were added: the same in any order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub(crate) struct Longest {
    /// In ns, the longest first.
    kept: Numbers,
}

impl From<Vec<u64>> for Longest {
    fn from(times: Vec<u64>) -> Longest {
        let mut kept = Numbers::default();
        times.into_iter().for_each(|ns| kept.push(ns));
        Longest { kept }
    }
}

impl From<Longest> for Vec<u64> {
    fn from(longest: Longest) -> Vec<u64> {
        longest.kept.iter().collect()
    }
}

impl Longest {
    /// Adds a time.
    #[inline]
    pub fn add(&mut self, time: Duration) {
        if self.kept.get(MOST - 1).is_none_or(|least| time.ns() > least) {
            self.insert(time.ns());
        }
    }

    #[inline(never)]
    fn insert(&mut self, ns: u64) {
        self.kept.truncate(MOST - 1);
        let place = self.kept.iter().take_while(|other| *other >= ns).count();
        self.kept.insert(place, ns);
    }

    /// Adds all times of another.
    pub fn merge(&mut self, other: &Longest) {
        other.kept.iter().for_each(|ns| self.add(Duration::from_ns(ns)));
    }

    /// `None` of nothing.
    pub fn greatest(&self) -> Option<Duration> {
        self.kept.get(0).map(Duration::from_ns)
    }

    /// How many times are longer than this: exactly if fewer than [`MANY_LATE`], else at least so many.
    pub fn beyond(&self, limit: Duration) -> u64 {
        self.kept.iter().take_while(|ns| *ns > limit.ns()).count() as u64
    }

    /// Whether these can be the longest of so many times.
    pub fn is_of(&self, times: u64) -> bool {
        self.kept.iter().is_sorted_by(|one, next| one >= next)
            && self.kept.len() as u64 == times.min(MANY_LATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn longest(times: &[u64]) -> Longest {
        let mut longest = Longest::default();
        times.iter().for_each(|ns| longest.add(Duration::from_ns(*ns)));
        longest
    }

    fn kept(longest: &Longest) -> Vec<u64> {
        longest.clone().into()
    }

    fn times() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0..100_u64, 1 << 32..(1_u64 << 32) + 20], 0..60)
    }

    proptest! {
        #[test]
        fn any_order_of_merges_gives_the_same(
            parts in prop::collection::vec(times(), 3),
            limit in 0..100_u64,
        ) {
            let times = parts.concat();
            let whole = longest(&times);
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let [one, other, third] = order.map(|place| longest(&parts[place]));
                let (mut left, mut right) = (one.clone(), other.clone());
                left.merge(&other);
                left.merge(&third);
                right.merge(&third);
                let mut all = one;
                all.merge(&right);
                prop_assert!(kept(&left) == kept(&whole) && kept(&all) == kept(&whole));
            }
            prop_assert!(whole.is_of(times.len() as u64));
            let beyond = times.iter().filter(|ns| **ns > limit).count() as u64;
            prop_assert_eq!(whole.beyond(Duration::from_ns(limit)), beyond.min(MANY_LATE));
            prop_assert_eq!(whole.greatest().map(Duration::ns), times.iter().copied().max());
        }
    }
}
