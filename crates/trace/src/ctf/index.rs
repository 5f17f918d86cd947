//! Finds the packets of stream files, from header to header. After damage, it searches for the next packet.

use super::layout::{self, HEADER, Header, MAGIC, MARK, MAX_PACKET};
use crate::Totals;
use crate::damage::{Damage, Damages};
use crate::source::{Bytes, Stream};
use memchr::memmem;
use std::io;

/// Bytes that are searched at once for a packet's mark.
const CHUNK: usize = 256 << 10;
/// Most packets to try when the recording's UUID must be taken from them.
const TRIES: usize = 64;

/// Consecutive packets in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the file.
    pub file: usize,
    pub offset: u64,
    pub bytes: u64,
    pub activations: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Packets from the beginning of the recording to its end.
    pub packets: u64,
    /// At its end.
    pub totals: Totals,
}

impl Run {
    /// A run of one packet.
    pub fn new(file: usize, offset: u64, header: &Header) -> Run {
        let Header { begin_ns, end_ns, activations, totals, .. } = *header;
        let packets = header.sequence.wrapping_add(1);
        Run { file, offset, bytes: header.bytes as u64, activations, begin_ns, end_ns, packets, totals }
    }
}

/// The packets of all files, in order.
#[derive(Default)]
pub struct Index {
    pub runs: Vec<Run>,
    pub first: Option<Header>,
    /// The last undamaged packet, and where it is.
    pub last: Option<(Header, Run)>,
    pub damages: Damages,
    /// Whether the end of the recording is damaged or cut off, which has been reported.
    pub is_cut: bool,
    /// Not reported yet: the next packet's number will tell how much is missing.
    found: Option<Damage>,
    /// Number of the previous file.
    number: Option<u64>,
}

impl Index {
    /// Scans all files. Consecutive packets are joined into runs of at least `run_bytes`.
    pub fn new(streams: &[Stream], uuid: &[u8; 16], run_bytes: u64) -> io::Result<Index> {
        let mut index = Index::default();
        for (file, stream) in streams.iter().enumerate() {
            let scan = Scan {
                bytes: stream.open()?,
                length: stream.length,
                uuid,
                is_last: file + 1 == streams.len(),
            };
            index.file(file, stream, &scan, run_bytes)?;
            index.number = Some(stream.number);
        }
        index.damages.extend(index.found.take());
        Ok(index)
    }

