//! `trace.dat` of trace-cmd (ftrace) with scheduler tracepoints, and system calls where it has them (`-e
//! raw_syscalls`).

mod bytes;
mod file;
mod pages;
mod stream;

use super::error::Error;
use super::notes::{Cut, Notes};
use super::summary::{Imported, Options};
use super::table::Machine;
use super::tracepoints::{ENTER, Format, LEND, Lacks, SWITCH, Seen, Threads, say_unread};
use crate::{About, Record, Totals};
use bytes::Bytes;
pub use file::MAGIC;
use file::{Header, Statistics};
use punctual_model::{Instant, Platform};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use stream::{Next, Stream};

const LACKS: Lacks = Lacks {
    tool: "trace-cmd",
    lend: "-e sched_pi_setprio",
    calls: "trace-cmd record -C mono -e sched_switch -e sched_waking -e raw_syscalls",
};

/// The creation of a thread, with its flags.
const BORN: &str = "task_newtask";

/// A file that trace-cmd recorded.
pub struct Trace {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
    about: About,
    cut: Option<Cut>,
    threads: Threads,
    notes: Notes,
}

impl Trace {
    /// Reads the headers.
    pub fn open(path: &Path, options: &Options) -> Result<Trace, Error> {
        let file = File::open(path).map_err(|error| Error::io(path, &error))?;
        let length = file.metadata().map_err(|error| Error::io(path, &error))?.len();
        Trace::of_bytes(path, Bytes::File { file, length }, options)
    }

