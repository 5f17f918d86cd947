//! How many jobs of a thread were late, at each separator: at which its jobs end, and what is late, is often
//! known only when many of them have ended. Not for why they were late.

use punctual_model::{Duration, Separator};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The longest responses that are kept at each separator. If more jobs than these were late, a new deadline
/// only applies to jobs from then on.
const KEPT: usize = 256;

/// The late jobs of a thread.
#[derive(Default)]
pub(super) struct Late {
    deadline: Option<Duration>,
    lanes: Vec<Lane>,
}

/// The jobs at one separator.
struct Lane {
    /// Its key.
    separator: Separator,
    longest: BinaryHeap<Reverse<Duration>>,
    late: u64,
}

impl Late {
    /// A job with this response ended at the separator with this key.
    pub fn job(&mut self, separator: Separator, response: Duration) {
        let place = self.lanes.iter().position(|lane| lane.separator == separator).unwrap_or_else(|| {
            self.lanes.push(Lane { separator, longest: BinaryHeap::new(), late: 0 });
            self.lanes.len() - 1
        });
        self.lanes[place].job(response, self.deadline);
    }

    /// Judges all jobs by another deadline, those that have ended included.
    pub fn judge(&mut self, deadline: Option<Duration>) {
        if self.deadline != deadline {
            self.deadline = deadline;
            self.lanes.iter_mut().for_each(|lane| lane.judge(deadline));
        }
    }

    /// The late jobs at a separator.
    pub fn at(&self, separator: Option<Separator>) -> u64 {
        let lane = self.lanes.iter().find(|lane| Some(lane.separator) == separator);
        lane.map_or(0, |lane| lane.late)
    }
}

impl Lane {
    fn job(&mut self, response: Duration, deadline: Option<Duration>) {
        self.late += u64::from(deadline.is_some_and(|deadline| response > deadline));
        if self.longest.len() < KEPT {
            self.longest.push(Reverse(response));
        } else if let Some(mut shortest) = self.longest.peek_mut().filter(|kept| response > kept.0) {
            *shortest = Reverse(response);
        }
    }

    fn judge(&mut self, deadline: Option<Duration>) {
        let is_late = |response: &Reverse<Duration>| deadline.is_some_and(|deadline| response.0 > deadline);
        let late = self.longest.iter().filter(|response| is_late(response)).count();
        self.late = match late {
            KEPT => self.late.max(KEPT as u64),
            late => late as u64,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: Separator = Separator::SUSPENSION;

    proptest! {
        /// As if each job had been judged by the last deadline, as long as few are late.
        #[test]
        fn a_new_deadline_applies_to_all_jobs(
            responses in proptest::collection::vec(0..1_000_u64, 0..800),
            deadlines in proptest::collection::vec((0..800_usize, 0..1_000_u64), 1..4),
        ) {
            let mut late = Late::default();
            for (number, response) in responses.iter().enumerate() {
                for (_, deadline) in deadlines.iter().filter(|(from, _)| *from == number) {
                    late.judge(Some(Duration::from_ns(*deadline)));
                }
                late.job(ONE, Duration::from_ns(*response));
            }
            let last = deadlines[deadlines.len() - 1].1;
            late.judge(Some(Duration::from_ns(last)));
            let truth = responses.iter().filter(|response| **response > last).count();
            let found = late.at(Some(ONE));
            prop_assert!(found == truth as u64 || truth >= KEPT && found >= KEPT as u64);
        }
    }
}
