//! The figures that are compared: of each task, chain or thread, by name, in each run.

use super::Input;
use super::configuration::Configuration;
use super::range::{Range, Unit, Whole};
use crate::figure::{at_least, at_most, count, three_digits};
use crate::overview::primary;
use crate::percentiles;
use crate::visible;
use punctual_model::dataflow::{Chain, Dataflow, Distribution, FlowTask};
use punctual_model::{Duration, Quantiles, Stream, Task};
use std::collections::HashMap;

/// What a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Execution,
    Queuing,
    Reaction,
    Age,
    Threads,
    /// Of threads: skipped activations and extra releases.
    Slips,
    /// Of threads: percentiles.
    Lateness,
    Cost,
    Response,
}

/// A column of figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    /// As the table's head calls it.
    pub(super) title: &'static str,
    /// As programs know it.
    pub(super) field: &'static str,
    pub(super) whole: Whole,
    pub(super) unit: Unit,
    /// Whether it is shown to the nanosecond: a period is no measurement.
    is_exact: bool,
}

const fn figure(title: &'static str, field: &'static str, whole: Whole) -> Figure {
    Figure { title, field, whole, unit: Unit::Time, is_exact: false }
}

const MIN: Figure = figure("Min", "min_ns", Whole::Least);
const MEDIAN: Figure = figure("Median", "median_ns", Whole::Middle);
const MAX: Figure = figure("Max", "max_ns", Whole::Greatest);
const PERIOD: Figure = Figure { is_exact: true, ..figure("Period", "period_ns", Whole::Middle) };
const JITTER: Figure = figure("Jitter", "jitter_ns", Whole::Greatest);
const SKIPPED: Figure = Figure { unit: Unit::Count, ..figure("Skipped", "skipped", Whole::Greatest) };
const EXTRA: Figure = Figure { unit: Unit::Count, ..figure("Extra", "extra", Whole::Greatest) };
const PERCENTILES: [Figure; 4] = [
    figure("50 %", "p50_ns", Whole::Greatest),
    figure("90 %", "p90_ns", Whole::Greatest),
    figure("99 %", "p99_ns", Whole::Greatest),
    figure("99.9 %", "p999_ns", Whole::Greatest),
];
const WCET: Figure = figure("WCET", "wcet_ns", Whole::Greatest);
const RESPONSE: Figure = figure("Response", "response_ns", Whole::Greatest);

impl Figure {
    /// What stands for all runs.
    pub(super) fn text(&self, range: &Range) -> String {
        self.rounded(range.value)
    }

    /// From the least to the greatest of the runs; nothing of a single one.
    pub(super) fn spread(&self, range: &Range) -> String {
        match range.runs {
            1 => String::new(),
            _ => format!("{} – {}", self.rounded(range.least), self.rounded(range.greatest)),
        }
    }

    /// The same for every run, so that what is equal looks so; bounds are rounded to the safe side.
    fn rounded(&self, value: u64) -> String {
        let time = Duration::from_ns(value);
        let rounded = match self.whole {
            _ if self.unit == Unit::Count => return count(value),
            _ if self.is_exact => time,
            Whole::Least => at_least(time),
            // A median has no more digits.
            Whole::Middle => three_digits(time),
            Whole::Greatest => at_most(time),
        };
        rounded.to_string()
    }
}

impl Kind {
    pub(super) fn figures(self) -> &'static [Figure] {
        match self {
            Kind::Execution | Kind::Queuing => &[MEDIAN, MAX],
            Kind::Reaction | Kind::Age => &[MIN, MEDIAN, MAX],
            Kind::Threads => &[PERIOD, JITTER, WCET, RESPONSE],
            Kind::Slips => &[SKIPPED, EXTRA],
            Kind::Lateness | Kind::Cost | Kind::Response => &PERCENTILES,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Execution => "Execution times of tasks, from start to stop",
            Kind::Queuing => "Queuing times of tasks, from activation to start",
            Kind::Reaction => "End-to-end latency of chains: reaction time",
            Kind::Age => "End-to-end latency of chains: data age",
            Kind::Threads => "Threads",
            Kind::Slips => "Threads: activations that were skipped, releases that were extra",
            Kind::Lateness => "Threads: lateness, what so many of the releases do not exceed",
            Kind::Cost => "Threads: processor time, what so many of the jobs do not exceed",
            Kind::Response => "Threads: response time, what so many of the jobs do not exceed",
        }
    }

    /// What it has rows of.
    pub(super) fn subject(self) -> &'static str {
        match self {
            Kind::Execution | Kind::Queuing => "Task",
            Kind::Reaction | Kind::Age => "Chain",
            _ => "Thread",
        }
    }

    /// As programs know it.
    pub(super) fn field(self) -> &'static str {
        match self {
            Kind::Execution => "execution",
            Kind::Queuing => "queuing",
            Kind::Reaction => "reaction",
            Kind::Age => "age",
            Kind::Threads => "threads",
            Kind::Slips => "slips",
            Kind::Lateness => "lateness",
            Kind::Cost => "cost",
            Kind::Response => "response",
        }
    }
}

/// All tasks, chains or threads, and what each run says of them.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) kind: Kind,
    pub(super) rows: Vec<Row>,
}

/// A task, chain or thread.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// By run; none where it is missing there.
    pub(super) runs: Vec<Option<Sample>>,
}

/// What one run says of it.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// By [`Kind::figures`].
    values: Vec<Option<u64>>,
    /// For plots.
    pub(super) distribution: Option<Distribution>,
}

