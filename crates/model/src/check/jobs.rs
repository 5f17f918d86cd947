//! Checks of processor time, suspension, response times and counts.

use super::violation::{Bound, Model, Value, Violation};
use super::{MAX_SEGMENTS, RecordedJob};
use crate::job::{Release, Segment};
use crate::threads::{Execution, MANY_LATE, Response, SegmentBound, Stream, Suspension};
use crate::time::Duration;

/// Checks that no run of jobs takes more processor time than the curve allows, for all run lengths in the
/// curve. Reports the worst run of each length. O(jobs × entries).
pub fn execution(model: &Execution, jobs: &[RecordedJob]) -> Vec<Violation> {
    // Cumulative costs: the cost of a run is an exact difference of two.
    let mut total = 0_u128;
    let mut before = vec![total];
    for (job, _) in jobs {
        total += u128::from(job.cost.ns());
        before.push(total);
    }
    let mut found = Vec::new();
    for (index, allowed) in model.wcet_ns.iter().enumerate() {
        let length = index + 1;
        let greatest = (length..before.len())
            .map(|end| (before[end] - before[end - length], end))
            .max_by_key(|(cost, _)| *cost);
        if let Some((cost, end)) = greatest.filter(|(cost, _)| *cost > u128::from(allowed.ns())) {
            found.push(Violation {
                model: Model::Wcet(length as u64),
                first: end - length,
                last: end - 1,
                allowed: Bound::AtMost(Value::Span(*allowed)),
                seen: Value::Span(Duration::from_ns(cost.try_into().unwrap_or(u64::MAX))),
            });
        }
    }
    found
}

/// Checks that no job sleeps longer in total than the dynamic model allows, by its total and by its segments.
pub fn dynamic_suspension(model: &Suspension, jobs: &[RecordedJob]) -> Vec<Violation> {
    at_most(Model::DynamicSuspension, model.dynamic_ns, jobs, |(job, segments)| {
        merged(segments).suspended.max(job.suspended)
    })
}

/// Checks that every job obeys, segment by segment, a vector of the bag with as many segments as the job. If
/// it has more than [`MAX_SEGMENTS`], its first ones are merged.
pub fn segmented_suspension(model: &Suspension, jobs: &[RecordedJob]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, recorded) in jobs.iter().enumerate() {
        let segments = canonical(recorded);
        let is_allowed = |vector: &Vec<SegmentBound>| obeys(&segments, vector) || obeys(&recorded.1, vector);
        if !model.segmented.iter().any(is_allowed) {
            let candidates = model.segmented.iter().filter(|vector| vector.len() == segments.len()).count();
            found.push(Violation::at_job(
                Model::SegmentedSuspension,
                index,
                Bound::Vectors(candidates),
                Value::Segments(segments),
            ));
        }
    }
    found
}

/// Checks that no response time exceeds the model's, and none that is certain the certain one.
pub fn response(model: &Response, jobs: &[RecordedJob]) -> Vec<Violation> {
    let mut found = at_most(Model::Response, model.max_ns, jobs, |(job, _)| job.response());
    if let Some(certain) = model.certain_max_ns {
        found.extend(at_most(Model::Response, certain, jobs, |(job, _)| job.least_response()));
    }
    found
}

/// Checks the counts of a stream. Meaningful only for the releases and jobs it was made from.
pub fn counts(stream: &Stream, releases: &[Release], jobs: &[RecordedJob]) -> Vec<Violation> {
    let uncertain = releases.iter().filter(|release| !release.window.is_exact()).count();
    [
        (Model::Releases, stream.releases, releases.len()),
        (Model::UncertainReleases, stream.uncertain_releases, uncertain),
        (Model::Jobs, stream.jobs, jobs.len()),
    ]
    .into_iter()
    .filter(|(_, allowed, seen)| *allowed != *seen as u64)
    .map(|(model, allowed, seen)| Violation {
        model,
        first: 0,
        last: releases.len().saturating_sub(1),
        allowed: Bound::Exactly(Value::Count(allowed)),
        seen: Value::Count(seen as u64),
    })
    .chain(late(stream, jobs))
    .collect()
}

/// Checks that as many jobs as counted certainly took longer than the period, and no more if they are few.
fn late(stream: &Stream, jobs: &[RecordedJob]) -> Option<Violation> {
    let late = stream.late?;
    let period = stream.arrival.periodic.as_ref().map(|periodic| periodic.period_ns);
    let is_late = |(job, _): &&RecordedJob| period.is_some_and(|period| job.least_response() > period);
    let seen = jobs.iter().filter(is_late).count() as u64;
    let (allowed, is_obeyed) = match late < MANY_LATE {
        true => (Bound::Exactly(Value::Count(late)), seen == late),
        false => (Bound::AtLeast(Value::Count(late)), seen >= late),
    };
    let last = jobs.len().saturating_sub(1);
    let violation = Violation { model: Model::Late, first: 0, last, allowed, seen: Value::Count(seen) };
    (!is_obeyed).then_some(violation)
}

fn at_most(
    model: Model,
    allowed: Duration,
    jobs: &[RecordedJob],
    seen: impl Fn(&RecordedJob) -> Duration,
) -> Vec<Violation> {
    let spans = jobs.iter().map(seen).enumerate().filter(|(_, span)| *span > allowed);
    spans
        .map(|(job, span)| {
            Violation::at_job(model, job, Bound::AtMost(Value::Span(allowed)), Value::Span(span))
        })
        .collect()
}

/// A job's segments, at least one and at most [`MAX_SEGMENTS`].
fn canonical((job, segments): &RecordedJob) -> Vec<Segment> {
    if segments.is_empty() {
        return vec![Segment { suspended: job.suspended, cost: job.cost }];
    }
    let (surplus, kept) = segments.split_at(segments.len().saturating_sub(MAX_SEGMENTS - 1));
    match surplus {
        [] => kept.to_vec(),
        _ => std::iter::once(merged(surplus)).chain(kept.iter().copied()).collect(),
    }
}

fn merged(segments: &[Segment]) -> Segment {
    segments.iter().fold(Segment::default(), |sum, segment| Segment {
        suspended: sum.suspended + segment.suspended,
        cost: sum.cost + segment.cost,
    })
}

fn obeys(segments: &[Segment], vector: &[SegmentBound]) -> bool {
    segments.len() == vector.len()
        && segments
            .iter()
            .zip(vector)
            .all(|(segment, bound)| segment.suspended <= bound.suspended_ns && segment.cost <= bound.cost_ns)
}
