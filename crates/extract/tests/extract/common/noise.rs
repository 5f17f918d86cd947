//! Simulated periodic tasks with one-sided lateness of three shapes.

use super::release::{exact, window};
use punctual_extract::periodic::PeriodicSummary;
use punctual_model::Release;
pub use punctual_test_support::Random;

/// Distributions of lateness.
#[derive(Clone, Copy, Debug)]
pub enum Lateness {
    /// Mean of 20 µs.
    Exponential,
    /// σ of 10 µs, and up to half a millisecond once in a thousand jobs.
    HalfNormalWithSpikes,
    /// Two exponential steps of 10 µs each: hardly ever close to zero, which makes it hard.
    Gamma,
}

impl Lateness {
    pub const ALL: [Lateness; 3] = [Lateness::Exponential, Lateness::HalfNormalWithSpikes, Lateness::Gamma];

    pub fn ns(self, random: &mut Random) -> u64 {
        match self {
            Lateness::Exponential => (20_000.0 * random.exponential()) as u64,
            Lateness::HalfNormalWithSpikes if random.below(1_000) == 0 => random.below(500_000),
            Lateness::HalfNormalWithSpikes => (10_000.0 * random.normal().abs()) as u64,
            Lateness::Gamma => (10_000.0 * (random.exponential() + random.exponential())) as u64,
        }
    }
}

/// A task that arrives at multiples of `numerator / denominator` nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    pub numerator: u64,
    pub denominator: u64,
    pub lateness: Lateness,
    /// Releases per thousand that are windows, from the end of the job before.
    pub windows: u64,
    pub seed: u64,
}

impl Simulation {
    pub fn releases(self, seconds: u64) -> impl Iterator<Item = Release> {
        let mut random = Random(self.seed);
        let begin = 1_000_000_000 + random.below(1_000_000_000);
        let jobs =
            u128::from(seconds) * 1_000_000_000 * u128::from(self.denominator) / u128::from(self.numerator);
        let mut stop = begin;
        (0..jobs).map(move |job| {
            let due = begin + (job * u128::from(self.numerator) / u128::from(self.denominator)) as u64;
            let at = due + self.lateness.ns(&mut random);
            let seen = if random.below(1_000) < self.windows { window(stop.min(at), at) } else { exact(at) };
            stop = at + self.numerator / self.denominator / 10;
            seen
        })
    }

    pub fn summary(self, seconds: u64) -> PeriodicSummary {
        let mut summary = PeriodicSummary::new();
        self.releases(seconds).for_each(|release| summary.push(&release));
        summary
    }
}
