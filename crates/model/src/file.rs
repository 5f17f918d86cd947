//! The timing model: the types of the file in the middle, `*.timing.json`, version 1.
//!
//! These types are what was inferred and what is written; reading them back strictly is [`crate::read`]'s,
//! the checks of job streams against them [`crate::check`]'s.

use crate::dataflow::Dataflow;
use crate::separator::Separator;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The value of the file's `format` field.
pub const FORMAT: &str = "punctual.timing-model";
/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 1;

/// A whole timing model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingModel {
    /// Always [`FORMAT`].
    pub format: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// The machine it was observed on.
    pub platform: Platform,
    /// What was observed.
    pub observation: Observation,
    /// Every task, by thread and phase.
    pub tasks: Vec<Task>,
    /// A dataflow program, where one was traced.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dataflow: Option<Dataflow>,
}

impl TimingModel {
    /// Whether threads were observed, be it that none ran; else the file is about a dataflow program alone.
    pub fn is_of_threads(&self) -> bool {
        self.dataflow.is_none() || !self.tasks.is_empty() || self.observation.dataflow.is_some()
    }

    /// These threads, and the dataflow program of another model beside them; one that was there before goes.
    /// Both have to be of one clock.
    pub fn with_dataflow_of(mut self, other: TimingModel) -> TimingModel {
        if !self.is_of_threads() {
            return other;
        }
        self.observation.dataflow = other.dataflow.is_some().then(|| other.traced());
        self.dataflow = other.dataflow;
        self
    }

    /// When the first and the last event of the dataflow program were, where there is one.
    pub fn traced(&self) -> Span {
        let Observation { from_ns, until_ns, dataflow, .. } = &self.observation;
        dataflow.unwrap_or(Span { from_ns: *from_ns, until_ns: *until_ns })
    }
}

/// The machine that a model was observed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Platform {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Machine (`uname -m`).
    pub machine: String,
    /// Processors online.
    pub cpus: u32,
}

/// What was observed, and what was not: of threads, or of a dataflow program alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The clock of every instant in the file.
    pub clock: String,
    /// When it began.
    pub from_ns: Instant,
    /// When it ended.
    pub until_ns: Instant,
    /// Activation records received.
    pub records: u64,
    /// Records known to be lost.
    pub lost_records: u64,
    /// Threads that were not watched for want of room.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub untracked_threads: u64,
    /// Runs of the observing programs that the kernel skipped; what they would have seen was made up for,
    /// mostly exactly.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped_events: u64,
    /// Time that the hypervisor took from all processors of the machine together: whatever was to run then
    /// was late, or took longer.
    #[serde(skip_serializing_if = "Duration::is_zero", default)]
    pub stolen_ns: Duration,
    /// Tasks left out because there were too many.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub omitted_tasks: u64,
    /// When a dataflow program was traced, where threads were observed too; all else here is about those
    /// then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dataflow: Option<Span>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub from_ns: Instant,
    /// When it ended.
    pub until_ns: Instant,
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One task: a thread, or a stretch of its life between two task transitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The thread's name (`comm`).
    pub name: String,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Counts the tasks of one thread from 0.
    pub phase: u32,
    /// The command line of the process.
    pub command: String,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority (1 to 99) under SCHED_FIFO and SCHED_RR, else 0.
    pub priority: u32,
    /// Nice value, where the policy has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nice: Option<i32>,
    /// Reservation, under SCHED_DEADLINE.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reservation: Option<Reservation>,
    /// Processors it may use, as a list (`0-1,4`).
    pub affinity: String,
    /// Since when it was observed.
    pub from_ns: Instant,
    /// Until when it was observed.
    pub until_ns: Instant,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Index of the stream that explains the task best; absent where there are no streams.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub primary: Option<usize>,
    /// Why that one, in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub primary_reason: Option<String>,
    /// Whether the list of separators was full, so that some share a stream (object `others`).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub separators_capped: bool,
    /// Changes of policy, priority or affinity that were not to end the task; its parameters are those after
    /// the last of them.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub merged_transitions: u64,
    /// The recording that it comes from, where the file is about several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recording: Option<String>,
    /// One stream of jobs per separator.
    pub streams: Vec<Stream>,
}

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// The default policy.
    #[serde(rename = "SCHED_OTHER")]
    Other,
    /// First in, first out, by priority.
    #[serde(rename = "SCHED_FIFO")]
    Fifo,
    /// Round robin, by priority.
    #[serde(rename = "SCHED_RR")]
    Rr,
    /// Throughput.
    #[serde(rename = "SCHED_BATCH")]
    Batch,
    /// Very low priority.
    #[serde(rename = "SCHED_IDLE")]
    Idle,
    /// Earliest deadline first with reservations.
    #[serde(rename = "SCHED_DEADLINE")]
    Deadline,
    /// Scheduled by a BPF program (sched_ext).
    #[serde(rename = "SCHED_EXT")]
    Ext,
}