    /// The same of a file in memory.
    pub fn in_memory(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Trace, Error> {
        Trace::of_bytes(path, Bytes::Memory(bytes), options)
    }

    fn of_bytes(path: &Path, bytes: Bytes, options: &Options) -> Result<Trace, Error> {
        let malformed = |why: String| Error::malformed(path, why);
        let header = file::header(&bytes).map_err(malformed)?;
        let has = |name: &str| header.formats.values().any(|format| format.name == name);
        if !has(SWITCH) {
            let why = "it has no tracepoint sched:sched_switch; record with trace-cmd record -C mono -e \
                sched_switch -e sched_waking -e raw_syscalls";
            return Err(malformed(why.to_owned()));
        }
        let clock = clock(&header.clock).map_err(malformed)?;
        let mut notes = Notes::default();
        let begin = Begin::find(&bytes, &header).map_err(malformed)?;
        let from = begin.cut.as_ref().map_or(begin.first, |cut| cut.at);
        let about = about(&header, clock, from, &mut notes);
        let machine = Machine::from_name(&about.platform.machine);
        LACKS.say(&mut notes, has(ENTER), has(LEND), machine.is_some());
        if !has(BORN) {
            notes.say("which process a thread belongs to is not known (-e task_newtask would tell)");
        }
        for it in header.statistics.iter().filter(|it| it.dropped > 0) {
            notes.say(format!(
                "events of processor {} for which there was no room: {}; where they are missing is not \
                 known, and costs may be too low there (trace-cmd record -b makes more room)",
                it.cpu, it.dropped
            ));
        }
        for what in &header.notes {
            notes.say(format!("it has {what}, which are left out"));
        }
        let threads = Threads::new(options.include_best_effort, machine);
        Ok(Trace { path: path.to_owned(), bytes, header, about, cut: begin.cut, threads, notes })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.header.cpus.iter().map(|cpu| cpu.size).sum()
    }

    /// Hands on everything, in order of time.
    pub fn run(
        self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        let Trace { path, bytes, header, about, cut, mut threads, mut notes } = self;
        let (mut goes_on, mut until, mut lost, mut events) = (true, about.from, 0_u64, 0_u64);
        let mut before = 0_u64;
        let mut out = |record: Record| goes_on = goes_on && each(&record);
        // The last event of each processor, and where its gap begins, if it is in one.
        let mut reached = vec![(about.from, None); header.cpus.len()];
        let mut merge = Merge::new(&bytes, &header).map_err(|why| Error::malformed(&path, why))?;
        while let Some(item) = merge.next(&bytes) {
            match item {
                Item::Event { at, .. } if cut.as_ref().is_some_and(|cut| at < cut.at.ns()) => before += 1,
                Item::Event { at, stream, place } => {
                    if at < until.ns() {
                        notes.count("events out of order: taken at the time of the one before");
                    }
                    until = until.max(Instant::from_ns(at));
                    reached[stream].0 = until;
                    let stream = &merge.streams[stream];
                    take(&mut threads, &header, stream.cpu, until, stream.bytes(&place), &mut out);
                }
                Item::Gap { events, damage, stream, is_first } => {
                    // What was written over before the beginning is no gap in what follows.
                    if !(is_first && cut.is_some() && damage.is_none()) {
                        lost = lost.saturating_add(events);
                        let (last, gap) = &mut reached[stream];
                        gap.get_or_insert(*last);
                    }
                    threads.lose();
                    if let Some(damage) = damage {
                        let cpu = merge.streams[stream].cpu;
                        notes.say(format!("processor {cpu}, {damage}; tasks end there"));
                    }
                }
                Item::GapEnds { at, stream } => {
                    threads.lose();
                    let until = Instant::from_ns(at);
                    if let Some(since) = reached[stream].1.take() {
                        out(Record::Lost { since, until });
                    }
                }
            }
            events += 1;
            if events % 65_536 == 0 {
                progress(merge.position());
            }
        }
        for since in reached.into_iter().filter_map(|(_, gap)| gap) {
            out(Record::Lost { since, until: Instant::from_ns(u64::MAX) });
        }
        notes.say_unseen(threads.finish(until, &mut out));
        let others = ("events without a description", header.undescribed.get());
        say_unread(&mut notes, header.formats.values(), others);
        cut.iter().for_each(|cut| notes.say_cut(cut, before));
        if lost > 0 {
            notes.say(format!("events lost: at least {lost}; tasks end there"));
        }
        let totals = Totals { lost, ..Totals::default() };
        Ok(Imported { until, totals, notes: notes.into_list() })
    }
}

/// Takes an event of a known format.
fn take(
    threads: &mut Threads,
    header: &Header,
    cpu: u32,
    at: Instant,
    bytes: &[u8],
    out: &mut dyn FnMut(Record),
) {
    let number = bytes.first_chunk().map(|number| u16::from_le_bytes(*number));
    let Some(format) = number.and_then(|number| header.formats.get(&number)) else {
        header.undescribed.set(header.undescribed.get() + 1);
        return;
    };
    let tid = number_of(format, "common_pid", bytes);
    match format.name.as_str() {
        BORN => {
            const CLONE_THREAD: i64 = 0x1_0000;
            let is_thread =
                format.number("clone_flags", bytes).is_some_and(|flags| flags & CLONE_THREAD != 0);
            let child = number_of(format, "pid", bytes);
            // A creator of before the recording is taken for its process, as it is where it is named.
            let process = if is_thread && tid > 0 { threads.process(tid).unwrap_or(tid) } else { child };
            threads.born(process, child);
        }
        "sched_process_exec" => {
            if let Some(file) = format.far_text("filename", bytes) {
                const LONGEST: usize = 15;
                let name = file.rsplit('/').next().unwrap_or_default();
                let name: String = name.chars().take(LONGEST).collect();
                threads.name(threads.process(tid).unwrap_or(tid), tid, &name, Some(at), out);
            }
        }
        "task_rename" => {
            if let Some(name) = format.text("newcomm", bytes) {
                let tid = number_of(format, "pid", bytes);
                threads.name(threads.process(tid).unwrap_or(tid), tid, &name, None, out);
            }
        }
        _ => threads.sample(&Seen { at, cpu, pid: 0, tid, format, bytes }, out),
    }
}

fn number_of(format: &Format, field: &str, bytes: &[u8]) -> i32 {
    format.number(field, bytes).and_then(|number| i32::try_from(number).ok()).unwrap_or(0)
}

/// What comes next of all processors.
enum Item {
    Event {
        at: u64,
        stream: usize,
        place: Range<usize>,
    },
    /// From here on events of a processor are missing.
    Gap {
        events: u64,
        damage: Option<String>,
        stream: usize,
        /// Whether no event of it came before.
        is_first: bool,
    },
    /// Up to here.
    GapEnds {
        at: u64,
        stream: usize,
    },
}

/// The events of all processors in order of time.
struct Merge {
    streams: Vec<Stream>,
    /// The next event of each: when, of which.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    places: Vec<(Range<usize>, bool)>,
    /// Streams whose next event is to be looked for.
    open: Vec<usize>,
}

impl Merge {
    fn new(bytes: &Bytes, header: &Header) -> Result<Merge, String> {
        let streams: Vec<Stream> =
            header.cpus.iter().map(|cpu| Stream::new(bytes, header, cpu)).collect::<Result<_, _>>()?;
        let count = streams.len();
        let places = vec![(0..0, false); count];
        Ok(Merge { streams, heads: BinaryHeap::new(), places, open: (0..count).rev().collect() })
    }

