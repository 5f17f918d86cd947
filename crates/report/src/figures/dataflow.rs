//! Figures of dataflow programs: of tasks, of chains, and of executions as the kernel saw them.

use super::figure::Fit::{Below, Drop, Fold, Keep};
use super::figure::{Bound, Entry, Group, Note, Rounding, Section, Unit, Value, entry, since, some};
use punctual_model::dataflow::{ByKernel, Chain, Dataflow, Distribution, FlowTask, Latency, Times};
use punctual_model::{Duration, Instant};

/// The tasks of a dataflow program: one kind of time.
#[derive(Clone, Copy, Debug)]
pub struct DataflowTasks;

impl Section for DataflowTasks {
    type Row<'a> = TimesRow<'a>;
}

/// One kind of time of a task.
#[derive(Clone, Copy, Debug)]
pub struct TimesRow<'a> {
    /// The task.
    pub task: &'a FlowTask,
    /// Which kind: `execution`, `queuing`.
    pub kind: &'static str,
    /// Its times; none where no instance was whole.
    pub times: Option<&'a Times>,
    /// When the trace began.
    pub begin: Instant,
}

/// The chains of a dataflow program: one kind of latency.
#[derive(Clone, Copy, Debug)]
pub struct Chains;

impl Section for Chains {
    type Row<'a> = LatencyRow<'a>;
}

/// One kind of latency of a chain.
#[derive(Clone, Copy, Debug)]
pub struct LatencyRow<'a> {
    /// The program.
    pub flow: &'a Dataflow,
    /// The chain.
    pub chain: &'a Chain,
    /// Whether it is its reaction time; else its data age.
    pub is_reaction: bool,
}

impl<'a> LatencyRow<'a> {
    /// Its latencies; none where no datum arrived.
    pub fn latency(&self) -> Option<&'a Latency> {
        if self.is_reaction { self.chain.reaction.as_ref() } else { self.chain.age.as_ref() }
    }
}

/// What the kernel did with executors.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

impl Section for Kernel {
    type Row<'a> = KernelRow<'a>;
}

/// A task whose executions are split.
#[derive(Clone, Copy, Debug)]
pub struct KernelRow<'a> {
    /// The task.
    pub task: &'a FlowTask,
    /// Its executions by what the kernel did.
    pub parts: &'a ByKernel,
}

/// An end of a distribution: exact where all values are one.
fn end(distribution: &Distribution, value: Duration) -> Value {
    match distribution.min_ns == distribution.max_ns {
        true => Value::Exactly(value),
        false => Value::Time(value),
    }
}

/// A value between the ends: never beyond them as they are displayed.
fn inner(distribution: &Distribution, value: Duration) -> Value {
    let Distribution { min_ns, max_ns, .. } = *distribution;
    if min_ns == max_ns { Value::Exactly(min_ns) } else { Value::Between(min_ns, value, max_ns) }
}

macro_rules! of_times {
    ($($argument:expr),* ; $value:expr) => {
        task($($argument),*, |row| {
            let value: fn(&Distribution) -> Value = $value;
            row.times.map(|times| value(&times.distribution))
        })
    };
}

macro_rules! of_latency {
    ($($argument:expr),* ; $value:expr) => {
        chain($($argument),*, |row| {
            let value: fn(&Latency) -> Value = $value;
            row.latency().map(value)
        })
    };
}

const fn task(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&TimesRow<'a>) -> Option<Value>,
) -> Entry<DataflowTasks> {
    entry::<DataflowTasks>(field, title, unit, bound, meaning, value).page()
}

const fn chain(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&LatencyRow<'a>) -> Option<Value>,
) -> Entry<Chains> {
    entry::<Chains>(field, title, unit, bound, meaning, value).page()
}

const fn part(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&KernelRow<'a>) -> Option<Value>,
) -> Entry<Kernel> {
    entry::<Kernel>(field, title, unit, bound, meaning, value).page()
}

