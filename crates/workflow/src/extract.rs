//! Observing threads and extracting their task models on the fly.

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::folder::RecordingFolder;
use crate::models::{self, Observed};
use crate::monitor::Monitor;
use crate::platform;
use crate::record::{self, Recorded, RecordingWriter};
use crate::watch::{self, Sink, Watch};
use punctual_extract::Extractor;
use punctual_model::TimingModel;
use punctual_observe::Statistics;
use punctual_report::counted;
use punctual_trace::Record;
use std::sync::atomic::AtomicBool;

/// Default size of the buffer between kernel and user space.
pub const BUFFER_BYTES: u32 = 4 << 20;

/// What to extract.
pub struct Options {
    /// What to watch.
    pub watch: Watch,
    /// Whose models to keep.
    pub threads: ThreadFilter,
    /// Which models.
    pub models: punctual_extract::Options,
    /// Where to keep the records too.
    pub record: Option<RecordingFolder>,
}

/// The outcome of an extraction. The model is complete even if recording failed.
pub struct Extracted {
    /// The timing model.
    pub model: TimingModel,
    /// The recording, if one was asked for and written.
    pub recorded: Option<Recorded>,
    /// What ended the observation early or broke the recording.
    pub failure: Option<Error>,
}

/// Extracts models, and on the side writes a recording.
struct Extraction<'a> {
    extractor: Extractor,
    writer: Option<RecordingWriter>,
    /// Why the recording ended early. The observation goes on for the models.
    broken: Option<Error>,
    threads: crate::filter::RecordFilter,
    monitor: &'a dyn Monitor,
}

impl Extraction<'_> {
    fn write(&mut self, write: impl FnOnce(&mut RecordingWriter) -> Result<()>) {
        if let Some(Err(error)) = self.writer.as_mut().map(write) {
            self.monitor.warn(&format!("{error:#}; extraction goes on"));
            (self.writer, self.broken) = (None, Some(error));
        }
    }
}

impl Sink for Extraction<'_> {
    fn record(&mut self, record: &Record) -> Result<()> {
        let Extraction { extractor, threads, writer, .. } = self;
        let written = threads.pass(record, |record| {
            extractor.record(record);
            writer.as_mut().map(|writer| writer.record(record))
        });
        if let Some(Some(written)) = written {
            self.write(|_| written);
        }
        Ok(())
    }

    fn tick(&mut self, statistics: &Statistics) -> Result<()> {
        self.write(|writer| writer.tick(record::totals(statistics)));
        Ok(())
    }

    fn progress(&self) -> String {
        let progress = self.extractor.progress();
        format!("{}, {}", counted(progress.threads as u64, "thread"), counted(progress.jobs, "job"))
    }
}

/// Extracts until the limit of time, the end of the target, or `stop`.
pub fn extract(options: Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Extracted> {
    options.watch.check()?;
    let (sink, watched) = watch::run(&options.watch, stop, monitor, |observer| {
        let about = platform::about(observer.from(), false);
        let start = |folder: &RecordingFolder| RecordingWriter::start(folder, &about, None);
        Ok(Extraction {
            extractor: Extractor::new(options.models),
            writer: options.record.as_ref().map(start).transpose()?,
            broken: None,
            threads: options.threads.records(),
            monitor,
        })
    })?;
    let summary = &watched.summary;
    let totals = record::totals(&summary.statistics);
    let (recorded, unfinished) = match sink.writer.map(|writer| writer.finish(summary.until, totals)) {
        Some(Ok(recorded)) => (Some(recorded), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let observed = Observed {
        platform: platform::here(),
        clock: platform::CLOCK.into(),
        from: summary.from,
        until: summary.until,
        records: summary.statistics.records,
        totals,
        notes: Vec::new(),
    };
    let model = models::model(sink.extractor, observed, monitor);
    if model.tasks().is_empty() {
        if options.threads.is_empty() {
            watch::hint_nothing_seen(&options.watch, monitor);
        } else {
            monitor.hint(&format!("no thread that ran matches {}", options.threads));
        }
    }
    Ok(Extracted { model, recorded, failure: watched.failure.or(sink.broken).or(unfinished) })
}
