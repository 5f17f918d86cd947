//! How many jobs may exceed a limit that only a share of them may exceed, before chance is no explanation.

use punctual_model::Percent;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Jobs that are counted together. Longer stretches would hide a change in a program that ran well before.
pub const WINDOW: usize = 1_000;

/// A count is beyond chance if jobs that exceed the limit with the agreed probability, independently of each
/// other, reach it with a lower probability than this.
const LEAST_PROBABILITY: f64 = 1e-6;

/// The greatest share that contracts may name.
pub const GREATEST_SHARE: Percent = Percent::whole(50);

/// For each number of jobs, how many of them may exceed the limit.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// At \[n − 1\], of n jobs.
    most: Arc<[u16]>,
}

/// Half of the jobs may exceed a median.
pub static BEYOND_MEDIAN: LazyLock<Allowance> = LazyLock::new(|| Allowance::new(Percent::whole(50)));

/// Three quarters of the jobs may exceed a lower quartile.
pub static BEYOND_QUARTILE: LazyLock<Allowance> = LazyLock::new(|| Allowance::new(Percent::whole(75)));

/// Allowances that were computed before, by share.
#[derive(Default)]
pub struct Allowances(BTreeMap<Percent, Allowance>);

impl Allowances {
    /// The allowance of a share.
    pub fn of(&mut self, share: Percent) -> Allowance {
        self.0.entry(share).or_insert_with(|| Allowance::new(share)).clone()
    }
}

impl Allowance {
    /// O([`WINDOW`] · greatest allowance). IEEE 754 defines the results of all operations, so machines agree.
    fn new(share: Percent) -> Allowance {
        let share = share.parts() as f64 / Percent::WHOLE as f64;
        // Of n jobs: the probability of each count, the allowed count, and the probability of more.
        let mean = share * WINDOW as f64;
        let most = WINDOW.min((mean + 6.0 * mean.sqrt()) as usize + 20);
        let mut probability = vec![0.0; most + 2];
        probability[0] = 1.0;
        let (mut allowed, mut beyond) = (0, 0.0);
        let more = |jobs: usize| {
            beyond += share * probability[allowed];
            for count in (1..=jobs.min(most + 1)).rev() {
                probability[count] = probability[count] * (1.0 - share) + probability[count - 1] * share;
            }
            probability[0] *= 1.0 - share;
            while beyond >= LEAST_PROBABILITY && allowed < jobs.min(most) {
                allowed += 1;
                beyond -= probability[allowed];
            }
            allowed as u16
        };
        Allowance { most: (1..=WINDOW).map(more).collect() }
    }

    /// How many of so many jobs may exceed the limit.
    pub fn of(&self, jobs: usize) -> usize {
        self.most[jobs.clamp(1, WINDOW) - 1].into()
    }

    /// How many jobs it takes to exceed it.
    pub fn least_jobs(&self) -> usize {
        self.most.iter().zip(1..).take_while(|(most, jobs)| usize::from(**most) >= *jobs).count() + 1
    }

    /// Whether so many in so many jobs are beyond chance. Of more jobs than a window has, the share counts.
    pub fn is_exceeded(&self, count: u64, jobs: u64) -> bool {
        let (count, jobs, window) = (u128::from(count), u128::from(jobs), WINDOW as u128);
        match usize::try_from(jobs).ok().filter(|jobs| *jobs <= WINDOW) {
            Some(jobs) => count > self.of(jobs) as u128,
            None => count * window > self.of(WINDOW) as u128 * jobs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(at least `count` of `jobs`), by logarithms of factorials.
    fn tail(jobs: usize, count: usize, share: f64) -> f64 {
        let factorial = |n: usize| (1..=n).map(|it| (it as f64).ln()).sum::<f64>();
        let one = |count: usize| {
            let ways = factorial(jobs) - factorial(count) - factorial(jobs - count);
            (ways + count as f64 * share.ln() + (jobs - count) as f64 * (1.0 - share).ln()).exp()
        };
        (count..=jobs).map(one).sum()
    }

    #[test]
    fn an_allowance_is_the_quantile_of_the_binomial_distribution() {
        for percent in ["75", "50", "13", "1.7", "1", "0.07"] {
            let share: Percent = percent.parse().expect("a share");
            let probability = share.parts() as f64 / Percent::WHOLE as f64;
            let allowance = Allowance::new(share);
            for jobs in [1, 2, 10, 19, 20, 21, 50, 333, 1_000] {
                let allowed = allowance.of(jobs);
                assert!(tail(jobs, allowed + 1, probability) < 1e-6 * 1.001, "{percent}: {jobs}");
                let is_least = allowed == 0 || tail(jobs, allowed, probability) >= 1e-6 * 0.999;
                assert!(is_least, "{percent}: {jobs}");
            }
        }
    }

    /// Fewer than twenty jobs say nothing of a median, fewer than 48 nothing of a quartile.
    #[test]
    fn what_most_jobs_do_needs_some_jobs() {
        let (median, quartile) = (&*BEYOND_MEDIAN, &*BEYOND_QUARTILE);
        assert_eq!((quartile.of(48), quartile.of(49), quartile.of(1_000)), (48, 48, 813));
        assert_eq!((median.least_jobs(), quartile.least_jobs()), (20, 49));
        assert_eq!((median.of(19), median.of(20), median.of(1_000)), (19, 19, 575));
        assert!(!median.is_exceeded(575, 1_000) && median.is_exceeded(576, 1_000));
        assert!(!median.is_exceeded(5_750, 10_000) && median.is_exceeded(5_751, 10_000));
    }

    #[test]
    fn no_share_allows_none() {
        let none = Allowance::new(Percent::ZERO);
        assert_eq!((none.of(1), none.of(1_000)), (0, 0));
    }
}
