//! The longest times of a stream: how many are beyond a limit that is known only in the end.

use punctual_model::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// If more are beyond the limit, their number is not known.
const MOST: usize = 1024;

/// The longest times.
#[derive(Clone, Debug, Default)]
pub struct Longest {
    kept: BinaryHeap<Reverse<Duration>>,
}

impl Longest {
    /// Adds a time.
    #[inline]
    pub fn add(&mut self, time: Duration) {
        if self.kept.len() < MOST {
            self.kept.push(Reverse(time));
        } else if let Some(mut shortest) = self.kept.peek_mut().filter(|kept| time > kept.0) {
            *shortest = Reverse(time);
        }
    }

    /// Adds those of another stretch.
    pub fn merge(&mut self, other: &Longest) {
        other.kept.iter().for_each(|time| self.add(time.0));
    }

    /// How many times are longer than this; `None` if there may be more than are kept.
    pub fn beyond(&self, limit: Duration) -> Option<u64> {
        let beyond = self.kept.iter().filter(|time| time.0 > limit).count();
        (beyond < MOST).then_some(beyond as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In one piece or in two, as long as few are beyond.
        #[test]
        fn counts_what_is_beyond(
            times in prop::collection::vec(0..1_000_u64, 0..3_000),
            cut in any::<prop::sample::Index>(),
            limit in 0..1_000_u64,
        ) {
            let (mut first, mut second) = (Longest::default(), Longest::default());
            let cut = cut.index(times.len() + 1);
            times[..cut].iter().for_each(|time| first.add(Duration::from_ns(*time)));
            times[cut..].iter().for_each(|time| second.add(Duration::from_ns(*time)));
            first.merge(&second);
            let beyond = times.iter().filter(|time| **time > limit).count();
            let expected = (beyond < MOST).then_some(beyond as u64);
            prop_assert_eq!(first.beyond(Duration::from_ns(limit)), expected);
        }
    }
}
