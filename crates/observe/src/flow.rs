//! The four events of dataflow programs that cannot be rebuilt, at functions of their framework that a probe
//! file names.
//!
//! Breakpoints (uprobes) are set in the pages of one process, before it runs; no other process is touched.

mod file;
mod place;
mod symbols;

pub use file::{Declared, Name, Probe, ProbeFile};
pub use symbols::{First, Function, find, program};

use crate::command::{Output, Running, Waiting, cannot_start, no_command};
use crate::error::Error;
use crate::loader::{
    Plain, lacks_settings, read_counter, read_plain, refused, silence_libbpf, storage, text,
};
use crate::ring::Ring;
use crate::system;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, UprobeOpts};
use place::{MOST_STEPS, Place};
use punctual_model::Instant;
use punctual_trace::flow::Kind;
use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/flow.skel.rs"));
}
use skeleton::types::{flow_counter, flow_event, flow_kind, flow_name, flow_place, flow_probe};
use skeleton::{FlowSkel, FlowSkelBuilder};

/// Between two looks into the buffer: it holds 300,000 events.
const NAP: Duration = Duration::from_millis(10);

// SAFETY: generated from a C struct of integers.
unsafe impl Plain for flow_event {}
// SAFETY: as above.
unsafe impl Plain for flow_name {}

/// What the eBPF program sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The name of an object: before its first event, and again where its identity is found at another
    /// address.
    Named {
        /// Whether it is a channel, not a task.
        channel: bool,
        /// Its identity in the program.
        id: u64,
        /// Empty where it could not be read. What is no text has U+FFFD in it.
        text: String,
    },
    /// An event.
    Event {
        /// When, on CLOCK_MONOTONIC.
        at: Instant,
        /// The thread's number in the initial PID namespace.
        thread: u32,
        /// What.
        kind: Kind,
        /// The probe, by its place in the file's order.
        probe: u32,
        /// Of which channel or task.
        id: u64,
        /// The address at which that was read; 0 where it is an argument itself, or of the task that the
        /// thread runs.
        place: u64,
        /// How many of that kind and object came before it.
        number: u32,
    },
}

/// What the eBPF program could not read or send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Events for which there was no room.
    pub lost: u64,
    /// Ends of executions without a begin.
    pub unmatched: u64,
    /// Events whose identity could not be read at the declared place, in the order of [`Kind::ALL`].
    pub unreadable: [u64; 4],
    /// Names that could not be read: of channels, of tasks.
    pub nameless: [u64; 2],
}

/// A command that runs with probes in it.
pub struct Tracer {
    skeleton: FlowSkel<'static>,
    ring: Ring<Seen>,
    command: Running,
    links: Vec<Link>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} with {} probes", self.command.pid(), self.links.len())
    }
}

/// A probe and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its place in the file's order.
    pub probe: usize,
    /// The function's name.
    pub symbol: String,
    /// The function, if it is there.
    pub function: Option<Function>,
}

/// Where all functions of a file are in a program.
pub fn locate(file: &ProbeFile, program: &std::path::Path) -> Result<Vec<Located>, Error> {
    let named: Vec<(usize, &str)> = file
        .probes
        .iter()
        .enumerate()
        .flat_map(|(at, probe)| probe.symbols.iter().map(move |symbol| (at, symbol.as_str())))
        .collect();
    let mut names: Vec<&str> = named.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let found = find(program, &names)?;
    let function = |symbol: &str| names.binary_search(&symbol).ok().and_then(|at| found[at].clone());
    Ok(named
        .into_iter()
        .map(|(probe, symbol)| Located { probe, symbol: symbol.to_owned(), function: function(symbol) })
        .collect())
}

/// The events of which the program has no function.
pub fn missing(file: &ProbeFile, located: &[Located]) -> Vec<Kind> {
    let has = |kind| {
        located.iter().any(|it| {
            file.probes[it.probe].kind == kind
                && it.function.as_ref().is_some_and(|function| function.first != Some(First::Refused))
        })
    };
    Kind::ALL.into_iter().filter(|kind| !has(*kind)).collect()
}

/// The file that a command would run.
pub fn program_of(command: &[OsString]) -> Result<std::path::PathBuf, Error> {
    let name = command.first().ok_or_else(no_command)?;
    program(name).ok_or_else(|| cannot_start(name, &std::io::ErrorKind::NotFound.into()))
}

