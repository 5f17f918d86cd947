//! Reads recordings, including truncated and damaged ones, and reports what is missing.

use super::decode::Decoder;
use super::index::{self, Index, Run};
use super::layout::{self, FLAG_END, HEADER, Header};
use super::selection::Selection;
use super::{Dropped, metadata};
use crate::damage::{Damage, Damages};
use crate::error::{Error, ErrorKind};
use crate::source::{Expected, Source, Stream};
use crate::{About, Record, Totals};
use punctual_model::Instant;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Least bytes of a stretch, and most stretches of a recording: stretches of a large recording are larger.
const STRETCH_BYTES: u64 = 256 << 10;
const MOST_STRETCHES: u64 = 16 << 10;
/// What a folder must be, to be read as a recording.
const EXPECTED: Expected =
    Expected { kind: "a recording", max_streams: 1 << 16, max_metadata: metadata::MAX_BYTES };

/// A recording, opened. Several threads may read at once.
pub struct Reader {
    folder: PathBuf,
    uuid: [u8; 16],
    pub(super) about: About,
    streams: Vec<Stream>,
    pub(super) runs: Vec<Run>,
    pub(super) selection: Selection,
    /// Of the selection.
    pub(super) totals: Totals,
    pub(super) until: Instant,
    pub(super) whole: (Instant, Instant),
    notes: Vec<String>,
    is_complete: bool,
    dropped: Dropped,
    pub(super) damages: Damages,
}

/// Some consecutive packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Activations in it, according to the packets' headers.
    pub activations: u64,
    /// Bytes of its packets.
    pub bytes: u64,
    /// Timestamp of its first event.
    pub begin: Instant,
    /// Timestamp of its last event.
    pub end: Instant,
}

impl Reader {
    /// Opens a recording and finds its packets. What is wrong with it is in [`Reader::damage`].
    pub fn open(folder: &Path) -> Result<Reader, Error> {
        let what_file =
            || "a file, and a recording is a folder; other tools' files are read by punctual import";
        Reader::new(Source::open(folder, &EXPECTED, what_file)?)
    }

    /// A recording in memory: its metadata, and the stream files by number. For tests.
    pub fn in_memory(metadata: &[u8], streams: Vec<(u64, Vec<u8>)>) -> Result<Reader, Error> {
        Reader::new(Source::in_memory(metadata, streams))
    }

    fn new(source: Source) -> Result<Reader, Error> {
        let Source { folder, metadata, streams } = source;
        let failed = |error: io::Error| Error::io("read", &folder, &error);
        let not_a_recording = |why: &str| {
            Error::new(ErrorKind::NotATrace, format!("{} is not a recording: {why}", folder.display()))
        };
        // Packets can be read without metadata; a folder that has neither is something else.
        let metadata = match metadata {
            None if streams.is_empty() => return Err(not_a_recording("it has no file named metadata")),
            metadata => metadata::read(&metadata.unwrap_or_default(), &folder)?,
        };
        let mut damages = Damages::default();
        let is_whole = metadata.damage.is_none();
        damages.extend(metadata.damage);
        let named = metadata.uuid.map(|uuid| uuid.into_bytes());
        let uuid = match named.filter(|_| is_whole) {
            Some(uuid) => uuid,
            None => index::learn_uuid(&streams).map_err(failed)?.or(named).unwrap_or_default(),
        };
        let total = streams.iter().map(|stream| stream.length).fold(0, u64::saturating_add);
        let index = Index::new(&streams, &uuid, STRETCH_BYTES.max(total / MOST_STRETCHES)).map_err(failed)?;
        if index.first.is_none() && metadata.about.source.is_empty() && !is_whole {
            let why = "nothing in it can be read; other tools' traces are read by punctual import";
            return Err(not_a_recording(why));
        }
        damages.extend(index.damages.list());
        let last = index.last.filter(|_| !index.is_cut);
        let mut reader = Reader {
            folder,
            uuid,
            about: metadata.about,
            streams,
            selection: Selection::all(index.runs.len()),
            runs: index.runs,
            totals: index.last.map_or(Totals::default(), |(last, _)| last.totals),
            until: Instant::from_ns(0),
            whole: (Instant::from_ns(0), Instant::from_ns(0)),
            notes: Vec::new(),
            is_complete: last.is_some_and(|(last, _)| last.flags & FLAG_END != 0),
            dropped: Dropped::default(),
            damages,
        };
        reader.bounds(index.first, index.last)?;
        reader.whole = (reader.about.from, reader.until);
        if !reader.is_complete && !index.is_cut {
            reader.unfinished();
        }
        Ok(reader)
    }

