//! Finds the packets of a file, those within compressed ones among them, with one window of it in memory.

use super::super::bytes::{Bytes, Packing};
use super::packet::{Content, PACKET, Packet};
use prost::encoding::{WireType, decode_key, decode_varint};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes read at once.
const WINDOW: u64 = 256 << 10;
/// Longest tag and length of a packet.
const MOST_HEADER: u64 = 16;
/// Longest packet that is read; the recorder's have some hundred KiB at most.
const MOST_PACKET: u64 = 8 << 20;
/// Most bytes that a compressed packet has unpacked.
const MOST_UNPACKED: usize = 8 << 20;
/// Unpacked packets that are kept, by their bytes: processors read different ones at the same time.
const MOST_KEPT: usize = 16 << 20;

/// Where some bytes are: in the file, or in what is packed there.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    at: u64,
    length: u32,
    inner: Option<Inner>,
}

/// Where they are in a packed packet.
#[derive(Clone, Copy, Debug)]
struct Inner {
    packing: Packing,
    start: u32,
    length: u32,
}

/// What comes next in a file.
pub enum Found {
    /// A packet, whose bytes are in [`Packets::bytes`].
    Packet,
    /// A packet that cannot be read.
    Damage(String),
    /// The file ends within a packet, or what follows is none.
    Cut(String),
}

/// The packets of a file, in order.
pub struct Packets<'b> {
    bytes: &'b Bytes,
    /// Where the next one begins.
    pub at: u64,
    window: Vec<u8>,
    window_at: u64,
    blocks: Blocks,
    /// The packets of a packed one that have not been found yet: where it is, and how far it is read.
    block: Option<(Spot, Rc<Vec<u8>>, usize)>,
    current: Option<Spot>,
}

/// Bytes of a packet or of a part of it.
pub enum Part {
    Own(Vec<u8>),
    Of(Rc<Vec<u8>>, std::ops::Range<usize>),
}

impl Part {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Part::Own(bytes) => bytes,
            Part::Of(block, place) => &block[place.clone()],
        }
    }
}

