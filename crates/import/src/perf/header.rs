//! The header of a perf.data file, looked at before the library reads it: it takes the sizes that stand there
//! at their word.

use super::source::Content;
use std::io;
use std::ops::Range;

/// How files begin.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

/// Where the sections and the flags of features are in the header.
const SECTIONS: [u64; 3] = [24, 40, 56];
const DATA: u64 = 40;
const FLAGS: u64 = 72;

/// What to do about a file that is not whole.
const WHOLE: &str = "copy all of it, or run perf record to its end (Ctrl-C ends it well)";

/// Where things are in a file.
pub struct Places {
    /// The records.
    pub data: Range<u64>,
    /// Where another recording begins behind this one, as where one was appended to it.
    pub second: Option<u64>,
}

/// Where things are; or says what of the file lies outside of it, or is impossible.
pub fn check(file: &Content) -> Result<Places, String> {
    let bytes = file.length();
    let number = |at: u64| {
        let mut number = [0; 8];
        file.read_exact_at(&mut number, at).map(|()| u64::from_le_bytes(number))
    };
    let cut_off = |_: io::Error| format!("it is cut off in its header; {WHOLE}");
    let within = |at: u64, what: &str| -> Result<(u64, u64), String> {
        let (offset, size) = (number(at).map_err(cut_off)?, number(at + 8).map_err(cut_off)?);
        let end = offset.checked_add(size).filter(|end| *end <= bytes);
        end.map(|_| (offset, size)).ok_or_else(|| {
            let why = "it was cut short, or perf was killed before it finished";
            format!("byte {at}: {what} does not lie within the file: {why}; {WHOLE}")
        })
    };
    for at in SECTIONS {
        within(at, "a section")?;
    }
    let attribute = number(16).map_err(cut_off)?;
    if !(64..=4096).contains(&attribute) {
        return Err(format!("byte 16: descriptions of events cannot be {attribute} bytes long"));
    }
    // Where perf was interrupted, the size of the data was not written.
    let (offset, size) = within(DATA, "the data")?;
    if size == 0 {
        return Err(format!(
            "perf was killed while it recorded, before it wrote where its data end; {WHOLE}"
        ));
    }
    let data = offset..offset + size;
    let (mut place, mut last) = (data.end, data.end);
    // Each of them is read into memory.
    let mut all = 0_u64;
    let mut has_events = false;
    for feature in 0..256 {
        if number(FLAGS + 8 * (feature / 64)).map_err(cut_off)? >> (feature % 64) & 1 == 0 {
            continue;
        }
        let (offset, size) = within(place, "a section")?;
        all += size;
        last = last.max(offset + size);
        if all > bytes {
            return Err(format!("byte {place}: the sections are larger than the file"));
        }
        has_events |= feature == EVENTS;
        let (name, right) = match feature {
            HOST..=ARCHITECTURE => ("a text", text(file, offset, size)),
            EVENTS => ("the list of events", events(file, offset, size)),
            _ => ("", Ok(true)),
        };
        if !right.map_err(cut_off)? {
            return Err(format!("byte {offset}: {name} does not lie within its section"));
        }
        place += 16;
    }
    if !has_events {
        return Err("it does not say which events it has".to_owned());
    }
    let mut magic = [0; 8];
    let last = last.max(place);
    let is_followed = file.read_exact_at(&mut magic, last).is_ok() && &magic == MAGIC;
    Ok(Places { data, second: is_followed.then_some(last) })
}

/// Features whose content is read: the descriptions of tracepoints, texts of the machine, and what was
/// recorded.
pub const TRACING_DATA: u64 = 1;
const HOST: u64 = 3;
const ARCHITECTURE: u64 = 6;
pub const EVENTS: u64 = 12;

fn word(file: &Content, at: u64) -> io::Result<u64> {
    let mut word = [0; 4];
    file.read_exact_at(&mut word, at).map(|()| u64::from(u32::from_le_bytes(word)))
}

/// Whether a text with its length in front fits.
fn text(file: &Content, offset: u64, size: u64) -> io::Result<bool> {
    Ok(size >= 4 && word(file, offset)? <= size - 4)
}

/// Whether each event has room for its description, its name and its numbers.
fn events(file: &Content, offset: u64, size: u64) -> io::Result<bool> {
    let end = offset + size;
    let (count, attribute) = (word(file, offset)?, word(file, offset + 4)?);
    let mut at = offset + 8;
    if attribute < 64 || count.saturating_mul(attribute) > size {
        return Ok(false);
    }
    for _ in 0..count {
        let numbers = word(file, at + attribute)?;
        let name = word(file, at + attribute + 4)?;
        at += attribute + 8 + name + 8 * numbers;
        if at > end {
            return Ok(false);
        }
    }
    Ok(true)
}
