//! The HTML page of a timing model, with the jobs of its recordings and the states of its dataflow program.

use crate::chains::{self, Trace};
use crate::destination::{is_standard_stream, own_name};
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::inputs::{Inputs, clock_mismatch};
use crate::model_file::{display_name, read_model};
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay::{self, Primaries, TaskKey, each_job, key_of, task_of};
use crate::tt;
use punctual_extract::JobSeen;
use punctual_extract::flow::Options as FlowOptions;
use punctual_model::{EndedBy, Instant, Task, TimingModel};
use punctual_report::html::{Jobs, States, dispatched_page, page};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What the page is made of.
pub struct Options {
    /// At most one timing model, and folders: recordings, and at most one trace of a dataflow program. At
    /// least one path. Without a model, one is made of the folders.
    pub inputs: Vec<PathBuf>,
    /// Which threads are shown.
    pub threads: ThreadFilter,
}

/// Inputs that were opened and fit together.
pub struct PageMaker {
    /// The timing model, or else the first of the folders.
    file: PathBuf,
    /// Whether the model is made of the folders.
    makes_model: bool,
    /// The trace whose states are drawn.
    flow: Option<Trace>,
    recordings: Vec<Recording>,
    /// Measurements of scheduling latency.
    latencies: Vec<Recording>,
    threads: ThreadFilter,
}

impl PageMaker {
    /// Opens the inputs and checks that they fit together.
    pub fn open(options: Options) -> Result<PageMaker> {
        let (file, folders) = separate(options.inputs)?;
        let makes_model = file.is_none();
        let Some(file) = file.or_else(|| folders.first().cloned()) else {
            return Err(Error::usage("there is nothing to make a page of"));
        };
        let Inputs { recordings, flow } = Inputs::open(&folders, &TimeRange::default(), "a page")?;
        if let Some((reader, path)) = flow.as_ref().filter(|_| makes_model) {
            for recording in &recordings {
                if let Some(why) = clock_mismatch(recording, reader) {
                    let (recording, path) = (recording.path().display(), path.display());
                    return Err(Error::usage(format!("cannot draw {recording} beside {path}")).because(why));
                }
            }
        }
        let flow =
            flow.map(|(reader, path)| Trace::new(reader, &path, &[], FlowOptions::default())).transpose()?;
        let (latencies, recordings): (Vec<_>, Vec<_>) =
            recordings.into_iter().partition(|recording| recording.about().latency);
        if let Some(latency) = latencies.first().filter(|_| !makes_model) {
            let path = latency.path().display();
            return Err(Error::usage(format!("{path} is a measurement of scheduling latency"))
                .because("it has no jobs to draw beside a timing model")
                .advise(format!("punctual report {path} makes a page of it")));
        }
        Ok(PageMaker { file, makes_model, flow, recordings, latencies, threads: options.threads })
    }

    /// What the page is named after: the timing model, or else the first folder.
    pub fn subject(&self) -> &Path {
        &self.file
    }

    /// Makes the page.
    pub fn run(mut self, monitor: &dyn Monitor) -> Result<String> {
        let mut model = if self.makes_model { self.make_model(monitor)? } else { read_model(&self.file)? };
        let file = display_name(&self.file).into_owned();
        self.threads.select(&mut model, &file)?;
        let states = self.flow.as_ref().map(|trace| self.states(trace, &model, monitor)).transpose()?;
        if let Some(page) = self.dispatched(&model, monitor)? {
            return Ok(page);
        }
        let mut jobs = None;
        if !self.recordings.is_empty() {
            let mut seen = Jobs::new(&model);
            let names = recording_names(&model, &self.recordings, &file)?;
            for (recording, name) in self.recordings.iter_mut().zip(&names) {
                let known = add_jobs(recording, name.as_deref(), &model, &self.threads, &mut seen, monitor)?;
                if known == 0 && !self.makes_model {
                    let path = recording.path().display();
                    return Err(Error::file(format!(
                        "{path} has none of the jobs in {file}, so they are from different observations"
                    ))
                    .advise(format!("punctual report {path} makes a page of the recording alone")));
                }
            }
            jobs = Some(seen);
        }
        Ok(page(&model, jobs.as_ref(), states.as_ref(), &self.title()))
    }

