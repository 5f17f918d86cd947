//! The verdict: is a configuration worse or better than the first, or else different, as far as its runs can
//! tell?
//!
//! One test decides between worse and better, however many figures there are. Its statistic is the number of
//! figures that the tables mark (▲ or ▼): `permutation` tells how often chance marks as many.

use super::changes::{self, Changes, Finding};
use super::comparison::Comparison;
use super::configuration::Configuration;
use super::figures::Row;
use super::permutation::{Assignments, is_more};
use super::range::{Difference, RUNS_FOR_SPREAD};
use super::subjects::Table;
use crate::figures::Figure;
use crate::number::count;
use serde::Serialize;

/// How often a verdict may name a difference although there is none, over all configurations of a comparison.
pub(super) const SIGNIFICANCE: f64 = 0.05;

/// How a configuration compares with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// More figures are worse than chance explains.
    Worse,
    /// More figures are better than chance explains.
    Better,
    /// Both.
    WorseAndBetter,
    /// Neither, but it differs in what is not better or worse.
    Different,
    /// None of these.
    NoDifference,
    /// No figure that may be worse has enough runs in both configurations.
    TooFewRuns,
}

impl Outcome {
    /// Whether any figure is worse.
    pub fn is_worse(self) -> bool {
        matches!(self, Outcome::Worse | Outcome::WorseAndBetter)
    }
}

/// The verdict on one configuration.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// By number.
    pub(super) configuration: usize,
    pub(super) outcome: Outcome,
    /// How many figures were tested.
    pub(super) tested: usize,
    /// Those that are marked.
    pub(super) worse: Vec<Finding>,
    pub(super) better: Vec<Finding>,
    /// What differs without being better or worse.
    pub(super) changes: Changes,
}

/// The verdict on each configuration but the first.
pub(super) fn all(comparison: &Comparison) -> Vec<Verdict> {
    let others = 1..comparison.configurations.len();
    let significance = SIGNIFICANCE / others.len().max(1) as f64;
    others.map(|number| verdict(comparison, number, significance)).collect()
}

fn verdict(comparison: &Comparison, number: usize, significance: f64) -> Verdict {
    let pair = Pair::new(comparison, number);
    let (mut values, mut worse, mut better) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells(comparison).filter(|cell| cell.table.less_is_better(cell.figure)) {
        let Some((cell_values, finding)) = pair.test(&cell) else { continue };
        values.push(cell_values);
        if let Some(finding) = finding {
            (if finding.is_more() { &mut worse } else { &mut better }).push(finding);
        }
    }
    changes::greatest_first(&mut worse);
    changes::greatest_first(&mut better);
    let changes = Changes::new(&pair, comparison, significance);
    let outcome = match outcome(&values, [worse.len(), better.len()], &pair.assignments, significance) {
        Outcome::NoDifference if !changes.is_empty() => Outcome::Different,
        outcome => outcome,
    };
    Verdict { configuration: number, outcome, tested: values.len(), worse, better, changes }
}

/// By the values of all tested figures, and how many are marked as worse and as better.
fn outcome(
    values: &[Vec<Option<u64>>],
    marked: [usize; 2],
    assignments: &Assignments,
    significance: f64,
) -> Outcome {
    if values.is_empty() {
        return Outcome::TooFewRuns;
    }
    let is_found = |marked: usize, more: bool| {
        let reaches = |is_first: &[bool]| {
            values.iter().filter(|figure| is_more(figure, is_first) == Some(more)).count() >= marked
        };
        // Half for each direction.
        marked > 0 && assignments.share(reaches) <= significance / 2.0
    };
    match (is_found(marked[0], true), is_found(marked[1], false)) {
        (true, true) => Outcome::WorseAndBetter,
        (true, false) => Outcome::Worse,
        (false, true) => Outcome::Better,
        (false, false) => Outcome::NoDifference,
    }
}

/// The first configuration and another.
pub(super) struct Pair<'a> {
    first: &'a Configuration,
    other: &'a Configuration,
    /// Of the first, then of the other.
    pub(super) runs: Vec<usize>,
    pub(super) assignments: Assignments,
}

