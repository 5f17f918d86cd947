//! Checks modes: each release has an activation of a source that allows it, of those that are not used up.

use super::grid::{Extent, Grid};
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::{Mode, PeriodicOn, Source};
use crate::job::Release;

/// Checks that each release is in the time of a mode, and has an activation if the mode has sources.
///
/// Each release takes the activation whose window ends first, of those that allow it: if that fails, every
/// other choice fails, too.
pub fn modes(modes: &[Mode], releases: &[Release]) -> Vec<Violation> {
    if modes.is_empty() {
        return Vec::new();
    }
    let is_outside = |(_, release): &(usize, &Release)| !modes.iter().any(|mode| is_in(mode, release));
    let outside = releases.iter().enumerate().filter(is_outside);
    let outside = outside.map(|(job, release)| nothing_allows(Model::Modes, job, Extent::latest(release)));
    outside.chain(modes.iter().flat_map(|mode| sources(mode, releases))).collect()
}

fn is_in(mode: &Mode, release: &Release) -> bool {
    (mode.from_ns..=mode.until_ns).contains(&release.window.latest())
}

fn nothing_allows(model: Model, job: usize, extent: Extent) -> Violation {
    Violation::at_job(model, job, Bound::Exactly(Value::Nothing), Value::At(extent.last))
}

fn sources(mode: &Mode, releases: &[Release]) -> Vec<Violation> {
    let mut open: Vec<Open> = mode.sources.iter().map(Open::new).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let inside = releases.iter().enumerate().filter(|(_, release)| is_in(mode, release));
    let without = |(job, release): (usize, &Release)| {
        let extent = Extent::new(release, PeriodicOn::Arrival);
        let best = open.iter_mut().filter_map(|source| Some((source.limit(extent)?, source)));
        match best.min_by_key(|(limit, _)| *limit) {
            Some((_, source)) => {
                source.take(extent);
                None
            }
            None => Some(nothing_allows(Model::Sources, job, extent)),
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
