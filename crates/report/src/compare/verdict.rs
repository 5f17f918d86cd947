//! The verdict: is a configuration worse or better than the first, as far as its runs can tell?
//!
//! One test decides, however many figures there are. The statistic is the number of figures that the tables
//! mark (▲ or ▼). Where nothing differs, every assignment of the runs to the two configurations is equally
//! likely, so the share of assignments that mark as many figures is the probability that chance marks them.
//! A permutation test needs no model of how figures depend on each other. (Westfall, Young: Resampling-Based
//! Multiple Testing, 1993.)

use super::comparison::Comparison;
use super::figures::{self as compared, Row};
use super::range::{Difference, RUNS_FOR_SPREAD};
use crate::figures::Figure;
use crate::number::count;
use serde::Serialize;

/// How often a verdict may name a difference although there is none, over all configurations of a comparison.
pub(super) const SIGNIFICANCE: f64 = 0.05;
/// Up to so many assignments all are tried; of more, so many are drawn.
const MOST_ASSIGNMENTS: usize = 2_000;

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
    /// Neither.
    NoDifference,
    /// No figure has enough runs in both configurations.
    TooFewRuns,
}

impl Outcome {
    /// Whether any figure is worse.
    pub fn is_worse(self) -> bool {
        matches!(self, Outcome::Worse | Outcome::WorseAndBetter)
    }
}

/// A figure that is marked.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// `max cost of ctl`.
    name: String,
    difference: Difference,
    /// `800 µs, then 1.2 ms`.
    values: String,
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
}

/// The verdict on each configuration but the first.
pub(super) fn all(comparison: &Comparison) -> Vec<Verdict> {
    let others = 1..comparison.configurations.len();
    let significance = SIGNIFICANCE / others.len().max(1) as f64;
    others.map(|number| verdict(comparison, number, significance)).collect()
}

fn verdict(comparison: &Comparison, number: usize, significance: f64) -> Verdict {
    let [first, other] = [0, number].map(|number| &comparison.configurations[number].runs[..]);
    let runs = [first, other].concat();
    let (mut values, mut worse, mut better) = (Vec::new(), Vec::new(), Vec::new());
    for (figure, row, place, title) in figures(comparison) {
        let [before, after] =
            [0, number].map(|number| row.range(&comparison.configurations[number], place, figure));
        let (Some(before), Some(after)) = (before, after) else { continue };
        if !before.has_spread() || !after.has_spread() {
            continue;
        }
        values.push(runs.iter().map(|run| row.value(*run, place)).collect::<Vec<_>>());
        let difference = Difference::new(&before, &after);
        if difference.is_marked {
            let found = if before.greatest < after.least { &mut worse } else { &mut better };
            let values =
                format!("{}, then {}", compared::value(figure, &before), compared::value(figure, &after));
            found.push(Finding { name: format!("{title} of {}", row.name), difference, values });
        }
    }
    let mut verdict =
        Verdict { configuration: number, outcome: Outcome::TooFewRuns, tested: values.len(), worse, better };
    if !values.is_empty() {
        let marked = [verdict.worse.len(), verdict.better.len()];
        let chances = chances(&values, first.len(), marked);
        // Half for each direction.
        let is_found = |place: usize| marked[place] > 0 && chances[place] <= significance / 2.0;
        verdict.outcome = match (is_found(0), is_found(1)) {
            (true, true) => Outcome::WorseAndBetter,
            (true, false) => Outcome::Worse,
            (false, true) => Outcome::Better,
            (false, false) => Outcome::NoDifference,
        };
    }
    for findings in [&mut verdict.worse, &mut verdict.better] {
        findings.sort_by(|one, other| other.difference.factor().total_cmp(&one.difference.factor()));
    }
    verdict
}

/// All figures that can be worse or better, with their places and titles.
fn figures(comparison: &Comparison) -> impl Iterator<Item = (&'static Figure, &Row, usize, String)> {
    comparison.sections.iter().flat_map(|section| {
        let figures = section.table.figures().into_iter().enumerate();
        let directed: Vec<_> = figures.filter(|(_, figure)| section.table.less_is_better(figure)).collect();
        section.rows.iter().flat_map(move |row| {
            let figures = directed.clone().into_iter();
            figures.map(move |(place, figure)| (figure, row, place, section.table.title_of(figure)))
        })
    })
}

