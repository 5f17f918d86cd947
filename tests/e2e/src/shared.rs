//! Observations of which several tests ask different things. Each is made once, by the first of them.

use crate::Result;
use crate::run::{Ended, directory, punctual, run, workload};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The demonstration, extracted and recorded at once.
pub static DEMO: Shared = Shared::new(demo);
/// A second of three threads with periods of 2, 5 and 10 ms, recorded.
pub static THREADS: Shared = Shared::new(|| threads(&[]));
/// The same with all steps of the scheduler.
pub static SWITCHES: Shared = Shared::new(|| threads(&["--detail", "switches"]));

/// An observation that is made when it is first asked for.
pub struct Shared {
    make: fn() -> Result<Observation>,
    made: Mutex<Option<Arc<Observation>>>,
}

/// Its files, which go with it.
pub struct Observation {
    began: Instant,
    ended: Ended,
    directory: tempfile::TempDir,
}

impl Shared {
    const fn new(make: fn() -> Result<Observation>) -> Shared {
        Shared { make, made: Mutex::new(None) }
    }

    /// The observation, for tests that change nothing in its folder.
    pub fn get(&self) -> Result<Arc<Observation>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(made.insert(Arc::new((self.make)()?)))),
        }
    }

    /// A copy of the recording in a test's own folder.
    pub fn recording(&self, directory: &Path) -> Result<PathBuf> {
        let (from, to) = (self.get()?.recording(), directory.join("recording"));
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(from).arg(&to);
        run(copy)?.expect_code(0)?;
        Ok(to)
    }
}

/// Removes the files of all.
pub fn forget() {
    for shared in [&DEMO, &THREADS, &SWITCHES] {
        *shared.made.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Observation {
    /// When it began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// What the command printed.
    pub fn ended(&self) -> &Ended {
        &self.ended
    }

    /// The model, of observations that extract.
    pub fn model(&self) -> PathBuf {
        self.directory.path().join("observed.timing.json")
    }

    pub fn recording(&self) -> PathBuf {
        self.directory.path().join("recording")
    }

    fn make(complete: impl FnOnce(&Path) -> Command) -> Result<Observation> {
        let (began, directory) = (Instant::now(), directory()?);
        let ended = run(complete(directory.path()))?;
        ended.expect_code(0)?;
        Ok(Observation { began, ended, directory })
    }
}

/// Long enough for each of its periods to be found.
pub fn demo() -> Result<Observation> {
    Observation::make(|folder| {
        let mut extract = punctual(["extract", "-q", "-o"]);
        extract.arg(folder.join("observed.timing.json")).arg("--record").arg(folder.join("recording"));
        extract.args(["--", &workload("demo"), "--for", "5"]);
        extract
    })
}

fn threads(options: &[&str]) -> Result<Observation> {
    Observation::make(|folder| {
        let mut record = punctual(["record", "-o"]);
        record.arg(folder.join("recording")).args(options);
        record.args(["--", &workload("periodic"), "--for", "1", "2000", "5000", "10000"]);
        record
    })
}
