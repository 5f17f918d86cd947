//! The printed period is the intended one, for simulated tasks of ten minutes, and some of a whole day.

use crate::common::noise::{Lateness, Random, Simulation};
use punctual_model::Choice;

const GRAINS: [u64; 3] = [1, 1_000, 1_000_000];
const TASKS: u64 = 20;

/// A log-uniform period in 1 ms … 1 s, a multiple of `grain`.
fn period(random: &mut Random, grain: u64) -> u64 {
    let ns = 1e6 * 1_000_f64.powf(random.unit());
    ((ns / grain as f64).round() as u64).max(1_000_000 / grain) * grain
}

/// Number of tasks, out of `TASKS` for each grain and lateness, whose period is found to the nanosecond.
fn right(grain: u64, windows: u64) -> u64 {
    let mut random = Random(grain + windows);
    let mut right = 0;
    for lateness in Lateness::ALL {
        for seed in 0..TASKS {
            let numerator = period(&mut random, grain);
            let simulation = Simulation { numerator, denominator: 1, lateness, windows, seed };
            let found = simulation.summary(600).model();
            right += u64::from(
                found.is_some_and(|found| found.period_ns.ns() == numerator && found.period_exact.is_none()),
            );
        }
    }
    right
}

fn assert_found(windows: u64) {
    let of_each = TASKS * Lateness::ALL.len() as u64;
    let right = GRAINS.map(|grain| right(grain, windows));
    let all: u64 = right.iter().sum();
    assert!(all * 100 >= 95 * of_each * GRAINS.len() as u64, "{right:?} of {of_each} each");
    assert_eq!(right[2], of_each, "whole milliseconds");
}

#[test]
fn periods_are_found_to_the_nanosecond() {
    assert_found(0);
}

#[test]
fn windows_do_not_cost_periods() {
    assert_found(5);
}

/// The exact period is found, so jitter grows from one hour to a day only by rare lateness, not by drift.
#[test]
fn frequencies_do_not_drift() {
    for (numerator, denominator, windows) in [(50_000_000, 3, 0), (50_000_000, 3, 5), (1_280_000_000, 441, 0)]
    {
        let simulation =
            Simulation { numerator, denominator, lateness: Lateness::Exponential, windows, seed: 60 };
        let mut summary = punctual_extract::periodic::PeriodicSummary::new();
        let mut releases = simulation.releases(24 * 3600);
        for release in releases.by_ref().take((3600 * 1_000_000_000 * denominator / numerator) as usize) {
            summary.push(&release);
        }
        let hour = summary.model().unwrap();
        releases.for_each(|release| summary.push(&release));
        let day = summary.model().unwrap();
        for found in [&hour, &day] {
            let exact = found.period_exact.unwrap();
            assert_eq!(
                (exact.numerator, exact.denominator, found.choice),
                (numerator, denominator, Choice::Rounded)
            );
        }
        if windows == 0 {
            assert!(
                hour.jitter_ns.ns() < 600_000 && day.jitter_ns.ns() < 600_000,
                "{} {}",
                hour.jitter_ns,
                day.jitter_ns
            );
        }
    }
}

/// Another machine's clock: 1 kHz and 37.123456789 parts per million. The period is not round, and still the
/// error must not add up.
#[test]
fn another_clock_does_not_drift() {
    let (numerator, denominator) = (1_000_037_123_456_789, 1_000_000_000);
    let simulation =
        Simulation { numerator, denominator, lateness: Lateness::HalfNormalWithSpikes, windows: 0, seed: 1 };
    let found = simulation.summary(6 * 3600).model().unwrap();
    let exact = found.period_exact.unwrap();
    let error = exact.numerator as f64 / exact.denominator as f64 - numerator as f64 / denominator as f64;
    let jobs = 6.0 * 3600.0 * 1_000.0;
    assert!((error * jobs).abs() < 10_000.0, "{error} ns per job");
    assert!(
        found.jitter_ns.ns() < found.least_jitter_ns.ns() + 10_000,
        "{} over {}",
        found.jitter_ns,
        found.least_jitter_ns
    );
}
