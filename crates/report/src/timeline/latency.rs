//! Timelines of measurements of scheduling latency. Each processor has tracks of its interrupts, of the
//! longest sections with preemption or interrupts disabled, and of the greatest latencies; and what the
//! flight recorder kept: who disabled what for how long, and when the scheduler ran.

use super::Error;
use super::packets::{Argument, Packets};
use super::proto::{BY_RANK, Track};
use crate::analysed::source_name;
use punctual_model::latency::{Culprit, InterruptKind, InterruptSource};
use punctual_model::{Duration, Instant};
use punctual_trace::About;
use punctual_trace::latency::{
    Interrupt, Latency, Maximum, Thread, ThreadWakeup, Variable, Witnessed, WitnessedKind,
};
use std::collections::HashMap;
use std::io::Write;

/// What a timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Interrupts, softirqs and NMIs.
    pub interrupts: u64,
    /// New greatest values of variables.
    pub maxima: u64,
    /// Latencies that were among the greatest.
    pub latencies: u64,
    /// Events that the flight recorder kept.
    pub witnessed: u64,
}

/// A track of a processor, in the order of display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lane {
    Nmis,
    Interrupts,
    Softirqs,
    Scheduler,
    PreemptionOff,
    InterruptsOff,
    Served,
    Wakeups,
    Longest(u8),
    /// Of a thread.
    Latencies(u32),
}

impl Lane {
    fn rank(self) -> i32 {
        match self {
            Lane::Nmis => 0,
            Lane::Interrupts => 1,
            Lane::Softirqs => 2,
            Lane::Scheduler => 3,
            Lane::PreemptionOff => 4,
            Lane::InterruptsOff => 5,
            Lane::Served => 6,
            Lane::Wakeups => 7,
            Lane::Longest(variable) => 8 + i32::from(variable),
            Lane::Latencies(_) => 12,
        }
    }

    fn name(self) -> String {
        match self {
            Lane::Nmis => "NMIs".into(),
            Lane::Interrupts => "interrupts".into(),
            Lane::Softirqs => "softirqs".into(),
            Lane::Scheduler => "flight recorder: scheduler".into(),
            Lane::PreemptionOff => "flight recorder: preemption disabled".into(),
            Lane::InterruptsOff => "flight recorder: interrupts disabled".into(),
            Lane::Served => "flight recorder: interrupts and exceptions".into(),
            Lane::Wakeups => "flight recorder: wake-ups".into(),
            Lane::Longest(variable) => {
                let symbol = Variable::ALL.get(usize::from(variable)).map_or("", |it| it.symbol());
                format!("longest {symbol}")
            }
            Lane::Latencies(tid) => format!("greatest latencies of thread {tid}"),
        }
    }
}

/// Begun, and not ended yet.
struct Open {
    at: Instant,
    name: String,
    arguments: Vec<Argument>,
}

/// Writes a timeline, record by record.
pub struct LatencyTimeline<W: Write> {
    packets: Packets<W>,
    from: Instant,
    processors: HashMap<u32, u64>,
    tracks: HashMap<(u32, Lane), u64>,
    sources: HashMap<u32, InterruptSource>,
    open: HashMap<(u32, Lane), Open>,
    /// When the flight recorder saw something last.
    last: Instant,
    counts: Counts,
}

impl<W: Write> LatencyTimeline<W> {
    /// An empty timeline of the recording that `about` describes.
    pub fn new(out: W, about: &About) -> Result<Self, Error> {
        Ok(Self {
            packets: Packets::new(out, about)?,
            from: about.from,
            processors: HashMap::new(),
            tracks: HashMap::new(),
            sources: HashMap::new(),
            open: HashMap::new(),
            last: about.from,
            counts: Counts::default(),
        })
    }

    /// Takes the recording's next record.
    pub fn record(&mut self, record: &Latency) -> Result<(), Error> {
        match record {
            Latency::Source(source) => drop(self.sources.insert(source.number, source.source.clone())),
            Latency::Interrupt(interrupt) => self.interrupt(interrupt)?,
            Latency::Maximum(maximum) => self.maximum(maximum)?,
            Latency::Thread(thread) => self.thread(thread)?,
            Latency::Wakeup(wakeup) => self.wakeup(wakeup)?,
            Latency::Witnessed(witnessed) => self.witnessed(witnessed)?,
            _ => {}
        }
        Ok(())
    }