    fn title(&self) -> String {
        let name = own_name(&self.file).filter(|_| !is_standard_stream(&self.file));
        name.unwrap_or_else(|| "timing model".into())
    }

    /// The page of a table with the recording of its dispatcher, if that is what was given.
    fn dispatched(&self, model: &TimingModel, monitor: &dyn Monitor) -> Result<Option<String>> {
        let mut recordings = self.recordings.iter().filter(|it| it.activations() == 0);
        let Some(recording) = recordings.find(|it| tt::is_dispatched(it.reader())) else { return Ok(None) };
        let path = recording.path().display();
        let Some(table) = &model.table else {
            let file = display_name(&self.file);
            let what = match self.makes_model {
                true => format!("{path} was recorded by a dispatcher, and has no table"),
                false => format!("{path} was recorded by a dispatcher, and {file} has no table"),
            };
            return Err(Error::usage(what).advise("name the table that was dispatched, too"));
        };
        if self.recordings.len() > 1 {
            let what = format!("beside {path}, a page of a dispatched table takes no other recording");
            return Err(Error::usage(what));
        }
        let dispatched = tt::dispatched(recording.path(), table, monitor)?;
        Ok(Some(dispatched_page(model, &dispatched, &self.title())))
    }

    /// The model of the folders, as a replay and an analysis of chains make it.
    fn make_model(&self, monitor: &dyn Monitor) -> Result<TimingModel> {
        let flow = match &self.flow {
            Some(trace) => Some(trace.model(self.kernel(trace, monitor), monitor)?),
            None => None,
        };
        let observed = match self.recordings.is_empty() && self.latencies.is_empty() {
            true => None,
            false => {
                let (recordings, latencies) = (&self.recordings, &self.latencies);
                let workers = replay::processors();
                Some(replay::sections(recordings, latencies, &Default::default(), workers, monitor)?)
            }
        };
        match (observed, flow) {
            (Some(observed), Some(flow)) => Ok(chains::combine(observed, flow, monitor)),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => unreachable!("a folder is a recording or a trace"),
        }
    }

    /// The recording that splits the trace's execution times.
    fn kernel(&self, trace: &Trace, monitor: &dyn Monitor) -> Option<&Recording> {
        let unsplit = |why: &str| {
            monitor.hint(&format!("execution times are not split by what the kernel did: {why}"));
            None
        };
        match &self.recordings[..] {
            [] => None,
            [recording] => match chains::cannot_split(recording, trace.reader()) {
                None => Some(recording),
                Some(why) => unsplit(&format!("{}: {why}", recording.path().display())),
            },
            // Each may know some of the executors' threads; they are not merged.
            _ => unsplit("there are several recordings"),
        }
    }

    /// The part of a trace that the page draws.
    fn states(&self, trace: &Trace, model: &TimingModel, monitor: &dyn Monitor) -> Result<States> {
        let (reader, path, file) = (trace.reader(), trace.path().display(), display_name(&self.file));
        let Some(flow) = &model.dataflow else {
            return Err(Error::usage(format!(
                "{file} has no dataflow program, but {path} is the trace of one"
            ))
            .advise(format!("punctual chains {path} makes its model")));
        };
        let mut states = States::new(flow, reader.about(), flow.from_ns);
        let progress = monitor.begin("drawing states", reader.bytes(), Unit::Bytes);
        reader.read(&mut |item| states.item(&item), &mut |bytes| progress.set(bytes))?;
        if states.events() == 0 && flow.events > 0 {
            return Err(Error::file(format!(
                "{path} has none of the events in {file}; are they of the same run?"
            )));
        }
        Ok(states)
    }
}

