//! Traces as text: of ftrace (`/sys/kernel/tracing/trace`), of `trace-cmd report`, of `perf script`, and in
//! pages of systrace.
//!
//! Each line becomes a record of its tracepoint. From there on, all is as with perf and trace-cmd.

mod events;
mod line;

use super::account::Known;
use super::error::Error;
use super::notes::{Cut, Notes, WRITTEN_OVER};
use super::summary::{Imported, Options};
use super::table::Machine;
use super::tracepoints::{Calls, NO_MACHINE, Reached, SWITCH, Threads};
use super::twins::Twins;
use events::Events;
use line::{Line, Style};
use punctual_model::{Duration, Instant};
use punctual_trace::{About, Record, Totals};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line that is read as one.
const MOST_LINE: u64 = 64 << 10;

/// Processors that begin so many nanoseconds apart are worth a note.
const APART: u64 = 10_000_000;

/// Buffers that are told from each other.
const MOST_BUFFERS: usize = 64;

/// The events of a processor come in order. Perf may be wrong by so much.
const BACKWARD: Duration = Duration::from_ms(10);

/// Where nothing happened for so long, another text may have been appended.
const PAUSE: Duration = Duration::from_ms(1_000);

/// At most one event in so many comes after a later one, as those of two processors may.
const MOST_BACKWARD: u64 = 100;

/// How far the first event may be from the beginning: pages have a program before it.
const MOST_BEFORE: u64 = 64 << 20;

/// Of lines that are left out.
const UNREADABLE: &str = "line of an event that is left out: a number in it is too large, or it does not end";

/// Rare events: a text does not say which were recorded.
const DOUBTFUL: [&str; 2] = ["sched_pi_setprio", "task_newtask"];

/// A text with events.
pub struct Trace {
    path: PathBuf,
    text: Text,
    about: About,
    cut: Option<Cut>,
    known: Known,
    kinds: BTreeSet<String>,
    style: Style,
    threads: Threads,
    /// Buffers, if there are several.
    buffers: Vec<String>,
    notes: Notes,
    bytes: u64,
}

/// Facts about the whole text, from a first pass.
#[derive(Debug)]
struct Survey {
    /// The first event of each processor.
    first: BTreeMap<u32, Instant>,
    /// Buffers that lines name, and the main one.
    buffers: BTreeSet<String>,
    /// Kinds of events.
    kinds: BTreeSet<String>,
    /// Whether the kernel had overwritten some events.
    is_overwritten: bool,
    style: Option<Style>,
    bytes: u64,
    /// Whether times have nanoseconds.
    is_fine: bool,
    /// Whether any line has the process of its thread.
    has_processes: bool,
    /// Whether a header counts the events that were overwritten.
    has_counts: bool,
    /// The latest event so far, all events, and those before that one.
    latest: Instant,
    events: u64,
    backward: u64,
    lines: u64,
    /// Lines of events with a number that is too large.
    unreadable: u64,
    /// Whether the last line has no end.
    is_cut: bool,
    /// The last event of each processor.
    last: BTreeMap<u32, Instant>,
    /// Why it must be several texts.
    contradiction: Option<String>,
    /// The longest time without an event, and the line behind it.
    pause: (Duration, u64),
}

/// Where the text is.
enum Text {
    File,
    Memory(Vec<u8>),
}

/// The lines of a text, as far as each can be kept.
struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    done: u64,
    /// Behind each line; lines of an old Mac have no other.
    end: u8,
    /// Whether the last line that was read has none.
    is_cut: bool,
}

