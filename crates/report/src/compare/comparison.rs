//! The comparison as values.

use super::configuration::{self, By, Configuration, Grouping};
use super::figures::Section;
use super::input::{Input, NothingInCommon};
use super::range::RUNS_FOR_SPREAD;
use super::subjects::{SUBJECTS, Subject};
use super::verdict::{self, Outcome, Verdict};

/// Runs by configuration, and their figures side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the runs are called, by number.
    pub(super) names: Vec<String>,
    /// In the order of their first runs; all others are compared with the first.
    pub(super) configurations: Vec<Configuration>,
    pub(super) sections: Vec<Section>,
    pub(super) grouping: Grouping,
    /// What is missing in runs, in words.
    pub(super) lacking: Vec<String>,
    /// What releases the jobs of threads with several rates, bursts or modes, in words.
    pub(super) arrivals: Vec<String>,
    /// On each configuration but the first.
    pub(super) verdicts: Vec<Verdict>,
}

impl Comparison {
    /// Compares dataflow programs if all inputs have one, threads if all have some, and scheduling latency if
    /// all have it. Inputs that agree in `by` are runs of one configuration; without any, those that agree in
    /// program, platform, policy and executors, and of threads each is one of its own.
    ///
    /// # Errors
    /// If there is nothing that all inputs have.
    pub fn new(inputs: &[Input], by: &[By]) -> Result<Comparison, NothingInCommon> {
        let sections = Section::all(inputs);
        if sections.is_empty() {
            let first = |subject: &Subject| inputs.iter().position(|input| (subject.is_in)(&input.model));
            let found = SUBJECTS.iter().map(|subject| (subject.what, first(subject)));
            return Err(NothingInCommon(found.collect()));
        }
        let grouping = Grouping::new(inputs, by);
        let configurations = Configuration::all(inputs, &grouping);
        let mut comparison = Comparison {
            names: configuration::names(inputs),
            arrivals: super::arrivals::all(inputs, &configurations),
            configurations,
            sections,
            grouping,
            lacking: configuration::lacking(inputs),
            verdicts: Vec::new(),
        };
        comparison.verdicts = verdict::all(&comparison);
        Ok(comparison)
    }

    /// How each configuration but the first compares with the first.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        self.verdicts.iter().map(|verdict| verdict.outcome)
    }

    /// The verdict: a sentence on each configuration, or one on all.
    pub fn verdict(&self) -> Vec<String> {
        verdict::sentences(self)
    }

    /// Whether there are two configurations with a spread each, without which nothing is marked.
    pub(super) fn has_spreads(&self) -> bool {
        let has_spread = |configuration: &&Configuration| configuration.runs.len() >= RUNS_FOR_SPREAD;
        self.configurations.iter().filter(has_spread).count() > 1
    }
}
