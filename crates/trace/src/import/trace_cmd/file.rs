//! The headers of a `trace.dat`, version 6 and 7 (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)): formats of
//! events, what is known of the machine, and where the data of each processor are.

use super::super::tracepoints::{self, Format};
use super::bytes::{Bytes, Cursor, Packing};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// How every trace.dat begins.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// More are damage.
const MOST_CPUS: u32 = 1 << 13;
const MOST_SECTIONS: usize = 10_000;

/// Most bytes of all sections together, unpacked.
const MOST_UNPACKED: u64 = 256 << 20;

/// Options of either version.
mod option {
    pub const DONE: u16 = 0;
    pub const CPUSTAT: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const OFFSET: u16 = 7;
    pub const VERSION: u16 = 9;
    pub const TIME_SHIFT: u16 = 12;
    pub const HEADER_INFO: u16 = 16;
    pub const EVENT_FORMATS: u16 = 18;
}

/// The data of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub number: u32,
    pub offset: u64,
    pub size: u64,
}

/// How pages of the ring buffer are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub page: usize,
    /// Bytes of the field that says how much of a page is used.
    pub commit: usize,
    /// Where the events begin.
    pub data: usize,
}

/// What became of the events of a processor (`per_cpu/cpuN/stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub cpu: u32,
    /// Written over by later ones.
    pub overrun: u64,
    /// Left out, for there was no room.
    pub dropped: u64,
}

impl Statistics {
    /// Of the text; `None` if it does not say of which processor.
    fn parse(text: &str) -> Option<Statistics> {
        let lines = || text.lines().filter_map(|line| line.split_once(':'));
        let number = |name: &str| {
            let mut values = lines().filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
            values.next().and_then(|value| value.parse::<u64>().ok())
        };
        Some(Statistics {
            cpu: u32::try_from(number("CPU")?).ok()?,
            overrun: number("overrun").unwrap_or(0),
            dropped: number("dropped events")
                .unwrap_or(0)
                .saturating_add(number("commit overrun").unwrap_or(0)),
        })
    }
}

/// Everything but the events.
pub struct Header {
    pub formats: HashMap<u16, Format>,
    pub layout: Layout,
    pub packing: Packing,
    /// Whether the data of processors are packed.
    pub is_packed: bool,
    pub clock: String,
    pub uname: String,
    pub version: String,
    pub cpus: Vec<Cpu>,
    /// Events whose number has no format.
    pub undescribed: Cell<u64>,
    /// What the kernel said of the ring buffers of the main instance when the recording ended.
    pub statistics: Vec<Statistics>,
    /// What is left out.
    pub notes: Vec<&'static str>,
    /// Whether the statistics that follow are of another instance.
    is_of_instance: bool,
    /// Bytes of sections so far, unpacked.
    unpacked: u64,
    /// Options of which there is one, as far as they have been read.
    been: HashSet<u16>,
}

/// Reads the headers.
pub fn header(bytes: &Bytes) -> Result<Header, String> {
    let mut cursor = Cursor::new(bytes, MAGIC.len() as u64);
    let version = cursor.text()?;
    if cursor.byte()? != 0 {
        return Err("it was recorded on a big-endian machine, whose events cannot be read here".to_owned());
    }
    cursor.byte()?;
    let page = cursor.word()?;
    if !page.is_power_of_two() || !(512..=1 << 20).contains(&page) {
        return Err(format!("page size {page} is invalid"));
    }
    let mut header = Header {
        formats: HashMap::new(),
        layout: Layout { page: page as usize, commit: 8, data: 16 },
        packing: Packing::None,
        is_packed: false,
        clock: String::new(),
        uname: String::new(),
        version: String::new(),
        cpus: Vec::new(),
        undescribed: Cell::new(0),
        statistics: Vec::new(),
        is_of_instance: false,
        notes: Vec::new(),
        unpacked: 0,
        been: HashSet::new(),
    };
    match version.as_str() {
        "6" => header.read_6(&mut cursor)?,
        "7" => header.read_7(&mut cursor, bytes)?,
        other => return Err(format!("version {other} of the format is not read here: 6 and 7 are")),
    }
    check_cpus(&header.cpus, bytes.length())?;
    Ok(header)
}

