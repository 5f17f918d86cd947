//! A first pass through a trace: what is known of all of it before the first event.

use super::super::bytes::Bytes;
use super::super::notes::{Cut, Notes};
use super::bundle::{Outline, outline};
use super::events;
use super::file::{Found, Packets};
use super::messages::{
    ClockSnapshot, FtraceConfig, FtraceStats, ProcessTree, SystemInfo, TraceConfig, TraceStats,
};
use super::packet::{Content, Packet};
use prost::Message;
use punctual_model::Instant;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Threads whose names are known before they come up.
const MOST_THREADS: usize = 1 << 18;
/// Processors, times writers.
const MOST_STREAMS: usize = 1 << 13;
/// Kinds of events that are described.
const MOST_DESCRIBED: usize = 1 << 13;

/// The events of a processor come in order. Its clock may be set back so far.
const BACKWARD: u64 = 1_000_000;

/// Facts about a whole trace.
#[derive(Default)]
pub struct Survey {
    /// The events of each processor by each writer.
    pub streams: BTreeMap<(u32, u32), Begin>,
    /// Numbers of the kinds of events.
    pub kinds: FxHashSet<u32>,
    /// Names of kinds that the trace itself describes.
    pub described: BTreeMap<u32, String>,
    /// Numbers of the clocks of events.
    pub clocks: BTreeSet<u64>,
    pub packets: u64,
    /// Switches or wake-ups are in columns.
    pub has_columns: bool,
    pub system: SystemInfo,
    /// Of each thread, its process and its name, if it has one.
    pub threads: HashMap<i32, (i32, Option<String>)>,
    /// The first moment that several clocks have.
    pub moment: Option<ClockSnapshot>,
    pub configs: Vec<FtraceConfig>,
    /// Events of each processor that were overwritten, and for which there was no room.
    pub losses: BTreeMap<u64, (u64, u64)>,
    /// Events asked for that are not there.
    pub absent: BTreeSet<String>,
    /// Buffers were full before the end.
    pub was_full: bool,
    /// Why the file has not all that it should have.
    pub cut: Option<String>,
    /// Where another trace seems to begin behind this one: near this byte.
    pub second: Option<u64>,
    /// Packets of other machines.
    pub foreign: u64,
    /// Bundles of events that are no messages.
    broken: u64,
    /// Writers of tracks.
    drawn: BTreeSet<u32>,
    /// Writers whose first packets are not there.
    beheaded: BTreeSet<u32>,
    writers: BTreeSet<u32>,
    /// Some packets could not be read.
    is_damaged: bool,
    has_uuid: bool,
    /// A packet so far must be of another trace.
    is_another: bool,
    before: BTreeMap<u64, (u64, u64)>,
}

/// Where the events of a processor begin, and where its last packet is.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    pub first: u64,
    /// Events before this time are missing.
    pub complete_from: Option<u64>,
    /// They were in a packet that cannot be read.
    is_damaged: bool,
    /// The last event so far.
    last: u64,
    pub last_packet: u64,
}

impl Survey {
    pub fn of(bytes: &Bytes) -> Survey {
        let mut survey = Survey::default();
        let mut packets = Packets::of(bytes);
        loop {
            let begin = packets.at;
            match packets.next() {
                None => break,
                Some(Found::Packet) => match Packet::read(packets.current()) {
                    Ok(packet) => {
                        survey.packet(&packet, begin);
                        if survey.is_another {
                            survey.second.get_or_insert(packets.place());
                        }
                    }
                    Err(_) => survey.damaged(begin),
                },
                // What cannot be read is noted where the events are.
                Some(Found::Damage(_)) => survey.damaged(begin),
                Some(Found::Cut(why)) => survey.cut = Some(why),
            }
        }
        survey
    }

