//! Checks modes: each release has an activation of a source that allows it, of those that are not used up.

use super::grid::{Extent, Grid};
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::{Mode, PeriodicOn, Source};
use crate::job::Release;

/// Checks that each release of a mode with sources has an activation, and that no mode leaves out a release.
///
/// A release takes, of the activations that allow it, the one that is allowed for the shortest time from then
/// on: if that fails, so does every other choice.
pub fn modes(modes: &[Mode], releases: &[Release]) -> Vec<Violation> {
    let Some((first, last)) = modes.first().zip(modes.last()) else { return Vec::new() };
    let mut found = Vec::new();
    for (job, release) in releases.iter().enumerate() {
        let latest = release.window.latest();
        if latest < first.from_ns || latest > last.until_ns {
            let limit = if latest < first.from_ns { first.from_ns } else { last.until_ns };
            let (allowed, seen) =
                (Bound::AtLeast(Value::At(limit.ns().into())), Value::At(latest.ns().into()));
            found.push(Violation::at_job(Model::Modes, job, allowed, seen));
        }
    }
    found.extend(modes.iter().flat_map(|mode| sources(mode, releases)));
    found
}

fn sources(mode: &Mode, releases: &[Release]) -> Vec<Violation> {
    let mut open: Vec<Open> = mode.sources.iter().map(Open::new).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let inside = releases.iter().enumerate().filter(|(_, release)| {
        let latest = release.window.latest();
        mode.from_ns <= latest && latest <= mode.until_ns
    });
    let without = |(job, release): (usize, &Release)| {
        let extent = Extent::new(release, PeriodicOn::Arrival);
        let best = open.iter_mut().filter_map(|source| Some((source.limit(extent)?, source)));
        match best.min_by_key(|(limit, _)| *limit) {
            Some((_, source)) => {
                source.take(extent);
                None
            }
            None => {
                let (allowed, seen) = (Bound::AtMost(Value::Nothing), Value::At(extent.last));
                Some(Violation::at_job(Model::Sources, job, allowed, seen))
            }
        }
    };
    inside.filter_map(without).collect()
}

/// A source and its activations that are not used up: from `next` on, and `left` jobs of the one before.
struct Open {
    grid: Grid,
    next: i64,
    jobs: u64,
    left: u64,
}

impl Open {
    fn new(source: &Source) -> Open {
        let (jobs, within) = source.burst.map_or((1, 0), |burst| (burst.jobs, burst.within_ns.ns()));
        let jitter = source.jitter_ns.ns().saturating_add(within);
        Open { grid: Grid::of_source(source, jitter), next: 0, jobs, left: 0 }
    }

    /// The first activation that allows a release.
    fn first(&self, extent: Extent) -> Option<i64> {
        let from = if self.left > 0 { self.next - 1 } else { self.next };
        let first = self.grid.least_until(extent.last).max(from);
        self.grid.fits(first, extent).then_some(first)
    }

    /// Until when that activation allows releases.
    fn limit(&self, extent: Extent) -> Option<i128> {
        Some(self.grid.limit(self.first(extent)?))
    }

    fn take(&mut self, extent: Extent) {
        let Some(activation) = self.first(extent) else { return };
        self.left = if activation < self.next { self.left - 1 } else { self.jobs - 1 };
        self.next = activation.max(self.next - 1) + 1;
    }
}
