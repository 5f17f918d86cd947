//! Decisions: which policy, how many executors, which platform has the least worst-case end-to-end latency.
//! A configuration is named only if the test of the tables tells it from all others.

use super::comparison::Comparison;
use super::configuration::{By, Configuration, varies};
use super::figures::{Row, Section};
use super::range::{Difference, RUNS_FOR_SPREAD, Range, Unit, Whole};
use super::subjects::Decision;
use crate::number::{at_most, counted};
use punctual_model::Duration;

/// Sentences, the most important first; none where there is nothing to decide.
pub(super) fn all(comparison: &Comparison) -> Vec<String> {
    if comparison.configurations.len() < 2 {
        return Vec::new();
    }
    let mut text = Vec::new();
    for section in &comparison.sections {
        if let Some(decision) = section.table.decision {
            text.extend(latency(comparison, section, decision));
        }
    }
    text
}

/// A configuration, by number, and the worst of its latencies.
#[derive(Clone, Copy)]
struct Candidate {
    number: usize,
    worst: Range,
}

impl Candidate {
    fn worst_time(&self) -> Duration {
        at_most(Duration::from_ns(self.worst.value))
    }
}

fn latency(comparison: &Comparison, section: &Section, decision: Decision) -> Vec<String> {
    let Decision { what, has_properties } = decision;
    let max = section.table.figures().len() - 1;
    let runs = comparison.names.len();
    let common: Vec<&Row> =
        section.rows.iter().filter(|row| (0..runs).all(|run| row.value(run, max).is_some())).collect();
    if common.is_empty() {
        return match section.rows.is_empty() {
            true => Vec::new(),
            false => vec![format!("By {what}: no chain has one in all runs, so there is no decision.")],
        };
    }
    let of_run = |run: usize| common.iter().filter_map(|row| row.value(run, max)).max();
    let ranked = rank(comparison, |configuration| over(configuration, of_run));
    let unknown = comparison.configurations.iter().filter(|it| it.is_alone).count();
    if unknown > 0 && ranked.len() < 2 {
        let text = format!("By {what}: fewer than two configurations are known, so there is no decision.");
        return vec![text];
    }
    let Some(best) = ranked.first().copied() else { return Vec::new() };
    let which = match section.rows.len() - common.len() {
        0 if common.len() == 1 => "of the chain".to_owned(),
        0 => format!("over all {} chains", common.len()),
        _ if common.len() == 1 => "of the one chain that all runs have".to_owned(),
        _ => format!("over the {} that all runs have", counted(common.len() as u64, "chain")),
    };
    let label = |number: usize| comparison.configurations[number].label.clone();
    let standing = Standing::new(&ranked);
    let list = list(&ranked, &standing, label);
    let mut text = vec![match &standing {
        Standing::Lowest => format!("Lowest worst-case {what} {which}: {list}."),
        Standing::Rivals(_) => {
            format!("Worst-case {what} {which}: {list}.{}", rivals(&ranked, &standing, label))
        }
        Standing::TooFewRuns => format!(
            "Worst-case {what} {which}: {list}. Too few runs to tell which is lowest: it takes at least \
             {RUNS_FOR_SPREAD} of each."
        ),
    }];
    if unknown > 0 {
        let (runs, is) = (counted(unknown as u64, "run"), if unknown == 1 { "is" } else { "are" });
        text.push(format!("{runs} of unknown configuration {is} not ranked."));
    }
    if has_properties {
        text.extend(each_decision(comparison, &ranked));
    }
    if !matches!(standing, Standing::Lowest) {
        return text;
    }
    let others = common.iter().filter_map(|row| {
        let ranked = rank(comparison, |configuration| over(configuration, |run| row.value(run, max)));
        let here = ranked.iter().find(|candidate| candidate.number == best.number)?;
        let is_less = |least: &&Candidate| least.worst.value < here.worst.value;
        let least = ranked.first().filter(is_less).filter(|least| least.worst.is_apart(&here.worst))?;
        let difference = Difference::new(&least.worst, &here.worst).text();
        let values = [least, here].map(|candidate| candidate.worst_time());
        Some(
            format!("{} under {} ({}; ", row.name, label(least.number), values[0])
                + &format!("{}: {}, {difference})", label(best.number), values[1]),
        )
    });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        text.push(format!("By {what}, some chains do better elsewhere: {}.", others.join("; ")));
    }
    text
}

/// The range of a figure over the runs of a configuration.
fn over(configuration: &Configuration, of_run: impl Fn(usize) -> Option<u64>) -> Option<Range> {
    Range::over(configuration.runs.iter().filter_map(|run| of_run(*run)), Whole::Greatest, Unit::Time)
}

