//! Finds the traces of a session: an LTTng session has one for the kernel, and one or more of user space.

use super::document::Document;
use super::{fragments, metadata, parse};
use crate::{Error, ErrorKind};
use punctual_trace::source::Stream;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Deepest folder, and most folders and files that are looked at.
const MOST_DEEP: usize = 10;
const MOST_ENTRIES: usize = 100_000;
/// Most traces, and most files of streams.
const MOST_TRACES: usize = 1_024;
const MOST_STREAMS: usize = 4_096;
const MOST_METADATA: u64 = 32 << 20;

/// A trace: a folder with `metadata`.
pub struct Found {
    pub folder: PathBuf,
    pub document: Document,
    pub streams: Vec<Stream>,
    /// Names of streams that were there once.
    pub missing: Vec<String>,
    /// Of its metadata, which are the same in copies: length and checksum.
    pub session: (usize, u32),
}

/// Whether there is a trace in this folder, or below it.
pub fn holds_trace(folder: &Path) -> bool {
    folders(folder).is_ok_and(|folders| !folders.is_empty())
}

/// All traces in this folder and below it.
pub fn find(folder: &Path) -> Result<Vec<Found>, Error> {
    let folders = folders(folder)?;
    if folders.is_empty() {
        let what = "is not a trace in CTF: neither it nor a folder in it has a file named metadata";
        return Err(Error::new(ErrorKind::NotATrace, format!("{} {what}", folder.display())));
    }
    let found = folders.into_iter().map(open).collect::<Result<Vec<Found>, Error>>()?;
    let streams: usize = found.iter().map(|found| found.streams.len()).sum();
    if streams > MOST_STREAMS {
        return Err(Error::malformed(folder, format!("it has more than {MOST_STREAMS} files of streams")));
    }
    Ok(found)
}

/// The folders with `metadata`, in order of their names.
fn folders(top: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut open = vec![(top.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| Error::io(&folder, &error))? {
            let entry = entry.map_err(|error| Error::io(&folder, &error))?;
            seen += 1;
            if seen > MOST_ENTRIES || found.len() > MOST_TRACES {
                return Err(Error::malformed(top, "it has too many folders and files to be one session"));
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_file() && entry.file_name() == "metadata" {
                found.push(folder.clone());
            } else if kind.is_dir() && depth < MOST_DEEP {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn open(folder: PathBuf) -> Result<Found, Error> {
    let path = folder.join("metadata");
    let failed = |error: std::io::Error| Error::io(&path, &error);
    if fs::metadata(&path).map_err(failed)?.len() > MOST_METADATA {
        return Err(Error::malformed(&path, format!("it has more than {MOST_METADATA} bytes")));
    }
    let bytes = fs::read(&path).map_err(failed)?;
    let document = document(&bytes).map_err(|why| Error::malformed(&path, why))?;
    let mut streams = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| Error::io(&folder, &error))? {
        let entry = entry.map_err(|error| Error::io(&folder, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let about = fs::metadata(entry.path()).map_err(|error| Error::io(&entry.path(), &error))?;
        if about.is_file() && !name.starts_with("metadata") && !name.starts_with('.') {
            streams.push(Stream::at(entry.path(), about.len()));
        }
    }
    streams.sort_by(|one, other| one.name.cmp(&other.name));
    for stream in &mut streams {
        stream.indexed = indexed(&folder, &stream.name);
    }
    let missing = missing(&folder, &streams);
    let session = (bytes.len(), crc32fast::hash(&bytes));
    Ok(Found { folder, document, streams, missing, session })
}

/// The length of a stream by its LTTng index: a header of four 32-bit words, the last of which is the size of
/// an entry, and an entry for each packet, which begins with the packet's offset and its size in bits.
fn indexed(folder: &Path, stream: &str) -> Option<u64> {
    const MAGIC: u32 = 0xC1F1_DCC1;
    const HEADER: usize = 16;
    let name = Path::new(stream).file_name()?.to_string_lossy();
    let path = folder.join("index").join(format!("{name}.idx"));
    let bytes = fs::metadata(&path).ok().filter(|about| about.len() <= MOST_METADATA);
    let bytes = bytes.and_then(|_| fs::read(path).ok())?;
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let size = word(12).filter(|size| word(0) == Some(MAGIC) && *size >= 16)? as usize;
    let entries = (bytes.len() - HEADER) / size;
    let last = HEADER + entries.checked_sub(1)? * size;
    long(last)?.checked_add(long(last + 8)? / 8)
}

/// Streams of LTTng that are not there: its index has them, or streams of later processors are there.
fn missing(folder: &Path, streams: &[Stream]) -> Vec<String> {
    // Others, and snapshots, number their files otherwise.
    let Ok(index) = fs::read_dir(folder.join("index")) else { return Vec::new() };
    let file = |stream: &Stream| Some(Path::new(&stream.name).file_name()?.to_string_lossy().into_owned());
    let names: BTreeSet<String> = streams.iter().filter_map(file).collect();
    let mut expected = BTreeSet::new();
    for name in index.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        expected.extend(name.strip_suffix(".idx").map(str::to_owned));
    }
    for (channel, last) in names.iter().filter_map(|name| of_processor(name)) {
        if channel.rsplit_once('_').is_none_or(|(_, number)| number.parse::<usize>().is_err()) {
            expected.extend((0..last.min(MOST_STREAMS)).map(|number| format!("{channel}_{number}")));
        }
    }
    expected.into_iter().filter(|name| !names.contains(name)).collect()
}

/// Channel and processor of a stream's file.
fn of_processor(name: &str) -> Option<(&str, usize)> {
    let (channel, number) = name.rsplit_once('_')?;
    Some((channel, number.parse().ok()?))
}

/// What the bytes of `metadata` say.
pub fn document(bytes: &[u8]) -> Result<Document, String> {
    let text = metadata::text(bytes)?;
    if fragments::begin(&text) {
        return fragments::read(&text).map_err(|why| fragments::not_understood(&why));
    }
    parse::parse(&text).map_err(|problem| {
        let line = 1 + memchr::memchr_iter(b'\n', &text[..problem.offset.min(text.len())]).count();
        format!("its TSDL cannot be understood, line {line}: {}", problem.what)
    })
}
