//! Recordings to timing models, and to lists of jobs.

pub(crate) mod latency;

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::jobs::{self, JobList};
use crate::models::{self, Observed};
use crate::monitor::{Monitor, Progress, Unit};
use crate::recording::{Recording, Stoppable, TimeRange};
use punctual_extract::{
    Extractor, JobSeen, Options as ExtractOptions, Replay, StreamOptions, replay as pieces,
};
use punctual_model::{Instant, Separator, Task, TimingModel};
use punctual_trace::{Record, Totals};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What to replay.
pub struct Options {
    /// Folders of recordings: at least one.
    pub recordings: Vec<PathBuf>,
    /// Which part of each.
    pub range: TimeRange,
    /// Whose models to keep.
    pub threads: ThreadFilter,
    /// Which models.
    pub models: ExtractOptions,
    /// The number of workers; the result does not depend on it.
    pub workers: NonZeroUsize,
    /// Where to list every job.
    pub jobs: Option<JobList>,
}

/// Makes one timing model of all recordings, and lists their jobs if asked to.
pub fn replay(options: &Options, monitor: &dyn Monitor) -> Result<TimingModel> {
    if options.jobs.is_some() && options.recordings.len() > 1 {
        return Err(Error::usage("--jobs-out lists the jobs of one recording")
            .advise("replay the recordings one by one"));
    }
    let open = options.recordings.iter().map(|path| Recording::open(path, &options.range));
    let all: Vec<Recording> = open.collect::<Result<_>>()?;
    let (latencies, recordings): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.about().latency);
    check_options(options, &latencies)?;
    let mut model = sections(&recordings, &latencies, &options.models, options.workers, monitor)?;
    if recordings.is_empty() {
        return Ok(model);
    }
    recordings.iter().for_each(|recording| recording.report_problems(monitor));
    if model.tasks().is_empty() {
        monitor.hint("the recording has no threads");
    }
    options.threads.select(&mut model, "the recording")?;
    if let (Some(list), [recording]) = (&options.jobs, &recordings[..]) {
        jobs::list(recording, &model, options.models.merge_transitions, list, monitor)?;
    }
    Ok(model)
}

/// Measurements of latency have no jobs, and no part of one says what another part was.
fn check_options(options: &Options, latencies: &[Recording]) -> Result<()> {
    let Some(first) = latencies.first() else { return Ok(()) };
    let (option, why) = if !options.range.is_everything() {
        ("--from or --until", "its greatest values are those of the whole measurement")
    } else if options.jobs.is_some() {
        ("--jobs-out", "it has no jobs")
    } else {
        return Ok(());
    };
    let path = first.path().display();
    Err(Error::usage(format!("{path} is a measurement of scheduling latency: {option} is not for it"))
        .because(why))
}

/// One worker per processor.
pub fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// One model of recordings of threads and of measurements of scheduling latency: at least one of all.
pub(crate) fn sections(
    recordings: &[Recording],
    latencies: &[Recording],
    options: &ExtractOptions,
    workers: NonZeroUsize,
    monitor: &dyn Monitor,
) -> Result<TimingModel> {
    match latency::replay(latencies, monitor)? {
        Some(latency) if recordings.is_empty() => Ok(latency),
        latency => latency::merge(model(recordings, options, workers, monitor)?, latency),
    }
}

/// One model of all recordings of threads, of which there must be at least one.
pub(crate) fn model(
    recordings: &[Recording],
    options: &ExtractOptions,
    workers: NonZeroUsize,
    monitor: &dyn Monitor,
) -> Result<TimingModel> {
    Ok(merge(extract_all(recordings, options, workers, monitor)?, recordings, monitor))
}

