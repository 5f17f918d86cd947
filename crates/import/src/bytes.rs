//! The bytes of a trace: of a file or, in tests, of memory. Every size in the file is checked before anything
//! is taken at its word.

use super::error::Error;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most bytes that are read or unpacked at once.
pub const MOST: u64 = 64 << 20;

/// Where the bytes are.
pub enum Bytes {
    File { file: File, length: u64 },
    Memory(Vec<u8>),
}

impl Bytes {
    /// Those of a file.
    pub fn open(path: &Path) -> Result<Bytes, Error> {
        let file = File::open(path).map_err(|error| Error::io(path, &error))?;
        let length = file.metadata().map_err(|error| Error::io(path, &error))?.len();
        Ok(Bytes::File { file, length })
    }

    pub fn length(&self) -> u64 {
        match self {
            Bytes::File { length, .. } => *length,
            Bytes::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// So many bytes from here on.
    pub fn read(&self, at: u64, length: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        self.read_into(at, length, &mut bytes)?;
        Ok(bytes)
    }

    /// The same in place of what is in `into`.
    pub fn read_into(&self, at: u64, length: u64, into: &mut Vec<u8>) -> Result<(), String> {
        if length > MOST {
            return Err(format!("byte {at}: {length} bytes cannot be here"));
        }
        let end = at.checked_add(length).filter(|end| *end <= self.length());
        let cut =
            || format!("the file is truncated: {length} bytes should be at byte {at} of {}", self.length());
        let end = end.ok_or_else(cut)?;
        into.clear();
        match self {
            Bytes::Memory(bytes) => into.extend_from_slice(&bytes[at as usize..end as usize]),
            Bytes::File { file, .. } => {
                into.resize(length as usize, 0);
                file.read_exact_at(into, at).map_err(|error: io::Error| format!("byte {at}: {error}"))?;
            }
        }
        Ok(())
    }
}

/// How sections and trace data are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    None,
    Zlib,
    Zstd,
}

impl Packing {
    /// By the name in the file.
    pub fn from_name(name: &str) -> Option<Packing> {
        match name {
            "none" => Some(Packing::None),
            "zlib" => Some(Packing::Zlib),
            "zstd" => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// Unpacks to exactly so many bytes.
    pub fn unpack(self, packed: &[u8], length: u64) -> Result<Vec<u8>, String> {
        if length > MOST {
            return Err(format!("its size {length} is invalid"));
        }
        let mut bytes = vec![0; length as usize];
        let taken = match self {
            Packing::None => Err("it says that it is not packed".to_owned()),
            Packing::Zlib => flate2::Decompress::new(true)
                .decompress(packed, &mut bytes, flate2::FlushDecompress::Finish)
                .map(|status| if status == flate2::Status::StreamEnd { bytes.len() } else { 0 })
                .map_err(|error| error.to_string()),
            Packing::Zstd => zstd_safe::decompress(&mut bytes[..], packed)
                .map_err(|code| zstd_safe::get_error_name(code).to_owned()),
        }?;
        if taken == bytes.len() { Ok(bytes) } else { Err("it ends too early".to_owned()) }
    }

    /// Unpacks to however many bytes there are, up to the most.
    pub fn unpack_any(self, packed: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let bytes = match self {
            Packing::None => Ok(packed.to_vec()),
            Packing::Zlib => inflate(packed, most),
            Packing::Zstd => unpack_zstd(packed, most),
        }?;
        match bytes.len() <= most {
            true => Ok(bytes),
            false => Err(format!("it has more than {most} bytes")),
        }
    }
}

/// Unpacks one stream of zlib, to at most so many bytes.
fn inflate(packed: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut reader = flate2::bufread::ZlibDecoder::new(packed).take(most as u64 + 1);
    reader.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Unpacks frames of zstd, to at most so many bytes.
fn unpack_zstd(packed: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let failed = |code| zstd_safe::get_error_name(code).to_owned();
    let mut bytes = Vec::new();
    let mut context = zstd_safe::DCtx::create();
    let mut input = zstd_safe::InBuffer::around(packed);
    let mut block = vec![0; zstd_safe::DCtx::out_size()];
    while bytes.len() <= most {
        let mut output = zstd_safe::OutBuffer::around(&mut block[..]);
        let left = context.decompress_stream(&mut output, &mut input).map_err(failed)?;
        bytes.extend_from_slice(output.as_slice());
        let is_drained = output.pos() < output.capacity();
        match (left, input.pos() == packed.len()) {
            (0, true) => return Ok(bytes),
            (_, true) if is_drained => return Err("it ends too early".to_owned()),
            _ => {}
        }
    }
    Ok(bytes)
}

/// Reads numbers and texts one after the other.
pub struct Cursor<'a> {
    bytes: &'a Bytes,
    pub at: u64,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a Bytes, at: u64) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub fn take(&mut self, length: u64) -> Result<Vec<u8>, String> {
        let bytes = self.bytes.read(self.at, length)?;
        self.at += length;
        Ok(bytes)
    }

    pub fn skip(&mut self, length: u64) -> Result<(), String> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.length());
        self.at = end.ok_or_else(|| format!("byte {}: {length} bytes should follow", self.at))?;
        Ok(())
    }

    /// A number of so many bytes, up to eight.
    fn number(&mut self, length: u64) -> Result<u64, String> {
        let mut wide = [0; 8];
        wide[..length as usize].copy_from_slice(&self.take(length)?);
        Ok(u64::from_le_bytes(wide))
    }

    pub fn byte(&mut self) -> Result<u8, String> {
        Ok(self.number(1)? as u8)
    }

    pub fn half(&mut self) -> Result<u16, String> {
        Ok(self.number(2)? as u16)
    }

    pub fn word(&mut self) -> Result<u32, String> {
        Ok(self.number(4)? as u32)
    }

    pub fn long(&mut self) -> Result<u64, String> {
        self.number(8)
    }

    /// A text up to its zero.
    pub fn text(&mut self) -> Result<String, String> {
        const LONGEST: usize = 4096;
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                _ if text.len() == LONGEST => {
                    return Err(format!("byte {}: a text without an end", self.at));
                }
                byte => text.push(byte),
            }
        }
    }
}
