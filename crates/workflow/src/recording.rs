//! An opened recording: a source of records for replay, and the warnings about it.

use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::probes;
use punctual_extract::Source;
use punctual_model::{Duration, Instant};
use punctual_report::counted;
use punctual_trace::ctf::{Damage, Reader};
use punctual_trace::{About, Record};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A part of a recording, as offsets from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Begin here rather than at the beginning.
    pub from: Option<std::time::Duration>,
    /// End here rather than at the end.
    pub until: Option<std::time::Duration>,
}

impl TimeRange {
    /// Whether it is the whole recording.
    pub fn is_everything(&self) -> bool {
        *self == TimeRange::default()
    }
}

/// A recording, or a part of it.
pub struct Recording {
    reader: Reader,
    path: PathBuf,
    /// Its length, if `until` lies beyond it.
    shorter: Option<Duration>,
    /// Damage found while reading. A piece may be read twice; each is reported once.
    damage: Mutex<BTreeMap<String, u64>>,
}

impl Recording {
    /// Opens a recording, or that of a folder with the trace of a program, too. Only the part in `range` will
    /// be read.
    pub fn open(path: &Path, range: &TimeRange) -> Result<Recording> {
        let parts = probes::parts(path);
        let path = parts.as_ref().map_or(path, |[_, recording]| recording);
        let mut reader = Reader::open(path)?;
        let mut shorter = None;
        if !range.is_everything() {
            let begin = begin(&reader);
            let at = |offset: std::time::Duration| {
                begin + Duration::from_ns(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
            };
            let (from, until) = (range.from.map(at), range.until.map(at));
            if from.zip(until).is_some_and(|(from, until)| from >= until) {
                return Err(Error::usage("--from must be before --until"));
            }
            let length = reader.until().since(begin);
            if from.is_some_and(|from| from >= reader.until()) {
                return Err(Error::usage(format!(
                    "--from is beyond the end of {}, which is {length} long",
                    path.display()
                )));
            }
            shorter = until.filter(|until| *until > reader.until()).map(|_| length);
            reader.select(from, until)?;
        }
        Ok(Recording { reader, path: path.to_path_buf(), shorter, damage: Mutex::default() })
    }

    /// The same under this name in messages.
    pub(crate) fn called(self, path: &Path) -> Recording {
        Recording { path: path.to_owned(), ..self }
    }

    /// Restricts it to the time between `from` and `until`.
    pub fn narrow(&mut self, from: Instant, until: Instant) -> Result<()> {
        let later = (from > self.from()).then_some(from);
        let earlier = (until < self.reader.until()).then_some(until);
        if later.is_some() || earlier.is_some() {
            self.reader.select(later, earlier)?;
        }
        Ok(())
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says about itself.
    pub fn about(&self) -> &About {
        self.reader.about()
    }

    /// Its reader.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// When its readable part begins.
    pub fn from(&self) -> Instant {
        begin(&self.reader)
    }

    /// Activations, according to the packet headers.
    pub fn activations(&self) -> u64 {
        (0..self.reader.stretches()).map(|index| self.reader.stretch(index).activations).sum()
    }

    /// Activations lost to the damage found so far.
    pub fn unreadable(&self) -> u64 {
        let when_opened: u64 = self.reader.damage().iter().map(Damage::activations).sum();
        when_opened + self.damage.lock().unwrap_or_else(PoisonError::into_inner).values().sum::<u64>()
    }

    /// Whether something of it is missing, as far as that is known by now.
    pub fn is_damaged(&self) -> bool {
        let found = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        !self.reader.complete() || !self.reader.damage().is_empty() || !found.is_empty()
    }

    /// The same, read until the monitor asks to stop.
    pub(crate) fn stopped_by<'a>(&'a self, monitor: &'a dyn Monitor) -> Stoppable<'a> {
        Stoppable { recording: self, monitor }
    }

    /// Reads every record, in order.
    pub fn read_all(&self, each: &mut dyn FnMut(&Record)) -> Result<()> {
        Ok(self.read(0..self.reader.stretches(), each)?)
    }

    /// Reports what is to be known of it as a whole. Its timing model has that, too.
    pub fn report_notes(&self, monitor: &dyn Monitor) {
        let path = self.path.display();
        self.reader.notes().iter().for_each(|note| monitor.warn(&format!("{path}: {note}")));
    }

    /// Reports what is missing from it.
    pub fn report_problems(&self, monitor: &dyn Monitor) {
        let warn = |what: String| monitor.warn(&format!("{}: {what}", self.path.display()));
        if let Some(length) = self.shorter {
            warn(format!("the recording ends before --until: it is {length} long"));
        }
        for damage in self.reader.damage() {
            warn(damage.to_string());
        }
        for damage in self.damage.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            warn(damage.clone());
        }
        let dropped = self.reader.dropped();
        if dropped.packets > 0 {
            let activations = counted(dropped.activations, "activation");
            warn(format!("its oldest part, {activations}, was dropped to stay within the recording's limit"));
        }
        let lost = self.reader.totals().lost;
        if lost > 0 {
            let lost = counted(lost, "record");
            warn(format!("{lost} lost while it was recorded; tasks end where records are missing"));
        }
    }
}

/// Bytes that are read between two looks at the monitor.
const CHUNK_BYTES: u64 = 16 << 20;

/// A recording that is read until the monitor asks to stop.
#[derive(Clone, Copy)]
pub(crate) struct Stoppable<'a> {
    recording: &'a Recording,
    monitor: &'a dyn Monitor,
}

