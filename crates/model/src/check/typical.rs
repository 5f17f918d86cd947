//! Checks the typical periodic model and the slips. Meaningful only for the releases they were made from.
//!
//! A release whose time is not known counts at its latest bound, and from its known arrival on.
//!
//! Every release has the activation that the inference chose: the next after that of the previous release,
//! except at the listed slips. Past the end of an incomplete list, it has the nearest activation that allows
//! it.

use super::grid::{Extent, Grid};
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::{Disturbance, LeftOut, MAX_EARLY, MAX_LATE, MAX_SLIPS, Periodic, Slip};
use crate::job::Release;

/// Checks that every release lies within the jitter of its activation, or is listed as left out with the
/// right distance; that no more are left out than allowed; and that the slips are as listed and counted.
///
/// Without a typical model, the slips are those of the conservative model, which covers whole windows. Extra
/// releases of such a model, which shift the releases before them, are only counted.
pub fn typical(model: &Periodic, releases: &[Release]) -> Vec<Violation> {
    let mut found = slips(model);
    let (grid, left_out, covers_windows) = match &model.typical {
        Some(typical) => {
            (Grid::new(model, typical.offset_ns, typical.jitter_ns), typical.left_out.as_slice(), false)
        }
        None if model.skipped > 0 && model.extra == 0 => {
            (Grid::new(model, model.offset_ns, model.jitter_ns), [].as_slice(), true)
        }
        None => return found,
    };
    found.extend(too_many_left_out(left_out, releases.len()));
    let reading = Reading { model, grid, covers_windows, slips: &model.slips, left_out };
    found.extend(reading.violations(releases));
    found
}

/// Checks the list of slips by itself: in order, none zero, and adding up to the counts of skipped and extra
/// activations unless the list is incomplete.
fn slips(model: &Periodic) -> Vec<Violation> {
    let listed = [1, -1].map(|sign| {
        model
            .slips
            .iter()
            .map(|slip| i128::from(slip.activations) * sign)
            .filter(|slips| *slips > 0)
            .sum::<i128>()
    });
    let mut found = Vec::new();
    for (figure, counted, listed) in
        [(Model::Skipped, model.skipped, listed[0]), (Model::Extra, model.extra, listed[1])]
    {
        if is_complete(model) && listed != counted.into() || listed > counted.into() {
            found.push(stream_violation(figure, Bound::Exactly(Value::Count(counted)), count(listed)));
        }
    }
    let is_slip = |slip: &Slip| slip.activations != 0;
    if model.slips.len() > MAX_SLIPS
        || !model.slips.iter().all(is_slip)
        || !model.slips.is_sorted_by_key(|slip| slip.at_ns)
    {
        found.push(stream_violation(
            Model::Slips,
            Bound::AtMost(Value::Count(MAX_SLIPS as u64)),
            Value::Count(model.slips.len() as u64),
        ));
    }
    found
}

/// Whether all slips are listed.
fn is_complete(model: &Periodic) -> bool {
    let sum: i128 = model.slips.iter().map(|slip| i128::from(slip.activations).abs()).sum();
    model.slips.len() < MAX_SLIPS || sum == i128::from(model.skipped) + i128::from(model.extra)
}

/// Checks that no more releases are left out than allowed.
fn too_many_left_out(left_out: &[LeftOut], releases: usize) -> Vec<Violation> {
    // Wake-ups at the end of a thread are not releases and do not count.
    let counted = || left_out.iter().filter(|release| release.reason != Some(Disturbance::Ending));
    let (all, early) = (counted().count(), counted().filter(|release| release.off_ns < 0).count());
    [(all, (releases / 1_000).max(1)), (early, MAX_EARLY), (all - early, MAX_LATE)]
        .into_iter()
        .filter(|(seen, most)| seen > most)
        .map(|(seen, most)| {
            stream_violation(
                Model::LeftOut,
                Bound::AtMost(Value::Count(most as u64)),
                Value::Count(seen as u64),
            )
        })
        .collect()
}

/// Whether an entry is about this release, by its latest bound or its known arrival.
fn is_about(left_out: &LeftOut, release: &Release) -> bool {
    left_out.at_ns == release.window.latest() || Some(left_out.at_ns) == release.arrival
}

/// Assigns activations to releases, one after the other.
struct Reading<'a> {
    model: &'a Periodic,
    grid: Grid,
    /// Whether releases count wherever they may have been.
    covers_windows: bool,
    /// The slips still ahead.
    slips: &'a [Slip],
    /// The left-out releases still ahead.
    left_out: &'a [LeftOut],
}

