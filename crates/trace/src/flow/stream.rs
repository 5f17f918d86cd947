//! One producer's stream, packet by packet: its events in order, and where some are missing.

use super::ByteOrder;
use super::header::{EVENT, HEADER, Header, Raw};
use super::merge::Stream as _;
use crate::damage::{Damage, Damages};
use crate::source::{Bytes, Stream};
use std::io;

/// What comes next in a stream, in ticks.
#[derive(Clone, Copy, Debug)]
pub enum Head {
    Event { tick: u64, raw: Raw },
    Gap { from: u64, until: u64, discarded: u64, packets: u64 },
    End,
}

/// What was found in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub events: u64,
    pub discarded: u64,
    pub missing_packets: u64,
    pub damaged_packets: u64,
}

/// A stream as it is read.
pub struct Cursor<'a> {
    stream: &'a Stream,
    bytes: Bytes<'a>,
    order: ByteOrder,
    packet_bytes: usize,
    /// A part of the file, as many packets at a time as go into it, and where it begins.
    window: Vec<u8>,
    window_at: u64,
    window_most: usize,
    /// Where the next packet is.
    offset: u64,
    /// Of the packet that is being read: its events in the window, and ticks of its first and of its last
    /// event.
    position: usize,
    position_end: usize,
    begin: u64,
    end: u64,
    /// The last event that was given.
    last: u64,
    /// Of the last packet that was taken.
    taken: Option<Header>,
    /// Packets that were left out since, or a part of one.
    left_out: u64,
    head: Head,
    pub found: Found,
    pub damages: Damages,
}

