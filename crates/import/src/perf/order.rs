//! Puts the records of a recording in the order of time: those of one file by the rounds that perf marks in
//! it, those of several files (`perf record --threads`, one per processor) by merging them.

use super::records::{Records, kind};
use linux_perf_data::PerfFile;
use linux_perf_data::linux_perf_event_reader::{
    Endianness, RawData, RawEventRecord, RecordParseInfo, RecordType,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// Bytes that await their order at most; a round with more is ended there.
const MOST_PENDING: usize = 256 << 20;

/// Records of one processor are in order but for those of interrupts within interrupts.
const NESTED: usize = 256;

/// How records are laid out, by the event that they belong to.
pub struct Layouts {
    all: Vec<RecordParseInfo>,
    by_id: FxHashMap<u64, usize>,
    are_same: bool,
}

impl Layouts {
    pub fn of(file: &PerfFile) -> Layouts {
        let attributes = file.event_attributes();
        let layout = |attribute: &linux_perf_data::AttributeDescription| {
            RecordParseInfo::new(attribute.attributes(), Endianness::LittleEndian)
        };
        let all: Vec<_> = attributes.iter().map(layout).collect();
        let mut by_id = FxHashMap::default();
        for (index, attribute) in attributes.iter().enumerate() {
            by_id.extend(attribute.ids().iter().map(|id| (*id, index)));
        }
        let are_same = all.iter().all(|layout| Some(layout) == all.first());
        Layouts { all, by_id, are_same }
    }

    /// The layout of a record. The number of its event is in the same place in all of them, of which the
    /// library has made sure.
    fn place(&self, kind: RecordType, body: &[u8]) -> usize {
        let (false, Some(first)) = (self.are_same, self.all.first()) else { return 0 };
        let id = RawEventRecord::new(kind, 0, RawData::Single(body), *first).id();
        id.and_then(|id| self.by_id.get(&id)).copied().unwrap_or(0)
    }
}

/// A record of the kernel, or one that perf made like those.
pub struct Event {
    file: usize,
    kind: RecordType,
    misc: u16,
    layout: usize,
    time: u64,
    body: Vec<u8>,
}

impl Event {
    /// The record as the library reads it.
    pub fn record<'a>(&'a self, layouts: &Layouts) -> Option<RawEventRecord<'a>> {
        let layout = *layouts.all.get(self.layout)?;
        Some(RawEventRecord::new(self.kind, self.misc, RawData::Single(&self.body), layout))
    }
}

/// Which records a file has, and what is known of their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of them: none is older than those of the round before the last one.
    Whole,
    /// The same, from a pipe. perf ends whatever it takes from the kernel with a round, so the last record of
    /// a whole pipe is one, or what perf says in the end (what was lost, names): samples behind it are of a
    /// round that is not all there.
    Piped,
    /// Those that perf made itself, beside files of processors.
    OfPerf,
    /// Those of one processor: the kernel has put them in order.
    OfProcessor,
}

/// One file's records, put in order.
pub struct Ordered {
    file: usize,
    records: Records,
    part: Part,
    layouts: Rc<Layouts>,
    /// In order; these are next.
    ready: VecDeque<Event>,
    /// In no order, and their bytes.
    pending: Vec<Event>,
    bytes: usize,
    /// The latest time in the rounds before this one, and in this one.
    before: u64,
    latest: u64,
    /// Bodies to be used again.
    spare: Vec<Vec<u8>>,
    /// Why nothing follows, where that is not the end of the file.
    broken: Option<String>,
    has_ended: bool,
    /// Whether samples came since the last round.
    is_in_round: bool,
    /// When the last sample is from.
    last_sample: u64,
    /// The processor of each of perf's buffers, as far as the file says.
    processors: Vec<(u64, u64)>,
}

impl Ordered {
    /// `file` tells it from the others.
    pub fn new(file: usize, records: Records, part: Part, layouts: Rc<Layouts>) -> Ordered {
        Ordered {
            file,
            records,
            part,
            layouts,
            ready: VecDeque::new(),
            pending: Vec::new(),
            bytes: 0,
            before: 0,
            latest: 0,
            spare: Vec::new(),
            broken: None,
            has_ended: false,
            is_in_round: false,
            last_sample: 0,
            processors: Vec::new(),
        }
    }

    /// When the next record is from, if there is one.
    fn next_time(&mut self) -> Option<u64> {
        while self.ready.is_empty() && !self.has_ended {
            self.read_on();
        }
        self.ready.front().map(|event| event.time)
    }

    fn read_on(&mut self) {
        let mut body = self.spare.pop().unwrap_or_default();
        match self.records.next(&mut body) {
            Ok(Some(head)) if head.kind == kind::ROUND => {
                self.is_in_round = false;
                self.end_round();
            }
            Ok(Some(head)) if head.kind == kind::ID_INDEX => {
                self.processors.extend(processors(&body));
                self.processors.sort_unstable();
                self.processors.dedup();
            }
            Ok(Some(head)) if head.kind < kind::FIRST_OF_PERF => {
                return self.take(RecordType(head.kind), head.misc, body);
            }
            Ok(Some(_)) => {}
            Ok(None) if self.part == Part::Piped && self.is_in_round => {
                let why = "it was cut off within a round of perf, or perf was killed";
                self.break_off(why.to_owned());
            }
            Ok(None) => self.end(),
            Err(why) => self.break_off(why),
        }
        self.spare.push(body);
    }

