//! All traces of a folder, their events merged by time.

use super::copies::{self, Copied};
use super::find::{self, Found};
use super::nodes::{State, Value};
use super::packets::{Cursor, Head, Span};
use super::plan::{Class, Field, Plan};
use crate::Error;
use punctual_model::Instant;
use punctual_trace::damage::{Damage, Damages};
use punctual_trace::source::{Source, Stream};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes that all streams together keep of their files, and one.
const MOST_WINDOWS: usize = 64 << 20;
const MOST_WINDOW: usize = 128 << 10;
const LEAST_WINDOW: usize = 8 << 10;

/// A folder of traces that is read, as often as wanted.
pub struct Reader {
    folder: PathBuf,
    plans: Vec<Plan>,
    classes: Vec<Class>,
    /// What tells the session of each trace.
    sessions: Vec<(usize, u32)>,
    /// Each with the index of its trace.
    streams: Vec<(usize, Stream)>,
    /// Names of streams that were there once, each with the index of its trace.
    missing: Vec<(usize, String)>,
    /// Folders or files that were left out.
    copies: Vec<Copied>,
}

/// An event.
pub struct Event<'a> {
    /// By the clock of the first trace.
    pub at: Instant,
    /// Index among [`Reader::classes`].
    pub class: usize,
    /// The processor, where the packet says it.
    pub cpu: Option<u32>,
    state: &'a State,
    bytes: &'a [u8],
}

impl<'a> Event<'a> {
    #[inline]
    fn value(&self, field: Option<Field>) -> Value {
        field.and_then(|field| self.state.values.get(field.0)).copied().unwrap_or_default()
    }

    /// A number; a negative one as its two's complement.
    #[inline]
    pub fn unsigned(&self, field: Option<Field>) -> Option<u64> {
        match self.value(field) {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => Some(value as u64),
            _ => None,
        }
    }

    /// A number.
    #[inline]
    pub fn signed(&self, field: Option<Field>) -> Option<i64> {
        self.unsigned(field).map(|value| value as i64)
    }

    /// The bytes of a string or of an array of bytes.
    #[inline]
    pub fn bytes(&self, field: Option<Field>) -> Option<&'a [u8]> {
        match self.value(field) {
            Value::Bytes(from, length) => self.bytes.get(from..from + length),
            _ => None,
        }
    }

    /// A string, up to its zero.
    pub fn text(&self, field: Option<Field>) -> Option<String> {
        let bytes = self.bytes(field)?;
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// Something is missing from one stream; it is given where that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When its last event before was.
    pub at: Instant,
    /// When its events go on; or `u64::MAX` ns.
    pub until: Instant,
    /// In which trace.
    pub trace: usize,
    /// Events that the tracer discarded.
    pub events: u64,
    /// Packets that are missing or damaged.
    pub packets: u64,
}

impl Lost {
    /// A stream that is not there at all.
    fn of_stream(trace: usize) -> Lost {
        Lost { at: Instant::from_ns(0), until: Instant::from_ns(u64::MAX), trace, events: 0, packets: 1 }
    }
}

/// A stream of packets, of one processor and channel: in one file, or in several.
#[derive(Clone, Debug)]
pub struct Extent {
    /// In which trace.
    pub trace: usize,
    /// The name of its first file.
    pub name: String,
    /// When its first packet begins, if that is known.
    pub begin: Option<Instant>,
    /// Whether packets before that one are missing: it was written over, as in a snapshot.
    pub is_cut: bool,
    /// When its last packet ends that was opened, if that is known.
    pub end: Option<Instant>,
}

/// What a reader yields, in order of time.
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// A gap.
    Lost(Lost),
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Events that were given.
    pub events: u64,
    /// Events that the tracer discarded.
    pub discarded: u64,
    /// Packets that are missing or damaged, in whole or in part.
    pub packets: u64,
    /// What is damaged, one by one as far as it is not too much.
    pub damages: Vec<Damage>,
    /// All streams.
    pub extents: Vec<Extent>,
    /// Folders or files that were left out.
    pub copies: Vec<Copied>,
    /// Files of one stream that overlap in time, in pairs: two snapshots of a session, say.
    pub overlaps: Vec<(String, String)>,
}

impl Totals {
    /// Says what is there twice.
    pub fn say_copies(&self, mut say: impl FnMut(String)) {
        for Copied { copy, of, is_shorter } in &self.copies {
            let shorter = if *is_shorter { "shorter " } else { "" };
            say(format!("{copy} is a {shorter}copy of {of} and is not read"));
        }
        for (one, other) in &self.overlaps {
            say(format!(
                "{one} and {other} are of one stream and overlap in time: events are there twice; import one \
                 of their folders"
            ));
        }
    }
}

impl Reader {
    /// All traces in a folder and below it.
    pub fn open(folder: &Path) -> Result<Reader, Error> {
        let mut found = find::find(folder)?;
        let copies = copies::leave_out(&mut found)?;
        Ok(Reader { copies, ..Reader::new(folder, found)? })
    }