/// Separates the timing model, wherever it stands, from the folders.
fn separate(paths: Vec<PathBuf>) -> Result<(Option<PathBuf>, Vec<PathBuf>)> {
    let is_alone = paths.len() == 1;
    // A missing path is reported as what it most likely should be.
    let is_file = |path: &PathBuf| is_standard_stream(path) || !path.is_dir() && (path.exists() || is_alone);
    let (mut files, folders): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(is_file);
    if let [one, other, ..] = &files[..] {
        let (one, other) = (display_name(one), display_name(other));
        return Err(Error::usage(format!("{one} and {other} are both files; a page shows one timing model"))
            .advise("the recordings and the trace that it was made from are folders"));
    }
    Ok((files.pop(), folders))
}

/// What the model calls each recording: nothing if it is of one recording alone, else the path it was
/// replayed from.
fn recording_names(model: &TimingModel, recordings: &[Recording], file: &str) -> Result<Vec<Option<String>>> {
    let known: BTreeSet<&str> = model.tasks().iter().filter_map(|task| task.recording.as_deref()).collect();
    if known.is_empty() {
        return match recordings {
            [_] => Ok(vec![None]),
            _ => Err(Error::usage(format!("{file} is of one recording; name only that one"))),
        };
    }
    let mut names = Vec::new();
    for recording in recordings {
        let path = recording.path();
        let is_same = |name: &&&str| {
            Path::new(name) == path
                || fs::canonicalize(name).ok().is_some_and(|name| fs::canonicalize(path).ok() == Some(name))
        };
        let Some(name) = known.iter().find(is_same).map(|name| Some((*name).to_owned())) else {
            let known: Vec<&str> = known.into_iter().collect();
            return Err(Error::usage(format!(
                "{file} is not of {}, but of {}",
                path.display(),
                known.join(", ")
            )));
        };
        if names.contains(&name) {
            return Err(Error::usage(format!("{} was named twice", path.display())));
        }
        names.push(name);
    }
    Ok(names)
}

/// Adds the jobs of a recording to those that the page shows. Returns how many are of primary separators.
fn add_jobs(
    recording: &mut Recording,
    name: Option<&str>,
    model: &TimingModel,
    threads: &ThreadFilter,
    seen: &mut Jobs,
    monitor: &dyn Monitor,
) -> Result<u64> {
    let tasks: Vec<&Task> = model.tasks().iter().filter(|task| task.recording.as_deref() == name).collect();
    // The model may be of a part of the recording.
    let (from, until) = match name {
        None => match &model.threads {
            Some(threads) => (threads.from_ns, threads.until_ns),
            None => span(&tasks, recording),
        },
        Some(_) => span(&tasks, recording),
    };
    recording.narrow(from, until)?;
    let progress = monitor.begin("reading jobs", recording.activations(), Unit::Activations);
    let merged = model.tasks().iter().any(|task| task.merged_transitions > 0);
    // The page counts jobs of tasks that the model lacks; those that were filtered out are not meant.
    let shown: HashSet<TaskKey> = tasks.iter().map(|task| key_of(task)).collect();
    let is_shown = |job: &JobSeen<'_>| threads.is_empty() || shown.contains(&task_of(job));
    let primaries = Primaries::new(tasks);
    let mut known = 0_u64;
    seen.recording(name);
    each_job(
        recording.stopped_by(monitor),
        merged,
        &*progress,
        |_, _| {},
        |job| {
            if is_shown(job) {
                seen.job(job.tid, job.phase, &job.separator, job.number, job.job);
            }
            known += u64::from(primaries.is_primary(job));
        },
    )?;
    drop(progress);
    recording.report_problems(monitor);
    Ok(known)
}

/// The part of one of several recordings that its tasks are of: the model says only when the first began and
/// the last ended.
fn span(tasks: &[&Task], recording: &Recording) -> (Instant, Instant) {
    let from = tasks.iter().map(|task| task.from_ns).min();
    let until = tasks.iter().find(|task| task.ended_by == EndedBy::ObservationEnd).map(|task| task.until_ns);
    (from.unwrap_or(recording.from()), until.unwrap_or(recording.reader().until()))
}
