//! Whether the values of the section `latency` make sense.

use super::interrupts::MAX_LONG_WINDOWS;
use super::{
    InterruptCurves, InterruptKind, InterruptSource, MAX_WORST, Measured, Monitor, Processor,
    SchedulingLatency, Wakeup,
};
use crate::error::ReadError;
use crate::section::Valid;
use crate::time::Duration;
use crate::valid::{at_most, never_decreases, not_zero, span};

pub(super) fn latency(path: &str, latency: &SchedulingLatency) -> Valid {
    span(path, latency.from_ns, latency.until_ns)?;
    not_zero(&format!("{path}.horizon_ns"), latency.horizon_ns.ns())?;
    ascending(&format!("{path}.processors"), &latency.processors, |cpu| cpu.cpu)?;
    ascending(&format!("{path}.monitors"), &latency.monitors, |it| (it.name.clone(), it.rules.clone()))?;
    for (index, value) in latency.monitors.iter().enumerate() {
        rules(&format!("{path}.monitors[{index}]"), value)?;
    }
    let mut processors = latency.processors.iter().enumerate();
    processors.try_for_each(|(index, value)| {
        processor(&format!("{path}.processors[{index}]"), value, latency.horizon_ns)
    })
}

/// The paper's rules and operations.
fn rules(path: &str, monitor: &Monitor) -> Valid {
    let is_known = |rule: &String| {
        let number = |letter, most: u32| {
            let number = rule.strip_prefix(letter).filter(|digits| !digits.starts_with(['0', '+']));
            number.and_then(|digits| digits.parse().ok()).is_some_and(|number| (1..=most).contains(&number))
        };
        number('R', 14) || number('O', 9)
    };
    match monitor.rules.iter().position(|rule| !is_known(rule)) {
        Some(index) => Err(ReadError::value(
            format!("{path}.rules[{index}]"),
            "a rule from `R1` to `R14` or an operation from `O1` to `O9`",
            &monitor.rules[index],
        )),
        None => Ok(()),
    }
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

fn processor(path: &str, cpu: &Processor, horizon: Duration) -> Valid {
    let (interrupts, measured) = (format!("{path}.interrupts"), format!("{path}.measured"));
    ascending(&interrupts, &cpu.interrupts, |it| it.source.clone())?;
    ascending(&measured, &cpu.measured, Measured::key)?;
    for (index, value) in cpu.interrupts.iter().enumerate() {
        source(&format!("{interrupts}[{index}].source"), &value.source)?;
        curves(&format!("{interrupts}[{index}].curves"), &value.curves, horizon)?;
    }
    for (index, value) in cpu.measured.iter().enumerate() {
        latencies(&format!("{measured}[{index}]"), value)?;
    }
    Ok(())
}

/// Only NMIs have no number.
fn source(path: &str, source: &InterruptSource) -> Valid {
    let path = format!("{path}.number");
    match (source.kind, source.number) {
        (InterruptKind::Nmi, Some(number)) => {
            Err(ReadError::value(path, "nothing, as NMIs have none", number))
        }
        (InterruptKind::Nmi, None) | (_, Some(_)) => Ok(()),
        (_, None) => Err(ReadError::value(path, "a number", "nothing")),
    }
}

/// A window that these allow must hold what was observed, or a bound from them is none.
fn curves(path: &str, curves: &InterruptCurves, horizon: Duration) -> Valid {
    let InterruptCurves { count, delta_min_ns, wcet_ns, .. } = curves;
    not_zero(&format!("{path}.count"), *count)?;
    never_decreases(&format!("{path}.delta_min_ns"), delta_min_ns)?;
    never_decreases(&format!("{path}.wcet_ns"), wcet_ns)?;
    if wcet_ns.len() != delta_min_ns.len() + 1 || wcet_ns.len() as u64 > *count {
        let expected = format!("one entry more than in `delta_min_ns`, and no more than `count` ({count})");
        return Err(ReadError::value(format!("{path}.wcet_ns"), expected, wcet_ns.len()));
    }
    separations(path, curves)?;
    let one = u128::from(wcet_ns[0].ns());
    let is_more = |(more, sum): (u128, &Duration)| u128::from(sum.ns()) > one * more;
    if let Some(index) = (1..).zip(wcet_ns).position(is_more) {
        let expected = format!("no more than {} times the first ({one})", index + 1);
        return Err(ReadError::value(format!("{path}.wcet_ns[{index}]"), expected, wcet_ns[index].ns()));
    }
    within(&format!("{path}.delta_min_ns"), delta_min_ns.iter().copied(), horizon)?;
    let windows = curves.execution.steps().iter().map(|step| step.span);
    within(&format!("{path}.execution.window_ns"), windows, horizon)?;
    executions(path, curves)
}

fn separations(path: &str, curves: &InterruptCurves) -> Valid {
    let InterruptCurves { count, min_separation_ns, delta_min_ns, .. } = curves;
    let refuse = |expected: String, found: String| {
        Err(ReadError::value(format!("{path}.min_separation_ns"), expected, found))
    };
    match (*min_separation_ns, delta_min_ns.first()) {
        (Some(least), _) if *count < 2 => {
            refuse("nothing, as there is one interrupt".into(), least.ns().to_string())
        }
        (Some(least), Some(&gap)) if least < gap => {
            let expected = format!("no less than `delta_min_ns[0]` ({})", gap.ns());
            refuse(expected, least.ns().to_string())
        }
        // Without any, no two were seen one after the other: each run had one, or something was lost between.
        (None, Some(_)) => refuse("a number, as `delta_min_ns` has one".into(), "nothing".into()),
        _ => Ok(()),
    }
}

fn within(path: &str, windows: impl Iterator<Item = Duration>, horizon: Duration) -> Valid {
    match windows.enumerate().find(|(_, window)| *window >= horizon) {
        Some((index, window)) => Err(ReadError::value(
            format!("{path}[{index}]"),
            format!("less than `horizon_ns` ({})", horizon.ns()),
            window.ns(),
        )),
        None => Ok(()),
    }
}

fn executions(path: &str, curves: &InterruptCurves) -> Valid {
    let InterruptCurves { wcet_ns, execution, long_execution_ns, .. } = curves;
    let longest = curves.wcet();
    if let Some(first) = execution.steps().first() {
        if !first.span.is_zero() {
            let expected = "0, as any window may hold one interrupt";
            return Err(ReadError::value(
                format!("{path}.execution.window_ns[0]"),
                expected,
                first.span.ns(),
            ));
        }
        if first.sum < longest {
            let expected = format!("no less than `wcet_ns[0]` ({})", longest.ns());
            return Err(ReadError::value(format!("{path}.execution.sum_ns[0]"), expected, first.sum.ns()));
        }
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
    sums(path, measured)?;
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

/// The greatest is no less than the mean. That of wake-ups that were not seen may be known from the kernel's
/// account.
fn sums(path: &str, measured: &Measured) -> Valid {
    let Measured { wakeups, unmeasured, total_ns, max_ns, .. } = *measured;
    if wakeups == 0 && unmeasured == 0 && !max_ns.is_zero() {
        return Err(ReadError::value(format!("{path}.max_ns"), "0, as there was no wake-up", max_ns.ns()));
    }
    if wakeups == 0 && measured.bounded_max_ns.is_some() {
        let expected = "nothing, as no latency is known";
        return Err(ReadError::value(format!("{path}.bounded_max_ns"), expected, "a number"));
    }
    match u128::from(total_ns.ns()) > u128::from(wakeups) * u128::from(max_ns.ns()) {
        true => {
            let expected = format!("no more than `wakeups` times `max_ns` ({wakeups} · {})", max_ns.ns());
            Err(ReadError::value(format!("{path}.total_ns"), expected, total_ns.ns()))
        }
        false => Ok(()),
    }
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
