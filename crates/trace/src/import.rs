//! Imports other tools' traces as records. What a source lacks is reported, not guessed.
//!
//! [`thread`] turns plain events (calls entered and left, threads switched and woken) into activations, as
//! the eBPF programs do in the kernel. Each format has its own module: [`lime`] and [`perf`].

mod error;
mod lime;
mod notes;
mod objects;
mod perf;
pub mod ros2;
mod summary;
mod table;
mod thread;

use crate::{About, Record};
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::{Error, ErrorKind};
pub use summary::{Imported, Options};

/// A trace to be imported.
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
    /// Recognises the format and reads the description of the trace.
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
            Source::Perf(trace) => trace.run(each, progress),
        }
    }
}
