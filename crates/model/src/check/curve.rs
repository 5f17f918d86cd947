//! Separation and distance functions, checked on every run of consecutive releases; arrival curves, by
//! counting.

use super::placements;
use super::violation::{Bound, Model, Value, Violation};
use crate::arrival::{Curve, Sporadic};
use crate::job::Release;
use crate::time::Duration;

/// Checks that consecutive releases are at least the least separation apart, wherever in their windows they
/// lie.
pub fn sporadic(model: &Sporadic, releases: &[Release]) -> Vec<Violation> {
    let windows = placements(releases);
    let separations =
        windows.windows(2).map(|pair| pair[1].earliest.saturating_sub(pair[0].latest)).map(Duration::from_ns);
    separations
        .enumerate()
        .filter(|(_, separation)| *separation < model.min_separation_ns)
        .map(|(job, separation)| Violation {
            model: Model::Sporadic,
            first: job,
            last: job + 1,
            allowed: Bound::AtLeast(Value::Span(model.min_separation_ns)),
            seen: Value::Span(separation),
        })
        .collect()
}

/// Checks that every run of releases spans at least δ⁻ and at most δ⁺, for all run lengths in the curve.
/// Reports the worst run of each length. O(releases × entries).
pub fn curve(model: &Curve, releases: &[Release]) -> Vec<Violation> {
    let windows = placements(releases);
    let runs = |gaps: usize| (gaps..windows.len()).map(move |last| (last - gaps, last));
    let mut found = Vec::new();
    for (index, allowed) in model.delta_min_ns.iter().enumerate() {
        let least = runs(index + 1)
            .map(|(first, last)| (windows[last].earliest.saturating_sub(windows[first].latest), first, last))
            .min_by_key(|(span, ..)| *span);
        if let Some((span, first, last)) = least.filter(|(span, ..)| *span < allowed.ns()) {
            let (allowed, seen) =
                (Bound::AtLeast(Value::Span(*allowed)), Value::Span(Duration::from_ns(span)));
            found.push(Violation { model: Model::DeltaMin(index as u64 + 2), first, last, allowed, seen });
        }
    }
    for (index, allowed) in model.delta_max_ns.iter().enumerate() {
        let greatest = runs(index + 1)
            .map(|(first, last)| (windows[last].latest.saturating_sub(windows[first].earliest), first, last))
            .max_by_key(|(span, ..)| *span);
        if let Some((span, first, last)) = greatest.filter(|(span, ..)| *span > allowed.ns()) {
            let (allowed, seen) =
                (Bound::AtMost(Value::Span(*allowed)), Value::Span(Duration::from_ns(span)));
            found.push(Violation { model: Model::DeltaMax(index as u64 + 2), first, last, allowed, seen });
        }
    }
    found
}

/// Checks the arrival curves that follow from the distance functions ([`Curve::eta_max`],
/// [`Curve::eta_min`]), by counting the releases in every half-open interval that matters: the shortest that
/// contains a run of releases, and the longest between two. Reports one violation for each first release.
/// O(n² log n); covers intervals past the horizon too.
pub fn arrival_counts(model: &Curve, releases: &[Release]) -> Vec<Violation> {
    let windows = placements(releases);
    // How many releases some placement puts into [from, until), and how many every placement does.
    let most = |from: u64, until: u64| {
        let reaching = windows.partition_point(|window| window.latest < from);
        windows.partition_point(|window| window.earliest < until).saturating_sub(reaching) as u64
    };
    let fewest = |from: u64, until: u64| {
        let beginning = windows.partition_point(|window| window.earliest < from);
        windows.partition_point(|window| window.latest < until).saturating_sub(beginning) as u64
    };
    let mut found = Vec::new();
    for first in 0..windows.len() {
        let closed = windows[first..].iter().enumerate().find_map(|(ahead, end)| {
            let from = windows[first].latest;
            let until = end.earliest.max(from).saturating_add(1);
            let (span, seen) = (Duration::from_ns(until - from), most(from, until));
            let allowed = model.eta_max(span).filter(|allowed| seen > *allowed)?;
            Some((Model::EtaMax(span), first + ahead, Bound::AtMost(Value::Count(allowed)), seen))
        });
        let between = windows[first..].iter().enumerate().skip(1).find_map(|(ahead, end)| {
            let from = windows[first].earliest.saturating_add(1);
            let span = Duration::from_ns(end.latest.saturating_sub(from));
            let (allowed, seen) = (model.eta_min(span), fewest(from, end.latest));
            (seen < allowed).then_some((
                Model::EtaMin(span),
                first + ahead,
                Bound::AtLeast(Value::Count(allowed)),
                seen,
            ))
        });
        for (model, last, allowed, seen) in closed.into_iter().chain(between) {
            found.push(Violation { model, first, last, allowed, seen: Value::Count(seen) });
        }
    }
    found
}