impl<'a> Pair<'a> {
    fn new(comparison: &'a Comparison, number: usize) -> Pair<'a> {
        let [first, other] = [0, number].map(|number| &comparison.configurations[number]);
        let runs = [&first.runs[..], &other.runs[..]].concat();
        let assignments = Assignments::new(runs.len(), first.runs.len());
        Pair { first, other, runs, assignments }
    }

    /// A figure's value in each run, and what is found if it is marked; none if it has too few runs.
    pub(super) fn test(&self, cell: &Cell<'_>) -> Option<(Vec<Option<u64>>, Option<Finding>)> {
        let range = |configuration| cell.row.range(configuration, cell.place, cell.figure);
        let (before, after) = (range(self.first)?, range(self.other)?);
        if !before.has_spread() || !after.has_spread() {
            return None;
        }
        let values = self.runs.iter().map(|run| cell.row.value(*run, cell.place)).collect();
        let difference = Difference::new(&before, &after);
        let finding = difference.is_marked.then(|| Finding::new(cell, [&before, &after], difference));
        Some((values, finding))
    }
}

/// A figure of a task, chain, thread or processor.
pub(super) struct Cell<'a> {
    pub(super) table: &'static Table,
    pub(super) row: &'a Row,
    pub(super) figure: &'static Figure,
    /// Of the figure, in the table.
    pub(super) place: usize,
}

impl Cell<'_> {
    /// `max cost of ctl`.
    pub(super) fn name(&self) -> String {
        format!("{} of {}", self.table.title_of(self.figure), self.row.name)
    }
}

pub(super) fn cells(comparison: &Comparison) -> impl Iterator<Item = Cell<'_>> {
    comparison.sections.iter().flat_map(|section| {
        let table = section.table;
        section.rows.iter().flat_map(move |row| {
            let figures = table.figures().into_iter().enumerate();
            figures.map(move |(place, figure)| Cell { table, row, figure, place })
        })
    })
}

/// A sentence on each configuration; a single one if no configuration has enough runs.
pub(super) fn sentences(comparison: &Comparison) -> Vec<String> {
    let verdicts = &comparison.verdicts;
    let label = |number: usize| &comparison.configurations[number].label;
    let says_nothing =
        |verdict: &Verdict| verdict.outcome == Outcome::TooFewRuns && verdict.changes.is_empty();
    if verdicts.len() > 1 && verdicts.iter().all(says_nothing) {
        let text = format!(
            "Too few runs to tell whether any configuration is better or worse than {}: it takes at least \
             {RUNS_FOR_SPREAD} of each.",
            label(0)
        );
        return vec![text];
    }
    verdicts.iter().map(|verdict| verdict.sentence(comparison)).collect()
}

impl Verdict {
    fn sentence(&self, comparison: &Comparison) -> String {
        let [first, other] = [0, self.configuration].map(|number| &comparison.configurations[number]);
        let (name, reference) = (&other.label, &first.label);
        let tested = count(self.tested as u64);
        let runs = format!("{} and {} runs", first.runs.len(), other.runs.len());
        let changes = self.changes.text([reference, name]);
        let part =
            |findings: &[Finding]| format!("{} of {tested} figures{}", findings.len(), above_all(findings));
        let sentence = match self.outcome {
            Outcome::Worse => format!("{name} is worse than {reference} in {}.", part(&self.worse)),
            Outcome::Better => format!("{name} is better than {reference} in {}.", part(&self.better)),
            Outcome::WorseAndBetter => format!(
                "{name} is worse than {reference} in {}; it is better in {}.",
                part(&self.worse),
                part(&self.better)
            ),
            Outcome::Different => {
                return format!(
                    "{name} is neither worse nor better than {reference} ({tested} figures of {runs}), but \
                     different: {changes}.{}",
                    self.by_chance()
                );
            }
            Outcome::NoDifference => format!(
                "No difference found: {name} is neither worse nor better than {reference} ({tested} \
                 figures of {runs}).{}",
                self.by_chance()
            ),
            Outcome::TooFewRuns if first.runs.len().min(other.runs.len()) >= RUNS_FOR_SPREAD => format!(
                "Too few runs to tell whether {name} is better or worse than {reference}: no figure is in \
                 at least {RUNS_FOR_SPREAD} runs of each."
            ),
            Outcome::TooFewRuns => format!(
                "Too few runs to tell whether {name} is better or worse than {reference}: {} and {}; it \
                 takes at least {RUNS_FOR_SPREAD} of each.",
                first.runs.len(),
                other.runs.len()
            ),
        };
        if changes.is_empty() { sentence } else { format!("{sentence} Also different: {changes}.") }
    }

    /// A sentence on the marks that the verdict does not count, after a blank.
    fn by_chance(&self) -> String {
        match self.worse.len() + self.better.len() + self.changes.by_chance {
            0 => String::new(),
            1 => " One is marked, and chance alone may mark as many.".to_owned(),
            marked => format!(" {marked} are marked, and chance alone may mark as many."),
        }
    }
}

/// `, above all max cost of ctl (800 µs, then 1.2 ms, +50.0 %)`.
fn above_all(findings: &[Finding]) -> String {
    let Some(first) = findings.first() else { return String::new() };
    let between = if findings.len() == 1 { ":" } else { ", above all" };
    format!("{between} {}", first.text())
}