    /// A trace in memory: its metadata, and the streams. For tests.
    pub fn in_memory(metadata: &[u8], streams: Vec<Vec<u8>>) -> Result<Reader, Error> {
        let folder = PathBuf::from("(memory)");
        let document = find::document(metadata).map_err(|why| Error::malformed(&folder, why))?;
        let numbered = (0..).zip(streams).collect();
        let streams = Source::in_memory(metadata, numbered).streams;
        let found = Found { folder: folder.clone(), document, streams, missing: Vec::new(), session: (0, 0) };
        Reader::new(&folder, vec![found])
    }

    fn new(folder: &Path, found: Vec<Found>) -> Result<Reader, Error> {
        let (mut plans, mut classes) = (Vec::new(), Vec::new());
        let (mut streams, mut missing) = (Vec::new(), Vec::new());
        let sessions = found.iter().map(|found| found.session).collect();
        for (index, found) in found.into_iter().enumerate() {
            let plan = Plan::new(found.document, index, &mut classes);
            plans.push(plan.map_err(|why| Error::malformed(&found.folder.join("metadata"), why))?);
            streams.extend(found.streams.into_iter().map(|stream| (index, stream)));
            missing.extend(found.missing.into_iter().map(|name| (index, name)));
        }
        Ok(Reader {
            folder: folder.to_owned(),
            plans,
            classes,
            sessions,
            streams,
            missing,
            copies: Vec::new(),
        })
    }

    /// All classes of events of all traces.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// What a trace says of itself, by key.
    pub fn env(&self, trace: usize, key: &str) -> Option<&str> {
        self.plans.get(trace)?.env.get(key).map(String::as_str)
    }

    /// How many traces there are.
    pub fn traces(&self) -> usize {
        self.plans.len()
    }

    /// The name of the clock by which events are given, and nanoseconds from the epoch to its zero.
    pub fn clock(&self) -> (&str, i128) {
        self.plans.first().map_or(("", 0), |plan| (plan.clock.name.as_str(), plan.clock.zero()))
    }