    fn next(&mut self, bytes: &Bytes) -> Option<Item> {
        while let Some(stream) = self.open.pop() {
            match self.streams[stream].next(bytes) {
                None => {}
                Some(Next::Event { at, place }) => {
                    self.places[stream].0 = place;
                    self.heads.push(Reverse((at, stream)));
                }
                Some(Next::Damage(why)) => return Some(self.gap(stream, 1, Some(why))),
                Some(Next::Missed(events)) => return Some(self.gap(stream, events, None)),
            }
        }
        let Reverse((at, stream)) = *self.heads.peek()?;
        let (place, after_gap) = &mut self.places[stream];
        if std::mem::take(after_gap) {
            return Some(Item::GapEnds { at, stream });
        }
        let place = place.clone();
        self.heads.pop();
        self.open.push(stream);
        Some(Item::Event { at, stream, place })
    }

    fn gap(&mut self, stream: usize, events: u64, damage: Option<String>) -> Item {
        self.open.push(stream);
        self.places[stream].1 = true;
        Item::Gap { events, damage, stream, is_first: self.places[stream].0.is_empty() }
    }

    fn position(&self) -> u64 {
        self.streams.iter().map(Stream::done).sum()
    }
}

/// Where the events of the processors begin.
struct Begin {
    /// The first event of all.
    first: Instant,
    /// The latest first event of the processors that were written over (`trace-cmd start`, then `extract`).
    cut: Option<Cut>,
}

impl Begin {
    /// Looks at the first event of each processor. That of one that was idle comes late, and means nothing.
    fn find(bytes: &Bytes, header: &Header) -> Result<Begin, String> {
        let (mut first, mut latest, mut cpus) = (None, 0, Vec::new());
        for cpu in &header.cpus {
            let mut stream = Stream::new(bytes, header, cpu)?;
            let is_its = |it: &Statistics| it.cpu == cpu.number && it.overrun > 0;
            let mut is_cut = header.statistics.iter().any(is_its);
            let at = loop {
                match stream.next(bytes) {
                    Some(Next::Event { at, .. }) => break Some(at),
                    Some(Next::Missed(_)) => is_cut = true,
                    Some(Next::Damage(_)) => {}
                    None => break None,
                }
            };
            let Some(at) = at else { continue };
            first = Some(first.map_or(at, |first: u64| first.min(at)));
            if is_cut {
                latest = latest.max(at);
                cpus.push(cpu.number);
            }
        }
        cpus.sort_unstable();
        let names = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let of = format!("processor{} {names}", if cpus.len() == 1 { "" } else { "s" });
        let cut = Cut { of, at: Instant::from_ns(latest) };
        Ok(Begin { first: Instant::from_ns(first.unwrap_or(0)), cut: (!cpus.is_empty()).then_some(cut) })
    }
}

/// The name of the clock of a timing model; an error if its times are no nanoseconds.
fn clock(name: &str) -> Result<&'static str, String> {
    match name {
        "mono" => Ok("CLOCK_MONOTONIC"),
        "mono_raw" => Ok("CLOCK_MONOTONIC_RAW"),
        "boot" => Ok("CLOCK_BOOTTIME"),
        "tai" => Ok("CLOCK_TAI"),
        "" | "local" => Ok("ftrace local"),
        "global" => Ok("ftrace global"),
        "perf" => Ok("perf"),
        "uptime" => Err("its clock uptime counts jiffies: record with trace-cmd record -C mono".to_owned()),
        other => {
            Err(format!("its clock {other} does not count nanoseconds: record with trace-cmd record -C mono"))
        }
    }
}

fn about(header: &Header, clock: &str, from: Instant, notes: &mut Notes) -> About {
    if !clock.starts_with("CLOCK_") {
        notes.say(format!(
            "times are those of the clock {clock}; trace-cmd record -C mono makes them comparable with others"
        ));
    }
    if clock == "ftrace local" {
        notes.say(
            "processors have times of their own: the order of what happened on two of them may be wrong",
        );
    }
    // `Linux HOST RELEASE MACHINE`
    let words: Vec<&str> = header.uname.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default().to_owned();
    About {
        platform: Platform { kernel: word(2), machine: word(3), cpus: header.cpus.len() as u32 },
        host: word(1),
        source: format!("trace-cmd {}", header.version).trim_end().to_owned(),
        clock: clock.to_owned(),
        clock_zero: None,
        from,
        switches: true,
        latency: false,
    }
}
