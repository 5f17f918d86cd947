//! Checks that the values of the section `threads` are consistent.

use super::{Stream, Suspension, Task, Threads};
use crate::error::ReadError;
use crate::section::Valid;
use crate::valid::{never_decreases, not_zero, span};

const GREATEST_PRIORITY: u32 = 99;

pub(super) fn threads(path: &str, threads: &Threads) -> Valid {
    span(path, threads.from_ns, threads.until_ns)?;
    let mut tasks = threads.tasks.iter().enumerate();
    tasks.try_for_each(|(index, value)| task(&format!("{path}.tasks[{index}]"), value))
}

fn task(path: &str, task: &Task) -> Valid {
    span(path, task.from_ns, task.until_ns)?;
    if task.priority > GREATEST_PRIORITY {
        return Err(ReadError::value(
            format!("{path}.priority"),
            format!("a real-time priority up to {GREATEST_PRIORITY}, or 0"),
            task.priority,
        ));
    }
    if let Some(reservation) = task.reservation {
        not_zero(&format!("{path}.reservation.period_ns"), reservation.period_ns.ns())?;
    }
    match (task.primary, task.streams.len()) {
        (Some(primary), 0) => {
            return Err(ReadError::value(
                format!("{path}.primary"),
                "nothing, as there are no streams",
                primary,
            ));
        }
        (Some(primary), streams) if primary >= streams => {
            let expected = format!("the index of a stream, up to {}", streams - 1);
            return Err(ReadError::value(format!("{path}.primary"), expected, primary));
        }
        _ => {}
    }
    task.streams
        .iter()
        .enumerate()
        .try_for_each(|(index, value)| stream(&format!("{path}.streams[{index}]"), value))
}

fn stream(path: &str, stream: &Stream) -> Valid {
    let counts = [
        ("jobs", stream.jobs, "releases", stream.releases),
        ("uncertain_releases", stream.uncertain_releases, "releases", stream.releases),
        ("back_to_back", stream.back_to_back, "uncertain_releases", stream.uncertain_releases),
        ("late", stream.late.unwrap_or(0), "jobs", stream.jobs),
    ];
    for (part, count, whole, limit) in counts {
        if count > limit {
            return Err(ReadError::value(
                format!("{path}.{part}"),
                format!("no more than `{whole}` ({limit})"),
                count,
            ));
        }
    }
    if let (Some(late), None) = (stream.late, &stream.arrival.periodic) {
        return Err(ReadError::value(format!("{path}.late"), "nothing, as there is no period", late));
    }
    stream.arrival.validate(&format!("{path}.arrival"))?;
    if let Some(execution) = &stream.execution {
        let path = format!("{path}.execution.wcet_ns");
        if execution.wcet_ns.is_empty() {
            return Err(ReadError::value(path, "at least the WCET of one job", "an empty array"));
        }
        never_decreases(&path, &execution.wcet_ns)?;
    }
    stream.suspension.iter().try_for_each(|value| suspension(&format!("{path}.suspension"), value))?;
    stream.percentiles.iter().try_for_each(|value| value.validate(&format!("{path}.percentiles")))
}

fn suspension(path: &str, suspension: &Suspension) -> Valid {
    match suspension.segmented.iter().position(Vec::is_empty) {
        Some(index) => Err(ReadError::value(
            format!("{path}.segmented[{index}]"),
            "at least one segment",
            "an empty array",
        )),
        None => Ok(()),
    }
}
