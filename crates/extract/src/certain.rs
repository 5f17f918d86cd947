//! The certain response times of a stream's jobs, to count those that took longer than the period, which is
//! known only at the end.

use crate::histogram::Times;
use crate::longest::Longest;
use punctual_model::{Duration, Job, MANY_LATE};
use serde::{Deserialize, Serialize};

/// The certain response times ([`Job::least_response`]) of jobs. Their response times, which are most often
/// the same, are kept beside it: every method takes them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Certain {
    longest: Longest,
    /// `None` if they are the response times.
    times: Option<Box<Times>>,
}

impl Certain {
    /// Adds a job, before it is added to `responses`.
    #[inline]
    pub fn add(&mut self, job: &Job, responses: &Times) {
        let time = job.least_response();
        self.longest.add(time);
        if self.times.is_some() || time != job.response() {
            self.times.get_or_insert_with(|| Box::new(responses.clone())).add(time);
        }
    }

    /// Adds jobs whose response times are `others`, before those are added to `responses`.
    pub fn merge(&mut self, other: &Certain, responses: &Times, others: &Times) {
        self.longest.merge(&other.longest);
        if self.times.is_some() || other.times.is_some() {
            let times = self.times.get_or_insert_with(|| Box::new(responses.clone()));
            times.merge(other.times(others));
        }
    }

    fn times<'a>(&'a self, responses: &'a Times) -> &'a Times {
        self.times.as_deref().unwrap_or(responses)
    }

    /// The greatest; zero of nothing.
    pub fn greatest(&self) -> Duration {
        self.longest.greatest().unwrap_or_default()
    }

    /// How many jobs certainly took longer than this: exactly if fewer than [`MANY_LATE`]; else at least so
    /// many, without those in the histogram's bucket of the limit.
    pub fn longer_than(&self, limit: Duration, responses: &Times) -> u64 {
        match self.longest.beyond(limit) {
            few @ 0..MANY_LATE => few,
            many => many.max(self.times(responses).at_least_beyond(limit)),
        }
    }

    /// Whether it can be of jobs with these response times.
    pub fn is_of(&self, responses: &Times) -> bool {
        let times = self.times(responses);
        self.longest.is_of(responses.count())
            && times.count() == responses.count()
            && times.greatest() == self.longest.greatest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_model::{Instant, Release, Window};

    /// Jobs by the width of the window of their release, and their certain response time.
    fn of(jobs: &[(u64, u64)]) -> (Certain, Times) {
        let (mut certain, mut responses) = (Certain::default(), Times::default());
        for (width, response) in jobs {
            let [earliest, latest, end] = [0, *width, width + response].map(Instant::from_ns);
            let window = Window::new(earliest, latest).expect("a window");
            let job = Job {
                release: Release { arrival: None, window },
                start: latest,
                end,
                cost: Duration::ZERO,
                suspended: Duration::ZERO,
            };
            certain.add(&job, &responses);
            responses.add(job.response());
        }
        (certain, responses)
    }

    fn merged(
        (mut one, mut responses): (Certain, Times),
        (other, others): &(Certain, Times),
    ) -> (Certain, Times) {
        one.merge(other, &responses, others);
        responses.merge(others);
        (one, responses)
    }

    fn bytes(certain: &Certain) -> Vec<u8> {
        postcard::to_allocvec(certain).expect("memory")
    }

    fn jobs() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let width = prop_oneof![4 => Just(0), 1 => 0..2_000_u64];
        let response = prop_oneof![0..1_000_u64, 900..1_000_u64, 0..1_u64 << 40];
        prop::collection::vec((width, response), 0..120)
    }

    proptest! {
        #[test]
        fn few_are_counted_exactly_and_many_never_too_high(jobs in jobs(), limit in 0..1_100_u64) {
            let (certain, responses) = of(&jobs);
            let found = certain.longer_than(Duration::from_ns(limit), &responses);
            let beyond = |limit: u64| jobs.iter().filter(|(_, response)| *response > limit).count() as u64;
            // No more than a bucket is left out.
            let least = beyond(limit + limit / 64).max(beyond(limit).min(MANY_LATE));
            prop_assert!(least <= found && found <= beyond(limit), "{found} of {}", beyond(limit));
            let greatest = jobs.iter().map(|(_, response)| *response).max().unwrap_or(0);
            prop_assert_eq!(certain.greatest().ns(), greatest);
            prop_assert!(certain.is_of(&responses));
        }

        #[test]
        fn any_order_of_merges_gives_the_same(parts in prop::collection::vec(jobs(), 3)) {
            let whole = bytes(&of(&parts.concat()).0);
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let [one, other, third] = order.map(|place| of(&parts[place]));
                let left = merged(merged(one.clone(), &other), &third);
                let right = merged(one, &merged(other, &third));
                prop_assert!(bytes(&left.0) == whole && bytes(&right.0) == whole);
            }
        }
    }
}