    fn packet(&mut self, packet: &Packet, at: u64) {
        self.packets += 1;
        if packet.machine != 0 {
            self.foreign += 1;
            return;
        }
        let is_new = self.writers.insert(packet.sequence);
        if packet.follows_loss && !packet.is_first {
            self.reach(at, |writer| writer == packet.sequence);
            is_new.then(|| self.beheaded.insert(packet.sequence));
        }
        let has_begun = || self.streams.keys().any(|(writer, _)| *writer == packet.sequence);
        self.is_another |= packet.is_first && has_begun();
        match packet.content {
            Content::Ftrace(bundle) => self.bundle(packet.sequence, bundle, at),
            Content::Processes(bytes) => self.processes(bytes),
            Content::Clocks(bytes) => self.moment = self.moment.take().or(ClockSnapshot::decode(bytes).ok()),
            Content::Config(bytes) => self.config(bytes),
            Content::FtraceStatistics(bytes) => self.kernel_statistics(bytes),
            Content::TraceStatistics(bytes) => {
                let statistics = TraceStats::decode(bytes).unwrap_or_default();
                self.was_full |= statistics.buffers.iter().any(|buffer| buffer.discarded > 0);
            }
            Content::System(bytes) => self.system = SystemInfo::decode(bytes).unwrap_or_default(),
            Content::Uuid => self.is_another |= std::mem::replace(&mut self.has_uuid, true),
            Content::Track => _ = self.drawn.insert(packet.sequence),
            Content::Packed(..) | Content::Other => {}
        }
    }

    /// A packet cannot be read, which may have been one of events.
    fn damaged(&mut self, at: u64) {
        self.is_damaged = true;
        self.reach(at, |_| true);
    }

    /// Events of these writers may be missing here, so their packets are looked at up to here.
    fn reach(&mut self, at: u64, is_meant: impl Fn(u32) -> bool) {
        let meant = self.streams.iter_mut().filter(|((writer, _), _)| is_meant(*writer));
        meant.for_each(|(_, begin)| begin.last_packet = at);
    }

    fn bundle(&mut self, sequence: u32, bundle: &[u8], at: u64) {
        let (kinds, described) = (&mut self.kinds, &mut self.described);
        let outline = outline(
            bundle,
            |kind| _ = kinds.insert(kind),
            |description| {
                let is_room = described.len() < MOST_DESCRIBED;
                described.extend(events::described(description).filter(|_| is_room));
            },
        );
        let Ok(outline) = outline else {
            self.broken += 1;
            return self.damaged(at);
        };
        self.clocks.insert(outline.clock);
        self.has_columns |= outline.has_columns;
        let is_room = self.streams.len() < MOST_STREAMS;
        match self.streams.get_mut(&(sequence, outline.cpu)) {
            Some(stream) => {
                let goes_back =
                    outline.first.is_some_and(|first| first.saturating_add(BACKWARD) < stream.last);
                stream.last = stream.last.max(outline.last);
                stream.last_packet = at;
                self.is_another |= goes_back;
            }
            None if is_room => {
                let begin = self.begin(sequence, &outline, at);
                self.streams.extend(begin.map(|begin| ((sequence, outline.cpu), begin)));
            }
            None => {}
        }
    }

    fn begin(&self, sequence: u32, outline: &Outline, at: u64) -> Option<Begin> {
        let first = outline.first?;
        let complete_from = match outline.follows {
            _ if outline.follows_loss => Some(first),
            Some(0) => None,
            Some(end) => Some(end.min(first)),
            None => self.beheaded.contains(&sequence).then_some(first),
        };
        let is_damaged = self.is_damaged && !outline.follows_loss;
        Some(Begin { first, complete_from, is_damaged, last: outline.last, last_packet: at })
    }

    fn processes(&mut self, bytes: &[u8]) {
        let tree = ProcessTree::decode(bytes).unwrap_or_default();
        let processes = tree.processes.into_iter().map(|process| (process.pid, process.pid, String::new()));
        let threads = tree.threads.into_iter().map(|thread| (thread.tid, thread.pid, thread.name));
        for (tid, pid, name) in processes.chain(threads).filter(|(tid, pid, _)| *tid > 0 && *pid > 0) {
            let name = (!name.is_empty()).then(|| name.chars().take(15).collect());
            if self.threads.len() < MOST_THREADS {
                self.threads.entry(tid).or_insert((pid, name));
            }
        }
    }

    fn config(&mut self, bytes: &[u8]) {
        let config = TraceConfig::decode(bytes).unwrap_or_default();
        let ftrace = config.sources.into_iter().filter_map(|source| source.config?.ftrace);
        let room = 100 - self.configs.len().min(100);
        self.configs.extend(ftrace.take(room));
    }