    /// Writes the rest; returns what the timeline shows.
    pub fn finish(mut self) -> Result<(W, Counts), Error> {
        let mut open: Vec<(u32, Lane)> = self.open.keys().copied().collect();
        open.sort_by_key(|(cpu, lane)| (*cpu, lane.rank()));
        for (cpu, lane) in open {
            self.close(cpu, lane, self.last)?;
        }
        Ok((self.packets.finish()?, self.counts))
    }

    fn track(&mut self, cpu: u32, lane: Lane) -> Result<u64, Error> {
        if let Some(track) = self.tracks.get(&(cpu, lane)) {
            return Ok(*track);
        }
        let track = self.packets.new_track();
        self.tracks.insert((cpu, lane), track);
        self.describe(cpu, lane, track, lane.name())?;
        Ok(track)
    }

    fn describe(&mut self, cpu: u32, lane: Lane, id: u64, name: String) -> Result<(), Error> {
        let parent = Some(self.processor(cpu)?);
        let track = Track { id, parent, name: Some(name), rank: Some(lane.rank()), ..Track::default() };
        self.packets.track(self.from, track)
    }

    fn processor(&mut self, cpu: u32) -> Result<u64, Error> {
        if let Some(track) = self.processors.get(&cpu) {
            return Ok(*track);
        }
        let id = self.packets.new_track();
        self.processors.insert(cpu, id);
        let track = Track {
            id,
            name: Some(format!("CPU {cpu}")),
            child_ordering: Some(BY_RANK),
            rank: Some(i32::try_from(cpu).unwrap_or(i32::MAX)),
            ..Track::default()
        };
        self.packets.track(self.from, track)?;
        Ok(id)
    }

    fn source(&self, number: u32) -> String {
        self.sources.get(&number).map_or_else(|| format!("source {number}"), source_name)
    }

    fn interrupt(&mut self, interrupt: &Interrupt) -> Result<(), Error> {
        self.counts.interrupts += 1;
        let lane = match self.sources.get(&interrupt.source).map(|source| source.kind) {
            Some(InterruptKind::Nmi) => Lane::Nmis,
            Some(InterruptKind::Softirq) => Lane::Softirqs,
            _ => Lane::Interrupts,
        };
        let track = self.track(interrupt.cpu, lane)?;
        let arguments = vec![Argument::number("execution_ns", interrupt.execution.ns())];
        let span = (interrupt.entry.min(interrupt.exit), interrupt.exit);
        self.packets.slice(track, "interrupt", self.source(interrupt.source), span, arguments)
    }

    /// Where interrupts came meanwhile, it began earlier than shown: its duration is without them.
    fn maximum(&mut self, maximum: &Maximum) -> Result<(), Error> {
        let Some(culprit) = &maximum.culprit else { return Ok(()) };
        self.counts.maxima += 1;
        let track = self.track(maximum.cpu, Lane::Longest(maximum.variable as u8))?;
        let symbol = maximum.variable.symbol();
        let name =
            format!("{symbol} {} by {}", maximum.duration, crate::analysed::thread_name(&culprit.thread));
        let span = (before(culprit.at_ns, maximum.duration), culprit.at_ns);
        self.packets.slice(track, "variable", name, span, blame(maximum.variable, maximum.duration, culprit))
    }

    /// Names the track of its latencies.
    fn thread(&mut self, latencies: &Thread) -> Result<(), Error> {
        let id = &latencies.thread.id;
        let lane = Lane::Latencies(id.tid);
        match self.tracks.get(&(latencies.cpu, lane)) {
            Some(&track) => {
                let name = format!("greatest latencies of {}", crate::analysed::thread_name(id));
                self.describe(latencies.cpu, lane, track, name)
            }
            None => Ok(()),
        }
    }