    /// Determines when the recording begins and ends.
    fn bounds(&mut self, first: Option<Header>, last: Option<(Header, Run)>) -> Result<(), Error> {
        let (Some(first), Some((last, run))) = (first, last) else {
            self.until = self.about.from;
            return Ok(());
        };
        if self.streams.first().is_some_and(|stream| stream.number > 0) {
            self.dropped = Dropped { packets: first.sequence, activations: first.activations_before };
        }
        // If earlier packets were deleted, or the metadata do not say it, it begins with the first packet.
        if self.dropped.packets > 0 || self.about.from == Instant::from_ns(0) {
            self.about.from = self.about.from.max(Instant::from_ns(first.begin_ns));
        }
        // Damage of that packet is reported when it is read.
        let reached = Reached { packets: last.sequence, end_ns: last.begin_ns };
        let ending = self.read_run(&run, reached, &mut Damages::default(), &mut |_, _| {})?;
        self.notes = ending.notes;
        self.until = Instant::from_ns(ending.until_ns.unwrap_or(last.end_ns)).max(self.about.from);
        Ok(())
    }

    fn unfinished(&mut self) {
        let (name, offset) = match self.streams.last() {
            Some(stream) => (stream.name.clone(), stream.length),
            None => ("stream_0".to_owned(), 0),
        };
        let what = "the recording was cut off here: it was not ended, so there may have been more that did \
            not get to the disk";
        self.damages.push(Damage::new(name, offset, what));
    }

    /// Describes the recording as a whole. If earlier packets were deleted, it starts with the first packet
    /// that is left.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Counts over the recording.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// When the observation ended, as far as is known.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Whether the recording is complete to its end.
    pub fn complete(&self) -> bool {
        self.is_complete
    }

    /// What was deleted to stay within a limit.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// What is to be known of the recording as a whole.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Damage that was found when it was opened.
    pub fn damage(&self) -> Vec<Damage> {
        self.damages.list()
    }

    /// Number of stretches.
    pub fn stretches(&self) -> usize {
        self.selection.runs.len()
    }

    /// Describes a stretch. After [`Reader::select`], the first and the last also count what the selection
    /// leaves out.
    ///
    /// # Panics
    ///
    /// If there is no such stretch.
    pub fn stretch(&self, index: usize) -> Stretch {
        let Run { bytes, activations, begin_ns, end_ns, .. } = self.runs[self.selection.runs.clone()][index];
        Stretch { activations, bytes, begin: Instant::from_ns(begin_ns), end: Instant::from_ns(end_ns) }
    }

    /// Reads the records of these stretches in order. Damaged packets are left out and reported.
    ///
    /// # Panics
    ///
    /// If there are fewer stretches.
    pub fn read(&self, stretches: Range<usize>, each: &mut dyn FnMut(&Record)) -> Result<Vec<Damage>, Error> {
        let mut damages = Damages::default();
        if stretches.contains(&0) {
            self.selection.known.iter().for_each(&mut *each);
        }
        let stamps_ns = &self.selection.stamps_ns;
        for index in self.selection.runs.clone().skip(stretches.start).take(stretches.len()) {
            self.read_run(&self.runs[index], self.reached(index), &mut damages, &mut |at_ns, record| {
                if stamps_ns.contains(&at_ns) {
                    each(record);
                }
            })?;
        }
        Ok(damages.into_list())
    }

