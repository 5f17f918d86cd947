//! The layout of packets. The metadata ([`super::metadata`]) describe it to other tools.

use crate::{Ready, Totals};
use punctual_model::{Call, Disturbance, Duration, FileClass, Object, Separator};

/// First bytes of every packet: CTF's magic number. With the UUID after it, it marks where to go on after
/// damage.
pub const MAGIC: [u8; 4] = 0xC1FC_1FC1_u32.to_le_bytes();
/// Bytes of magic number and UUID.
pub const MARK: usize = 20;
/// Bytes of a packet before its first event: `packet.header` and `packet.context`.
pub const HEADER: usize = 116;
/// The checksum is the last of these.
pub const CRC: usize = 112;
/// Largest packet. An event has at most three texts of [`MAX_TEXT`], so any event fits easily.
pub const MAX_PACKET: usize = 4 << 20;
/// A packet of this size is closed. Few enough separators fit into it to number them in 16 bits.
pub const MOST_PACKET: usize = 1 << 20;
const _: () =
    assert!(MOST_PACKET / SEPARATOR_BYTES < u16::MAX as usize && MOST_PACKET + 4 * MAX_TEXT < MAX_PACKET);
const _: () = assert!((MOST_ENTRIES + 4) * (RAN_BYTES + MAX_SHORT_TEXT) < MAX_PACKET - MOST_PACKET);
/// Longer texts are truncated.
pub const MAX_TEXT: usize = 64 << 10;
/// The same for names and places of a measurement of latency; and most entries of a list of such.
pub const MAX_SHORT_TEXT: usize = 1000;
pub const MOST_ENTRIES: usize = 255;
/// Most notes of a recording.
pub const MOST_NOTES: usize = 255;
/// Flag of a packet: the recording is complete and ends here.
pub const FLAG_END: u32 = 1;
/// Above the flags: stolen time in milliseconds, saturating.
const STOLEN_SHIFT: u32 = 1;
const MOST_STOLEN_MS: u64 = (u32::MAX >> STOLEN_SHIFT) as u64;
const MS: u64 = 1_000_000;

/// Bytes of `event.header`: which event, and the low half of its timestamp.
pub const EVENT: usize = 5;

pub const SEPARATOR: u8 = 0;
pub const ACTIVATION: u8 = 1;
pub const ACTIVATION_TIMED: u8 = 2;
pub const ACTIVATION_WITHOUT_SLEEP: u8 = 3;
pub const ACTIVATION_WIDE: u8 = 4;
pub const TASK: u8 = 5;
pub const THREAD_KNOWN: u8 = 6;
pub const RENAMED: u8 = 7;
pub const COMMAND: u8 = 8;
pub const EXIT: u8 = 9;
pub const LAST: u8 = 10;
pub const SWITCH_IN: u8 = 11;
pub const SWITCH_OUT: u8 = 12;
pub const WOKEN: u8 = 13;
pub const OBSERVATION_END: u8 = 14;
pub const ACTIVATION_COUNTED: u8 = 15;
pub const CIRCUMSTANCES: u8 = 16;
pub const BYSTANDER: u8 = 17;
pub const BYSTANDER_EXIT: u8 = 18;
/// Of a measurement of scheduling latency: these, [`LATENCY_LATER`] and no others.
pub const LATENCY: std::ops::RangeInclusive<u8> = SCOPE..=WITNESSED;
pub const SCOPE: u8 = 19;
pub const PROCESSOR: u8 = 20;
pub const SOURCE: u8 = 21;
pub const INTERRUPT: u8 = 22;
pub const INTERRUPT_WIDE: u8 = 23;
pub const INTERRUPTS_LOST: u8 = 24;
pub const INTERRUPT_MISSED: u8 = 25;
pub const OFFLINE: u8 = 26;
pub const MAXIMUM: u8 = 27;
pub const THREAD_LATENCIES: u8 = 28;
pub const WAKEUP: u8 = 29;
pub const TIMERS: u8 = 30;
pub const INTERRUPTS_COUNTED: u8 = 31;
pub const MONITOR: u8 = 32;
pub const WITNESSED: u8 = 33;
/// Of a time-triggered dispatcher: these and no others.
pub const DISPATCH: std::ops::RangeInclusive<u8> = TABLE..=GUEST_OVER;
pub const TABLE: u8 = 34;
pub const TABLE_TASK: u8 = 35;
pub const TURN: u8 = 36;
pub const TURNS_LOST: u8 = 37;
pub const GUEST: u8 = 38;
pub const GUEST_OVER: u8 = 39;
/// As [`WAKEUP`], with sections.
pub const WAKEUP_SECTIONS: u8 = 40;
pub const FROM_DUE: u8 = 41;
/// Of threads, too: what version 8 has added.
pub const BUSY: u8 = 42;
pub const CLOCK_SET: u8 = 43;
/// As [`SEPARATOR`], with the name of an address.
pub const SEPARATOR_NAMED: u8 = 44;
/// Of the scheduler: what version 10 has added.
pub const BLOCKED: u8 = 45;
pub const FAULTED: u8 = 46;
pub const TAKEN: u8 = 47;
/// What version 11 has added.
pub const LOST: u8 = 48;
/// As [`SEPARATOR`], with what was ready: what version 12 has added.
pub const SEPARATOR_READY: u8 = 49;
pub const NOTE: u8 = 50;
/// Of the scheduler: what version 13 has added.
pub const MOVED: u8 = 51;

