//! `perf.data` with scheduler tracepoints (`perf sched record`), and system calls where it has them (`-e
//! 'sched:*,raw_syscalls:*'`).

mod files;
mod header;
mod order;
mod pipe;
mod records;
mod source;

use super::account::{self, Known, use_of};
use super::error::{Error, ErrorKind};
use super::notes::Notes;
use super::summary::{Imported, Options};
use super::tracepoints::{Calls, Format, SWITCH, Seen, Threads, formats, kinds};
use files::{Files, Missing};
use linux_perf_data::linux_perf_event_reader::{
    AttrFlags, EventRecord, PerfClock, PerfEventAttr, PerfEventType, RawEventRecord, RecordType,
    SampleRecord, SamplingPolicy,
};
use linux_perf_data::{AttributeDescription, Feature, PerfFile};
use order::{Merged, Next};
use punctual_model::{Duration, Instant, Platform};
use punctual_trace::account::Use;
use punctual_trace::{About, Record, Totals};
use source::Content;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Records all that is read.
const COMMAND: &str = "perf record -a -k CLOCK_MONOTONIC -e 'sched:*,raw_syscalls:*' -- PROGRAM";

/// Files of processors that end within this time of each other end at the same time.
const SAME_END: Duration = Duration::from_ms(1_000);

/// Types of records that are read.
const READ: [RecordType; 6] = [
    RecordType::SAMPLE,
    RecordType::COMM,
    RecordType::FORK,
    RecordType::EXIT,
    RecordType::LOST,
    RecordType::LOST_SAMPLES,
];

/// Options of `perf record` that choose threads.
const CHOOSES: [&str; 6] = ["-p", "--pid", "-t", "--tid", "-u", "--uid"];

/// What perf recorded.
pub struct Trace {
    files: Files,
    about: About,
    conversion: Conversion,
}

/// Turns events into records.
struct Conversion {
    formats: HashMap<u16, Format>,
    known: Known,
    notes: Notes,
    threads: Threads,
    /// The latest event so far.
    until: Instant,
    /// The latest event of each processor.
    reached: HashMap<u32, Instant>,
    from: Instant,
    lost: u64,
    /// Of these, by reports of buffers, and what perf has counted beyond them.
    reported: u64,
    /// What perf has counted of each event, in all.
    lost_samples: u64,
    /// Samples of what is no known tracepoint.
    others: u64,
    /// Names, beginnings and ends of threads.
    births: u64,
}

impl Trace {
    /// Reads the headers.
    pub fn open(path: &Path, options: &Options) -> Result<Trace, Error> {
        Trace::of(path, Files::open(path)?, options)
    }

    /// The same of a file in memory.
    pub fn in_memory(path: &Path, bytes: Vec<u8>, options: &Options) -> Result<Trace, Error> {
        Trace::of(path, Files::of(path, Content::in_memory(bytes), None)?, options)
    }

    fn of(path: &Path, files: Files, options: &Options) -> Result<Trace, Error> {
        let formats = formats(files.file.feature_section_data(Feature::TRACING_DATA).unwrap_or_default());
        if !formats.values().any(|format| format.name == SWITCH) {
            let why = "it has no tracepoint sched:sched_switch; record with perf sched record, or perf \
                record -e 'sched:*,raw_syscalls:*' -a";
            return Err(Error::new(ErrorKind::Malformed, format!("{}: {why}", path.display())));
        }
        let mut notes = Notes::default();
        check_sampling(&files.file, &formats, &mut notes).map_err(|why| Error::malformed(path, why))?;
        let mut about = about(&files.file, &mut notes);
        if follows_some(&files.file) {
            notes.say(
                "perf followed some threads (no -a): what others did, wake-ups above all, is not in it, so \
                 when threads were released is mostly known only to lie between two events",
            );
        }
        if about.from.ns() == 0 {
            about.from = first_sample(&files);
        }
        let machine = options.machine_of(&about.platform.machine, &mut notes);
        let calls = Calls::of(formats.values());
        let threads = Threads::new(options.include_best_effort, machine, calls);
        let (from, reached) = (about.from, HashMap::new());
        let known =
            Known { calls: calls != Calls::None, machine: machine.is_some(), processes: true, doubtful: &[] };
        let conversion = Conversion {
            formats,
            known,
            notes,
            threads,
            until: from,
            reached,
            from,
            lost: 0,
            reported: 0,
            lost_samples: 0,
            others: 0,
            births: 0,
        };
        Ok(Trace { files, about, conversion })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.files.bytes
    }

