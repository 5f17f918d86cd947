//! Traces of Perfetto with events of ftrace (`traced_probes`), plain and compact, as they are or compressed.

mod bundle;
mod events;
mod file;
mod merge;
mod messages;
mod packet;
mod survey;
mod wire;

use super::account::{self, Known};
use super::bytes::Bytes;
use super::error::Error;
use super::notes::{Cut, Notes};
use super::summary::{Imported, Options};
use super::table::Machine;
use super::tracepoints::{Calls, NO_MACHINE, Reached, SWITCH, Threads, layout};
use bundle::Event;
use events::{At, Events, Running};
pub use file::{is_trace, why_broken};
use merge::{Item, Merge};
use punctual_model::{Instant, Platform};
use punctual_trace::{About, Record, Totals};
use std::collections::HashMap;
use std::path::Path;
use survey::Survey;

/// Records all that is read.
const COMMAND: &str = "perfetto -t 10s -b 64mb -o run.pftrace 'sched/*' 'task/*' 'raw_syscalls/*'";

/// What Perfetto writes in a form that is not read.
const UNKNOWN: [&str; 1] = ["sched_stat_runtime"];

/// A trace of Perfetto.
pub struct Trace {
    bytes: Bytes,
    survey: Survey,
    about: About,
    known: Known,
    cut: Option<Cut>,
    threads: Threads,
    notes: Notes,
}

impl Trace {
    /// Looks through the file.
    pub fn open(path: &Path, options: &Options) -> Result<Trace, Error> {
        Trace::of_bytes(path, Bytes::open(path)?, options)
    }

    /// The same of a file in memory.
    pub fn in_memory(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Trace, Error> {
        Trace::of_bytes(path, Bytes::Memory(bytes), options)
    }

    fn of_bytes(path: &Path, bytes: Bytes, options: &Options) -> Result<Trace, Error> {
        let survey = Survey::of(&bytes);
        check(&survey).map_err(|why| Error::malformed(path, why))?;
        let clock = clock(&survey).map_err(|why| Error::malformed(path, why))?;
        let mut notes = Notes::default();
        let cut = survey.beginning();
        let from = cut.as_ref().map_or(survey.first(), |cut| cut.at);
        let about = about(&survey, clock, from, options);
        let machine = options.machine_of(&about.platform.machine, &mut notes);
        let calls = calls(&survey, machine, &mut notes);
        let has = |name: &str| has(&survey, name);
        let processes = has(layout::BORN) || !survey.threads.is_empty();
        let known =
            Known { calls: calls != Calls::None, machine: machine.is_some(), processes, doubtful: &UNKNOWN };
        say(&survey, clock, &mut notes);
        let machine = machine.filter(|_| calls != Calls::None);
        let threads = Threads::new(options.include_best_effort, machine, calls)
            .named_by_switches(!has(layout::RENAMED));
        Ok(Trace { bytes, survey, about, known, cut, threads, notes })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.length()
    }

    /// Hands on everything, in order of time.
    pub fn run(
        self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        let Trace { bytes, survey, about, known, cut, threads, notes } = self;
        let mut goes_on = true;
        let mut out = |record: Record| goes_on = goes_on && each(&record);
        let mut merge = Merge::new(&bytes, &survey);
        let mut taker = Taker::new(&survey, &about, cut, threads, notes);
        taker.introduce(&survey, &mut out);
        let mut count = 0_u64;
        while let Some(item) = merge.next() {
            taker.take(&item, &merge, &mut out);
            count += 1;
            if count % 65_536 == 0 {
                progress(merge.position());
            }
        }
        Ok(taker.finish(&merge, &survey, known, &mut out))
    }
}

/// Whether there is what an import needs.
fn check(survey: &Survey) -> Result<(), String> {
    if survey.streams.is_empty() {
        return Err(format!("a Perfetto trace without events of ftrace; record with {COMMAND}"));
    }
    if survey.is_drawn() {
        let why = "it was made of another trace, as punctual timeline does: take that one";
        return Err(why.to_owned());
    }
    if let Some(at) = survey.second {
        return Err(format!(
            "it has several traces, one behind the other: another one begins near byte {at}; import each \
             alone"
        ));
    }
    if !survey.has(SWITCH) {
        return Err(format!(
            "it has no event {SWITCH}, without which nobody knows who ran; record with {COMMAND}"
        ));
    }
    Ok(())
}

/// Whether events of this name are there, or were asked for and did not happen. Without wake-ups something is
/// wrong, whatever was asked for.
fn has(survey: &Survey, name: &str) -> bool {
    survey.has(name) || survey.has_asked_for(name) && !name.starts_with("sched_wak")
}

/// The name of the clock of a timing model.
fn clock(survey: &Survey) -> Result<&'static str, String> {
    let mut clocks = survey.clocks.iter();
    match (clocks.next(), clocks.next()) {
        (None | Some(0), None) => Ok("CLOCK_BOOTTIME"),
        (Some(2), None) => Ok("ftrace global"),
        (Some(3), None) => Ok("ftrace local"),
        (Some(4), None) => Ok("CLOCK_MONOTONIC_RAW"),
        (Some(_), None) => Err("it does not name the clock of its events of ftrace".to_owned()),
        (_, Some(_)) => Err("its events of ftrace have several clocks".to_owned()),
    }
}

