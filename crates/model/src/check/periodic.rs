//! The conservative periodic model, in exact integers: there are strictly increasing k_j, from 0, with
//! `offset + k_j·P <= r_j <= offset + k_j·P + jitter`. (papers: LiME, Eq. 1, with k_j = j from 0.)

use super::grid::{Grid, Seen};
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::Periodic;
use crate::job::Release;

/// Whether each release, the whole of its window and on arrivals its known arrival too, has an activation of
/// its own that allows it, in their order, and no more activations are passed over than the model says were
/// skipped. Without skipped ones that is Eq. 1.
///
/// Each release is given the least activation that is left for it and not too early for it. If that fails,
/// any other assignment does: its activations are never less. The exact period counts where the model has one
/// (with a denominator other than zero).
///
/// Extra releases allow no more: what comes before one counts as late, so that never more activations are
/// passed over than skipped.
pub fn periodic(model: &Periodic, releases: &[Release]) -> Vec<Violation> {
    let grid = Grid::new(model, model.offset_ns, model.jitter_ns);
    let skipped = i64::try_from(model.skipped).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut next = 0_i64;
    for (job, release) in releases.iter().enumerate() {
        let seen = Seen::of(release, model.on);
        let greatest = if job == 0 { 0 } else { (job as i64).saturating_add(skipped) };
        let k = match seen.last > grid.limit(next) {
            true => grid.least_until(seen.last).clamp(next, greatest),
            false => next,
        };
        let (from, until) = (grid.arrival(k), grid.limit(k));
        if seen.first < from {
            let (allowed, seen) = (Bound::AtLeast(Value::At(from)), Value::At(seen.first));
            found.push(Violation::of_job(Model::PeriodicEarly, job, allowed, seen));
        }
        if seen.last > until {
            let (allowed, seen) = (Bound::AtMost(Value::At(until)), Value::At(seen.last));
            found.push(Violation::of_job(Model::PeriodicLate, job, allowed, seen));
        }
        next = k.saturating_add(1);
    }
    found
}
