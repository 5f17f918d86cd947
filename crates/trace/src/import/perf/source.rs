//! The bytes of a perf.data file on their way to the library that reads it: counted, and stopped where it
//! would take a size in the file at its word.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::rc::Rc;

/// Kinds of records whose size is not in their header.
const AUXTRACE: u32 = 71;
const HEADER: usize = 8;

/// A file that knows how far it has been read, and what records its data are made of.
pub struct Source {
    file: BufReader<File>,
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
    pub fn new(file: File, data: Range<u64>) -> Source {
        Source {
            file: BufReader::new(file),
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
