//! The events and connections of dataflow programs that cannot be rebuilt, at functions of their framework
//! that a probe file names.
//!
//! Breakpoints (uprobes) are set in the pages of one process; no other process is touched.

mod file;
mod place;
mod symbols;
mod tracer;

pub use file::{Declared, InputPlaces, Name, Probe, ProbeFile, Sees};
pub use symbols::{First, Function, find, program};
pub use tracer::{Held, Target, Tracer};

use crate::command::{cannot_start, no_command};
use crate::error::{Error, ErrorKind};
use crate::loader::{Plain, read_plain, text};
use crate::system;
use place::{MOST_STEPS, Number, Place};
use punctual_model::Instant;
use punctual_trace::flow::Kind;
use std::ffi::OsString;
use std::path::PathBuf;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/flow.skel.rs"));
}
use skeleton::types::{flow_connection, flow_event, flow_kind, flow_name, flow_place, flow_probe};

// SAFETY: generated from a C struct of integers.
unsafe impl Plain for flow_event {}
// SAFETY: as above.
unsafe impl Plain for flow_name {}
// SAFETY: as above.
unsafe impl Plain for flow_connection {}

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
    /// An input was notified: the first time, or the first time that it counts like this.
    Connection {
        /// The probe, by its place in the file's order.
        probe: u32,
        /// The channel's identity.
        channel: u64,
        /// The task's.
        task: u64,
        /// Whether it is synchronised; meaningless unless the file says where that is, as all that follow.
        synchronised: bool,
        /// Its threshold.
        threshold: u32,
        /// Whether it is final.
        is_final: bool,
    },
    /// A barrier's count was complete: the inputs of this channel were notified.
    Round {
        /// When, on CLOCK_MONOTONIC.
        at: Instant,
        /// The thread's number in the initial PID namespace.
        thread: u32,
        /// The channel's identity.
        channel: u64,
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
    /// Connections whose channel or task could not be read.
    pub unconnected: u64,
    /// Starts and stops of what had been activated, or had started, before the probes were there.
    pub earlier: u64,
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
            file.probes[it.probe].sees == Sees::Event(kind)
                && it.function.as_ref().is_some_and(|function| function.first != Some(First::Refused))
        })
    };
    Kind::ALL.into_iter().filter(|kind| !has(*kind)).collect()
}

/// The file that a process runs.
pub fn program_of_process(pid: u32) -> Result<PathBuf, Error> {
    system::require_process(pid)?;
    let failed = |why: String| {
        Error::new(ErrorKind::CommandFailed, format!("cannot look at the program of process {pid}: {why}"))
    };
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| failed(error.to_string()))?;
    match path.is_file() {
        true => Ok(path),
        false => Err(failed(format!(
            "{} is not there; was it rebuilt since it started, or does it run in a container?",
            path.display()
        ))),
    }
}

/// The file that a command would run.
pub fn program_of(command: &[OsString]) -> Result<PathBuf, Error> {
    let name = command.first().ok_or_else(no_command)?;
    program(name).ok_or_else(|| cannot_start(name, &std::io::ErrorKind::NotFound.into()))
}

fn in_kernel(probe: &Probe) -> flow_probe {
    let place = |place: &Place, bytes: u8| {
        let mut offsets = [0; MOST_STEPS];
        offsets[..place.offsets.len()].copy_from_slice(&place.offsets);
        flow_place { argument: place.argument, steps: place.offsets.len() as u8, bytes, unused: 0, offsets }
    };
    let number = |number: Option<&Number>| {
        number.map_or_else(Default::default, |number| place(&number.place, number.bytes))
    };
    let input = match &probe.sees {
        Sees::Connection(input) => Some(&**input),
        _ => None,
    };
    flow_probe {
        id: number(probe.id.as_ref()),
        name: match &probe.name {
            Name::Text(text) => place(&text.0, 0),
            _ => Default::default(),
        },
        channel: number(input.map(|input| &input.channel)),
        synchronised: number(input.and_then(|input| input.synchronised.as_ref())),
        threshold: number(input.and_then(|input| input.threshold.as_ref())),
        is_final: number(input.and_then(|input| input.is_final.as_ref())),
        kind: probe.sees.kind().map_or(flow_kind::FLOW_CONNECTION, kind_number).0 as u8,
        has_id: probe.id.is_some().into(),
        has_name: matches!(probe.name, Name::Text(_)).into(),
        is_barrier: (probe.sees == Sees::BarrierPush).into(),
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
        flow_kind::FLOW_CONNECTION => {
            let input: flow_connection = read_plain(bytes)?;
            return Some(Seen::Connection {
                probe: event.probe,
                channel: input.channel,
                task: event.object,
                synchronised: input.synchronised != 0,
                threshold: input.threshold,
                is_final: input.is_final != 0,
            });
        }
        flow_kind::FLOW_ROUND => {
            let at = Instant::from_ns(event.at);
            return Some(Seen::Round { at, thread: event.tid, channel: event.object });
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
