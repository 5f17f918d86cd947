//! Dataflow programs that cannot be rebuilt: their four events, at functions of their framework that a file
//! names.
//!
//! Breakpoints (uprobes) are set in the pages of one process, before it runs; nobody else's are touched.

mod file;
mod place;
mod symbols;

pub use file::{Declared, Name, Probe, ProbeFile};
pub use symbols::{First, Function, find, program};

use crate::error::{Error, ErrorKind};
use crate::program::{ADVICE, quiet};
use crate::system;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject, RingBuffer, RingBufferBuilder, UprobeOpts};
use place::{MOST_STEPS, Place};
use punctual_model::Instant;
use punctual_trace::flow::Kind;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::rc::Rc;
use std::time::Duration;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/flow.skel.rs"));
}
use skeleton::types::{flow_place, flow_probe};
use skeleton::{FlowSkel, FlowSkelBuilder};

/// Between two looks into the buffer: it holds 300,000 events.
const NAP: Duration = Duration::from_millis(10);
/// Of `struct flow_event`, and of the text behind it in `struct flow_name`.
const EVENT_BYTES: usize = 40;
const KIND_NAME: u32 = 4;

/// What came from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// What an object is called: before its first event, and some more times where its identity is found at
    /// another address.
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

/// What the kernel side could not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Events for which there was no room.
    pub lost: u64,
    /// Ends of executions without a begin.
    pub unmatched: u64,
    /// Events whose identity could not be read where the file says, as in [`Kind::ALL`].
    pub unreadable: [u64; 4],
    /// Names that could not be read: of channels, of tasks.
    pub nameless: [u64; 2],
}

/// A command that runs with probes in it.
pub struct Tracer {
    skeleton: FlowSkel<'static>,
    ring: RingBuffer<'static>,
    seen: Rc<RefCell<Vec<Seen>>>,
    child: Child,
    status: Option<ExitStatus>,
    links: Vec<Link>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} with {} probes", self.child.id(), self.links.len())
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

/// The events of which no function is there.
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
    let name = command
        .first()
        .ok_or_else(|| Error::new(ErrorKind::CommandFailed, "there is no command after --"))?;
    program(name).ok_or_else(|| crate::observer::cannot_start(name, &std::io::ErrorKind::NotFound.into()))
}

impl Tracer {
    /// Starts a command; probes are in it before its first instruction. `located` is from [`locate`], with
    /// all that is needed there.
    pub fn start(file: &ProbeFile, located: &[Located], command: &[OsString]) -> Result<Self, Error> {
        quiet();
        system::require_privileges()?;
        let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = FlowSkelBuilder::default()
            .open(storage)
            .map_err(|error| refused("reading the eBPF program", &error))?;
        let lacks = || {
            Error::new(
                ErrorKind::Other,
                "the eBPF program lacks its settings; this is a bug of Punctual's build",
            )
        };
        let rodata = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks)?;
        for (room, probe) in rodata.probes.iter_mut().zip(&file.probes) {
            *room = in_kernel(probe);
        }
        let skeleton = open.load().map_err(|error| refused("loading the eBPF program", &error))?;
        let seen = Rc::new(RefCell::new(Vec::new()));
        let mut builder = RingBufferBuilder::new();
        let into = Rc::clone(&seen);
        let room = |error| refused("opening the buffer of events", &error);
        builder
            .add(&skeleton.maps.records, move |bytes| {
                into.borrow_mut().extend(read(bytes));
                0
            })
            .map_err(room)?;
        let ring = builder.build().map_err(room)?;
        let waiting = Waiting::start(command)?;
        let mut links = Vec::new();
        for it in located {
            let Some(function) = &it.function else { continue };
            let probe = &file.probes[it.probe];
            let program = if probe.at_return { &skeleton.progs.at_return } else { &skeleton.progs.at_entry };
            let options =
                UprobeOpts { cookie: it.probe as u64, retprobe: probe.at_return, ..UprobeOpts::default() };
            let link = program
                .attach_uprobe_with_opts(waiting.pid, &function.file, function.offset, options)
                .map_err(|error| {
                    refused(&format!("a probe at {} in {}", it.symbol, function.file.display()), &error)
                })?;
            links.push(link);
        }
        let child = waiting.go()?;
        Ok(Self { skeleton, ring, seen, child, status: None, links })
    }

    /// The command's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits a moment, `timeout` at most, then hands on what has come.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(Seen)) -> Result<(), Error> {
        std::thread::sleep(timeout.min(NAP));
        self.drain(each)
    }

    fn drain(&mut self, each: &mut dyn FnMut(Seen)) -> Result<(), Error> {
        self.ring.consume().map_err(|error| {
            Error::new(ErrorKind::Other, format!("cannot read the buffer of events: {error}"))
        })?;
        self.seen.borrow_mut().drain(..).for_each(each);
        Ok(())
    }

    /// Whether the command has ended.
    pub fn ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// What was counted until now.
    pub fn counted(&self) -> Counted {
        let of = |which: usize| {
            let counters = self.skeleton.maps.bss_data.as_deref().map(|bss| &bss.counters);
            // SAFETY: memory that is shared with the kernel side, which adds to it in whole words.
            counters
                .and_then(|counters| counters.get(which))
                .map_or(0, |counter| unsafe { std::ptr::from_ref(counter).read_volatile() })
        };
        Counted { lost: of(0), unmatched: of(1), unreadable: [2, 3, 4, 5].map(of), nameless: [6, 7].map(of) }
    }

    /// Takes the probes out, hands on the rest, and asks the command to end if it still runs. How it ended;
    /// `None` if it runs on.
    pub fn finish(
        mut self,
        patience: Duration,
        each: &mut dyn FnMut(Seen),
    ) -> Result<Option<ExitStatus>, Error> {
        let deadline = std::time::Instant::now() + patience;
        let mut asked = false;
        while !self.ended() && std::time::Instant::now() < deadline {
            if !asked {
                // SAFETY: the child has not been waited for, so its number is its own.
                unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
                asked = true;
            }
            std::thread::sleep(NAP);
            self.drain(each)?;
        }
        self.links.clear();
        self.drain(each)?;
        Ok(self.status)
    }
}

