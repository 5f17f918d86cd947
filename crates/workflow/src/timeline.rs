//! Timelines for the Perfetto UI: a recording of threads, the trace of a dataflow program, or both; or a
//! measurement of scheduling latency.

mod around;
mod dataflow;
mod latency;

pub use around::{Around, JobName, around};

use crate::chains::Trace;
use crate::display_name;
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::inputs::{DIFFERENT_TIMES, Inputs, clock_mismatch};
use crate::model_file::read_model;
use crate::models::{self, Observed};
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay::{Primaries, each_job};
use punctual_extract::flow::Options as FlowOptions;
use punctual_extract::{Extractor, Options as ExtractOptions, StreamOptions};
use punctual_model::{Instant, TimingModel};
use punctual_report::counted;
use punctual_report::timeline::{Counts, Timeline, time_table};
use punctual_trace::Record;
use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;

/// What the timeline is made of.
pub struct Options {
    /// A recording of threads, the trace of a dataflow program, or one of each.
    pub inputs: Vec<PathBuf>,
    /// Which part of the recording, or of the trace if there is no recording.
    pub range: TimeRange,
    /// Which threads are shown.
    pub threads: ThreadFilter,
    /// Show only what happened in this time; jobs have the numbers that they have in the whole.
    pub window: Option<(Instant, Instant)>,
}

/// Inputs that were opened and fit together.
pub struct TimelineMaker {
    /// Shown alone.
    table: Option<TimingModel>,
    recording: Option<Recording>,
    flow: Option<Trace>,
    threads: ThreadFilter,
    window: Option<(Instant, Instant)>,
}

/// What a timeline shows.
pub struct Shown {
    /// In words: `3 threads, 1,200 jobs`.
    pub contents: Vec<String>,
    /// Whether it shows context switches; `None` if it shows no threads.
    pub switches: Option<bool>,
    /// Whether it shows the threads that were not watched, too.
    pub all_threads: bool,
}

impl Shown {
    /// No threads, but this.
    fn without_threads(contents: String) -> Shown {
        Shown { contents: vec![contents], switches: None, all_threads: false }
    }
}

impl TimelineMaker {
    /// Opens the inputs and checks that they fit together.
    pub fn open(options: &Options) -> Result<TimelineMaker> {
        if let Some(model) = table_of(options)? {
            let (threads, window) = (options.threads.clone(), None);
            return Ok(TimelineMaker { table: Some(model), recording: None, flow: None, threads, window });
        }
        let Inputs { mut recordings, flow } = Inputs::open(&options.inputs, &options.range, "a timeline")?;
        let recording = recordings.pop();
        let is_latency = |recording: &&Recording| recording.about().latency;
        if let Some(latency) = recording.as_ref().filter(is_latency) {
            latency::require_alone(latency, &options.range, flow.is_some() || !recordings.is_empty())?;
        }
        if let (Some(second), Some(first)) = (&recording, recordings.last()) {
            let (first, second) = (first.path().display(), second.path().display());
            return Err(Error::usage(format!(
                "{first} and {second} are both recordings of threads; a timeline shows one, and a trace of a \
                 dataflow program"
            )));
        }
        if let Some((reader, path)) = &flow {
            let path = path.display();
            if let Some(recording) = &recording {
                if let Some(why) = clock_mismatch(recording, reader) {
                    let recording = recording.path().display();
                    return Err(Error::usage(format!("cannot show {recording} beside {path}")).because(why));
                }
            }
        }
        let (threads, range, window) = (options.threads.clone(), options.range, options.window);
        if let (None, Some((_, path))) = (&recording, &flow) {
            threads.refuse_without_threads(&display_name(path))?;
        }
        let options = FlowOptions { curve_horizon: 1 };
        let flow = flow.map(|(reader, path)| Trace::new(reader, &path, &[], options)).transpose()?;
        // Offsets are of the recording, if there is one.
        let flow = flow.map(|trace| match &recording {
            Some(it) if !range.is_everything() => trace.between(it.from(), it.reader().until()),
            _ => trace.within(range),
        });
        Ok(TimelineMaker { table: None, recording, flow, threads, window })
    }

