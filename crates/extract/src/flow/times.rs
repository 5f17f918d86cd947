//! Times of one task: how long its instances wait and execute, and when they are activated.

use super::Histogram;
use crate::curve::DistanceSummary;
use crate::periodic::PeriodicSummary;
use punctual_model::dataflow::{Times, Worst};
use punctual_model::{Arrival, Curve, Duration, Instant, Release, Sporadic, Window};

/// Times of instances, and the first occurrence of the greatest.
#[derive(Debug, Default)]
pub struct InstanceTimes {
    histogram: Histogram,
    worst: Option<Worst>,
}

impl InstanceTimes {
    #[inline]
    pub fn add(&mut self, instance: u64, from: Instant, until: Instant) {
        if self.histogram.add(until.since(from)) {
            self.worst = Some(Worst { instance, at_ns: from });
        }
    }

    pub fn count(&self) -> u64 {
        self.histogram.count()
    }

    pub fn finish(&self) -> Option<Times> {
        Some(Times { distribution: self.histogram.distribution()?, worst: self.worst? })
    }
}

/// Activations of a task. Curves do not span missing activations.
#[derive(Debug)]
pub struct Activations {
    horizon: usize,
    distances: DistanceSummary,
    /// Curve of the stretches before.
    before: Option<Curve>,
    /// Present as long as no activation is missing.
    periodic: Option<PeriodicSummary>,
    pub count: u64,
}

impl Activations {
    pub fn new(horizon: usize) -> Activations {
        let (distances, periodic) = (DistanceSummary::new(horizon), Some(PeriodicSummary::new()));
        Activations { horizon, distances, before: None, periodic, count: 0 }
    }

    #[inline]
    pub fn add(&mut self, at: Instant) {
        self.count += 1;
        self.distances.push(Window::at(at));
        if let Some(periodic) = &mut self.periodic {
            periodic.push(&Release { arrival: None, window: Window::at(at) });
        }
    }

    /// Activations are missing here.
    pub fn interrupt(&mut self) {
        self.periodic = None;
        self.before = both(self.before.take(), self.distances.curve());
        self.distances = DistanceSummary::new(self.horizon);
    }

    pub fn finish(&self) -> Arrival {
        let curve = both(self.before.clone(), self.distances.curve());
        let least = curve.as_ref().and_then(|curve| curve.delta_min_ns.first());
        Arrival {
            periodic: self.periodic.as_ref().and_then(PeriodicSummary::model),
            sporadic: least.map(|least| Sporadic { min_separation_ns: *least }),
            curve,
            modes: Vec::new(),
        }
    }
}

/// The curve of two stretches, without anything between them.
fn both(one: Option<Curve>, other: Option<Curve>) -> Option<Curve> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let entries = one.delta_min_ns.len().max(other.delta_min_ns.len());
    let entry = |table: &[Duration], index: usize| table.get(index).copied();
    let least = |index| {
        [entry(&one.delta_min_ns, index), entry(&other.delta_min_ns, index)].into_iter().flatten().min()
    };
    let greatest = |index| {
        [entry(&one.delta_max_ns, index), entry(&other.delta_max_ns, index)].into_iter().flatten().max()
    };
    let mut curve = Curve {
        delta_min_ns: (0..entries).filter_map(least).collect(),
        delta_max_ns: (0..entries).filter_map(greatest).collect(),
    };
    // A short stretch has no long spans, so bounds of more activations may lie inside those of fewer.
    let mut before = Duration::ZERO;
    for span in &mut curve.delta_max_ns {
        *span = (*span).max(before);
        before = *span;
    }
    Some(curve)
}
