//! What a stream file holds, found by going from packet header to packet header. Where one is damaged, the next one is looked for.

use super::checksum;
use super::damage::{Damage, Damages};
use super::layout::{CRC, HEADER, Header, MAGIC, MARK, MAX_PACKET, SIZES};
use super::source::{Bytes, Stream};
use crate::Totals;
use memchr::memmem;
use std::io;

/// Bytes that are looked through at once for a packet's mark.
const CHUNK: usize = 256 << 10;
/// As many packets are tried when the recording's UUID has to be learnt from them.
const TRIES: usize = 64;

/// A run of whole packets in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which of the files.
    pub file: usize,
    pub offset: u64,
    pub bytes: u64,
    pub activations: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// As of its end.
    pub totals: Totals,
}

impl Run {
    /// Of one packet.
    pub fn new(file: usize, offset: u64, header: &Header) -> Run {
        let Header { begin_ns, end_ns, activations, totals, .. } = *header;
        Run { file, offset, bytes: header.bytes as u64, activations, begin_ns, end_ns, totals }
    }
}

/// What is in all files together, in order.
#[derive(Default)]
pub struct Index {
    pub runs: Vec<Run>,
    pub first: Option<Header>,
    pub last: Option<Header>,
    pub damages: Damages,
    /// Where the last packet is.
    pub last_place: Option<(usize, u64)>,
    /// Whether the last file ends in the middle of a packet; that was said.
    pub is_cut: bool,
}

impl Index {
    /// Goes through all files. Packets are put together in runs of at least so many bytes, where they are consecutive.
    pub fn new(streams: &[Stream], uuid: &[u8; 16], run_bytes: u64) -> io::Result<Index> {
        let mut index = Index::default();
        for (file, stream) in streams.iter().enumerate() {
            let scan = Scan { bytes: stream.open()?, length: stream.length, uuid };
            index.file(file, stream, &scan, run_bytes)?;
        }
        Ok(index)
    }

    fn file(&mut self, file: usize, stream: &Stream, scan: &Scan<'_>, run_bytes: u64) -> io::Result<()> {
        let mut offset = 0;
        self.is_cut = false;
        let mut is_consecutive = false;
        while offset < stream.length {
            match scan.next(offset)? {
                Found::Packet(header) => {
                    self.expect(stream, offset, &header);
                    self.add(file, offset, &header, is_consecutive, run_bytes);
                    is_consecutive = true;
                    offset += header.bytes as u64;
                }
                Found::Damage { what, end, is_cut } => {
                    self.damages.push(Damage::new(&stream.name, what.0, what.1));
                    self.is_cut = is_cut;
                    is_consecutive = false;
                    offset = end;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, file: usize, offset: u64, header: &Header, is_consecutive: bool, run_bytes: u64) {
        match self.runs.last_mut() {
            Some(run) if is_consecutive && run.bytes < run_bytes => {
                run.bytes += header.bytes as u64;
                run.activations = run.activations.saturating_add(header.activations);
                run.end_ns = run.end_ns.max(header.end_ns);
                run.totals = header.totals;
            }
            _ => self.runs.push(Run::new(file, offset, header)),
        }
        self.first.get_or_insert(*header);
        self.last = Some(*header);
        self.last_place = Some((file, offset));
    }

    /// Compares a packet's number with that of the one before.
    fn expect(&mut self, stream: &Stream, offset: u64, header: &Header) {
        let (expected, activations) = match &self.last {
            Some(last) => (last.sequence.wrapping_add(1), last.activations_before.wrapping_add(last.activations)),
            None if stream.number == 0 => (0, 0),
            None => return,
        };
        if header.sequence > expected {
            let packets = header.sequence - expected;
            let activations = header.activations_before.saturating_sub(activations);
            let what = format!("{packets} packets with {activations} activations that came before this place are missing or damaged");
            self.damages.push(Damage::new(&stream.name, offset, what));
        } else if header.sequence < expected {
            let what = format!("packet {} comes after packet {}; is this a copy?", header.sequence, expected.wrapping_sub(1));
            self.damages.push(Damage::new(&stream.name, offset, what));
        }
    }
}

/// What begins at some place.
enum Found {
    Packet(Header),
    /// Something else, as far as `end`, where the next packet or the end of the file is.
    Damage {
        what: (u64, String),
        end: u64,
        is_cut: bool,
    },
}

/// One file.
pub struct Scan<'a> {
    pub bytes: Bytes<'a>,
    pub length: u64,
    pub uuid: &'a [u8; 16],
}

impl Scan<'_> {
    fn next(&self, offset: u64) -> io::Result<Found> {
        let Some(header) = self.header(offset)? else { return self.damage(offset, None) };
        let end = offset + header.bytes as u64;
        if end == self.length || (end < self.length && self.is_mark(end)?) {
            return Ok(Found::Packet(header));
        }
        self.damage(offset, Some(header))
    }

    fn header(&self, offset: u64) -> io::Result<Option<Header>> {
        if self.length - offset < HEADER as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER];
        self.bytes.read(offset, &mut bytes)?;
        Ok(Header::parse(&bytes, self.uuid))
    }

    /// Whether a packet of this recording begins here, or the begin of one that is cut off.
    fn is_mark(&self, offset: u64) -> io::Result<bool> {
        let mark = mark(self.uuid);
        let mut bytes = [0; MARK];
        let there = (self.length - offset).min(MARK as u64) as usize;
        self.bytes.read(offset, &mut bytes[..there])?;
        Ok(bytes[..there] == mark[..there])
    }

