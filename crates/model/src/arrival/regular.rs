//! Whether a period is useful for predicting releases. Every periodic model holds, but the one of random
//! releases has a jitter of many periods.

use super::{Choice, Periodic, PeriodicOn};
use crate::threads::Stream;
use crate::time::Duration;

impl Stream {
    /// The periodic model, if known arrivals stay within a period of it, or releases clearly within one, or
    /// nearly all do. (Twenty random releases are occasionally within nine tenths of some period.)
    pub fn regular(&self) -> Option<&Periodic> {
        let periodic = self.arrival.periodic.as_ref()?;
        // A few releases that were not seen may have been early or late by a whole period: that makes no
        // bursts of a periodic task.
        let few = self.uncertain_releases > 0 && self.uncertain_releases * 20 < self.releases;
        let most = match periodic.on {
            PeriodicOn::Arrival => periodic.period_ns,
            PeriodicOn::Release => Duration::from_ns(periodic.period_ns.ns() / 4 * 3),
        };
        let is_regular = self.off_grid(periodic) < most
            || few && periodic.usual_jitter().ns() < 3 * periodic.period_ns.ns()
            || self.is_mostly_in_time(periodic);
        is_regular.then_some(periodic)
    }

    /// The same, where lateness does not wander off either. Random gaps add up like a random walk, so their
    /// jitter grows with the square root of the number of releases; that of a periodic task with a few very
    /// late releases does not.
    pub fn nearly_regular(&self) -> Option<&Periodic> {
        let keeps_time = |periodic: &&Periodic| {
            let most = periodic.period_ns.as_secs_f64() * (self.releases as f64).sqrt() / 10.0;
            periodic.usual_jitter().as_secs_f64() < most
        };
        self.regular().or_else(|| self.arrival.periodic.as_ref().filter(keeps_time))
    }

    /// Whether the period is meaningless: only the least jitter speaks for it, and that is large.
    pub fn is_random(&self) -> bool {
        let is_fitted = |periodic: &Periodic| {
            periodic.choice == Choice::LeastJitter && periodic.on == PeriodicOn::Release
        };
        self.arrival.periodic.as_ref().is_some_and(is_fitted) && self.nearly_regular().is_none()
    }

    /// How far off the grid jobs were due at least. Where arrivals are known, a job that was released late
    /// was also done late: what of the jitter is within the greatest response time is the machine's lateness,
    /// however many periods long, and the grid is as certain as before. What is beyond it are arrivals that
    /// keep to no grid.
    pub fn off_grid(&self, periodic: &Periodic) -> Duration {
        match (periodic.on, &self.response) {
            (PeriodicOn::Arrival, Some(response)) => periodic.usual_jitter().saturating_sub(response.max_ns),
            _ => periodic.usual_jitter(),
        }
    }

    /// Whether nine of ten releases come within half a period of the grid, so that the others are the
    /// exception: after a stop, say. Releases that come at random, or several at once, lie anywhere.
    fn is_mostly_in_time(&self, periodic: &Periodic) -> bool {
        let lateness = self.percentiles.and_then(|percentiles| percentiles.lateness);
        // Lateness after known arrivals does not tell whether those keep to a grid.
        periodic.on == PeriodicOn::Release
            && lateness.is_some_and(|lateness| lateness.p90_ns.ns() < periodic.period_ns.ns() / 2)
    }
}
