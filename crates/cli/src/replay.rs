//! `punctual replay`: recordings to models, and to lists of jobs.

use crate::args;
use crate::failure::{Code, Failure, reason};
use crate::output::Destination;
use crate::progress::Bar;
use crate::recording::Recording;
use crate::results::{self, Observed, Results};
use punctual_extract::{Extractor, JobSeen, Options, Replay, StreamOptions, replay};
use punctual_model::{Separator, Task, TimingModel};
use punctual_report::jobs::{Format, Row, Writer};
use punctual_trace::{Record, Totals};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Everything that was asked for, checked as far as it can be before replaying.
pub struct Plan {
    recordings: Vec<Recording>,
    options: Options,
    results: Results,
    workers: NonZeroUsize,
    jobs: Option<(Destination, Format)>,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Replay) -> Result<Plan, Failure> {
        let results = Results::new(&arguments.results)?;
        if arguments.jobs_out.is_some() && arguments.recordings.len() > 1 {
            return Err(Failure::new(
                Code::Usage,
                "--jobs-out lists the jobs of one recording; replay them one after the other",
            ));
        }
        let jobs = match &arguments.jobs_out {
            Some(path) => {
                let format =
                    Format::of(path).map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
                Some((Destination::new(path, arguments.results.force)?, format))
            }
            None => None,
        };
        let open = arguments.recordings.iter().map(|path| Recording::open(path, &arguments.stretch));
        Ok(Plan {
            recordings: open.collect::<Result<_, _>>()?,
            options: results::options(&arguments.models),
            results,
            workers: arguments.jobs.unwrap_or_else(processors),
            jobs,
            quiet: arguments.quiet,
        })
    }
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    let model = model(&plan.recordings, &plan.options, plan.workers, plan.quiet)?;
    plan.recordings.iter().for_each(Recording::warn);
    if model.tasks().is_empty() && !plan.quiet {
        eprintln!("punctual: there is no thread in it");
    }
    if let (Some((destination, format)), [recording]) = (&plan.jobs, &plan.recordings[..]) {
        list_jobs(recording, &model, plan.options.merge_transitions, destination, *format, plan.quiet)?;
    }
    plan.results.hand_over(&model, plan.quiet)
}

/// A worker for each processor.
pub fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// One model of all recordings, of which there has to be one.
pub fn model(
    recordings: &[Recording],
    options: &Options,
    workers: NonZeroUsize,
    quiet: bool,
) -> Result<TimingModel, Failure> {
    Ok(merge(extract_all(recordings, options, workers, quiet)?, recordings))
}

/// The models of each recording, several recordings at once where there are workers for that.
fn extract_all(
    recordings: &[Recording],
    options: &Options,
    workers: NonZeroUsize,
    quiet: bool,
) -> Result<Vec<TimingModel>, Failure> {
    let total = recordings.iter().map(Recording::activations).sum();
    let bar = Bar::new(quiet, "replaying", total, "activations");
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
                    let progress = |activations: u64| {
                        done[index].store(activations, Ordering::Relaxed);
                        bar.set(done.iter().map(|done| done.load(Ordering::Relaxed)).sum());
                    };
                    let replayed =
                        replay(recording, &Replay { workers, options: options.clone() }, &progress);
                    let model = replayed
                        .map(|extractor| to_model(extractor, recording, done[index].load(Ordering::Relaxed)));
                    models.lock().unwrap_or_else(PoisonError::into_inner).push((index, model));
                }
            });
        }
    });
    let mut models = models.into_inner().unwrap_or_else(PoisonError::into_inner);
    models.sort_by_key(|(index, _)| *index);
    models.into_iter().map(|(_, model)| Ok(model?)).collect()
}

/// `records` is how many activations were read. What is damaged is lost too.
fn to_model(extractor: Extractor, recording: &Recording, records: u64) -> TimingModel {
    let (about, totals) = (recording.about(), recording.reader().totals());
    let lost = totals.lost + recording.unreadable();
    results::model(
        extractor,
        Observed {
            platform: about.platform.clone(),
            clock: about.clock.clone(),
            from: recording.from(),
            until: recording.reader().until(),
            records,
            totals: Totals { lost, ..totals },
        },
    )
}

