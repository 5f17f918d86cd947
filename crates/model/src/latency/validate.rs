//! Whether the values of the section `latency` make sense.

use super::interrupts::MAX_LONG_WINDOWS;
use super::{Interrupt, InterruptCurves, MAX_WORST, Measured, Processor, SchedulingLatency, Wakeup};
use crate::error::ReadError;
use crate::section::Valid;
use crate::time::Duration;
use crate::valid::{at_most, never_decreases, not_zero, span};

pub(super) fn latency(path: &str, latency: &SchedulingLatency) -> Valid {
    span(path, latency.from_ns, latency.until_ns)?;
    not_zero(&format!("{path}.horizon_ns"), latency.horizon_ns.ns())?;
    ascending(&format!("{path}.processors"), &latency.processors, |cpu| cpu.cpu)?;
    ascending(&format!("{path}.monitors"), &latency.monitors, |it| (it.name.clone(), it.rules.clone()))?;
    let mut processors = latency.processors.iter().enumerate();
    processors.try_for_each(|(index, value)| processor(&format!("{path}.processors[{index}]"), value))
}

fn ascending<T, K: Ord>(path: &str, entries: &[T], key: impl Fn(&T) -> K) -> Valid {
    match entries.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
        Some(index) => Err(ReadError::value(
            format!("{path}[{}]", index + 1),
            "one that comes after the entry before",
            "one that does not",
        )),
        None => Ok(()),
    }
}

fn processor(path: &str, cpu: &Processor) -> Valid {
    let (interrupts, measured) = (format!("{path}.interrupts"), format!("{path}.measured"));
    ascending(&interrupts, &cpu.interrupts, |it| it.source.clone())?;
    ascending(&measured, &cpu.measured, Measured::key)?;
    for (index, value) in cpu.interrupts.iter().enumerate() {
        interrupt(&format!("{interrupts}[{index}]"), value)?;
    }
    for (index, value) in cpu.measured.iter().enumerate() {
        latencies(&format!("{measured}[{index}]"), value)?;
    }
    Ok(())
}

fn interrupt(path: &str, interrupt: &Interrupt) -> Valid {
    let path = format!("{path}.curves");
    let InterruptCurves { count, min_separation_ns, delta_min_ns, wcet_ns, execution, long_execution_ns } =
        &interrupt.curves;
    not_zero(&format!("{path}.count"), *count)?;
    never_decreases(&format!("{path}.delta_min_ns"), delta_min_ns)?;
    never_decreases(&format!("{path}.wcet_ns"), wcet_ns)?;
    if wcet_ns.len() != delta_min_ns.len() + 1 || wcet_ns.len() as u64 > *count {
        let expected = format!("one entry more than in `delta_min_ns`, and no more than `count` ({count})");
        return Err(ReadError::value(format!("{path}.wcet_ns"), expected, wcet_ns.len()));
    }
    if min_separation_ns.is_some() && *count < 2 {
        let path = format!("{path}.min_separation_ns");
        return Err(ReadError::value(path, "nothing, as there is one interrupt", "a number"));
    }
    let most = execution.steps().last().map_or(Duration::ZERO, |step| step.sum);
    never_decreases(&format!("{path}.long_execution_ns"), long_execution_ns)?;
    at_most(&format!("{path}.long_execution_ns"), long_execution_ns.len(), MAX_LONG_WINDOWS)?;
    if long_execution_ns.first().is_some_and(|&first| first < most) {
        let expected = format!("no less than the last of `sum_ns` ({})", most.ns());
        let first = long_execution_ns[0].ns();
        return Err(ReadError::value(format!("{path}.long_execution_ns[0]"), expected, first));
    }
    match wcet_ns.last().is_none_or(|longest| *longest == most) {
        true => Ok(()),
        false => {
            let expected = "the last of `sum_ns` to be the last of `wcet_ns`";
            Err(ReadError::value(format!("{path}.execution"), expected, most.ns()))
        }
    }
}

fn latencies(path: &str, measured: &Measured) -> Valid {
    let worst = format!("{path}.worst");
    at_most(&worst, measured.worst.len(), MAX_WORST)?;
    if measured.worst.len() as u64 > measured.wakeups {
        return Err(ReadError::value(worst, "no more than `wakeups`", measured.worst.len()));
    }
    if measured.bounded_max_ns > Some(measured.max_ns) {
        let expected = format!("no more than `max_ns` ({})", measured.max_ns.ns());
        return Err(ReadError::value(format!("{path}.bounded_max_ns"), expected, "more"));
    }
    if let (Some(_), Some(from_due)) = (&measured.thread, measured.from_due_max_ns) {
        let expected = "nothing, as it is known of the measuring thread alone";
        return Err(ReadError::value(format!("{path}.from_due_max_ns"), expected, from_due.ns()));
    }
    if let Some(first) = measured.worst.first().filter(|first| first.latency_ns != measured.max_ns) {
        let expected = format!("`max_ns` ({})", measured.max_ns.ns());
        return Err(ReadError::value(format!("{worst}[0].latency_ns"), expected, first.latency_ns.ns()));
    }
    if let Some(index) = measured.worst.windows(2).position(|pair| pair[0].rank(&pair[1]).is_gt()) {
        let expected = "no more than that of the entry before";
        return Err(ReadError::value(format!("{worst}[{}].latency_ns", index + 1), expected, "more"));
    }
    let mut wakeups = measured.worst.iter().enumerate();
    wakeups.try_for_each(|(index, value)| wakeup(&format!("{worst}[{index}]"), value))
}

/// The parts are the whole.
fn wakeup(path: &str, wakeup: &Wakeup) -> Valid {
    let Some(split) = wakeup.split else { return Ok(()) };
    let parts = [split.interrupts_ns, split.threads_ns, split.sections_ns, split.rest_ns];
    let sum: u128 = parts.iter().map(|part| u128::from(part.ns())).sum();
    match sum == u128::from(wakeup.latency_ns.ns()) {
        true => Ok(()),
        false => {
            let expected = format!("parts that sum up to `latency_ns` ({})", wakeup.latency_ns.ns());
            Err(ReadError::value(format!("{path}.split"), expected, sum))
        }
    }
}
