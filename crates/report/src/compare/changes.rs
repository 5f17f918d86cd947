//! What differs between a configuration and the first without being better or worse: figures without a
//! direction, such as periods, and what only one of the two has.
//!
//! A figure is named if chance rarely puts any figure of its kind as far apart; so is what all runs of one
//! configuration have and none of the other. (Westfall, Young: the distribution of the greatest statistic.)

use super::comparison::Comparison;
use super::figures::{self as compared, Row};
use super::permutation::{gap, one_side};
use super::range::{Difference, Range};
use super::verdict::{Cell, Pair, cells};
use crate::number::few;
use std::collections::HashSet;

/// How many differences of a kind a sentence names.
const MOST_NAMED: usize = 3;

/// A figure that is marked.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// `max cost of ctl`.
    pub(super) name: String,
    difference: Difference,
    /// `800 µs, then 1.2 ms`.
    values: String,
}

impl Finding {
    pub(super) fn new(cell: &Cell<'_>, ranges: [&Range; 2], difference: Difference) -> Finding {
        let [before, after] = ranges.map(|range| compared::value(cell.figure, range));
        Finding { name: cell.name(), difference, values: format!("{before}, then {after}") }
    }

    pub(super) fn is_more(&self) -> bool {
        self.difference.amount() > 0
    }

    /// `max cost of ctl (800 µs, then 1.2 ms, +50.0 %)`.
    pub(super) fn text(&self) -> String {
        format!("{} ({}, {})", self.name, self.values, self.difference.size())
    }
}

pub(super) fn greatest_first(findings: &mut [Finding]) {
    findings.sort_by(|one, other| other.difference.factor().total_cmp(&one.difference.factor()));
}

/// The differences that are neither better nor worse.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Figures without a direction, the greatest difference first.
    pub(super) figures: Vec<Finding>,
    /// What only the first configuration has: `thread ctl`, `period of ctl`.
    pub(super) missing: Vec<String>,
    /// What only the other has.
    pub(super) added: Vec<String>,
    /// How many figures without a direction are marked that chance may mark.
    pub(super) by_chance: usize,
}

impl Changes {
    pub(super) fn new(pair: &Pair<'_>, comparison: &Comparison, significance: f64) -> Changes {
        let (figures, by_chance) = figures(pair, comparison, significance);
        let [missing, added] = lone(pair, comparison, significance);
        Changes { figures, missing, added, by_chance }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.missing.is_empty() && self.added.is_empty()
    }

    /// The part of a sentence behind `different:`; empty if there is nothing.
    pub(super) fn text(&self, [first, other]: [&str; 2]) -> String {
        let figures: Vec<String> = self.figures.iter().map(Finding::text).collect();
        let mut parts = vec![few(&figures, MOST_NAMED, " and ")];
        for (label, names) in [(first, &self.missing), (other, &self.added)] {
            if !names.is_empty() {
                parts.push(format!("only {label} has {}", few(names, MOST_NAMED, " and ")));
            }
        }
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }
}

/// The figures without a direction that differ, and how many others are marked.
fn figures(pair: &Pair<'_>, comparison: &Comparison, significance: f64) -> (Vec<Finding>, usize) {
    let neutral = cells(comparison).filter(|cell| !cell.table.less_is_better(cell.figure));
    let tested: Vec<_> = neutral.filter_map(|cell| pair.test(&cell)).collect();
    let marked: Vec<_> =
        tested.iter().filter_map(|(values, finding)| Some((values, finding.clone()?))).collect();
    if marked.is_empty() {
        return (Vec::new(), 0);
    }
    let observed = pair.assignments.observed();
    let gaps: Vec<f64> = marked.iter().map(|(values, _)| gap(values, observed)).collect();
    let greatest =
        |is_first: &[bool]| tested.iter().map(|(values, _)| gap(values, is_first)).fold(0.0, f64::max);
    let shares = pair.assignments.shares(&gaps, greatest);
    let number = marked.len();
    let found = marked.into_iter().zip(shares).filter(|(_, share)| *share <= significance);
    let mut found: Vec<Finding> = found.map(|((_, finding), _)| finding).collect();
    greatest_first(&mut found);
    let by_chance = number - found.len();
    (found, by_chance)
}

