//! Jobs: the elements of a stream, which every model is checked against.

use crate::time::{Duration, Instant, Window};

/// The release of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// When the job should have been released, if known (sleeps until a known time, deadline timers).
    pub arrival: Option<Instant>,
    /// When it became ready to run.
    pub window: Window,
}

/// One activation of a task, from its release to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its release.
    pub release: Release,
    /// When it first ran; never before the earliest release.
    pub start: Instant,
    /// When it ended: its thread stopped to wait for the next activation.
    pub end: Instant,
    /// Processor time it took.
    pub cost: Duration,
    /// Time it spent asleep between release and end.
    pub suspended: Duration,
}

impl Job {
    /// Time from the arrival (if unknown, from the earliest release) to the end.
    pub fn response(&self) -> Duration {
        self.end.since(self.release.arrival.unwrap_or(self.release.window.earliest()))
    }

    /// The least that this can have been: from the arrival (if unknown, from the latest release) to the end.
    pub fn least_response(&self) -> Duration {
        self.end.since(self.release.arrival.unwrap_or(self.release.window.latest()))
    }

    /// The part of the cost that was certainly spent outside `start` to `end`. The kernel charges a switch
    /// before it can be observed, spurious wake-ups run after the end, and a start that was not observed
    /// directly is late.
    pub fn cost_outside(&self) -> Duration {
        self.cost.saturating_sub(self.end.since(self.start))
    }
}

/// A stretch of execution inside a job and the suspension before it. The first segment of a job has no
/// suspension. (papers: LiME, Section II-B, self-suspension.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Time asleep before the execution.
    pub suspended: Duration,
    /// Processor time of the execution.
    pub cost: Duration,
}