impl<'a> Lines<'a> {
    fn open(path: &Path, text: &'a Text) -> Result<Lines<'a>, Error> {
        let mut reader: Box<dyn BufRead> = match text {
            Text::File => {
                let file = File::open(path).map_err(|error| Error::io(path, &error))?;
                Box::new(BufReader::with_capacity(1 << 16, file))
            }
            Text::Memory(bytes) => Box::new(&bytes[..]),
        };
        let beginning = reader.fill_buf().map_err(|error| Error::io(path, &error))?;
        let is_of_mac = !beginning.contains(&b'\n') && beginning.contains(&b'\r');
        let end = if is_of_mac { b'\r' } else { b'\n' };
        Ok(Lines { reader, line: Vec::new(), done: 0, end, is_cut: false })
    }

    /// The next line, without its end; of one that is too long, the beginning.
    fn next(&mut self, path: &Path) -> Result<Option<std::borrow::Cow<'_, str>>, Error> {
        self.line.clear();
        let mut part = self.reader.by_ref().take(MOST_LINE);
        let count = part.read_until(self.end, &mut self.line).map_err(|error| Error::io(path, &error))?;
        self.done += count as u64;
        self.is_cut |= (1..MOST_LINE).contains(&(count as u64)) && !self.line.ends_with(&[self.end]);
        if count as u64 == MOST_LINE && !self.line.ends_with(&[self.end]) {
            self.skip().map_err(|error| Error::io(path, &error))?;
        }
        let line = self.line.strip_suffix(&[self.end]).unwrap_or(&self.line);
        Ok((count > 0).then(|| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))))
    }
}