impl Header {
    fn read_6(&mut self, cursor: &mut Cursor) -> Result<(), String> {
        self.header_info(cursor)?;
        let count = cursor.word()?;
        for _ in 0..count {
            let length = cursor.long()?;
            cursor.skip(length)?;
        }
        self.event_formats(cursor)?;
        // Symbols, formats of printk, names of processes.
        for _ in 0..2 {
            let length = cursor.word()?;
            cursor.skip(length.into())?;
        }
        let length = cursor.long()?;
        cursor.skip(length)?;
        let cpus = count_of_cpus(cursor.word()?)?;
        let mut kind = cursor.take(10)?;
        if kind == b"options  \0" {
            loop {
                let id = cursor.half()?;
                if id == option::DONE {
                    break;
                }
                let length = cursor.word()?;
                let data = cursor.take(length.into())?;
                match id {
                    option::BUFFER => self.note("buffers of instances"),
                    _ => self.option(id, &data),
                }
            }
            kind = cursor.take(10)?;
        }
        if kind != b"flyrecord\0" {
            return Err(
                "it has no events as they were recorded, only text (trace-cmd record has them)".to_owned()
            );
        }
        for number in 0..cpus {
            let (offset, size) = (cursor.long()?, cursor.long()?);
            self.cpus.push(Cpu { number, offset, size });
        }
        Ok(())
    }

    fn read_7(&mut self, cursor: &mut Cursor, bytes: &Bytes) -> Result<(), String> {
        let (name, _) = (cursor.text()?, cursor.text()?);
        let unknown =
            || format!("it is packed with {name}, which is not read here; record with --compression none");
        self.packing = Packing::from_name(&name).ok_or_else(unknown)?;
        let mut next = cursor.long()?;
        let mut been = HashSet::new();
        while next != 0 {
            if !been.insert(next) || been.len() > MOST_SECTIONS {
                return Err(format!("byte {next}: the option sections form a loop, or are too many"));
            }
            let section = self.section(bytes, next)?;
            let options = Bytes::Memory(section);
            let mut cursor = Cursor::new(&options, 0);
            next = loop {
                let (id, length) = (cursor.half()?, cursor.word()?);
                let data = cursor.take(length.into())?;
                if id == option::DONE {
                    break long(&data);
                }
                self.option_7(id, data, bytes)?;
            };
        }
        Ok(())
    }

    fn option_7(&mut self, id: u16, data: Vec<u8>, bytes: &Bytes) -> Result<(), String> {
        match id {
            option::HEADER_INFO => {
                self.only_once(id, "the description of pages")?;
                let section = Bytes::Memory(self.section(bytes, long(&data))?);
                self.header_info(&mut Cursor::new(&section, 0))?;
            }
            option::EVENT_FORMATS => {
                self.only_once(id, "the section of event formats")?;
                let section = Bytes::Memory(self.section(bytes, long(&data))?);
                self.event_formats(&mut Cursor::new(&section, 0))?;
            }
            option::BUFFER => self.buffer(data, bytes)?,
            _ => self.option(id, &data),
        }
        Ok(())
    }

    /// An error if an option of this kind has been read.
    fn only_once(&mut self, id: u16, what: &str) -> Result<(), String> {
        if self.been.insert(id) { Ok(()) } else { Err(format!("{what} is listed twice")) }
    }

    /// The contents of a section, unpacked.
    fn section(&mut self, bytes: &Bytes, at: u64) -> Result<Vec<u8>, String> {
        let mut cursor = Cursor::new(bytes, at);
        let (_, flags, _, size) = (cursor.half()?, cursor.half()?, cursor.word()?, cursor.long()?);
        if flags & 1 == 0 {
            self.count_unpacked(size)?;
            return cursor.take(size);
        }
        let (packed, length) = (cursor.word()?, cursor.word()?);
        self.count_unpacked(length.into())?;
        let packed = cursor.take(packed.into())?;
        self.packing
            .unpack(&packed, length.into())
            .map_err(|why| format!("byte {at}: a packed section: {why}"))
    }

    fn count_unpacked(&mut self, length: u64) -> Result<(), String> {
        self.unpacked = self.unpacked.saturating_add(length);
        match self.unpacked <= MOST_UNPACKED {
            true => Ok(()),
            false => Err(format!("its headers have more than {} MiB", MOST_UNPACKED >> 20)),
        }
    }

    /// The data of a buffer: of the main one.
    fn buffer(&mut self, data: Vec<u8>, bytes: &Bytes) -> Result<(), String> {
        let data = Bytes::Memory(data);
        let mut cursor = Cursor::new(&data, 0);
        let (section, name, clock) = (cursor.long()?, cursor.text()?, cursor.text()?);
        if !name.is_empty() {
            self.note("buffers of instances");
            return Ok(());
        }
        self.only_once(option::BUFFER, "the main buffer")?;
        self.clock = clock;
        let page = cursor.word()?;
        if page as usize != self.layout.page {
            return Err(format!(
                "page size {page} of the buffer is not {}, that of the file",
                self.layout.page
            ));
        }
        for _ in 0..count_of_cpus(cursor.word()?)? {
            let (number, offset, size) = (cursor.word()?, cursor.long()?, cursor.long()?);
            self.cpus.push(Cpu { number, offset, size });
        }
        let mut flags = Cursor::new(bytes, section);
        flags.half()?;
        self.is_packed = flags.half()? & 1 != 0;
        Ok(())
    }

