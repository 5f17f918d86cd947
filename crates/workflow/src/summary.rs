//! Summaries of recordings, and the models of all runs together.

use crate::destination::Destination;
use crate::error::{Error, Result, plain_reason};
use crate::filter::ThreadFilter;
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::why::{self, Choice, Jobs};
use punctual_extract::summary::MAGIC;
use punctual_extract::{
    Extractor, Options as ExtractOptions, Replay, Run, StreamOptions, Summary, replay_into,
};
use punctual_report::blame::Blame;
use punctual_report::{few, visible};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

/// Summaries that each worker may have read before they are merged.
const READ_AHEAD: usize = 4;

/// Names of tasks in a warning.
const MOST_NAMES: usize = 5;

/// What to summarize.
pub struct Options {
    /// Folders of recordings: at least one.
    pub recordings: Vec<PathBuf>,
    /// Which part of each.
    pub range: TimeRange,
    /// Whose models to keep.
    pub threads: ThreadFilter,
    /// Whether it is an error if no thread matches. One of many recordings may have none.
    pub must_match: bool,
    /// Which models.
    pub models: ExtractOptions,
    /// Whether to explain late jobs, too.
    pub causes: bool,
    /// The number of workers; the result does not depend on it.
    pub workers: NonZeroUsize,
}

/// One summary of all recordings.
pub fn summarize(options: &Options, monitor: &dyn Monitor) -> Result<Summary> {
    let open = options.recordings.iter().map(|path| Recording::open(path, &options.range));
    let recordings: Vec<Recording> = open.collect::<Result<_>>()?;
    if let Some(latency) = recordings.iter().find(|it| it.about().latency) {
        let path = latency.path().display();
        return Err(Error::usage(format!("{path} is a measurement of scheduling latency"))
            .because("a summary is of threads")
            .advise("merge timing models of latencies with punctual latency"));
    }
    let mut all = Summary::default();
    for recording in &recordings {
        let summary = summary(recording, options, monitor)?;
        recording.report_problems(monitor);
        recording.report_notes(monitor);
        add(&mut all, summary, recording.path().display())?;
    }
    if all.tasks() == 0 && options.must_match && !options.threads.is_empty() {
        let paths: Vec<String> = options.recordings.iter().map(|path| path.display().to_string()).collect();
        return Err(options.threads.no_match(&few(&paths, MOST_NAMES, " and ")));
    }
    if all.tasks() == 0 {
        monitor.hint(match options.threads.is_empty() {
            true => "no recording has threads",
            false => "no thread matches --thread",
        });
    }
    Ok(all)
}

fn summary(recording: &Recording, options: &Options, monitor: &dyn Monitor) -> Result<Summary> {
    let progress = monitor.begin("summarizing", recording.activations(), Unit::Activations);
    let replay = Replay { workers: options.workers, options: options.models.clone() };
    let records = std::sync::atomic::AtomicU64::new(0);
    let advance = |activations: u64| {
        records.store(activations, std::sync::atomic::Ordering::Relaxed);
        progress.set(activations);
    };
    let extractor = Extractor::summarizing(options.models.clone());
    let extractor = replay_into(extractor, &recording.stopped_by(monitor), &replay, &advance)?;
    let (about, totals) = (recording.about(), recording.reader().totals());
    let until = recording.reader().until();
    let run = Run {
        host: about.host.clone(),
        name: name(recording, &options.range),
        clock_zero: about.clock_zero,
        from: recording.from(),
        until,
        clock: about.clock.clone(),
        platform: about.platform.clone(),
        records: records.into_inner(),
        lost: totals.lost.saturating_add(recording.unreadable()),
        untracked: totals.untracked,
        skipped: totals.skipped,
        stolen: totals.stolen,
        omitted: extractor.progress().omitted,
        notes: recording.reader().notes().to_vec(),
        clock_steps: extractor.clock_steps().to_vec(),
    };
    let mut ended = extractor.finish_summarized(until);
    ended.retain(|ended| options.threads.matches(&ended.task().name));
    let summary = Summary::new(run, ended);
    if !options.causes || summary.tasks() == 0 {
        return Ok(summary);
    }
    let choice = Choice {
        threads: options.threads.clone(),
        jobs: Jobs::Late,
        worst: 1,
        stream: StreamOptions::without_curves(),
        workers: options.workers,
    };
    let model = why::explain(recording, &choice, monitor)?;
    Ok(match model.causes {
        Some(causes) => summary.with_causes(causes),
        None => summary,
    })
}

