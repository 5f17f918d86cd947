//! The recording of what a dispatcher does.

use crate::error::{Error, Result};
use crate::folder::RecordingFolder;
use crate::monitor::Monitor;
use crate::platform;
use crate::record::{Recorded, RecordingWriter};
use punctual_trace::{About, Record, Totals};

/// Writes records, if there is a recording. Once writing fails, it says so and the table goes on.
pub struct Log {
    about: About,
    writer: Option<RecordingWriter>,
    failure: Option<Error>,
}

impl Log {
    /// Without a recording. One that is started later begins here.
    pub fn new() -> Log {
        Log { about: platform::about(platform::now(), false), writer: None, failure: None }
    }

    /// Writes what comes to this folder.
    pub fn start(&mut self, folder: &RecordingFolder) -> Result<()> {
        self.writer = Some(RecordingWriter::start(folder, &self.about, None)?);
        Ok(())
    }

    pub fn record(&mut self, record: Record, monitor: &dyn Monitor) {
        let written = self.writer.as_mut().map(|writer| writer.record(&record));
        self.keep(written, monitor);
    }

    pub fn tick(&mut self, monitor: &dyn Monitor) {
        let written = self.writer.as_mut().map(|writer| writer.tick(Totals::default()));
        self.keep(written, monitor);
    }

    pub fn finish(self) -> Result<Option<Recorded>> {
        match (self.failure, self.writer) {
            (Some(failure), _) => Err(failure),
            (None, Some(writer)) => writer.finish(platform::now(), Totals::default()).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn keep(&mut self, written: Option<Result<()>>, monitor: &dyn Monitor) {
        if let Some(Err(error)) = written {
            monitor.warn(&format!("the recording ends here: {error:#}"));
            (self.writer, self.failure) = (None, Some(error));
        }
    }
}
