//! A timing model from what an extractor found and what is known about the observation.

use crate::monitor::Monitor;
use punctual_extract::Extractor;
use punctual_model::{ClockStep, Instant, Platform, Task, Threads, TimingModel};
use punctual_report::counted;
use punctual_trace::Totals;

/// An observation: what was observed, where, and how much of it was missed.
pub(crate) struct Observed {
    pub platform: Platform,
    pub clock: String,
    pub from: Instant,
    pub until: Instant,
    pub records: u64,
    pub totals: Totals,
    /// What is to be known of it as a whole.
    pub notes: Vec<String>,
}

/// The timing model of an observation.
pub(crate) fn model(extractor: Extractor, observed: Observed, monitor: &dyn Monitor) -> TimingModel {
    let omitted_tasks = extractor.progress().omitted;
    if omitted_tasks > 0 {
        let omitted = counted(omitted_tasks, "task");
        monitor.warn(&format!(
            "{omitted} left out because there were too many; --merge-transitions keeps one task per thread"
        ));
    }
    let clock_steps = extractor.clock_steps().to_vec();
    let tasks = extractor.finish(observed.until);
    of_tasks(tasks, omitted_tasks, clock_steps, observed)
}

/// The timing model of these tasks.
pub(crate) fn of_tasks(
    tasks: Vec<Task>,
    omitted_tasks: u64,
    clock_steps: Vec<ClockStep>,
    observed: Observed,
) -> TimingModel {
    TimingModel {
        platform: observed.platform.known(),
        threads: Some(Threads {
            from_ns: observed.from,
            until_ns: observed.until,
            records: observed.records,
            lost_records: observed.totals.lost,
            untracked_threads: observed.totals.untracked,
            skipped_events: observed.totals.skipped,
            stolen_ns: observed.totals.stolen,
            omitted_tasks,
            clock_steps,
            notes: observed.notes,
            tasks,
        }),
        ..TimingModel::new(observed.clock)
    }
}