impl Tracer {
    /// Starts a command, with probes in it before its first instruction. `located` is from [`locate`] and has
    /// all events.
    pub fn start(file: &ProbeFile, located: &[Located], command: &[OsString]) -> Result<Self, Error> {
        silence_libbpf();
        system::require_privileges()?;
        let mut open = FlowSkelBuilder::default()
            .open(storage())
            .map_err(|error| refused("reading the eBPF program", &error))?;
        let rodata = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks_settings)?;
        for (room, probe) in rodata.probes.iter_mut().zip(&file.probes) {
            *room = in_kernel(probe);
        }
        let skeleton = open.load().map_err(|error| refused("loading the eBPF program", &error))?;
        let ring = Ring::open(&skeleton.maps.records, decode)?;
        let waiting = Waiting::start(command, Output::Shared)?;
        let mut links = Vec::new();
        for it in located {
            let Some(function) = &it.function else { continue };
            let probe = &file.probes[it.probe];
            let program = if probe.at_return { &skeleton.progs.at_return } else { &skeleton.progs.at_entry };
            let options =
                UprobeOpts { cookie: it.probe as u64, retprobe: probe.at_return, ..UprobeOpts::default() };
            let link = program
                .attach_uprobe_with_opts(waiting.pid() as i32, &function.file, function.offset, options)
                .map_err(|error| {
                    refused(&format!("a probe at {} in {}", it.symbol, function.file.display()), &error)
                })?;
            links.push(link);
        }
        let command = waiting.go()?;
        Ok(Self { skeleton, ring, command, links })
    }

    /// The command's process.
    pub fn process(&self) -> u32 {
        self.command.pid()
    }

    /// Waits a moment, `timeout` at most, then hands on what has come.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(Seen)) -> Result<(), Error> {
        std::thread::sleep(timeout.min(NAP));
        self.ring.drain(each).map(drop)
    }

    /// Whether the command has ended.
    pub fn ended(&mut self) -> bool {
        self.command.status().is_some()
    }

    /// The counters so far.
    pub fn counted(&self) -> Counted {
        let counters = self.skeleton.maps.bss_data.as_deref().map(|bss| bss.counters.as_slice());
        let counter = |first: flow_counter, offset: usize| {
            read_counter(counters.unwrap_or_default(), first.0 as usize + offset)
        };
        Counted {
            lost: counter(flow_counter::FLOW_LOST, 0),
            unmatched: counter(flow_counter::FLOW_UNMATCHED, 0),
            unreadable: [0, 1, 2, 3].map(|kind| counter(flow_counter::FLOW_UNREADABLE, kind)),
            nameless: [0, 1].map(|what| counter(flow_counter::FLOW_NAMELESS, what)),
        }
    }

    /// Asks the command to end if it still runs, takes the probes out, and hands on the rest. Returns how the
    /// command ended; `None` if it still runs.
    pub fn finish(
        mut self,
        patience: Duration,
        each: &mut dyn FnMut(Seen),
    ) -> Result<Option<ExitStatus>, Error> {
        let Self { ring, command, .. } = &mut self;
        let status = command.end(patience, || ring.drain(&mut *each).map(drop))?;
        self.links.clear();
        self.ring.drain(each)?;
        Ok(status)
    }
}

fn in_kernel(probe: &Probe) -> flow_probe {
    let place = |place: &Place, bytes: u8| {
        let mut offsets = [0; MOST_STEPS];
        offsets[..place.offsets.len()].copy_from_slice(&place.offsets);
        flow_place { argument: place.argument, steps: place.offsets.len() as u8, bytes, unused: 0, offsets }
    };
    flow_probe {
        id: probe.id.as_ref().map_or_else(Default::default, |id| place(&id.place, id.bytes)),
        name: match &probe.name {
            Name::Text(text) => place(&text.0, 0),
            _ => Default::default(),
        },
        kind: kind_number(probe.kind).0 as u8,
        has_id: probe.id.is_some().into(),
        has_name: matches!(probe.name, Name::Text(_)).into(),
        unused: 0,
    }
}

fn decode(bytes: &[u8]) -> Option<Seen> {
    let event: flow_event = read_plain(bytes)?;
    let kind = match flow_kind(event.kind) {
        flow_kind::FLOW_PUSH => Kind::Push,
        flow_kind::FLOW_ACTIVATION => Kind::Activation,
        flow_kind::FLOW_START => Kind::Start,
        flow_kind::FLOW_STOP => Kind::Stop,
        flow_kind::FLOW_NAME => {
            let name: flow_name = read_plain(bytes)?;
            let channel = flow_kind(event.number) == flow_kind::FLOW_PUSH;
            return Some(Seen::Named { channel, id: event.object, text: text(&name.text) });
        }
        _ => return None,
    };
    let flow_event { at, object: id, place, tid: thread, number, probe, .. } = event;
    Some(Seen::Event { at: Instant::from_ns(at), thread, kind, probe, id, place, number })
}

fn kind_number(kind: Kind) -> flow_kind {
    match kind {
        Kind::Push => flow_kind::FLOW_PUSH,
        Kind::Activation => flow_kind::FLOW_ACTIVATION,
        Kind::Start => flow_kind::FLOW_START,
        Kind::Stop => flow_kind::FLOW_STOP,
    }
}