impl Stoppable<'_> {
    /// Reads every record, in order.
    pub fn read_all(&self, each: &mut dyn FnMut(&Record)) -> Result<()> {
        self.read(0..self.stretches(), each)
    }

    /// The first of these stretches, as many as are read at once.
    fn chunk(&self, stretches: &Range<usize>) -> Range<usize> {
        let mut bytes = 0_u64;
        let is_enough = |index: &usize| {
            bytes = bytes.saturating_add(self.recording.reader.stretch(*index).bytes);
            bytes >= CHUNK_BYTES
        };
        let last = stretches.clone().find(is_enough);
        stretches.start..last.map_or(stretches.end, |last| last + 1)
    }
}

impl Source for Stoppable<'_> {
    type Error = Error;

    fn stretches(&self) -> usize {
        self.recording.stretches()
    }

    fn activations(&self, stretch: usize) -> u64 {
        Source::activations(self.recording, stretch)
    }

    fn read(&self, stretches: Range<usize>, each: &mut dyn FnMut(&Record)) -> Result<()> {
        let mut left = stretches;
        while !left.is_empty() {
            if self.monitor.is_stopped() {
                return Err(Error::stopped());
            }
            let chunk = self.chunk(&left);
            left.start = chunk.end;
            self.recording.read(chunk, each)?;
        }
        Ok(())
    }
}

/// A recording with a limit may have lost the beginning of its observation.
fn begin(reader: &Reader) -> Instant {
    if reader.dropped().packets > 0 && reader.stretches() > 0 {
        reader.stretch(0).begin
    } else {
        reader.about().from
    }
}

impl Source for Recording {
    type Error = punctual_trace::Error;

    fn stretches(&self) -> usize {
        self.reader.stretches()
    }

    fn activations(&self, stretch: usize) -> u64 {
        self.reader.stretch(stretch).activations
    }

    fn read(
        &self,
        stretches: Range<usize>,
        each: &mut dyn FnMut(&Record),
    ) -> Result<(), punctual_trace::Error> {
        let damage = self.reader.read(stretches, each)?;
        if !damage.is_empty() {
            let found = damage.iter().map(|damage| (damage.to_string(), damage.activations()));
            self.damage.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        }
        Ok(())
    }
}
