//! The section `causes`: which jobs were late, and why. The time of a late job is cut into parts, each with
//! one reason; the longest of them, as far as it is unusual, is what the job is put down to.

mod section;
mod validate;

use crate::policy::Policy;
use crate::section::is_zero;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The greatest number of causes of a task that are listed.
pub const MAX_CAUSES: usize = 32;

/// Late jobs of all threads, and their causes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Causes {
    /// When the observation began.
    pub from_ns: Instant,
    /// When it ended.
    pub until_ns: Instant,
    /// What the observation did not tell apart.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lacks: Vec<Lack>,
    /// Threads with jobs, whether one was late or not.
    pub tasks: Vec<LateTask>,
}

/// What an observation did not tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// Switches of watched threads only: whatever else had a processor is unknown.
    OtherThreads,
    /// Interrupts: they count as what they interrupted.
    Interrupts,
}

/// The late jobs of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateTask {
    /// The thread's name.
    pub task: String,
    /// Its TID; of several observations, that of the first.
    pub tid: u32,
    /// Its policy.
    pub policy: Policy,
    /// Its real-time priority, if the policy has one.
    #[serde(skip_serializing_if = "no_priority", default)]
    pub priority: u32,
    /// All its jobs.
    pub jobs: u64,
    /// How many were late.
    pub late: u64,
    /// How many more may have been: when they were released is not known exactly.
    #[serde(skip_serializing_if = "is_none", default)]
    pub perhaps: u64,
    /// The time of the job that the thread's end cut off, if it is beyond the limit; of several, the
    /// greatest. It is none of `jobs`: it may have been the way to the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cut_off_ns: Option<Duration>,
    /// Which count as late.
    pub limit: Limit,
    /// Later than this is late; of several limits, the least.
    pub limit_ns: Duration,
    /// The processor time that half of its jobs do not exceed; zero if it is unknown.
    pub usual_cost_ns: Duration,
    /// The time of the longest late job.
    pub longest_ns: Duration,
    /// What the late jobs are put down to, those of most time first; at most [`MAX_CAUSES`].
    pub causes: Vec<Cause>,
    /// Other causes together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub others: Option<Others>,
    /// Some late jobs, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub worst: Vec<LateJob>,
}

/// Which jobs count as late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Those that took longer than the user asked for.
    Given,
    /// Those that took longer than the period of their task.
    Period,
    /// Those that took longer than a contract allows.
    Contract,
    /// The longest of a task without a period: those that took longer than 99 % of all.
    Longest,
    /// The user chose them, whether late or not.
    None,
}

/// Late jobs with the same main cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The cause. Threads of the same name and policy are one.
    #[serde(flatten)]
    pub reason: Reason,
    /// Whether less urgent threads held up somebody on the way to what the jobs waited for.
    pub inversion: bool,
    /// How many jobs.
    pub jobs: u64,
    /// The time of the part that each of them is put down to, in all.
    pub ns: Duration,
    /// The shortest of these parts.
    pub least_ns: Duration,
    /// Jobs with so many page faults that these may matter.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub faulting_jobs: u64,
    /// The most page faults of one job.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub faults: u64,
    /// How many of these had to read from a disk.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub major_faults: u64,
    /// The longest of these parts.
    pub longest: Part,
}

/// Late jobs of which the causes are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// How many jobs.
    pub jobs: u64,
    /// The time of the parts that they are put down to.
    pub ns: Duration,
}

/// Why time passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// In general.
    pub kind: Kind,
    /// The name of the thread behind it, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
    /// That thread's policy, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<Policy>,
    /// That thread's real-time priority, if the policy has one.
    #[serde(skip_serializing_if = "no_priority", default)]
    pub priority: u32,
    /// The interrupt behind it: `interrupt 24 (ahci)`, `softirq NET_RX`, `timer interrupt`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interrupt: Option<String>,
    /// The call that the job's thread was blocked in: a system call, or `page fault`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<String>,
    /// The name of the file or futex that it was blocked on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub object: Option<String>,
}

impl Reason {
    /// The thread or interrupt behind it, where known.
    pub fn culprit(&self) -> Option<&str> {
        self.thread.as_deref().or(self.interrupt.as_deref())
    }
}

