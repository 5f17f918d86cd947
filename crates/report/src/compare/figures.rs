//! The figures that are compared: of each task, chain or thread, by name, in each run.

use super::configuration::Configuration;
use super::input::Input;
use super::range::{Range, Unit, Whole};
use super::subjects::{SUBJECTS, Sample, Subject, Table};
use crate::figures::{self, Bound, Figure, Group, Value};
use crate::text;
use punctual_model::Duration;
use std::collections::HashMap;

/// What stands for all runs, by what the figure bounds.
pub(super) fn whole(figure: &Figure) -> Whole {
    match figure.bound {
        Bound::Upper => Whole::Greatest,
        Bound::Lower => Whole::Least,
        Bound::Estimate => Whole::Middle,
        Bound::Exact if figure.unit == figures::Unit::Count => Whole::Greatest,
        // What holds for all runs.
        Bound::Exact if figure.compared == Some(Group::SchedulingLatency) => Whole::Greatest,
        Bound::Exact => Whole::Middle,
    }
}

/// The value that stands for all runs.
pub(super) fn value(figure: &Figure, range: &Range) -> String {
    rounded(figure, range.value)
}

/// From the least to the greatest of the runs; nothing of a single one.
pub(super) fn spread(figure: &Figure, range: &Range) -> String {
    match range.runs {
        1 => String::new(),
        _ => format!("{} – {}", rounded(figure, range.least), rounded(figure, range.greatest)),
    }
}

/// The same for every run, so that equal values look equal.
fn rounded(figure: &Figure, number: u64) -> String {
    let value = match figure.unit {
        figures::Unit::Count => Value::Count(number),
        _ => Value::Time(Duration::from_ns(number)),
    };
    text::value(&value, figure.rounding)
}

/// A table, and its rows: all tasks, chains, threads or processors, with what each run says of them.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) table: &'static Table,
    pub(super) rows: Vec<Row>,
}

/// A task, chain, thread or processor.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// By run; none where it is missing there.
    pub(super) runs: Vec<Option<Sample>>,
}

impl Section {
    /// Of what all inputs have.
    pub(super) fn all(inputs: &[Input]) -> Vec<Section> {
        let is_in_all = |subject: &&Subject| inputs.iter().all(|input| (subject.is_in)(&input.model));
        let tables = SUBJECTS.iter().filter(is_in_all).flat_map(|subject| subject.tables);
        let sections = tables.map(|table| {
            let rows = rows(inputs.iter().map(|input| (table.rows)(&input.model, table)));
            let mut section = Section { table, rows };
            section.complete_max_jitter();
            if table.hides_empty_rows {
                section.rows.retain(Row::has_figures);
            }
            section
        });
        sections.filter(|section| !section.table.is_optional || section.says_something()).collect()
    }
}

impl Section {
    /// The greatest jitter is a figure only where it exceeds the usual one. Beside a run where it does, it is
    /// to be compared in the others too.
    fn complete_max_jitter(&mut self) {
        let place = |field| self.table.figures().iter().position(|figure| figure.field == field);
        let (Some(usual), Some(max)) = (place("jitter_ns"), place("max_jitter_ns")) else { return };
        for row in &mut self.rows {
            if row.runs.iter().flatten().any(|sample| sample.values[max].is_some()) {
                for sample in row.runs.iter_mut().flatten() {
                    sample.values[max] = sample.values[max].or(sample.values[usual]);
                }
            }
        }
    }

    /// Whether any run has a figure that is not zero.
    fn says_something(&self) -> bool {
        let mut samples = self.rows.iter().flat_map(|row| row.runs.iter().flatten());
        samples.any(|sample| sample.values.iter().flatten().any(|value| *value > 0))
    }
}

impl Row {
    /// Whether any run has a figure of it: a thread without jobs has none.
    fn has_figures(&self) -> bool {
        self.runs.iter().flatten().any(|sample| sample.values.iter().any(Option::is_some))
    }

    /// A figure, by its place in [`Table::figures`], over the runs of a configuration.
    pub(super) fn range(
        &self,
        configuration: &Configuration,
        place: usize,
        figure: &Figure,
    ) -> Option<Range> {
        Range::over(
            configuration.runs.iter().filter_map(|run| self.value(*run, place)),
            whole(figure),
            if figure.unit == figures::Unit::Count { Unit::Count } else { Unit::Time },
        )
    }

    /// A figure of one run.
    pub(super) fn value(&self, run: usize, figure: usize) -> Option<u64> {
        self.runs[run].as_ref().and_then(|sample| sample.values[figure])
    }

    /// In how many runs of a configuration it is.
    pub(super) fn present(&self, configuration: &Configuration) -> usize {
        configuration.runs.iter().filter(|run| self.runs[**run].is_some()).count()
    }
}

/// Puts what is called the same in one row, in the order of first mention.
fn rows(runs: impl Iterator<Item = Vec<(String, Sample)>>) -> Vec<Row> {
    let runs: Vec<Vec<(String, Sample)>> = runs.collect();
    let mut places = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    let count = runs.len();
    for (run, samples) in runs.into_iter().enumerate() {
        for (name, sample) in samples {
            let place = *places.entry(name.clone()).or_insert_with(|| {
                rows.push(Row { name, runs: vec![None; count] });
                rows.len() - 1
            });
            rows[place].runs[run].get_or_insert(sample);
        }
    }
    rows
}
