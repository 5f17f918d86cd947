//! The flight recorder: the records of the last seconds, in memory, written as a recording when there is a
//! violation.

use super::alarms::Counters;
use crate::error::{Error, Result, plain_reason};
use crate::folder::RecordingFolder;
use crate::monitor::Monitor;
use crate::platform;
use crate::record::{self, RecordingWriter};
use punctual_model::Instant;
use punctual_model::latency::Ran;
use punctual_observe::Statistics;
use punctual_trace::latency::Latency;
use punctual_trace::{About, Record, Roster, Totals};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as WallInstant, SystemTime};

/// Memory for records, of which one half may be waiting for the disk.
const MOST_BYTES: usize = 32 << 20;
/// Recordings of one run. Months of violations must not fill a disk.
const MOST_RECORDINGS: u64 = 100;

/// The last seconds.
#[derive(Debug)]
struct Ring {
    records: VecDeque<Record>,
    /// The memory that they take, in records.
    weight: usize,
    most: usize,
    before: punctual_model::Duration,
    /// The threads as they were before the oldest record.
    roster: Roster,
    now: Instant,
}

/// What is to be written.
struct Stretch {
    known: Vec<Record>,
    records: VecDeque<Record>,
    from: Instant,
    until: Instant,
    totals: Totals,
}

/// Keeps the last seconds, and writes them on demand.
pub struct FlightRecorder {
    ring: Ring,
    /// Whether there was a violation that no recording shows yet.
    is_triggered: bool,
    /// From one recording to the next, at least: as much as is held, so that each violation is in one.
    between: Duration,
    last: Option<WallInstant>,
    /// Of threads that are stuck: without them a reader could not tell that nothing more came.
    last_records: Vec<Record>,
    kept: u64,
    skipped: u64,
    failed: u64,
    stretches: SyncSender<Stretch>,
    written: Receiver<Result<PathBuf>>,
    thread: JoinHandle<()>,
    totals: Totals,
}

impl FlightRecorder {
    /// Recordings go into this folder, which is made if it is not there.
    pub fn new(folder: PathBuf, before: Duration) -> Result<FlightRecorder> {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Error::io("make the folder", folder.display(), &error))?;
        let (stretches, waiting) = sync_channel::<Stretch>(1);
        let (done, written) = channel();
        let thread = std::thread::Builder::new().name("flight recorder".into()).spawn(move || {
            for stretch in waiting {
                if done.send(write(&folder, stretch)).is_err() {
                    break;
                }
            }
        });
        let thread = thread.map_err(|error| {
            Error::new(crate::ErrorKind::Other, "cannot start the thread that writes recordings")
                .because(plain_reason(&error))
        })?;
        let before_ns = u64::try_from(before.as_nanos()).unwrap_or(u64::MAX);
        Ok(FlightRecorder {
            ring: Ring::new(punctual_model::Duration::from_ns(before_ns)),
            is_triggered: false,
            between: before,
            last: None,
            last_records: Vec::new(),
            kept: 0,
            skipped: 0,
            failed: 0,
            stretches,
            written,
            thread,
            totals: Totals::default(),
        })
    }

    pub fn record(&mut self, record: &Record) {
        self.ring.push(record);
        // A thread that was stuck, and goes on.
        if !self.last_records.is_empty() && !matches!(record, Record::Switch(_)) {
            self.last_records.retain(|last| last.tid() != record.tid());
        }
    }

    /// There is a violation.
    pub fn trigger(&mut self) {
        match self.kept < MOST_RECORDINGS {
            true => self.is_triggered = true,
            false => self.skipped += 1,
        }
    }

    /// There is a violation by threads that are stuck, whose last records these are.
    pub fn trigger_with(&mut self, last: impl Iterator<Item = Record>) {
        self.trigger();
        if self.is_triggered && self.last_records.is_empty() {
            self.last_records.extend(last);
        }
    }

    /// Writes the last seconds if there was a violation, and tells what became of those before.
    pub fn tick(&mut self, statistics: &Statistics, monitor: &dyn Monitor) {
        self.totals = record::totals(statistics);
        if self.is_triggered && self.last.is_none_or(|last| last.elapsed() >= self.between) {
            self.hand_over();
        }
        while let Ok(outcome) = self.written.try_recv() {
            self.tell(outcome, monitor);
        }
    }

    fn hand_over(&mut self) {
        let stretch = self.take();
        // What has not been written by now is on a disk that hangs.
        self.failed += u64::from(self.stretches.try_send(stretch).is_err());
    }

    fn take(&mut self) -> Stretch {
        self.is_triggered = false;
        self.last = Some(WallInstant::now());
        let mut stretch = self.ring.take(self.totals);
        // They end the recording, not the thread, which the next recording has again.
        let last = std::mem::take(&mut self.last_records);
        stretch.until = last.iter().filter_map(at).fold(stretch.until, Instant::max);
        stretch.records.extend(last);
        stretch
    }

    fn tell(&mut self, outcome: Result<PathBuf>, monitor: &dyn Monitor) {
        match outcome {
            Ok(path) => {
                self.kept += 1;
                let path = path.display();
                monitor.hint(&format!("kept {path}; punctual why {path} explains its late jobs"));
                if self.kept == MOST_RECORDINGS {
                    monitor.warn(&format!("{MOST_RECORDINGS} recordings are kept; no more will be"));
                }
            }
            Err(error) => {
                self.failed += 1;
                monitor.warn(&format!("{error:#}; the watch goes on without this recording"));
            }
        }
    }

    /// Writes what is still to be written, and waits for it.
    pub fn finish(mut self, counters: &mut Counters, monitor: &dyn Monitor) {
        if self.is_triggered {
            let stretch = self.take();
            self.failed += u64::from(self.stretches.send(stretch).is_err());
        }
        // The writer ends when nobody can hand it anything.
        let (nowhere, _) = sync_channel(1);
        drop(std::mem::replace(&mut self.stretches, nowhere));
        while let Ok(outcome) = self.written.recv() {
            self.tell(outcome, monitor);
        }
        let _ = self.thread.join();
        counters.recordings = self.kept;
        counters.without_recording = self.skipped;
        counters.failed_recordings = self.failed;
    }
}

