//! Observing threads and keeping the records on disk.

use crate::error::{Error, ErrorKind, Result};
use crate::filter::{RecordFilter, ThreadFilter};
use crate::folder::RecordingFolder;
use crate::monitor::Monitor;
use crate::platform;
use crate::watch::{self, Sink, Watch};
use bytesize::ByteSize;
use punctual_model::Instant;
use punctual_observe::{Statistics, Switches};
use punctual_report::counted;
use punctual_trace::ctf::{self, Recorder};
use punctual_trace::{About, Record, Totals};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;
use std::{fmt, fs};

/// Default size of the buffer between kernel and user space: a second of 200,000 records, in case the disk is
/// busy that long.
pub const BUFFER_BYTES: u32 = 32 << 20;

/// What to record.
pub struct Options {
    /// What to watch.
    pub watch: Watch,
    /// Which threads to keep.
    pub threads: ThreadFilter,
    /// Where the recording goes.
    pub folder: RecordingFolder,
    /// Most bytes on disk: the oldest part is dropped.
    pub limit: Option<u64>,
}

/// A finished recording.
pub struct Recorded {
    /// Its folder.
    pub path: PathBuf,
    /// What is in it.
    pub contents: ctf::Recorded,
}

/// In a sentence: where it is and how much is in it.
impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (activations, bytes) =
            (counted(self.contents.activations, "activation"), ByteSize(self.contents.bytes));
        write!(f, "Wrote {}: {activations}, {bytes}.", self.path.display())?;
        match self.contents.dropped.activations {
            0 => Ok(()),
            dropped => {
                let dropped = counted(dropped, "activation");
                write!(f, " The oldest part, {dropped}, was dropped to stay within the limit.")
            }
        }
    }
}

/// The default name of a recording: `recording-DATE-TIME`.
pub fn dated_path() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("recording-{}", now.replace(':', "-")))
}

/// Records until the limit of time, the end of the target, or `stop`.
pub fn record(options: Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Recorded> {
    record_from(options, stop, monitor, || {})
}

/// The same; calls `begun` once everything is seen.
pub(crate) fn record_from(
    options: Options,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
    begun: impl FnOnce(),
) -> Result<Recorded> {
    options.watch.check()?;
    let switches = options.watch.observe.switches;
    let (sink, watched) = watch::run(&options.watch, stop, monitor, |observer| {
        let about = platform::about(observer.from(), switches != Switches::None);
        let writer = RecordingWriter::start(&options.folder, &about, options.limit)?;
        begun();
        let chosen = options.threads.records();
        let threads = if switches.of_all() { chosen.with_others() } else { chosen };
        Ok(Recording { writer, threads, has_threads: false })
    })?;
    let (until, totals) = (watched.summary.until, totals(&watched.summary.statistics));
    if let Some(failure) = watched.failure {
        // Usually writing itself failed; otherwise what was recorded deserves a proper end.
        if failure.kind() != ErrorKind::File {
            sink.writer.finish(until, totals)?;
        }
        return Err(failure);
    }
    let recorded = sink.writer.finish(until, totals)?;
    if recorded.contents.activations == 0 {
        if sink.has_threads {
            monitor.hint(
                "no thread that ran has waited, so none has jobs; punctual replay tells how busy they were",
            );
        } else if options.threads.is_empty() {
            watch::hint_nothing_seen(&options.watch, monitor);
        } else {
            monitor.hint(&format!("no thread that ran matches {}", options.threads));
        }
    }
    Ok(recorded)
}

/// A recording under way, of chosen threads.
struct Recording {
    writer: RecordingWriter,
    threads: RecordFilter,
    has_threads: bool,
}

impl Sink for Recording {
    fn record(&mut self, record: &Record) -> Result<()> {
        let Recording { writer, threads, has_threads } = self;
        let write = |record: &Record| {
            *has_threads |= matches!(record, Record::Task(_));
            writer.record(record)
        };
        threads.pass(record, write).unwrap_or(Ok(()))
    }

    fn tick(&mut self, statistics: &Statistics) -> Result<()> {
        self.writer.tick(totals(statistics))
    }

    fn progress(&self) -> String {
        counted(self.writer.activations, "activation")
    }
}

/// Writes a recording.
pub(crate) struct RecordingWriter {
    recorder: Recorder,
    activations: u64,
    path: PathBuf,
}

impl RecordingWriter {
    pub fn start(folder: &RecordingFolder, about: &About, limit: Option<u64>) -> Result<RecordingWriter> {
        folder.clear()?;
        let recorder =
            Recorder::create(folder.path(), about, &ctf::Options { limit, ..ctf::Options::default() })?;
        Ok(RecordingWriter { recorder, activations: 0, path: folder.path().to_path_buf() })
    }

    pub fn record(&mut self, record: &Record) -> Result<()> {
        self.activations += u64::from(matches!(record, Record::Activation(_)));
        let result = self.recorder.record(record);
        result.map_err(|error| interrupted(&self.path, error))
    }

    pub fn tick(&mut self, totals: Totals) -> Result<()> {
        self.recorder.totals(totals);
        let result = self.recorder.tick();
        result.map_err(|error| interrupted(&self.path, error))
    }

    /// Adds something to be known of the recording as a whole.
    pub fn note(&mut self, text: &str) {
        self.recorder.note(text.to_owned());
    }

    pub fn finish(self, until: Instant, totals: Totals) -> Result<Recorded> {
        let path = self.path;
        match self.recorder.finish(until, totals) {
            Ok(contents) => Ok(Recorded { path, contents }),
            Err(error) => Err(interrupted(&path, error)),
        }
    }
}

fn interrupted(path: &Path, error: punctual_trace::Error) -> Error {
    let error = Error::from(error);
    match has_packets(path) {
        true => error.advise(format!("punctual replay {} uses what was written before", path.display())),
        false => error,
    }
}

/// Whether anything of a recording got to the disk, besides what describes it.
fn has_packets(path: &Path) -> bool {
    let files = fs::read_dir(path).into_iter().flatten().flatten();
    let mut streams = files.filter(|file| file.file_name().to_string_lossy().starts_with("stream_"));
    streams.any(|file| file.metadata().is_ok_and(|about| about.len() > 0))
}

/// The counts of an observation, as a recording stores them.
pub(crate) fn totals(statistics: &Statistics) -> Totals {
    Totals {
        lost: statistics.lost,
        untracked: statistics.untracked.saturating_add(statistics.unseen),
        skipped: statistics.missed,
        stolen: statistics.stolen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_is_advised_where_there_is_something_to_replay() {
        let folder = tempfile::tempdir().expect("a folder");
        let full = || ctf::Reader::open(&folder.path().join("none")).err().expect("there is none");
        for name in ["metadata", "stream_0"] {
            fs::write(folder.path().join(name), if name == "metadata" { "text" } else { "" })
                .expect("written");
        }
        let nothing = format!("{:#}", interrupted(folder.path(), full()));
        assert!(!nothing.contains("punctual replay"), "{nothing}");
        fs::write(folder.path().join("stream_0"), "a packet").expect("written");
        let something = format!("{:#}", interrupted(folder.path(), full()));
        assert!(something.contains("uses what was written before"), "{something}");
    }
}
