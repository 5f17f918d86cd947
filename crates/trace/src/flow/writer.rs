//! Writes flow traces: packets of one size, in one file for each producer.

use super::event::NOTES;
use super::header::{EVENT, HEADER, Header, LEAST_PACKET, MOST_PACKET, Raw};
use super::notes::{self, Note};
use super::{About, ByteOrder, Kind, NUMBERS, metadata as tsdl};
use crate::error::{Error, ErrorKind};
use crate::source::create_folder;
use crate::tsdl::METADATA;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The text of `metadata` for a trace.
pub fn metadata(about: &About) -> String {
    tsdl::write(about)
}

/// A trace that is written. Events of a producer must come in order; a packet is on the disk when it is full,
/// or with [`Writer::flush`].
pub struct Writer {
    folder: PathBuf,
    order: ByteOrder,
    packet_bytes: usize,
    producers: Vec<Producer>,
}

struct Producer {
    file: File,
    packet: Vec<u8>,
    begin: u64,
    end: u64,
    /// Of the packet that is being filled, which is also its place in the file.
    sequence: u32,
    /// Packets before it in the file.
    position: u64,
    discarded: u32,
    /// Whether the file has less of it than there is.
    is_dirty: bool,
}

impl Producer {
    fn has_events(&self) -> bool {
        self.packet.len() > HEADER
    }
}

impl Writer {
    /// Makes the folder, which must not exist or be empty, with a stream for each producer. A packet has
    /// `packet_bytes`: 56 to 16 Mi.
    pub fn create(
        folder: &Path,
        about: &About,
        producers: usize,
        packet_bytes: usize,
    ) -> Result<Writer, Error> {
        if !(LEAST_PACKET..=MOST_PACKET).contains(&packet_bytes) || (packet_bytes - HEADER) % EVENT != 0 {
            let message = format!(
                "packets of {packet_bytes} bytes are none: {HEADER} bytes and at least one event of {EVENT}"
            );
            return Err(Error::new(ErrorKind::Options, message));
        }
        create_folder(folder)?;
        let path = folder.join(METADATA);
        let write = || File::create_new(&path)?.write_all(tsdl::write(about).as_bytes());
        write().map_err(|error| Error::io("write", &path, &error))?;
        let mut writer = Writer {
            folder: folder.to_owned(),
            order: about.byte_order,
            packet_bytes,
            producers: Vec::new(),
        };
        for _ in 0..producers {
            writer.add_producer()?;
        }
        Ok(writer)
    }

    /// A stream for one more producer; its number.
    pub fn add_producer(&mut self) -> Result<usize, Error> {
        let number = self.producers.len();
        let path = self.folder.join(format!("stream_{number}"));
        let file = File::create_new(&path).map_err(|error| Error::io("write", &path, &error))?;
        let packet = Vec::with_capacity(self.packet_bytes);
        self.producers.push(Producer {
            file,
            packet,
            begin: 0,
            end: 0,
            sequence: 0,
            position: 0,
            discarded: 0,
            is_dirty: false,
        });
        Ok(number)
    }

    /// Says anew what is true of the whole trace: who writes from outside comes to know names one by one. The
    /// byte order stays.
    pub fn describe(&self, about: &About) -> Result<(), Error> {
        let about = About { byte_order: self.order, ..about.clone() };
        let (path, new) = (self.folder.join(METADATA), self.folder.join("metadata.new"));
        let write = || {
            fs::write(&new, tsdl::write(&about))?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| Error::io("write", &path, &error))
    }