/// One model of several: each task says where it comes from.
fn merge(models: Vec<TimingModel>, recordings: &[Recording]) -> TimingModel {
    let several = models.len() > 1;
    let mut models = models.into_iter().zip(recordings).map(|(mut model, recording)| {
        if several {
            let name = recording.path().display().to_string();
            let tasks = model.threads.iter_mut().flat_map(|threads| &mut threads.tasks);
            tasks.for_each(|task| task.recording = Some(name.clone()));
        }
        model
    });
    let Some(mut all) = models.next() else { unreachable!("whoever replays has a recording") };
    for model in models {
        if (&model.platform, &model.clock) != (&all.platform, &all.clock) {
            eprintln!(
                "punctual: the recordings are of different machines or clocks; the file names those of the first"
            );
        }
        all = all.merge(model).expect("threads can be merged");
    }
    all
}

/// The separator that each task's jobs are shown by.
pub struct Primaries(HashMap<(u32, u32, u32), Separator>);

impl Primaries {
    /// Of tasks that are of one recording.
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Primaries {
        let primary = |task: &Task| Some(task.streams.get(task.primary?)?.separator.key());
        let key = |task: &Task| (task.pid, task.tid, task.phase);
        Primaries(tasks.into_iter().filter_map(|task| Some((key(task), primary(task)?))).collect())
    }

    pub fn is_primary(&self, seen: &JobSeen<'_>) -> bool {
        self.0.get(&(seen.pid, seen.tid, seen.phase)) == Some(&seen.separator.key())
    }
}

/// Goes through a recording once more for its jobs. What models they make is known by then, so horizons are
/// short.
pub fn each_job(
    recording: &Recording,
    merge_transitions: bool,
    bar: &Bar,
    mut record: impl FnMut(&Record),
    mut job: impl FnMut(&JobSeen<'_>),
) -> Result<(), Failure> {
    let mut extractor = Extractor::new(Options {
        stream: StreamOptions { curve_horizon: 1, wcet_horizon: 1 },
        merge_transitions,
    });
    let mut activations = 0_u64;
    recording.read_all(&mut |next| {
        record(next);
        extractor.record_jobs(next, &mut job);
        if matches!(next, Record::Activation(_)) {
            activations += 1;
            if activations % 65_536 == 0 {
                bar.set(activations);
            }
        }
    })
}

fn list_jobs(
    recording: &Recording,
    model: &TimingModel,
    merge_transitions: bool,
    destination: &Destination,
    format: Format,
    quiet: bool,
) -> Result<(), Failure> {
    let name = destination.path().display();
    let failed = |error: &dyn std::fmt::Display| Failure::new(Code::File, format!("{name}: {error}"));
    let primaries = Primaries::of(model.tasks());
    let pending = destination.begin().map_err(|error| Failure::file("write", &name, reason(&error)))?;
    let mut writer = Writer::new(pending, format, &model.clock).map_err(|error| failed(&error))?;
    let bar = Bar::new(quiet, "listing jobs", recording.activations(), "activations");
    let mut broken = None;
    each_job(
        recording,
        merge_transitions,
        &bar,
        |_| {},
        |seen| {
            let row = Row {
                tid: seen.tid,
                pid: seen.pid,
                phase: seen.phase,
                name: seen.name,
                separator: seen.separator,
                primary: primaries.is_primary(seen),
                number: seen.number,
                job: seen.job,
                segments: seen.segments,
                expirations: seen.expirations,
                disturbance: seen.disturbance,
            };
            if broken.is_none() {
                broken = writer.row(&row).err();
            }
        },
    )?;
    if let Some(error) = broken {
        return Err(failed(&error));
    }
    let pending = writer.finish().map_err(|error| failed(&error))?;
    pending.finish().map_err(|error| Failure::file("write", &name, reason(&error)))?;
    drop(bar);
    if !quiet {
        eprintln!("Wrote {name}: every job.");
    }
    Ok(())
}
