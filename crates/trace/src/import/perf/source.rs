//! The bytes of a perf.data file on their way to the library that reads it: counted, and stopped where it
//! would take a size in the file at its word.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// The bytes of a recording: those of the file, or what perf would have written had it not been a pipe.
pub struct Content {
    pub file: File,
    /// In front of the part of the file that counts, and behind it.
    pub head: Vec<u8>,
    pub part: Range<u64>,
    pub tail: Vec<u8>,
}

impl Content {
    /// The file as it is.
    pub fn whole(file: File, bytes: u64) -> Content {
        Content { file, head: Vec::new(), part: 0..bytes, tail: Vec::new() }
    }

    pub fn length(&self) -> u64 {
        self.head.len() as u64 + (self.part.end - self.part.start) + self.tail.len() as u64
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
        let memory = |bytes: &[u8], from: u64, into: &mut [u8]| {
            let bytes = bytes.get(from as usize..).unwrap_or_default();
            let length = bytes.len().min(into.len());
            into[..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        };
        match at {
            _ if at < part => memory(&self.head, at, into),
            _ if at < tail => {
                let length = into.len().min(usize::try_from(tail - at).unwrap_or(usize::MAX));
                self.file.read_at(&mut into[..length], self.part.start + (at - part))
            }
            _ => memory(&self.tail, at - tail, into),
        }
    }
}

/// Reads it from one end to the other.
struct Cursor {
    content: Content,
    at: u64,
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

/// Kinds of records whose size is not in their header.
const AUXTRACE: u32 = 71;
const HEADER: usize = 8;

/// A file that knows how far it has been read, and what records its data are made of.
pub struct Source {
    file: BufReader<Cursor>,
    position: Rc<Cell<u64>>,
    /// Where its records are.
    data: Range<u64>,
    /// The header of the record at hand, as far as it has been read, and how many bytes of the record come
    /// behind it.
    header: [u8; HEADER],
    read: usize,
    rest: usize,
}

impl Source {
    pub fn new(content: Content, data: Range<u64>) -> Source {
        Source {
            file: BufReader::new(Cursor { content, at: 0 }),
            position: Rc::default(),
            data,
            header: [0; HEADER],
            read: 0,
            rest: 0,
        }
    }

    /// How far it has been read, for as long as it is.
    pub fn position(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.position)
    }

    /// Looks at the headers of the records in what was read.
    fn follow(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let taken = bytes.len().min(HEADER - self.read);
            self.header[self.read..self.read + taken].copy_from_slice(&bytes[..taken]);
            self.read += taken;
            bytes = &bytes[taken..];
            if self.read == HEADER {
                let [a, b, c, d, _, _, low, high] = self.header;
                if u32::from_le_bytes([a, b, c, d]) == AUXTRACE {
                    return Err(io::Error::other("it has traces of the processor, which are not read here"));
                }
                self.rest = usize::from(u16::from_le_bytes([low, high])).saturating_sub(HEADER);
                self.read = 0;
            }
        }
        Ok(())
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let from = self.position.get();
        self.position.set(from + read as u64);
        if self.data.contains(&from) {
            self.follow(&buffer[..read])?;
        }
        Ok(read)
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = self.file.seek(to)?;
        self.position.set(position);
        (self.read, self.rest) = (0, 0);
        Ok(position)
    }
}