/// The model of each recording; several are replayed at once if there are enough workers.
fn extract_all(
    recordings: &[Recording],
    options: &ExtractOptions,
    workers: NonZeroUsize,
    monitor: &dyn Monitor,
) -> Result<Vec<TimingModel>> {
    let total = recordings.iter().map(Recording::activations).sum();
    let progress = monitor.begin("replaying", total, Unit::Activations);
    let at_once = workers.get().min(recordings.len());
    let workers = NonZeroUsize::new(workers.get() / at_once).unwrap_or(NonZeroUsize::MIN);
    let done: Vec<AtomicU64> = recordings.iter().map(|_| AtomicU64::new(0)).collect();
    let next = AtomicUsize::new(0);
    let models = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(recording) = recordings.get(index) else { break };
                    let advance = |activations: u64| {
                        done[index].store(activations, Ordering::Relaxed);
                        progress.set(done.iter().map(|done| done.load(Ordering::Relaxed)).sum());
                    };
                    let replay = Replay { workers, options: options.clone() };
                    let replayed = pieces(&recording.stopped_by(monitor), &replay, &advance);
                    let model = replayed.map(|extractor| {
                        to_model(extractor, recording, done[index].load(Ordering::Relaxed), monitor)
                    });
                    models.lock().unwrap_or_else(PoisonError::into_inner).push((index, model));
                }
            });
        }
    });
    let mut models = models.into_inner().unwrap_or_else(PoisonError::into_inner);
    models.sort_by_key(|(index, _)| *index);
    models.into_iter().map(|(_, model)| model).collect()
}

/// `records` activations were read. Damaged ones count as lost.
fn to_model(extractor: Extractor, recording: &Recording, records: u64, monitor: &dyn Monitor) -> TimingModel {
    let (about, totals) = (recording.about(), recording.reader().totals());
    let lost = totals.lost + recording.unreadable();
    let observed = Observed {
        platform: about.platform.clone(),
        clock: about.clock.clone(),
        from: recording.from(),
        until: recording.reader().until(),
        records,
        totals: Totals { lost, ..totals },
        notes: recording.reader().notes().to_vec(),
    };
    models::model(extractor, observed, monitor)
}

/// One model of several: each task names its recording.
fn merge(models: Vec<TimingModel>, recordings: &[Recording], monitor: &dyn Monitor) -> TimingModel {
    let several = models.len() > 1;
    let mut models = models.into_iter().zip(recordings).map(|(mut model, recording)| {
        if several {
            let name = recording.path().display().to_string();
            let tasks = model.threads.iter_mut().flat_map(|threads| &mut threads.tasks);
            tasks.for_each(|task| task.recording = Some(name.clone()));
        }
        model
    });
    let Some(mut all) = models.next() else { unreachable!("there is at least one recording") };
    for model in models {
        if (&model.platform, &model.clock) != (&all.platform, &all.clock) {
            monitor.warn(
                "the recordings are of different machines or clocks; the timing model has those of the first",
            );
        }
        all = all.merge(model).expect("threads can be merged");
    }
    all
}

/// A task of one recording: process, thread, phase, and when it began, as TIDs are reused.
pub(crate) type TaskKey = (u32, u32, u32, Instant);

pub(crate) fn key_of(task: &Task) -> TaskKey {
    (task.pid, task.tid, task.phase, task.from_ns)
}

/// The task of a job.
pub(crate) fn task_of(seen: &JobSeen<'_>) -> TaskKey {
    (seen.pid, seen.tid, seen.phase, seen.from)
}

/// The primary separator of each task: its jobs are the ones shown.
pub(crate) struct Primaries(HashMap<TaskKey, Separator>);

impl Primaries {
    /// Of tasks of one recording.
    pub fn new<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Primaries {
        let primary = |task: &Task| Some(task.streams.get(task.primary?)?.separator.key());
        Primaries(tasks.into_iter().filter_map(|task| Some((key_of(task), primary(task)?))).collect())
    }

    pub fn is_primary(&self, seen: &JobSeen<'_>) -> bool {
        self.is_at(&task_of(seen), seen.separator)
    }

    /// Whether this is the separator of the task.
    pub fn is_at(&self, task: &TaskKey, separator: Separator) -> bool {
        self.0.get(task) == Some(&separator.key())
    }
}

/// Reads a recording once more for its jobs. Its models are known by then, so horizons are short. `record`
/// gets each record before the extractor does.
pub(crate) fn each_job(
    recording: Stoppable<'_>,
    merge_transitions: bool,
    progress: &dyn Progress,
    mut record: impl FnMut(&Record, &Extractor),
    mut job: impl FnMut(&JobSeen<'_>),
) -> Result<()> {
    let mut extractor =
        Extractor::new(ExtractOptions { stream: StreamOptions::without_curves(), merge_transitions });
    let mut activations = 0_u64;
    recording.read_all(&mut |next| {
        record(next, &extractor);
        extractor.record_jobs(next, &mut job);
        if matches!(next, Record::Activation(_)) {
            activations += 1;
            if activations % 65_536 == 0 {
                progress.set(activations);
            }
        }
    })
}
