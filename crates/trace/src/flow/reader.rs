//! Reads flow traces, also those that were cut off or damaged: whatever is whole of them, and what is
//! missing.

use super::header::{HEADER, Header};
use super::merge::{Clock, Merge};
use super::stream::{Cursor, Found};
use super::{About, ByteOrder, Item, metadata};
use crate::damage::{Damage, Damages};
use crate::error::{Error, ErrorKind};
use crate::source::{Bytes, Expected, Source, Stream};
use crate::tsdl::METADATA;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a folder must be, to be read as a flow trace. Each producer has a stream.
const EXPECTED: Expected =
    Expected { kind: "a trace of a dataflow program", max_streams: 4_096, max_metadata: metadata::MAX_BYTES };
/// Bytes that all streams together may keep in memory, and one.
const MOST_WINDOWS: usize = 64 << 20;
const MOST_WINDOW: usize = 256 << 10;

/// A flow trace that is read, as often as wanted.
pub struct Reader {
    folder: PathBuf,
    about: About,
    streams: Vec<Stream>,
    packet_bytes: usize,
    damages: Vec<Damage>,
}

/// What was found in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events that were given.
    pub events: u64,
    /// Events that the tracer discarded.
    pub discarded: u64,
    /// Packets that are missing.
    pub missing_packets: u64,
    /// Packets that are there, but damaged, wholly or in part.
    pub damaged_packets: u64,
    /// What is damaged, one by one as far as it is not too much.
    pub damages: Vec<Damage>,
}

impl Reader {
    /// Opens a trace.
    pub fn open(folder: &Path) -> Result<Reader, Error> {
        Reader::new(Source::open(folder, &EXPECTED, || what_file(folder))?)
    }

    /// A trace in memory: its metadata, and the streams by number. For tests.
    pub fn in_memory(metadata: &[u8], streams: Vec<(u64, Vec<u8>)>) -> Result<Reader, Error> {
        Reader::new(Source::in_memory(metadata, streams))
    }

    fn new(source: Source) -> Result<Reader, Error> {
        let Source { folder, metadata: text, mut streams } = source;
        let Some(text) = text else {
            let message =
                format!("{} is not {}: it has no file named metadata", folder.display(), EXPECTED.kind);
            return Err(Error::new(ErrorKind::NotATrace, message));
        };
        let metadata = metadata::read(&text, &folder)?;
        let mut damages = Damages::default();
        damages.extend(metadata.damage);
        let failed = |error: io::Error| Error::io("read", &folder, &error);
        let first = first_packet(&streams).map_err(failed)?;
        let mut about = metadata.about;
        if let Some((order, _)) = first.filter(|(order, _)| *order != about.byte_order) {
            if metadata.names_order {
                let what = "it names a byte order that the packets do not have; they are read as they are";
                damages.push(Damage::new(METADATA, 0, what));
            }
            about.byte_order = order;
        }
        if first.is_none() && streams.iter().any(|stream| stream.length > 0) {
            let lengths = streams.iter().filter(|stream| stream.length > 0);
            let what = "there is no whole packet in the file";
            damages.extend(lengths.map(|stream| Damage::new(&stream.name, 0, what)));
            streams.clear();
        }
        let packet_bytes = first.map_or(super::header::LEAST_PACKET, |(_, bytes)| bytes);
        Ok(Reader { folder, about, streams, packet_bytes, damages: damages.into_list() })
    }

