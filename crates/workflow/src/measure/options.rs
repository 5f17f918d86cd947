//! What a measurement is asked for, and what comes of it: the same on kernels of all kinds.

use super::log::{Logged, Recorded};
use crate::error::Error;
use crate::folder::RecordingFolder;
use crate::platform;
use punctual_model::{Instant, TimingModel};
use punctual_report::latency::Threshold;
use std::ffi::OsString;
use std::time::Duration;

/// Between two looks into the buffers of interrupts.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Of so many, one records the sums as they are.
pub(super) const TICKS_UNTIL_DUE: u32 = 20;

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// When to end, if the command does not end before.
    pub limit: Option<Duration>,
    /// Which processors; all that are online, if empty.
    pub cpus: Vec<u32>,
    /// How often the measuring threads wake up; `None`: there are none.
    pub measure: Option<Duration>,
    /// End at the first duration or latency of this length, and keep what happened before it. Where the
    /// kernel does not show the variables, at the first latency.
    pub threshold: Option<Duration>,
    /// Whether the kernel's monitors watch the rules that the bound rests on.
    pub verify: bool,
    /// What to run meanwhile; nothing, if empty.
    pub command: Vec<OsString>,
    /// Whether what the command prints goes to standard error, because standard output is for the model.
    pub command_to_stderr: bool,
    /// Where to write a recording.
    pub record: Option<RecordingFolder>,
}

/// What a measurement has found.
pub struct Outcome {
    /// A timing model with the section `latency`.
    pub model: TimingModel,
    /// Whether the threshold was reached, and by what; `None` without one.
    pub threshold: Option<Threshold>,
    /// The last events before the threshold was exceeded, in lines for people; `None` if it was not.
    pub flight: Option<String>,
    /// The recording, if one was asked for and is whole.
    pub recorded: Option<Recorded>,
    /// Why there is none although one was asked for.
    pub failure: Option<Error>,
}

impl Options {
    /// When a measurement ends that began at `from`, if there is a limit: what was done meanwhile to prepare
    /// is part of it.
    pub(super) fn end(&self, from: Instant) -> Option<std::time::Instant> {
        let since = Duration::from_nanos(platform::now().since(from).ns());
        std::time::Instant::now().checked_add(self.limit?.saturating_sub(since))
    }
}

impl From<Logged> for Outcome {
    fn from(logged: Logged) -> Outcome {
        let Logged { model, flight, recorded, failure } = logged;
        Outcome { model, threshold: None, flight, recorded, failure }
    }
}

/// As the model has it; saturates.
pub(super) fn ns(duration: Duration) -> punctual_model::Duration {
    punctual_model::Duration::from_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
