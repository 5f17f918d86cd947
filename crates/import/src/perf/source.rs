//! The bytes of a perf.data file, wherever they are.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Where bytes are.
pub enum Place {
    File(File),
    Memory(Vec<u8>),
}

impl Place {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Place::File(file) => file.read_at(into, at),
            Place::Memory(bytes) => Ok(copy(bytes, at, into)),
        }
    }
}

/// Copies what there is from this place on.
fn copy(bytes: &[u8], from: u64, into: &mut [u8]) -> usize {
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let bytes = bytes.get(from..).unwrap_or_default();
    let length = bytes.len().min(into.len());
    into[..length].copy_from_slice(&bytes[..length]);
    length
}

/// The bytes of a recording: those of the file, or what perf would have written had it not been a pipe.
pub struct Content {
    pub place: Place,
    /// In front of the part of the file that counts, and behind it.
    pub head: Vec<u8>,
    pub part: Range<u64>,
    pub tail: Vec<u8>,
}

impl Content {
    /// The file as it is.
    pub fn whole(file: File, bytes: u64) -> Content {
        Content { place: Place::File(file), head: Vec::new(), part: 0..bytes, tail: Vec::new() }
    }

    /// The same of a file in memory.
    pub fn in_memory(bytes: Vec<u8>) -> Content {
        let part = 0..bytes.len() as u64;
        Content { place: Place::Memory(bytes), head: Vec::new(), part, tail: Vec::new() }
    }

    pub fn length(&self) -> u64 {
        self.head.len() as u64 + (self.part.end - self.part.start) + self.tail.len() as u64
    }

    /// Which byte of the file this one is.
    pub fn byte_of_file(&self, at: u64) -> u64 {
        at.checked_sub(self.head.len() as u64).map_or(at, |at| self.part.start + at)
    }

    pub fn read_exact_at(&self, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
        while !into.is_empty() {
            match self.read_at(into, at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => (into, at) = (&mut into[read..], at + read as u64),
            }
        }
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let part = self.head.len() as u64;
        let tail = part + (self.part.end - self.part.start);
        match at {
            _ if at < part => Ok(copy(&self.head, at, into)),
            _ if at < tail => {
                let length = into.len().min(usize::try_from(tail - at).unwrap_or(usize::MAX));
                self.place.read_at(&mut into[..length], self.part.start + (at - part))
            }
            _ => Ok(copy(&self.tail, at - tail, into)),
        }
    }
}

/// Reads it from some place on.
pub struct Cursor {
    content: Rc<Content>,
    at: u64,
}

impl Cursor {
    pub fn new(content: Rc<Content>, at: u64) -> Cursor {
        Cursor { content, at }
    }
}

impl Read for Cursor {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.content.length().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
