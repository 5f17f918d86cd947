//! Making a recording of another tool's trace, or the trace of a dataflow program of one of ROS 2.

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::folder::RecordingFolder;
use crate::monitor::{Monitor, Unit};
use crate::record::{Recorded, RecordingWriter};
use crate::specs::printable;
use punctual_import::ctf18::{Reader, holds_trace};
use punctual_import::ros2;
use punctual_import::{Import, Options as TraceOptions, has_kernel, is_trace};
use punctual_report::{counted, shell_word};
use punctual_trace::account::Account;
use punctual_trace::{ErrorKind, Record, ctf};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub use punctual_import::Machine;
pub use punctual_import::ros2::{Variables, Written};

/// What to import.
pub struct Options {
    /// The other tool's trace.
    pub source: PathBuf,
    /// Where the recording goes.
    pub folder: RecordingFolder,
    /// Which threads to keep.
    pub threads: ThreadFilter,
    /// Import threads that are not real-time too.
    pub include_best_effort: bool,
    /// The machine it was recorded on, if the trace does not name it.
    pub machine: Option<Machine>,
    /// Data between callbacks of a node, in a trace of ROS 2.
    pub variables: Variables,
}

impl Options {
    fn of_trace(&self) -> TraceOptions {
        TraceOptions { include_best_effort: self.include_best_effort, machine: self.machine }
    }
}

/// What came of an import.
pub enum Imported {
    /// A recording of threads.
    Threads(Threads),
    /// The trace of a dataflow program, and a recording of the kernel beside it if there was one.
    Dataflow(Dataflow),
}

/// A recording of threads.
pub struct Threads {
    /// What was written.
    pub recorded: Recorded,
    /// What was in the source, and what it lacks.
    pub account: Account,
    /// What was damaged, lost or not understood.
    pub notes: Vec<String>,
}

/// The trace of a dataflow program.
pub struct Dataflow {
    /// Its folder.
    pub path: PathBuf,
    /// What is in it.
    pub written: Written,
    /// The recording of the threads.
    pub kernel: Option<Threads>,
}

impl Dataflow {
    /// In words, for people.
    pub fn summary(&self) -> String {
        let Written { events, tasks, nodes, channels, executors, .. } = &self.written;
        let path = shell_word(&self.path);
        let counts = [
            counted(*nodes as u64, "node"),
            counted(*tasks as u64, "callback"),
            counted(*channels as u64, "channel"),
            counted(*executors as u64, "thread"),
        ];
        let kernel =
            self.kernel.as_ref().map(|kernel| format!(" --kernel {}", shell_word(&kernel.recorded.path)));
        format!(
            "{path}: {} of {}; punctual chains {path}{}",
            counted(*events, "event"),
            counts.join(", "),
            kernel.unwrap_or_default()
        )
    }
}

/// Imports a trace.
pub fn import(options: &Options, monitor: &dyn Monitor) -> Result<Imported> {
    if options.source.is_dir() && holds_trace(&options.source) {
        let reader = Reader::open(&options.source)?;
        if is_own(&reader) {
            return Err(own(&options.source));
        }
        if ros2::is_ros(&reader) {
            return import_ros(options, reader, monitor).map(Imported::Dataflow);
        }
    }
    if options.variables != Variables::Assumed {
        let source = options.source.display();
        return Err(Error::usage(format!("--variable is for traces of ROS 2, and {source} is none")));
    }
    import_threads(options, monitor).map(Imported::Threads)
}

/// A trace that is imported to a folder which goes with this.
pub(crate) struct Temporary {
    _place: TempDir,
    imported: Imported,
}

impl Temporary {
    /// The recording, or the trace of the program.
    pub fn path(&self) -> &Path {
        match &self.imported {
            Imported::Threads(threads) => &threads.recorded.path,
            Imported::Dataflow(program) => &program.path,
        }
    }