impl Reading<'_> {
    fn violations(mut self, releases: &[Release]) -> Vec<Violation> {
        let mut found = Vec::new();
        let (mut skipped, mut extra) = (0, 0);
        let mut expected = 0_i64;
        for (job, release) in releases.iter().enumerate() {
            let is_last_then =
                releases.get(job + 1).is_none_or(|next| next.window.latest() != release.window.latest());
            let k = match self.activation(expected, release, is_last_then) {
                Ok(k) => k,
                Err(k) => {
                    found.extend(self.outside(job, k, self.extent(release)));
                    k
                }
            };
            let slip = i128::from(k) - i128::from(expected);
            skipped += slip.max(0);
            extra += (-slip).max(0);
            expected = k.saturating_add(1);
        }
        let last = releases.len().saturating_sub(1);
        let nowhere =
            |model, at| Violation::at_job(model, last, Bound::Exactly(Value::At(at)), Value::Nothing);
        found.extend(self.slips.iter().map(|slip| nowhere(Model::Slips, slip.at_ns.ns().into())));
        found.extend(self.left_out.iter().map(|release| nowhere(Model::LeftOut, release.at_ns.ns().into())));
        // Where activations overlap, the nearest may not be the one the inference chose.
        if found.is_empty() && (is_complete(self.model) || self.grid.is_disjoint()) {
            for (figure, claimed, seen) in
                [(Model::Skipped, self.model.skipped, skipped), (Model::Extra, self.model.extra, extra)]
            {
                if i128::from(claimed) != seen {
                    found.push(stream_violation(figure, Bound::Exactly(Value::Count(claimed)), count(seen)));
                }
            }
        }
        found
    }

    fn extent(&self, release: &Release) -> Extent {
        if self.covers_windows { Extent::new(release, self.model.on) } else { Extent::latest(release) }
    }

    /// The activation of a release; an error if the release is outside of it. `expected` is the one after
    /// that of the previous release.
    ///
    /// Several releases may have the same latest bound. A slip precedes the first of them that does not fit
    /// without it.
    fn activation(&mut self, expected: i64, release: &Release, is_last_then: bool) -> Result<i64, i64> {
        let (extent, at) = (self.extent(release), release.window.latest());
        if let Some(slip) = self.slips.first().filter(|slip| slip.at_ns == at) {
            if !is_last_then && self.explains(expected, extent, release) {
                return Ok(expected);
            }
            self.slips = &self.slips[1..];
            let k = expected.saturating_add(slip.activations);
            return if self.explains(k, extent, release) { Ok(k) } else { Err(k) };
        }
        let is_listed = !self.slips.is_empty() || is_complete(self.model);
        let k = if is_listed { expected } else { self.nearest(expected, extent, release) };
        if self.explains(k, extent, release) { Ok(k) } else { Err(k) }
    }

    /// Whether the release belongs to activation `k`: within its jitter, or listed as outside by the right
    /// distance.
    fn explains(&mut self, k: i64, extent: Extent, release: &Release) -> bool {
        if self.grid.fits(k, extent) {
            return true;
        }
        let Some(left_out) = self.left_out.first().filter(|left_out| is_about(left_out, release)) else {
            return false;
        };
        let off = match left_out.off_ns < 0 {
            true => extent.first - self.grid.arrival(k),
            false => extent.last - self.grid.limit(k),
        };
        let agrees = off == left_out.off_ns.into() && off != 0;
        if agrees {
            self.left_out = &self.left_out[1..];
        }
        agrees
    }

    /// The activation from which the release has its listed distance, or the one nearest to `expected` that
    /// allows it.
    fn nearest(&self, expected: i64, extent: Extent, release: &Release) -> i64 {
        // Where activations overlap, a release outside of one may be within another.
        match self.left_out.first().filter(|left_out| is_about(left_out, release)) {
            Some(LeftOut { off_ns, .. }) if *off_ns < 0 => {
                return self.grid.least_from(extent.first.saturating_sub((*off_ns).into()));
            }
            Some(LeftOut { off_ns, .. }) => {
                return self.grid.least_until(extent.last.saturating_sub((*off_ns).into()));
            }
            None => {}
        }
        let (from, until) =
            (self.grid.least_until(extent.last), self.grid.least_from(extent.first.saturating_add(1)) - 1);
        if from <= until { expected.clamp(from, until) } else { expected }
    }

    /// How a release violates the bounds of activation `k`.
    fn outside(&self, job: usize, k: i64, extent: Extent) -> Vec<Violation> {
        let (from, until) = (self.grid.arrival(k), self.grid.limit(k));
        let mut found = Vec::new();
        if extent.first < from {
            found.push(Violation::at_job(
                Model::TypicalEarly,
                job,
                Bound::AtLeast(Value::At(from)),
                Value::At(extent.first),
            ));
        }
        if extent.last > until {
            found.push(Violation::at_job(
                Model::TypicalLate,
                job,
                Bound::AtMost(Value::At(until)),
                Value::At(extent.last),
            ));
        }
        found
    }
}

fn stream_violation(model: Model, allowed: Bound, seen: Value) -> Violation {
    Violation::at_job(model, 0, allowed, seen)
}

fn count(number: i128) -> Value {
    Value::Count(u64::try_from(number).unwrap_or(u64::MAX))
}
