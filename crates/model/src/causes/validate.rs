//! Checks that the values of the section `causes` are consistent.

use super::{Causes, LateJob, LateTask, MAX_CAUSES, Part};
use crate::error::ReadError;
use crate::section::Valid;
use crate::time::{Duration, Instant};
use crate::valid::{at_most, span};

pub(super) fn causes(path: &str, causes: &Causes) -> Valid {
    span(path, causes.from_ns, causes.until_ns)?;
    each(&format!("{path}.tasks"), &causes.tasks, task)
}

fn each<T>(path: &str, all: &[T], check: fn(&str, &T) -> Valid) -> Valid {
    all.iter().enumerate().try_for_each(|(index, it)| check(&format!("{path}[{index}]"), it))
}

fn task(path: &str, task: &LateTask) -> Valid {
    if task.late > task.jobs {
        return wrong(path, "late", format!("no more than `jobs` ({})", task.jobs), task.late);
    }
    at_most(&format!("{path}.causes"), task.causes.len(), MAX_CAUSES)?;
    let others = task.others.unwrap_or_default();
    let with_cause = task.causes.iter().fold(others.jobs, |sum, cause| sum.saturating_add(cause.jobs));
    if with_cause != task.late {
        return wrong(path, "late", format!("the jobs of all causes ({with_cause})"), task.late);
    }
    each(&format!("{path}.worst"), &task.worst, job)
}

fn job(path: &str, job: &LateJob) -> Valid {
    let (begin, end) = (job.begin_ns, job.end_ns);
    if begin.ns().checked_add(job.response_ns.ns()) != Some(end.ns()) {
        let expected = format!("from `begin_ns` to `end_ns` ({} to {})", begin.ns(), end.ns());
        return wrong(path, "response_ns", expected, job.response_ns.ns());
    }
    if let Some(arrival) = job.arrival_ns.filter(|arrival| *arrival != begin) {
        return wrong(path, "arrival_ns", format!("`begin_ns` ({})", begin.ns()), arrival.ns());
    }
    cover(path, &job.parts, begin, job.response_ns)
}

/// Parts have no gaps, and end with the whole.
fn cover(path: &str, parts: &[Part], begin: Instant, whole: Duration) -> Valid {
    let mut reached = begin;
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}.parts[{index}]");
        if part.from_ns != reached {
            let expected = format!("the end of the part before ({})", reached.ns());
            return wrong(&path, "from_ns", expected, part.from_ns.ns());
        }
        reached = reached + part.ns;
    }
    match reached == begin + whole {
        true => Ok(()),
        false => {
            wrong(path, "parts", format!("parts of {} ns in all", whole.ns()), reached.since(begin).ns())
        }
    }
}

fn wrong(path: &str, field: &str, expected: String, found: u64) -> Valid {
    Err(ReadError::value(format!("{path}.{field}"), expected, found))
}