    /// The recording of the threads.
    pub fn recording(&self) -> Option<&Path> {
        match &self.imported {
            Imported::Threads(threads) => Some(&threads.recorded.path),
            Imported::Dataflow(program) => program.kernel.as_ref().map(|kernel| &*kernel.recorded.path),
        }
    }
}

/// Whether this is another tool's trace, and none of ours.
pub(crate) fn is_foreign(path: &Path) -> bool {
    if !path.is_dir() {
        return is_trace(path);
    }
    let is_none_of_ours = ctf::Reader::open(path)
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotATrace | ErrorKind::NotFound));
    is_none_of_ours && (is_of_ros(path) || Import::open(path, &TraceOptions::default()).is_ok())
}

/// Whether this is a trace of ROS 2. Whoever reads our own traces knows best what is wrong with one.
pub(crate) fn is_of_ros(path: &Path) -> bool {
    let reader = || Reader::open(path).ok();
    path.is_dir() && holds_trace(path) && reader().is_some_and(|it| !is_own(&it) && ros2::is_ros(&it))
}

/// Imports a trace for the moment.
pub(crate) fn for_the_moment(
    source: &Path,
    threads: &ThreadFilter,
    include_best_effort: bool,
    monitor: &dyn Monitor,
) -> Result<Temporary> {
    let place = tempfile::Builder::new().prefix("punctual-").tempdir();
    let place = place.map_err(|error| Error::io("make", "a temporary folder", &error))?;
    let options = Options {
        source: source.to_owned(),
        folder: RecordingFolder::new(&place.path().join("imported"), false)?,
        threads: threads.clone(),
        include_best_effort,
        machine: None,
        variables: Variables::Assumed,
    };
    let imported = import(&options, monitor)?;
    let account = match &imported {
        Imported::Threads(threads) => &threads.account,
        Imported::Dataflow(program) => &program.written.account,
    };
    warn_of_lacks(source.display(), account, monitor);
    Ok(Temporary { _place: place, imported })
}

/// Says what is missing that could have been recorded.
fn warn_of_lacks(source: impl Display, account: &Account, monitor: &dyn Monitor) {
    account.recordable().for_each(|lack| monitor.warn(&format!("{source}: {lack}")));
}

/// Imports a trace of ROS 2, and one of the kernel beside it.
fn import_ros(options: &Options, reader: Reader, monitor: &dyn Monitor) -> Result<Dataflow> {
    let source = options.source.display();
    let trace = ros2::Trace::new(&options.source, reader)?;
    let progress = monitor.begin("importing", trace.bytes(), Unit::Bytes);
    options.folder.clear()?;
    let path = options.folder.path();
    let written = trace.write(path, &options.variables, &mut |done| progress.set(done))?;
    drop(progress);
    for note in &written.notes {
        monitor.warn(&format!("{source}: {note}"));
    }
    for (writer, reader) in &written.variables {
        monitor.hint(&format!("variable: {writer} writes, {reader} reads the newest"));
    }
    let kernel = import_kernel(options, monitor)?;
    Ok(Dataflow { path: path.to_owned(), written, kernel })
}

/// Imports the kernel's trace beside one of ROS 2 into a folder of its own, `.kernel` behind the name.
fn import_kernel(options: &Options, monitor: &dyn Monitor) -> Result<Option<Threads>> {
    let reader = Reader::open(&options.source)?;
    if !has_kernel(&reader) {
        return Ok(None);
    }
    let mut path = options.folder.path().as_os_str().to_owned();
    path.push(".kernel");
    // Executors are seldom real-time.
    let kernel = Options {
        source: options.source.clone(),
        folder: RecordingFolder::new(Path::new(&path), options.folder.replaces())?,
        threads: options.threads.clone(),
        include_best_effort: true,
        machine: options.machine,
        variables: Variables::Assumed,
    };
    let import = Import::of_session(&kernel.source, reader, &kernel.of_trace())?;
    record(&kernel, import, monitor).map(Some)
}