    /// Writes the timeline. `name` is what errors call `out`.
    pub fn write(&self, out: &mut impl Write, name: &str, monitor: &dyn Monitor) -> Result<Shown> {
        if let Some((model, table)) =
            self.table.as_ref().and_then(|model| Some((model, model.table.as_ref()?)))
        {
            let failed =
                |error: &dyn std::fmt::Display| Error::file(name.to_owned()).because(error.to_string());
            let runs = time_table::write(out, model, table).map_err(|error| failed(&error))?;
            let (tasks, runs) = (counted(table.tasks.len() as u64, "task"), counted(runs, "run"));
            return Ok(Shown::without_threads(format!("one repetition of a table, {tasks}, {runs}")));
        }
        if let Some(recording) = self.recording.as_ref().filter(|recording| recording.about().latency) {
            return latency::write(recording, out, name, monitor).map(Shown::without_threads);
        }
        let (mut contents, mut all_threads) = (Vec::new(), false);
        // Threads declare the clock and the processes; a program can follow them.
        if let Some(recording) = &self.recording {
            let (threads, bystanders) = write_threads(recording, self, out, name, monitor)?;
            contents.push(threads);
            all_threads = bystanders > 0;
        }
        if let Some(trace) = &self.flow {
            let is_behind_threads = self.recording.is_some();
            let (program, span) = dataflow::write(trace, out, name, is_behind_threads, monitor)?;
            contents.push(program);
            if let (Some(recording), Some((from, until))) = (&self.recording, span) {
                if until < recording.from() || recording.reader().until() < from {
                    monitor.warn(&format!("{DIFFERENT_TIMES}; the timeline shows each at its own time"));
                }
            }
        }
        if let Some(recording) = &self.recording {
            recording.report_problems(monitor);
            recording.report_notes(monitor);
        }
        let switches = self.recording.as_ref().map(|recording| recording.about().switches);
        Ok(Shown { contents, switches, all_threads })
    }
}

/// The timing model with a table, if that is the input.
fn table_of(options: &Options) -> Result<Option<TimingModel>> {
    let [path] = &options.inputs[..] else { return Ok(None) };
    if !path.to_string_lossy().ends_with(".table.json") {
        return Ok(None);
    }
    if !options.range.is_everything() || !options.threads.is_empty() {
        return Err(Error::usage(format!(
            "--from, --until and --thread apply to recordings of threads; {} is a table",
            path.display()
        )));
    }
    let model = read_model(path)?;
    crate::table::table_of(&model, path)?;
    Ok(Some(model))
}

/// Writes threads. Returns what is shown of them, in words, and how many threads were not watched.
fn write_threads(
    recording: &Recording,
    TimelineMaker { threads: filter, window, .. }: &TimelineMaker,
    out: &mut impl Write,
    name: &str,
    monitor: &dyn Monitor,
) -> Result<(String, u64)> {
    let failed = |error: &dyn std::fmt::Display| Error::file(name.to_owned()).because(error.to_string());

    let about = recording.about();
    let model = shown_tasks(recording, filter, monitor)?;
    let primaries = Primaries::new(model.tasks());
    let timeline = RefCell::new(Timeline::new(out, about, &model).map_err(|error| failed(&error))?);
    let progress = monitor.begin("drawing", recording.activations(), Unit::Activations);
    let broken = RefCell::new(None);
    let keep = |result: Result<(), _>| {
        if let Err(error) = result {
            broken.borrow_mut().get_or_insert(error);
        }
    };
    let mut shown = filter.records();
    let is_shown =
        |begin: Instant, end: Instant| window.is_none_or(|(from, until)| from <= end && begin <= until);
    each_job(
        recording.stopped_by(monitor),
        false,
        &*progress,
        |record, _| {
            if !matches!(record, Record::Switch(switch) if !is_shown(switch.at, switch.at)) {
                shown.pass(record, |record| keep(timeline.borrow_mut().record(record)));
            }
        },
        |seen| {
            if primaries.is_primary(seen) && is_shown(seen.job.release.window.earliest(), seen.job.end) {
                keep(timeline.borrow_mut().job(seen.tid, seen.phase, &seen.separator, seen.number, seen.job));
            }
        },
    )?;
    drop(progress);
    if let Some(error) = broken.into_inner() {
        return Err(failed(&error));
    }
    let (_, counts) = timeline.into_inner().finish().map_err(|error| failed(&error))?;
    Ok((drawn(&counts, about.switches), counts.bystanders))
}

/// The tasks that the timeline shows. The primary separator of a task is known only after all records.
fn shown_tasks(recording: &Recording, filter: &ThreadFilter, monitor: &dyn Monitor) -> Result<TimingModel> {
    let mut extractor =
        Extractor::new(ExtractOptions { stream: StreamOptions::without_curves(), merge_transitions: false });
    let progress = monitor.begin("reading", recording.activations(), Unit::Activations);
    recording.read_all(&mut |record| extractor.record(record))?;
    drop(progress);
    let about = recording.about();
    let (from, until, totals) = (recording.from(), recording.reader().until(), recording.reader().totals());
    let (platform, clock) = (about.platform.clone(), about.clock.clone());
    let observed = Observed { platform, clock, from, until, records: 0, totals, notes: Vec::new() };
    let mut model = models::model(extractor, observed, monitor);
    filter.select(&mut model, &recording.path().display().to_string())?;
    Ok(model)
}

/// What was drawn, in words.
fn drawn(counts: &Counts, has_switches: bool) -> String {
    let (threads, jobs) = (counted(counts.threads, "thread"), counted(counts.jobs, "job"));
    let steps =
        if has_switches { format!(", {}", counted(counts.steps, "scheduler event")) } else { String::new() };
    let others = match counts.bystanders {
        0 => String::new(),
        others => format!(", {} not watched", counted(others, "thread")),
    };
    format!("{threads}, {jobs}{steps}{others}")
}
