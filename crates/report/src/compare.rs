//! Two or more runs of a program side by side: which policy, how many executors, which platform. (papers:
//! Jungmann et al., ERTS 2024, Section VII.)
//!
//! Runs of one configuration show how much a figure changes by itself: its spread, the range over them. A
//! difference between configurations is marked where the ranges do not overlap. A single run has no spread,
//! and no difference to it is marked.

mod boxes;
mod configuration;
mod decisions;
mod document;
mod figures;
mod json;
mod range;
mod table;
#[cfg(test)]
mod tests;

pub use configuration::By;

use crate::Page;
use configuration::{Configuration, Grouping};
use figures::Section;
use punctual_model::TimingModel;

/// A run that is compared: its model, and what the user calls it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its file or folder, for people.
    pub name: String,
    /// What was made of it.
    pub model: TimingModel,
}

/// Why inputs cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingInCommon {
    /// The first input with a dataflow program, by number.
    pub flow: Option<usize>,
    /// The first input with threads.
    pub threads: Option<usize>,
    /// The first input with scheduling latencies.
    pub latency: Option<usize>,
}

/// Runs by configuration, and their figures side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the runs are called, by number.
    names: Vec<String>,
    /// In the order of their first runs; all others are compared with the first.
    configurations: Vec<Configuration>,
    sections: Vec<Section>,
    grouping: Grouping,
    /// What is missing in runs, in words.
    lacking: Vec<String>,
}

impl Comparison {
    /// Compares dataflow programs if all inputs have one, threads if all have some, and scheduling latency if
    /// all have it. Inputs that agree in
    /// `by` are runs of one configuration; without any, those that agree in program, platform, policy and
    /// executors, and of threads each is one of its own.
    ///
    /// # Errors
    /// If there is nothing that all inputs have.
    pub fn new(inputs: &[Input], by: &[By]) -> Result<Comparison, NothingInCommon> {
        let sections = Section::all(inputs);
        if sections.is_empty() {
            return Err(NothingInCommon {
                flow: inputs.iter().position(|input| input.model.dataflow.is_some()),
                threads: inputs.iter().position(|input| !input.model.tasks().is_empty()),
                latency: inputs.iter().position(|input| input.model.latency.is_some()),
            });
        }
        let grouping = Grouping::new(inputs, by);
        Ok(Comparison {
            names: configuration::names(inputs),
            configurations: Configuration::all(inputs, &grouping),
            sections,
            grouping,
            lacking: configuration::lacking(inputs),
        })
    }

    /// Tables, and what they say about each decision.
    pub fn text(&self, page: &Page) -> String {
        table::text(self, page)
    }

    /// A page of its own with box plots, which needs nothing else and no network.
    pub fn html(&self) -> String {
        document::page(self)
    }

    /// All of it for programs: `docs/compare.md`.
    pub fn json(&self) -> String {
        json::json(self)
    }

    /// Whether there are two configurations with a spread each, without which nothing is marked.
    fn has_spreads(&self) -> bool {
        let has_spread = |configuration: &&Configuration| configuration.runs.len() >= range::RUNS_FOR_SPREAD;
        self.configurations.iter().filter(has_spread).count() > 1
    }
}