    /// Writes an event; `tick` is of the trace's clock and never less than that of the producer's event
    /// before it.
    ///
    /// # Panics
    ///
    /// If there is no such producer.
    pub fn event(
        &mut self,
        producer: usize,
        tick: u64,
        kind: Kind,
        object: u16,
        number: u64,
    ) -> Result<(), Error> {
        let this = &self.producers[producer];
        if tick < this.end {
            let message =
                format!("producer {producer}: an event at {tick} cannot follow one at {}", this.end);
            return Err(Error::new(ErrorKind::Options, message));
        }
        let is_full = this.packet.len() + EVENT > self.packet_bytes;
        if this.has_events() && (is_full || tick - this.begin > u64::from(u32::MAX)) {
            self.close(producer)?;
        }
        let this = &mut self.producers[producer];
        if !this.has_events() {
            this.packet.resize(HEADER, 0);
            this.begin = tick;
        }
        let raw = Raw { low: tick as u32, kind, number: (number % NUMBERS) as u16, object };
        this.packet.extend(raw.to_bytes(self.order));
        this.end = tick;
        this.is_dirty = true;
        Ok(())
    }

    /// Says that a barrier's count is another from here on.
    ///
    /// # Panics
    ///
    /// If there is no such producer.
    pub fn count(&mut self, producer: usize, tick: u64, channel: u16, count: u32) -> Result<(), Error> {
        self.note(producer, tick, Note::Count { channel, count })
    }

    /// Says which push the producer's next activation takes; `None` is one that is not known.
    ///
    /// # Panics
    ///
    /// If there is no such producer.
    pub fn take(
        &mut self,
        producer: usize,
        tick: u64,
        channel: u16,
        number: Option<u64>,
    ) -> Result<(), Error> {
        self.note(producer, tick, Note::Take { channel, number: number.map(|number| number as u32) })
    }

    fn note(&mut self, producer: usize, tick: u64, note: Note) -> Result<(), Error> {
        let mut parts = notes::numbers(note).into_iter();
        parts.try_for_each(|number| self.event(producer, tick, Kind::Push, NOTES, number))
    }

    /// Counts events for which there was no room: they belong behind all that were written.
    ///
    /// # Panics
    ///
    /// If there is no such producer.
    pub fn discard(&mut self, producer: usize, events: u32) -> Result<(), Error> {
        if self.producers[producer].has_events() {
            self.close(producer)?;
        }
        let this = &mut self.producers[producer];
        this.discarded = this.discarded.wrapping_add(events);
        this.is_dirty |= events > 0;
        Ok(())
    }

    /// Says that a packet is missing behind all that was written, as its number shows.
    ///
    /// # Panics
    ///
    /// If there is no such producer.
    pub fn skip_packet(&mut self, producer: usize) -> Result<(), Error> {
        if self.producers[producer].has_events() {
            self.close(producer)?;
        }
        let this = &mut self.producers[producer];
        this.sequence = this.sequence.wrapping_add(1);
        this.is_dirty = true;
        Ok(())
    }

    /// Writes what the packets hold that are being filled; they are written over when there is more.
    pub fn flush(&mut self) -> Result<(), Error> {
        for producer in 0..self.producers.len() {
            if self.producers[producer].is_dirty {
                self.put(producer)?;
            }
        }
        Ok(())
    }

    /// Ends the trace.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }

    fn close(&mut self, producer: usize) -> Result<(), Error> {
        self.put(producer)?;
        let this = &mut self.producers[producer];
        this.packet.clear();
        this.sequence = this.sequence.wrapping_add(1);
        this.position += 1;
        Ok(())
    }

    fn put(&mut self, producer: usize) -> Result<(), Error> {
        let this = &mut self.producers[producer];
        // One without events tells only what was discarded.
        let begin = if this.has_events() { this.begin } else { this.end };
        this.packet.resize(this.packet.len().max(HEADER), 0);
        let header = Header {
            begin,
            end: this.end,
            content_bytes: this.packet.len(),
            packet_bytes: self.packet_bytes,
            sequence: this.sequence,
            discarded: this.discarded,
            producer: producer as u32,
        };
        this.packet[..HEADER].copy_from_slice(&header.to_bytes(self.order));
        let content = this.packet.len();
        this.packet.resize(self.packet_bytes, 0);
        let written = this.file.write_all_at(&this.packet, this.position * self.packet_bytes as u64);
        this.packet.truncate(content);
        this.is_dirty = false;
        written.map_err(|error| Error::io("write", &self.folder.join(format!("stream_{producer}")), &error))
    }
}