/// Whether a trace in CTF is one of ours.
fn is_own(reader: &Reader) -> bool {
    (0..reader.traces()).any(|trace| reader.env(trace, "tracer_name") == Some("punctual"))
}

/// Why one of ours need not be imported: it may be in the folder rather than be it.
fn own(source: &Path) -> Error {
    let name = source.display();
    match source.join("metadata").is_file() {
        true => Error::file(format!("{name} is a recording or trace of Punctual's own"))
            .because("other commands take it as it is"),
        false => Error::file(format!("{name} holds a recording or trace of Punctual's own"))
            .advise("name the file or folder of the trace to import"),
    }
}

/// Imports threads.
fn import_threads(options: &Options, monitor: &dyn Monitor) -> Result<Threads> {
    let import = Import::open(&options.source, &options.of_trace())?;
    record(options, import, monitor)
}

/// Makes a recording of what is imported.
fn record(options: &Options, import: Import, monitor: &dyn Monitor) -> Result<Threads> {
    let source = options.source.display();
    let about = import.about().clone();
    let progress = monitor.begin("importing", import.bytes(), Unit::Bytes);
    // Created with the first record: a source without any leaves nothing behind.
    let mut writer: Option<RecordingWriter> = None;
    let mut write = |record: &Record| -> Result<()> {
        match &mut writer {
            Some(writer) => writer.record(record),
            None => writer.insert(RecordingWriter::start(&options.folder, &about, None)?).record(record),
        }
    };
    let mut threads = options.threads.records().with_others();
    let (mut broken, mut seen) = (None, Seen::default());
    let mut keep = |record: &Record| {
        seen.take(record);
        let passed = threads.pass(record, |record| {
            seen.is_matched |= matches!(record, Record::Task(_));
            write(record)
        });
        broken = passed.and_then(Result::err);
        broken.is_none()
    };
    let imported = import.run(&mut keep, &mut |done| progress.set(done))?;
    drop(progress);
    for note in &imported.notes {
        monitor.warn(&format!("{source}: {note}"));
    }
    if let Some(error) = broken {
        return Err(error);
    }
    if !options.threads.is_empty() && !seen.is_matched {
        if writer.take().is_some() {
            options.folder.discard();
        }
        return Err(seen.advise(options.threads.no_match(&source.to_string())));
    }
    // Others have no models: with them alone there is nothing to import.
    if writer.is_some() && !seen.is_matched {
        writer = None;
        options.folder.discard();
    }
    let Some(mut writer) = writer else {
        let error = Error::file(format!("{source} has no real-time threads to import"));
        return Err(match options.include_best_effort {
            true => Error::file(format!("{source} has no threads to import")),
            false => error.advise("--include-best-effort imports the others too"),
        });
    };
    imported.notes.iter().for_each(|note| writer.note(note));
    imported.account.recordable().for_each(|lack| writer.note(&lack.to_string()));
    let recorded = writer.finish(imported.until, imported.totals)?;
    Ok(Threads { recorded, account: imported.account, notes: imported.notes })
}

/// The threads of a source, as far as an error names them.
#[derive(Default)]
struct Seen {
    /// Whether one of them was asked for.
    is_matched: bool,
    names: Vec<String>,
    has_more: bool,
}

impl Seen {
    fn take(&mut self, record: &Record) {
        const NAMED: usize = 8;
        let Record::Task(task) = record else { return };
        if self.is_matched || self.names.contains(&printable(&task.name)) {
            return;
        }
        match self.names.len() < NAMED {
            true => self.names.push(printable(&task.name)),
            false => self.has_more = true,
        }
    }

    /// Names the threads that there are instead.
    fn advise(&self, error: Error) -> Error {
        let more = if self.has_more { ", …" } else { "" };
        match self.names.is_empty() {
            true => error,
            false => error.advise(format!("its threads are {}{more}", self.names.join(", "))),
        }
    }
}
