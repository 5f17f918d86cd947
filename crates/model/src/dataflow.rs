//! The section `dataflow`: the graph of a dataflow program, its tasks and its chains.
//!
//! Tasks and channels are named, and no two of a kind share a name. (papers: Jungmann et al., ERTS 2024,
//! Section V.)

mod samples;
mod section;
mod validate;

use crate::arrival::Arrival;
use crate::section::is_zero;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// A dataflow program, as seen in its trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dataflow {
    /// Time of the first event of the trace.
    pub from_ns: Instant,
    /// Time of its last event.
    pub until_ns: Instant,
    /// The program's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// Operating system and processor, as text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub platform: Option<String>,
    /// Scheduling policy: `fifo`, `lifo`, `priority`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<String>,
    /// Number of executors.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub executors: Option<u32>,
    /// Events in the trace.
    pub events: u64,
    /// Events that the tracer discarded because its buffers were full.
    pub discarded_events: u64,
    /// Packets that are missing from the trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub missing_packets: u64,
    /// Damaged packets, left out wholly or in part.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub damaged_packets: u64,
    /// How the connections of channels and tasks are known; absent in older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connections: Option<Connections>,
    /// Where tasks or connections may be missing, as the trace says.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub openings: Vec<Opening>,
    /// Channels, by number.
    pub channels: Vec<Channel>,
    /// Tasks, by number.
    pub tasks: Vec<FlowTask>,
    /// Chains, as requested or found.
    pub chains: Vec<Chain>,
    /// Whether there are too many paths from sources to sinks to analyse all: chains must be requested.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub chains_omitted: bool,
}

/// How the connections of channels and tasks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// The program declares all.
    Declared,
    /// Each input was seen when it was notified of a push.
    Seen,
    /// From which pushes activated which tasks: an input whose data never arrives last is not found, unless
    /// it is declared.
    Inferred,
}

/// Tasks before or after which there may be others that the trace does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Why, for people.
    pub why: String,
    /// Others may lead to these tasks.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<String>,
    /// These tasks may lead to others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub behind: Vec<String>,
}

/// A channel: the tasks that push to it, and those that its data can activate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// Its name; no other channel has it.
    pub name: String,
    /// Its number in the trace.
    pub id: u32,
    /// Pushes in the trace.
    pub pushes: u64,
    /// Pushes that are missing from the trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub missing_pushes: u64,
    /// Pushes from outside any task: by timers, or the program itself.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub from_outside: u64,
    /// Pushes whose task is unknown, because earlier events are missing.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub from_unknown: u64,
    /// Tasks that push to it.
    pub pushed_by: Vec<PushedBy>,
    /// Tasks that its data can activate.
    pub activates: Vec<Activates>,
    /// Whether it notifies its inputs only when a number of pushes is complete.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub barrier: bool,
}

impl Channel {
    /// Whether tasks push to it and no task is known to read it.
    pub fn is_unread(&self) -> bool {
        self.activates.is_empty() && !self.pushed_by.is_empty()
    }
}

/// A task that pushes to a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushedBy {
    /// The task.
    pub task: String,
    /// Number of its pushes.
    pub pushes: u64,
}

/// A task that data on a channel can activate, alone or together with data on others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activates {
    /// The task.
    pub task: String,
    /// Number of its activations by a push to this channel.
    pub activations: u64,
    /// Whether the program declares the connection; otherwise it is inferred from events.
    pub declared: bool,
    /// Whether it is a guess that whoever made the trace did not confirm.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub assumed: bool,
    /// How the input buffers data; absent if the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keeps: Option<Keeps>,
}

/// How an input buffers data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// As a queue: instances take as many as they need, oldest first.
    Queue,
    /// Only the newest datum.
    Newest,
}

impl Dataflow {
    /// Missing events, as known from the numbers of other events. What is missing at the end is unknown.
    pub fn missing_events(&self) -> u64 {
        let pushes = self.channels.iter().map(|channel| channel.missing_pushes);
        // An incomplete instance lacks an event, which may be its activation.
        let instances = self.tasks.iter().map(|task| task.missing_activations.max(task.incomplete));
        pushes.chain(instances).fold(0, u64::saturating_add)
    }

    /// Connections on chains for which the trace does not say how their inputs buffer data: channel and task,
    /// by name.
    pub fn unknown_inputs(&self) -> Vec<(&str, &str)> {
        let is_on_chain = |from: &str, to: &str| {
            self.chains
                .iter()
                .any(|chain| chain.tasks.windows(2).any(|pair| pair[0] == from && pair[1] == to))
        };
        let mut found = Vec::new();
        // A barrier holds no datum: who reads it has read all of the round.
        for channel in self.channels.iter().filter(|channel| !channel.barrier) {
            for activates in channel.activates.iter().filter(|activates| activates.keeps.is_none()) {
                if channel.pushed_by.iter().any(|by| is_on_chain(&by.task, &activates.task)) {
                    found.push((channel.name.as_str(), activates.task.as_str()));
                }
            }
        }
        found
    }
}