/// Every figure of a task's times.
pub const TIMES: &[Entry<DataflowTasks>] = &[
    task("task", "Task", Unit::Words, Bound::Exact, "The task's name.", |row| {
        Some(Value::Text(row.task.name.clone()))
    })
    .table(Keep),
    task(
        "time",
        "Time",
        Unit::Words,
        Bound::Exact,
        "Execution: from start to stop. Queuing: from activation to start.",
        |row| Some(Value::Word(row.kind)),
    ),
    task(
        "instances",
        "Instances",
        Unit::Count,
        Bound::Exact,
        "Instances whose activation, start and stop are in the trace.",
        |row| Some(Value::Count(row.task.executions)),
    )
    .table(Keep),
    of_times!("min_ns", "Min", Unit::Time, Bound::Lower, "The least.";
        |distribution| end(distribution, distribution.min_ns))
    .table(Keep),
    of_times!("quartile_1_ns", "Quartile 1", Unit::Time, Bound::Estimate, "A quarter takes at most this.";
        |distribution| inner(distribution, distribution.quartile_1_ns))
    .rounded(Rounding::ThreeDigits)
    .table(Drop(7)),
    of_times!("median_ns", "Median", Unit::Time, Bound::Estimate, "Half of them take at most this.";
        |distribution| inner(distribution, distribution.median_ns))
    .rounded(Rounding::ThreeDigits)
    .table(Keep)
    .compared(Group::Distribution),
    of_times!("quartile_3_ns", "Quartile 3", Unit::Time, Bound::Estimate, "Three quarters take at most this.";
        |distribution| inner(distribution, distribution.quartile_3_ns))
    .rounded(Rounding::ThreeDigits)
    .table(Drop(6)),
    task("mean_ns", "Mean", Unit::Time, Bound::Estimate, "The mean.", |row| {
        let distribution = &row.times?.distribution;
        Some(inner(distribution, distribution.mean_ns?))
    })
    .table(Drop(4)),
    task("p95_ns", "p95", Unit::Time, Bound::Estimate, "95 % of them take at most this.", |row| {
        let distribution = &row.times?.distribution;
        Some(inner(distribution, distribution.p95_ns?))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(10)),
    task("p99_ns", "p99", Unit::Time, Bound::Estimate, "99 % of them take at most this.", |row| {
        let distribution = &row.times?.distribution;
        Some(inner(distribution, distribution.p99_ns?))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(3)),
    task("p999_ns", "p99.9", Unit::Time, Bound::Estimate, "99.9 % of them take at most this.", |row| {
        let distribution = &row.times?.distribution;
        Some(inner(distribution, distribution.p999_ns?))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(11)),
    of_times!("max_ns", "Max", Unit::Time, Bound::Upper, "The greatest.";
        |distribution| end(distribution, distribution.max_ns))
    .table(Keep)
    .compared(Group::Distribution),
    task(
        "worst_instance",
        "Worst instance",
        Unit::Count,
        Bound::Exact,
        "The first instance that took the greatest time.",
        |row| Some(Value::Number(row.times?.worst.instance)),
    )
    .table(Drop(8)),
    task(
        "worst_at",
        "At",
        Unit::Instant,
        Bound::Exact,
        "When that time began, counted from the beginning of the trace.",
        |row| Some(since(row.begin, row.times?.worst.at_ns)),
    )
    .table(Drop(9)),
    task("notes", "Notes", Unit::Notes, Bound::Exact, "What the figures leave out.", |row| {
        Some(Value::Notes(task_notes(row.task)))
    })
    .table(Below),
];

/// Every figure of a chain's latencies.
pub const LATENCY: &[Entry<Chains>] = &[
    chain("chain", "Chain", Unit::Words, Bound::Exact, "Its tasks, from source to sink.", |row| {
        Some(Value::Path(row.chain.tasks.clone()))
    })
    .table(Fold),
    chain(
        "latency",
        "Latency",
        Unit::Words,
        Bound::Exact,
        "Reaction: from a source's activation to the end of the first sink instance that has read its datum \
         or a later one. Age: from the activation of the source of the newest datum that a sink instance has \
         read to its end.",
        |row| Some(Value::Word(if row.is_reaction { "reaction" } else { "age" })),
    )
    .table(Keep),
    chain("count", "Count", Unit::Count, Bound::Exact, "How many there are.", |row| {
        Some(Value::Count(row.latency().map_or(0, |latency| latency.distribution.count)))
    })
    .table(Keep),
    of_latency!("min_ns", "Min", Unit::Time, Bound::Lower, "The least.";
        |latency| end(&latency.distribution, latency.distribution.min_ns))
    .table(Drop(2))
    .compared(Group::Chains),
    of_latency!("quartile_1_ns", "Quartile 1", Unit::Time, Bound::Estimate, "A quarter takes at most this.";
        |latency| inner(&latency.distribution, latency.distribution.quartile_1_ns))
    .rounded(Rounding::ThreeDigits)
    .table(Drop(8)),
    of_latency!("median_ns", "Median", Unit::Time, Bound::Estimate, "Half of them take at most this.";
        |latency| inner(&latency.distribution, latency.distribution.median_ns))
    .rounded(Rounding::ThreeDigits)
    .table(Keep)
    .compared(Group::Chains),
    of_latency!("quartile_3_ns", "Quartile 3", Unit::Time, Bound::Estimate,
        "Three quarters take at most this.";
        |latency| inner(&latency.distribution, latency.distribution.quartile_3_ns))
    .rounded(Rounding::ThreeDigits)
    .table(Drop(7)),
    chain("mean_ns", "Mean", Unit::Time, Bound::Estimate, "The mean.", |row| {
        let distribution = &row.latency()?.distribution;
        Some(inner(distribution, distribution.mean_ns?))
    })
    .table(Drop(3)),
    chain("p95_ns", "p95", Unit::Time, Bound::Estimate, "95 % of them take at most this.", |row| {
        let distribution = &row.latency()?.distribution;
        Some(inner(distribution, distribution.p95_ns?))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(9)),
    chain("p99_ns", "p99", Unit::Time, Bound::Estimate, "99 % of them take at most this.", |row| {
        let distribution = &row.latency()?.distribution;
        Some(inner(distribution, distribution.p99_ns?))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(1)),
    chain("p999_ns", "p99.9", Unit::Time, Bound::Estimate, "99.9 % of them take at most this.", |row| {
        let distribution = &row.latency()?.distribution;
        Some(inner(distribution, distribution.p999_ns?))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(10)),
    of_latency!("max_ns", "Max", Unit::Time, Bound::Upper, "The greatest.";
        |latency| end(&latency.distribution, latency.distribution.max_ns))
    .table(Keep)
    .compared(Group::Chains),
    of_latency!("queuing_ns", "= queuing", Unit::Time, Bound::Upper,
        "How much of the greatest was waiting for an executor, or behind earlier data.";
        |latency| Value::Time(latency.worst.queuing_ns))
    .table(Drop(4)),
    of_latency!("execution_ns", "+ execution", Unit::Time, Bound::Upper,
        "How much of the greatest was execution.";
        |latency| Value::Time(latency.worst.execution_ns))
    .table(Drop(5)),
    of_latency!("waiting_ns", "+ waiting", Unit::Time, Bound::Upper,
        "How much of the greatest was waiting on a channel for other data.";
        |latency| Value::Time(latency.worst.waiting_ns))
    .table(Drop(6)),
    chain(
        "not_followed",
        "Not followed",
        Unit::Notes,
        Bound::Exact,
        "Data that the figures leave out.",
        |row| {
            let (sources, sinks) = missing(row.flow, row.chain);
            Some(Value::Notes(if row.is_reaction { sources } else { sinks }))
        },
    )
    .table(Fold),
];

macro_rules! of_part {
    ($part:ident, $name:literal, $meaning:literal) => {
        [
            part(
                concat!($name, "_median_ns"),
                concat!("Median ", $name),
                Unit::Time,
                Bound::Estimate,
                concat!("Time ", $meaning, ": half of the executions have at most this."),
                |row| Some(inner(&row.parts.$part, row.parts.$part.median_ns)),
            )
            .rounded(Rounding::ThreeDigits)
            .table(Keep),
            part(
                concat!($name, "_mean_ns"),
                concat!("Mean ", $name),
                Unit::Time,
                Bound::Estimate,
                concat!("Time ", $meaning, ": the mean."),
                |row| Some(inner(&row.parts.$part, row.parts.$part.mean_ns?)),
            )
            .table(Drop(3)),
            part(
                concat!($name, "_p99_ns"),
                concat!("p99 ", $name),
                Unit::Time,
                Bound::Estimate,
                concat!("Time ", $meaning, ": 99 % of the executions have at most this."),
                |row| Some(inner(&row.parts.$part, row.parts.$part.p99_ns?)),
            )
            .rounded(Rounding::ThreeDigits)
            .table(Drop(2)),
            part(
                concat!($name, "_max_ns"),
                concat!("Max ", $name),
                Unit::Time,
                Bound::Upper,
                concat!("Time ", $meaning, ": the greatest."),
                |row| Some(end(&row.parts.$part, row.parts.$part.max_ns)),
            )
            .table(Keep),
        ]
    };
}

const RUNNING: [Entry<Kernel>; 4] = of_part!(running, "running", "on a processor");
const PREEMPTED: [Entry<Kernel>; 4] = of_part!(preempted, "preempted", "ready, without a processor");
const SUSPENDED: [Entry<Kernel>; 4] = of_part!(suspended, "suspended", "waiting for something");

/// Every figure of executions by what the kernel did; the parts of an execution sum up to it.
pub const SPLIT: &[Entry<Kernel>] = &[
    part("task", "Task", Unit::Words, Bound::Exact, "The task's name.", |row| {
        Some(Value::Text(row.task.name.clone()))
    })
    .table(Keep),
    part(
        "executions",
        "Executions",
        Unit::Count,
        Bound::Exact,
        "Executions that the recording fully covers.",
        |row| Some(Value::Count(row.parts.executions)),
    )
    .table(Keep),
    part(
        "not_split",
        "Not split",
        Unit::Count,
        Bound::Exact,
        "Executions that the recording does not fully cover.",
        |row| Some(Value::Count(row.task.executions.saturating_sub(row.parts.executions))),
    )
    .table(Drop(1)),
    RUNNING[0],
    RUNNING[1],
    RUNNING[2],
    RUNNING[3],
    PREEMPTED[0],
    PREEMPTED[1],
    PREEMPTED[2],
    PREEMPTED[3],
    SUSPENDED[0],
    SUSPENDED[1],
    SUSPENDED[2],
    SUSPENDED[3],
];

/// What is not in the figures. Numbers are known modulo 2¹⁴ alone: of a long gap, more may be missing.
fn task_notes(task: &FlowTask) -> Vec<Note> {
    let mut notes = some(&[(task.in_flight, "not ended"), (task.incomplete, "incomplete")]);
    if task.missing_activations > 0 {
        notes.push(Note::AtLeast(task.missing_activations, "missing"));
    }
    notes
}

/// What is not in the figures: of sources, and of sinks. An instance of the source that is not whole may have
/// put a datum on the chain that the trace does not show.
fn missing(flow: &Dataflow, chain: &Chain) -> (Vec<Note>, Vec<Note>) {
    let mut sources = some(&[
        (chain.in_flight, "on the way"),
        (chain.lost, "lost"),
        (chain.incomplete, "incomplete"),
        (chain.overtaken, "overtaken"),
    ]);
    let source = chain.tasks.first().and_then(|name| flow.tasks.iter().find(|task| task.name == *name));
    sources.extend(source.iter().flat_map(|task| {
        task_notes(task).into_iter().map(|note| Note::About(task.name.clone(), Box::new(note)))
    }));
    let sinks = some(&[
        (chain.sinks_in_flight, "not ended"),
        (chain.sinks_lost, "lost"),
        (chain.sinks_incomplete, "incomplete"),
    ]);
    (sources, sinks)
}