/// Known configurations, the least first; of equal ones, the one that was given first. One that is not known
/// may be any of the others.
fn rank(comparison: &Comparison, worst: impl Fn(&Configuration) -> Option<Range>) -> Vec<Candidate> {
    let all = comparison.configurations.iter().enumerate().filter(|(_, it)| !it.is_alone);
    let mut ranked: Vec<Candidate> = all
        .filter_map(|(number, configuration)| Some(Candidate { number, worst: worst(configuration)? }))
        .collect();
    ranked.sort_by_key(|candidate| (candidate.worst.value, candidate.number));
    ranked
}

/// What the runs tell about the first of a ranking.
enum Standing {
    /// It is lower than all others.
    Lowest,
    /// It and these, by number, are not distinguishable.
    Rivals(Vec<usize>),
    TooFewRuns,
}

impl Standing {
    fn new(ranked: &[Candidate]) -> Standing {
        let Some((best, others)) = ranked.split_first() else { return Standing::TooFewRuns };
        if others.is_empty() || ranked.iter().any(|candidate| !candidate.worst.has_spread()) {
            return Standing::TooFewRuns;
        }
        let mut near: Vec<usize> =
            others.iter().filter(|it| !best.worst.is_apart(&it.worst)).map(|it| it.number).collect();
        if near.is_empty() {
            return Standing::Lowest;
        }
        near.push(best.number);
        near.sort_unstable();
        Standing::Rivals(near)
    }
}

/// `priority (12 ms); then fifo (13 ms, ▲ +8.3 %)`; where none is lowest, as they were given:
/// `fifo (13 ms), priority (12 ms, −7.7 %)`.
fn list(ranked: &[Candidate], standing: &Standing, name: impl Fn(usize) -> String) -> String {
    let is_lowest = matches!(standing, Standing::Lowest);
    let mut shown = ranked.to_vec();
    if !is_lowest {
        shown.sort_by_key(|candidate| candidate.number);
    }
    let Some((first, others)) = shown.split_first() else { return String::new() };
    let mut text = format!("{} ({})", name(first.number), first.worst_time());
    for (index, other) in others.iter().enumerate() {
        let difference = Difference::new(&first.worst, &other.worst).text();
        let between = if is_lowest && index == 0 { "; then " } else { ", " };
        text += &format!("{between}{} ({}, {difference})", name(other.number), other.worst_time());
    }
    text
}

/// The configurations that may be lowest.
fn rivals(ranked: &[Candidate], standing: &Standing, name: impl Fn(usize) -> String) -> String {
    let Standing::Rivals(near) = standing else { return String::new() };
    if near.len() == ranked.len() {
        return " None is lowest: no difference found.".to_owned();
    }
    let names: Vec<String> = near.iter().map(|number| name(*number)).collect();
    format!(" None is lowest: no difference found between {}.", names.join("; "))
}

/// One property at a time, the others fixed; nothing where only one differs.
fn each_decision(comparison: &Comparison, ranked: &[Candidate]) -> Vec<String> {
    let all = &comparison.configurations;
    let varied: Vec<By> = comparison.grouping.by.iter().copied().filter(|by| varies(all, *by)).collect();
    if varied.len() < 2 || comparison.grouping.is_by_file() {
        return Vec::new();
    }
    let mut text = Vec::new();
    for (by, title) in
        [(By::Platform, "Platform"), (By::Policy, "Policy"), (By::Executors, "Number of executors")]
    {
        if !varied.contains(&by) {
            continue;
        }
        let others: Vec<By> = varied.iter().copied().filter(|other| *other != by).collect();
        let circumstances = |candidate: &Candidate| -> Vec<String> {
            others.iter().map(|other| other.words(all[candidate.number].value(*other))).collect()
        };
        // In the order in which the configurations were given, and the best of each first.
        let mut groups: Vec<(Vec<String>, Vec<Candidate>)> = Vec::new();
        let mut given: Vec<&Candidate> = ranked.iter().collect();
        given.sort_by_key(|candidate| candidate.number);
        for candidate in given {
            let key = circumstances(candidate);
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, group)) => group.push(*candidate),
                None => groups.push((key, vec![*candidate])),
            }
        }
        for (circumstances, mut group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
            group.sort_by_key(|candidate| (candidate.worst.value, candidate.number));
            let name = |number: usize| by.words(all[number].value(by));
            let standing = Standing::new(&group);
            let list = list(&group, &standing, name);
            let circumstances = circumstances.join(", ");
            text.push(match &standing {
                Standing::Lowest => format!("{title} ({circumstances}): lowest with {list}."),
                Standing::Rivals(_) => {
                    format!("{title} ({circumstances}): {list}.{}", rivals(&group, &standing, name))
                }
                Standing::TooFewRuns => format!("{title} ({circumstances}): {list}. Too few runs to tell."),
            });
        }
    }
    text
}