    fn file(&mut self, file: usize, stream: &Stream, scan: &Scan<'_>, run_bytes: u64) -> io::Result<()> {
        let mut offset = 0;
        let mut is_consecutive = false;
        while offset < stream.length {
            let expected = match &self.last {
                Some((last, _)) => last.sequence.checked_add(1),
                None => (stream.number == 0).then_some(0),
            };
            match scan.next(offset, expected)? {
                Found::Packet(header) => {
                    self.compare(stream, offset, &header);
                    self.add(Run::new(file, offset, &header), is_consecutive, run_bytes);
                    self.first.get_or_insert(header);
                    self.last = Some((header, Run::new(file, offset, &header)));
                    self.is_cut = false;
                    is_consecutive = true;
                    offset += header.bytes as u64;
                }
                Found::Damage { at, what, end } => {
                    // What its header claims, if that is plausible; a later packet knows better.
                    let claimed = scan
                        .header(offset)?
                        .filter(|header| Some(header.sequence) == expected)
                        .map_or(0, |header| header.activations);
                    let problem = if claimed > 0 { format!("{what}: {claimed} activations") } else { what };
                    let found = Damage::new(&stream.name, at, problem).with_activations(claimed);
                    self.damages.extend(self.found.replace(found));
                    self.is_cut = true;
                    is_consecutive = false;
                    offset = end;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, packet: Run, is_consecutive: bool, run_bytes: u64) {
        match self.runs.last_mut() {
            Some(run) if is_consecutive && run.bytes < run_bytes => {
                run.bytes += packet.bytes;
                run.activations = run.activations.saturating_add(packet.activations);
                run.end_ns = run.end_ns.max(packet.end_ns);
                run.packets = packet.packets;
                run.totals = packet.totals;
            }
            _ => self.runs.push(packet),
        }
    }

    /// Reports what is missing between this packet and the one before.
    fn compare(&mut self, stream: &Stream, offset: u64, header: &Header) {
        let found = self.found.take();
        let (before, activations) = match &self.last {
            Some((last, _)) => (last.sequence, last.activations_before.saturating_add(last.activations)),
            None if stream.number == 0 && header.sequence > 0 => (u64::MAX, 0),
            None => return self.damages.extend(found),
        };
        let missing = header.sequence.wrapping_sub(before).wrapping_sub(1);
        let activations = header.activations_before.saturating_sub(activations);
        let packets = if missing == 1 { "one packet".to_owned() } else { format!("{missing} packets") };
        let counted =
            if activations == 1 { "one activation".to_owned() } else { format!("{activations} activations") };
        let how_many = format!("{packets} with {counted}");
        let file =
            stream.number.checked_sub(1).filter(|file| self.number.is_some_and(|number| number < *file));
        let damage = match (missing, found, file) {
            (0, found, _) => found,
            (1..=SEQUENCE_LEAP, Some(found), _) => {
                Some(found.and(&format!(": {how_many}")).with_activations(activations))
            }
            (1..=SEQUENCE_LEAP, None, Some(file)) => Some(
                Damage::new(
                    &stream.name,
                    offset,
                    format!("before this file {how_many} are missing; there is no stream_{file}"),
                )
                .with_activations(activations),
            ),
            (1..=SEQUENCE_LEAP, None, None) => Some(
                Damage::new(&stream.name, offset, format!("before this packet {how_many} are missing"))
                    .with_activations(activations),
            ),
            (_, found, _) => {
                self.damages.extend(found);
                let what = format!(
                    "packet {} comes after packet {before}; was a file copied or renamed?",
                    header.sequence
                );
                Some(Damage::new(&stream.name, offset, what))
            }
        };
        self.damages.extend(damage);
    }
}

/// A greater step from one packet's number to the next is a step back.
const SEQUENCE_LEAP: u64 = u64::MAX / 2;

/// What is found at an offset.
enum Found {
    Packet(Header),
    /// Something else, up to `end`: the next packet or the end of the file.
    Damage {
        at: u64,
        what: String,
        end: u64,
    },
}

/// One file.
struct Scan<'a> {
    bytes: Bytes<'a>,
    length: u64,
    uuid: &'a [u8; 16],
    /// Whether it is the last file.
    is_last: bool,
}

impl Scan<'_> {
    /// What is at this offset, where the packet with number `expected` should be.
    fn next(&self, offset: u64, expected: Option<u64>) -> io::Result<Found> {
        let Some(header) = self.header(offset)? else { return self.damage(offset, None) };
        let end = offset + header.bytes as u64;
        if end > self.length || (end < self.length && !self.is_mark(end)?) {
            return self.damage(offset, Some(header));
        }
        // Checksums are checked when packets are read. Check now if the index depends on this header.
        let is_in_doubt = Some(header.sequence) != expected || (self.is_last && end == self.length);
        if is_in_doubt && !self.is_whole(offset, header.bytes)? {
            let what = format!("damaged: the packet's checksum does not match; {}", left_out(offset, end));
            return Ok(Found::Damage { at: offset, what, end });
        }
        Ok(Found::Packet(header))
    }

    fn header(&self, offset: u64) -> io::Result<Option<Header>> {
        if self.length - offset < HEADER as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER];
        self.bytes.read(offset, &mut bytes)?;
        Ok(Header::parse(&bytes, self.uuid))
    }

    /// Whether a packet of this recording begins here, perhaps one that is cut off.
    fn is_mark(&self, offset: u64) -> io::Result<bool> {
        let mark = mark(self.uuid);
        let mut bytes = [0; MARK];
        let there = (self.length - offset).min(MARK as u64) as usize;
        self.bytes.read(offset, &mut bytes[..there])?;
        Ok(bytes[..there] == mark[..there])
    }

