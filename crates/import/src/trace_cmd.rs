//! `trace.dat` of trace-cmd (ftrace) with scheduler tracepoints, and system calls where it has them (`-e
//! raw_syscalls`).

mod begin;
mod buffers;

mod file;
mod pages;
mod stream;

use super::account::{self, Known};
use super::bytes::Bytes;
use super::error::Error;
use super::notes::{Cut, Notes};
use super::summary::{Imported, Options};
use super::tracepoints::{Calls, Format, SWITCH, Seen, Threads, kinds};
use super::twins::Twins;
use begin::Begin;
use punctual_trace::{About, Record, Totals};

use file::Header;
pub use file::MAGIC;
use punctual_model::{Instant, Platform};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use stream::{Next, Stream};

/// Records all that is read.
const COMMAND: &str = "trace-cmd record -C mono -b 20000 -e sched_switch -e sched_waking -e sched_wakeup_new \
                       -e sched_process_exit -e sched_process_exec -e sched_pi_setprio -e sched_stat_runtime \
                       -e task_newtask -e raw_syscalls PROGRAM";

/// The creation of a thread, with its flags.
const BORN: &str = "task_newtask";
/// A thread gets another name.
const RENAMED: &str = "task_rename";

/// A file that trace-cmd recorded.
pub struct Trace {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
    about: About,
    cut: Option<Cut>,
    known: Known,
    threads: Threads,
    notes: Notes,
}

impl Trace {
    /// Reads the headers.
    pub fn open(path: &Path, options: &Options) -> Result<Trace, Error> {
        Trace::of_bytes(path, Bytes::open(path)?, options)
    }

    /// The same of a file in memory.
    pub fn in_memory(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Trace, Error> {
        Trace::of_bytes(path, Bytes::Memory(bytes), options)
    }

    fn of_bytes(path: &Path, bytes: Bytes, options: &Options) -> Result<Trace, Error> {
        let malformed = |why: String| Error::malformed(path, why);
        let mut header = file::header(&bytes).map_err(malformed)?;
        if !has(&header, SWITCH) {
            let why = "it has no tracepoint sched:sched_switch; record with trace-cmd record -C mono -e \
                sched_switch -e sched_waking -e raw_syscalls";
            return Err(malformed(why.to_owned()));
        }
        let clock_name = buffers::choose(&mut header, &bytes).map_err(malformed)?;
        let clock = clock(&clock_name).map_err(malformed)?;
        let mut notes = Notes::default();
        let begin = Begin::find(&bytes, &header).map_err(malformed)?;
        let from = begin.cut.as_ref().map_or(begin.first, |cut| cut.at);
        let mut about = about(&header, clock, from, &mut notes);
        if about.platform.machine.is_empty() {
            about.platform.machine = header.machine_by_symbols(&bytes).unwrap_or_default().to_owned();
        }
        let machine = options.machine_of(&about.platform.machine, &mut notes);
        let calls = Calls::of(header.formats.values());
        let (calls_known, processes) = (calls != Calls::None, has(&header, BORN));
        let known = Known { calls: calls_known, machine: machine.is_some(), processes, doubtful: &[] };
        for it in header.cpus.iter().filter_map(|cpu| header.statistics(cpu)).filter(|it| it.dropped > 0) {
            notes.say(format!(
                "events of processor {} for which there was no room: {}; where they are missing is not \
                 known, and costs may be too low there (trace-cmd record -b makes more room)",
                it.cpu, it.dropped
            ));
        }
        if let Some(at) = header.second(&bytes) {
            notes.say(format!(
                "another trace.dat follows at byte {at}, which is not read: import it alone (tail -c +{})",
                at + 1
            ));
        }
        for what in &header.notes {
            notes.say(format!("it has {what}, which are left out"));
        }
        let threads = Threads::new(options.include_best_effort, machine, calls)
            .named_by_switches(!has(&header, RENAMED));
        Ok(Trace { path: path.to_owned(), bytes, header, about, cut: begin.cut, known, threads, notes })
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
        let Trace { path, bytes, header, about, cut, known, threads, mut notes } = self;
        let mut taker = Taker { threads, header: &header, renamed: HashMap::new() };
        let (mut goes_on, mut until, mut lost, mut events) = (true, about.from, 0_u64, 0_u64);
        let mut before = 0_u64;
        let mut out = |record: Record| goes_on = goes_on && each(&record);
        // The last event of each processor, and where its gap begins, if it is in one.
        let mut reached = vec![(about.from, None); header.cpus.len()];
        let mut twins = Twins::new(buffers::are_several(&header));
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
                    let buffer = header.cpus[stream].buffer;
                    let stream = &merge.streams[stream];
                    if !twins.is_twin(buffer, stream.cpu, at, stream.bytes(&place)) {
                        taker.take(stream.cpu, until, stream.bytes(&place), &mut out);
                    }
                }
                Item::Gap { events, damage, stream, is_first } => {
                    // What was written over before the beginning is no gap in what follows.
                    if !(is_first && cut.is_some() && damage.is_none()) {
                        lost = lost.saturating_add(events);
                        let (last, gap) = &mut reached[stream];
                        gap.get_or_insert(*last);
                    }
                    taker.threads.lose();
                    if let Some(damage) = damage {
                        let cpu = merge.streams[stream].cpu;
                        notes.say(format!("processor {cpu}, {damage}; tasks end there"));
                    }
                }
                Item::GapEnds { at, stream } => {
                    taker.threads.lose();
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
        taker.threads.say_machine(&mut notes);
        notes.say_unseen(taker.threads.finish(until, &mut out));
        let others = [("events without a description", header.undescribed.get(), None)];
        let kinds = kinds(header.formats.values()).chain(others);
        let account = account::of_kernel(kinds, &|name| has(&header, name), known, COMMAND);
        cut.iter().for_each(|cut| notes.say_cut(cut, before));
        if lost > 0 {
            notes.say(format!("events lost: at least {lost}; tasks end there"));
        }
        let totals = Totals { lost, ..Totals::default() };
        Ok(Imported { until, totals, account, notes: notes.into_list() })
    }
}

/// The threads, and what is kept of them besides.
struct Taker<'a> {
    threads: Threads,
    header: &'a Header,
    /// Names that threads have given themselves since they last entered or left a call or a processor: to
    /// execute a program gives it one, and that is not the name of the task before.
    renamed: HashMap<i32, String>,
}

