//! Makes a recording: collects records in packets, and passes packets to the writing thread.

use super::encode::own_ns;
use super::files::{self, Writer, Written};
use super::layout::{FLAG_END, HEADER, Header, MOST_NOTES, MOST_PACKET};
use super::packet::Packet;
use super::{MIN_LIMIT, Options, Recorded, metadata};
use crate::error::{Error, ErrorKind};
use crate::{About, Record, Roster, Totals};
use punctual_model::Instant;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as WallInstant};
use uuid::Uuid;

/// Packets that may wait for the disk before the recorder must wait.
const WAITING: usize = 64;
/// Age at which a packet is closed.
const AGE: Duration = Duration::from_secs(1);
/// Files of a recording with a limit; the oldest is deleted at a time.
const FILES: u64 = 16;
const LEAST_FILE: u64 = 256 << 10;
/// The state of all threads is repeated after this many times its size, so that it takes some percent.
const KNOWN_SHARE: u64 = 40;
const PACKET_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=MOST_PACKET;

/// A recording in progress. If it is dropped without [`Recorder::finish`], the recording is truncated after
/// what was recorded.
pub struct Recorder {
    uuid: [u8; 16],
    packet: Packet,
    packet_bytes: usize,
    /// When the packet's first event was added.
    opened: Option<WallInstant>,
    /// Timestamp of the last event.
    last_ns: u64,
    /// Packets and activations closed so far.
    sequence: u64,
    activations: u64,
    totals: Totals,
    notes: Vec<String>,
    roster: Roster,
    /// Bytes until the threads are repeated.
    until_known: u64,
    /// With a limit, most bytes of a file; and bytes of this one so far.
    file_most: Option<u64>,
    file_bytes: u64,
    begins_file: bool,
    /// Until it ends, or fails.
    writer: Option<Running>,
    failure: Option<Error>,
}

/// The writing thread.
struct Running {
    full: SyncSender<files::Packet>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<Result<Written, Error>>,
}

