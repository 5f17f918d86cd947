//! The inference is never worse than the published algorithm, neither in jitter nor in how often it finds the
//! period.

use crate::common::noise::{Lateness, Random, Simulation};
use crate::common::{exact, lime};
use punctual_extract::periodic::PeriodicSummary;

#[test]
fn the_published_algorithm_is_never_better() {
    let mut random = Random(7);
    let (mut ours, mut theirs) = (0, 0);
    for grain in [1, 1_000, 1_000_000] {
        for lateness in Lateness::ALL {
            for seed in 0..4 {
                let period = (random.below(50_000_000 - 5_000_000) + 5_000_000) / grain * grain;
                let simulation = Simulation { numerator: period, denominator: 1, lateness, windows: 0, seed };
                let releases: Vec<_> = simulation.releases(120).collect();
                let mut latest = 0;
                let instants: Vec<u64> = releases
                    .iter()
                    .map(|release| {
                        latest = release.window.latest().ns().max(latest);
                        latest
                    })
                    .collect();
                let mut summary = PeriodicSummary::new();
                instants.iter().for_each(|&at| summary.push(&exact(at)));
                let (found, published) = (summary.model().unwrap(), lime::infer(&instants));
                assert!(
                    i128::from(found.least_jitter_ns.ns()) <= published.jitter,
                    "{simulation:?}: {published:?}"
                );
                ours += u64::from(found.period_ns.ns() == period && found.period_exact.is_none());
                theirs += u64::from(published.period == i128::from(period));
            }
        }
    }
    assert!(ours >= theirs, "{ours} to {theirs}");
}