    /// Hands on everything, in the order that perf's own rounds give.
    pub fn run(
        mut self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        let Trace { files, conversion, .. } = &mut self;
        let (mut goes_on, mut taken) = (true, 0_u64);
        let mut records = files.records();
        records.begin();
        files.left_out.iter().for_each(|what| conversion.notes.say(what));
        if files.is_piped {
            conversion.notes.say("what perf writes to a pipe does not tell whether its end is missing");
        }
        for missing in files.missing(records.processors()) {
            conversion.say_missing(&missing);
            goes_on = goes_on && each(&conversion.lose_rest(1));
        }
        while goes_on {
            match records.next() {
                Next::Event(event) => {
                    if let Some(record) = event.record(&files.layouts) {
                        conversion.event(&record, &mut |record| goes_on = goes_on && each(&record));
                    }
                    records.give_back(event);
                }
                Next::Broken { file, at, why } => {
                    let path = files.path(file).unwrap_or(Path::new(""));
                    let at = files.byte(file, at);
                    conversion.notes.say(format!(
                        "{}, byte {at} or so: it cannot be read any further ({why}); what follows is left \
                         out, and what came just before",
                        path.display()
                    ));
                    goes_on = each(&conversion.lose_rest(1));
                    break;
                }
                Next::End => {
                    conversion.say_ends(files, &records);
                    break;
                }
            }
            taken += 1;
            if taken % 65_536 == 0 {
                progress(records.position());
            }
        }
        conversion.say_recorded(&files.file, records.processors());
        Ok(self.conversion.finish(&mut |record| goes_on = goes_on && each(&record)))
    }
}

impl Conversion {
    fn say_missing(&mut self, Missing { name, cpu, is_empty }: &Missing) {
        let of = cpu.map_or_else(|| "a processor".to_owned(), |cpu| format!("processor {cpu}"));
        let (state, or) = if *is_empty { ("empty", ", or nothing happened there") } else { ("missing", "") };
        self.notes.say(format!(
            "{name}, with the events of {of}, is {state}: what threads did there is not in it{or}; copy the \
             whole folder"
        ));
    }

    /// Says which files of processors end long before the others.
    fn say_ends(&mut self, files: &Files, records: &Merged) {
        let last = records.last_samples();
        let ends = files.of_buffers().filter_map(|(file, name)| {
            let last = Instant::from_ns(*last.get(file)?);
            Some((name, last.max(self.from)))
        });
        let ends: Vec<(String, Instant)> = ends.collect();
        let Some(end) = ends.iter().map(|(_, own)| *own).max() else { return };
        for (name, own) in ends {
            let early = end.since(own);
            if early > SAME_END {
                self.notes.say_early_end(&name, early);
            }
        }
    }

    /// Notes the processors that were not recorded: by perf's list of those that were, or else those that had
    /// no event at all.
    fn say_recorded(&mut self, file: &PerfFile, processors: &[(u64, u64)]) {
        let listed: BTreeSet<u64> = processors.iter().map(|(_, cpu)| *cpu).collect();
        let is_listed = !listed.is_empty();
        // All ones stand for any processor.
        if listed.iter().any(|cpu| *cpu >= u64::from(u32::MAX)) {
            return;
        }
        let seen = self.reached.keys().map(|cpu| u64::from(*cpu)).collect();
        let cpus = if is_listed { listed } else { seen };
        let online = files::cpus(file) as usize;
        if cpus.is_empty() || cpus.len() >= online {
            return;
        }
        let (count, names) = (cpus.len(), list(&cpus));
        self.notes.say(match is_listed {
            true => format!(
                "perf recorded {count} of {online} processors ({names}): what threads did on others is not \
                 in it; perf record -a records all"
            ),
            false => format!(
                "only {count} of {online} processors had events ({names}): others were idle, or not recorded"
            ),
        });
    }