    /// What is at a place that has no good header, or one that does not lead to another packet.
    fn damage(&self, offset: u64, header: Option<Header>) -> io::Result<Found> {
        let next = self.find(offset + 1)?;
        let end = next.unwrap_or(self.length);
        if let Some(header) = header {
            let claimed = offset + header.bytes as u64;
            // Is it this packet, or what comes behind it?
            if claimed < end && self.is_whole(offset, header.bytes)? {
                return Ok(Found::Packet(header));
            }
        }
        let changed = self.explain(offset, end - offset)?;
        let skipped = format!("the packet from byte {offset} to byte {end} is left out");
        let said = |(at, is, was): (u64, u8, u8)| (at, format!("damaged: this byte is {is:#04x} and was {was:#04x}; {skipped}"));
        let is_size = |at: u64| SIZES.contains(&((at - offset) as usize));
        let cut = || {
            (
                self.length,
                format!("the file is cut off here; the packet that begins at byte {offset} was not written to its end and is left out"),
            )
        };
        let is_mark = self.is_mark(offset)?;
        let what = match (changed, next, header) {
            // A packet that would be longer than the file was cut off, unless its size alone explains that.
            (Some(changed), None, Some(_)) if is_size(changed.0) => said(changed),
            (_, None, Some(header)) if offset + header.bytes as u64 > self.length => {
                return Ok(Found::Damage { what: cut(), end, is_cut: true });
            }
            (_, None, None) if is_mark && end - offset < HEADER as u64 => return Ok(Found::Damage { what: cut(), end, is_cut: true }),
            (Some(changed), ..) => said(changed),
            _ => (
                offset,
                format!("damaged: no packet begins here, or its header was changed; all from byte {offset} to byte {end} is left out"),
            ),
        };
        Ok(Found::Damage { what, end, is_cut: false })
    }

    /// Where the next packet's mark is.
    fn find(&self, from: u64) -> io::Result<Option<u64>> {
        let mark = mark(self.uuid);
        let finder = memmem::Finder::new(&mark);
        let mut chunk = vec![0; CHUNK.min(usize::try_from(self.length.saturating_sub(from)).unwrap_or(CHUNK))];
        let mut at = from;
        while self.length.saturating_sub(at) >= MARK as u64 {
            let there = (self.length - at).min(chunk.len() as u64) as usize;
            self.bytes.read(at, &mut chunk[..there])?;
            if let Some(found) = finder.find(&chunk[..there]) {
                return Ok(Some(at + found as u64));
            }
            at += (there - (MARK - 1)) as u64;
        }
        Ok(None)
    }

    /// Whether the checksum of these bytes as a packet is right.
    fn is_whole(&self, offset: u64, length: usize) -> io::Result<bool> {
        let mut bytes = vec![0; length];
        self.bytes.read(offset, &mut bytes)?;
        Ok(difference(&bytes) == Some(0))
    }

    /// The byte that would make these a packet: where, what it is, what it was.
    fn explain(&self, offset: u64, length: u64) -> io::Result<Option<(u64, u8, u8)>> {
        let Some(length) = usize::try_from(length).ok().filter(|length| (HEADER..=MAX_PACKET).contains(length)) else { return Ok(None) };
        let mut bytes = vec![0; length];
        self.bytes.read(offset, &mut bytes)?;
        Ok(explain(&bytes).map(|(at, is, was)| (offset + at as u64, is, was)))
    }
}

/// The recording's UUID, from the first packet whose checksum is right.
pub fn learn_uuid(streams: &[Stream]) -> io::Result<Option<[u8; 16]>> {
    for stream in streams {
        let nobody = [0; 16];
        let scan = Scan { bytes: stream.open()?, length: stream.length, uuid: &nobody };
        let most = usize::try_from(stream.length).unwrap_or(usize::MAX).min(2 * MAX_PACKET);
        let mut bytes = vec![0; most];
        scan.bytes.read(0, &mut bytes)?;
        for at in memmem::find_iter(&bytes, &MAGIC).take(TRIES) {
            let Some(head) = bytes[at..].first_chunk::<HEADER>() else { break };
            let mut uuid = [0; 16];
            uuid.copy_from_slice(&head[MAGIC.len()..MARK]);
            let packet = Header::parse(head, &uuid).and_then(|header| bytes.get(at..at + header.bytes));
            if packet.is_some_and(|packet| difference(packet) == Some(0)) {
                return Ok(Some(uuid));
            }
        }
    }
    Ok(None)
}

/// In which bits a packet's checksum differs from what it should be.
pub fn difference(packet: &[u8]) -> Option<u32> {
    let stored = packet.get(CRC..HEADER)?.try_into().ok().map(u32::from_le_bytes)?;
    Some(checksum::of(packet, CRC) ^ stored)
}

/// The one byte that would make a packet's checksum right: where, what it is, what it was.
pub fn explain(packet: &[u8]) -> Option<(usize, u8, u8)> {
    let difference = difference(packet)?;
    let bytes = difference.to_le_bytes();
    let (at, bits) = match bytes.iter().filter(|byte| **byte != 0).count() {
        0 => return None,
        // The checksum itself.
        1 => bytes.iter().zip(CRC..).find(|(bits, _)| **bits != 0).map(|(bits, at)| (at, *bits))?,
        _ => match checksum::explain(difference, packet.len())[..] {
            [changed] if !(CRC..HEADER).contains(&changed.offset) => (changed.offset, changed.bits),
            _ => return None,
        },
    };
    Some((at, packet[at], packet[at] ^ bits))
}

fn mark(uuid: &[u8; 16]) -> [u8; MARK] {
    let mut mark = [0; MARK];
    mark[..MAGIC.len()].copy_from_slice(&MAGIC);
    mark[MAGIC.len()..].copy_from_slice(uuid);
    mark
}