/// How likely chance marks at least so many figures as worse, and as better. `values` has a figure's value in
/// each run; the first `size` runs are those of the first configuration.
fn chances(values: &[Vec<Option<u64>>], size: usize, marked: [usize; 2]) -> [f64; 2] {
    let mut reached = [0_usize; 2];
    let mut tried = 0_usize;
    for is_first in assignments(values[0].len(), size) {
        tried += 1;
        let mut found = [0; 2];
        for figure in values {
            match direction(figure, &is_first) {
                Some(true) => found[0] += 1,
                Some(false) => found[1] += 1,
                None => {}
            }
        }
        for place in [0, 1] {
            reached[place] += usize::from(found[place] >= marked[place]);
        }
    }
    reached.map(|reached| reached as f64 / tried as f64)
}

/// Whether all values of the others are above (or below) those of the first, as `Range::is_apart` has it.
fn direction(figure: &[Option<u64>], is_first: &[bool]) -> Option<bool> {
    // Least, greatest and number of the others and of the first.
    let mut sides = [(u64::MAX, 0, 0); 2];
    for (value, is_first) in figure.iter().zip(is_first) {
        let Some(value) = value else { continue };
        let (least, greatest, runs) = &mut sides[usize::from(*is_first)];
        (*least, *greatest, *runs) = ((*value).min(*least), (*value).max(*greatest), *runs + 1);
    }
    let [others, first] = sides;
    if others.2 < RUNS_FOR_SPREAD || first.2 < RUNS_FOR_SPREAD {
        return None;
    }
    match (first.1 < others.0, others.1 < first.0) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Assignments of runs to the first configuration, the observed one among them: all, or of many a fixed
/// sample, so that the same runs have the same verdict.
fn assignments(runs: usize, size: usize) -> Vec<Vec<bool>> {
    let observed: Vec<bool> = (0..runs).map(|run| run < size).collect();
    let mut found = vec![observed.clone()];
    let mut next = observed.clone();
    while found.len() <= MOST_ASSIGNMENTS && previous_permutation(&mut next) {
        found.push(next.clone());
    }
    if found.len() <= MOST_ASSIGNMENTS {
        return found;
    }
    found.truncate(1);
    // splitmix64 (Steele, Lea, Flood: OOPSLA 2014)
    let mut state = 0_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    };
    while found.len() < MOST_ASSIGNMENTS {
        let mut shuffled = observed.clone();
        (1..runs).rev().for_each(|place| shuffled.swap(place, random(place + 1)));
        found.push(shuffled);
    }
    found
}

/// The next one in descending order; false if there is none.
fn previous_permutation(places: &mut [bool]) -> bool {
    let Some(pivot) = places.windows(2).rposition(|pair| pair[0] && !pair[1]) else { return false };
    let set = places[pivot + 1..].iter().filter(|place| **place).count();
    places[pivot] = false;
    let rest = &mut places[pivot + 1..];
    rest.iter_mut().enumerate().for_each(|(index, place)| *place = index <= set);
    true
}

/// A sentence on each configuration; a single one if no configuration has enough runs.
pub(super) fn sentences(comparison: &Comparison) -> Vec<String> {
    let verdicts = &comparison.verdicts;
    let label = |number: usize| &comparison.configurations[number].label;
    if verdicts.len() > 1 && verdicts.iter().all(|it| it.outcome == Outcome::TooFewRuns) {
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
        let part =
            |findings: &[Finding]| format!("{} of {tested} figures{}", findings.len(), above_all(findings));
        match self.outcome {
            Outcome::Worse => format!("{name} is worse than {reference} in {}.", part(&self.worse)),
            Outcome::Better => format!("{name} is better than {reference} in {}.", part(&self.better)),
            Outcome::WorseAndBetter => format!(
                "{name} is worse than {reference} in {}; it is better in {}.",
                part(&self.worse),
                part(&self.better)
            ),
            Outcome::NoDifference => {
                let marked = self.worse.len() + self.better.len();
                let why = match marked {
                    0 => String::new(),
                    1 => " One is marked, and chance alone may mark as many.".to_owned(),
                    _ => format!(" {marked} are marked, and chance alone may mark as many."),
                };
                format!(
                    "No difference found: {name} is neither worse nor better than {reference} ({tested} \
                     figures of {} and {} runs).{why}",
                    first.runs.len(),
                    other.runs.len()
                )
            }
            Outcome::TooFewRuns => format!(
                "Too few runs to tell whether {name} is better or worse than {reference}: {} and {}; it \
                 takes at least {RUNS_FOR_SPREAD} of each.",
                first.runs.len(),
                other.runs.len()
            ),
        }
    }
}

/// `, above all max cost of ctl (800 µs, then 1.2 ms, +50.0 %)`.
fn above_all(findings: &[Finding]) -> String {
    let Some(Finding { name, difference, values }) = findings.first() else { return String::new() };
    let between = if findings.len() == 1 { ":" } else { ", above all" };
    format!("{between} {name} ({values}, {})", difference.size())
}
