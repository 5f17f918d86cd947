//! Packets of a Perfetto trace, written as they come; Perfetto sorts them by their timestamps.

use super::error::Error;
use super::proto::{
    self, ClockReading, ClockSnapshot, Defaults, FtraceBundle, FtraceEvent, Packet, Process, ProcessCommand,
    Processes, System, SystemNames, Track, TrackEvent,
};
use super::proto::{clock, kind};
use prost::Message;
use punctual_model::Instant;
use punctual_trace::About;
use std::io::Write;

/// Bytes to gather before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// A named argument of an event.
pub struct Argument {
    name: &'static str,
    value: Value,
}

enum Value {
    Number(i64),
    Text(String),
}

impl Argument {
    /// A number; saturates at the greatest that Perfetto can hold.
    pub fn number(name: &'static str, number: u64) -> Self {
        Self::signed(name, i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub fn signed(name: &'static str, number: i64) -> Self {
        Self { name, value: Value::Number(number) }
    }

    pub fn text(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, value: Value::Text(text.into()) }
    }
}

/// Which end of an arrow an event is.
#[derive(Clone, Copy)]
pub enum Flow {
    From(u64),
    To(u64),
}

/// First number of tracks and arrows of a second writer: beyond all that the first can reach.
const BEHIND: u64 = 1 << 40;

/// Writes packets.
pub struct Packets<W: Write> {
    out: W,
    buffer: Vec<u8>,
    /// The number of this writer; interned names belong to it.
    sequence: u32,
    tracks: u64,
    flows: u64,
    /// Interned names; their numbers are their places here, from 1.
    categories: Vec<&'static str>,
    arguments: Vec<&'static str>,
}

impl<W: Write> Packets<W> {
    pub fn new(out: W, about: &About) -> Result<Self, Error> {
        let mut packets = Self::empty(out, 1, 0);
        packets.begin(about)?;
        Ok(packets)
    }

    /// Behind another writer, which has written the clocks: a second snapshot would go backwards.
    pub fn behind(out: W, clock: &str) -> Result<Self, Error> {
        let mut packets = Self::empty(out, 2, BEHIND);
        let defaults = Some(Defaults { clock: number_of(clock) });
        packets.write(Packet { sequence_flags: proto::BEGINS, defaults, ..Packet::default() })?;
        Ok(packets)
    }

    fn empty(out: W, sequence: u32, first: u64) -> Self {
        let buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        Self {
            out,
            buffer,
            sequence,
            tracks: first,
            flows: first,
            categories: Vec::new(),
            arguments: Vec::new(),
        }
    }

    fn begin(&mut self, about: &About) -> Result<(), Error> {
        let clock = number_of(&about.clock);
        let from = about.from.ns();
        let mut clocks = vec![ClockReading { clock, ns: from }];
        if clock != clock::BOOTTIME {
            // Perfetto takes the kernel tracer's events, which say who ran where, to be on this clock. Ours
            // are on the observation's.
            clocks.push(ClockReading { clock: clock::BOOTTIME, ns: from });
        }
        let real = about.clock_zero.and_then(|zero| u64::try_from(i128::from(zero) + i128::from(from)).ok());
        if let (Some(ns), true) = (real, clock != clock::REALTIME) {
            clocks.push(ClockReading { clock: clock::REALTIME, ns });
        }
        self.write(Packet {
            sequence_flags: proto::BEGINS,
            defaults: Some(Defaults { clock }),
            clocks: Some(ClockSnapshot { clocks, primary: clock as i32 }),
            ..Packet::default()
        })?;
        if about.platform.kernel.is_empty() {
            return Ok(());
        }
        let names = SystemNames {
            sysname: "Linux".into(),
            release: about.platform.kernel.clone(),
            machine: about.platform.machine.clone(),
        };
        self.write(Packet { system: Some(System { names: Some(names) }), ..Packet::default() })
    }

    /// A new track number.
    pub fn new_track(&mut self) -> u64 {
        self.tracks += 1;
        self.tracks
    }

    /// A new arrow number.
    pub fn new_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }

    /// Describes a track; the last description counts.
    pub fn track(&mut self, at: Instant, track: Track) -> Result<(), Error> {
        self.write(Packet { timestamp: Some(at.ns()), track: Some(track), ..Packet::default() })
    }