impl Lines<'_> {
    /// Passes over the rest of a line, unless it is too long to be one: then it goes on as another.
    fn skip(&mut self) -> io::Result<()> {
        let most = self.done.saturating_add(MOST_BEFORE);
        while self.done < most {
            let bytes = self.reader.fill_buf()?;
            let end = memchr::memchr(self.end, bytes);
            let count = end.map_or(bytes.len(), |end| end + 1);
            self.reader.consume(count);
            self.done += count as u64;
            if end.is_some() || count == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Parses a line. An event that does not end where it should cannot be read.
fn parse(text: &str) -> Option<Line<'_>> {
    match line::parse(text) {
        Some(Line::Event(_)) if text.len() as u64 >= MOST_LINE => Some(Line::Unreadable),
        line => line,
    }
}

/// Whether there is an event in such a text.
pub fn is_text(path: &Path) -> Result<bool, Error> {
    let mut lines = Lines::open(path, &Text::File)?;
    while lines.done < MOST_BEFORE {
        match lines.next(path)? {
            Some(text) if parse(&text).is_some() => return Ok(true),
            Some(_) => {}
            None => break,
        }
    }
    Ok(false)
}

impl Survey {
    fn of(path: &Path, text: &Text) -> Result<Survey, Error> {
        let mut survey = Survey {
            first: BTreeMap::new(),
            buffers: BTreeSet::new(),
            kinds: BTreeSet::new(),
            is_overwritten: false,
            style: None,
            bytes: 0,
            is_fine: false,
            has_processes: false,
            has_counts: false,
            latest: Instant::from_ns(0),
            events: 0,
            backward: 0,
            lines: 0,
            unreadable: 0,
            is_cut: false,
            last: BTreeMap::new(),
            contradiction: None,
            pause: (Duration::from_ns(0), 0),
        };
        let mut lines = Lines::open(path, text)?;
        while let Some(text) = lines.next(path)? {
            survey.take(&text);
        }
        (survey.bytes, survey.is_cut) = (lines.done, lines.is_cut);
        Ok(survey)
    }

    fn take(&mut self, text: &str) {
        self.lines += 1;
        match parse(text) {
            Some(Line::Event(event)) => {
                self.reach(event.cpu, event.at);
                self.first.entry(event.cpu).or_insert(event.at);
                self.style.get_or_insert(event.style);
                self.is_fine |= event.at.ns() % 1_000 != 0;
                self.has_processes |= event.pid > 0;
                self.events += 1;
                self.backward += u64::from(event.at < self.latest);
                self.latest = self.latest.max(event.at);
                if self.buffers.len() < MOST_BUFFERS && !self.buffers.contains(event.buffer) {
                    self.buffers.insert(event.buffer.to_owned());
                }
                if !self.kinds.contains(event.name) {
                    self.kinds.insert(event.name.to_owned());
                }
            }
            Some(Line::Unreadable) => self.unreadable += 1,
            Some(Line::Lost { .. }) => {}
            None => {
                if self.events > 0 && line::is_header(text) {
                    let why = format!("line {} begins another text: import each alone", self.lines);
                    self.contradiction.get_or_insert(why);
                }
                let is_overwritten = line::is_overwritten(text);
                self.has_counts |= is_overwritten.is_some();
                self.is_overwritten |= is_overwritten.unwrap_or(false);
            }
        }
    }

    /// An event comes at this time.
    fn reach(&mut self, cpu: u32, at: Instant) {
        let last = self.last.insert(cpu, at).unwrap_or(at);
        if last > at + BACKWARD && self.contradiction.is_none() {
            self.contradiction = Some(format!(
                "line {} is {} earlier than the event of its processor before it: where texts were appended \
                 to each other, import each alone",
                self.lines,
                last.since(at)
            ));
        }
        let pause = at.max(self.latest).since(self.latest);
        if self.events > 0 && pause > self.pause.0 {
            self.pause = (pause, self.lines);
        }
    }

    /// The line behind a pause that is long for this text, and how long it is.
    fn long_pause(&self) -> Option<(Duration, u64)> {
        let first = self.first.values().min()?;
        let whole = self.latest.since(*first);
        Some(self.pause).filter(|(pause, _)| *pause > PAUSE && pause.ns() > whole.ns() / 10)
    }

    fn has(&self, name: &str) -> bool {
        self.kinds.contains(name)
    }

    /// How much later the last processor begins than the first one.
    fn apart(&self) -> Option<Duration> {
        Some(self.first.values().max()?.since(*self.first.values().min()?))
    }

    /// From where on the events of all processors are there.
    fn cut(&self) -> Option<Cut> {
        let latest = self.first.values().max().filter(|_| self.is_overwritten)?;
        let cut_off = self.first.iter().filter(|(_, at)| *at < latest).count();
        (cut_off < self.first.len() && self.first.len() > 1).then(|| Cut {
            of: "some processors".to_owned(),
            at: *latest,
            why: WRITTEN_OVER,
        })
    }
}

impl Trace {
    /// Looks through the text.
    pub fn open(path: &Path, options: &Options) -> Result<Trace, Error> {
        Trace::new(path, Text::File, options)
    }

    /// The same of a text in memory.
    pub fn in_memory(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Trace, Error> {
        Trace::new(path, Text::Memory(bytes), options)
    }

    fn new(path: &Path, text: Text, options: &Options) -> Result<Trace, Error> {
        let survey = Survey::of(path, &text)?;
        if !survey.has(SWITCH) {
            let unreadable = match survey.unreadable {
                0 => String::new(),
                lines => format!("; lines with a number that is too large: {lines}"),
            };
            let why = format!("it has no event {SWITCH}, without which nobody knows who ran{unreadable}");
            return Err(Error::malformed(path, why));
        }
        if let Some(why) = survey.contradiction {
            return Err(Error::malformed(path, why));
        }
        if survey.backward > survey.events / MOST_BACKWARD {
            let Survey { backward, events, .. } = survey;
            return Err(Error::malformed(
                path,
                format!(
                    "its lines are not in time order ({backward} of {events} go back in time): sort them, or \
                     print absolute times"
                ),
            ));
        }
        let mut notes = Notes::default();
        let machine = options.machine;
        let calls = if survey.has("sys_enter") { Calls::All } else { Calls::None };
        let processes =
            survey.has_processes || (survey.style != Some(Style::Perf) && survey.has("task_newtask"));
        let known =
            Known { calls: calls == Calls::All, machine: machine.is_some(), processes, doubtful: &DOUBTFUL };
        if known.calls && machine.is_none() {
            notes.say(NO_MACHINE);
        }
        if survey.style == Some(Style::Perf) {
            notes.say("lost events appear in it only with perf script --show-lost-events");
        }
        if let Some(apart) = survey.apart().filter(|apart| !survey.has_counts && apart.ns() > APART) {
            notes.say(format!(
                "its processors begin {apart} apart: where events were written over before, costs may be too \
                 high"
            ));
        }
        if let Some((pause, line)) = survey.long_pause() {
            notes.say(format!(
                "nothing happened for {pause} before line {line}: if another text was appended there, import \
                 each alone"
            ));
        }
        if survey.is_cut {
            notes.say("its last line has no end: the text may be cut off there");
        }
        if !survey.is_fine {
            notes.say("its times are in whole microseconds, and so are the figures");
        }
        let buffers: Vec<String> = survey.buffers.iter().cloned().collect();
        if let [_, _, ..] = &buffers[..] {
            let name = |name: &String| if name.is_empty() { "the main one".to_owned() } else { name.clone() };
            let names = buffers.iter().map(name).collect::<Vec<_>>().join(", ");
            notes.say(format!("its buffers are read together ({names}); what two of them have counts once"));
        }
        notes.say("it names neither its clock nor its kernel");
        let cut = survey.cut();
        let first = survey.first.values().min().copied().unwrap_or(Instant::from_ns(0));
        let (tool, clock) = survey.style.map_or(("text", ""), |style| (style.tool(), style.clock()));
        let mut about = About::of_switches(tool, clock, cut.as_ref().map_or(first, |cut| cut.at));
        about.platform.machine = machine.map_or("", Machine::name).to_owned();
        about.platform.cpus = survey.first.len() as u32;
        let threads = Threads::new(options.include_best_effort, machine, calls)
            .named_by_switches(!survey.has("task_rename"));
        let (path, bytes, kinds) = (path.to_owned(), survey.bytes, survey.kinds);
        let style = survey.style.unwrap_or(Style::Ftrace);
        Ok(Trace { path, text, about, cut, known, kinds, style, threads, buffers, notes, bytes })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands on everything, in the order of the lines.
    pub fn run(
        mut self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        let mut lines = Lines::open(&self.path, &self.text)?;
        let mut reached = Reached::new(self.about.from);
        let mut events = Events::default();
        let (mut twins, mut content) = (Twins::new(self.buffers.len() > 1), Vec::new());
        let (mut goes_on, mut count, mut before) = (true, 0_u64, 0_u64);
        let begin = self.cut.as_ref().map_or(Instant::from_ns(0), |cut| cut.at);
        let mut out = |record: Record| goes_on = goes_on && each(&record);
        while let Some(text) = lines.next(&self.path)? {
            match parse(&text) {
                Some(Line::Unreadable) => self.notes.count(UNREADABLE),
                Some(Line::Event(event)) if event.at < begin => before += 1,
                Some(Line::Event(event)) if is_twin(&mut twins, &self.buffers, &event, &mut content) => {}
                Some(Line::Event(event)) => {
                    reached.reach(event.cpu, event.at, &mut self.threads, &mut self.notes, &mut out);
                    events.take(&event, reached.until, &mut self.threads, &mut out);
                }
                Some(Line::Lost { cpu, events }) => {
                    reached.lose(cpu, events);
                    self.threads.lose();
                }
                None => {}
            }
            count += 1;
            if count % 65_536 == 0 {
                progress(lines.done);
            }
        }
        reached.finish(&mut out);
        let mut notes = self.notes;
        self.threads.say_machine(&mut notes);
        notes.say_unseen(self.threads.finish(reached.until, &mut out));
        let account = events.account(&mut notes, &self.kinds, self.known, self.style.command());
        self.cut.iter().for_each(|cut| notes.say_cut(cut, before));
        reached.say(&mut notes);
        let totals = Totals { lost: reached.lost, ..Totals::default() };
        Ok(Imported { until: reached.until, totals, account, notes: notes.into_list() })
    }
}

/// Whether another buffer has had this event. `content` is room for what tells it from others.
fn is_twin(twins: &mut Twins, buffers: &[String], event: &line::Event, content: &mut Vec<u8>) -> bool {
    let Some(buffer) = buffers.iter().position(|name| name == event.buffer) else { return false };
    content.clear();
    for part in [&event.tid.to_le_bytes()[..], event.name.as_bytes(), event.fields.as_bytes()] {
        content.extend(part);
    }
    twins.is_twin(buffer, event.cpu, event.at.ns(), content)
}