/// A task of a dataflow program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTask {
    /// Its name; no other task has it.
    pub name: String,
    /// Its number in the trace.
    pub id: u32,
    /// Activations in the trace.
    pub activations: u64,
    /// Instances with activation, start and stop in the trace: those with execution and queuing times.
    pub executions: u64,
    /// Instances that had not stopped when the trace ended.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub in_flight: u64,
    /// Instances with a missing event that precedes others.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub incomplete: u64,
    /// Activations for which the task's inputs did not have enough pushes by the rules in the trace: the task
    /// has a condition of its own, or the trace describes its inputs wrongly.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unexplained: u64,
    /// Activations that are missing from the trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub missing_activations: u64,
    /// Execution times, from start to stop (Eq. 3).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub execution: Option<Times>,
    /// Queuing times, from activation to start (Eq. 1).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queuing: Option<Times>,
    /// What the kernel did with the executor's thread meanwhile, if there is a recording of the same time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by_kernel: Option<ByKernel>,
    /// Arrival models of activations. No curve spans a missing one.
    pub arrival: Arrival,
    /// Values of the distance functions in `arrival` and of their extrapolation.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub distances: Vec<Distance>,
    /// Values of the arrival curves that follow from `arrival`, and of their extrapolation.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counts: Vec<Count>,
}

/// Execution times split by what the kernel did with the executing thread: the three parts of each add up to
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByKernel {
    /// Executions that the recording covers completely.
    pub executions: u64,
    /// Time on a processor.
    pub running: Distribution,
    /// Time ready to run, without a processor.
    pub preempted: Distribution,
    /// Time blocked.
    pub suspended: Distribution,
}

/// δ⁻(n) and δ⁺(n): the least and the greatest span of n consecutive activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distance {
    /// Number of activations; at least two.
    pub n: u64,
    /// δ⁻(n).
    pub min_ns: Duration,
    /// δ⁺(n); absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_ns: Option<Duration>,
    /// Whether δ⁻(n) is extrapolated (Eq. 7).
    pub extrapolated: bool,
}

/// η⁻(Δ) and η⁺(Δ): the least and the greatest number of activations in a half-open interval of length Δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Δ; greater than zero.
    pub span_ns: Duration,
    /// η⁻(Δ); absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min: Option<u64>,
    /// η⁺(Δ); absent if unbounded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<u64>,
    /// Whether η⁺(Δ) is extrapolated (Eq. 8).
    pub extrapolated: bool,
}

/// How times are distributed. Ends are exact, quartiles and percentiles have three significant digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many there are; at least one.
    pub count: u64,
    /// The least.
    pub min_ns: Duration,
    /// A quarter of them is at most this.
    pub quartile_1_ns: Duration,
    /// Half of them.
    pub median_ns: Duration,
    /// Three quarters of them.
    pub quartile_3_ns: Duration,
    /// The greatest.
    pub max_ns: Duration,
    /// The mean, rounded down; absent in older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_ns: Option<Duration>,
    /// 95 % of them are at most this; absent in older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p95_ns: Option<Duration>,
    /// 99 % of them are at most this; absent in older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p99_ns: Option<Duration>,
    /// 99.9 % of them are at most this; absent in older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p999_ns: Option<Duration>,
    /// How many are in which range, in order; absent in older files.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub histogram: Vec<Bin>,
}

/// Values of a distribution that lie close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Each is at most this, and more than that of the bin before.
    pub until_ns: Duration,
    /// How many; at least one.
    pub count: u64,
}

/// Times of a task's instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How they are distributed.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// The first instance with the greatest.
    pub worst: Worst,
}

/// An instance of a task, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// The instance, from 0.
    pub instance: u64,
    /// When its time began.
    pub at_ns: Instant,
}

/// A chain of tasks, each of which pushes to a channel that can activate the next.
///
/// `sources` counts the instances of the source that pushed a datum: those with a reaction time plus
/// `overtaken`, `lost`, `incomplete` and `in_flight`. `sinks` counts the instances of the sink that read one:
/// those with a data age plus `sinks_lost`, `sinks_incomplete` and `sinks_in_flight`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Its tasks by name, from source to sink; at least two.
    pub tasks: Vec<String>,
    /// Whether no task precedes the first and none follows the last, as far as data of the trace went: false
    /// for part of a longer chain, and where connections may be unknown. Absent in older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end_to_end: Option<bool>,
    /// Instances of the source that pushed a datum on the chain.
    pub sources: u64,
    /// Data with a reaction time that was not ended by them alone: the sink instance also read, or read
    /// instead, a later datum.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub overwritten: u64,
    /// Instances of the source whose datum arrived after the sink had read a later one.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub overtaken: u64,
    /// Instances of the source that could not be followed, because events are missing.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub lost: u64,
    /// Instances of the source whose datum was read by an instance of the sink without a start or stop in the
    /// trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub incomplete: u64,
    /// Instances of the source whose datum was still on its way when the trace ended.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub in_flight: u64,
    /// Instances of the sink that read a datum of the chain, or may have.
    pub sinks: u64,
    /// Instances of the sink whose reads are unknown, because events are missing.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub sinks_lost: u64,
    /// Instances of the sink without a start or stop in the trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub sinks_incomplete: u64,
    /// Instances of the sink that had not ended when the trace did.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub sinks_in_flight: u64,
    /// From the activation of a source instance to the end of the first sink instance that has read its datum
    /// or a later one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reaction: Option<Latency>,
    /// From the activation of the source instance of the newest datum that a sink instance has read to the
    /// end of that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub age: Option<Latency>,
}