    /// A process with its command line. One without is a kernel thread and has the thread's name.
    pub fn process(&mut self, at: Instant, pid: u32, thread: &str, command: &str) -> Result<(), Error> {
        if command.is_empty() {
            let id = self.new_track();
            let process = Process { pid: pid as i32, name: thread.to_owned() };
            return self.track(at, Track { id, process: Some(process), ..Track::default() });
        }
        let processes = vec![ProcessCommand { pid: pid as i32, command: vec![command.to_owned()] }];
        self.write(Packet {
            timestamp: Some(at.ns()),
            processes: Some(Processes { processes }),
            ..Packet::default()
        })
    }

    /// A slice of a track, from `begin` to `end`.
    pub fn slice(
        &mut self,
        track: u64,
        category: &'static str,
        name: String,
        (begin, end): (Instant, Instant),
        arguments: Vec<Argument>,
    ) -> Result<(), Error> {
        let event = TrackEvent { kind: kind::SLICE_BEGIN, track, name: Some(name), ..TrackEvent::default() };
        self.event(begin, category, arguments, event)?;
        let event = TrackEvent { kind: kind::SLICE_END, track, ..TrackEvent::default() };
        self.write(Packet { timestamp: Some(end.ns()), event: Some(event), ..Packet::default() })
    }

    /// Something that happened at one moment.
    pub fn instant(
        &mut self,
        track: u64,
        category: &'static str,
        name: String,
        at: Instant,
        arguments: Vec<Argument>,
        flow: Option<Flow>,
    ) -> Result<(), Error> {
        let mut event = TrackEvent { kind: kind::INSTANT, track, name: Some(name), ..TrackEvent::default() };
        match flow {
            Some(Flow::From(flow)) => event.flows.push(flow),
            Some(Flow::To(flow)) => event.ending_flows.push(flow),
            None => {}
        }
        self.event(at, category, arguments, event)
    }

    /// Events of one processor as the kernel's tracer would have written them.
    pub fn ftrace(&mut self, cpu: u32, events: Vec<FtraceEvent>) -> Result<(), Error> {
        self.write(Packet { ftrace: Some(FtraceBundle { cpu, events }), ..Packet::default() })
    }

    pub fn finish(mut self) -> Result<W, Error> {
        self.flush()?;
        self.out.flush().map_err(Error::write)?;
        Ok(self.out)
    }

    fn event(
        &mut self,
        at: Instant,
        category: &'static str,
        arguments: Vec<Argument>,
        mut event: TrackEvent,
    ) -> Result<(), Error> {
        let mut interned = proto::Interned::default();
        event.categories.push(number(category, &mut self.categories, &mut interned.categories));
        for Argument { name, value } in arguments {
            let name = number(name, &mut self.arguments, &mut interned.argument_names);
            event.arguments.push(match value {
                Value::Number(number) => proto::Argument { name, number: Some(number), text: None },
                Value::Text(text) => proto::Argument { name, number: None, text: Some(text) },
            });
        }
        let new = !interned.categories.is_empty() || !interned.argument_names.is_empty();
        self.write(Packet {
            timestamp: Some(at.ns()),
            sequence_flags: proto::USES_INTERNED,
            event: Some(event),
            interned: new.then_some(interned),
            ..Packet::default()
        })
    }

    fn write(&mut self, mut packet: Packet) -> Result<(), Error> {
        packet.sequence = self.sequence;
        proto::Trace { packets: vec![packet] }.encode(&mut self.buffer).map_err(Error::write)?;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.buffer).map_err(Error::write)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Perfetto's number of a clock.
fn number_of(name: &str) -> u32 {
    match name {
        "CLOCK_REALTIME" => clock::REALTIME,
        "CLOCK_MONOTONIC" => clock::MONOTONIC,
        "CLOCK_MONOTONIC_RAW" => clock::MONOTONIC_RAW,
        // Perfetto's own, for clocks that it has no name for.
        _ => clock::BOOTTIME,
    }
}

/// The number of a name; `new` receives the name at its first use.
fn number(name: &'static str, known: &mut Vec<&'static str>, new: &mut Vec<proto::Name>) -> u64 {
    if let Some(place) = known.iter().position(|known| *known == name) {
        return place as u64 + 1;
    }
    known.push(name);
    let number = known.len() as u64;
    new.push(proto::Name { number, name: name.into() });
    number
}
