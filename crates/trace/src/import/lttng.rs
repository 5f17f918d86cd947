//! Kernel traces of LTTng (lttng-modules): switches, wake-ups and system calls, as records.

mod calls;
mod threads;

use super::error::{Error, ErrorKind};
use super::notes::Notes;
use super::summary::{Imported, Options};
use crate::ctf18::{Class, Item, Reader};
use crate::{About, Record, Totals};
use calls::Kinds;
use punctual_model::{Instant, Platform};
use std::path::{Path, PathBuf};
use threads::Threads;

/// A trace of the kernel, and perhaps others beside it.
pub struct Trace {
    path: PathBuf,
    reader: Reader,
    kinds: Kinds,
    about: About,
    threads: Threads,
    notes: Notes,
}

/// Whether one of the traces is of the kernel.
pub fn has_kernel(reader: &Reader) -> bool {
    (0..reader.traces()).any(|trace| reader.env(trace, "domain") == Some("kernel"))
}

impl Trace {
    /// Takes an opened trace.
    pub fn new(path: &Path, reader: Reader, options: &Options) -> Result<Trace, Error> {
        if !has_kernel(&reader) {
            let why = "is a trace in CTF, but neither of LTTng's kernel tracer nor of ROS 2";
            return Err(Error::new(ErrorKind::NotATrace, format!("{} {why}", path.display())));
        }
        let kinds = Kinds::new(&reader);
        if !kinds.has_switches() {
            let why = "it has no events sched_switch: lttng enable-event -k sched_switch,sched_waking, and \
                lttng enable-event -k --syscall -a";
            return Err(Error::malformed(path, why));
        }
        let mut notes = Notes::default();
        say_what_is_missing(&mut notes, &kinds);
        let about = about(&reader);
        let threads = Threads::new(options.include_best_effort);
        Ok(Trace { path: path.to_owned(), reader, kinds, about, threads, notes })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.reader.bytes()
    }

    /// Hands on everything, in order of time.
    pub fn run(
        mut self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        let (mut goes_on, mut until) = (true, self.about.from);
        let (kinds, threads, reader) = (&self.kinds, &mut self.threads, &self.reader);
        let (mut lost, mut gap_until) = (0_u64, None);
        let mut unread = vec![0_u64; reader.classes().len()];
        let totals = reader.read(
            &mut |item| {
                let out: &mut dyn FnMut(Record) = &mut |record| goes_on = goes_on && each(&record);
                match item {
                    Item::Event(event) => {
                        if let Some((seen, happening)) = kinds.happening(event) {
                            until = until.max(event.at);
                            // Up to here, too.
                            if gap_until.take_if(|gap| event.at >= *gap).is_some() {
                                threads.lose();
                            }
                            threads.take(&seen, happening, out);
                        } else if !kinds.is_read(event.class) {
                            unread[event.class] += 1;
                        }
                    }
                    Item::Lost(gap) if reader.env(gap.trace, "domain") == Some("kernel") => {
                        lost = lost.saturating_add(gap.events.saturating_add(gap.packets).max(1));
                        gap_until = gap_until.max(Some(gap.until));
                        threads.lose();
                    }
                    Item::Lost(_) => {}
                }
                goes_on
            },
            progress,
        )?;
        let unseen = threads.finish(until, &mut |record| goes_on = goes_on && each(&record));
        self.notes.say_unseen(unseen);
        let of_kernel = |(class, _): &(&Class, u64)| reader.env(class.trace, "domain") == Some("kernel");
        let unread = reader.classes().iter().zip(unread).filter(of_kernel);
        self.notes.say_unread(unread.map(|(class, count)| (class.name.as_str(), count)));
        for damage in &totals.damages {
            self.notes.say(format!("{}: {damage}", self.path.display()));
        }
        if totals.discarded > 0 {
            self.notes.say(format!("events that LTTng discarded: {}; tasks end there", totals.discarded));
        }
        if totals.packets > 0 {
            self.notes.say(format!("packets missing or damaged: {}; tasks end there", totals.packets));
        }
        let totals = Totals { lost, ..Totals::default() };
        Ok(Imported { until, totals, notes: self.notes.into_list() })
    }
}

fn about(reader: &Reader) -> About {
    let env = |key| (0..reader.traces()).find_map(|trace| reader.env(trace, key)).unwrap_or_default();
    let (clock, zero) = reader.clock();
    let tracer = format!("LTTng {}.{}", env("tracer_major"), env("tracer_minor"));
    About {
        platform: Platform { kernel: env("kernel_release").to_owned(), machine: String::new(), cpus: 0 },
        host: env("hostname").to_owned(),
        source: tracer.trim_end_matches([' ', '.']).to_owned(),
        clock: if clock == "monotonic" { "CLOCK_MONOTONIC".into() } else { format!("LTTng's clock {clock}") },
        clock_zero: i64::try_from(zero).ok().filter(|zero| *zero > 0),
        from: first(reader),
        switches: true,
        latency: false,
    }
}

/// When the first event happened.
fn first(reader: &Reader) -> Instant {
    let mut first = Instant::from_ns(0);
    let mut take = |item: &Item<'_>| match item {
        Item::Event(event) => {
            first = event.at;
            false
        }
        Item::Lost(_) => true,
    };
    // What cannot be read is said when all is read.
    let _ = reader.read(&mut take, &mut |_| {});
    first
}

fn say_what_is_missing(notes: &mut Notes, kinds: &Kinds) {
    notes.say(
        "LTTng does not say: which of FIFO and RR a thread is under (taken as FIFO), reservations, affinity, \
         command lines",
    );
    if !kinds.has("sched_pi_setprio") {
        notes.say(
            "priorities are those of the moment: one that a lock lends a thread begins a task \
             (sched_pi_setprio would tell)",
        );
    }
    notes.say("processor time is the sum of the stretches between switches, not the kernel's account");
    if !kinds.has("sched_waking") && !kinds.has("sched_wakeup") {
        notes.say("it has no wake-ups: releases are windows (lttng enable-event -k sched_waking)");
    }
    if !kinds.has_calls() {
        notes.say("it has no system calls: every sleep divides jobs (lttng enable-event -k --syscall -a)");
    } else {
        notes.say("until when a thread sleeps is behind a pointer: arrivals are not known");
        notes.say(
            "what a descriptor is, and whether it blocks, is not known: a read, accept or receive divides \
             jobs only where it slept",
        );
    }
}
