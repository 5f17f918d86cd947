//! A recording that is read: as a source of records for replay, and what there is to say of it.

use crate::args;
use crate::failure::{Code, Failure};
use punctual_extract::Source;
use punctual_model::{Duration, Instant};
use punctual_report::counted;
use punctual_trace::ctf::{Damage, Reader};
use punctual_trace::{About, Record};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A recording, or the stretch of it that was asked for.
pub struct Recording {
    reader: Reader,
    path: PathBuf,
    /// How long it is, where more of it was asked for.
    shorter: Option<Duration>,
    /// What was found damaged while reading. A piece may be read twice: each is told once.
    damage: Mutex<BTreeMap<String, u64>>,
}

impl Recording {
    pub fn open(path: &Path, stretch: &args::Stretch) -> Result<Recording, Failure> {
        let mut reader = Reader::open(path)?;
        let mut shorter = None;
        if stretch.from.is_some() || stretch.until.is_some() {
            let begin = begin(&reader);
            let at = |offset: std::time::Duration| {
                begin + Duration::from_ns(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
            };
            let (from, until) = (stretch.from.map(at), stretch.until.map(at));
            if from.zip(until).is_some_and(|(from, until)| from >= until) {
                return Err(Failure::new(Code::Usage, "--from must come before --until"));
            }
            let length = reader.until().since(begin);
            if from.is_some_and(|from| from >= reader.until()) {
                return Err(Failure::new(
                    Code::Usage,
                    format!("{} is only {length} long; --from is behind its end", path.display()),
                ));
            }
            shorter = until.filter(|until| *until > reader.until()).map(|_| length);
            reader.select(from, until)?;
        }
        Ok(Recording { reader, path: path.to_path_buf(), shorter, damage: Mutex::default() })
    }

    /// Only what lies between these, if that is less than all of it.
    pub fn narrow(&mut self, from: Instant, until: Instant) -> Result<(), Failure> {
        let later = (from > self.from()).then_some(from);
        let earlier = (until < self.reader.until()).then_some(until);
        if later.is_some() || earlier.is_some() {
            self.reader.select(later, earlier)?;
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn about(&self) -> &About {
        self.reader.about()
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// When what can be read begins.
    pub fn from(&self) -> Instant {
        begin(&self.reader)
    }

    /// Activations, as the headers of the packets say.
    pub fn activations(&self) -> u64 {
        (0..self.reader.stretches()).map(|index| self.reader.stretch(index).activations).sum()
    }

    /// Activations that are lost by what was found damaged so far.
    pub fn unreadable(&self) -> u64 {
        let when_opened: u64 = self.reader.damage().iter().map(Damage::activations).sum();
        when_opened + self.damage.lock().unwrap_or_else(PoisonError::into_inner).values().sum::<u64>()
    }

    /// Every record, in order, one after the other.
    pub fn read_all(&self, each: &mut dyn FnMut(&Record)) -> Result<(), Failure> {
        Ok(self.read(0..self.reader.stretches(), each)?)
    }

    /// Says what is missing of it, however quiet.
    pub fn warn(&self) {
        let place = self.path.display();
        if let Some(length) = self.shorter {
            eprintln!("punctual: {place}: it ends before --until, {length} after its beginning");
        }
        for damage in self.reader.damage() {
            eprintln!("punctual: {place}: {damage}");
        }
        for damage in self.damage.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            eprintln!("punctual: {place}: {damage}");
        }
        let dropped = self.reader.dropped();
        if dropped.packets > 0 {
            let activations = counted(dropped.activations, "activation");
            eprintln!(
                "punctual: {place}: its oldest part, {activations}, went because of its limit when it was recorded"
            );
        }
        let lost = self.reader.totals().lost;
        if lost > 0 {
            let lost = counted(lost, "record");
            eprintln!(
                "punctual: {place}: {lost} lost when it was recorded, tasks end where they are missing"
            );
        }
    }
}

/// With a limit, the beginning of the observation may be gone.
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
            let said = damage.iter().map(|damage| (damage.to_string(), damage.activations()));
            self.damage.lock().unwrap_or_else(PoisonError::into_inner).extend(said);
        }
        Ok(())
    }
}
