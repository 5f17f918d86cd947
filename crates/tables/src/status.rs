//! What a running dispatcher says about itself.

use crate::plan::Clock;
use crate::statistics::Errors;
use punctual_model::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// A running dispatcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// `user` or `sched_ext`.
    pub dispatcher: String,
    /// The table's file, as it was named.
    pub table: String,
    /// The table's clock.
    pub clock: Clock,
    /// When the first slot began, on that clock.
    pub start_ns: Instant,
    /// Length of a slot.
    pub slot_ns: Duration,
    /// Slots of the hyperperiod.
    pub slots: u32,
    /// By processor.
    pub processors: Vec<LaneStatus>,
    /// By task.
    pub tasks: Vec<TaskStatus>,
    /// Jobs and tasks that punctuald has admitted, and that are not over.
    #[serde(default)]
    pub guests: Vec<GuestStatus>,
}

/// A processor of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneStatus {
    /// Its number.
    pub cpu: u32,
    /// The present slot, counted since the start; none before.
    pub slot: Option<u64>,
    /// The task that it belongs to; none: idle.
    pub task: Option<String>,
    /// Turns that are over.
    pub turns: u64,
    /// Turns that were missed.
    pub missed: u64,
    /// How late the processor was handed over; none without a turn.
    pub error: Option<Errors>,
}

/// A task of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its name.
    pub name: String,
    /// Its thread; none: not found.
    pub tid: Option<u32>,
    /// Turns that are over.
    pub turns: u64,
    /// Turns without a thread.
    pub unserved: u64,
    /// Ends of jobs at which it was still ready.
    pub overruns: u64,
    /// Jobs that ended early and gave slots back.
    #[serde(default)]
    pub early: u64,
    /// Processor time in its turns.
    pub ran_ns: Duration,
    /// The most that it ran between two turns.
    pub outside_max_ns: Duration,
}

/// A job or task that punctuald has admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestStatus {
    /// Its name.
    pub name: String,
    /// The spec of punctuald; none: not confirmed yet.
    pub spec: Option<u64>,
    /// Its processor.
    pub cpu: u32,
    /// Its thread; none: not attached yet, or ended.
    pub tid: Option<u32>,
    /// The time of its slots, of each job.
    pub runtime_ns: Duration,
    /// From its release to its deadline.
    pub deadline_ns: Duration,
    /// Its period; none: one job.
    pub period_ns: Option<Duration>,
    /// Turns that are over.
    pub turns: u64,
    /// Processor time in its turns.
    pub ran_ns: Duration,
}