impl<'a> Cursor<'a> {
    /// `window` is how many bytes it may keep.
    pub fn new(
        stream: &'a Stream,
        order: ByteOrder,
        packet_bytes: usize,
        window: usize,
    ) -> io::Result<Cursor<'a>> {
        let mut cursor = Cursor {
            stream,
            bytes: stream.open()?,
            order,
            packet_bytes,
            window: Vec::new(),
            window_at: 0,
            window_most: (window / packet_bytes).max(1) * packet_bytes,
            offset: 0,
            position: 0,
            position_end: 0,
            begin: 0,
            end: 0,
            last: 0,
            taken: None,
            left_out: 0,
            head: Head::End,
            found: Found::default(),
            damages: Damages::default(),
        };
        cursor.advance()?;
        Ok(cursor)
    }

    #[cold]
    fn out_of_order(&mut self) {
        let at = self.window_at + self.position as u64;
        let left = (self.position_end - self.position) / EVENT;
        let what = format!(
            "an event's time does not fit those around it; {left} events to the end of the packet are \
                left out"
        );
        self.damages.push(Damage::new(&self.stream.name, at, what));
        self.found.damaged_packets += 1;
        self.left_out += 1;
        self.position = self.position_end;
    }

    #[cold]
    fn next_packet(&mut self) -> io::Result<()> {
        let size = self.packet_bytes as u64;
        while self.offset + size <= self.stream.length {
            let at = self.offset;
            let header =
                self.header_at(at)?.filter(|header| self.taken.is_none_or(|taken| follows(&taken, header)));
            self.offset += size;
            match header {
                Some(header) if !self.is_outlier(&header)? => return self.take(header, at),
                _ => self.damaged(at),
            }
        }
        self.at_end();
        Ok(())
    }

    fn damaged(&mut self, at: u64) {
        let what = "this packet is damaged and left out: its header does not make sense, or does not fit \
            the packets around it";
        self.damages.push(Damage::new(&self.stream.name, at, what));
        self.found.damaged_packets += 1;
        self.left_out += 1;
    }

    /// Whether this packet, which could follow the one before, would shut out those behind it: then it is the
    /// wrong one.
    fn is_outlier(&mut self, header: &Header) -> io::Result<bool> {
        let Some(next) = self.header_at(self.offset)? else { return Ok(false) };
        if follows(header, &next) || self.taken.is_some_and(|taken| !follows(&taken, &next)) {
            return Ok(false);
        }
        let behind = self.header_at(self.offset + self.packet_bytes as u64)?;
        Ok(!behind.is_some_and(|behind| follows(header, &behind)))
    }

    /// The header of the packet there, if there is one of the right size.
    fn header_at(&mut self, offset: u64) -> io::Result<Option<Header>> {
        if offset + self.packet_bytes as u64 > self.stream.length {
            return Ok(None);
        }
        let in_window = offset
            .checked_sub(self.window_at)
            .and_then(|at| self.window.get(usize::try_from(at).ok()?..)?.first_chunk());
        let bytes = match in_window {
            Some(bytes) => *bytes,
            None => {
                let mut bytes = [0; HEADER];
                self.bytes.read(offset, &mut bytes)?;
                bytes
            }
        };
        Ok(Header::parse(&bytes, self.order).filter(|header| header.packet_bytes == self.packet_bytes))
    }

    /// Makes the packet the one that is read. A gap before it comes first.
    fn take(&mut self, header: Header, at: u64) -> io::Result<()> {
        let window_end = self.window_at + self.window.len() as u64;
        if at < self.window_at || at + self.packet_bytes as u64 > window_end {
            let left = usize::try_from(self.stream.length - at).unwrap_or(usize::MAX);
            let length = self.window_most.min(left / self.packet_bytes * self.packet_bytes);
            self.window.resize(length, 0);
            self.window_at = at;
            self.bytes.read(at, &mut self.window)?;
        }
        let begins = (at - self.window_at) as usize;
        (self.position, self.position_end) = (begins + HEADER, begins + header.content_bytes);
        let discarded =
            u64::from(header.discarded.wrapping_sub(self.taken.map_or(0, |taken| taken.discarded)));
        let expected = self.taken.map_or(0, |taken| taken.sequence.wrapping_add(1));
        let packets = u64::from(header.sequence.wrapping_sub(expected)).max(self.left_out);
        self.found.discarded += discarded;
        self.found.missing_packets += packets.saturating_sub(self.left_out);
        let from = self.last;
        self.left_out = 0;
        // One without events says nothing of time.
        if header.content_bytes > HEADER {
            (self.begin, self.end) = (header.begin, header.end);
            self.taken = Some(header);
            self.last = header.begin;
        } else {
            let (begin, end) = self.taken.map_or((0, 0), |taken| (taken.begin, taken.end));
            self.taken = Some(Header { begin, end, ..header });
        }
        if discarded > 0 || packets > 0 {
            // Behind a packet without events, those that are missing reach to the next one with some.
            let until = if header.content_bytes > HEADER { header.begin } else { self.next_begin()? };
            self.head = Head::Gap { from, until, discarded, packets };
            return Ok(());
        }
        self.advance()
    }

    fn next_begin(&mut self) -> io::Result<u64> {
        let next = self.header_at(self.offset)?.filter(|header| header.content_bytes > HEADER);
        Ok(next.map_or(u64::MAX, |header| header.begin))
    }

    /// Behind the last packet. What was left out there, or of a file that was cut off, is missing to the end.
    fn at_end(&mut self) {
        let cut = self.stream.length - self.offset.min(self.stream.length);
        if cut > 0 {
            let what = format!(
                "the file was cut off here, in the middle of a packet; its last {cut} bytes are left out"
            );
            self.damages.push(Damage::new(&self.stream.name, self.offset, what));
            self.left_out += 1;
            self.found.missing_packets += 1;
            self.offset = self.stream.length;
        }
        self.head = match std::mem::take(&mut self.left_out) {
            0 => Head::End,
            packets => Head::Gap { from: self.last, until: u64::MAX, discarded: 0, packets },
        };
    }
}

impl super::merge::Stream for Cursor<'_> {
    type Error = io::Error;

    fn head(&self) -> &Head {
        &self.head
    }

    #[inline]
    fn advance(&mut self) -> io::Result<()> {
        if let Some(bytes) =
            self.window[..self.position_end].get(self.position..).and_then(<[u8]>::first_chunk)
        {
            let raw = Raw::parse(bytes, self.order);
            let tick = self.begin.wrapping_add(u64::from(raw.low.wrapping_sub(self.begin as u32)));
            if (self.last..=self.end).contains(&tick) {
                self.position += EVENT;
                self.last = tick;
                self.found.events += 1;
                self.head = Head::Event { tick, raw };
                return Ok(());
            }
            self.out_of_order();
        }
        self.next_packet()
    }

    fn producer(&self) -> u32 {
        self.taken.map_or(u32::try_from(self.stream.number).unwrap_or(u32::MAX), |header| header.producer)
    }

    fn tick(&self) -> u64 {
        self.last
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}

/// Whether one packet of a stream can come after another.
fn follows(before: &Header, after: &Header) -> bool {
    const HALF: u32 = 1 << 31;
    let is_empty = after.content_bytes == HEADER;
    after.producer == before.producer
        && (1..HALF).contains(&after.sequence.wrapping_sub(before.sequence))
        && after.discarded.wrapping_sub(before.discarded) < HALF
        && (is_empty || after.begin >= before.end)
}
