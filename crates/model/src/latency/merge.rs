//! Two observations of scheduling latency in one, exactly and in any order.

use super::{
    Interrupt, InterruptCurves, Measured, Monitor, Processor, SchedulingLatency, Timers, Variable, Variables,
};
use crate::section::MergeError;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::mem;

pub(super) fn latency(
    one: SchedulingLatency,
    other: SchedulingLatency,
) -> Result<SchedulingLatency, MergeError> {
    let kernel = |section: &SchedulingLatency| format!("{}, {}", section.kernel, section.preemption.name());
    same("kernels", kernel(&one), kernel(&other))?;
    same("horizons", one.horizon_ns, other.horizon_ns)?;
    Ok(SchedulingLatency {
        from_ns: one.from_ns.min(other.from_ns),
        until_ns: one.until_ns.max(other.until_ns),
        no_variables: one.no_variables.max(other.no_variables),
        damaged_recordings: one.damaged_recordings.saturating_add(other.damaged_recordings),
        processors: joined(one.processors, other.processors, |cpu| cpu.cpu, processor),
        monitors: joined(one.monitors, other.monitors, |it| (it.name.clone(), it.rules.clone()), monitor),
        ..one
    })
}

fn same<T: PartialEq + Display>(what: &str, one: T, other: T) -> Result<(), MergeError> {
    match one == other {
        true => Ok(()),
        false => Err(MergeError(format!(
            "the latencies were observed with different {what} ({one}; {other}), and no bound holds for both"
        ))),
    }
}

/// The entries of both, by ascending key; those that share a key become one.
fn joined<T, K: Ord>(one: Vec<T>, other: Vec<T>, key: impl Fn(&T) -> K, merge: impl Fn(&mut T, T)) -> Vec<T> {
    let mut entries: BTreeMap<K, T> = BTreeMap::new();
    for entry in one.into_iter().chain(other) {
        match entries.entry(key(&entry)) {
            Entry::Vacant(free) => drop(free.insert(entry)),
            Entry::Occupied(mut taken) => merge(taken.get_mut(), entry),
        }
    }
    entries.into_values().collect()
}

fn processor(one: &mut Processor, other: Processor) {
    one.observed_ns += other.observed_ns;
    one.skipped_events = one.skipped_events.saturating_add(other.skipped_events);
    one.lost_records = one.lost_records.saturating_add(other.lost_records);
    one.went_offline = one.went_offline.saturating_add(other.went_offline);
    one.negative_durations = one.negative_durations.saturating_add(other.negative_durations);
    one.variables = both(one.variables.take(), other.variables, variables);
    one.timers = both(one.timers.take(), other.timers, timers);
    let interrupts = mem::take(&mut one.interrupts);
    one.interrupts = joined(interrupts, other.interrupts, |it| it.source.clone(), interrupt);
    one.measured = joined(mem::take(&mut one.measured), other.measured, Measured::key, Measured::merge);
}

fn both<T>(one: Option<T>, other: Option<T>, merge: impl Fn(&mut T, T)) -> Option<T> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            merge(&mut one, other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

fn variables(one: &mut Variables, other: Variables) {
    variable(&mut one.poid, other.poid);
    variable(&mut one.psd, other.psd);
    variable(&mut one.st, other.st);
    variable(&mut one.paie, other.paie);
}

/// The greater of the two; of two that are equal, always the same.
fn variable(one: &mut Variable, other: Variable) {
    let at_least = one.at_least || other.at_least;
    if (one.max_ns, &one.culprit) < (other.max_ns, &other.culprit) {
        *one = other;
    }
    one.at_least = at_least;
}

fn timers(one: &mut Timers, other: Timers) {
    one.expired = one.expired.saturating_add(other.expired);
    one.total_ns += other.total_ns;
    variable(&mut one.lateness, other.lateness);
}

fn interrupt(one: &mut Interrupt, other: Interrupt) {
    let longest = |curves: &InterruptCurves, at: Option<Instant>| (curves.wcet(), at);
    let (mine, theirs) =
        (longest(&one.curves, one.longest_at_ns), longest(&other.curves, other.longest_at_ns));
    one.longest_at_ns = mine.max(theirs).1;
    one.at_least |= other.at_least;
    one.curves.merge(&other.curves);
}

fn monitor(one: &mut Monitor, other: Monitor) {
    one.watched_ns += other.watched_ns;
    one.violations = one.violations.saturating_add(other.violations);
}