impl Recorder {
    /// Begins a recording in this folder, which must be new or empty; its parent must exist.
    pub fn create(folder: &Path, about: &About, options: &Options) -> Result<Recorder, Error> {
        if let Some(limit) = options.limit.filter(|limit| *limit < MIN_LIMIT) {
            let message = format!(
                "a recording cannot be held within {limit} bytes; the least limit is {MIN_LIMIT} bytes \
                    (1 MiB)"
            );
            return Err(Error::new(ErrorKind::Options, message));
        }
        let uuid = Uuid::new_v4();
        let metadata = metadata::write(about, uuid);
        files::create(folder, &metadata)?;
        let writer = Writer::new(folder, options.limit, metadata.len() as u64);
        let (full, packets) = sync_channel(WAITING);
        let (emptied, empty) = channel();
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.run(&packets, &emptied))
            .map_err(|error| Error::io("start the thread that writes to", folder, &error))?;
        let file_most = options.limit.map(|limit| (limit / FILES).max(LEAST_FILE));
        let packet_most =
            file_most.map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
        Ok(Recorder {
            uuid: uuid.into_bytes(),
            packet: Packet::new(Vec::new()),
            packet_bytes: options
                .packet_bytes
                .clamp(*PACKET_BYTES.start(), *PACKET_BYTES.end())
                .min(packet_most),
            opened: None,
            last_ns: about.from.ns(),
            sequence: 0,
            activations: 0,
            totals: Totals::default(),
            notes: Vec::new(),
            roster: Roster::new(),
            until_known: 0,
            file_most,
            file_bytes: 0,
            begins_file: true,
            writer: Some(Running { full, empty, thread }),
            failure: None,
        })
    }

    /// Adds a record. Waits only if 64 packets are waiting for the disk. Fails once writing has failed.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        let at_ns = own_ns(record).map_or(self.last_ns, |own_ns| own_ns.max(self.last_ns));
        if self.packet.is_empty() || !self.packet.has_room(record, at_ns, self.packet_bytes) {
            self.next_packet(at_ns)?;
        }
        self.add(record, at_ns);
        self.roster.record(record);
        Ok(())
    }

    /// Sets the counts since the start of the observation, for the packets from here on.
    pub fn totals(&mut self, totals: Totals) {
        self.totals = totals;
    }

    /// Adds something to be known of the recording as a whole.
    pub fn note(&mut self, text: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(text);
        }
    }

    /// Closes the packet if it is a second old, so that its records get to the disk. Call this a few times a
    /// second.
    pub fn tick(&mut self) -> Result<(), Error> {
        match self.opened {
            Some(opened) if opened.elapsed() >= AGE => self.close(0),
            _ => self.failure.clone().map_or(Ok(()), Err),
        }
    }

    /// Ends the recording, and waits until all of it is on disk.
    pub fn finish(mut self, until: Instant, totals: Totals) -> Result<Recorded, Error> {
        self.totals = totals;
        let at_ns = self.last_ns.max(until.ns());
        if !self.packet.is_empty() && at_ns - self.packet.end_ns >= 1 << 32 {
            self.close(0)?;
        }
        self.packet.add_end(&self.notes, until.ns(), at_ns);
        self.close(FLAG_END)?;
        match self.wait() {
            Some(written) => {
                let Written { bytes, packets, activations, dropped } = written?;
                Ok(Recorded { bytes, packets, activations, dropped })
            }
            None => Err(self.failed()),
        }
    }

    /// Closes the packet if there is one, and begins the next, with the state of all threads if it is time
    /// for that.
    fn next_packet(&mut self, at_ns: u64) -> Result<(), Error> {
        self.close(0)?;
        if self.until_known == 0 {
            let before = self.packet.bytes.len();
            let mut written = 0;
            for known in self.roster.known(Instant::from_ns(at_ns)) {
                if !self.packet.is_empty() && !self.packet.has_room(&known, at_ns, self.packet_bytes) {
                    written += self.packet.bytes.len();
                    // Not `close`: a new file would begin with all threads again.
                    self.send(0)?;
                }
                self.add(&known, at_ns);
            }
            self.until_known =
                KNOWN_SHARE * (written + self.packet.bytes.len()).saturating_sub(before) as u64;
        }
        Ok(())
    }

    fn add(&mut self, record: &Record, at_ns: u64) {
        if self.packet.is_empty() {
            self.opened = Some(WallInstant::now());
        }
        self.packet.add(record, at_ns);
        self.last_ns = at_ns;
    }

    /// Sends the packet to be written, unless it is empty. If the file is full, the next packet begins
    /// another.
    fn close(&mut self, flags: u32) -> Result<(), Error> {
        let bytes = self.packet.bytes.len() as u64;
        self.send(flags)?;
        self.until_known = self.until_known.saturating_sub(bytes);
        if self.file_most.is_some_and(|most| self.file_bytes + self.packet_bytes as u64 > most) {
            self.begins_file = true;
            self.until_known = 0;
            self.file_bytes = 0;
        }
        Ok(())
    }

    fn send(&mut self, flags: u32) -> Result<(), Error> {
        if self.packet.is_empty() {
            return self.failure.clone().map_or(Ok(()), Err);
        }
        let bytes = self.packet.bytes.len();
        let header = Header {
            begin_ns: self.packet.begin_ns,
            end_ns: self.packet.end_ns,
            bytes,
            sequence: self.sequence,
            totals: self.totals,
            activations: self.packet.activations,
            activations_before: self.activations,
            flags,
            crc: 0,
        };
        if let Some(place) = self.packet.bytes.first_chunk_mut::<HEADER>() {
            header.write(&self.uuid, place);
        }
        self.sequence += 1;
        self.activations += header.activations;
        self.file_bytes += bytes as u64;
        let begins_file = std::mem::take(&mut self.begins_file);
        self.opened = None;
        let activations = header.activations;
        let sent = self.writer.as_ref().is_some_and(|writer| {
            let next = writer.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(self.packet_bytes));
            let bytes = std::mem::replace(&mut self.packet.bytes, next);
            writer.full.send(files::Packet { bytes, activations, begins_file }).is_ok()
        });
        self.packet.clear();
        if sent { Ok(()) } else { Err(self.failed()) }
    }

    /// Waits for the writing thread to end; `None` if it already has.
    fn wait(&mut self) -> Option<Result<Written, Error>> {
        let Running { full, thread, .. } = self.writer.take()?;
        drop(full);
        Some(thread.join().unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Io, "the thread that writes the recording has panicked"))
        }))
    }

    /// Why the writing thread has ended.
    fn failed(&mut self) -> Error {
        if let Some(Err(error)) = self.wait() {
            self.failure = Some(error);
        }
        self.failure.clone().unwrap_or_else(|| Error::new(ErrorKind::Io, "the recording has ended"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // Whoever drops it has an error of their own to report.
            let _ = self.close(0);
            let _ = self.wait();
        }
    }
}