/// Of a measurement of scheduling latency, too: what versions after the fourth have added.
pub const LATENCY_LATER: std::ops::RangeInclusive<u8> = WAKEUP_SECTIONS..=FROM_DUE;

/// Bytes of these events, header included.
pub const SEPARATOR_BYTES: usize = 21;
/// What [`SEPARATOR_READY`] adds at most.
pub const READY_BYTES: usize = 1 + 4 * Ready::MOST;
pub const ACTIVATION_BYTES: usize = 36;
pub const ACTIVATION_TIMED_BYTES: usize = 41;
pub const ACTIVATION_WITHOUT_SLEEP_BYTES: usize = 38;
pub const ACTIVATION_WIDE_BYTES: usize = 76;
pub const ACTIVATION_COUNTED_BYTES: usize = 40;
pub const CIRCUMSTANCES_BYTES: usize = 18;
/// Excluding the texts.
pub const TASK_BYTES: usize = 61;
/// Most bytes of an event of [`LATENCY`], and bytes of an entry of what ran, excluding the texts.
pub const LATENCY_MOST: usize = 88;
pub const RAN_BYTES: usize = 30;
/// Most bytes of an event of [`DISPATCH`], excluding the text.
pub const DISPATCH_MOST: usize = 72;

/// The part of a packet before its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Size of the whole packet.
    pub bytes: usize,
    pub sequence: u64,
    pub totals: Totals,
    pub activations: u64,
    pub activations_before: u64,
    pub flags: u32,
    pub crc: u32,
}

impl Header {
    pub fn write(&self, uuid: &[u8; 16], into: &mut [u8; HEADER]) {
        let bits = self.bytes as u64 * 8;
        let words = [
            self.begin_ns,
            self.end_ns,
            bits,
            bits,
            self.sequence,
            self.totals.lost,
            self.totals.untracked,
            self.totals.skipped,
            self.activations,
            self.activations_before,
        ];
        into[..4].copy_from_slice(&MAGIC);
        into[4..MARK].copy_from_slice(uuid);
        into[MARK..28].fill(0);
        for (place, word) in into[28..108].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let stolen_ms = (self.totals.stolen.ns() / MS).min(MOST_STOLEN_MS) as u32;
        into[108..CRC].copy_from_slice(&(self.flags | stolen_ms << STOLEN_SHIFT).to_le_bytes());
        into[CRC..].copy_from_slice(&self.crc.to_le_bytes());
    }

