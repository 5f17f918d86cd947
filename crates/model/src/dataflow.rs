//! What is known of a dataflow program, in the timing-model file beside the threads: its graph, its tasks,
//! its chains.
//!
//! Tasks and channels are named, and no two of a kind share a name. (papers: Jungmann et al., ERTS 2024,
//! Section V.)

mod samples;
mod validate;

use crate::arrival::Arrival;
use crate::file::is_zero;
use crate::section::{Loss, MergeError, Section, Span, Valid};
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// A dataflow program as its trace shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dataflow {
    /// When the first event of the trace was.
    pub from_ns: Instant,
    /// When the last one was.
    pub until_ns: Instant,
    /// The program's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// Operating system and processor, for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub platform: Option<String>,
    /// Scheduling policy: `fifo`, `lifo`, `priority`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<String>,
    /// Executors.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub executors: Option<u32>,
    /// Events in the trace.
    pub events: u64,
    /// Events for which the tracer had no room.
    pub discarded_events: u64,
    /// Packets of events that are missing from the trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub missing_packets: u64,
    /// Packets that are damaged, and were left out wholly or in part.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub damaged_packets: u64,
    /// Channels, by number.
    pub channels: Vec<Channel>,
    /// Tasks, by number.
    pub tasks: Vec<FlowTask>,
    /// Chains, as they were asked for or found.
    pub chains: Vec<Chain>,
    /// Whether there were too many paths from sources to sinks, so that chains have to be asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub chains_omitted: bool,
}

/// A channel: who puts data on it, and whom data on it can activate.
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
    /// Of the pushes, those outside any task: by timers, or the program itself.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub from_outside: u64,
    /// Of the pushes, those of which it is not known who made them, because events before them are missing.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub from_unknown: u64,
    /// Tasks that push on it.
    pub pushed_by: Vec<PushedBy>,
    /// Tasks that data on it can activate.
    pub activates: Vec<Activates>,
}

/// A task that pushes on a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushedBy {
    /// The task.
    pub task: String,
    /// How often it did.
    pub pushes: u64,
}

/// A task that data on a channel can activate, alone or with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activates {
    /// The task.
    pub task: String,
    /// How many of its activations came in a push on this channel.
    pub activations: u64,
    /// Whether the program says so, not only the events.
    pub declared: bool,
    /// What the input keeps for instances to come; absent where the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keeps: Option<Keeps>,
}

/// What an input keeps of what was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// All, until as many as it needs are taken, the oldest first.
    Queue,
    /// The newest, until there is another.
    Newest,
}

impl Section for Dataflow {
    fn span(&self) -> Span {
        Span { from_ns: self.from_ns, until_ns: self.until_ns }
    }

    fn losses(&self) -> Vec<Loss> {
        Loss::list([
            ("discarded_events", self.discarded_events),
            ("missing_packets", self.missing_packets),
            ("damaged_packets", self.damaged_packets),
            ("missing_events", self.missing_events()),
        ])
    }

    fn validate(&self, path: &str) -> Valid {
        validate::dataflow(path, self)
    }

    /// Two programs cannot be merged: their tasks would share names and numbers.
    fn merge(self, _: Dataflow) -> Result<Dataflow, MergeError> {
        Err(MergeError("both models have a dataflow program, and one file holds one".into()))
    }
}

impl Dataflow {
    /// Events that the trace lacks by the numbers of others; what comes after the last of its kind is unknown.
    pub fn missing_events(&self) -> u64 {
        let pushes = self.channels.iter().map(|channel| channel.missing_pushes);
        // An incomplete instance lacks an event, which may be its activation.
        let instances = self.tasks.iter().map(|task| task.missing_activations.max(task.incomplete));
        pushes.chain(instances).fold(0, u64::saturating_add)
    }

    /// Connections on chains of which the trace does not say what their inputs keep: channel and task, by
    /// name.
    pub fn unknown_inputs(&self) -> Vec<(&str, &str)> {
        let is_on_chain = |from: &str, to: &str| {
            self.chains
                .iter()
                .any(|chain| chain.tasks.windows(2).any(|pair| pair[0] == from && pair[1] == to))
        };
        let mut found = Vec::new();
        for channel in &self.channels {
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
    /// Instances of which activation, start and stop are in the trace: what execution and queuing times are
    /// about.
    pub executions: u64,
    /// Instances that had not ended when the trace did.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub in_flight: u64,
    /// Instances of which an event is missing that was before others.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub incomplete: u64,
    /// Activations for which the inputs that the task waits for had not enough pushes, as the trace says that
    /// they count: the task has a condition of its own, or what the trace says of its inputs is wrong.
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
    /// What the kernel did with the executor's thread meanwhile, where a recording of the same time says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by_kernel: Option<ByKernel>,
    /// When activations come. No curve spans one that is missing.
    pub arrival: Arrival,
    /// Values of the distance functions, and how they go on; what the curves in `arrival` say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub distances: Vec<Distance>,
    /// Values of the arrival curves, and how they go on; what the curves in `arrival` say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counts: Vec<Count>,
}

/// Execution times by what the kernel did with the thread that executed: the three parts of each sum up to
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByKernel {
    /// Executions that the recording says everything of.
    pub executions: u64,
    /// On a processor.
    pub running: Distribution,
    /// Ready to run, without a processor.
    pub preempted: Distribution,
    /// Waiting for something.
    pub suspended: Distribution,
}

/// δ⁻(n) and δ⁺(n): the least and the greatest span of n consecutive activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distance {
    /// How many activations; at least two.
    pub n: u64,
    /// δ⁻(n).
    pub min_ns: Duration,
    /// δ⁺(n); absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_ns: Option<Duration>,
    /// Whether δ⁻(n) goes beyond what was observed (Eq. 7).
    pub extrapolated: bool,
}

/// η⁻(Δ) and η⁺(Δ): the least and the greatest number of activations in a half-open interval of length Δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Δ; greater than zero.
    pub span_ns: Duration,
    /// η⁻(Δ); absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min: Option<u64>,
    /// η⁺(Δ); absent where nothing bounds it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<u64>,
    /// Whether η⁺(Δ) goes beyond what was observed (Eq. 8).
    pub extrapolated: bool,
}