/// The real time at the zero of a clock, if both are in a snapshot.
fn zero(survey: &Survey, clock: &str) -> Option<i64> {
    const REALTIME: u32 = 1;
    let number = match clock {
        "CLOCK_BOOTTIME" => 6,
        "CLOCK_MONOTONIC_RAW" => 5,
        _ => return None,
    };
    let clocks = &survey.moment.as_ref()?.clocks;
    let of = |id: u32| clocks.iter().find(|clock| clock.id == id).map(|clock| clock.ns);
    i64::try_from(of(REALTIME)?).ok()?.checked_sub(i64::try_from(of(number)?).ok()?)
}

fn about(survey: &Survey, clock: &str, from: Instant, options: &Options) -> About {
    let system = &survey.system;
    let (kernel, machine) =
        system.utsname.as_ref().map(|it| (it.release.clone(), it.machine.clone())).unwrap_or_default();
    let given = options.machine.map_or("", Machine::name).to_owned();
    let cpus = if system.cpus > 0 { system.cpus } else { survey.cpus().len() as u32 };
    // `Perfetto v56.0 (N/A)`
    let version = system.version.split(' ').take(2).collect::<Vec<_>>().join(" ");
    About {
        platform: Platform { kernel, machine: if machine.is_empty() { given } else { machine }, cpus },
        host: String::new(),
        source: if version.starts_with("Perfetto") { version } else { "Perfetto".to_owned() },
        clock: clock.to_owned(),
        clock_zero: zero(survey, clock),
        from,
        switches: true,
        latency: false,
    }
}

/// Which system calls are read: those of a list say nothing of a sleep outside of them.
fn calls(survey: &Survey, machine: Option<Machine>, notes: &mut Notes) -> Calls {
    if !survey.has("sys_enter") {
        return Calls::None;
    }
    if survey.lacks_calls() {
        notes.say("only some system calls were recorded (syscall_events), which are not read");
        return Calls::None;
    }
    if machine.is_none() && survey.system.utsname.is_none() {
        notes.say(NO_MACHINE);
    }
    Calls::All
}

fn say(survey: &Survey, clock: &str, notes: &mut Notes) {
    if !clock.starts_with("CLOCK_") {
        notes.say(format!("times are those of the clock {clock}"));
    }
    if survey.has_columns {
        notes.say(
            "its switches are compact (compact_sched): a change of priority is seen only when the thread \
             next runs",
        );
    }
    survey.say(notes);
}

/// When an event was, of which kind, and by which stream.
type Last = (u64, Option<u32>, usize);