    fn take(&mut self, kind: RecordType, misc: u16, body: Vec<u8>) {
        let layout = self.layouts.place(kind, &body);
        let mut event = Event { file: self.file, kind, misc, layout, time: 0, body };
        event.time = match self.part {
            // What each event has lost, which perf asks for last.
            Part::OfPerf if kind == RecordType::LOST_SAMPLES => u64::MAX,
            _ => event.record(&self.layouts).and_then(|record| record.timestamp()).unwrap_or(0),
        };
        self.latest = self.latest.max(event.time);
        if kind == RecordType::SAMPLE {
            self.is_in_round = true;
            self.last_sample = self.last_sample.max(event.time);
        }
        self.bytes += event.body.len() + size_of::<Event>();
        self.pending.push(event);
        let is_full = self.bytes > MOST_PENDING;
        if is_full || self.part == Part::OfProcessor && self.pending.len() >= 2 * NESTED {
            self.end_round();
        }
    }

    /// What is not younger than the rounds before is in order now.
    fn end_round(&mut self) {
        self.hand_on(self.before);
        self.before = self.latest;
    }

    fn end(&mut self) {
        self.hand_on(u64::MAX);
        self.has_ended = true;
    }

    /// Nothing follows that can be read.
    fn break_off(&mut self, why: String) {
        self.broken = Some(why);
        // What is older may have been in what follows.
        if self.part != Part::OfProcessor {
            self.pending.clear();
        }
        self.end();
    }

    fn hand_on(&mut self, until: u64) {
        self.pending.sort_by_key(|event| event.time);
        let count = self.pending.partition_point(|event| event.time <= until);
        self.ready.extend(self.pending.drain(..count));
        self.bytes = self.pending.iter().map(|event| event.body.len() + size_of::<Event>()).sum();
    }
}

/// Buffers and their processors in a record that lists the numbers of events.
pub fn processors(body: &[u8]) -> Vec<(u64, u64)> {
    const ENTRY: usize = 32;
    let number = |entry: &[u8], at: usize| {
        entry.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let count = usize::try_from(number(body, 0)).unwrap_or(usize::MAX);
    let entries = body.get(8..).unwrap_or_default().chunks_exact(ENTRY).take(count);
    let mut processors: Vec<_> = entries.map(|entry| (number(entry, 8), number(entry, 16))).collect();
    processors.sort_unstable();
    processors.dedup();
    processors
}

/// What is next.
pub enum Next {
    Event(Event),
    /// This file cannot be read further than this byte.
    Broken {
        file: usize,
        at: u64,
        why: String,
    },
    End,
}

/// The records of all files, in the order of time.
pub struct Merged {
    files: Vec<Ordered>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
    is_begun: bool,
}

impl Merged {
    pub fn new(files: Vec<Ordered>) -> Merged {
        Merged { files, next: BinaryHeap::new(), is_begun: false }
    }

    /// How many bytes have been read.
    pub fn position(&self) -> u64 {
        self.files.iter().map(|file| file.records.at()).sum()
    }

    /// Each buffer of perf and its processor, as far as read records say; all ones are no processor.
    pub fn processors(&self) -> &[(u64, u64)] {
        self.files.first().map_or(&[], |file| &file.processors)
    }

    /// When the last sample of each file is from, as far as it was read.
    pub fn last_samples(&self) -> Vec<u64> {
        self.files.iter().map(|file| file.last_sample).collect()
    }

    /// Reads as far as it takes to know the first record of each file; of that of perf's own records, all.
    pub fn begin(&mut self) {
        if !std::mem::replace(&mut self.is_begun, true) {
            (0..self.files.len()).for_each(|file| self.look_at(file));
        }
    }

    pub fn next(&mut self) -> Next {
        self.begin();
        let Some(Reverse((_, file))) = self.next.pop() else { return Next::End };
        let of = &mut self.files[file];
        match (of.ready.pop_front(), &of.broken) {
            (Some(event), _) => {
                self.look_at(file);
                Next::Event(event)
            }
            (None, Some(why)) => Next::Broken { file, at: of.records.at(), why: why.clone() },
            (None, None) => Next::End,
        }
    }

    /// Takes an event back whose memory is to be used again.
    pub fn give_back(&mut self, event: Event) {
        if let Some(file) = self.files.get_mut(event.file) {
            file.spare.push(event.body);
        }
    }

    fn look_at(&mut self, file: usize) {
        let of = &mut self.files[file];
        let time = of.next_time().or_else(|| of.broken.as_ref().map(|_| of.latest));
        self.next.extend(time.map(|time| Reverse((time, file))));
    }
}