/// The latencies that ended in a part of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// When the part begins.
    pub from_ns: Instant,
    /// How many; at least one.
    pub count: u64,
    /// The least.
    pub min_ns: Duration,
    /// The greatest.
    pub max_ns: Duration,
}

/// What a latency would be if all inputs of unknown kind buffered data in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The way.
    pub keeps: Keeps,
    /// How it would be distributed; absent if no datum would have arrived.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub distribution: Option<Distribution>,
}

/// End-to-end latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How they are distributed.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// The first path with the greatest latency.
    pub worst: WorstPath,
    /// How it went over time: the span of the trace in equal parts, without those in which none ended.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub series: Vec<Moment>,
    /// The same, if inputs on the chain about which the trace says nothing are queues that an instance takes
    /// one datum of, or if they keep the newest; empty if the trace describes all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alternatives: Vec<Alternative>,
}

/// The path of a datum from source to sink, and where its time went: the three parts add up to the latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstPath {
    /// The source's instance.
    pub source_instance: u64,
    /// Its activation.
    pub from_ns: Instant,
    /// The end of the sink's instance.
    pub until_ns: Instant,
    /// Waiting for an executor, or for the task to finish with earlier data.
    pub queuing_ns: Duration,
    /// Executing.
    pub execution_ns: Duration,
    /// Waiting on a channel: for another input, for more data, or because a later datum overtook it.
    pub waiting_ns: Duration,
    /// The instances, from source to sink. The first is later than `source_instance` if that one's datum did
    /// not arrive.
    pub path: Vec<PathStep>,
}

/// An instance on the path of a datum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathStep {
    /// The task.
    pub task: String,
    /// The instance.
    pub instance: u64,
    /// How long the task was queued or executing with earlier data between the arrival of the datum and the
    /// activation; absent if it was not, or if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub busy_ns: Option<Duration>,
    /// When it was activated. An input that buffers only the newest datum may get it later, up to the start.
    pub activation_ns: Instant,
    /// When it started.
    pub start_ns: Instant,
    /// When it pushed the datum; for the last instance, when it stopped.
    pub until_ns: Instant,
    /// The channel it pushed to; absent for the last instance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
}

impl WorstPath {
    /// The latency.
    pub fn total(&self) -> Duration {
        self.until_ns.since(self.from_ns)
    }

    /// Where the time went, step by step.
    pub fn stages(&self) -> impl Iterator<Item = Stage<'_>> {
        let mut came = self.from_ns;
        self.path.iter().map(move |step| {
            let activation = step.activation_ns.max(came);
            let busy = step.busy_ns.unwrap_or(Duration::ZERO).min(activation.since(came));
            Stage { step, came: std::mem::replace(&mut came, step.until_ns), busy, activation }
        })
    }

    /// The parts, summed up from the path: queuing, execution, waiting.
    pub fn parts(&self) -> [Duration; 3] {
        let sum = |part: fn(&Stage<'_>) -> Duration| {
            self.stages().fold(Duration::ZERO, |sum, stage| sum + part(&stage))
        };
        [
            sum(|stage| stage.busy + stage.queuing()),
            sum(|stage| stage.execution()),
            sum(|stage| stage.waiting()),
        ]
    }
}

/// What happened to a datum at one step of its path. Each step begins where the previous one ends.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The instance.
    pub step: &'a PathStep,
    /// When the datum arrived; at the source, when the latency begins.
    pub came: Instant,
    /// How long the task was then busy with earlier data, which counts as queuing.
    pub busy: Duration,
    /// When the instance had all its inputs, this datum included.
    pub activation: Instant,
}

impl Stage<'_> {
    /// Time waiting for other inputs or more data; at the source, for the later datum that overtook it.
    pub fn waiting(&self) -> Duration {
        Duration::from_ns(self.activation.since(self.came).ns().saturating_sub(self.busy.ns()))
    }

    /// Time waiting for an executor.
    pub fn queuing(&self) -> Duration {
        self.step.start_ns.since(self.activation)
    }

    /// Time executing, until it pushed the datum; for the last instance, until it stopped.
    pub fn execution(&self) -> Duration {
        self.step.until_ns.since(self.step.start_ns)
    }
}
