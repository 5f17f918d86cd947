//! Whether the releases of a stream keep to the period that was found: some period has the least jitter of
//! any releases, even of random ones.

use super::Stream;
use crate::arrival::{Periodic, PeriodicOn};
use crate::time::Duration;

impl Stream {
    /// Whether releases, or known arrivals, stay within a period of the grid, or nearly all do.
    pub fn keeps_to(&self, periodic: &Periodic) -> bool {
        // A few releases that were not seen may have been early or late by a whole period.
        let few = self.uncertain_releases > 0 && self.uncertain_releases * 20 < self.releases;
        self.off_grid(periodic) < periodic.period_ns
            || few && periodic.usual_jitter().ns() < 3 * periodic.period_ns.ns()
            || self.are_mostly_in_time(periodic)
    }

    /// Random gaps add up like a random walk, so their jitter grows with the square root of the number of
    /// releases; that of a periodic task with a few very late releases does not.
    pub fn wanders_little_from(&self, periodic: &Periodic) -> bool {
        let most = periodic.period_ns.as_secs_f64() * (self.releases as f64).sqrt() / 10.0;
        periodic.usual_jitter().as_secs_f64() < most
    }

    /// How far off the grid jobs were due at least. Where arrivals are known, a job that was released late
    /// was also done late: what of the jitter is within the greatest response time is the machine's
    /// lateness, however many periods long, and the grid is as certain as before. What is beyond it are
    /// arrivals that keep to no grid.
    pub fn off_grid(&self, periodic: &Periodic) -> Duration {
        match (periodic.on, &self.response) {
            (PeriodicOn::Arrival, Some(response)) => periodic.usual_jitter().saturating_sub(response.max_ns),
            _ => periodic.usual_jitter(),
        }
    }

    /// Whether nine of ten releases come within half a period of the grid, so that the others are the
    /// exception: after a stop, say. Releases that come at random, or several at once, lie anywhere.
    fn are_mostly_in_time(&self, periodic: &Periodic) -> bool {
        let lateness = self.percentiles.and_then(|percentiles| percentiles.lateness);
        // Lateness after known arrivals does not tell whether those keep to a grid.
        periodic.on == PeriodicOn::Release
            && lateness.is_some_and(|lateness| lateness.p90_ns.ns() < periodic.period_ns.ns() / 2)
    }
}