fn refused(what: &str, error: &libbpf_rs::Error) -> Error {
    Error::new(ErrorKind::Kernel, format!("{what}: the kernel refused it ({error}){ADVICE}"))
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
        kind: probe.kind as u8,
        has_id: probe.id.is_some().into(),
        has_name: matches!(probe.name, Name::Text(_)).into(),
        unused: 0,
    }
}

fn read(bytes: &[u8]) -> Option<Seen> {
    let (event, text) = bytes.split_at_checked(EVENT_BYTES)?;
    let u64_at = |at: usize| u64::from_ne_bytes(event[at..at + 8].try_into().expect("eight bytes"));
    let u32_at = |at: usize| u32::from_ne_bytes(event[at..at + 4].try_into().expect("four bytes"));
    let (id, thread, number, probe, kind) = (u64_at(8), u32_at(24), u32_at(28), u32_at(32), u32_at(36));
    if kind == KIND_NAME {
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        return Some(Seen::Named { channel: number == Kind::Push as u32, id, text: text_of(&text[..end]) });
    }
    let kind = *Kind::ALL.get(kind as usize)?;
    Some(Seen::Event { at: Instant::from_ns(u64_at(0)), thread, kind, probe, id, place: u64_at(16), number })
}

/// A long text may have been cut within a character.
fn text_of(bytes: &[u8]) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    String::from_utf8_lossy(&bytes[..whole]).into_owned()
}

/// A command that has been forked, and waits before it becomes the program.
struct Waiting {
    pid: i32,
    gate: UnixStream,
    spawning: std::thread::JoinHandle<std::io::Result<Child>>,
    name: OsString,
}

impl Waiting {
    fn start(words: &[OsString]) -> Result<Self, Error> {
        let (name, arguments) = words
            .split_first()
            .ok_or_else(|| Error::new(ErrorKind::CommandFailed, "there is no command after --"))?;
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Other, format!("cannot make a pair of sockets: {error}"))
        };
        let (mut gate, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(name);
        command.args(arguments);
        let prepare = move || {
            use std::os::fd::AsRawFd;
            // SAFETY: only calls that may be made between fork and exec, on descriptors that are open and
            // buffers of the size that is said.
            unsafe {
                let pid = libc::getpid().to_ne_bytes();
                libc::write(theirs.as_raw_fd(), pid.as_ptr().cast(), pid.len());
                let mut byte = 0u8;
                // Nothing comes where whoever traces has failed: then it must not run either.
                if libc::read(theirs.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
                    return Err(std::io::Error::from_raw_os_error(libc::ECANCELED));
                }
            }
            Ok(())
        };
        // SAFETY: the closure only makes calls that are allowed there.
        unsafe { command.pre_exec(prepare) };
        // Spawning returns when the program runs, so another thread has to wait for that.
        let spawning = std::thread::spawn(move || command.spawn());
        let mut pid = [0; 4];
        match gate.read_exact(&mut pid) {
            Ok(()) => Ok(Self { pid: i32::from_ne_bytes(pid), gate, spawning, name: name.clone() }),
            Err(_) => {
                drop(gate);
                Err(ended(spawning.join(), name))
            }
        }
    }

    fn go(mut self) -> Result<Child, Error> {
        let opened = self.gate.write_all(&[1]);
        drop(self.gate);
        match (self.spawning.join(), opened) {
            (Ok(Ok(child)), Ok(())) => Ok(child),
            (other, _) => Err(ended(other, &self.name)),
        }
    }
}

fn ended(spawned: std::thread::Result<std::io::Result<Child>>, name: &std::ffi::OsStr) -> Error {
    match spawned {
        Ok(Err(error)) => crate::observer::cannot_start(name, &error),
        _ => Error::new(ErrorKind::Other, format!("{} could not be started", name.to_string_lossy())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_mean_the_same_numbers() {
        assert_eq!(size_of::<flow_probe>(), 2 * size_of::<flow_place>() + 4);
        assert_eq!(size_of::<flow_place>(), 4 + 4 * MOST_STEPS);
        assert_eq!(EVENT_BYTES, 3 * 8 + 4 * 4);
        let header = include_str!("bpf/flow.h");
        for line in [
            format!("MOST_PROBES = {}", file::MOST_PROBES),
            format!("MOST_STEPS = {MOST_STEPS}"),
            "FLOW_PUSH, FLOW_ACTIVATION, FLOW_START, FLOW_STOP, FLOW_NAME".to_owned(),
            "FLOW_LOST, FLOW_UNMATCHED, FLOW_UNREADABLE, FLOW_NAMELESS = FLOW_UNREADABLE + 4, FLOW_COUNTERS = FLOW_NAMELESS + 2".to_owned(),
        ] {
            assert!(header.contains(&line), "{line}");
        }
        assert_eq!(Kind::ALL.map(|kind| kind as u32), [0, 1, 2, 3]);
    }

    #[test]
    fn text_that_was_cut_is_text() {
        assert_eq!(text_of("Größ".as_bytes()), "Größ");
        assert_eq!(text_of(&"Größe".as_bytes()[..3]), "Gr");
        assert_eq!(text_of(b"Gr\xf6\xdfe"), "Gr\u{fffd}\u{fffd}e");
    }
}
