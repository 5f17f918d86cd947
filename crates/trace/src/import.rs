//! Other tools' traces, read into records. What a source lacks is said, not guessed.
//!
//! A trace of plain events (calls entered and left, threads switched, woken) becomes activations by
//! [`thread`], which does in user space what an observation does in the kernel. Each format has a room of its
//! own: [`lime`] and [`perf`].

mod error;
mod lime;
mod notes;
mod objects;
mod perf;
mod table;
mod thread;

use crate::{About, Record, Totals};
use punctual_model::Instant;
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::{Error, ErrorKind};

/// What to take of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads under SCHED_OTHER and its like too, where the trace has them.
    pub include_best_effort: bool,
}

/// What a trace came to.
#[derive(Clone, Debug)]
pub struct Imported {
    /// When the last thing happened.
    pub until: Instant,
    /// What its own tool lost.
    pub totals: Totals,
    /// What the source lacks, or what of it was not understood: each said once, with counts.
    pub notes: Vec<String>,
}

/// A trace that is about to be imported.
pub struct Import {
    source: Source,
    about: About,
    bytes: u64,
}

enum Source {
    Lime(Box<lime::Folder>),
    Perf(Box<perf::Trace>),
}

impl Import {
    /// Recognises the format and reads what is true of the whole.
    pub fn open(path: &Path, options: &Options) -> Result<Import, Error> {
        if path.is_dir() {
            let folder = lime::Folder::open(path)?;
            let (about, bytes) = (folder.about().clone(), folder.bytes());
            return Ok(Import { source: Source::Lime(Box::new(folder)), about, bytes });
        }
        let mut magic = [0; 8];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
        match read {
            Ok(()) if &magic == b"PERFILE2" || &magic == b"2ELIFREP" => {
                let trace = perf::Trace::open(path, options)?;
                let (about, bytes) = (trace.about().clone(), trace.bytes());
                Ok(Import { source: Source::Perf(Box::new(trace)), about, bytes })
            }
            Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(Error::io(path, &error)),
            _ => Err(Error::new(
                ErrorKind::NotATrace,
                format!("{} is neither a perf.data file nor a folder that LiME recorded", path.display()),
            )),
        }
    }

    /// What is known before the first record.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// How much there is to read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands on every record, as nearly as possible in the order of time. `each` says whether to go on;
    /// `progress` is told bytes.
    pub fn run(
        self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        match self.source {
            Source::Lime(folder) => folder.run(each, progress),
            Source::Perf(trace) => trace.run(each, progress),
        }
    }
}