    /// Bytes of all streams together.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|(_, stream)| stream.length).sum()
    }

    /// Gives everything, in order of time. `each` returns whether to go on; `progress` gets the bytes read.
    pub fn read(
        &self,
        each: &mut dyn FnMut(&Item<'_>) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Totals, Error> {
        let mut cursors = self.cursors()?;
        let packets = self.missing.len() as u64;
        let mut totals = Totals { packets, copies: self.copies.clone(), ..Totals::default() };
        let mut damages = Damages::default();
        for (trace, name) in &self.missing {
            damages.push(Damage::new(name, 0, "the file is missing, and with it all events of a processor"));
            if !each(&Item::Lost(Lost::of_stream(*trace))) {
                return Ok(totals);
            }
        }
        self.merge(&mut cursors, each, progress).map_err(|(index, error)| self.failed(index, &error))?;
        totals.extents = self.extents_of(&cursors);
        totals.overlaps = self.overlaps(&cursors);
        for cursor in cursors {
            totals.events += cursor.found.events;
            totals.discarded = totals.discarded.saturating_add(cursor.found.discarded);
            totals.packets = totals.packets.saturating_add(cursor.found.packets);
            damages.extend(cursor.damages.into_list());
        }
        totals.damages = damages.into_list();
        Ok(totals)
    }

    /// All streams, with the first packet of each opened: where they end is not known.
    pub fn extents(&self) -> Result<Vec<Extent>, Error> {
        Ok(self.extents_of(&self.cursors()?))
    }

    fn failed(&self, index: usize, error: &io::Error) -> Error {
        Error::io(&self.folder.join(&self.streams[index].1.name), error)
    }

    /// One for each file, at its first event.
    fn cursors(&self) -> Result<Vec<Cursor<'_>>, Error> {
        let window = (MOST_WINDOWS / self.streams.len().max(1)).clamp(LEAST_WINDOW, MOST_WINDOW);
        let mut cursors = Vec::with_capacity(self.streams.len());
        for (index, (trace, stream)) in self.streams.iter().enumerate() {
            let cursor = Cursor::new(&self.plans[*trace], &self.classes, stream, window);
            cursors.push(cursor.map_err(|error| self.failed(index, &error))?);
        }
        Ok(cursors)
    }

    /// Files that go on with the packets of others, which LTTng writes where their size is limited or a
    /// session is rotated, belong to one stream.
    fn extents_of(&self, cursors: &[Cursor<'_>]) -> Vec<Extent> {
        let shifts = self.shifts();
        let mut found: BTreeMap<_, (u64, Extent)> = BTreeMap::new();
        for ((trace, stream), cursor) in self.streams.iter().zip(cursors) {
            let Some(Span { of, sequence, begin, end }) = cursor.span else { continue };
            let at = |ticks: u64| Instant::from_ns(shift(self.plans[*trace].clock.ns(ticks), shifts[*trace]));
            let (trace, name, is_cut) = (*trace, stream.name.clone(), sequence > 0);
            let extent = Extent { trace, name, is_cut, begin: begin.map(at), end: end.map(at) };
            let key = (self.env(trace, "domain"), self.env(trace, "vpid"), of);
            let of_stream = found.entry(key).or_insert_with(|| (sequence, extent.clone()));
            let latest = of_stream.1.end.max(extent.end);
            if sequence < of_stream.0 {
                *of_stream = (sequence, extent);
            }
            of_stream.1.end = latest;
        }
        found.into_values().map(|(_, extent)| extent).collect()
    }

    /// Files that both have what happened in a stream at some time.
    fn overlaps(&self, cursors: &[Cursor<'_>]) -> Vec<(String, String)> {
        let mut files: BTreeMap<_, Vec<(u64, u64, &str)>> = BTreeMap::new();
        for ((trace, stream), cursor) in self.streams.iter().zip(cursors) {
            let Some(Span { of, begin: Some(begin), end: Some(end), .. }) = cursor.span else { continue };
            files.entry((self.sessions[*trace], of)).or_default().push((begin, end, &stream.name));
        }
        let mut overlaps = Vec::new();
        for mut files in files.into_values() {
            files.sort_unstable();
            let pairs = files.windows(2).filter(|pair| pair[1].0 < pair[0].1);
            overlaps.extend(pairs.map(|pair| (pair[0].2.to_owned(), pair[1].2.to_owned())));
        }
        overlaps
    }

    /// Whether the events of a trace have times: integers that its metadata map to its clock.
    pub fn has_times(&self, trace: usize) -> bool {
        self.plans.get(trace).is_some_and(|plan| plan.has_times)
    }

    fn merge(
        &self,
        cursors: &mut [Cursor<'_>],
        each: &mut dyn FnMut(&Item<'_>) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), (usize, io::Error)> {
        const END: u64 = u64::MAX;
        let shifts = self.shifts();
        let time = |cursor: &Cursor<'_>, trace: usize| match cursor.head {
            Head::End => END,
            _ => shift(self.plans[trace].clock.ns(cursor.tick), shifts[trace]),
        };
        let traces: Vec<usize> = self.streams.iter().map(|(trace, _)| *trace).collect();
        let mut times: Vec<u64> = cursors.iter().zip(&traces).map(|(it, trace)| time(it, *trace)).collect();
        let mut given = 0_u64;
        loop {
            let (mut first, mut second) = (0, END);
            for (index, time) in times.iter().enumerate().skip(1) {
                if *time < times[first] {
                    (first, second) = (index, times[first]);
                } else {
                    second = second.min(*time);
                }
            }
            if times.get(first).is_none_or(|time| *time == END) {
                return Ok(());
            }
            let (cursor, trace) = (&mut cursors[first], traces[first]);
            while times[first] <= second && times[first] != END {
                let until = match cursor.head {
                    Head::Lost { until, .. } if until < END => {
                        shift(self.plans[trace].clock.ns(until), shifts[trace])
                    }
                    _ => END,
                };
                if !give(cursor, trace, (times[first], until), each) {
                    return Ok(());
                }
                cursor.advance().map_err(|error| (first, error))?;
                times[first] = time(cursor, trace);
                given += 1;
                if given % 65_536 == 0 {
                    break;
                }
            }
            if given % 65_536 == 0 {
                progress(cursors.iter().map(Cursor::offset).sum());
            }
        }
    }

    /// What to add to times of each trace, for times of the first one's clock.
    fn shifts(&self) -> Vec<i128> {
        let Some(first) = self.plans.first().map(|plan| &plan.clock) else { return Vec::new() };
        let of = |plan: &Plan| match plan.clock.is_same(first) {
            true => 0,
            false => plan.clock.zero() - first.zero(),
        };
        self.plans.iter().map(of).collect()
    }
}

#[inline]
fn shift(ns: i128, by: i128) -> u64 {
    // The greatest stands for the end.
    (ns + by).clamp(0, i128::from(u64::MAX - 1)) as u64
}

fn give(
    cursor: &Cursor<'_>,
    trace: usize,
    (at, until): (u64, u64),
    each: &mut dyn FnMut(&Item<'_>) -> bool,
) -> bool {
    let (at, until) = (Instant::from_ns(at), Instant::from_ns(until));
    match cursor.head {
        Head::Event(class) => {
            let (state, bytes) = cursor.values();
            each(&Item::Event(Event { at, class, cpu: cursor.cpu, state, bytes }))
        }
        Head::Lost { events, packets, .. } => each(&Item::Lost(Lost { at, until, trace, events, packets })),
        Head::End => true,
    }
}