/// How times are distributed. Ends are exact, quartiles have three significant digits.
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
}

/// Times of a task's instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How they are distributed.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// The first instance that took the greatest.
    pub worst: Worst,
}

/// An instance of a task, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// The instance, from 0.
    pub instance: u64,
    /// When that time began.
    pub at_ns: Instant,
}

/// A chain of tasks, each of which pushes on a channel that can activate the next.
///
/// Of the source's instances that put a datum on it, `sources` is the sum of those with a reaction time,
/// `overtaken`, `lost`, `incomplete` and `in_flight`. Of the sink's instances that read one, `sinks` is the
/// sum of those with a data age, `sinks_lost`, `sinks_incomplete` and `sinks_in_flight`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Its tasks by name, from source to sink; at least two.
    pub tasks: Vec<String>,
    /// Instances of the source that put a datum on the chain.
    pub sources: u64,
    /// Of those with a reaction time, how many were not the newest that this sink instance had read: a later
    /// datum ended their time, too or instead.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub overwritten: u64,
    /// Instances of the source whose datum came after the sink had read a later one.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub overtaken: u64,
    /// Instances of the source that could not be followed, because events are missing.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub lost: u64,
    /// Instances of the source whose datum was read by an instance of the sink without a start or stop in the
    /// trace.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub incomplete: u64,
    /// Instances of the source whose datum was on its way when the trace ended.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub in_flight: u64,
    /// Instances of the sink that read a datum of the chain, or may have.
    pub sinks: u64,
    /// Instances of the sink of which it is not known what they read, because events are missing.
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

/// End-to-end latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How they are distributed.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// The first of the greatest.
    pub worst: WorstPath,
}

/// The way of a datum from source to sink, and what its time went into: the three parts sum up to the time
/// between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstPath {
    /// The source's instance.
    pub source_instance: u64,
    /// Its activation.
    pub from_ns: Instant,
    /// The end of the sink's instance.
    pub until_ns: Instant,
    /// Waiting for an executor, or for the task to end what it does with earlier data.
    pub queuing_ns: Duration,
    /// Being executed.
    pub execution_ns: Duration,
    /// Waiting on a channel: for another input, for more data, or because a later datum went ahead.
    pub waiting_ns: Duration,
    /// The instances, from the source's to the sink's. The first is a later one than `source_instance` where
    /// that one's datum did not arrive.
    pub path: Vec<PathStep>,
}

/// An instance on the way of a datum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathStep {
    /// The task.
    pub task: String,
    /// The instance.
    pub instance: u64,
    /// How long, between the arrival of the datum and the activation, the task was queued or executed with
    /// earlier data; absent where it was not, or where that is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub busy_ns: Option<Duration>,
    /// When it was activated. An input that has the newest value may have got the datum after that, up to the
    /// start.
    pub activation_ns: Instant,
    /// When it started.
    pub start_ns: Instant,
    /// When it pushed the datum; of the last, when it stopped.
    pub until_ns: Instant,
    /// The channel that it pushed on; absent of the last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
}

impl WorstPath {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.until_ns.since(self.from_ns)
    }

    /// What the time went into, step by step.
    pub fn stages(&self) -> impl Iterator<Item = Stage<'_>> {
        let mut came = self.from_ns;
        self.path.iter().map(move |step| {
            let activation = step.activation_ns.max(came);
            let busy = step.busy_ns.unwrap_or(Duration::ZERO).min(activation.since(came));
            Stage { step, came: std::mem::replace(&mut came, step.until_ns), busy, activation }
        })
    }

    /// The parts, from where the path goes: queuing, execution, waiting.
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

/// What became of a datum at one step of its way. Times go on from each to the next.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The instance.
    pub step: &'a PathStep,
    /// When the datum came; at the source, when the time begins.
    pub came: Instant,
    /// How long the task was busy with earlier data since: queuing.
    pub busy: Duration,
    /// When the instance had all that it needed, the datum included.
    pub activation: Instant,
}

impl Stage<'_> {
    /// For other inputs or more data, or at the source for the later datum that went ahead.
    pub fn waiting(&self) -> Duration {
        Duration::from_ns(self.activation.since(self.came).ns().saturating_sub(self.busy.ns()))
    }

    /// For an executor.
    pub fn queuing(&self) -> Duration {
        self.step.start_ns.since(self.activation)
    }

    /// Until it pushed the datum; of the last, until its end.
    pub fn execution(&self) -> Duration {
        self.step.until_ns.since(self.step.start_ns)
    }
}