impl Ring {
    fn new(before: punctual_model::Duration) -> Ring {
        Ring {
            records: VecDeque::new(),
            weight: 0,
            most: MOST_BYTES / 2 / size_of::<Record>(),
            before,
            roster: Roster::new(),
            now: Instant::default(),
        }
    }

    fn push(&mut self, record: &Record) {
        self.now = self.now.max(at(record).unwrap_or_default());
        self.weight += weight(record);
        self.records.push_back(record.clone());
        while self.weight > self.most || self.is_oldest_too_old() {
            let Some(record) = self.records.pop_front() else { break };
            self.weight -= weight(&record);
            self.roster.record(&record);
        }
    }

    /// Those without a time of their own go with the next.
    fn is_oldest_too_old(&self) -> bool {
        let old = |at| self.now.since(at) > self.before;
        self.records.front().is_some_and(|record| at(record).is_none_or(old)) && self.records.len() > 1
    }

    /// Everything, which leaves the ring empty.
    fn take(&mut self, totals: Totals) -> Stretch {
        let records = std::mem::take(&mut self.records);
        self.weight = 0;
        let from = records.iter().find_map(at).unwrap_or(self.now);
        let known = self.roster.known(from);
        records.iter().for_each(|record| self.roster.record(record));
        Stretch { known, records, from, until: self.now, totals }
    }
}

/// How much memory a record takes, in records.
fn weight(record: &Record) -> usize {
    match record {
        Record::Latency(Latency::Wakeup(wakeup)) => {
            // Each of what ran has a name of its own besides.
            2 + wakeup.wakeup.ran.len() * (size_of::<Ran>() + 32) / size_of::<Record>()
        }
        Record::Latency(_) => 4,
        _ => 1,
    }
}

fn at(record: &Record) -> Option<Instant> {
    Some(match record {
        Record::Activation(activation) => {
            activation.resumed.as_ref().map_or(activation.stop, |resumed| resumed.start)
        }
        Record::Task(task) | Record::Known(task) | Record::Bystander(task) => task.at,
        Record::Exit { at, .. } | Record::Last { at, .. } | Record::BystanderExit { at, .. } => *at,
        Record::Switch(switch) => switch.at,
        Record::ClockSet { at, .. } | Record::Lost { until: at, .. } => *at,
        Record::Latency(Latency::Wakeup(wakeup)) => wakeup.wakeup.at_ns + wakeup.wakeup.latency_ns,
        Record::Busy { .. }
        | Record::Renamed { .. }
        | Record::Command { .. }
        | Record::Latency(_)
        | Record::Dispatch(_) => {
            return None;
        }
    })
}

/// A place for a recording that is named by the time of day. Where the clock was set back, or begins anew
/// with each start of the machine, there may be one of that name: this one gets a number.
fn place(folder: &Path, now: SystemTime) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(now).to_string().replace(':', "-");
    let name = |number: u64| match number {
        1 => folder.join(format!("violation-{now}.recording")),
        _ => folder.join(format!("violation-{now}-{number}.recording")),
    };
    let is_free = |path: &PathBuf| !path.exists();
    (1..=2 * MOST_RECORDINGS).map(name).find(is_free).unwrap_or_else(|| name(1))
}