    /// `None` if this is not the header of a packet of this recording.
    pub fn parse(bytes: &[u8; HEADER], uuid: &[u8; 16]) -> Option<Header> {
        let mut words = [0; 10];
        for (word, place) in words.iter_mut().zip(bytes[28..108].chunks_exact(8)) {
            *word = u64::from_le_bytes(place.try_into().ok()?);
        }
        let [
            begin_ns,
            end_ns,
            content,
            size,
            sequence,
            lost,
            untracked,
            skipped,
            activations,
            activations_before,
        ] = words;
        let is_ours = bytes[..4] == MAGIC && bytes[4..MARK] == *uuid && bytes[MARK..28] == [0; 8];
        let flags = u32_at(bytes, 108);
        let length = usize::try_from(size / 8).ok()?;
        let is_size = content == size && size % 8 == 0 && (HEADER..=MAX_PACKET).contains(&length);
        (is_ours && is_size && begin_ns <= end_ns).then_some(Header {
            begin_ns,
            end_ns,
            bytes: length,
            sequence,
            totals: Totals {
                lost,
                untracked,
                skipped,
                stolen: Duration::from_ns(u64::from(flags >> STOLEN_SHIFT) * MS),
            },
            activations,
            activations_before,
            flags: flags & FLAG_END,
            crc: u32_at(bytes, CRC),
        })
    }
}

/// The checksum of a packet: CRC-32 (IEEE 802.3) of its bytes, with zeros in place of the checksum itself.
pub fn checksum(packet: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(packet.get(..CRC).unwrap_or(packet));
    if let Some(events) = packet.get(HEADER..) {
        hasher.update(&[0; HEADER - CRC]);
        hasher.update(events);
    }
    hasher.finalize()
}

/// Whether a packet's checksum matches its bytes.
pub fn is_whole(packet: &[u8]) -> bool {
    packet.get(CRC..HEADER).is_some_and(|stored| *stored == checksum(packet).to_le_bytes())
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Numbers for the objects of calls; files have those of [`FileClass`].
const NOTHING: u8 = 0;
const CLOCK_RELATIVE: u8 = 32;
const CLOCK_ABSOLUTE: u8 = 33;
const ADDRESS: u8 = 34;
const ID: u8 = 35;
const OTHERS: u8 = 36;

/// An object as the `separator` event has it, without a name: class, number, object.
pub fn object_fields(object: Object) -> (u8, i32, u64) {
    match object {
        Object::None => (NOTHING, 0, 0),
        Object::Clock { id, absolute: false } => (CLOCK_RELATIVE, id, 0),
        Object::Clock { id, absolute: true } => (CLOCK_ABSOLUTE, id, 0),
        Object::File { class, fd, identity } => (class as u8, fd, identity),
        Object::Address { address, .. } => (ADDRESS, 0, address),
        Object::Id(id) => (ID, id, 0),
        Object::Others => (OTHERS, 0, 0),
    }
}

/// The separator with these fields, if there is one.
pub fn separator(call: u8, class: u8, number: i32, object: u64) -> Option<Separator> {
    let object = match class {
        NOTHING => Object::None,
        CLOCK_RELATIVE => Object::Clock { id: number, absolute: false },
        CLOCK_ABSOLUTE => Object::Clock { id: number, absolute: true },
        ADDRESS => Object::address(object),
        ID => Object::Id(number),
        OTHERS => Object::Others,
        _ => Object::File { class: FileClass::from_number(class)?, fd: number, identity: object },
    };
    Some(Separator { call: Call::from_number(call)?, object })
}

/// The number of what disturbed a release; 0 for nothing.
pub fn disturbance_number(disturbance: Option<Disturbance>) -> u8 {
    match disturbance {
        None => 0,
        Some(Disturbance::Signal) => 1,
        Some(Disturbance::Ending) => 2,
        Some(Disturbance::Stall) => 3,
    }
}

/// What disturbed a release, by number; `None` if there is no such number.
pub fn disturbance(number: u8) -> Option<Option<Disturbance>> {
    let all = [None, Some(Disturbance::Signal), Some(Disturbance::Ending), Some(Disturbance::Stall)];
    all.into_iter().find(|disturbance| disturbance_number(*disturbance) == number)
}