    /// Options that both versions have.
    fn option(&mut self, id: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        match id {
            // All that there are; the one in use in brackets.
            option::TRACECLOCK if self.clock.is_empty() => {
                let text = text();
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = chosen.map_or(text.clone(), |(clock, _)| clock.to_owned());
            }
            option::CPUSTAT => {
                let text = text();
                // Those of the main buffer come first, without a name.
                self.is_of_instance |= text.starts_with("Buffer:");
                let is_new = self.statistics.len() < MOST_CPUS as usize;
                let of_main = Statistics::parse(&text).filter(|_| is_new && !self.is_of_instance);
                self.statistics.extend(of_main);
            }
            option::UNAME => self.uname = text(),
            option::VERSION => self.version = text().split(' ').next().unwrap_or_default().to_owned(),
            option::OFFSET => self.note("an offset of times (trace-cmd record --ts-offset)"),
            option::TIME_SHIFT => self.note("corrections of times between host and guest"),
            _ => {}
        }
    }

    fn note(&mut self, what: &'static str) {
        if !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }

    fn header_info(&mut self, cursor: &mut Cursor) -> Result<(), String> {
        let mut part = |name: &[u8]| -> Result<String, String> {
            if cursor.take(name.len() as u64)? != name {
                return Err(format!("byte {}: the description of pages should be here", cursor.at));
            }
            let length = cursor.long()?;
            Ok(String::from_utf8_lossy(&cursor.take(length)?).into_owned())
        };
        let (page, event) = (part(b"header_page\0")?, part(b"header_event\0")?);
        let (commit, data) = (tracepoints::place(&page, "commit"), tracepoints::place(&page, "data"));
        match (commit, data) {
            (Some((8, commit)), Some((data, _)))
                if matches!(commit, 4 | 8) && (8 + commit..=64).contains(&data) =>
            {
                (self.layout.commit, self.layout.data) = (commit, data);
            }
            _ => return Err("its pages have a layout that is not known here".to_owned()),
        }
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = event.lines().map(words).collect();
        let known = ["type_len : 5 bits", "time_delta : 27 bits", "data max type_len == 28"];
        if !known.iter().all(|line| lines.iter().any(|other| other == line)) {
            return Err("its events have a layout that is not known here".to_owned());
        }
        Ok(())
    }

    fn event_formats(&mut self, cursor: &mut Cursor) -> Result<(), String> {
        for _ in 0..cursor.word()? {
            cursor.text()?;
            for _ in 0..cursor.word()? {
                let length = cursor.long()?;
                self.formats.extend(tracepoints::formats(&cursor.take(length)?));
            }
        }
        Ok(())
    }
}

fn count_of_cpus(count: u32) -> Result<u32, String> {
    match count <= MOST_CPUS {
        true => Ok(count),
        false => Err(format!("it has {count} processors, more than {MOST_CPUS}")),
    }
}

/// Whether each processor is listed once, with data of its own that lie within a file of this length.
fn check_cpus(cpus: &[Cpu], length: u64) -> Result<(), String> {
    let mut numbers = HashSet::new();
    if let Some(cpu) = cpus.iter().find(|cpu| !numbers.insert(cpu.number)) {
        return Err(format!("processor {} is listed twice", cpu.number));
    }
    if let Some(cpu) = cpus.iter().find(|cpu| cpu.offset.saturating_add(cpu.size) > length) {
        return Err(format!(
            "the file is truncated: the data of processor {} end beyond it; copy it again",
            cpu.number
        ));
    }
    let mut by_place: Vec<&Cpu> = cpus.iter().filter(|cpu| cpu.size > 0).collect();
    by_place.sort_by_key(|cpu| cpu.offset);
    match by_place.windows(2).find(|pair| pair[0].offset + pair[0].size > pair[1].offset) {
        None => Ok(()),
        Some(pair) => {
            Err(format!("the data of processors {} and {} overlap", pair[0].number, pair[1].number))
        }
    }
}

/// A number of eight bytes; 0 of fewer.
fn long(data: &[u8]) -> u64 {
    data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
