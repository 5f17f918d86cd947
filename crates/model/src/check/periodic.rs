//! The periodic model, in exact integers: `offset + j·P <= r_j <= offset + j·P + jitter`. (papers: LiME, Eq. 1, with j from 0.)

use super::violation::{Bound, Model, Value, Violation};
use crate::file::{Periodic, PeriodicOn};
use crate::job::Release;

/// Whether the whole window of every release, and on arrivals every known arrival too, lies within the jitter of its period.
///
/// The exact period counts where the model has one (with a denominator other than zero).
pub fn periodic(model: &Periodic, releases: &[Release]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (job, release) in releases.iter().enumerate() {
        let (earliest, latest) = (release.window.earliest(), release.window.latest());
        let (mut first, mut last) = (i128::from(earliest.ns()), i128::from(latest.ns()));
        if let (PeriodicOn::Arrival, Some(arrival)) = (model.on, release.arrival) {
            first = first.min(arrival.ns().into());
            last = last.max(arrival.ns().into());
        }
        let (from, until) = allowed(model, job as u64);
        if first < from {
            found.push(Violation::of_job(Model::PeriodicEarly, job, Bound::AtLeast(Value::At(from)), Value::At(first)));
        }
        if last > until {
            found.push(Violation::of_job(Model::PeriodicLate, job, Bound::AtMost(Value::At(until)), Value::At(last)));
        }
    }
    found
}

/// The first and the last whole nanosecond at which job `job` may be released.
fn allowed(model: &Periodic, job: u64) -> (i128, i128) {
    let (numerator, denominator) = match model.period_exact {
        Some(exact) if exact.denominator > 0 => (exact.numerator, exact.denominator),
        _ => (model.period_ns.ns(), 1),
    };
    // Both factors fit 64 bits.
    let product = u128::from(job) * u128::from(numerator);
    let [down, up] =
        [product / u128::from(denominator), product.div_ceil(u128::from(denominator))].map(|ns| i128::try_from(ns).unwrap_or(i128::MAX));
    let offset = i128::from(model.offset_ns);
    (offset.saturating_add(up), offset.saturating_add(down).saturating_add(model.jitter_ns.ns().into()))
}