/// Takes events to their threads.
struct Taker {
    threads: Threads,
    notes: Notes,
    cut: Option<Cut>,
    reached: Reached,
    events: Events,
    /// Who runs, by each stream.
    running: Vec<Option<Running>>,
    /// The last event of each processor, where several streams have it.
    last: Option<HashMap<u32, Last>>,
    /// Events before the beginning.
    before: u64,
    /// The streams end before the recording does.
    ends_early: bool,
}

impl Taker {
    fn new(survey: &Survey, about: &About, cut: Option<Cut>, threads: Threads, notes: Notes) -> Taker {
        Taker {
            threads,
            notes,
            cut,
            reached: Reached::new(about.from),
            events: Events::default(),
            running: vec![None; survey.streams.len()],
            last: survey.has_twins().then(HashMap::new),
            before: 0,
            ends_early: survey.ends_early(),
        }
    }

    /// The names of threads, which come at any time.
    fn introduce(&mut self, survey: &Survey, out: &mut dyn FnMut(Record)) {
        for (tid, (pid, name)) in &survey.threads {
            match name {
                Some(name) => self.threads.name(*pid, *tid, name, None, out),
                None => self.threads.born(*pid, *tid),
            }
        }
    }

    fn take(&mut self, item: &Item, merge: &Merge, out: &mut dyn FnMut(Record)) {
        match *item {
            Item::Event { at, stream } => {
                if let Some(event) = merge.event(stream) {
                    self.event(event, at, (stream, merge.cpu(stream)), out);
                }
            }
            Item::Gap { stream, is_first } => {
                self.running[stream] = None;
                // What was written over before the beginning is no gap in what follows.
                if !(is_first && self.cut.is_some()) {
                    self.lose(merge.cpu(stream), 1);
                }
            }
            Item::End { stream } if self.ends_early => self.lose(merge.cpu(stream), 0),
            Item::End { .. } => {}
        }
    }

    fn event(&mut self, event: Event, at: u64, (stream, cpu): (usize, u32), out: &mut dyn FnMut(Record)) {
        let running = &mut self.running[stream];
        if self.cut.as_ref().is_some_and(|cut| at < cut.at.ns()) {
            self.before += 1;
            return Events::pass(event, running);
        }
        if let Some(last) = &mut self.last {
            let (kind, of) = (event.kind(), last.get(&cpu));
            if of.is_some_and(|of| (of.0, of.1) == (at, kind) && of.2 != stream) {
                return Events::pass(event, running);
            }
            last.insert(cpu, (at, kind, stream));
        }
        let (threads, at) = (&mut self.threads, Instant::from_ns(at));
        self.reached.reach(cpu, at, threads, &mut self.notes, out);
        self.events.take(event, running, At { at: self.reached.until, cpu, threads, out });
    }

    fn lose(&mut self, cpu: u32, events: u64) {
        self.reached.lose(Some(cpu), events);
        self.threads.lose();
    }

    fn finish(
        mut self,
        merge: &Merge,
        survey: &Survey,
        known: Known,
        out: &mut dyn FnMut(Record),
    ) -> Imported {
        let until = self.reached.until;
        self.reached.finish(out);
        let mut notes = self.notes;
        notes.say_unseen(self.threads.finish(until, out));
        self.events.say(&mut notes);
        if merge.untimed > 0 {
            notes.say(format!("events without a time, which are left out: {}", merge.untimed));
        }
        self.cut.iter().for_each(|cut| notes.say_cut(cut, self.before));
        merge.damage.iter().for_each(|why| notes.say(format!("{why}; tasks end there")));
        // The kernel counts what it overwrote.
        if self.reached.lost > 0 && self.cut.is_none() {
            self.reached.lost = self.reached.lost.max(survey.overwritten());
        }
        self.reached.say(&mut notes);
        let totals = Totals { lost: self.reached.lost, ..Totals::default() };
        let has = |name: &str| has(survey, name);
        let account =
            account::of_kernel(self.events.kinds(&survey.described).into_iter(), &has, known, COMMAND);
        Imported { until, totals, account, notes: notes.into_list() }
    }
}
