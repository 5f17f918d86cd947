//! Every job of recordings, one a row: in one list, or in a folder with a file for each task.
//!
//! The recording is read twice: for its models, which say what each task's primary separator is, and for its
//! jobs, which leave as they come. Not for the columns: `punctual_report::jobs` has them.

mod folder;

use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay::{self, Primaries, TaskKey, each_job, key_of, task_of};
use crate::why;
use punctual_extract::{JobSeen, Options as ExtractOptions, StreamOptions};
use punctual_model::causes::LateJob;
use punctual_model::{Instant, TimingModel};
use punctual_report::counted;
use punctual_report::jobs::{Format, Row, Writer};
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub use folder::JobFolder;

/// Which jobs to list, and where.
pub struct Options {
    /// Folders of recordings: at least one, and exactly one for a list.
    pub recordings: Vec<PathBuf>,
    /// Which jobs of each.
    pub choice: Choice,
    /// Where to.
    pub output: Output,
}

/// Which jobs of a recording.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which part of it.
    pub range: TimeRange,
    /// Whose jobs.
    pub threads: ThreadFilter,
    /// Whether a thread stays one task when its policy, priority or affinity changes.
    pub merge_transitions: bool,
    /// Only the jobs of primary separators.
    pub primary_only: bool,
    /// Whether to say why jobs were late.
    pub causes: Option<Causes>,
    /// The number of workers that make the models.
    pub workers: NonZeroUsize,
}

/// Which jobs to list if their causes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Causes {
    /// All.
    OfAll,
    /// The late ones.
    OfLate,
    /// So many of each task: the late ones that took longest.
    OfWorst(usize),
}

/// Where jobs go.
pub enum Output {
    /// One list.
    List(JobList),
    /// A Parquet file for each task.
    Folder(JobFolder),
}

/// Where and how to list jobs.
pub struct JobList {
    destination: Destination,
    format: Format,
}

impl JobList {
    /// A new file, `*.csv` or `*.parquet`.
    pub fn new(path: &Path, replace: bool) -> Result<JobList> {
        let format = Format::from_file_name(path).map_err(|error| Error::usage(error.to_string()))?;
        Ok(JobList { destination: Destination::new(path, replace)?, format })
    }

    /// Comma-separated values on standard output.
    pub fn printed() -> Result<JobList> {
        Ok(JobList { destination: Destination::new(Path::new("-"), false)?, format: Format::Csv })
    }
}

/// Lists the jobs.
pub fn jobs(options: &Options, monitor: &dyn Monitor) -> Result<()> {
    if matches!(options.output, Output::List(_)) && options.recordings.len() > 1 {
        return Err(
            Error::usage("a list has the jobs of one recording").advise("--partitioned DIR takes several")
        );
    }
    let choice = &options.choice;
    let recordings: Vec<Recording> =
        options.recordings.iter().map(|path| open(path, choice)).collect::<Result<_>>()?;
    let names = folder::names(&recordings, &options.output)?;
    if let Output::Folder(folder) = &options.output {
        folder.check(&names)?;
    }
    for (recording, name) in recordings.into_iter().zip(names) {
        let jobs = Jobs::new(recording, choice, monitor)?;
        let listing = jobs.listing();
        match &options.output {
            Output::List(list) => listing.write_list(list, monitor)?,
            Output::Folder(folder) => folder.add(&listing, &name, monitor)?,
        }
    }
    match &options.output {
        Output::List(_) => Ok(()),
        Output::Folder(folder) => folder.finish(monitor),
    }
}

/// Opens a recording that has jobs.
fn open(path: &Path, choice: &Choice) -> Result<Recording> {
    let recording = Recording::open(path, &choice.range)?;
    match recording.about().latency {
        true => Err(Error::usage(format!("{} has no jobs", path.display()))
            .because("it is a measurement of scheduling latency")),
        false => Ok(recording),
    }
}

/// The jobs of one recording, which can be read as often as wanted.
pub struct Jobs {
    recording: Recording,
    model: TimingModel,
    merge_transitions: bool,
    primary_only: bool,
    late: Option<Late>,
}

/// The late jobs of a recording, by thread and end: a thread has one job at a time.
struct Late {
    jobs: HashMap<(u32, Instant), LateJob>,
    /// Whether no others are listed.
    only: bool,
}

impl Late {
    fn new(recording: &Recording, causes: Causes, choice: &Choice, monitor: &dyn Monitor) -> Result<Late> {
        let worst = match causes {
            Causes::OfWorst(most) => most,
            Causes::OfAll | Causes::OfLate => usize::MAX,
        };
        let explained = why::explain(
            recording,
            &why::Choice {
                threads: choice.threads.clone(),
                jobs: why::Jobs::Late,
                worst,
                stream: StreamOptions::without_curves(),
                workers: choice.workers,
            },
            monitor,
        )?;
        let jobs = explained.causes.into_iter().flat_map(|causes| causes.tasks).flat_map(|task| task.worst);
        let jobs = jobs.map(|job| ((job.tid, job.end_ns), job)).collect();
        Ok(Late { jobs, only: causes != Causes::OfAll })
    }
}

