//! The events of one packet, as bytes.

use super::layout::{HEADER, MAX_SHORT_TEXT, NOTE, OBSERVATION_END};
use crate::Ready;
use rustc_hash::FxHashMap;

/// The events of one packet, after room for its header.
pub struct Packet {
    pub bytes: Vec<u8>,
    pub begin_ns: u64,
    /// Timestamp of the last event.
    pub end_ns: u64,
    pub activations: u64,
    /// Numbers of separators, by their fields in two words: faster to hash than a separator.
    pub separators: FxHashMap<(u64, u64), u16>,
    /// Those with what was ready.
    pub with_ready: FxHashMap<(u64, u64, Ready), u16>,
}

impl Packet {
    /// An empty packet in this buffer.
    pub fn new(bytes: Vec<u8>) -> Packet {
        let mut packet = Packet {
            bytes,
            begin_ns: 0,
            end_ns: 0,
            activations: 0,
            separators: FxHashMap::default(),
            with_ready: FxHashMap::default(),
        };
        packet.clear();
        packet
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        self.activations = 0;
        self.separators.clear();
        self.with_ready.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER
    }

    /// Adds the end of the observation, and what is to be known of the recording as a whole.
    pub fn add_end(&mut self, notes: &[String], until_ns: u64, at_ns: u64) {
        if self.is_empty() {
            self.begin_ns = at_ns;
        }
        self.end_ns = at_ns;
        for note in notes {
            self.put(at_ns, NOTE, &[]);
            self.text(note, MAX_SHORT_TEXT);
        }
        self.put(at_ns, OBSERVATION_END, &(at_ns - until_ns).to_le_bytes());
    }

    pub fn put(&mut self, at_ns: u64, event: u8, fields: &[u8]) {
        self.bytes.push(event);
        self.bytes.extend_from_slice(&(at_ns as u32).to_le_bytes());
        self.bytes.extend_from_slice(fields);
    }

    /// A text ends at its first NUL, so NULs inside are dropped.
    pub fn text(&mut self, text: &str, most: usize) {
        let mut end = text.len().min(most);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = text.as_bytes()[..end].iter().copied();
        self.bytes.extend(bytes.filter(|byte| *byte != 0));
        self.bytes.push(0);
    }
}
