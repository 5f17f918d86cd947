//! Where the bytes of a recording are: in files, or in memory for tests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// One stream file.
pub struct Stream {
    /// From its name: `stream_3` is 3.
    pub number: u64,
    /// As errors and damages name it.
    pub name: String,
    pub length: u64,
    pub place: Place,
}

pub enum Place {
    File(PathBuf),
    Memory(Vec<u8>),
}

/// A stream file that is being read.
pub enum Bytes<'a> {
    File(File),
    Memory(&'a [u8]),
}

impl Stream {
    pub fn open(&self) -> io::Result<Bytes<'_>> {
        Ok(match &self.place {
            Place::File(path) => Bytes::File(File::open(path)?),
            Place::Memory(bytes) => Bytes::Memory(bytes),
        })
    }
}

impl Bytes<'_> {
    /// Fills the buffer from there.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Bytes::File(file) => file.read_exact_at(buffer, offset),
            Bytes::Memory(bytes) => {
                let from = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)?.get(..buffer.len()));
                buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}
