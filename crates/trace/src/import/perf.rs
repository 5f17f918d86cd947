//! `perf.data` with scheduler tracepoints (`perf sched record`), and system calls where it has them (`-e
//! 'sched:*,raw_syscalls:*'`).

mod header;
mod pipe;
mod source;

use super::account::{Account, Known, Use};
use super::error::{Error, ErrorKind};
use super::notes::Notes;
use super::summary::{Imported, Options};
use super::table::Machine;
use super::tracepoints::{Calls, Format, SWITCH, Seen, Threads, formats, kinds};
use crate::{About, Record, Totals};
use linux_perf_data::linux_perf_event_reader::{
    EventRecord, PerfClock, RawEventRecord, RecordType, SampleRecord,
};
use linux_perf_data::{Feature, PerfFile, PerfFileReader, PerfFileRecord, PerfRecordIter};
use punctual_model::{Instant, Platform};
use source::{Content, Source};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Records all that is read.
const COMMAND: &str = "perf record -a -k CLOCK_MONOTONIC -e 'sched:*,raw_syscalls:*' -- PROGRAM";

/// Types of records that are read.
const READ: [RecordType; 6] = [
    RecordType::SAMPLE,
    RecordType::COMM,
    RecordType::FORK,
    RecordType::EXIT,
    RecordType::LOST,
    RecordType::LOST_SAMPLES,
];

/// A file that perf recorded.
pub struct Trace {
    path: PathBuf,
    opened: Opened,
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
    /// Samples of what is no known tracepoint.
    others: u64,
    /// Names, beginnings and ends of threads.
    births: u64,
}

/// As the library gives it, with how far it has been read, and how far there is.
struct Opened {
    file: PerfFile,
    records: PerfRecordIter<Source>,
    position: Rc<Cell<u64>>,
    bytes: u64,
}

impl Trace {
    /// Reads the headers.
    pub fn open(path: &Path, options: &Options) -> Result<Trace, Error> {
        let opened = open(path)?;
        let formats = formats(opened.file.feature_section_data(Feature::TRACING_DATA).unwrap_or_default());
        if !formats.values().any(|format| format.name == SWITCH) {
            let why = "it has no tracepoint sched:sched_switch; record with perf sched record, or perf \
                record -e 'sched:*,raw_syscalls:*' -a";
            return Err(Error::new(ErrorKind::Malformed, format!("{}: {why}", path.display())));
        }
        let mut notes = Notes::default();
        let mut about = about(&opened.file, &mut notes);
        if about.from.ns() == 0 {
            about.from = first_sample(path)?;
        }
        let machine = Machine::from_name(&about.platform.machine).or(options.machine);
        let calls = Calls::of(formats.values());
        let threads = Threads::new(options.include_best_effort, machine, calls);
        let (from, reached) = (about.from, HashMap::new());
        let known = Known { calls: calls != Calls::None, machine: machine.is_some(), processes: true };
        let conversion = Conversion {
            formats,
            known,
            notes,
            threads,
            until: from,
            reached,
            from,
            lost: 0,
            others: 0,
            births: 0,
        };
        Ok(Trace { path: path.to_path_buf(), opened, about, conversion })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.opened.bytes
    }

    /// Hands on everything, in the order that perf's own rounds give.
    pub fn run(
        mut self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        let mut goes_on = true;
        let mut taken = 0_u64;
        while goes_on {
            let record = match self.opened.records.next_record(&mut self.opened.file) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    // The library had read on before it put things in order.
                    let at = self.opened.position.get().min(self.opened.bytes);
                    self.conversion.notes.say(format!(
                        "{}, byte {at} or so: it cannot be read any further ({error}); what follows is left \
                         out, and what came just before",
                        self.path.display()
                    ));
                    goes_on = each(&self.conversion.lose_rest(1));
                    break;
                }
            };
            let PerfFileRecord::EventRecord { record, .. } = record else { continue };
            self.conversion.event(&record, &mut |record| goes_on = goes_on && each(&record));
            taken += 1;
            if taken % 65_536 == 0 {
                progress(self.opened.position.get());
            }
        }
        Ok(self.conversion.finish(&mut |record| goes_on = goes_on && each(&record)))
    }
}

