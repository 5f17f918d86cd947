//! Making a recording of another tool's trace.

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::folder::RecordingFolder;
use crate::monitor::{Monitor, Unit};
use crate::record::{Recorded, RecordingWriter};
use punctual_trace::Record;
use punctual_trace::import::{Import, Options as TraceOptions};
use std::path::PathBuf;

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
}

/// Imports a trace.
pub fn import(options: &Options, monitor: &dyn Monitor) -> Result<Recorded> {
    let source = options.source.display();
    let import =
        Import::open(&options.source, &TraceOptions { include_best_effort: options.include_best_effort })?;
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
    let mut threads = options.threads.records();
    let mut broken = None;
    let mut keep = |record: &Record| {
        broken = threads.pass(record, &mut write).and_then(Result::err);
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
    let Some(writer) = writer else {
        if !options.threads.is_empty() {
            return Err(options.threads.no_match(&source.to_string()));
        }
        let error = Error::file(format!("{source} has no real-time threads to import"));
        return Err(match options.include_best_effort {
            true => Error::file(format!("{source} has no threads to import")),
            false => error.advise("--include-best-effort imports the others too"),
        });
    };
    writer.finish(imported.until, imported.totals)
}
