//! The headers of a `trace.dat`, version 6 and 7 (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)): formats of
//! events, what is known of the machine, and where the data of each processor are.

use super::super::bytes::{Bytes, Cursor, Packing};
use super::super::tracepoints::{self, Format};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// How every trace.dat begins.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// More are damage.
const MOST_CPUS: u32 = 1 << 13;
const MOST_SECTIONS: usize = 10_000;
const MOST_BUFFERS: usize = 1_000;

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
    pub const KALLSYMS: u16 = 19;
}

/// The data of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub number: u32,
    pub offset: u64,
    pub size: u64,
    /// Whether they are packed.
    pub is_packed: bool,
    /// The buffer that they are of, by its place in the list.
    pub buffer: usize,
}

/// A ring buffer: the main one, or that of an instance (`trace-cmd record -B`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Empty for the main one.
    pub name: String,
    pub clock: String,
}

impl Buffer {
    /// A clock that is not named is ftrace's own.
    fn new(name: String, clock: String) -> Buffer {
        Buffer { name, clock: if clock.is_empty() { "local".to_owned() } else { clock } }
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The name of its buffer.
    buffer: String,
    pub cpu: u32,
    /// Handed to trace-cmd, and still to be.
    pub read: u64,
    pub entries: u64,
    /// Written over by later ones.
    pub overrun: u64,
    /// Left out, for there was no room.
    pub dropped: u64,
}

impl Statistics {
    /// Of the text; `None` if it does not say of which processor.
    fn parse(text: &str, buffer: &str) -> Option<Statistics> {
        let lines = || text.lines().filter_map(|line| line.split_once(':'));
        let number = |name: &str| {
            let mut values = lines().filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
            values.next().and_then(|value| value.parse::<u64>().ok())
        };
        Some(Statistics {
            buffer: buffer.to_owned(),
            cpu: u32::try_from(number("CPU")?).ok()?,
            read: number("read events").unwrap_or(0),
            entries: number("entries").unwrap_or(0),
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
    pub uname: String,
    pub version: String,
    pub buffers: Vec<Buffer>,
    /// Those of all buffers.
    pub cpus: Vec<Cpu>,
    /// Events whose number has no format.
    pub undescribed: Cell<u64>,
    /// What is left out.
    pub notes: Vec<String>,
    /// What the kernel said of the ring buffers when the recording ended.
    statistics: Vec<Statistics>,
    /// The buffer that the statistics are of which follow.
    current: String,
    /// The clock of a buffer that does not name one.
    clock: String,
    /// Where the kernel's symbols are: their section, or their bytes.
    symbols: Option<Symbols>,
    /// Bytes of sections so far, unpacked.
    unpacked: u64,
    /// Options of which there is one, as far as they have been read.
    been: HashSet<u16>,
    /// Where the last of its sections ends.
    end: u64,
}

/// Where the kernel's symbols are.
#[derive(Clone, Copy, Debug)]
enum Symbols {
    Section(u64),
    Bytes(u64, u64),
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
        uname: String::new(),
        version: String::new(),
        buffers: Vec::new(),
        cpus: Vec::new(),
        undescribed: Cell::new(0),
        notes: Vec::new(),
        statistics: Vec::new(),
        current: String::new(),
        clock: String::new(),
        symbols: None,
        unpacked: 0,
        been: HashSet::new(),
        end: 0,
    };
    match version.as_str() {
        "6" => header.read_6(&mut cursor, bytes)?,
        "7" => header.read_7(&mut cursor, bytes)?,
        other => return Err(format!("version {other} of the format is not read here: 6 and 7 are")),
    }
    check_cpus(&header.cpus, bytes.length())?;
    Ok(header)
}

impl Header {
    fn read_6(&mut self, cursor: &mut Cursor, bytes: &Bytes) -> Result<(), String> {
        self.header_info(cursor)?;
        let count = cursor.word()?;
        for _ in 0..count {
            let length = cursor.long()?;
            cursor.skip(length)?;
        }
        self.event_formats(cursor)?;
        // Symbols, formats of printk, names of processes.
        let length = cursor.word()?;
        self.symbols = Some(Symbols::Bytes(cursor.at, length.into()));
        cursor.skip(length.into())?;
        let length = cursor.word()?;
        cursor.skip(length.into())?;
        let length = cursor.long()?;
        cursor.skip(length)?;
        let cpus = count_of_cpus(cursor.word()?)?;
        let instances = self.buffer_6(cursor, cpus, String::new())?;
        for instance in instances {
            self.instance_6(&instance, cpus, bytes)?;
        }
        Ok(())
    }

    /// A buffer's options, and where its data are. Returns the options that tell of instances.
    fn buffer_6(&mut self, cursor: &mut Cursor, cpus: u32, name: String) -> Result<Vec<Vec<u8>>, String> {
        let mut instances = Vec::new();
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
                    option::BUFFER if instances.len() < MOST_BUFFERS => instances.push(data),
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
        let buffer = self.buffers.len();
        for number in 0..cpus {
            let (offset, size) = (cursor.long()?, cursor.long()?);
            self.add(Cpu { number, offset, size, is_packed: false, buffer })?;
        }
        let clock = clock_6(cursor).unwrap_or_else(|| self.clock.clone());
        self.buffers.push(Buffer::new(name, clock));
        Ok(instances)
    }

    /// The buffer of an instance, by its option: where it is, its name, and how many processors it has if
    /// they are not as many as in the main one.
    fn instance_6(&mut self, option: &[u8], cpus: u32, bytes: &Bytes) -> Result<(), String> {
        let at = long(option);
        let mut parts = option.get(8..).unwrap_or_default().splitn(2, |byte| *byte == 0);
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        if at == 0 {
            // It was never written.
            return Ok(());
        }
        let own = parts.next().and_then(|rest| rest.first_chunk()).map(|count| u32::from_le_bytes(*count));
        let cpus = count_of_cpus(own.unwrap_or(cpus))?;
        self.buffer_6(&mut Cursor::new(bytes, at), cpus, name).map(|_| ())
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
            option::BUFFER => self.buffer_7(data, bytes)?,
            option::KALLSYMS => self.symbols = Some(Symbols::Section(long(&data))),
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
        self.end = self.end.max(cursor.at.saturating_add(size));
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

    fn add(&mut self, cpu: Cpu) -> Result<(), String> {
        self.cpus.push(cpu);
        count_of_cpus(self.cpus.len() as u32).map(|_| ())
    }

    /// The data of a buffer.
    fn buffer_7(&mut self, data: Vec<u8>, bytes: &Bytes) -> Result<(), String> {
        let data = Bytes::Memory(data);
        let mut cursor = Cursor::new(&data, 0);
        let (section, name, clock) = (cursor.long()?, cursor.text()?, cursor.text()?);
        let called = if name.is_empty() { "the main buffer".to_owned() } else { format!("buffer {name}") };
        if self.buffers.iter().any(|buffer| buffer.name == name) {
            return Err(format!("{called} is listed twice"));
        }
        if self.buffers.len() >= MOST_BUFFERS {
            return Err(format!("it has more than {MOST_BUFFERS} buffers"));
        }
        let page = cursor.word()?;
        let count = count_of_cpus(cursor.word()?)?;
        if page as usize != self.layout.page && count > 0 {
            let size = self.layout.page;
            return Err(format!("page size {page} of {called} is not {size}, that of the file"));
        }
        let mut head = Cursor::new(bytes, section);
        let (_, flags, _, size) = (head.half()?, head.half()?, head.word()?, head.long()?);
        self.end = self.end.max(head.at.saturating_add(size));
        let (is_packed, buffer) = (flags & 1 != 0, self.buffers.len());
        for _ in 0..count {
            let (number, offset, size) = (cursor.word()?, cursor.long()?, cursor.long()?);
            self.add(Cpu { number, offset, size, is_packed, buffer })?;
        }
        self.buffers.push(Buffer::new(name, clock));
        Ok(())
    }

    /// Options that both versions have.
    fn option(&mut self, id: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        match id {
            // All that there are; the one in use in brackets.
            option::TRACECLOCK if self.clock.is_empty() => {
                let text = text();
                self.clock = chosen(&text).unwrap_or(text);
            }
            option::CPUSTAT => {
                let text = text();
                // Those of the main buffer come first, without a name.
                if let Some(name) = text.strip_prefix("Buffer:") {
                    self.current = name.trim().to_owned();
                }
                let is_new = self.statistics.len() < MOST_CPUS as usize;
                self.statistics.extend(Statistics::parse(&text, &self.current).filter(|_| is_new));
            }
            option::UNAME => self.uname = text(),
            option::VERSION => self.version = text().split(' ').next().unwrap_or_default().to_owned(),
            option::OFFSET => self.note("an offset of times (trace-cmd record --ts-offset)"),
            option::TIME_SHIFT => self.note("corrections of times between host and guest"),
            _ => {}
        }
    }

    fn note(&mut self, what: &str) {
        if !self.notes.iter().any(|note| note == what) {
            self.notes.push(what.to_owned());
        }
    }

    /// What the kernel said of a processor's ring buffer.
    pub fn statistics(&self, cpu: &Cpu) -> Option<&Statistics> {
        let name = &self.buffers.get(cpu.buffer)?.name;
        self.statistics.iter().find(|it| it.cpu == cpu.number && it.buffer == *name)
    }

    /// Where another file of this kind begins behind this one, as where one was appended to it.
    pub fn second(&self, bytes: &Bytes) -> Option<u64> {
        // Sections that no option names, of strings, say, may follow.
        const MOST_BETWEEN: usize = 100;
        let mut at = self.cpus.iter().map(|cpu| cpu.offset.saturating_add(cpu.size)).fold(self.end, u64::max);
        for _ in 0..MOST_BETWEEN {
            if bytes.read(at, MAGIC.len() as u64).ok()? == MAGIC {
                return Some(at);
            }
            let mut cursor = Cursor::new(bytes, at.checked_add(8)?);
            at = cursor.long().ok()?.checked_add(cursor.at)?;
        }
        None
    }

    /// The machine, by the kernel's symbols, as uname(1) names it: `trace-cmd split` keeps them only.
    pub fn machine_by_symbols(&mut self, bytes: &Bytes) -> Option<&'static str> {
        let symbols = match self.symbols? {
            Symbols::Section(at) => self.section(bytes, at).ok()?,
            Symbols::Bytes(at, length) => bytes.read(at, length).ok()?,
        };
        symbols.split(|byte| *byte == b'\n').find_map(|line| {
            let name = line.rsplit(|byte| *byte == b' ').next()?;
            let of = |prefix: &[u8]| name.starts_with(prefix);
            (of(b"__x64_sys_").then_some("x86_64")).or(of(b"__arm64_sys_").then_some("aarch64"))
        })
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

/// The clock that is named behind a table of data, in brackets.
fn clock_6(cursor: &mut Cursor) -> Option<String> {
    const LONGEST: u64 = 256;
    let length = cursor.long().ok().filter(|length| *length <= LONGEST)?;
    let text = cursor.take(length).ok()?;
    let text = String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned();
    chosen(&text)
}

/// The one in brackets.
fn chosen(text: &str) -> Option<String> {
    let (clock, _) = text.split_once('[')?.1.split_once(']')?;
    Some(clock.to_owned())
}

fn count_of_cpus(count: u32) -> Result<u32, String> {
    match count <= MOST_CPUS {
        true => Ok(count),
        false => Err(format!("it has data of {count} processors, more than {MOST_CPUS}")),
    }
}

/// Whether each processor is listed once, with data of its own that lie within a file of this length.
fn check_cpus(cpus: &[Cpu], length: u64) -> Result<(), String> {
    let mut numbers = HashSet::new();
    if let Some(cpu) = cpus.iter().find(|cpu| !numbers.insert((cpu.buffer, cpu.number))) {
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