    fn wakeup(&mut self, record: &ThreadWakeup) -> Result<(), Error> {
        self.counts.latencies += 1;
        let track = self.track(record.cpu, Lane::Latencies(record.tid))?;
        let wakeup = &record.wakeup;
        let mut arguments = vec![Argument::number("latency_ns", wakeup.latency_ns.ns())];
        if let Some(split) = wakeup.split {
            arguments.push(Argument::number("interrupts_ns", split.interrupts_ns.ns()));
            arguments.push(Argument::number("threads_ns", split.threads_ns.ns()));
            arguments.push(Argument::number("rest_ns", split.rest_ns.ns()));
        }
        if !wakeup.ran.is_empty() {
            let name = |ran| crate::latency::ran_name(ran, self.sources.values());
            let ran = wakeup.ran.iter().map(|ran| format!("{} {}", name(ran), ran.duration_ns));
            arguments.push(Argument::text("ran", ran.collect::<Vec<_>>().join(", ")));
        }
        let span = (wakeup.at_ns, wakeup.at_ns + wakeup.latency_ns);
        self.packets.slice(track, "latency", format!("latency {}", wakeup.latency_ns), span, arguments)
    }

    fn witnessed(&mut self, event: &Witnessed) -> Result<(), Error> {
        self.counts.witnessed += 1;
        self.last = self.last.max(event.at);
        let cpu = event.cpu;
        match event.kind {
            WitnessedKind::PreemptOff => self.begin(event, Lane::PreemptionOff, "preemption disabled"),
            WitnessedKind::PreemptOn => self.end(event, Lane::PreemptionOff),
            WitnessedKind::IrqsOff => self.begin(event, Lane::InterruptsOff, "interrupts disabled"),
            WitnessedKind::IrqsOn => self.end(event, Lane::InterruptsOff),
            WitnessedKind::SchedulerEntry => self.begin(event, Lane::Scheduler, "scheduler"),
            WitnessedKind::SchedulerExit => self.end(event, Lane::Scheduler),
            WitnessedKind::InterruptEntry => self.begin(event, Lane::Served, "exception"),
            WitnessedKind::InterruptExit => self.end(event, Lane::Served),
            WitnessedKind::InterruptSource(number) => {
                let name = self.source(number);
                if let Some(open) = self.open.get_mut(&(cpu, Lane::Served)) {
                    open.name = name;
                }
                Ok(())
            }
            WitnessedKind::Wakeup(tid) => {
                let track = self.track(cpu, Lane::Wakeups)?;
                let arguments = vec![Argument::number("by", event.tid.into())];
                self.packets.instant(
                    track,
                    "wakeup",
                    format!("wakes thread {tid}"),
                    event.at,
                    arguments,
                    None,
                )
            }
        }
    }

    /// Begins a slice; ends one whose end was not seen.
    fn begin(&mut self, event: &Witnessed, lane: Lane, name: &str) -> Result<(), Error> {
        self.close(event.cpu, lane, event.at)?;
        let mut arguments = vec![Argument::number("tid", event.tid.into())];
        arguments.extend(event.place.as_ref().map(|place| Argument::text("from", place.clone())));
        self.open.insert((event.cpu, lane), Open { at: event.at, name: name.to_owned(), arguments });
        Ok(())
    }

    fn end(&mut self, event: &Witnessed, lane: Lane) -> Result<(), Error> {
        if let (Some(open), Some(place)) = (self.open.get_mut(&(event.cpu, lane)), &event.place) {
            open.arguments.push(Argument::text("until", place.clone()));
        }
        self.close(event.cpu, lane, event.at)
    }

    fn close(&mut self, cpu: u32, lane: Lane, at: Instant) -> Result<(), Error> {
        let Some(open) = self.open.remove(&(cpu, lane)) else { return Ok(()) };
        let track = self.track(cpu, lane)?;
        self.packets.slice(track, "flight", open.name, (open.at.min(at), at), open.arguments)
    }
}

fn before(at: Instant, duration: Duration) -> Instant {
    Instant::from_ns(at.ns().saturating_sub(duration.ns()))
}

/// Who caused it, and where.
fn blame(variable: Variable, duration: Duration, culprit: &Culprit) -> Vec<Argument> {
    let mut arguments = vec![
        Argument::text("variable", variable.name()),
        Argument::number("duration_ns", duration.ns()),
        Argument::number("tid", culprit.thread.tid.into()),
    ];
    let place = |name, place: &Option<String>| place.clone().map(|place| Argument::text(name, place));
    arguments.extend(place("opened", &culprit.opened));
    arguments.extend(place("closed", &culprit.closed));
    if !culprit.stack.is_empty() {
        arguments.push(Argument::text("stack", culprit.stack.join(" < ")));
    }
    arguments
}
