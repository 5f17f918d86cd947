//! Checks that a dataflow program is consistent: names that exist, distributions in order, parts that add up.

use super::{Chain, Count, Dataflow, Distance, Distribution, FlowTask, Latency, Times};
use crate::error::ReadError;
use crate::section::Valid;
use crate::time::Duration;
use crate::valid::{rising, span};
use std::collections::HashSet;

pub(super) fn dataflow(path: &str, flow: &Dataflow) -> Valid {
    span(path, flow.from_ns, flow.until_ns)?;
    let tasks = unique(&format!("{path}.tasks"), flow.tasks.iter().map(|task| task.name.as_str()))?;
    let channels =
        unique(&format!("{path}.channels"), flow.channels.iter().map(|channel| channel.name.as_str()))?;
    for (index, channel) in flow.channels.iter().enumerate() {
        let path = format!("{path}.channels[{index}]");
        for (index, pushed_by) in channel.pushed_by.iter().enumerate() {
            known(&format!("{path}.pushed_by[{index}].task"), "task", &pushed_by.task, &tasks)?;
        }
        for (index, activates) in channel.activates.iter().enumerate() {
            known(&format!("{path}.activates[{index}].task"), "task", &activates.task, &tasks)?;
        }
    }
    for (index, opening) in flow.openings.iter().enumerate() {
        for (field, names) in [("before", &opening.before), ("behind", &opening.behind)] {
            for (place, name) in names.iter().enumerate() {
                known(&format!("{path}.openings[{index}].{field}[{place}]"), "task", name, &tasks)?;
            }
        }
    }
    for (index, value) in flow.tasks.iter().enumerate() {
        task(&format!("{path}.tasks[{index}]"), value)?;
    }
    for (index, value) in flow.chains.iter().enumerate() {
        chain(&format!("{path}.chains[{index}]"), value, &tasks, &channels)?;
    }
    Ok(())
}

fn unique<'a>(path: &str, names: impl Iterator<Item = &'a str>) -> Result<HashSet<&'a str>, ReadError> {
    let mut seen = HashSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            return Err(ReadError::value(
                format!("{path}[{index}].name"),
                "a unique name",
                format!("{name:?}"),
            ));
        }
    }
    Ok(seen)
}

fn known(path: &str, what: &str, name: &str, names: &HashSet<&str>) -> Valid {
    match names.contains(name) {
        true => Ok(()),
        false => Err(ReadError::value(path, format!("the name of a {what}"), format!("{name:?}"))),
    }
}

fn task(path: &str, task: &FlowTask) -> Valid {
    task.arrival.validate(&format!("{path}.arrival"))?;
    samples(path, task)?;
    for (name, times) in [("execution", &task.execution), ("queuing", &task.queuing)] {
        if let Some(Times { distribution: value, .. }) = times {
            let path = format!("{path}.{name}");
            distribution(&path, value)?;
            equal(
                &format!("{path}.count"),
                "as many as there are `executions`",
                task.executions,
                value.count,
            )?;
        }
    }
    if let Some(parts) = &task.by_kernel {
        for (name, part) in
            [("running", &parts.running), ("preempted", &parts.preempted), ("suspended", &parts.suspended)]
        {
            let path = format!("{path}.by_kernel.{name}");
            distribution(&path, part)?;
            equal(
                &format!("{path}.count"),
                "as many as there are `by_kernel.executions`",
                parts.executions,
                part.count,
            )?;
        }
    }
    Ok(())
}

/// Whether the values agree with the curves.
fn samples(path: &str, task: &FlowTask) -> Valid {
    let Some(curve) = &task.arrival.curve else {
        let none = task.distances.is_empty() && task.counts.is_empty();
        return if none {
            Ok(())
        } else {
            Err(ReadError::value(format!("{path}.distances"), "nothing (there is no curve)", "values"))
        };
    };
    let differs = |list: &str, index: usize| {
        let path = format!("{path}.{list}[{index}]");
        Err(ReadError::value(path, "the value of `arrival.curve`", "another value"))
    };
    if let Some(index) =
        task.distances.iter().position(|found| found.n < 2 || *found != Distance::new(curve, found.n))
    {
        return differs("distances", index);
    }
    match task
        .counts
        .iter()
        .position(|found| found.span_ns == Duration::ZERO || *found != Count::new(curve, found.span_ns))
    {
        Some(index) => differs("counts", index),
        None => Ok(()),
    }
}

fn distribution(path: &str, value: &Distribution) -> Valid {
    if value.count == 0 {
        return Err(ReadError::value(format!("{path}.count"), "at least one", 0));
    }
    let ends = [
        ("min_ns", value.min_ns),
        ("quartile_1_ns", value.quartile_1_ns),
        ("median_ns", value.median_ns),
        ("quartile_3_ns", value.quartile_3_ns),
        ("max_ns", value.max_ns),
    ];
    rising(path, &ends)?;
    let percentiles = [("p95_ns", value.p95_ns), ("p99_ns", value.p99_ns), ("p999_ns", value.p999_ns)];
    let known = percentiles.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let tail: Vec<_> = std::iter::once(ends[3]).chain(known).chain([ends[4]]).collect();
    rising(path, &tail)?;
    histogram(path, value)?;
    let mean_ns = value.mean_ns.unwrap_or(value.max_ns);
    rising(path, &[ends[0], ("mean_ns", mean_ns), ends[4]])
}

