//! Packets and events as bytes, in either byte order: the tables of `docs/flow-traces.md`.

use super::{ByteOrder, Kind, NUMBERS};

/// Bytes of a packet before its events, and of an event.
pub const HEADER: usize = 48;
pub const EVENT: usize = 8;
/// Bytes of a packet: room for one event at least. Our tracer writes none longer than this.
pub const LEAST_PACKET: usize = HEADER + EVENT;
pub const MOST_PACKET: usize = 16 << 20;

const MAGIC: u32 = 0xC1FC_1FC1;

/// A packet's header and context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Ticks of its first and of its last event.
    pub begin: u64,
    pub end: u64,
    pub content_bytes: usize,
    pub packet_bytes: usize,
    pub sequence: u32,
    pub discarded: u32,
    pub producer: u32,
}

/// An event as it stands in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// The clock's low half.
    pub low: u32,
    pub kind: Kind,
    /// Modulo [`NUMBERS`].
    pub number: u16,
    pub object: u16,
}

impl ByteOrder {
    /// In which order a packet was written, by its first bytes.
    pub fn of_packet(bytes: &[u8]) -> Option<ByteOrder> {
        let magic = bytes.first_chunk::<4>()?;
        [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.u32(magic) == MAGIC)
    }

    #[inline]
    fn u16(self, bytes: &[u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(*bytes),
            ByteOrder::Big => u16::from_be_bytes(*bytes),
        }
    }

    #[inline]
    fn u32(self, bytes: &[u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(*bytes),
            ByteOrder::Big => u32::from_be_bytes(*bytes),
        }
    }

    fn bytes_of_u16(self, value: u16) -> [u8; 2] {
        match self {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    fn bytes_of_u32(self, value: u32) -> [u8; 4] {
        match self {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    fn bytes_of_u64(self, value: u64) -> [u8; 8] {
        match self {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }
}

impl Header {
    /// What the bytes say, if that makes sense by itself.
    pub fn parse(bytes: &[u8], order: ByteOrder) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.first_chunk()?;
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| order.u32(word));
        let long = |at: usize| {
            let (one, other) = (u64::from(word(at)), u64::from(word(at + 4)));
            match order {
                ByteOrder::Little => one | other << 32,
                ByteOrder::Big => one << 32 | other,
            }
        };
        let bytes_of = |bits: u32| (bits % 8 == 0).then_some(bits as usize / 8);
        let header = Header {
            begin: long(8),
            end: long(16),
            content_bytes: bytes_of(word(24))?,
            packet_bytes: bytes_of(word(28))?,
            sequence: word(32),
            discarded: word(36),
            producer: word(40),
        };
        let makes_sense = word(0) == MAGIC
            && word(4) == 0
            && word(44) == 0
            && header.begin <= header.end
            && header.end - header.begin <= u64::from(u32::MAX)
            && (HEADER..=header.packet_bytes).contains(&header.content_bytes)
            && (header.content_bytes - HEADER) % EVENT == 0
            && (LEAST_PACKET..=MOST_PACKET).contains(&header.packet_bytes);
        makes_sense.then_some(header)
    }

    pub fn to_bytes(self, order: ByteOrder) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let bits = |bytes: usize| u32::try_from(bytes * 8).unwrap_or(u32::MAX);
        bytes[8..16].copy_from_slice(&order.bytes_of_u64(self.begin));
        bytes[16..24].copy_from_slice(&order.bytes_of_u64(self.end));
        let words = [
            (0, MAGIC),
            (24, bits(self.content_bytes)),
            (28, bits(self.packet_bytes)),
            (32, self.sequence),
            (36, self.discarded),
            (40, self.producer),
        ];
        for (at, word) in words {
            bytes[at..at + 4].copy_from_slice(&order.bytes_of_u32(word));
        }
        bytes
    }
}

impl Raw {
    #[inline]
    pub fn parse(bytes: &[u8; EVENT], order: ByteOrder) -> Raw {
        let [a, b, c, d, e, f, g, h] = *bytes;
        let middle = order.u16(&[e, f]);
        let (kind, number) = match order {
            ByteOrder::Little => (middle & 3, middle >> 2),
            ByteOrder::Big => (middle >> 14, middle & (NUMBERS - 1) as u16),
        };
        Raw {
            low: order.u32(&[a, b, c, d]),
            kind: Kind::ALL[usize::from(kind)],
            number,
            object: order.u16(&[g, h]),
        }
    }

    pub fn to_bytes(self, order: ByteOrder) -> [u8; EVENT] {
        let (kind, number) = (self.kind as u16, self.number & (NUMBERS - 1) as u16);
        let middle = match order {
            ByteOrder::Little => kind | number << 2,
            ByteOrder::Big => kind << 14 | number,
        };
        let mut bytes = [0; EVENT];
        bytes[..4].copy_from_slice(&order.bytes_of_u32(self.low));
        bytes[4..6].copy_from_slice(&order.bytes_of_u16(middle));
        bytes[6..].copy_from_slice(&order.bytes_of_u16(self.object));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_documented_layout() {
        let raw = Raw { low: 0x0102_0304, kind: Kind::Start, number: 0x1234, object: 0xABCD };
        assert_eq!(raw.to_bytes(ByteOrder::Big), [1, 2, 3, 4, 0x92, 0x34, 0xAB, 0xCD]);
        assert_eq!(raw.to_bytes(ByteOrder::Little), [4, 3, 2, 1, 0xD2, 0x48, 0xCD, 0xAB]);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(Raw::parse(&raw.to_bytes(order), order), raw);
        }
    }

    #[test]
    fn a_header_is_read_back() {
        let header = Header {
            begin: u64::MAX - 9,
            end: u64::MAX,
            content_bytes: 64,
            packet_bytes: 128,
            sequence: 5,
            discarded: 6,
            producer: 7,
        };
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = header.to_bytes(order);
            assert_eq!(Header::parse(&bytes, order), Some(header));
            assert_eq!(ByteOrder::of_packet(&bytes), Some(order));
            assert_eq!(bytes[8..16], order.bytes_of_u64(header.begin));
        }
    }
}