    fn kernel_statistics(&mut self, bytes: &[u8]) {
        const BEGIN: i32 = 1;
        let statistics = FtraceStats::decode(bytes).unwrap_or_default();
        let names = statistics.unknown.into_iter().chain(statistics.failed);
        let room = 100 - self.absent.len().min(100);
        self.absent.extend(names.take(room));
        for it in statistics.cpus.iter().take(MOST_STREAMS) {
            let all = (it.overrun, it.dropped);
            let before = *self.before.entry(it.cpu).or_insert(all);
            if statistics.phase != BEGIN {
                let since = (all.0.saturating_sub(before.0), all.1.saturating_sub(before.1));
                self.losses.insert(it.cpu, since);
            }
        }
    }

    /// One writer has events of ftrace and tracks: no recorder does so.
    pub fn is_drawn(&self) -> bool {
        self.streams.keys().any(|(writer, _)| self.drawn.contains(writer))
    }

    /// Whether there are events of this name.
    pub fn has(&self, name: &str) -> bool {
        self.kinds.iter().any(|kind| events::name_of(*kind) == Some(name))
    }

    /// Whether there would be events of this name if anything caused one.
    pub fn has_asked_for(&self, name: &str) -> bool {
        let mut asked = self.configs.iter().flat_map(|config| &config.events);
        let is_asked = asked.any(|event| match event.split_once('/') {
            Some((group, "*")) => group == group_of(name),
            Some((_, asked)) => asked == name,
            None => event == name,
        });
        is_asked && !self.absent.iter().any(|event| event.ends_with(name))
    }

    pub fn cpus(&self) -> BTreeSet<u32> {
        self.streams.keys().map(|(_, cpu)| *cpu).collect()
    }

    pub fn first(&self) -> Instant {
        Instant::from_ns(self.streams.values().map(|begin| begin.first).min().unwrap_or(0))
    }

    /// From where on the events of all processors are there.
    pub fn beginning(&self) -> Option<Cut> {
        let cut = || self.streams.iter().filter_map(|((_, cpu), it)| Some((*cpu, it.complete_from?, it)));
        let at = cut().map(|(_, at, _)| at).max()?;
        let cut_off = Cut::of_processors(&cut().map(|(cpu, ..)| cpu).collect(), Instant::from_ns(at));
        Some(match cut().all(|(.., it)| it.is_damaged) {
            true => Cut { why: "cannot be read", ..cut_off },
            false => cut_off,
        })
    }

    /// Notes what was not recorded, and what is not in the file.
    pub fn say(&self, notes: &mut Notes) {
        for (cpu, (_, dropped)) in self.losses.iter().filter(|(_, (_, dropped))| *dropped > 0) {
            notes.say(format!(
                "events of processor {cpu} for which there was no room: {dropped}; where they are missing is \
                 not known, and costs may be too low there (buffer_size_kb makes more room)"
            ));
        }
        if self.configs.iter().any(|config| !config.threads.is_empty()) {
            notes.say("only some threads were recorded (tids_to_trace): costs of others may be too high");
        }
        if self.configs.iter().any(|config| !config.cpus.is_empty()) {
            notes.say("only some processors were recorded (tracing_cpumask): of others nothing is known");
        }
        if !self.absent.is_empty() {
            let names = self.absent.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            notes.say(format!("events that were asked for, but could not be recorded: {names}"));
        }
        if self.foreign > 0 {
            notes.say(format!("packets of other machines, which are left out: {}", self.foreign));
        }
        if self.broken > 0 {
            notes.say(format!("bundles of events that cannot be read and are left out: {}", self.broken));
        }
        if self.was_full {
            notes.say("a buffer of the recorder was full before the end; tasks end there");
        }
        if let Some(why) = &self.cut {
            notes.say(format!("{why}; what comes before is read, and tasks end there"));
        }
    }

    /// Events that the kernel overwrote before they were read.
    pub fn overwritten(&self) -> u64 {
        self.losses.values().fold(0, |sum, (overrun, _)| sum.saturating_add(*overrun))
    }

    /// Some processors have events of several writers.
    pub fn has_twins(&self) -> bool {
        self.cpus().len() < self.streams.len()
    }

    /// Tasks end where the events of a processor do: others go on.
    pub fn ends_early(&self) -> bool {
        self.cut.is_some() || self.was_full
    }

    /// Only some system calls were recorded.
    pub fn lacks_calls(&self) -> bool {
        self.configs.iter().any(|config| !config.calls.is_empty())
    }
}

/// The group of an event that is read.
fn group_of(name: &str) -> &str {
    match name.split_once('_') {
        Some(("sys", _)) => "raw_syscalls",
        Some((group, _)) => group,
        None => name,
    }
}
