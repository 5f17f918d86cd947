//! Checks the conservative periodic model, in exact integers: there are strictly increasing k_j, from 0, with
//! `offset + k_j·P <= r_j <= offset + k_j·P + jitter`. (papers: LiME, Eq. 1, with k_j = j from 0.)

use super::grid::{Extent, Grid};
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::Periodic;
use crate::job::Release;

/// Checks that each release (its whole window; on arrivals, also its known arrival) has an activation of its
/// own that allows it, in order, and that no more activations are passed over than the model says were
/// skipped. Without skips this is Eq. 1.
///
/// Each release gets the least remaining activation that is not too early for it. If that fails, every other
/// assignment fails too, since its activations are never smaller.
///
/// Extra releases do not relax the check: releases before one count as late.
pub fn periodic(model: &Periodic, releases: &[Release]) -> Vec<Violation> {
    let grid = Grid::new(model, model.offset_ns, model.jitter_ns);
    let skipped = i64::try_from(model.skipped).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut next = 0_i64;
    for (job, release) in releases.iter().enumerate() {
        let extent = Extent::new(release, model.on);
        let greatest = if job == 0 { 0 } else { (job as i64).saturating_add(skipped) };
        let k = match extent.last > grid.limit(next) {
            true => grid.least_until(extent.last).clamp(next, greatest),
            false => next,
        };
        let (from, until) = (grid.arrival(k), grid.limit(k));
        if extent.first < from {
            let (allowed, seen) = (Bound::AtLeast(Value::At(from)), Value::At(extent.first));
            found.push(Violation::at_job(Model::PeriodicEarly, job, allowed, seen));
        }
        if extent.last > until {
            let (allowed, seen) = (Bound::AtMost(Value::At(until)), Value::At(extent.last));
            found.push(Violation::at_job(Model::PeriodicLate, job, allowed, seen));
        }
        next = k.saturating_add(1);
    }
    found
}
