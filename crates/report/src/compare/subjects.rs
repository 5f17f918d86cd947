//! What can be compared, and in which tables: one entry each.

use crate::analysed::Analysed;
use crate::derived::primary;
use crate::figures::{
    self, Entry, Figure, Fit, Group, LATENCY, LatencyRow, PROCESSORS, THREADS, TIMES, ThreadRow, TimesRow,
    of_group,
};
use crate::visible;
use punctual_model::dataflow::{Chain, Distribution, FlowTask, Times};
use punctual_model::{Instant, Task, ThreadIds, TimingModel};
use std::collections::HashMap;

/// A part of a timing model that runs are compared by, if all of them have it.
pub(super) struct Subject {
    /// What a run has that has it.
    pub(super) what: &'static str,
    pub(super) is_in: fn(&TimingModel) -> bool,
    pub(super) tables: &'static [Table],
}

/// What one run says of a task, chain, thread or processor.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// By [`Table::figures`].
    pub(super) values: Vec<Option<u64>>,
    /// For plots.
    pub(super) distribution: Option<Distribution>,
}

/// The same, with its name.
type Named = (String, Sample);

/// The figures of a group.
type FiguresOf = fn(Group) -> Vec<&'static Figure>;

/// A table of the comparison.
#[derive(Debug)]
pub(super) struct Table {
    /// As programs know it.
    pub(super) field: &'static str,
    pub(super) title: &'static str,
    /// What it has rows of.
    pub(super) row: &'static str,
    /// How names of rows behave on a narrow page.
    pub(super) row_fit: Fit,
    /// How differences do.
    pub(super) difference_fit: Fit,
    group: Group,
    figures: FiguresOf,
    /// The rows of one run.
    pub(super) rows: fn(&TimingModel, &Table) -> Vec<Named>,
    /// What its figures are of, where their titles do not say it.
    noun: &'static str,
    /// The fields of figures of which neither more nor less is better.
    neutral: &'static [&'static str],
    /// Whether it is shown only if a figure is not zero.
    pub(super) is_optional: bool,
    /// Whether rows without any figure are left out.
    pub(super) hides_empty_rows: bool,
    /// What its last figure decides between configurations.
    pub(super) decision: Option<Decision>,
    /// What readers of all tables must know of it.
    pub(super) remark: Option<&'static str>,
}

/// What configurations are ranked by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) what: &'static str,
    /// Whether each property of configurations is decided, too.
    pub(super) has_properties: bool,
}

/// Everything that can be compared. What is shown first stands first.
pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        what: "a dataflow program",
        is_in: |model| model.dataflow.is_some(),
        tables: &[
            Table {
                difference_fit: Fit::Keep,
                noun: "execution",
                ..table(
                    "execution",
                    "Execution times of tasks, from start to stop",
                    ("Task", Group::Distribution, |group| figures_of(TIMES, group)),
                    |model, table| tasks(model, table, |task| task.execution.as_ref()),
                )
            },
            Table {
                difference_fit: Fit::Keep,
                noun: "queuing",
                ..table(
                    "queuing",
                    "Queuing times of tasks, from activation to start",
                    ("Task", Group::Distribution, |group| figures_of(TIMES, group)),
                    |model, table| tasks(model, table, |task| task.queuing.as_ref()),
                )
            },
            Table {
                noun: "reaction time",
                decision: Some(Decision { what: "reaction time", has_properties: true }),
                ..of_chains("reaction", "Latency of chains: reaction time", |model, table| {
                    chains(model, table, true)
                })
            },
            Table {
                noun: "data age",
                decision: Some(Decision { what: "data age", has_properties: false }),
                ..of_chains("age", "Latency of chains: data age", |model, table| chains(model, table, false))
            },
        ],
    },
    Subject {
        what: "threads",
        is_in: |model| !model.tasks().is_empty(),
        tables: &[
            Table {
                neutral: &["period_ns"],
                remark: Some(
                    "Threads are compared by name; of several with one name, the one with the most jobs. All \
                     figures are of its primary separator.",
                ),
                ..of_threads("threads", "Threads", Group::Threads)
            },
            Table {
                neutral: &["skipped", "extra"],
                is_optional: true,
                ..of_threads("slips", "Threads: skipped activations, extra releases", Group::Slips)
            },
            Table {
                is_optional: true,
                ..of_threads("lateness", "Threads: percentiles of lateness", Group::Lateness)
            },
            Table { is_optional: true, ..of_threads("cost", "Threads: percentiles of cost", Group::Cost) },
            Table {
                is_optional: true,
                ..of_threads("response", "Threads: percentiles of response time", Group::Response)
            },
        ],
    },
    Subject {
        what: "scheduling latencies",
        is_in: |model| model.latency.is_some(),
        tables: &[table(
            "latency",
            "Scheduling latency of processors",
            ("Processor", Group::SchedulingLatency, |group| figures_of(PROCESSORS, group)),
            processors,
        )],
    },
];