impl Conversion {
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
            Ok(EventRecord::Lost(gap)) => out(self.lose(gap.count, cpu, at)),
            Ok(EventRecord::Raw(raw)) if raw.record_type == RecordType::LOST_SAMPLES => {
                let bytes = raw.data.as_slice();
                let count = bytes.first_chunk().map_or(1, |count| u64::from_le_bytes(*count));
                out(self.lose_rest(count));
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
        let account = Account::of_kernel(all, &has, self.known, COMMAND);
        Imported { until: self.until, totals, account, notes: self.notes.into_list() }
    }
}

/// The file with the records in a folder that perf made (`perf record --kcore`); an error if they are in
/// several files (`--threads`).
pub fn in_folder(path: &Path) -> Result<Option<PathBuf>, Error> {
    let file = path.join("data");
    let mut magic = [0; 8];
    let is_perf = path.is_dir()
        && File::open(&file).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && (&magic == b"PERFILE2" || &magic == b"2ELIFREP");
    match is_perf {
        true if path.join("data.0").exists() => Err(Error::malformed(path, header::SPLIT)),
        is_perf => Ok(is_perf.then_some(file)),
    }
}

/// The content of a record. The library multiplies a length of the file by eight without looking, which
/// panics where that is checked.
fn parse<'a>(record: &RawEventRecord<'a>) -> Result<EventRecord<'a>, std::io::Error> {
    catch_unwind(AssertUnwindSafe(|| record.parse()))
        .unwrap_or_else(|_| Err(std::io::ErrorKind::InvalidData.into()))
}

/// A file whose header was looked at before the library did.
fn open(path: &Path) -> Result<Opened, Error> {
    let mut file = File::open(path).map_err(|error| Error::io(path, &error))?;
    let bytes = file.metadata().map_err(|error| Error::io(path, &error))?.len();
    let mut magic = [0; 8];
    if file.read_exact(&mut magic).is_ok() && &magic == b"2ELIFREP" {
        return Err(Error::malformed(
            path,
            "it was recorded on a big-endian machine, whose tracepoints cannot be read here",
        ));
    }
    let malformed = |why: String| Error::malformed(path, why);
    let content = match pipe::is_one(&file) {
        true => pipe::content(file, bytes).map_err(malformed)?,
        false => Content::whole(file, bytes),
    };
    let (data, bytes) = (header::check(&content).map_err(malformed)?, content.length());
    let mut source = Source::new(content, data);
    let position = source.position();
    std::io::Seek::rewind(&mut source).map_err(|error| Error::io(path, &error))?;
    let PerfFileReader { perf_file, record_iter } =
        PerfFileReader::parse_file(source).map_err(|error| broken(path, &error))?;
    Ok(Opened { file: perf_file, records: record_iter, position, bytes })
}

fn broken(path: &Path, error: &linux_perf_data::Error) -> Error {
    Error::malformed(path, format!("it cannot be read as a perf.data file: {error}"))
}

/// When the first event happened, where the header does not say (`perf record -B`).
fn first_sample(path: &Path) -> Result<Instant, Error> {
    let Opened { mut file, mut records, .. } = open(path)?;
    // What is broken is said when the rest is read.
    while let Ok(Some(record)) = records.next_record(&mut file) {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        if let (RecordType::SAMPLE, Some(time)) = (record.record_type, record.timestamp()) {
            return Ok(Instant::from_ns(time));
        }
    }
    Ok(Instant::from_ns(0))
}

fn about(file: &PerfFile, notes: &mut Notes) -> About {
    let text = |value: Result<Option<&str>, _>| value.ok().flatten().unwrap_or_default().to_owned();
    let cpus = file.nr_cpus().ok().flatten().map_or(0, |cpus| cpus.nr_cpus_online);
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