impl Section {
    /// Of what all inputs have.
    pub(super) fn all(inputs: &[Input]) -> Vec<Section> {
        let flows: Option<Vec<&Dataflow>> =
            inputs.iter().map(|input| input.model.dataflow.as_ref()).collect();
        let mut sections: Vec<Section> = Vec::new();
        if let Some(flows) = flows {
            let tasks = |of: fn(&FlowTask) -> Option<&Distribution>| {
                rows(flows.iter().map(|flow| {
                    flow.tasks
                        .iter()
                        .map(|task| (visible(&task.name), distributed(of(task), false)))
                        .collect()
                }))
            };
            let chains = |of: fn(&Chain) -> Option<&Distribution>| {
                rows(flows.iter().map(|flow| {
                    flow.chains.iter().map(|chain| (name(chain), distributed(of(chain), true))).collect()
                }))
            };
            sections.push(Section {
                kind: Kind::Execution,
                rows: tasks(|task| task.execution.as_ref().map(|times| &times.distribution)),
            });
            sections.push(Section {
                kind: Kind::Queuing,
                rows: tasks(|task| task.queuing.as_ref().map(|times| &times.distribution)),
            });
            sections.push(Section {
                kind: Kind::Reaction,
                rows: chains(|chain| chain.reaction.as_ref().map(|times| &times.distribution)),
            });
            sections.push(Section {
                kind: Kind::Age,
                rows: chains(|chain| chain.age.as_ref().map(|times| &times.distribution)),
            });
        }
        if inputs.iter().all(|input| !input.model.tasks.is_empty()) {
            let of = |kind| Section {
                kind,
                rows: rows(inputs.iter().map(|input| threads(&input.model.tasks, kind))),
            };
            sections.push(of(Kind::Threads));
            // Where there is something to say.
            let more = [Kind::Slips, Kind::Lateness, Kind::Cost, Kind::Response].map(of);
            sections.extend(more.into_iter().filter(Section::says_something));
        }
        sections
    }
}

impl Section {
    /// Whether any run has a figure that is not zero.
    fn says_something(&self) -> bool {
        let mut samples = self.rows.iter().flat_map(|row| row.runs.iter().flatten());
        samples.any(|sample| sample.values.iter().flatten().any(|value| *value > 0))
    }
}

impl Row {
    /// A figure, by its place in [`Kind::figures`], over the runs of a configuration.
    pub(super) fn range(
        &self,
        configuration: &Configuration,
        place: usize,
        figure: &Figure,
    ) -> Option<Range> {
        Range::of(
            configuration.runs.iter().filter_map(|run| self.value(*run, place)),
            figure.whole,
            figure.unit,
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

fn name(chain: &Chain) -> String {
    chain.tasks.iter().map(|task| visible(task)).collect::<Vec<_>>().join(" → ")
}

/// Of a task or chain that is there, but of which no instance was whole, there is no figure.
fn distributed(distribution: Option<&Distribution>, with_min: bool) -> Sample {
    let values = |of: &Distribution| match with_min {
        true => vec![Some(of.min_ns.ns()), Some(of.median_ns.ns()), Some(of.max_ns.ns())],
        false => vec![Some(of.median_ns.ns()), Some(of.max_ns.ns())],
    };
    Sample {
        values: distribution.map_or_else(|| vec![None; if with_min { 3 } else { 2 }], values),
        distribution: distribution.cloned(),
    }
}

/// Threads by name. Of several of one name, or several tasks of one thread, the one with the most jobs: what
/// a thread does for long.
fn threads(tasks: &[Task], kind: Kind) -> Vec<(String, Sample)> {
    let mut places = HashMap::new();
    let mut longest: Vec<(&Task, u64)> = Vec::new();
    for task in tasks {
        let jobs = primary(task).map_or(0, |stream| stream.jobs);
        let place = *places.entry(task.name.as_str()).or_insert(longest.len());
        match longest.get_mut(place) {
            Some(known) if known.1 < jobs => *known = (task, jobs),
            Some(_) => {}
            None => longest.push((task, jobs)),
        }
    }
    longest.into_iter().map(|(task, _)| (visible(&task.name), thread(primary(task), kind))).collect()
}

fn thread(stream: Option<&Stream>, kind: Kind) -> Sample {
    let periodic = stream.and_then(|stream| stream.arrival.periodic.as_ref());
    let percentiles = stream.and_then(|stream| stream.percentiles);
    let values = match kind {
        Kind::Slips => {
            vec![periodic.map(|periodic| periodic.skipped), periodic.map(|periodic| periodic.extra)]
        }
        Kind::Lateness => {
            quantiles(stream.and_then(|stream| percentiles::lateness(stream).and(percentiles?.lateness)))
        }
        Kind::Cost => quantiles(percentiles.and_then(|percentiles| percentiles.cost)),
        Kind::Response => quantiles(percentiles.and_then(|percentiles| percentiles.response)),
        _ => vec![
            periodic.map(|periodic| periodic.period_ns.ns()),
            periodic.map(|periodic| periodic.usual_jitter().ns()),
            stream.and_then(|stream| Some(stream.execution.as_ref()?.wcet_ns.first()?.ns())),
            stream.and_then(|stream| Some(stream.response.as_ref()?.max_ns.ns())),
        ],
    };
    Sample { values, distribution: None }
}

fn quantiles(quantiles: Option<Quantiles>) -> Vec<Option<u64>> {
    match quantiles {
        Some(quantiles) => quantiles.each().map(|(_, value)| Some(value.ns())).to_vec(),
        None => vec![None; PERCENTILES.len()],
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
