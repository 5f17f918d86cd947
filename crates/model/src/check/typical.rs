//! The typical periodic model, and where activations were skipped or releases extra: of the releases that
//! they were taken from.
//!
//! Here every release has the activation that the inference decided on: one more than the release before it,
//! but for the slips that are listed. Where slips are listed no more, there were too many, and a release has
//! the nearest activation that allows it.

use super::grid::{Grid, Seen};
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::{Disturbance, LeftOut, MAX_LEFT_OUT, MAX_SLIPS, Periodic, Slip};
use crate::job::Release;

/// Whether every release that is not left out lies within the jitter of its activation; whether those left
/// out are releases, outside by as much as is said, and no more than may be; whether activations were skipped
/// and releases extra where, and as often as, is said.
///
/// Where nothing was left out (no typical model), the skipped activations are those of the conservative
/// model; extra releases of such a model, which shift what came before them, are only counted.
pub fn typical(model: &Periodic, releases: &[Release]) -> Vec<Violation> {
    let mut found = slips(model);
    let (grid, left_out) = match &model.typical {
        Some(typical) => {
            (Grid::new(model, typical.offset_ns, typical.jitter_ns), typical.left_out.as_slice())
        }
        None if model.skipped > 0 && model.extra == 0 => {
            (Grid::new(model, model.offset_ns, model.jitter_ns), [].as_slice())
        }
        None => return found,
    };
    found.extend(few(left_out, releases.len()));
    found.extend(Reading { model, grid, slips: &model.slips, left_out }.violations(releases));
    found
}

/// Whether the list of slips can be one: places in order, none without an activation, with as many skipped
/// and extra ones as the model has unless there are more places than are listed.
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
            found.push(of_stream(figure, Bound::Exactly(Value::Count(counted)), count(listed)));
        }
    }
    let is_slip = |slip: &Slip| slip.activations != 0;
    if model.slips.len() > MAX_SLIPS
        || !model.slips.iter().all(is_slip)
        || !model.slips.is_sorted_by_key(|slip| slip.at_ns)
    {
        found.push(of_stream(
            Model::Slips,
            Bound::AtMost(Value::Count(MAX_SLIPS as u64)),
            Value::Count(model.slips.len() as u64),
        ));
    }
    found
}

/// Whether all places are listed.
fn is_complete(model: &Periodic) -> bool {
    let sum: i128 = model.slips.iter().map(|slip| i128::from(slip.activations).abs()).sum();
    model.slips.len() < MAX_SLIPS || sum == i128::from(model.skipped) + i128::from(model.extra)
}

/// Whether no more releases are left out than may be.
fn few(left_out: &[LeftOut], releases: usize) -> Vec<Violation> {
    let early = left_out.iter().filter(|release| release.off_ns < 0).count();
    // What is known to be no release counts as none.
    let counted = left_out.iter().filter(|release| release.reason != Some(Disturbance::Ending)).count();
    [(counted, (releases / 1_000).max(1)), (early, MAX_LEFT_OUT), (left_out.len() - early, MAX_LEFT_OUT)]
        .into_iter()
        .filter(|(seen, most)| seen > most)
        .map(|(seen, most)| {
            of_stream(Model::LeftOut, Bound::AtMost(Value::Count(most as u64)), Value::Count(seen as u64))
        })
        .collect()
}

/// Whether it is this release that was left out: by its latest bound, or by its known arrival.
fn is_of(left_out: &LeftOut, release: &Release) -> bool {
    left_out.at_ns == release.window.latest() || Some(left_out.at_ns) == release.arrival
}

