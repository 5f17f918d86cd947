//! Kernel traces of LTTng (lttng-modules): switches, wake-ups and system calls, as records.

mod calls;
mod threads;

use super::account::{self, Known, use_of};
use super::error::{Error, ErrorKind};
use super::notes::{Cut, Notes, WRITTEN_OVER};
use super::summary::{Imported, Options};
use crate::ctf18::{Extent, Item, Reader};
use calls::Kinds;
use punctual_model::{Duration, Instant, Platform};
use punctual_trace::account::Account;
use punctual_trace::{About, Record, Totals};
use std::path::{Path, PathBuf};
use threads::Threads;

/// Records all that is read.
const COMMAND: &str = "lttng enable-event -k 'sched_*,irq_*,timer_hrtimer_*' && lttng enable-event -k \
                       --syscall -a && lttng add-context -k -t tid";

/// A stream that ends so much before others is suspicious.
const SAME_END: Duration = Duration::from_ms(100);

/// A trace of the kernel, and perhaps others beside it.
pub struct Trace {
    path: PathBuf,
    reader: Reader,
    kinds: Kinds,
    about: About,
    cut: Option<Cut>,
    threads: Threads,
    notes: Notes,
}

/// Whether one of the traces is of the kernel.
pub fn has_kernel(reader: &Reader) -> bool {
    (0..reader.traces()).any(|trace| is_kernel(reader, trace))
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
        if let Some(field) = kinds.missing_field(&reader) {
            let why =
                format!("its events sched_switch have no field {field}, without which none can be read");
            return Err(Error::malformed(path, why));
        }
        let mut kernels = (0..reader.traces()).filter(|trace| is_kernel(&reader, *trace));
        if kernels.any(|trace| !reader.has_times(trace)) {
            let why =
                "its events have no times: in its metadata, no field of their headers is mapped to a clock";
            return Err(Error::malformed(path, why));
        }
        let notes = Notes::default();
        let cut = cut(&reader, &reader.extents()?);
        let about = about(&reader, cut.as_ref().map_or_else(|| first(&reader), |cut| cut.at));
        let threads = Threads::new(options.include_best_effort);
        Ok(Trace { path: path.to_owned(), reader, kinds, about, cut, threads, notes })
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
        let begin = self.cut.as_ref().map_or(Instant::from_ns(0), |cut| cut.at);
        let mut before = 0_u64;
        let mut counts = vec![0_u64; reader.classes().len()];
        let totals = reader.read(
            &mut |item| {
                let out: &mut dyn FnMut(Record) = &mut |record| goes_on = goes_on && each(&record);
                match item {
                    Item::Event(event) if event.at < begin => {
                        before += u64::from(is_kernel(reader, reader.classes()[event.class].trace));
                    }
                    Item::Event(event) => {
                        counts[event.class] += 1;
                        if let Some((seen, happening)) = kinds.happening(event) {
                            until = until.max(event.at);
                            // Up to here, too.
                            if gap_until.take_if(|gap| event.at >= *gap).is_some() {
                                threads.lose();
                            }
                            threads.take(&seen, happening, out);
                        }
                    }
                    Item::Lost(gap) if is_kernel(reader, gap.trace) && gap.until > begin => {
                        lost = lost.saturating_add(gap.events.saturating_add(gap.packets).max(1));
                        gap_until = gap_until.max(Some(gap.until));
                        threads.lose();
                        out(Record::Lost { since: gap.at, until: gap.until });
                    }
                    Item::Lost(_) => {}
                }
                goes_on
            },
            progress,
        )?;
        let unseen = threads.finish(until, &mut |record| goes_on = goes_on && each(&record));
        self.notes.say_unseen(unseen);
        let account = account(reader, kinds, &counts);
        for damage in &totals.damages {
            let damage = damage.to_string();
            let below = damage.strip_prefix(&*self.path.to_string_lossy());
            self.notes.say(below.map_or(damage.as_str(), |below| below.trim_start_matches('/')));
        }
        totals.say_copies(|note| self.notes.say(note));
        self.cut.iter().for_each(|cut| self.notes.say_cut(cut, before));
        if goes_on {
            say_ends(&mut self.notes, reader, &totals.extents);
        }
        if totals.discarded > 0 {
            self.notes.say(format!("events that LTTng discarded: {}; tasks end there", totals.discarded));
        }
        if totals.packets > 0 {
            self.notes.say(format!("packets missing or damaged: {}; tasks end there", totals.packets));
        }
        let totals = Totals { lost, ..Totals::default() };
        Ok(Imported { until, totals, account, notes: self.notes.into_list() })
    }
}