    /// Whether there are only zeros in place of a mark.
    fn is_zero(&self, offset: u64) -> io::Result<bool> {
        let mut bytes = [0; MARK];
        let there = (self.length - offset).min(MARK as u64) as usize;
        self.bytes.read(offset, &mut bytes[..there])?;
        Ok(bytes == [0; MARK])
    }

    /// What is at an offset without a valid header, or whose header does not lead to another packet.
    fn damage(&self, offset: u64, header: Option<Header>) -> io::Result<Found> {
        let next = self.find(offset + 1)?;
        let end = next.unwrap_or(self.length);
        let claimed = header.map(|header| offset + header.bytes as u64);
        if let Some(header) = header.filter(|_| claimed < Some(end)) {
            // Is this packet damaged, or what follows it?
            if self.is_whole(offset, header.bytes)? {
                return Ok(Found::Packet(header));
            }
        }
        if next.is_none() && self.is_last && self.is_zero(offset)? {
            let what = "the recording was cut off here: what follows is zeros, as after a loss of power; \
                more may not have got to the disk";
            return Ok(Found::Damage { at: offset, what: what.to_owned(), end });
        }
        // A packet that would be longer than the file was cut off.
        let is_cut = match claimed {
            Some(claimed) => claimed > self.length,
            None => end - offset < HEADER as u64 && self.is_mark(offset)?,
        };
        if next.is_none() && is_cut {
            let what = format!(
                "the recording was cut off here: the packet that begins at byte {offset} was not written to \
                    its end and is left out, \
                 and more may not have got to the disk"
            );
            return Ok(Found::Damage { at: self.length, what, end });
        }
        let what =
            format!("damaged: no packet begins here, or its header is damaged; {}", left_out(offset, end));
        Ok(Found::Damage { at: offset, what, end })
    }

    /// Offset of the next packet's mark.
    fn find(&self, from: u64) -> io::Result<Option<u64>> {
        let mark = mark(self.uuid);
        let finder = memmem::Finder::new(&mark);
        let mut chunk =
            vec![0; CHUNK.min(usize::try_from(self.length.saturating_sub(from)).unwrap_or(CHUNK))];
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

    /// Whether these bytes are a packet whose checksum matches.
    fn is_whole(&self, offset: u64, length: usize) -> io::Result<bool> {
        let mut bytes = vec![0; length];
        self.bytes.read(offset, &mut bytes)?;
        Ok(layout::is_whole(&bytes))
    }
}

/// Says what the reader skips.
fn left_out(from: u64, to: u64) -> String {
    format!("bytes {from} to {to} are left out")
}

/// The recording's UUID, from the first packet whose checksum matches.
pub fn learn_uuid(streams: &[Stream]) -> io::Result<Option<[u8; 16]>> {
    for stream in streams {
        let most = usize::try_from(stream.length).unwrap_or(usize::MAX).min(2 * MAX_PACKET);
        let mut bytes = vec![0; most];
        stream.open()?.read(0, &mut bytes)?;
        for at in memmem::find_iter(&bytes, &MAGIC).take(TRIES) {
            let Some(head) = bytes[at..].first_chunk::<HEADER>() else { break };
            let mut uuid = [0; 16];
            uuid.copy_from_slice(&head[MAGIC.len()..MARK]);
            let packet = Header::parse(head, &uuid).and_then(|header| bytes.get(at..at + header.bytes));
            if packet.is_some_and(layout::is_whole) {
                return Ok(Some(uuid));
            }
        }
    }
    Ok(None)
}

fn mark(uuid: &[u8; 16]) -> [u8; MARK] {
    let mut mark = [0; MARK];
    mark[..MAGIC.len()].copy_from_slice(&MAGIC);
    mark[MAGIC.len()..].copy_from_slice(uuid);
    mark
}