    /// How far it has been read before a run.
    pub(super) fn reached(&self, run: usize) -> Reached {
        match run.checked_sub(1).map(|before| &self.runs[before]) {
            Some(before) => Reached { packets: before.packets, end_ns: before.end_ns },
            None => Reached { packets: self.dropped.packets, end_ns: self.about.from.ns() },
        }
    }

    /// Reads the records of a run, with their events' timestamps, and returns what ends the recording,
    /// if it ends here. Where packets are missing or damaged, a record says so.
    pub(super) fn read_run(
        &self,
        run: &Run,
        mut reached: Reached,
        damages: &mut Damages,
        each: &mut impl FnMut(u64, &Record),
    ) -> Result<Ending, Error> {
        let stream = &self.streams[run.file];
        let failed = |error: io::Error| Error::io("read", &self.folder.join(&stream.name), &error);
        let file = stream.open().map_err(failed)?;
        let mut decoder = Decoder::default();
        let mut bytes = Vec::new();
        let (mut offset, end) = (run.offset, run.offset + run.bytes);
        while offset < end {
            let mut head = [0; HEADER];
            file.read(offset, &mut head).map_err(failed)?;
            let Some(header) =
                Header::parse(&head, &self.uuid).filter(|header| offset + header.bytes as u64 <= end)
            else {
                damages.push(Damage::new(
                    &stream.name,
                    offset,
                    "the file has changed since it was opened; what follows is left out",
                ));
                return Ok(Ending::default());
            };
            bytes.resize(header.bytes, 0);
            file.read(offset, &mut bytes).map_err(failed)?;
            if let Some(damage) = packet_damage(&stream.name, offset, &header, &bytes) {
                damages.push(damage);
            } else {
                if let Some(lost) = reached.lost_before(header.sequence, header.begin_ns) {
                    each(header.begin_ns, &lost);
                }
                match decoder.packet(&bytes, header.begin_ns, each) {
                    Ok(()) => reached = Reached::behind(header.sequence, header.end_ns),
                    Err(nonsense) => {
                        let what = format!(
                            "{} (written by a newer Punctual?); the rest of this packet is left out",
                            nonsense.what
                        );
                        damages.push(Damage::new(&stream.name, offset + nonsense.offset as u64, what));
                    }
                }
            }
            offset += header.bytes as u64;
        }
        if let Some(lost) = reached.lost_before(run.packets, run.end_ns) {
            each(run.end_ns, &lost);
        }
        Ok(Ending { until_ns: decoder.until_ns, notes: decoder.notes })
    }
}

/// What the end of a recording tells.
#[derive(Default)]
pub(super) struct Ending {
    until_ns: Option<u64>,
    notes: Vec<String>,
}

/// How far a recording has been read without a gap.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    /// Packets since its beginning.
    packets: u64,
    end_ns: u64,
}

impl Reached {
    fn behind(packet: u64, end_ns: u64) -> Reached {
        Reached { packets: packet.wrapping_add(1), end_ns }
    }

    /// What is missing before the packet with this number, if anything.
    fn lost_before(self, packet: u64, begin_ns: u64) -> Option<Record> {
        let (since, until) = (Instant::from_ns(self.end_ns), Instant::from_ns(begin_ns));
        (self.packets != packet).then_some(Record::Lost { since, until })
    }
}

/// What is wrong with a packet whose checksum does not match.
fn packet_damage(name: &str, offset: u64, header: &Header, packet: &[u8]) -> Option<Damage> {
    let end = offset + header.bytes as u64;
    let what = format!(
        "damaged: the packet's checksum does not match; packet {} (bytes {offset} to {end}) is left out: {} \
         activations",
        header.sequence, header.activations
    );
    (!layout::is_whole(packet)).then(|| Damage::new(name, offset, what).with_activations(header.activations))
}