/// The folder, and which part of it.
fn name(recording: &Recording, range: &TimeRange) -> String {
    let mut name = recording.path().display().to_string();
    if let Some(from) = range.from {
        name += &format!(" from {}", humantime::format_duration(from));
    }
    if let Some(until) = range.until {
        name += &format!(" until {}", humantime::format_duration(until));
    }
    name
}

/// Tells what a merge cannot know: whether runs that overlap recorded the same jobs, and whether threads of
/// unknown commands are of one program. `unite` is how to say that they are.
pub fn review(all: &Summary, unite: &str, monitor: &dyn Monitor) {
    if let [(one, other), others @ ..] = &*all.overlaps() {
        let (host, more) = (visible(&one.host), others.len() as u64);
        let more = if more > 0 { format!(" (as do {more} more)") } else { String::new() };
        monitor.warn(&format!(
            "the runs {} and {} of {host} overlap in time{more}: jobs that both recorded count twice",
            visible(&one.name),
            visible(&other.name)
        ));
    }
    let apart: Vec<String> = all.apart().into_iter().map(visible).collect();
    if !apart.is_empty() {
        monitor.warn(&format!(
            "the commands of {} are unknown, so each run has its own; {unite}, if all are of one program",
            few(&apart, MOST_NAMES, " and ")
        ));
    }
}

/// Reads summaries and merges them: in any order, with the same result. `workers` read ahead of the merge;
/// the result, and which error comes first, do not depend on how many.
pub fn merge(files: &[PathBuf], workers: NonZeroUsize) -> Result<Summary> {
    let workers = workers.get().min(files.len());
    let mut all = Summary::default();
    if workers < 2 {
        for file in files {
            add(&mut all, read(file)?, file.display())?;
        }
        return Ok(all);
    }
    // Worker w reads files w, w + workers, …; one that is ahead waits. It ends when nobody listens any more.
    let worker = |first: usize, merge: SyncSender<Result<Summary>>| {
        for file in files.iter().skip(first).step_by(workers) {
            if merge.send(read(file)).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        let summaries: Vec<_> = (0..workers)
            .map(|first| {
                let (send, receive) = sync_channel(READ_AHEAD);
                scope.spawn(move || worker(first, send));
                receive
            })
            .collect();
        for (file, summaries) in files.iter().zip(summaries.iter().cycle()) {
            let summary = summaries.recv().expect("a worker reads each of its files");
            add(&mut all, summary?, file.display())?;
        }
        Ok(all)
    })
}

/// Reads a summary.
pub fn read(path: &Path) -> Result<Summary> {
    let name = path.display();
    let bytes = contents(path).map_err(|error| {
        let reason = match path.is_dir() {
            true => "it is a folder; punctual summarize makes a summary of a recording".to_owned(),
            false => plain_reason(&error),
        };
        Error::file(format!("cannot read {name}")).because(reason)
    })?;
    Summary::from_bytes(&bytes)
        .map_err(|error| Error::file(format!("cannot read {name}")).because(visible(&error.to_string())))
}

/// What is in a file; of one that is no summary, only its beginning, as it may have no end.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == MAGIC {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Adds a summary to others. `source` is where it is from, for messages.
pub fn add(all: &mut Summary, other: Summary, source: impl Display) -> Result<()> {
    all.merge(other).map_err(|error| Error::usage(format!("cannot add {source}")).because(error.to_string()))
}

/// Writes a summary.
pub fn write(summary: &Summary, destination: &Destination) -> Result<()> {
    destination.write_or_rescue(&summary.to_bytes())
}

/// Which run each extreme is from.
pub fn blame(summary: &Summary) -> Vec<Blame> {
    let blame = |it: punctual_extract::summary::Blame| Blame {
        what: it.what(),
        task: it.task,
        number: it.number,
        separator: it.separator,
        figure: it.figure,
        range: it.range,
        value: it.value,
        run: it.run,
    };
    summary.blame().into_iter().map(blame).collect()
}