impl Taker<'_> {
    /// Takes an event of a known format.
    fn take(&mut self, cpu: u32, at: Instant, bytes: &[u8], out: &mut dyn FnMut(Record)) {
        let header = self.header;
        let number = bytes.first_chunk().map(|number| u16::from_le_bytes(*number));
        let Some(format) = number.and_then(|number| header.formats.get(&number)) else {
            header.undescribed.set(header.undescribed.get() + 1);
            return;
        };
        format.count();
        let tid = number_of(format, "common_pid", bytes);
        let seen = Seen { at, cpu, pid: 0, tid, format, bytes };
        match format.name.as_str() {
            BORN => self.born(&seen),
            "sched_process_exec" => self.executed(&seen, out),
            RENAMED => self.renamed(&seen, out),
            _ => {
                self.settle(tid, out);
                self.threads.sample(&seen, out);
            }
        }
    }

    fn born(&mut self, seen: &Seen) {
        const CLONE_THREAD: i64 = 0x1_0000;
        let Seen { tid, format, bytes, .. } = *seen;
        let is_thread = format.number("clone_flags", bytes).is_some_and(|flags| flags & CLONE_THREAD != 0);
        let child = number_of(format, "pid", bytes);
        // A creator of before the recording is taken for its process, as it is where it is named.
        let process = if is_thread && tid > 0 { self.threads.process(tid).unwrap_or(tid) } else { child };
        self.threads.born(process, child);
    }

    fn executed(&mut self, seen: &Seen, out: &mut dyn FnMut(Record)) {
        // As the kernel cuts it.
        const LONGEST: usize = 15;
        let own = self.renamed.remove(&seen.tid);
        if let Some(name) = own.or_else(|| seen.format.far_file_name("filename", seen.bytes, LONGEST)) {
            self.name(seen.tid, &name, Some(seen.at), out);
        }
        self.threads.sample(seen, out);
    }

    fn renamed(&mut self, seen: &Seen, out: &mut dyn FnMut(Record)) {
        let Some(name) = seen.format.text("newcomm", seen.bytes) else { return };
        let tid = number_of(seen.format, "pid", seen.bytes);
        self.settle(tid, out);
        match tid == seen.tid {
            true => _ = self.renamed.insert(tid, name),
            false => self.name(tid, &name, None, out),
        }
    }

    /// The name that it gave itself is that of the task that goes on.
    fn settle(&mut self, tid: i32, out: &mut dyn FnMut(Record)) {
        if self.renamed.is_empty() {
            return;
        }
        if let Some(name) = self.renamed.remove(&tid) {
            self.name(tid, &name, None, out);
        }
    }

    fn name(&mut self, tid: i32, name: &str, executed: Option<Instant>, out: &mut dyn FnMut(Record)) {
        self.threads.name(self.threads.process(tid).unwrap_or(tid), tid, name, executed, out);
    }
}

fn has(header: &Header, name: &str) -> bool {
    header.formats.values().any(|format| format.name == name)
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
    let cpus: HashSet<u32> = header.cpus.iter().map(|cpu| cpu.number).collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default().to_owned();
    About {
        platform: Platform { kernel: word(2), machine: word(3), cpus: cpus.len() as u32 },
        host: word(1),
        source: format!("trace-cmd {}", header.version).trim_end().to_owned(),
        clock: clock.to_owned(),
        clock_zero: None,
        from,
        switches: true,
        latency: false,
    }
}
