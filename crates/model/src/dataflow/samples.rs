//! Values of a task's curves for tables and plots, with the safe extrapolation past their ends.

use super::{Count, Distance};
use crate::arrival::Curve;
use crate::time::Duration;

/// Steps in a decade.
const STEPS: [u64; 3] = [1, 2, 5];

impl Distance {
    /// The values of a curve for this many activations.
    pub fn new(curve: &Curve, n: u64) -> Distance {
        let least = curve.safe_delta_min(n);
        let known = usize::try_from(n).ok().and_then(|n| curve.delta_max_ns.get(n.checked_sub(2)?));
        Distance { n, min_ns: least.value, max_ns: known.copied(), extrapolated: least.extrapolated }
    }

    /// For 2, 5, 10, 20, … activations, to ten times as many as the curve has.
    pub fn samples(curve: &Curve) -> Vec<Distance> {
        let most = 10 * (curve.delta_min_ns.len() as u64 + 1);
        series(2, most).map(|n| Distance::new(curve, n)).collect()
    }
}

impl Count {
    /// The values of a curve for intervals of this length.
    pub fn new(curve: &Curve, span: Duration) -> Count {
        let most = curve.safe_eta_max(span);
        let is_known = curve.delta_max_ns.last().is_some_and(|last| span < *last);
        Count {
            span_ns: span,
            min: is_known.then(|| curve.eta_min(span)),
            max: most.map(|most| most.value),
            extrapolated: most.is_none_or(|most| most.extrapolated),
        }
    }

    /// For 1, 2, 5, 10, … microseconds, from below the least span that the curve has to ten times the
    /// greatest.
    pub fn samples(curve: &Curve) -> Vec<Count> {
        let (Some(least), Some(greatest)) = (curve.delta_min_ns.first(), curve.delta_max_ns.last()) else {
            return Vec::new();
        };
        let from = 10_u64.pow(least.ns().max(1_000).ilog10());
        series(from, greatest.ns().saturating_mul(10))
            .map(|ns| Count::new(curve, Duration::from_ns(ns)))
            .collect()
    }
}

/// 1, 2, 5, 10, … between these.
fn series(from: u64, to: u64) -> impl Iterator<Item = u64> {
    let decades = (0..=19).map(|exponent| 10_u64.pow(exponent));
    let all = decades.flat_map(|decade| STEPS.map(|step| decade.checked_mul(step))).flatten();
    all.skip_while(move |value| *value < from).take_while(move |value| *value <= to)
}