    fn event(&mut self, record: &RawEventRecord<'_>, out: &mut dyn FnMut(Record)) {
        // Others need not have the time that the library reads from their last bytes.
        if !READ.contains(&record.record_type) {
            return;
        }
        let given = record.timestamp().map_or(self.until, Instant::from_ns);
        let at = given.max(self.until);
        let cpu = record.common_data().ok().and_then(|common| common.cpu);
        match parse(record) {
            Ok(EventRecord::Sample(sample)) => {
                if !self.sample(&sample, given, out) {
                    return;
                }
            }
            Ok(EventRecord::Comm(comm)) => {
                self.births += 1;
                let name = comm.name.as_slice();
                let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
                self.threads.name(comm.pid, comm.tid, &name, comm.is_execve.then_some(at), out);
            }
            Ok(EventRecord::Fork(fork)) => {
                self.births += 1;
                self.threads.born(fork.pid, fork.tid);
            }
            Ok(EventRecord::Exit(exit)) => {
                self.births += 1;
                self.threads.ended(exit.tid, at, out);
            }
            Ok(EventRecord::Lost(gap)) => {
                self.reported = self.reported.saturating_add(gap.count);
                out(self.lose(gap.count, cpu, at));
            }
            Ok(EventRecord::Raw(raw)) if raw.record_type == RecordType::LOST_SAMPLES => {
                let bytes = raw.data.as_slice();
                let count = bytes.first_chunk().map_or(1, |count| u64::from_le_bytes(*count));
                self.lost_samples = self.lost_samples.saturating_add(count);
                // In the end, perf counts those again that its buffers have reported.
                let rest = self.lost_samples.saturating_sub(self.reported);
                if rest > 0 {
                    self.reported = self.lost_samples;
                    out(self.lose_rest(rest));
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.notes.count(&format!("records that cannot be read: {error}; tasks end there"));
                out(self.lose(1, cpu, at));
            }
        }
        self.until = at;
        self.reached.extend(cpu.map(|cpu| (cpu, at)));
    }

    /// Returns whether it is of a tracepoint with a known format.
    fn sample(&mut self, sample: &SampleRecord<'_>, given: Instant, out: &mut dyn FnMut(Record)) -> bool {
        let raw = sample.raw.as_ref().map(|raw| raw.as_slice());
        let number = raw.as_ref().and_then(|bytes| Some(u16::from_le_bytes(*bytes.first_chunk()?)));
        let format = number.and_then(|number| self.formats.get(&number));
        let (Some(bytes), Some(format)) = (raw, format) else {
            self.others += 1;
            return false;
        };
        format.count();
        let seen = Seen {
            at: given.max(self.until),
            cpu: sample.cpu.unwrap_or(0),
            pid: sample.pid.unwrap_or(0),
            tid: sample.tid.unwrap_or(0),
            format,
            bytes: &bytes,
        };
        if given < self.until {
            self.notes.count("events out of order: taken at the time of the one before");
        }
        self.threads.sample(&seen, out);
        true
    }

    /// Events of a processor are missing since its last one.
    fn lose(&mut self, count: u64, cpu: Option<u32>, until: Instant) -> Record {
        self.lost = self.lost.saturating_add(count);
        self.threads.lose();
        let since = cpu.map_or(self.from, |cpu| self.reached.get(&cpu).copied().unwrap_or(self.from));
        Record::Lost { since, until }
    }

    /// Events are missing after the last one of some processor.
    fn lose_rest(&mut self, count: u64) -> Record {
        let first = self.reached.iter().min_by_key(|(_, at)| **at).map(|(cpu, _)| *cpu);
        self.lose(count, first, Instant::from_ns(u64::MAX))
    }

    fn finish(mut self, out: &mut dyn FnMut(Record)) -> Imported {
        self.threads.say_machine(&mut self.notes);
        self.notes.say_unseen(self.threads.finish(self.until, out));
        if self.lost > 0 {
            self.notes.say(format!("events lost: {}; tasks end there", self.lost));
        }
        let totals = Totals { lost: self.lost, ..Totals::default() };
        let others = [
            ("samples of other events", self.others, None),
            ("COMM, FORK and EXIT records", self.births, Some(Use::Threads)),
        ];
        let has = |name: &str| self.formats.values().any(|format| format.name == name);
        let all = kinds(self.formats.values()).chain(others);
        let account = account::of_kernel(all, &has, self.known, COMMAND);
        Imported { until: self.until, totals, account, notes: self.notes.into_list() }
    }
}

/// The file with the header in a folder that perf made (`perf record --threads`, `--kcore`).
pub fn in_folder(path: &Path) -> Option<PathBuf> {
    let file = path.join("data");
    let mut magic = [0; 8];
    // To open a pipe of that name would wait.
    let is_perf = file.is_file()
        && File::open(&file).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && (&magic == b"PERFILE2" || &magic == b"2ELIFREP");
    is_perf.then_some(file)
}

/// The first few of these numbers.
fn list(numbers: &BTreeSet<u64>) -> String {
    const NAMED: usize = 8;
    let named: Vec<String> = numbers.iter().take(NAMED).map(u64::to_string).collect();
    let rest = if numbers.len() > NAMED { ", …" } else { "" };
    format!("{}{rest}", named.join(", "))
}

/// The content of a record. The library multiplies a length of the file by eight without looking, which
/// panics where that is checked.
fn parse<'a>(record: &RawEventRecord<'a>) -> Result<EventRecord<'a>, std::io::Error> {
    catch_unwind(AssertUnwindSafe(|| record.parse()))
        .unwrap_or_else(|_| Err(std::io::ErrorKind::InvalidData.into()))
}

