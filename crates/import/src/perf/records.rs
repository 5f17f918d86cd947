//! The records of one file, in the order in which they stand there; unpacked where perf packed them (`perf
//! record -z`). Needs room for a few records, whatever sizes the file claims.

use super::header;
use super::source::{Content, Cursor};
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::rc::Rc;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes of a record's header, and of the size of packed bytes in front of them.
const HEADER: usize = 8;
const SIZE: usize = 8;

/// Bytes that are unpacked at a time.
const STEP: usize = 1 << 17;

/// Kinds of records of perf's own.
pub mod kind {
    pub const FIRST_OF_PERF: u32 = 64;
    pub const ATTRIBUTE: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const ROUND: u32 = 68;
    pub const ID_INDEX: u32 = 69;
    pub const AUXTRACE: u32 = 71;
    pub const FEATURE: u32 = 80;
    /// All behind the header is packed; or as much as a size in front says.
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED_SIZED: u32 = 83;
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: u32,
    pub misc: u16,
    size: usize,
}

impl Head {
    fn of(bytes: &[u8]) -> Option<Head> {
        let [a, b, c, d, e, f, g, h] = *bytes.first_chunk::<HEADER>()?;
        Some(Head {
            kind: u32::from_le_bytes([a, b, c, d]),
            misc: u16::from_le_bytes([e, f]),
            size: usize::from(u16::from_le_bytes([g, h])),
        })
    }

    /// Bytes behind the header.
    fn rest(&self) -> Result<usize, String> {
        let rest = self.size.checked_sub(HEADER);
        rest.ok_or_else(|| format!("a record cannot be {} bytes long", self.size))
    }
}

/// Reads a file's records one after the other.
pub struct Records {
    file: BufReader<Cursor>,
    at: u64,
    end: u64,
    packed: Packed,
}

impl Records {
    /// Those in this part of a file.
    pub fn new(content: Rc<Content>, part: Range<u64>) -> Records {
        let file = BufReader::with_capacity(1 << 16, Cursor::new(content, part.start));
        Records { file, at: part.start, end: part.end, packed: Packed::default() }
    }

    /// How far the file has been read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next record, its content in `body`; `None` at the end.
    pub fn next(&mut self, body: &mut Vec<u8>) -> Result<Option<Head>, String> {
        loop {
            if let Some(head) = self.packed.next(body)? {
                return Ok(Some(head));
            }
            let Some(head) = self.read(body)? else {
                return self.packed.end().map(|()| None);
            };
            match head.kind {
                kind::COMPRESSED => self.packed.take(body, 0..body.len()),
                kind::COMPRESSED_SIZED => {
                    let size = body.first_chunk::<SIZE>().map(|size| u64::from_le_bytes(*size));
                    let end = size.and_then(|size| usize::try_from(size).ok()?.checked_add(SIZE));
                    let end = end.filter(|end| *end <= body.len());
                    let end = end.ok_or("what is compressed does not lie within its record")?;
                    self.packed.take(body, SIZE..end);
                }
                kind::AUXTRACE => self.skip_auxtrace(body)?,
                _ => return Ok(Some(head)),
            }
        }
    }

    /// The next record of the file, packed or not.
    fn read(&mut self, body: &mut Vec<u8>) -> Result<Option<Head>, String> {
        if self.at >= self.end {
            return Ok(None);
        }
        let left = self.end - self.at;
        let cut_off = || io::Error::from(io::ErrorKind::UnexpectedEof);
        if left < HEADER as u64 {
            return Err(unread(&cut_off()));
        }
        let mut header = [0; HEADER];
        self.file.read_exact(&mut header).map_err(|error| unread(&error))?;
        if &header == header::MAGIC {
            return Err("another perf.data begins there: import it alone".to_owned());
        }
        let Some(head) = Head::of(&header) else { return Ok(None) };
        // What is behind the part is something else.
        if head.size as u64 > left {
            return Err(unread(&cut_off()));
        }
        body.resize(head.rest()?, 0);
        self.file.read_exact(body).map_err(|error| unread(&error))?;
        self.at += head.size as u64;
        Ok(Some(head))
    }

    /// The traces of a processor come behind their record.
    fn skip_auxtrace(&mut self, body: &[u8]) -> Result<(), String> {
        let size = body.first_chunk().map_or(0, |size| u64::from_le_bytes(*size));
        let end = self.at.checked_add(size).filter(|end| *end <= self.end);
        let end = end.ok_or_else(|| format!("traces of the processor cannot be {size} bytes long"))?;
        self.file.seek_relative(size as i64).map_err(|error| unread(&error))?;
        self.at = end;
        Ok(())
    }
}

fn unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it is cut off within a record".to_owned(),
        _ => error.to_string(),
    }
}

/// The stream that perf packs a file's records into. A record may begin in one piece and end in the next.
#[derive(Default)]
struct Packed {
    context: Option<DCtx<'static>>,
    /// A piece, and how much of it is unpacked.
    piece: Vec<u8>,
    used: usize,
    /// What is unpacked, and how much of it was handed on.
    open: Vec<u8>,
    taken: usize,
    is_full: bool,
}

impl Packed {
    /// Takes a part of a record, which is swapped for another buffer.
    fn take(&mut self, record: &mut Vec<u8>, part: Range<usize>) {
        std::mem::swap(&mut self.piece, record);
        self.piece.truncate(part.end);
        self.used = part.start;
    }

    fn next(&mut self, body: &mut Vec<u8>) -> Result<Option<Head>, String> {
        loop {
            let open = &self.open[self.taken..];
            if let Some(head) = Head::of(open) {
                if let Some(rest) = open.get(HEADER..HEADER + head.rest()?) {
                    body.clear();
                    body.extend_from_slice(rest);
                    self.taken += head.size;
                    return Ok(Some(head));
                }
            }
            if self.used >= self.piece.len() && !self.is_full {
                return Ok(None);
            }
            self.unpack()?;
        }
    }

    fn unpack(&mut self) -> Result<(), String> {
        self.open.drain(..self.taken);
        self.taken = 0;
        let before = self.open.len();
        self.open.resize(before + STEP, 0);
        let mut input = InBuffer::around(&self.piece[self.used..]);
        let mut output = OutBuffer::around(&mut self.open[before..]);
        let context = self.context.get_or_insert_with(DCtx::create);
        let unpacked = context.decompress_stream(&mut output, &mut input);
        let (read, written) = (input.pos(), output.pos());
        self.open.truncate(before + written);
        unpacked
            .map_err(|code| format!("what is compressed is damaged: {}", zstd_safe::get_error_name(code)))?;
        self.used += read;
        self.is_full = written == STEP;
        match read + written {
            0 if self.used < self.piece.len() => Err("what is compressed is damaged".to_owned()),
            _ => Ok(()),
        }
    }

    /// Whether the last record is whole.
    fn end(&self) -> Result<(), String> {
        match self.open.len() - self.taken {
            0 => Ok(()),
            rest => Err(format!("the last {rest} bytes of what is compressed are no whole record")),
        }
    }
}
