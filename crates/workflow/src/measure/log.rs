//! Where the records of a measurement go: into the section `latency`, and into a recording if there is one.

use super::flight;
use super::measuring::MeasuringThreads;
use super::names::Names;
use crate::error::Error;
use crate::error::Result;
use crate::folder::RecordingFolder;
use crate::monitor::{Monitor, Seen};
use crate::platform;
use crate::record::RecordingWriter;
use bytesize::ByteSize;
use punctual_latency::{HORIZON, Observation, Wait};
use punctual_model::latency::{InterruptSource, NoVariables, Wakeup};
use punctual_model::{Duration, Instant, TimingModel};
use punctual_observe::latency as observe;
use punctual_report::counted;
use punctual_trace::latency::{Interrupt, Latency, Processor, Scope, Source, Thread, ThreadWakeup};
use punctual_trace::{About, Record, Totals};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Takes all records of a measurement.
pub(super) struct Log<'a> {
    about: About,
    observation: Observation,
    writer: Option<RecordingWriter>,
    /// Why the recording ended early. The measurement goes on.
    broken: Option<Error>,
    names: Names,
    declared: BTreeSet<u32>,
    /// Wake-ups of each thread, and the greatest latency, as they were recorded last.
    threads: BTreeMap<(u32, u32, u32, u32), (u64, Duration)>,
    monitor: &'a dyn Monitor,
}

/// A finished recording of a measurement.
#[derive(Debug)]
pub struct Recorded {
    path: PathBuf,
    interrupts: u64,
    bytes: u64,
}

impl Recorded {
    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// In a sentence: where it is and how much is in it.
impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interrupts, bytes) = (counted(self.interrupts, "interrupt"), ByteSize(self.bytes));
        write!(f, "Wrote {}: {interrupts}, {bytes}.", self.path.display())
    }
}

/// What a measurement has come to.
pub(super) struct Logged {
    pub model: TimingModel,
    /// What the flight recorder kept, in lines for people.
    pub flight: Option<String>,
    pub recorded: Option<Recorded>,
    /// Why there is no whole recording although there should be one.
    pub failure: Option<Error>,
}

impl<'a> Log<'a> {
    /// Of a measurement of these processors that began at `from`.
    pub fn start(
        from: Instant,
        cpus: &[u32],
        no_variables: Option<NoVariables>,
        folder: Option<&RecordingFolder>,
        monitor: &'a dyn Monitor,
    ) -> Result<Log<'a>> {
        let about = About { latency: true, ..platform::about(from, false) };
        let writer = folder.map(|folder| RecordingWriter::start(folder, &about, None)).transpose()?;
        let mut log = Log {
            about,
            observation: Observation::default(),
            writer,
            broken: None,
            names: Names::read(),
            declared: BTreeSet::new(),
            threads: BTreeMap::new(),
            monitor,
        };
        let scope = Scope { preemption: punctual_observe::preemption(), horizon: HORIZON, no_variables };
        log.record(Latency::Scope(scope));
        for &cpu in cpus {
            log.record(Latency::Processor(Processor { cpu, ..Processor::default() }));
        }
        Ok(log)
    }

    /// Takes a record.
    pub fn record(&mut self, latency: Latency) {
        self.observation.record(&latency);
        if self.writer.is_some() {
            let record = Record::Latency(latency);
            self.write(|writer| writer.record(&record));
        }
    }

    /// Takes an interrupt.
    pub fn interrupt(&mut self, cpu: u32, interrupt: &observe::Interrupt) {
        let observe::Interrupt { source, entry, exit, execution } = *interrupt;
        self.source(source);
        self.record(Latency::Interrupt(Interrupt { cpu, source, entry, exit, execution }));
    }

    /// What a number of the programs' stands for.
    pub fn source(&mut self, number: u32) -> InterruptSource {
        if self.declared.insert(number) {
            // Its driver may be new.
            self.names = Names::read();
            let source = self.names.source(number);
            let row = Names::row(&source);
            self.record(Latency::Source(Box::new(Source { number, source, row })));
        }
        self.observation.source(number).cloned().unwrap_or_else(|| self.names.source(number))
    }

    /// Takes the latencies of a thread: if one is greater than before, with `wakeup`, or if `is_due`, if
    /// there were any.
    pub fn thread(&mut self, thread: Thread, is_due: bool, wakeup: impl FnOnce(&Self) -> Option<Wakeup>) {
        let (tid, policy, priority) =
            (thread.thread.id.tid, thread.thread.policy.number(), thread.thread.priority);
        let now = (thread.wakeups.saturating_add(thread.unmeasured), thread.max);
        let before = self.threads.entry((thread.cpu, tid, policy, priority)).or_default();
        let is_greater = now.1 > before.1;
        let is_due = is_due && now != *before;
        if !is_greater && !is_due {
            return;
        }
        *before = now;
        if let Some(wakeup) = is_greater.then(|| wakeup(self)).flatten() {
            let latest = ThreadWakeup { cpu: thread.cpu, tid, policy, priority, wakeup };
            self.record(Latency::Wakeup(Box::new(latest)));
        }
        self.record(Latency::Thread(Box::new(thread)));
    }

    /// Takes what the measuring threads measure themselves.
    pub fn take_from_due(&mut self, threads: Option<&MeasuringThreads>) {
        for (cpu, max) in threads.into_iter().flat_map(MeasuringThreads::late) {
            self.record(Latency::FromDue { cpu, max });
        }
    }

    /// What a latency was made of, with the interrupts so far.
    pub fn explain(&self, cpu: u32, wait: &Wait) -> Wakeup {
        self.observation.explain(cpu, wait)
    }

    /// Lets the recording get to the disk. All latencies until now have been taken.
    pub fn tick(&mut self) {
        self.observation.forget();
        let totals = self.totals();
        self.write(|writer| writer.tick(totals));
    }

    fn totals(&self) -> Totals {
        Totals { lost: self.observation.lost(), ..Totals::default() }
    }

    fn write(&mut self, write: impl FnOnce(&mut RecordingWriter) -> Result<()>) {
        if let Some(Err(error)) = self.writer.as_mut().map(write) {
            self.monitor.warn(&format!("{error:#}; the measurement goes on"));
            (self.writer, self.broken) = (None, Some(error));
        }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        let summary = counted(self.observation.interrupts(), "interrupt");
        Seen { summary, lost: self.observation.lost() }
    }

    /// Ends the recording, and makes the timing model.
    pub fn finish(self, until: Instant) -> Logged {
        let (totals, interrupts) = (self.totals(), self.observation.interrupts());
        let (recorded, failure) = match self.writer.map(|writer| writer.finish(until, totals)) {
            None => (None, self.broken),
            Some(Err(error)) => (None, Some(error)),
            Some(Ok(recorded)) => {
                let (path, bytes) = (recorded.path, recorded.contents.bytes);
                (Some(Recorded { path, interrupts, bytes }), None)
            }
        };
        let flight = flight::text(&self.observation);
        Logged { model: model(&self.observation, &self.about, until), flight, recorded, failure }
    }
}

/// The timing model of an observation that ended at `until`.
pub(crate) fn model(observation: &Observation, about: &About, until: Instant) -> TimingModel {
    TimingModel {
        platform: about.platform.clone().known(),
        latency: observation.section(about.from, until, &about.platform.kernel),
        ..TimingModel::new(&about.clock)
    }
}