/// When the first event happened, where the header does not say (`perf record -B`).
fn first_sample(files: &Files) -> Instant {
    let mut records = files.records();
    // What is broken is said when the rest is read.
    while let Next::Event(event) = records.next() {
        if let Some(time) = event.record(&files.layouts).filter(is_sample).and_then(|it| it.timestamp()) {
            return Instant::from_ns(time);
        }
        records.give_back(event);
    }
    Instant::from_ns(0)
}

fn is_sample(record: &RawEventRecord) -> bool {
    record.record_type == RecordType::SAMPLE
}

/// Whether perf followed a program that it started, or threads that somebody chose.
fn follows_some(file: &PerfFile) -> bool {
    let starts = |it: &AttributeDescription| it.attributes().flags.contains(AttrFlags::ENABLE_ON_EXEC);
    let command = file.cmdline().ok().flatten().unwrap_or_default();
    let options = || command.iter().take_while(|word| **word != "--");
    let is_everywhere = options().any(|word| ["-a", "--all-cpus"].contains(word));
    let chooses = |word: &&str| CHOOSES.iter().any(|option| word.starts_with(option));
    file.event_attributes().iter().any(starts) || !is_everywhere && options().any(chooses)
}

/// Refuses what lacks events of a tracepoint that is read: costs and responses would be made of gaps.
fn check_sampling(file: &PerfFile, formats: &HashMap<u16, Format>, notes: &mut Notes) -> Result<(), String> {
    for attribute in file.event_attributes() {
        let attribute = attribute.attributes();
        let PerfEventType::Tracepoint(number) = attribute.type_ else { continue };
        if !is_sampled(attribute) {
            continue;
        }
        match u16::try_from(number).ok().and_then(|number| formats.get(&number)) {
            Some(format) if use_of(&format.name).is_some() => {
                return Err(format!(
                    "perf recorded only some of its events, those of {} at least (-F, -c): record without \
                     these options",
                    format.name
                ));
            }
            // It is not read.
            Some(_) => {}
            None => notes.say(format!(
                "PERF RECORDED ONLY SOME EVENTS (-F, -c) of tracepoint {number}, which is not described: if \
                 it is one of those that are read, all that follows is wrong; record without these options"
            )),
        }
    }
    Ok(())
}

/// Whether perf took only one of several events, as one does of a processor's cycles.
fn is_sampled(attribute: &PerfEventAttr) -> bool {
    match attribute.sampling_policy {
        SamplingPolicy::Frequency(_) => true,
        SamplingPolicy::Period(period) => period.get() > 1,
        SamplingPolicy::NoSampling => false,
    }
}

fn about(file: &PerfFile, notes: &mut Notes) -> About {
    let text = |value: Result<Option<&str>, _>| value.ok().flatten().unwrap_or_default().to_owned();
    let cpus = files::cpus(file);
    let clock = file.event_attributes().first().map(|attribute| attribute.attributes().clock);
    let (clock, is_its_own) = match clock {
        Some(PerfClock::ClockId(id)) => (format!("{id:?}"), false),
        _ => ("perf".to_owned(), true),
    };
    let clock = match clock.as_str() {
        "Monotonic" => "CLOCK_MONOTONIC",
        "MonotonicRaw" => "CLOCK_MONOTONIC_RAW",
        "Boottime" => "CLOCK_BOOTTIME",
        "Realtime" => "CLOCK_REALTIME",
        other => other,
    };
    if is_its_own {
        notes.say(
            "times are those of perf's own clock (the scheduler's); perf record -k CLOCK_MONOTONIC \
                makes them comparable with others",
        );
    }
    let zero = file.clock_data().ok().flatten();
    About {
        platform: Platform { kernel: text(file.os_release()), machine: text(file.arch()), cpus },
        host: text(file.hostname()),
        source: format!("perf {}", text(file.perf_version())).trim_end().to_owned(),
        clock: clock.to_owned(),
        clock_zero: zero.and_then(|zero| {
            i64::try_from(zero.wall_clock_ns).ok()?.checked_sub_unsigned(zero.clockid_time_ns)
        }),
        from: Instant::from_ns(
            file.sample_time_range().ok().flatten().map_or(0, |range| range.first_sample_time),
        ),
        switches: true,
        latency: false,
    }
}