/// What only the first configuration has, and what only the other has; nothing if chance may explain it.
fn lone(pair: &Pair<'_>, comparison: &Comparison, significance: f64) -> [Vec<String>; 2] {
    let presence = presence(pair, comparison);
    let mut lone = [Vec::new(), Vec::new()];
    for (name, is_there) in &presence {
        if let Some(is_in_first) = one_side(is_there, pair.assignments.observed()) {
            lone[usize::from(!is_in_first)].push(name.clone());
        }
    }
    let is_split =
        |is_first: &[bool]| presence.iter().any(|(_, is_there)| one_side(is_there, is_first).is_some());
    match lone.iter().all(Vec::is_empty) || pair.assignments.share(is_split) <= significance {
        true => lone,
        false => Default::default(),
    }
}

/// In which runs each task, chain, thread or processor is; of one that is in all, in which its figures are.
fn presence(pair: &Pair<'_>, comparison: &Comparison) -> Vec<(String, Vec<bool>)> {
    let has_row = |row: &Row| -> Vec<bool> { pair.runs.iter().map(|run| row.runs[*run].is_some()).collect() };
    let mut known = HashSet::new();
    let mut found = Vec::new();
    // Of what may be missing for another reason, such as too few jobs, nothing is said.
    for cell in cells(comparison).filter(|cell| !cell.table.is_optional && !cell.figure.sparse) {
        let rows = has_row(cell.row);
        if rows.iter().all(|is_there| *is_there) {
            let has_figure = pair.runs.iter().map(|run| cell.row.value(*run, cell.place).is_some());
            found.push((cell.name(), has_figure.collect()));
        } else {
            let name = format!("{} {}", cell.table.row.to_lowercase(), cell.row.name);
            if known.insert(name.clone()) {
                found.push((name, rows));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{By, Input, Outcome};
    use super::*;
    use crate::{Page, example};
    use punctual_model::Duration;

    /// A run whose threads have these periods in ms; those with 0 have none.
    fn run(folder: &str, number: usize, threads: &[(&str, u64)]) -> Input {
        let thread = |&(name, period): &(&str, u64)| {
            let mut task = example::task(name, 1_202, 80);
            let arrival = &mut task.streams[0].arrival;
            match (period, &mut arrival.periodic) {
                (0, periodic) => *periodic = None,
                (_, Some(periodic)) => periodic.period_ns = Duration::from_ms(period),
                (_, None) => {}
            }
            task
        };
        let model = example::model(threads.iter().map(thread).collect());
        Input { name: format!("{folder}/{number}.timing.json"), model }
    }

    /// Runs of `k1`, then runs of `k2`.
    fn compared<'a>(
        before: &[impl AsRef<[(&'a str, u64)]>],
        after: &[impl AsRef<[(&'a str, u64)]>],
    ) -> Comparison {
        let before = before.iter().enumerate().map(|(number, it)| run("k1", number, it.as_ref()));
        let after = after.iter().enumerate().map(|(number, it)| run("k2", number, it.as_ref()));
        let inputs: Vec<Input> = before.chain(after).collect();
        Comparison::new(&inputs, &[By::Folder]).expect("threads")
    }

    fn verdict(comparison: &Comparison) -> (Outcome, String, serde_json::Value) {
        let text = comparison.verdict().remove(0);
        assert!(comparison.text(&Page::default()).starts_with(&text), "{text}");
        assert!(comparison.html().contains(&text), "{text}");
        let json: serde_json::Value = serde_json::from_str(&comparison.json()).expect("JSON");
        (comparison.outcomes().next().expect("a verdict"), text, json["verdicts"][0].clone())
    }

    #[test]
    fn a_period_that_differs_is_named() {
        let found = compared(&[[("k", 10), ("l", 5)]; 5], &[[("k", 15), ("l", 5)]; 5]);
        let (outcome, text, json) = verdict(&found);
        assert_eq!(outcome, Outcome::Different);
        assert!(text.starts_with("k2 is neither worse nor better than k1 ("), "{text}");
        assert!(text.ends_with("), but different: period of k (10 ms, then 15 ms, +50.0 %)."), "{text}");
        assert_eq!(json["outcome"], "different");
        assert_eq!(json["different"], serde_json::json!(["period of k"]));
        // It cannot be better or worse, and does not count as such.
        assert_eq!((&json["worse"], &json["better"]), (&0.into(), &0.into()));
        let same = compared(&[[("k", 10)]; 5], &[[("k", 10)]; 5]);
        let (outcome, text, json) = verdict(&same);
        assert_eq!(outcome, Outcome::NoDifference);
        assert!(text.starts_with("No difference found: k2") && !text.contains("different:"), "{text}");
        let listed = |field: &str| json[field].as_array().map(Vec::len);
        assert_eq!(["different", "missing", "added"].map(listed), [Some(0); 3]);
    }

    #[test]
    fn what_only_one_side_has_is_named() {
        let found = compared(&[[("k", 10), ("a", 5), ("b", 5)]; 5], &[[("k", 10), ("c", 5)]; 5]);
        let (outcome, text, json) = verdict(&found);
        assert_eq!(outcome, Outcome::Different);
        let expected = "but different: only k1 has thread a, thread b; only k2 has thread c.";
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(json["missing"], serde_json::json!(["thread a", "thread b"]));
        assert_eq!(json["added"], serde_json::json!(["thread c"]));
        // A thread that lost its period.
        let (outcome, text, _) = verdict(&compared(&[[("k", 10)]; 5], &[[("k", 0)]; 5]));
        assert_eq!(outcome, Outcome::Different);
        assert!(text.contains("only k1 has period of k"), "{text}");
        // One that is in some runs only.
        let some: [&[(&str, u64)]; 5] =
            [&[("k", 10), ("a", 5)], &[("k", 10)], &[("k", 10)], &[("k", 10), ("a", 5)], &[("k", 10)]];
        let (outcome, text, _) = verdict(&compared(&some, &[[("k", 10)]; 5]));
        assert_eq!(outcome, Outcome::NoDifference, "{text}");
    }

    #[test]
    fn runs_without_a_common_figure_differ_but_cannot_be_ranked() {
        let (outcome, text, _) = verdict(&compared(&[[("a", 5)]; 5], &[[("b", 5)]; 5]));
        assert_eq!(outcome, Outcome::TooFewRuns);
        assert!(text.contains("no figure is in at least 5 runs of each."), "{text}");
        assert!(text.ends_with("Also different: only k1 has thread a; only k2 has thread b."), "{text}");
        let (outcome, text, _) = verdict(&compared(&[[("a", 5)]; 4], &[[("b", 5)]; 5]));
        assert_eq!(outcome, Outcome::TooFewRuns);
        assert!(text.ends_with("4 and 5; it takes at least 5 of each."), "{text}");
    }

    /// Periods of many threads that vary by chance hide none that differs by far more.
    #[test]
    fn noise_does_not_hide_a_difference() {
        let names: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
        let runs: Vec<Vec<(&str, u64)>> = (0..10_u64)
            .map(|run| {
                let noisy = names.iter().zip(0_u64..).map(|(name, number)| {
                    (name.as_str(), 1_000 + (number * 7 + run * 31 + number * run * run) % 23)
                });
                noisy.chain([("k", if run < 5 { 10 } else { 15 })]).collect()
            })
            .collect();
        let (_, text, json) = verdict(&compared(&runs[..5], &runs[5..]));
        assert!(text.contains("period of k (10 ms, then 15 ms, +50.0 %)"), "{text}");
        assert_eq!(json["different"], serde_json::json!(["period of k"]));
    }
}
