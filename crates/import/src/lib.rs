//! Imports other tools' traces as records. What a source lacks is reported, not guessed.
//!
//! [`thread`] turns plain events (calls entered and left, threads switched and woken) into activations, as
//! the eBPF programs do in the kernel. Each format has its own module: [`lime`], [`lttng`], [`perf`],
//! [`perfetto`], [`trace_cmd`] and [`text`]; and [`ros2`], whose traces become those of dataflow programs.

mod account;
mod bystanders;
mod bytes;
mod error;
mod lime;
mod lttng;
mod notes;
mod objects;
mod perf;
mod perfetto;
mod summary;
mod switched;
mod table;
mod text;
mod thread;
mod trace_cmd;
mod tracepoints;
mod twins;
mod why_not;

pub mod ctf18;
pub mod ros2;

use punctual_trace::{About, Record};
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::{Error, ErrorKind};
pub use lttng::has_kernel;
pub use summary::{Imported, Options};
pub use table::Machine;

/// A trace to be imported.
pub struct Import {
    source: Source,
    about: About,
    bytes: u64,
}

enum Source {
    Lime(Box<lime::Folder>),
    Lttng(Box<lttng::Trace>),
    Perf(Box<perf::Trace>),
    Perfetto(Box<perfetto::Trace>),
    Text(Box<text::Trace>),
    TraceCmd(Box<trace_cmd::Trace>),
}

impl Import {
    /// Recognises the format and reads the description of the trace.
    pub fn open(path: &Path, options: &Options) -> Result<Import, Error> {
        if path.is_dir() && ctf18::holds_trace(path) {
            return Import::of_session(path, ctf18::Reader::open(path)?, options);
        }
        if let Some(file) = perf::in_folder(path) {
            return Import::of_perf(&file, options);
        }
        if path.is_dir() {
            let folder = lime::Folder::open(path)?;
            let (about, bytes) = (folder.about().clone(), folder.bytes());
            return Ok(Import { source: Source::Lime(Box::new(folder)), about, bytes });
        }
        if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            let why = format!("{} is not a regular file: save a pipe to a file first", path.display());
            return Err(Error::new(ErrorKind::NotATrace, why));
        }
        let (beginning, length) = beginning(path).map_err(|error| Error::io(path, &error))?;
        if beginning.starts_with(trace_cmd::MAGIC) {
            return Ok(Import::of_trace_cmd(trace_cmd::Trace::open(path, options)?));
        }
        if beginning.starts_with(b"PERFILE2") || beginning.starts_with(b"2ELIFREP") {
            return Import::of_perf(path, options);
        }
        if perfetto::is_trace(&beginning, length) {
            return Ok(Import::from_perfetto(perfetto::Trace::open(path, options)?));
        }
        if text::is_text(path)? {
            return Ok(Import::from_text(text::Trace::open(path, options)?));
        }
        Err(why_not::file(path))
    }

    /// Takes the contents of a `trace.dat`, which `path` names in messages.
    pub fn of_trace_dat(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Import, Error> {
        Ok(Import::of_trace_cmd(trace_cmd::Trace::in_memory(path, bytes, options)?))
    }

    /// Takes the contents of a `perf.data`, which `path` names in messages.
    pub fn of_perf_data(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Import, Error> {
        Ok(Import::from_perf(perf::Trace::in_memory(path, bytes, options)?))
    }

    /// Takes a text of ftrace or perf script, which `path` names in messages.
    pub fn of_text(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Import, Error> {
        Ok(Import::from_text(text::Trace::in_memory(path, bytes, options)?))
    }

    /// Takes a trace of Perfetto, which `path` names in messages.
    pub fn of_perfetto(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Import, Error> {
        Ok(Import::from_perfetto(perfetto::Trace::in_memory(path, bytes, options)?))
    }

    fn from_perfetto(trace: perfetto::Trace) -> Import {
        let (about, bytes) = (trace.about().clone(), trace.bytes());
        Import { source: Source::Perfetto(Box::new(trace)), about, bytes }
    }

    fn from_text(trace: text::Trace) -> Import {
        let (about, bytes) = (trace.about().clone(), trace.bytes());
        Import { source: Source::Text(Box::new(trace)), about, bytes }
    }

    fn of_perf(path: &Path, options: &Options) -> Result<Import, Error> {
        Ok(Import::from_perf(perf::Trace::open(path, options)?))
    }

    fn from_perf(trace: perf::Trace) -> Import {
        let (about, bytes) = (trace.about().clone(), trace.bytes());
        Import { source: Source::Perf(Box::new(trace)), about, bytes }
    }

    fn of_trace_cmd(trace: trace_cmd::Trace) -> Import {
        let (about, bytes) = (trace.about().clone(), trace.bytes());
        Import { source: Source::TraceCmd(Box::new(trace)), about, bytes }
    }

    /// Takes the kernel's trace of an LTTng session.
    pub fn of_session(path: &Path, reader: ctf18::Reader, options: &Options) -> Result<Import, Error> {
        let trace = lttng::Trace::new(path, reader, options)?;
        let (about, bytes) = (trace.about().clone(), trace.bytes());
        Ok(Import { source: Source::Lttng(Box::new(trace)), about, bytes })
    }

    /// The description of the recording, known before the first record.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Bytes to read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Passes on every record, in the order of time as far as possible. `each` returns whether to go on;
    /// `progress` gets the bytes read.
    pub fn run(
        self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        match self.source {
            Source::Lime(folder) => folder.run(each, progress),
            Source::Lttng(trace) => trace.run(each, progress),
            Source::Perf(trace) => trace.run(each, progress),
            Source::Perfetto(trace) => trace.run(each, progress),
            Source::Text(trace) => trace.run(each, progress),
            Source::TraceCmd(trace) => trace.run(each, progress),
        }
    }
}

/// Whether a file looks like a trace of another tool.
pub fn is_trace(path: &Path) -> bool {
    let Ok((beginning, length)) = beginning(path) else { return false };
    let is_json = beginning.trim_ascii_start().starts_with(b"{");
    let is_binary = || {
        [&trace_cmd::MAGIC[..], b"PERFILE2", b"2ELIFREP"].iter().any(|magic| beginning.starts_with(magic))
            || perfetto::is_trace(&beginning, length)
    };
    path.is_file() && !is_json && (is_binary() || text::is_text(path).unwrap_or(false))
}

/// The first bytes of a file, and how many there are of all.
fn beginning(path: &Path) -> std::io::Result<(Vec<u8>, u64)> {
    const MOST: u64 = 4096;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut beginning = Vec::new();
    file.take(MOST).read_to_end(&mut beginning)?;
    Ok((beginning, length))
}