/// Parameters of a SCHED_DEADLINE thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Budget per period.
    pub runtime_ns: Duration,
    /// Relative deadline.
    pub deadline_ns: Duration,
    /// Period.
    pub period_ns: Duration,
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

/// The jobs of a task at one separator, and every model of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Where one job ends and the next begins.
    pub separator: Separator,
    /// Jobs that were seen from release to end.
    pub jobs: u64,
    /// Releases: `jobs`, or one more where the last job had not ended. A file without it means as many as
    /// `jobs` ([`TimingModel::from_json`]).
    #[serde(default)]
    pub releases: u64,
    /// Releases that are windows rather than instants.
    pub uncertain_releases: u64,
    /// Of these, the ones whose call did not wait, because the event had already happened.
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
    /// Percentiles of lateness, cost and response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub percentiles: Option<Percentiles>,
}

/// How often jobs come. Every model here allows every release that was observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// Periodic with offset and jitter; from three releases on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub periodic: Option<Periodic>,
    /// Sporadic; from two releases on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sporadic: Option<Sporadic>,
    /// Arrival curves; from two releases on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub curve: Option<Curve>,
}

/// What a periodic model's offset and jitter are measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeriodicOn {
    /// On known arrivals: jitter is how much later than its arrival a job was released.
    Arrival,
    /// On releases alone.
    Release,
}

/// Why a period was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// A round number explains the releases well enough.
    Rounded,
    /// The estimate itself; no rounder number does.
    Estimated,
    /// The period of least jitter.
    LeastJitter,
}

/// Job j (from 0) is released at most `jitter` after the arrival of activation k_j: with P the exact period,
/// `offset + k_j·P <= r_j <= offset + k_j·P + jitter`. The k_j begin at 0 and increase; they are never more
/// than `skipped` above j. (papers: LiME, Eq. 1, where k_j = j.)
///
/// What comes before a release that was extra counts as late, a period for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Periodic {
    /// What it is measured on.
    pub on: PeriodicOn,
    /// The period, rounded to whole nanoseconds; greater than zero.
    pub period_ns: Duration,
    /// The exact period, where it is no whole number of nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period_exact: Option<Fraction>,
    /// Arrival of the first job, on the observation's clock (may lie before the clock's zero).
    pub offset_ns: i64,
    /// Greatest distance from arrival to release.
    pub jitter_ns: Duration,
    /// The least jitter that any period could have had.
    pub least_jitter_ns: Duration,
    /// Why this period.
    pub choice: Choice,
    /// Whether offset and jitter are over-approximated because the hulls reached their cap.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub approximate: bool,
    /// Activations that were left out: the sum of k_j − k_{j−1} − 1 where that is above zero.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped: u64,
    /// Releases beyond one per activation: the sum of 1 − (k_j − k_{j−1}) where that is above zero.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub extra: u64,
    /// Where activations were skipped and where releases were extra: the first [`MAX_SLIPS`] places.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slips: Vec<Slip>,
    /// The same period without the few releases that are far from all others.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub typical: Option<Typical>,
}