/// Whether its bins hold all values and are in order.
fn histogram(path: &str, value: &Distribution) -> Valid {
    let path = format!("{path}.histogram");
    let (Some(first), Some(last)) = (value.histogram.first(), value.histogram.last()) else { return Ok(()) };
    let is_rising = value.histogram.windows(2).all(|pair| pair[0].until_ns < pair[1].until_ns);
    if !is_rising || first.until_ns < value.min_ns {
        return Err(ReadError::value(path, "bins in order, from `min_ns` on", "others"));
    }
    equal(&path, "to end with `max_ns`", value.max_ns.ns(), last.until_ns.ns())?;
    let counts = value.histogram.iter().map(|bin| bin.count);
    equal(&path, "as many as `count`", value.count, counts.fold(0, u64::saturating_add))
}

fn chain(path: &str, chain: &Chain, tasks: &HashSet<&str>, channels: &HashSet<&str>) -> Valid {
    if chain.tasks.len() < 2 {
        return Err(ReadError::value(format!("{path}.tasks"), "at least two tasks", chain.tasks.len()));
    }
    for (index, name) in chain.tasks.iter().enumerate() {
        known(&format!("{path}.tasks[{index}]"), "task", name, tasks)?;
    }
    let count = |latency: &Option<Latency>| latency.as_ref().map_or(0, |latency| latency.distribution.count);
    let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
    let sources =
        sum(&[count(&chain.reaction), chain.overtaken, chain.lost, chain.incomplete, chain.in_flight]);
    equal(&format!("{path}.sources"), "the sum of its parts", sources, chain.sources)?;
    let sinks = sum(&[count(&chain.age), chain.sinks_lost, chain.sinks_incomplete, chain.sinks_in_flight]);
    equal(&format!("{path}.sinks"), "the sum of its parts", sinks, chain.sinks)?;
    for (name, value) in [("reaction", &chain.reaction), ("age", &chain.age)] {
        if let Some(value) = value {
            latency(&format!("{path}.{name}"), value, &chain.tasks, channels)?;
        }
    }
    Ok(())
}

fn latency(path: &str, value: &Latency, tasks: &[String], channels: &HashSet<&str>) -> Valid {
    distribution(path, &value.distribution)?;
    for (index, alternative) in value.alternatives.iter().enumerate() {
        let path = format!("{path}.alternatives[{index}].distribution");
        alternative.distribution.iter().try_for_each(|value| distribution(&path, value))?;
    }
    let (path, worst) = (format!("{path}.worst"), &value.worst);
    equal(&format!("{path}.path"), "a step for each task of the chain", tasks.len(), worst.path.len())?;
    let mut at = worst.from_ns;
    for (index, (step, task)) in worst.path.iter().zip(tasks).enumerate() {
        let path = format!("{path}.path[{index}]");
        equal(&format!("{path}.task"), "the chain's task", task, &step.task)?;
        if step.activation_ns > step.start_ns {
            let expected = format!("no more than `start_ns` ({})", step.start_ns.ns());
            return Err(ReadError::value(format!("{path}.activation_ns"), expected, step.activation_ns.ns()));
        }
        let most = step.activation_ns.since(at);
        if let Some(busy) = step.busy_ns.filter(|busy| *busy > most) {
            let expected =
                format!("no more than from the arrival of the datum to `activation_ns` ({})", most.ns());
            return Err(ReadError::value(format!("{path}.busy_ns"), expected, busy.ns()));
        }
        if index == 0 && step.activation_ns < at {
            let expected = format!("no less than `from_ns` ({})", at.ns());
            return Err(ReadError::value(format!("{path}.activation_ns"), expected, step.activation_ns.ns()));
        }
        for (name, instant) in [("start_ns", step.start_ns), ("until_ns", step.until_ns)] {
            if instant < at {
                return Err(ReadError::value(
                    format!("{path}.{name}"),
                    format!("no less than the instant before it ({})", at.ns()),
                    instant.ns(),
                ));
            }
            at = instant;
        }
        match &step.channel {
            Some(channel) => known(&format!("{path}.channel"), "channel", channel, channels)?,
            None if index + 1 < tasks.len() => {
                return Err(ReadError::value(format!("{path}.channel"), "the name of a channel", "nothing"));
            }
            None => {}
        }
    }
    equal(&format!("{path}.until_ns"), "when the last step ends", at.ns(), worst.until_ns.ns())?;
    equal(
        &format!("{path}.until_ns"),
        "`from_ns` plus `max_ns`",
        (worst.from_ns + value.distribution.max_ns).ns(),
        at.ns(),
    )?;
    let parts = [
        ("queuing_ns", worst.queuing_ns),
        ("execution_ns", worst.execution_ns),
        ("waiting_ns", worst.waiting_ns),
    ];
    for ((name, found), expected) in parts.into_iter().zip(worst.parts()) {
        equal(&format!("{path}.{name}"), "the sum over the path", expected.ns(), found.ns())?;
    }
    debug_assert_eq!(worst.parts().into_iter().fold(Duration::ZERO, |sum, part| sum + part), worst.total());
    Ok(())
}

fn equal<T: PartialEq + std::fmt::Display>(path: &str, what: &str, expected: T, found: T) -> Valid {
    match expected == found {
        true => Ok(()),
        false => Err(ReadError::value(path, format!("{what} ({expected})"), found)),
    }
}