    /// What is true of the trace as a whole.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Bytes of all streams together.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.length).sum()
    }

    /// How many producers have a stream.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Gives all events and gaps, in the order of causes, and now and then tells how many bytes it has read.
    pub fn read(
        &self,
        each: &mut (impl FnMut(Item) + ?Sized),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Totals, Error> {
        let failed = |index: usize, error: io::Error| {
            Error::io("read", &self.folder.join(&self.streams[index].name), &error)
        };
        let window = (MOST_WINDOWS / self.streams.len().max(1)).min(MOST_WINDOW);
        let open = |(index, stream): (usize, _)| {
            Cursor::new(stream, self.about.byte_order, self.packet_bytes, window)
                .map_err(|error| failed(index, error))
        };
        let mut cursors = self.streams.iter().enumerate().map(open).collect::<Result<Vec<_>, Error>>()?;
        let clock = Clock { frequency: self.about.frequency };
        // Others have no notes, and may have such a channel.
        let has_notes = !self.about.barriers.is_empty() || self.about.has_told_takes;
        let mut merge = Merge::new(clock, has_notes);
        merge.run(&mut cursors, each, progress).map_err(|(index, error)| failed(index, error))?;
        let mut totals = Totals::default();
        let mut damages = Damages::default();
        damages.extend(self.damages.iter().cloned());
        for cursor in cursors {
            let Found { events, discarded, missing_packets, damaged_packets } = cursor.found;
            totals.events += events;
            totals.discarded += discarded;
            totals.missing_packets += missing_packets;
            totals.damaged_packets += damaged_packets;
            damages.extend(cursor.damages.into_list());
        }
        totals.events -= merge.parts;
        totals.discarded = self.about.discarded.unwrap_or(totals.discarded);
        totals.damages = damages.into_list();
        Ok(totals)
    }
}

/// Byte order and size of the packets: as the first one says behind which there is another of the same size,
/// or the end of the file.
fn first_packet(streams: &[Stream]) -> io::Result<Option<(ByteOrder, usize)>> {
    let mut unconfirmed = None;
    for stream in streams {
        match packet_at(stream, &stream.open()?, 0)? {
            Some((found, true)) => return Ok(Some(found)),
            found => unconfirmed = unconfirmed.or(found.map(|(found, _)| found)),
        }
    }
    // Damaged at the begin of every file: some packet will be whole. Packets are made of 8-byte words, at
    // multiples of their size.
    for stream in streams {
        let bytes = stream.open()?;
        let mut chunk = vec![0; usize::try_from(stream.length).unwrap_or(usize::MAX).min(1 << 20)];
        let mut offset = 0;
        while offset < stream.length {
            let length = chunk.len().min(usize::try_from(stream.length - offset).unwrap_or(usize::MAX));
            bytes.read(offset, &mut chunk[..length])?;
            for (index, word) in chunk[..length].chunks_exact(8).enumerate() {
                if ByteOrder::of_packet(word).is_some() {
                    match packet_at(stream, &bytes, offset + 8 * index as u64)? {
                        Some((found, true)) => return Ok(Some(found)),
                        found => unconfirmed = unconfirmed.or(found.map(|(found, _)| found)),
                    }
                }
            }
            offset += length as u64;
        }
    }
    Ok(unconfirmed)
}

/// Byte order and size of the packet there, if there can be one, and whether what is behind it says the same.
fn packet_at(
    stream: &Stream,
    file: &Bytes<'_>,
    offset: u64,
) -> io::Result<Option<((ByteOrder, usize), bool)>> {
    let Some((order, size)) = header_at(stream, file, offset)? else { return Ok(None) };
    let behind = offset + size as u64;
    let is_confirmed = behind == stream.length || header_at(stream, file, behind)? == Some((order, size));
    Ok((offset % size as u64 == 0).then_some(((order, size), is_confirmed)))
}

fn header_at(stream: &Stream, file: &Bytes<'_>, offset: u64) -> io::Result<Option<(ByteOrder, usize)>> {
    let mut bytes = [0; HEADER];
    if offset + HEADER as u64 > stream.length {
        return Ok(None);
    }
    file.read(offset, &mut bytes)?;
    let Some(order) = ByteOrder::of_packet(&bytes) else { return Ok(None) };
    Ok(Header::parse(&bytes, order).map(|header| (order, header.packet_bytes)))
}

/// What a file is that was given in place of a folder, by how it begins.
fn what_file(path: &Path) -> &'static str {
    let mut begin = [0; 256];
    let length = fs::File::open(path).and_then(|mut file| io::Read::read(&mut file, &mut begin)).unwrap_or(0);
    match begin[..length].trim_ascii_start() {
        [b'{', ..] => "a file of JSON; a timing model is shown by punctual show",
        _ => "a file, and a trace is a folder",
    }
}
