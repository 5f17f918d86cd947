//! Where the bytes of a trace are: in the files of a folder, or in memory for tests.

use crate::error::{Error, ErrorKind};
use crate::tsdl::METADATA;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One stream file.
pub struct Stream {
    /// From its name: `stream_3` is 3.
    pub number: u64,
    /// Of the file, for messages.
    pub name: String,
    /// In bytes.
    pub length: u64,
    /// Its length by its index, if it has one.
    pub indexed: Option<u64>,
    place: Place,
}

/// A trace's folder, opened.
pub struct Source {
    /// Where it is, for messages.
    pub folder: PathBuf,
    /// The file `metadata`, if there is one.
    pub metadata: Option<Vec<u8>>,
    /// The stream files, by number.
    pub streams: Vec<Stream>,
}

/// What a reader expects of a folder, and the most that it takes.
pub struct Expected {
    /// What kind of trace it is.
    pub kind: &'static str,
    /// Files of streams.
    pub max_streams: usize,
    /// Bytes of metadata.
    pub max_metadata: u64,
}

impl Source {
    /// Opens a folder: reads its metadata and lists the files named like streams. If the path is not a
    /// folder, `what_file` says in the error what it is instead.
    pub fn open(
        folder: &Path,
        expected: &Expected,
        what_file: impl Fn() -> &'static str,
    ) -> Result<Source, Error> {
        let not_a_trace = |why: String| {
            let message = format!("{} is not {}: {why}", folder.display(), expected.kind);
            Error::new(ErrorKind::NotATrace, message)
        };
        let entries = fs::read_dir(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => not_a_trace(format!("it is {}", what_file())),
            _ => Error::io("read", folder, &error),
        })?;
        let mut streams = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| Error::io("read", folder, &error))?;
            streams.extend(Stream::from_entry(&entry)?);
            if streams.len() > expected.max_streams {
                return Err(not_a_trace(format!("it has more than {} stream files", expected.max_streams)));
            }
        }
        streams.sort_by_key(|stream| stream.number);
        let path = folder.join(METADATA);
        let metadata = match fs::metadata(&path) {
            Ok(about) if !about.is_file() || about.len() > expected.max_metadata => {
                let most = expected.max_metadata;
                return Err(not_a_trace(format!("its metadata is not a file of at most {most} bytes")));
            }
            Ok(_) => Some(fs::read(&path).map_err(|error| Error::io("read", &path, &error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("read", &path, &error)),
        };
        Ok(Source { folder: folder.to_owned(), metadata, streams })
    }

    /// A trace in memory, with its streams by number.
    pub fn in_memory(metadata: &[u8], streams: Vec<(u64, Vec<u8>)>) -> Source {
        let stream = |(number, bytes): (u64, Vec<u8>)| Stream {
            number,
            name: format!("stream_{number}"),
            length: bytes.len() as u64,
            indexed: None,
            place: Place::Memory(bytes),
        };
        let mut streams: Vec<Stream> = streams.into_iter().map(stream).collect();
        streams.sort_by_key(|stream| stream.number);
        Source { folder: "(memory)".into(), metadata: Some(metadata.to_owned()), streams }
    }
}

/// Makes the folder of a new trace, or takes one that is empty. Tells whether it is new.
pub fn create_folder(folder: &Path) -> Result<bool, Error> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut entries =
                fs::read_dir(folder).map_err(|error| Error::io("write into", folder, &error))?;
            if entries.next().is_none() {
                return Ok(false);
            }
            let place = folder.display();
            let message =
                format!("cannot write into {place}: it is not empty; name another folder, or remove it");
            Err(Error::new(ErrorKind::Exists, message))
        }
        Err(error) => Err(Error::io("make the folder", folder, &error)),
    }
}

enum Place {
    File(PathBuf),
    Memory(Vec<u8>),
}

/// A stream file, opened.
pub enum Bytes<'a> {
    /// In a file.
    File(File),
    /// In memory.
    Memory(&'a [u8]),
}

impl Stream {
    /// A file of any name.
    pub fn at(path: PathBuf, length: u64) -> Stream {
        let name = path.to_string_lossy().into_owned();
        Stream { number: 0, name, length, indexed: None, place: Place::File(path) }
    }

    /// The stream in this file of a folder; `None` for other files.
    fn from_entry(entry: &fs::DirEntry) -> Result<Option<Stream>, Error> {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix("stream_").and_then(|number| number.parse().ok()) else {
            return Ok(None);
        };
        let path = entry.path();
        let about = fs::metadata(&path).map_err(|error| Error::io("read", &path, &error))?;
        let stream = Stream { number, name, length: about.len(), indexed: None, place: Place::File(path) };
        Ok(about.is_file().then_some(stream))
    }

    /// Opens its file.
    pub fn open(&self) -> io::Result<Bytes<'_>> {
        Ok(match &self.place {
            Place::File(path) => Bytes::File(File::open(path)?),
            Place::Memory(bytes) => Bytes::Memory(bytes),
        })
    }
}

impl Bytes<'_> {
    /// Fills the buffer with the bytes from `offset` on.
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
