//! Simulated periodic tasks with one-sided lateness of three shapes.

use super::release::{exact, window};
use punctual_extract::periodic::PeriodicSummary;
use punctual_model::Release;

/// SplitMix64: the same streams on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// In (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Log-uniform from `low` to `high`.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize]
    }

    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

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
