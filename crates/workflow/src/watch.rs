//! An observation of live threads, from start to end. Its records go to a [`Sink`].

use crate::error::{Error, Result};
use crate::monitor::{Monitor, Seen};
use punctual_observe::{Observer, Options, Statistics, Summary, Switches, Target, Urgent};
use punctual_report::counted;
use punctual_trace::Record;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest wait for records. A signal or the end of the target is noticed within it.
pub(crate) const TICK: Duration = Duration::from_millis(200);

/// The same where what the kernel keeps is soon overwritten.
pub(crate) const PROMPT: Duration = Duration::from_millis(25);

/// What to watch, and for how long.
#[derive(Clone, Debug)]
pub struct Watch {
    /// What to observe, and how.
    pub observe: Options,
    /// When to end, if the target does not end before.
    pub limit: Option<Duration>,
}

impl Watch {
    /// Checks the options against each other.
    pub(crate) fn check(&self) -> Result<()> {
        if self.observe.include_best_effort && watches_all_threads(&self.observe.target) {
            return Err(Error::usage("--include-best-effort needs to know which processes to watch")
                .advise("name them with --pid, --cgroup or -- COMMAND"));
        }
        Ok(())
    }
}

/// Whether the target is all real-time threads of the machine.
pub fn watches_all_threads(target: &Target) -> bool {
    matches!(target, Target::AllRealTime)
}

/// The control group (version 2) of a process that lives.
pub(crate) fn cgroup(pid: u32) -> Option<String> {
    punctual_linux::proc::cgroup(pid).ok()
}

/// Takes the records of an observation.
pub(crate) trait Sink {
    /// Takes a record. An error ends the observation.
    fn record(&mut self, record: &Record) -> Result<()>;

    /// Called several times a second, when all records so far have been taken, to look at what threads do.
    fn look(&mut self, _observer: &Observer) {}

    /// Whether what it takes elsewhere has ended, and the observation with it.
    fn has_ended(&mut self) -> bool {
        false
    }

    /// Called after that, to read the kept moments of all threads; once more when the observation has ended.
    fn look_back(&mut self, _observer: &Observer, _has_ended: bool) {}

    /// Called several times a second.
    fn tick(&mut self, statistics: &Statistics) -> Result<()>;

    /// What has been seen so far, in words.
    fn progress(&self) -> String;

    /// How long records may wait to be taken.
    fn patience(&self) -> Duration {
        TICK
    }
}

/// A finished observation.
pub(crate) struct Watched {
    pub summary: Summary,
    /// What ended it early. The sink has all records from before.
    pub failure: Option<Error>,
}

/// Observes until the limit, the end of the target, or `stop`. `sink` is called once the observation has
/// begun.
pub(crate) fn run<S: Sink>(
    watch: &Watch,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
    sink: impl FnOnce(&Observer) -> Result<S>,
) -> Result<(S, Watched)> {
    let mut observer = Observer::start(&watch.observe)?;
    // Moments must be read before they are overwritten, whatever else runs.
    let _urgent = (watch.observe.switches == Switches::Kept).then(Urgent::begin);
    let end = watch.limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut progress = monitor.watching(watch.limit);
    let mut sink = sink(&observer)?;

    let mut failure = None;
    let mut target_ended = false;
    while !stop.load(Ordering::Relaxed) && !target_ended && failure.is_none() {
        let patience = sink.patience();
        let left = end.map_or(patience, |end| end.saturating_duration_since(Instant::now()).min(patience));
        if left == Duration::ZERO {
            break;
        }
        let polled = observer.poll(left, &mut |record| take(&mut sink, record, &mut failure));
        if failure.is_none() {
            sink.look(&observer);
            sink.look_back(&observer, false);
        }
        failure =
            failure.or(polled.err().map(Error::from)).or_else(|| sink.tick(&observer.statistics()).err());
        progress.update(&|| Seen { summary: sink.progress(), lost: observer.statistics().lost });
        target_ended = observer.target_ended() || sink.has_ended();
    }
    let summary = observer.finish(&mut |record| take(&mut sink, record, &mut failure))?;
    sink.look_back(&observer, true);
    drop(progress);
    if let Some(pid) = summary.command_left {
        warn_still_running(pid, monitor);
    }
    if target_ended {
        if let Some(status) = summary.command_status.filter(|status| !status.success()) {
            warn_command_failed(status, monitor);
        }
    }
    warn_losses(&summary.statistics, monitor);
    Ok((sink, Watched { summary, failure }))
}

/// Takes nothing after an error, so that what was taken before stays consistent.
fn take(sink: &mut impl Sink, record: &Record, failure: &mut Option<Error>) {
    if failure.is_none() {
        *failure = sink.record(record).err();
    }
}

pub(crate) fn warn_still_running(process: u32, monitor: &dyn Monitor) {
    monitor.warn(&format!(
        "the command (process {process}) was asked to end and is still running; kill -KILL {process} ends it"
    ));
}

pub(crate) fn warn_command_failed(status: ExitStatus, monitor: &dyn Monitor) {
    monitor.warn(&format!("the command ended with {status}; the results cover it until then"));
}

fn warn_losses(statistics: &Statistics, monitor: &dyn Monitor) {
    if statistics.lost > 0 {
        let lost = counted(statistics.lost, "record");
        monitor.warn(&format!(
            "{lost} lost; tasks end where records are missing; a larger --buffer loses fewer"
        ));
    }
    if statistics.untracked > 0 {
        let times = counted(statistics.untracked, "time");
        monitor.warn(&format!(
            "{times} a thread was not watched when it ran, because there were too many; watch fewer with \
             --pid, --cgroup or -- COMMAND"
        ));
    }
    if statistics.unseen > 0 {
        let threads = counted(statistics.unseen, "thread");
        monitor.warn(&format!("missing from the results: {threads} of which only the end was seen"));
    }
}

/// Tells why there may be nothing to see.
pub(crate) fn hint_nothing_seen(watch: &Watch, monitor: &dyn Monitor) {
    monitor.hint(if watch.observe.include_best_effort {
        "no thread of the target ran"
    } else if watches_all_threads(&watch.observe.target) {
        "no real-time thread ran; to watch others, name them with --include-best-effort and --pid, --cgroup \
         or -- COMMAND"
    } else {
        "no real-time thread of the target ran; --include-best-effort watches the others too"
    });
}