/// Writes a recording.
fn write(folder: &Path, stretch: Stretch) -> Result<PathBuf> {
    let path = place(folder, SystemTime::now());
    let about: About = platform::about(stretch.from, true);
    let mut writer = RecordingWriter::start(&RecordingFolder::new(&path, false)?, &about, None)?;
    for record in stretch.known.iter().chain(&stretch.records) {
        writer.record(record)?;
    }
    writer.finish(stretch.until, stretch.totals)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Recording, TimeRange};
    use punctual_model::{Call, Duration as Span, Object, Policy, Separator, Window};
    use punctual_trace::{Activation, Begin, Resumed, TaskRecord};

    fn task(at: u64) -> Record {
        Record::Task(Box::new(TaskRecord {
            tid: 7,
            pid: 7,
            sequence: 0,
            at: Instant::from_ns(at),
            begin: Begin::Seen,
            name: "control".into(),
            command: "robot".into(),
            policy: Policy::Fifo,
            priority: 50,
            nice: None,
            reservation: None,
            affinity: "0".into(),
        }))
    }

    fn activation(sequence: u32, at: u64) -> Record {
        Record::Activation(Activation {
            tid: 7,
            sequence,
            separator: Separator { call: Call::SchedYield, object: Object::None },
            slept: true,
            stop: Instant::from_ns(at - 500),
            cpu: Span::from_ns(u64::from(sequence) * 10),
            arrival: None,
            resumed: Some(Resumed::new(Some(Window::at(Instant::from_ns(at - 1))), Instant::from_ns(at))),
        })
    }

    #[test]
    fn the_last_seconds_are_a_recording_of_their_own() {
        let folder = tempfile::tempdir().expect("a directory");
        let mut ring = Ring::new(Span::from_ns(100_000));
        ring.push(&task(1_000_000));
        (1..1_000_u32).for_each(|job| ring.push(&activation(job, 1_000_000 + u64::from(job) * 1_000)));
        assert_eq!(ring.records.len(), 101);
        let path = write(folder.path(), ring.take(Totals::default())).expect("written");
        let recording = Recording::open(&path, &TimeRange::default()).expect("a recording");
        let (mut names, mut activations) = (Vec::new(), 0);
        let read = |record: &Record| match record {
            Record::Known(task) => names.push(task.name.clone()),
            Record::Activation(_) => activations += 1,
            _ => {}
        };
        let mut read = read;
        recording.read_all(&mut read).expect("read");
        assert_eq!(activations, 101);
        assert!(!names.is_empty() && names.iter().all(|name| name == "control"), "{names:?}");
        assert!(!recording.is_damaged());
        // The next one begins with the threads that live by then.
        ring.push(&activation(1_000, 2_000_000));
        assert_eq!(ring.take(Totals::default()).known.len(), 1);
    }

    #[test]
    fn a_clock_that_was_set_back_costs_no_recording() {
        let folder = tempfile::tempdir().expect("a directory");
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let names = [1, 2, 3].map(|_| {
            let path = place(folder.path(), then);
            std::fs::create_dir(&path).expect("a place that is free");
            path.file_name().expect("a name").to_string_lossy().into_owned()
        });
        let expected = ["", "-2", "-3"].map(|it| format!("violation-2001-09-09T01-46-40Z{it}.recording"));
        assert_eq!(names, expected);
    }

    #[test]
    fn memory_is_bounded_however_much_happens() {
        let mut ring = Ring::new(Span::from_ms(1_000_000));
        ring.push(&task(1_000));
        (1..200_000_u32).for_each(|job| ring.push(&activation(job, 1_000_000 + u64::from(job))));
        assert!(ring.records.len() * size_of::<Record>() <= MOST_BYTES / 2);
    }

    /// A folder that cannot be written costs the recording, not the watch.
    #[test]
    fn a_recording_that_fails_is_counted() {
        let folder = tempfile::tempdir().expect("a directory");
        let place = folder.path().join("kept");
        let mut flight = FlightRecorder::new(place.clone(), Duration::from_secs(5)).expect("a recorder");
        std::fs::remove_dir(&place).expect("removed");
        flight.record(&task(1_000));
        flight.trigger();
        let mut counters = Counters::default();
        flight.finish(&mut counters, &crate::Silent);
        let expected = Counters { failed_recordings: 1, ..Counters::default() };
        assert_eq!(counters, expected);
    }

    /// Those soon after a recording are in the next one.
    #[test]
    fn each_violation_is_in_a_recording() {
        let folder = tempfile::tempdir().expect("a directory");
        let hour = Duration::from_secs(3_600);
        let mut flight = FlightRecorder::new(folder.path().join("kept"), hour).expect("a recorder");
        flight.record(&task(1_000_000));
        for job in 1..=100_u32 {
            flight.record(&activation(job, 1_000_000 + u64::from(job) * 1_000));
            flight.trigger();
            if flight.is_triggered && flight.last.is_none() {
                flight.hand_over();
            }
        }
        let mut counters = Counters::default();
        flight.finish(&mut counters, &crate::Silent);
        assert_eq!(counters, Counters { recordings: 2, ..Counters::default() });
        let mut activations = 0;
        for kept in std::fs::read_dir(folder.path().join("kept")).expect("recordings") {
            let kept = kept.expect("a recording").path();
            let recording = Recording::open(&kept, &TimeRange::default()).expect("a recording");
            let mut read =
                |record: &Record| activations += u32::from(matches!(record, Record::Activation(_)));
            recording.read_all(&mut read).expect("read");
        }
        assert_eq!(activations, 100);
    }
}