impl Jobs {
    /// Opens a recording, and reads it once for its tasks.
    pub fn open(path: &Path, choice: &Choice, monitor: &dyn Monitor) -> Result<Jobs> {
        Jobs::new(open(path, choice)?, choice, monitor)
    }

    fn new(recording: Recording, choice: &Choice, monitor: &dyn Monitor) -> Result<Jobs> {
        // What the primary separator is does not depend on curves.
        let models = ExtractOptions {
            stream: StreamOptions::without_curves(),
            merge_transitions: choice.merge_transitions,
        };
        let mut model = replay::model(std::slice::from_ref(&recording), &models, choice.workers, monitor)?;
        recording.report_problems(monitor);
        choice.threads.select(&mut model, "the recording")?;
        let Choice { merge_transitions, primary_only, causes, .. } = *choice;
        let late = causes.map(|causes| Late::new(&recording, causes, choice, monitor)).transpose()?;
        Ok(Jobs { recording, model, merge_transitions, primary_only, late })
    }

    /// The clock of all instants.
    pub fn clock(&self) -> &str {
        &self.model.clock
    }

    /// Reads the recording for its jobs, in the order of their ends within each thread.
    pub fn each(&self, monitor: &dyn Monitor, each: &mut dyn FnMut(&Row<'_>)) -> Result<()> {
        self.listing().each_row(monitor, |_, row| each(row))
    }

    fn listing(&self) -> Listing<'_> {
        Listing {
            recording: &self.recording,
            model: &self.model,
            tasks: self.model.tasks().iter().map(key_of).collect(),
            primaries: Primaries::new(self.model.tasks()),
            merge_transitions: self.merge_transitions,
            primary_only: self.primary_only,
            late: self.late.as_ref(),
        }
    }
}

/// Lists the jobs of the model's tasks.
pub(crate) fn list(
    recording: &Recording,
    model: &TimingModel,
    merge_transitions: bool,
    list: &JobList,
    monitor: &dyn Monitor,
) -> Result<()> {
    let tasks = model.tasks().iter().map(key_of).collect();
    let primaries = Primaries::new(model.tasks());
    let (primary_only, late) = (false, None);
    let listing = Listing { recording, model, tasks, primaries, merge_transitions, primary_only, late };
    listing.write_list(list, monitor)
}

/// What is to be listed of one recording.
struct Listing<'a> {
    recording: &'a Recording,
    model: &'a TimingModel,
    tasks: HashSet<TaskKey>,
    primaries: Primaries,
    merge_transitions: bool,
    primary_only: bool,
    late: Option<&'a Late>,
}

impl Listing<'_> {
    /// Reads the recording for its jobs, and hands over those that are to be listed.
    fn each_row(&self, monitor: &dyn Monitor, mut row: impl FnMut(TaskKey, &Row<'_>)) -> Result<()> {
        let progress = monitor.begin("listing jobs", self.recording.activations(), Unit::Activations);
        let each = |seen: &JobSeen<'_>| {
            let key = task_of(seen);
            let primary = self.primaries.is_primary(seen);
            let late = self.late.filter(|_| primary);
            let late = late.and_then(|late| late.jobs.get(&(seen.tid, seen.job.end)));
            let is_wanted = late.is_some() || !self.late.is_some_and(|late| late.only);
            if self.tasks.contains(&key) && is_wanted && (primary || !self.primary_only) {
                row(key, &Row { late, ..to_row(seen, primary) });
            }
        };
        each_job(self.recording.stopped_by(monitor), self.merge_transitions, &*progress, |_, _| {}, each)
    }

    fn write_list(&self, list: &JobList, monitor: &dyn Monitor) -> Result<()> {
        let name = list.destination.path().display();
        let failed = |error: &dyn std::fmt::Display| Error::file(name.to_string()).because(error.to_string());
        let unwritten = |error: std::io::Error| Error::io("write", &name, &error);
        let pending = list.destination.begin().map_err(unwritten)?;
        let mut writer = Writer::new(pending, list.format, &self.model.clock, self.late.is_some())
            .map_err(|error| failed(&error))?;
        let mut broken = None;
        self.each_row(monitor, |_, row| {
            if broken.is_none() {
                broken = writer.row(row).err();
            }
        })?;
        if let Some(error) = broken {
            return Err(failed(&error));
        }
        let pending = writer.finish().map_err(|error| failed(&error))?;
        pending.finish().map_err(unwritten)?;
        if !list.destination.is_standard_output() {
            monitor.hint(&format!("wrote every job to {name}"));
        }
        Ok(())
    }
}

fn to_row<'a>(seen: &JobSeen<'a>, primary: bool) -> Row<'a> {
    Row {
        tid: seen.tid,
        pid: seen.pid,
        phase: seen.phase,
        name: seen.name,
        separator: seen.separator,
        primary,
        number: seen.number,
        job: seen.job,
        segments: seen.segments,
        expirations: seen.expirations,
        disturbance: seen.disturbance,
        late: None,
    }
}

/// `1 job of 2 tasks`.
fn summary(jobs: u64, tasks: u64) -> String {
    format!("{} of {}", counted(jobs, "job"), counted(tasks, "task"))
}