impl<'b> Packets<'b> {
    pub fn of(bytes: &'b Bytes) -> Packets<'b> {
        Packets {
            bytes,
            at: 0,
            window: Vec::new(),
            window_at: 0,
            blocks: Blocks::default(),
            block: None,
            current: None,
        }
    }

    /// What comes next; `None` at the end.
    pub fn next(&mut self) -> Option<Found> {
        if let Some(found) = self.next_packed() {
            return Some(found);
        }
        if self.at >= self.bytes.length() {
            return None;
        }
        match self.next_in_file() {
            Ok(found) => Some(found),
            Err(why) => {
                self.at = self.bytes.length();
                Some(Found::Cut(why))
            }
        }
    }

    /// The bytes of the packet that was found last.
    pub fn current(&self) -> &[u8] {
        let bytes = match (self.current, &self.block) {
            (Some(Spot { inner: Some(inner), .. }), Some((_, block, _))) => {
                block.get(inner.start as usize..).and_then(|rest| rest.get(..inner.length as usize))
            }
            (Some(Spot { at, length, inner: None }), _) => {
                let start = (at - self.window_at) as usize;
                self.window.get(start..start + length as usize)
            }
            _ => None,
        };
        bytes.unwrap_or_default()
    }

    /// Where the packet that was found last is in the file, or the one that it is packed in.
    pub fn place(&self) -> u64 {
        self.current.map_or(self.at, |spot| spot.at)
    }

    /// Where a part of the packet that was found last is.
    pub fn spot_of(&self, part: &[u8]) -> Option<Spot> {
        let whole = self.current();
        let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let spot = self.current?;
        let (start, length) = (u32::try_from(start).ok()?, u32::try_from(part.len()).ok()?);
        Some(match spot.inner {
            None => Spot { at: spot.at + u64::from(start), length, inner: None },
            Some(inner) => {
                let inner = Inner { start: inner.start + start, length, ..inner };
                Spot { inner: Some(inner), ..spot }
            }
        })
    }

    /// The bytes there.
    pub fn part(&mut self, spot: Spot) -> Result<Part, String> {
        let Some(inner) = spot.inner else {
            return Ok(Part::Own(self.bytes.read(spot.at, u64::from(spot.length))?));
        };
        let block = self.blocks.get(self.bytes, spot.at, spot.length, inner.packing)?;
        let place = inner.start as usize..(inner.start + inner.length) as usize;
        if place.end > block.len() {
            return Err(format!("byte {}: a compressed packet is another one than before", spot.at));
        }
        Ok(Part::Of(block, place))
    }

    fn next_packed(&mut self) -> Option<Found> {
        let (spot, block, at) = self.block.as_mut()?;
        let mut rest = block.get(*at..).filter(|rest| !rest.is_empty())?;
        let length = header(&mut rest).filter(|length| *length <= rest.len() as u64);
        let Some(length) = length else {
            *at = block.len();
            let why = format!("byte {}: a compressed packet has something else than packets in it", spot.at);
            return Some(Found::Damage(why));
        };
        let start = block.len() - rest.len();
        *at = start + length as usize;
        let inner = spot.inner.map(|inner| Inner { start: start as u32, length: length as u32, ..inner });
        let found = Spot { inner, ..*spot };
        self.current = Some(found);
        Some(Found::Packet)
    }

    fn next_in_file(&mut self) -> Result<Found, String> {
        let (begin, left) = (self.at, self.bytes.length() - self.at);
        self.load(begin, left.min(MOST_HEADER))?;
        let head = &self.window[(begin - self.window_at) as usize..];
        let mut rest = &head[..head.len().min(MOST_HEADER as usize)];
        let before = rest.len();
        let Some(length) = header(&mut rest) else {
            return Err(if left < MOST_HEADER { cut(begin) } else { no_packet(begin) });
        };
        let at = begin + (before - rest.len()) as u64;
        let end = at.checked_add(length).filter(|end| *end <= self.bytes.length());
        self.at = end.ok_or_else(|| cut(begin))?;
        if length > MOST_PACKET {
            return Ok(Found::Damage(format!("byte {begin}: a packet of {length} bytes is not read")));
        }
        self.load(at, length)?;
        self.block = None;
        let spot = Spot { at, length: length as u32, inner: None };
        self.current = Some(spot);
        Ok(self.unpacked())
    }

    /// The first of the packets in it, if it is packed.
    fn unpacked(&mut self) -> Found {
        let Ok(Packet { content: Content::Packed(packing, packed), .. }) = Packet::read(self.current())
        else {
            return Found::Packet;
        };
        let Some(place) = self.spot_of(packed) else { return Found::Packet };
        match self.blocks.get(self.bytes, place.at, place.length, packing) {
            Ok(block) => {
                let inner = Inner { packing, start: 0, length: 0 };
                self.block = Some((Spot { inner: Some(inner), ..place }, block, 0));
                self.next_packed().unwrap_or(Found::Packet)
            }
            Err(why) => Found::Damage(why),
        }
    }

    /// Makes sure that these bytes are in the window.
    fn load(&mut self, at: u64, length: u64) -> Result<(), String> {
        let end = self.window_at + self.window.len() as u64;
        if at >= self.window_at && at + length <= end {
            return Ok(());
        }
        let more = length.max(WINDOW).min(self.bytes.length().saturating_sub(at));
        self.bytes.read_into(at, more.max(length), &mut self.window)?;
        self.window_at = at;
        Ok(())
    }
}

fn cut(at: u64) -> String {
    format!("the file is truncated: its last packet, at byte {at}, is not whole")
}

fn no_packet(at: u64) -> String {
    format!("byte {at}: no packet begins here, and what follows is not read")
}

/// Reads the tag of a packet, and its length.
fn header(rest: &mut &[u8]) -> Option<u64> {
    let (number, kind) = decode_key(rest).ok()?;
    let length = decode_varint(rest).ok()?;
    (number == PACKET && kind == WireType::LengthDelimited).then_some(length)
}

/// Whether a file with this beginning, and of this length, is a sequence of packets.
pub fn is_trace(beginning: &[u8], length: u64) -> bool {
    let mut rest = beginning;
    let Some(first) = header(&mut rest) else { return false };
    let at = (beginning.len() - rest.len()) as u64;
    let is_within = at.checked_add(first).is_some_and(|end| end <= length);
    let packet = rest.get(..first as usize);
    let is_message = match packet {
        Some(packet) => Packet::read(packet).is_ok(),
        // Only its beginning is here.
        None => decode_key(&mut &*rest).is_ok(),
    };
    let next = packet.and_then(|packet| rest.get(packet.len()));
    is_within && is_message && next.is_none_or(|tag| *tag == 0x0a)
}

/// Why a file that begins with a packet is not read as a trace: its first packet is cut off or damaged.
/// Packets of less than 128 bytes are too much like text.
pub fn why_broken(beginning: &[u8], length: u64) -> Option<&'static str> {
    const NUMBERS: [u32; 10] = [3, 8, 10, 13, 41, 42, 58, 79, 87, 98];
    const MESSAGES: [u32; 12] = [1, 2, 6, 33, 34, 35, 36, 45, 50, 59, 89, 133];
    let mut rest = beginning;
    let first = header(&mut rest).filter(|first| *first > 127)?;
    let is_whole = first.saturating_add((beginning.len() - rest.len()) as u64) <= length;
    let (number, kind) = decode_key(&mut rest).ok()?;
    let is_known = match kind {
        WireType::Varint => NUMBERS.contains(&number),
        WireType::LengthDelimited => MESSAGES.contains(&number),
        _ => false,
    };
    is_known.then_some(match is_whole {
        true => "is a trace of Perfetto whose first packet is damaged",
        false => "is a trace of Perfetto that is cut off in its first packet: copy all of it",
    })
}

/// Packed packets that were unpacked last, oldest first.
#[derive(Default)]
struct Blocks {
    kept: VecDeque<(u64, Rc<Vec<u8>>)>,
}

impl Blocks {
    fn get(&mut self, bytes: &Bytes, at: u64, length: u32, packing: Packing) -> Result<Rc<Vec<u8>>, String> {
        if let Some(place) = self.kept.iter().position(|(of, _)| *of == at) {
            let (_, block) = &self.kept[place];
            return Ok(block.clone());
        }
        let packed = bytes.read(at, u64::from(length))?;
        let unpacked = packing
            .unpack_any(&packed, MOST_UNPACKED)
            .map_err(|why| format!("byte {at}: a compressed packet: {why}"))?;
        let block = Rc::new(unpacked);
        self.kept.push_back((at, block.clone()));
        while self.kept.len() > 1 && self.kept.iter().map(|(_, block)| block.len()).sum::<usize>() > MOST_KEPT
        {
            self.kept.pop_front();
        }
        Ok(block)
    }
}