/// The activations of all releases.
struct Reading<'a> {
    model: &'a Periodic,
    grid: Grid,
    /// Those to come.
    slips: &'a [Slip],
    /// Those to come.
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
                    found.extend(self.outside(job, k, Seen::of(release, self.model.on)));
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
            |model, at| Violation::of_job(model, last, Bound::Exactly(Value::At(at)), Value::Nothing);
        found.extend(self.slips.iter().map(|slip| nowhere(Model::Slips, slip.at_ns.ns().into())));
        found.extend(self.left_out.iter().map(|release| nowhere(Model::LeftOut, release.at_ns.ns().into())));
        // Where activations overlap, the nearest need not be the one that was meant.
        if found.is_empty() && (is_complete(self.model) || self.grid.is_disjoint()) {
            for (figure, claimed, seen) in
                [(Model::Skipped, self.model.skipped, skipped), (Model::Extra, self.model.extra, extra)]
            {
                if i128::from(claimed) != seen {
                    found.push(of_stream(figure, Bound::Exactly(Value::Count(claimed)), count(seen)));
                }
            }
        }
        found
    }

    /// The activation of a release, given that of the release before and one; an error where it does not lie
    /// in it.
    ///
    /// Several releases may have the same latest bound. A slip is before the first of them that does not fit
    /// without it.
    fn activation(&mut self, expected: i64, release: &Release, is_last_then: bool) -> Result<i64, i64> {
        let (seen, at) = (Seen::of(release, self.model.on), release.window.latest());
        if let Some(slip) = self.slips.first().filter(|slip| slip.at_ns == at) {
            if !is_last_then && self.explains(expected, seen, release) {
                return Ok(expected);
            }
            self.slips = &self.slips[1..];
            let k = expected.saturating_add(slip.activations);
            return if self.explains(k, seen, release) { Ok(k) } else { Err(k) };
        }
        let is_listed = !self.slips.is_empty() || is_complete(self.model);
        let k = if is_listed { expected } else { self.nearest(expected, seen, release) };
        if self.explains(k, seen, release) { Ok(k) } else { Err(k) }
    }

    /// Whether the release is one of activation `k`: within it, or listed as outside by as much as it is.
    fn explains(&mut self, k: i64, seen: Seen, release: &Release) -> bool {
        if self.grid.fits(k, seen) {
            return true;
        }
        let Some(left_out) = self.left_out.first().filter(|left_out| is_of(left_out, release)) else {
            return false;
        };
        let off = match left_out.off_ns < 0 {
            true => seen.first - self.grid.arrival(k),
            false => seen.last - self.grid.limit(k),
        };
        let is_so = off == left_out.off_ns.into() && off != 0;
        if is_so {
            self.left_out = &self.left_out[1..];
        }
        is_so
    }

    /// The activation that the release is outside of by as much as is said, or the nearest to the one
    /// expected that allows it.
    fn nearest(&self, expected: i64, seen: Seen, release: &Release) -> i64 {
        // Where activations overlap, a release that is outside of one may lie within another.
        match self.left_out.first().filter(|left_out| is_of(left_out, release)) {
            Some(LeftOut { off_ns, .. }) if *off_ns < 0 => {
                return self.grid.least_from(seen.first.saturating_sub((*off_ns).into()));
            }
            Some(LeftOut { off_ns, .. }) => {
                return self.grid.least_until(seen.last.saturating_sub((*off_ns).into()));
            }
            None => {}
        }
        let (from, until) =
            (self.grid.least_until(seen.last), self.grid.least_from(seen.first.saturating_add(1)) - 1);
        if from <= until { expected.clamp(from, until) } else { expected }
    }

    /// What is wrong with a release that is not one of activation `k`.
    fn outside(&self, job: usize, k: i64, seen: Seen) -> Vec<Violation> {
        let (from, until) = (self.grid.arrival(k), self.grid.limit(k));
        let mut found = Vec::new();
        if seen.first < from {
            found.push(Violation::of_job(
                Model::TypicalEarly,
                job,
                Bound::AtLeast(Value::At(from)),
                Value::At(seen.first),
            ));
        }
        if seen.last > until {
            found.push(Violation::of_job(
                Model::TypicalLate,
                job,
                Bound::AtMost(Value::At(until)),
                Value::At(seen.last),
            ));
        }
        found
    }
}

fn of_stream(model: Model, allowed: Bound, seen: Value) -> Violation {
    Violation::of_job(model, 0, allowed, seen)
}

fn count(number: i128) -> Value {
    Value::Count(u64::try_from(number).unwrap_or(u64::MAX))
}
