//! Values that follow from a model: what is shown of it, and what is not in it as such.

use punctual_model::{Duration, Periodic, Stream, Task, Typical};

/// The stream that is shown for a task.
pub(crate) fn primary(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// Whether a task is of several runs (`punctual merge`): its instants mean nothing.
pub(crate) fn is_merged(task: &Task) -> bool {
    task.pid == 0
}

/// The typical model, where it says something else than that of all releases.
pub(crate) fn typical(periodic: &Periodic) -> Option<&Typical> {
    let is_apart = |typical: &&Typical| {
        !typical.left_out.is_empty()
            || (typical.offset_ns, typical.jitter_ns) != (periodic.offset_ns, periodic.jitter_ns)
    };
    periodic.typical.as_ref().filter(is_apart)
}

/// How many releases the typical model leaves out.
pub(crate) fn left_out(periodic: &Periodic) -> u64 {
    periodic.typical.as_ref().map_or(0, |typical| typical.left_out.len() as u64)
}

/// WCET(n) over the least span of n jobs and the release after them, in hundredths of a percent, rounded up:
/// for the greatest n known.
pub(crate) fn utilization(stream: &Stream) -> Option<(u64, u64)> {
    let wcet = &stream.execution.as_ref()?.wcet_ns;
    let spans = &stream.arrival.curve.as_ref()?.delta_min_ns;
    let jobs = wcet.len().min(spans.len());
    let (cost, span) = (*wcet.get(jobs.checked_sub(1)?)?, *spans.get(jobs.checked_sub(1)?)?);
    if span == Duration::ZERO {
        return None;
    }
    let hundredths = (u128::from(cost.ns()) * 10_000).div_ceil(u128::from(span.ns()));
    Some((jobs as u64, u64::try_from(hundredths).unwrap_or(u64::MAX)))
}