/// A table of times, of which less is better.
const fn table(
    field: &'static str,
    title: &'static str,
    (row, group, figures): (&'static str, Group, FiguresOf),
    rows: fn(&TimingModel, &Table) -> Vec<Named>,
) -> Table {
    Table {
        field,
        title,
        row,
        row_fit: Fit::Keep,
        difference_fit: Fit::Drop(2),
        group,
        figures,
        rows,
        noun: "",
        neutral: &[],
        is_optional: false,
        hides_empty_rows: false,
        decision: None,
        remark: None,
    }
}

const fn of_chains(
    field: &'static str,
    title: &'static str,
    rows: fn(&TimingModel, &Table) -> Vec<Named>,
) -> Table {
    let figures = ("Chain", Group::Chains, (|group| figures_of(LATENCY, group)) as FiguresOf);
    Table { row_fit: Fit::Fold, difference_fit: Fit::Keep, ..table(field, title, figures, rows) }
}

const fn of_threads(field: &'static str, title: &'static str, group: Group) -> Table {
    let figures = ("Thread", group, (|group| figures_of(THREADS, group)) as FiguresOf);
    Table { hides_empty_rows: true, ..table(field, title, figures, threads) }
}

impl Table {
    pub(super) fn figures(&self) -> Vec<&'static Figure> {
        (self.figures)(self.group)
    }

    pub(super) fn less_is_better(&self, figure: &Figure) -> bool {
        !self.neutral.contains(&figure.field)
    }

    /// The title of a figure within a sentence: `max cost`, `median execution`.
    pub(super) fn title_of(&self, figure: &Figure) -> String {
        let mut letters = figure.title.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        let title: String = first.into_iter().chain(letters).collect();
        format!("{title} {}", self.noun).trim_end().to_owned()
    }
}

fn figures_of<S: figures::Section>(list: &'static [Entry<S>], group: Group) -> Vec<&'static Figure> {
    of_group(list, group).map(|entry| &entry.figure).collect()
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
fn tasks(
    model: &TimingModel,
    table: &Table,
    times: for<'a> fn(&'a FlowTask) -> Option<&'a Times>,
) -> Vec<Named> {
    let sample = |task: &FlowTask| {
        let times = times(task);
        let row = TimesRow { task, kind: table.field, times, begin: Instant::default() };
        Sample {
            values: values(TIMES, table.group, &row),
            distribution: times.map(|times| times.distribution.clone()),
        }
    };
    let tasks = model.dataflow.iter().flat_map(|flow| &flow.tasks);
    tasks.map(|task| (visible(&task.name), sample(task))).collect()
}

fn chains(model: &TimingModel, table: &Table, is_reaction: bool) -> Vec<Named> {
    let Some(flow) = &model.dataflow else { return Vec::new() };
    let sample = |chain: &Chain| {
        let row = LatencyRow { flow, chain, is_reaction };
        Sample {
            values: values(LATENCY, table.group, &row),
            distribution: row.latency().map(|latency| latency.distribution.clone()),
        }
    };
    flow.chains.iter().map(|chain| (name(chain), sample(chain))).collect()
}

/// Threads by name. Of several of one name, or several tasks of one thread, the one with the most jobs: what
/// a thread does for long.
fn threads(model: &TimingModel, table: &Table) -> Vec<Named> {
    let ids = ThreadIds::new(model.tasks());
    let mut places = HashMap::new();
    let mut longest: Vec<(&Task, u64)> = Vec::new();
    for task in model.tasks() {
        let jobs = primary(task).map_or(0, |stream| stream.jobs);
        let place = *places.entry(task.name.as_str()).or_insert(longest.len());
        match longest.get_mut(place) {
            Some(known) if known.1 < jobs => *known = (task, jobs),
            Some(_) => {}
            None => longest.push((task, jobs)),
        }
    }
    let sample = |task: &Task| Sample {
        values: values(THREADS, table.group, &ThreadRow::new(&ids, task)),
        distribution: None,
    };
    longest.into_iter().map(|(task, _)| (visible(&task.name), sample(task))).collect()
}

fn processors(model: &TimingModel, table: &Table) -> Vec<Named> {
    let analysed = model.latency.as_ref().map(Analysed::all).unwrap_or_default();
    let sample = |processor: &Analysed<'_>| Sample {
        values: values(PROCESSORS, table.group, &processor),
        distribution: None,
    };
    let name = |processor: &Analysed<'_>| format!("CPU {}", processor.processor.cpu);
    analysed.iter().map(|processor| (name(processor), sample(processor))).collect()
}
