//! The figures that are compared: of each task, chain or thread, by name, in each run.

use super::configuration::Configuration;
use super::input::Input;
use super::range::{Range, Unit, Whole};
use crate::derived::primary;
use crate::figures::{
    self, Bound, Entry, Figure, Group, LATENCY, LatencyRow, PROCESSORS, THREADS, TIMES, ThreadRow, TimesRow,
    Value, of_group,
};
use crate::latency::Analysed;
use crate::{text, visible};
use punctual_model::dataflow::{Chain, Dataflow, Distribution, FlowTask};
use punctual_model::{Duration, Instant, SchedulingLatency, Task};
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
    /// Of processors: bounds and measured latencies.
    Latency,
}

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

impl Kind {
    /// The figures of its table.
    pub(super) fn figures(self) -> Vec<&'static Figure> {
        let group = self.group();
        match self {
            Kind::Execution | Kind::Queuing => of_group(TIMES, group).map(|entry| &entry.figure).collect(),
            Kind::Reaction | Kind::Age => of_group(LATENCY, group).map(|entry| &entry.figure).collect(),
            Kind::Latency => of_group(PROCESSORS, group).map(|entry| &entry.figure).collect(),
            _ => of_group(THREADS, group).map(|entry| &entry.figure).collect(),
        }
    }

    fn group(self) -> Group {
        match self {
            Kind::Execution | Kind::Queuing => Group::Distribution,
            Kind::Reaction | Kind::Age => Group::Chains,
            Kind::Threads => Group::Threads,
            Kind::Slips => Group::Slips,
            Kind::Lateness => Group::Lateness,
            Kind::Cost => Group::Cost,
            Kind::Response => Group::Response,
            Kind::Latency => Group::SchedulingLatency,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Execution => "Execution times of tasks, from start to stop",
            Kind::Queuing => "Queuing times of tasks, from activation to start",
            Kind::Reaction => "End-to-end latency of chains: reaction time",
            Kind::Age => "End-to-end latency of chains: data age",
            Kind::Threads => "Threads",
            Kind::Slips => "Threads: skipped activations, extra releases",
            Kind::Lateness => "Threads: percentiles of lateness",
            Kind::Cost => "Threads: percentiles of cost",
            Kind::Response => "Threads: percentiles of response time",
            Kind::Latency => "Scheduling latency of processors",
        }
    }

    /// What it has rows of.
    pub(super) fn subject(self) -> &'static str {
        match self {
            Kind::Execution | Kind::Queuing => "Task",
            Kind::Reaction | Kind::Age => "Chain",
            Kind::Latency => "Processor",
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
            Kind::Latency => "latency",
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
            for kind in [Kind::Execution, Kind::Queuing] {
                sections.push(Section { kind, rows: rows(flows.iter().map(|flow| tasks(flow, kind))) });
            }
            for kind in [Kind::Reaction, Kind::Age] {
                sections.push(Section { kind, rows: rows(flows.iter().map(|flow| chains(flow, kind))) });
            }
        }
        if inputs.iter().all(|input| !input.model.tasks().is_empty()) {
            let of = |kind| Section {
                kind,
                rows: rows(inputs.iter().map(|input| threads(input.model.tasks(), kind))),
            };
            let mut threads = of(Kind::Threads);
            threads.complete_max_jitter();
            sections.push(threads);
            // Where there is something to say.
            let more = [Kind::Slips, Kind::Lateness, Kind::Cost, Kind::Response].map(of);
            sections.extend(more.into_iter().filter(Section::says_something));
        }
        if inputs.iter().all(|input| input.model.latency.is_some()) {
            let runs = inputs.iter().filter_map(|input| input.model.latency.as_ref());
            sections.push(Section { kind: Kind::Latency, rows: rows(runs.map(processors)) });
        }
        sections
    }
}

impl Section {
    /// The greatest jitter is a figure only where it exceeds the usual one. Beside a run where it does, it is
    /// to be compared in the others too.
    fn complete_max_jitter(&mut self) {
        let place = |field| self.kind.figures().iter().position(|figure| figure.field == field);
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
    /// A figure, by its place in [`Kind::figures`], over the runs of a configuration.
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

fn name(chain: &Chain) -> String {
    chain.tasks.iter().map(|task| visible(task)).collect::<Vec<_>>().join(" → ")
}

/// The values of the figures of a group in one row.
fn values<S: figures::Section>(
    list: &'static [Entry<S>],
    group: Group,
    row: &S::Row<'_>,
) -> Vec<Option<u64>> {
    of_group(list, group).map(|entry| (entry.value)(row).and_then(|value| value.number())).collect()
}

/// A task that is there, but of which no instance was whole, has no figures.
fn tasks(flow: &Dataflow, kind: Kind) -> Vec<(String, Sample)> {
    let sample = |task: &FlowTask| {
        let (kind_name, times) = match kind {
            Kind::Execution => ("execution", task.execution.as_ref()),
            _ => ("queuing", task.queuing.as_ref()),
        };
        let row = TimesRow { task, kind: kind_name, times, begin: Instant::default() };
        Sample {
            values: values(TIMES, kind.group(), &row),
            distribution: times.map(|times| times.distribution.clone()),
        }
    };
    flow.tasks.iter().map(|task| (visible(&task.name), sample(task))).collect()
}

fn chains(flow: &Dataflow, kind: Kind) -> Vec<(String, Sample)> {
    let sample = |chain: &Chain| {
        let row = LatencyRow { flow, chain, is_reaction: kind == Kind::Reaction };
        Sample {
            values: values(LATENCY, kind.group(), &row),
            distribution: row.latency().map(|latency| latency.distribution.clone()),
        }
    };
    flow.chains.iter().map(|chain| (name(chain), sample(chain))).collect()
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
    let sample = |task: &Task| Sample {
        values: values(THREADS, kind.group(), &ThreadRow::new(tasks, task)),
        distribution: None,
    };
    longest.into_iter().map(|(task, _)| (visible(&task.name), sample(task))).collect()
}

fn processors(latency: &SchedulingLatency) -> Vec<(String, Sample)> {
    let sample = |of: &Analysed<'_>| Sample {
        values: values(PROCESSORS, Group::SchedulingLatency, &of),
        distribution: None,
    };
    let name = |of: &Analysed<'_>| format!("CPU {}", of.processor.cpu);
    Analysed::all(latency).iter().map(|of| (name(of), sample(of))).collect()
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
