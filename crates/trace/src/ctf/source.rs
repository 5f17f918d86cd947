//! Where the bytes of a recording are: in files, or in memory for tests.

use crate::error::{Error, ErrorKind};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One stream file.
pub struct Stream {
    /// From its name: `stream_3` is 3.
    pub number: u64,
    /// As errors and damages name it.
    pub name: String,
    pub length: u64,
    pub place: Place,
}

impl Stream {
    /// The files of a folder that are named like streams, up to one more than `most`; `failed` says why it
    /// cannot be read.
    pub fn in_folder(
        folder: &Path,
        most: usize,
        failed: impl Fn(io::Error) -> Error,
    ) -> Result<Vec<Stream>, Error> {
        let mut streams = Vec::new();
        for entry in fs::read_dir(folder).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(number) = name.strip_prefix("stream_").and_then(|number| number.parse().ok()) else {
                continue;
            };
            let path = entry.path();
            let about = fs::metadata(&path).map_err(|error| Error::io("read", &path, &error))?;
            if about.is_file() {
                streams.push(Stream { number, name, length: about.len(), place: Place::File(path) });
            }
            if streams.len() > most {
                break;
            }
        }
        Ok(streams)
    }

    /// The same of what is in memory, by number.
    pub fn in_memory(streams: Vec<(u64, Vec<u8>)>) -> Vec<Stream> {
        let stream = |(number, bytes): (u64, Vec<u8>)| Stream {
            number,
            name: format!("stream_{number}"),
            length: bytes.len() as u64,
            place: Place::Memory(bytes),
        };
        streams.into_iter().map(stream).collect()
    }
}

/// The file `metadata` of a folder; `None` if there is none. `what` has it: a recording, a flow trace.
pub fn metadata_of(folder: &Path, most_bytes: u64, what: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = folder.join(super::metadata::NAME);
    match fs::metadata(&path) {
        Ok(about) if !about.is_file() || about.len() > most_bytes => {
            let message = format!(
                "{} is no metadata of a {what}: it is no file, or longer than {most_bytes} bytes",
                path.display()
            );
            Err(Error::new(ErrorKind::NotATrace, message))
        }
        Ok(_) => fs::read(&path).map(Some).map_err(|error| Error::io("read", &path, &error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path, &error)),
    }
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
                let from =
                    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)?.get(..buffer.len()));
                buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}
