//! The section `threads`: the observation, and every task with its models.

mod section;
mod validate;

use crate::arrival::Arrival;
use crate::percentiles::Percentiles;
use crate::policy::{Policy, Reservation};
use crate::section::is_zero;
use crate::separator::Separator;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The observation of threads, its losses, and the tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Threads {
    /// When the observation began.
    pub from_ns: Instant,
    /// When it ended.
    pub until_ns: Instant,
    /// Activation records received.
    pub records: u64,
    /// Records known to be lost.
    pub lost_records: u64,
    /// Threads not watched: the kernel table was full, or they ended before they were seen.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub untracked_threads: u64,
    /// Events for which the kernel skipped the eBPF programs. Most are reconstructed exactly; other releases
    /// became windows.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped_events: u64,
    /// Time the hypervisor took from the processors, summed over all: what was to run then was delayed.
    #[serde(skip_serializing_if = "Duration::is_zero", default)]
    pub stolen_ns: Duration,
    /// Tasks left out because there are too many.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub omitted_tasks: u64,
    /// Steps of `CLOCK_REALTIME` meanwhile, the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub clock_steps: Vec<ClockStep>,
    /// What is to be known of the recording as a whole, as sentences: above all what an imported trace does
    /// not have.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// Every task, by thread and phase.
    pub tasks: Vec<Task>,
}

/// `CLOCK_REALTIME` was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStep {
    /// When, on the clock of the file.
    pub at_ns: Instant,
    /// By how much, forward if positive.
    pub by_ns: i64,
}

/// The command of a task whose trace has no command lines. An empty one is a kernel thread's.
pub const UNKNOWN_COMMAND: &str = "(unknown)";

/// One task: a thread, or a stretch of its life between two task transitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The thread's name (`comm`).
    pub name: String,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Number of the task within its thread, from 0.
    pub phase: u32,
    /// The command line of the process.
    pub command: String,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority (1 to 99) under SCHED_FIFO and SCHED_RR, otherwise 0.
    pub priority: u32,
    /// Nice value, where the policy has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nice: Option<i32>,
    /// Reservation, under SCHED_DEADLINE.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reservation: Option<Reservation>,
    /// Processors it may use, as a list (`0-1,4`).
    pub affinity: String,
    /// Start of its observation.
    pub from_ns: Instant,
    /// End of its observation.
    pub until_ns: Instant,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Index of the stream that explains the task best; absent if there are no streams.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub primary: Option<usize>,
    /// Why this one, as text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub primary_reason: Option<String>,
    /// Whether the list of separators was full, so that some share a stream (object `others`).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub separators_capped: bool,
    /// Changes of policy, priority or affinity that did not end the task (on request); its parameters are
    /// those after the last change.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub merged_transitions: u64,
    /// For how long the last job had been open when the task ended, since the thread last woke up: only where
    /// that is longer than every response time, so that the models do not tell of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub open_ns: Option<Duration>,
    /// The processor time that it took, if it never waited: then it has no jobs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub busy_ns: Option<Duration>,
    /// The recording it is from, if the file has several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recording: Option<String>,
    /// One stream of jobs per separator.
    pub streams: Vec<Stream>,
}

/// Why a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The observation ended.
    ObservationEnd,
    /// The thread's policy changed.
    PolicyChange,
    /// Its priority, nice value or reservation changed.
    PriorityChange,
    /// Its affinity changed.
    AffinityChange,
    /// It executed another program.
    Exec,
    /// It ended.
    Exit,
    /// Records were lost.
    Loss,
}

/// Late jobs are counted exactly if they are fewer than this ([`Stream::late`]).
pub const MANY_LATE: u64 = 32;

/// The jobs of a task at one separator, and every model of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Where one job ends and the next begins.
    pub separator: Separator,
    /// Jobs observed from release to end.
    pub jobs: u64,
    /// Releases: `jobs`, or one more if the last job had not ended. If a file leaves it out, it equals `jobs`
    /// ([`TimingModel::from_json`]).
    #[serde(default)]
    pub releases: u64,
    /// Releases that are windows rather than instants.
    pub uncertain_releases: u64,
    /// The windows among them whose call did not wait, because the event had already happened.
    #[serde(default)]
    pub back_to_back: u64,
    /// Arrival models.
    pub arrival: Arrival,
    /// Execution models; absent without a complete job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub execution: Option<Execution>,
    /// Suspension models; absent without a complete job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suspension: Option<Suspension>,
    /// Response times; absent without a complete job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Response>,
    /// Jobs that certainly took longer than the period ([`Job::least_response`](crate::Job::least_response)):
    /// exactly so many if fewer than [`MANY_LATE`], else at least so many. Absent without a period, and in
    /// older files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late: Option<u64>,
    /// Percentiles of lateness, cost and response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub percentiles: Option<Percentiles>,
}

/// Processor time: `wcet_ns[i]` is WCET(i+1), the greatest total cost of i+1 consecutive jobs. (papers: LiME,
/// Section II-B.)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// WCET(1), WCET(2), …
    pub wcet_ns: Vec<Duration>,
    /// The mean cost of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_ns: Option<Duration>,
}

/// Suspension inside jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspension {
    /// The greatest total suspension of a job (dynamic self-suspension).
    pub dynamic_ns: Duration,
    /// A bag of segment vectors: every job obeys, segment by segment, one that has as many segments as the
    /// job. If a job has too many segments, its first ones are merged.
    pub segmented: Vec<Vec<SegmentBound>>,
}

/// Bounds of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentBound {
    /// Greatest suspension before it.
    pub suspended_ns: Duration,
    /// Greatest execution in it.
    pub cost_ns: Duration,
}

impl Stream {
    /// The greatest response time that is certain; `None` without a job, and for windows in older files.
    pub fn certain_response(&self) -> Option<Duration> {
        let response = self.response.as_ref()?;
        if self.uncertain_releases == 0 { Some(response.max_ns) } else { response.certain_max_ns }
    }
}

/// Response times: from the arrival (if unknown, from the earliest release) to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The greatest.
    pub max_ns: Duration,
    /// The greatest that is certain, where some releases are windows: from the arrival (if unknown, from the
    /// latest release) to the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub certain_max_ns: Option<Duration>,
    /// The mean.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_ns: Option<Duration>,
}
