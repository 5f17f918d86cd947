//! Decisions: which policy, how many executors, which platform has the least worst-case end-to-end latency.

use super::comparison::Comparison;
use super::configuration::{By, Configuration, varies};
use super::figures::{Row, Section};
use super::range::{Difference, Range, Unit, Whole};
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
    let mut text = vec![format!(
        "Lowest worst-case {what} {which}: {}.{}",
        list(comparison, &ranked),
        rivals(comparison, &ranked, label)
    )];
    if unknown > 0 {
        let (runs, is) = (counted(unknown as u64, "run"), if unknown == 1 { "is" } else { "are" });
        text.push(format!("{runs} of unknown configuration {is} not ranked."));
    }
    if has_properties {
        text.extend(each_decision(comparison, &ranked));
    }
    let others = common.iter().filter_map(|row| {
        let ranked = rank(comparison, |configuration| over(configuration, |run| row.value(run, max)));
        let here = ranked.iter().find(|candidate| candidate.number == best.number)?;
        let least = ranked.first().filter(|least| least.worst.value < here.worst.value)?;
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
    } else if common.len() > 1 {
        text.push(format!("By {what}, it is also the best for every single chain."));
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

/// `fifo (12 ms); then priority (13 ms, +8.3 %)`.
fn list(comparison: &Comparison, ranked: &[Candidate]) -> String {
    named(ranked, |candidate| comparison.configurations[candidate.number].label.clone())
}

fn named(ranked: &[Candidate], name: impl Fn(&Candidate) -> String) -> String {
    let Some((best, others)) = ranked.split_first() else { return String::new() };
    let mut text = format!("{} ({})", name(best), best.worst_time());
    for (index, other) in others.iter().enumerate() {
        let difference = Difference::new(&best.worst, &other.worst).text();
        let between = if index == 0 { "; then " } else { ", " };
        text += &format!("{between}{} ({}, {difference})", name(other), other.worst_time());
    }
    text
}

/// Configurations that may be as good.
fn rivals(comparison: &Comparison, ranked: &[Candidate], name: impl Fn(usize) -> String) -> String {
    let Some((best, others)) = ranked.split_first().filter(|_| comparison.has_spreads()) else {
        return String::new();
    };
    let near: Vec<String> = others
        .iter()
        .filter(|other| !best.worst.is_apart(&other.worst))
        .map(|other| name(other.number))
        .collect();
    match near.is_empty() {
        true => " Distinguishable from all others.".to_owned(),
        false => format!(" Not distinguishable from {}.", near.join("; ")),
    }
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
            let list = named(&group, |candidate| name(candidate.number));
            let rivals = rivals(comparison, &group, name);
            text.push(format!("{title} ({}): {list}.{rivals}", circumstances.join(", ")));
        }
    }
    text
}
