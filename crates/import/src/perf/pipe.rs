//! What perf wrote to a pipe (`perf record -o -`): the header is in records in front of the others. They are
//! put where they are in a file.

use super::header::{EVENTS, TRACING_DATA};
use super::records::kind;
use super::source::Content;
use std::collections::BTreeMap;
use std::io;

/// Bytes of the header of such a file, and of that of a record.
const HEADER: u64 = 16;
const RECORD: u64 = 8;

/// Most bytes of all that is in front.
const MOST: u64 = 256 << 20;

/// Features have numbers below.
const FEATURES: u64 = 256;

/// Whether perf wrote it to a pipe.
pub fn is_one(file: &Content) -> bool {
    let mut size = [0; 8];
    file.read_exact_at(&mut size, 8).is_ok() && u64::from_le_bytes(size) == HEADER
}

/// What is in front of the first record of an event.
#[derive(Default)]
struct Front {
    /// Descriptions of events, and the numbers that their samples have.
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    features: BTreeMap<u64, Vec<u8>>,
    /// Records that files have among the others.
    records: Vec<u8>,
}

/// Whether a record of this kind begins what a file has as its data.
fn is_data(kind: u32) -> bool {
    kind < kind::FIRST_OF_PERF || [kind::ROUND, kind::COMPRESSED, kind::COMPRESSED_SIZED].contains(&kind)
}

/// The same as a file.
pub fn content(file: Content) -> Result<Content, String> {
    let bytes = file.length();
    let cut_off = |_: io::Error| "it is cut off before the first event".to_owned();
    let read = |at: u64, length: u64| -> io::Result<Vec<u8>> {
        let mut read = vec![0; length as usize];
        file.read_exact_at(&mut read, at).map(|()| read)
    };
    let (mut front, mut at) = (Front::default(), HEADER);
    loop {
        let head = read(at, RECORD).map_err(cut_off)?;
        let (kind, size) = (word(&head, 0), u64::from(word(&head, 4) >> 16));
        if size < RECORD || at > MOST {
            return Err(format!("byte {at}: no event follows what perf writes to a pipe in front of them"));
        }
        if is_data(kind) {
            break;
        }
        let body = read(at + RECORD, size - RECORD).map_err(cut_off)?;
        at += size;
        match kind {
            kind::TRACING_DATA => {
                // They come behind their record.
                let length = u64::from(word(&body, 0));
                if length > bytes.min(MOST) {
                    return Err(format!("byte {at}: descriptions of events cannot be {length} bytes long"));
                }
                front.features.insert(TRACING_DATA, read(at, length).map_err(cut_off)?);
                at += length;
            }
            kind::ATTRIBUTE => front.attribute(&body),
            kind::FEATURE => front.feature(&body),
            kind::ID_INDEX => front.records.extend([head, body].concat()),
            _ => {}
        }
    }
    let (head, tail) = front.ends(bytes - at);
    Ok(Content { place: file.place, head, part: at..bytes, tail })
}

impl Front {
    fn attribute(&mut self, body: &[u8]) {
        let length = (word(body, 4) as usize).min(body.len());
        let (attribute, numbers) = body.split_at(length);
        self.attributes.push((attribute.to_vec(), numbers[..numbers.len() / 8 * 8].to_vec()));
    }

    fn feature(&mut self, body: &[u8]) {
        let Some((number, data)) = body.split_first_chunk() else { return };
        let number = u64::from_le_bytes(*number);
        if number < FEATURES {
            self.features.insert(number, data.to_vec());
        }
    }

    /// The list of events as it is in a file. Nobody asks for their names.
    fn events(&self) -> Vec<u8> {
        const NAME: [u8; 12] = [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let longest = self.attributes.iter().map(|(attribute, _)| attribute.len()).max().unwrap_or(0);
        let mut bytes = [self.attributes.len() as u32, longest as u32].map(u32::to_le_bytes).concat();
        for (attribute, numbers) in &self.attributes {
            let end = bytes.len() + longest;
            bytes.extend(attribute);
            bytes.resize(end, 0);
            bytes.extend((numbers.len() as u32 / 8).to_le_bytes());
            bytes.extend(NAME);
            bytes.extend(numbers);
        }
        bytes
    }

    /// What a file has in front of this many bytes of records, and behind them.
    fn ends(mut self, rest: u64) -> (Vec<u8>, Vec<u8>) {
        const HEAD: u64 = 104;
        let data = self.records.len() as u64 + rest;
        self.features.insert(EVENTS, self.events());
        let mut flags = [0_u64; 4];
        self.features.keys().for_each(|number| flags[(number / 64) as usize] |= 1 << (number % 64));
        let sections = [HEAD, 80, HEAD, 0, HEAD, data, 0, 0];
        let numbers = sections.iter().chain(&flags).flat_map(|number| number.to_le_bytes());
        let head = b"PERFILE2".iter().copied().chain(numbers).chain(self.records).collect();
        let mut place = HEAD + data + 16 * self.features.len() as u64;
        let mut tail = Vec::new();
        for section in self.features.values() {
            tail.extend([place, section.len() as u64].map(u64::to_le_bytes).concat());
            place += section.len() as u64;
        }
        self.features.values().for_each(|section| tail.extend(section));
        (head, tail)
    }
}

/// A number of four bytes; 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