impl Periodic {
    /// The jitter of nearly all releases: of all, where none are left out.
    pub fn usual_jitter(&self) -> Duration {
        self.typical.as_ref().map_or(self.jitter_ns, |typical| typical.jitter_ns)
    }
}

/// Most places of skipped and extra activations that a model lists.
pub const MAX_SLIPS: usize = 10;

/// Most releases that a typical model leaves out on either side.
pub const MAX_LEFT_OUT: usize = 4;

/// A place where activations were skipped, or where one was released more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slip {
    /// The latest bound of the first release after it.
    pub at_ns: Instant,
    /// Activations skipped before that release; negative: releases that were extra.
    pub activations: i64,
}

/// The periodic model of all releases but those listed, with the period and the slips of the conservative
/// one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Typical {
    /// Arrival of the first job, be it left out. Here k_j is one more than before, but for the slips; extra
    /// releases share one.
    pub offset_ns: i64,
    /// Greatest distance from arrival to release, of the releases that are not left out.
    pub jitter_ns: Duration,
    /// The releases that are left out, in order of time: at most max(1, 0.1 %) of all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<LeftOut>,
}

/// A release that the typical model leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its latest bound, or its known arrival where that is early.
    pub at_ns: Instant,
    /// How far it is outside: negative from the first whole nanosecond allowed to its earliest bound,
    /// positive from the last one to its latest.
    pub off_ns: i64,
    /// Why, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Disturbance>,
}

/// What can move a release away from where the program meant it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// A signal ended or interrupted the sleep.
    Signal,
    /// The thread was being ended, or what it waited for was shut down.
    Ending,
    /// The machine stood still: a hypervisor took the processor.
    Stall,
}

/// How the times of one stream are distributed. Each value is at least the exact one, and at most one part in
/// [`QUANTILE_ERROR_PARTS`] above it; of lateness only where arrivals are known, else it is that of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// From the arrival (known, or that of the typical periodic model) to the latest bound of the release.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lateness: Option<Quantiles>,
    /// Processor time of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Quantiles>,
    /// Response time of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Quantiles>,
}

/// A quantile is at most one part in so many above the exact one.
pub const QUANTILE_ERROR_PARTS: u64 = 64;

/// The least values that so many per cent of all do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of them.
    pub p50_ns: Duration,
    /// 90 %.
    pub p90_ns: Duration,
    /// 99 %.
    pub p99_ns: Duration,
    /// 99.9 %.
    pub p999_ns: Duration,
}

impl Quantiles {
    /// Each with how many in a thousand do not exceed it, the least first.
    pub fn each(&self) -> [(u64, Duration); 4] {
        [(500, self.p50_ns), (900, self.p90_ns), (990, self.p99_ns), (999, self.p999_ns)]
    }
}

/// A fraction of nanoseconds in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// Nanoseconds, times the denominator.
    pub numerator: u64,
    /// Greater than zero.
    pub denominator: u64,
}

/// Any two consecutive releases are at least this far apart. (papers: LiME, Section II-B.)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sporadic {
    /// Least separation; zero where two releases may coincide.
    pub min_separation_ns: Duration,
}

/// Distance functions, the pseudo-inverses of the arrival curves: `delta_min_ns[i]` is δ⁻(i+2), the least
/// span of i+2 consecutive releases; `delta_max_ns[i]` is δ⁺(i+2), the greatest. Both never decrease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// δ⁻(2), δ⁻(3), …
    pub delta_min_ns: Vec<Duration>,
    /// δ⁺(2), δ⁺(3), …
    pub delta_max_ns: Vec<Duration>,
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
    /// job. Jobs with more segments than the longest allowed have their first ones merged.
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

/// Response times, from the arrival where it is known, else from the earliest release, to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The greatest.
    pub max_ns: Duration,
    /// The mean.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_ns: Option<Duration>,
}