/// A late job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateJob {
    /// Which of its thread's tasks it belongs to; 0 in older files.
    #[serde(default)]
    pub phase: u32,
    /// Its number within its task.
    pub job: u64,
    /// Its thread's TID.
    pub tid: u32,
    /// When it arrived, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arrival_ns: Option<Instant>,
    /// When its time begins: its arrival; else its release, or the earliest that this can have been.
    pub begin_ns: Instant,
    /// When it ended.
    pub end_ns: Instant,
    /// From its beginning to its end.
    pub response_ns: Duration,
    /// Page faults of its turns on a processor.
    pub faults: u64,
    /// How many of these had to read from a disk.
    pub major_faults: u64,
    /// What it is put down to.
    pub cause: Kind,
    /// The name of the thread behind that, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause_thread: Option<String>,
    /// The call that it was blocked in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause_call: Option<String>,
    /// What it was blocked on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause_object: Option<String>,
    /// Its time in parts, in the order of time, without gaps.
    pub parts: Vec<Part>,
}

impl LateJob {
    /// Its time of one kind.
    pub fn of(&self, kind: Kind) -> Duration {
        let parts = self.parts.iter().filter(|part| part.reason.kind == kind);
        parts.fold(Duration::ZERO, |sum, part| sum + part.ns)
    }
}

/// A stretch of a job's time with one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The reason.
    #[serde(flatten)]
    pub reason: Reason,
    /// When it began.
    pub from_ns: Instant,
    /// How long.
    pub ns: Duration,
    /// The TID of the thread behind it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tid: Option<u32>,
    /// The number of the job behind it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job: Option<u64>,
    /// Of a wait: whether no signal would have ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub uninterruptible: bool,
    /// What the thread did that was waited for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waited_for: Option<Box<Chain>>,
}

/// The activity of another thread while a job waited for it; of a backlog, that of the job's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// That thread's name.
    pub thread: String,
    /// Its TID.
    pub tid: u32,
    /// Its role for the waiting thread.
    pub role: Role,
    /// Whether less urgent threads than the one that waits kept it from its processor for at least half of
    /// that time.
    pub inversion: bool,
    /// Its time meanwhile, in parts, in the order of time.
    pub parts: Vec<Part>,
}

/// The role of a thread that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It owned the lock.
    Owner,
    /// It woke the other at last.
    Waker,
    /// It is the same, with the job before.
    Previous,
}

/// The reason for a part of a job's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The job before had not ended.
    Backlog,
    /// It was due, but not yet made ready.
    LateWakeup,
    /// Ready, while a more urgent thread had its processor.
    Preempted,
    /// Ready, while an equally urgent thread had its processor.
    Queued,
    /// Ready, but its budget was used up, or the kernel gave the processor to a less urgent thread.
    Throttled,
    /// Ready, while the processor was idle, switched, or was still with a less urgent thread.
    Dispatch,
    /// A device or another processor interrupted it, or came before it.
    Interrupt,
    /// The same by a softirq.
    Softirq,
    /// A hypervisor took the processor.
    Steal,
    /// It ran.
    Own,
    /// It waited for something within the job.
    Blocked,
    /// A signal or a debugger stopped it.
    Stopped,
    /// Not known.
    #[default]
    Unknown,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 13] = [
        Kind::Backlog,
        Kind::LateWakeup,
        Kind::Preempted,
        Kind::Queued,
        Kind::Throttled,
        Kind::Dispatch,
        Kind::Interrupt,
        Kind::Softirq,
        Kind::Steal,
        Kind::Own,
        Kind::Blocked,
        Kind::Stopped,
        Kind::Unknown,
    ];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Backlog => "backlog",
            Kind::LateWakeup => "late-wakeup",
            Kind::Preempted => "preempted",
            Kind::Queued => "queued",
            Kind::Throttled => "throttled",
            Kind::Dispatch => "dispatch",
            Kind::Interrupt => "interrupt",
            Kind::Softirq => "softirq",
            Kind::Steal => "steal",
            Kind::Own => "own",
            Kind::Blocked => "blocked",
            Kind::Stopped => "stopped",
            Kind::Unknown => "unknown",
        }
    }
}

fn is_none(jobs: &u64) -> bool {
    *jobs == 0
}

fn no_priority(priority: &u32) -> bool {
    *priority == 0
}