/// Where a flight recorder's trace begins, a snapshot or one in overwrite mode: at the latest first packet of
/// the streams whose packets of before were written over. That of a processor that was idle means nothing.
fn cut(reader: &Reader, extents: &[Extent]) -> Option<Cut> {
    let is_cut = |extent: &&Extent| extent.is_cut && is_kernel(reader, extent.trace);
    let streams: Vec<&Extent> = extents.iter().filter(is_cut).collect();
    let at = streams.iter().filter_map(|extent| extent.begin).max()?;
    let names: Vec<&str> = streams.iter().map(|extent| file_name(extent)).collect();
    Some(Cut { of: some_of(&names), at, why: WRITTEN_OVER })
}

/// Says which streams end long before the others.
fn say_ends(notes: &mut Notes, reader: &Reader, extents: &[Extent]) {
    let of_kernel = || extents.iter().filter(|extent| is_kernel(reader, extent.trace));
    let Some(end) = of_kernel().filter_map(|extent| extent.end).max() else { return };
    for extent in of_kernel() {
        if let Some(early) = extent.end.map(|own| end.since(own)).filter(|early| *early > SAME_END) {
            notes.say_early_end(file_name(extent), early);
        }
    }
}

fn is_kernel(reader: &Reader, trace: usize) -> bool {
    reader.env(trace, "domain") == Some("kernel")
}

fn file_name(extent: &Extent) -> &str {
    extent.name.rsplit('/').next().unwrap_or_default()
}

/// The first few names.
fn some_of(names: &[&str]) -> String {
    const NAMED: usize = 4;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

fn about(reader: &Reader, from: Instant) -> About {
    let env = |key| (0..reader.traces()).find_map(|trace| reader.env(trace, key)).unwrap_or_default();
    let (clock, zero) = reader.clock();
    let tracer = format!("LTTng {}.{}", env("tracer_major"), env("tracer_minor"));
    let clock =
        if clock == "monotonic" { "CLOCK_MONOTONIC".into() } else { format!("LTTng's clock {clock}") };
    About {
        platform: Platform { kernel: env("kernel_release").to_owned(), ..Platform::default() },
        host: env("hostname").to_owned(),
        clock_zero: i64::try_from(zero).ok().filter(|zero| *zero > 0),
        ..About::of_switches(tracer.trim_end_matches([' ', '.']), &clock, from)
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

/// What the kernel's traces had: so many events of each class.
fn account(reader: &Reader, kinds: &Kinds, counts: &[u64]) -> Account {
    let classes = reader.classes().iter().zip(counts).enumerate();
    let of_kernel = classes.filter(|(_, (class, _))| is_kernel(reader, class.trace));
    let all = of_kernel.map(|(place, (class, count))| {
        let name = class.name.as_str();
        (name, *count, use_of(name).filter(|_| kinds.is_read(place)))
    });
    let processes = kinds.has("sched_process_fork") || kinds.has("lttng_statedump_process_state");
    let known = Known { calls: kinds.has_calls(), machine: true, processes, doubtful: &[] };
    account::of_kernel(all, &|name| kinds.has(name), known, COMMAND)
}
