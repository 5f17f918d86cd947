//! Probes in one process, and what they see: in a command from its first instruction on, or in a process that
//! runs already.

use super::file::{Probe, ProbeFile};
use super::skeleton::types::flow_counter;
use super::skeleton::{FlowSkel, FlowSkelBuilder};
use super::{Counted, Located, Seen, decode, in_kernel};
use crate::command::{Output, Running, Waiting};
use crate::error::{Error, ErrorKind};
use crate::loader::{lacks_settings, read_counter, refused, silence_libbpf, storage};
use crate::ring::Ring;
use crate::system;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, UprobeOpts};
use std::ffi::OsString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitStatus;
use std::time::Duration;

/// Between two looks into the buffer: it holds 300,000 events.
const NAP: Duration = Duration::from_millis(10);

/// Most events that are handed on at once, unless all are: what a full buffer holds.
const MOST_AT_ONCE: usize = 300_000;

/// What is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program to be started, and its arguments.
    Command(Vec<OsString>),
    /// A process that runs. It goes on after the trace.
    Process(u32),
}

/// Probes that are in place, in a process that has not been let go yet if it is a command.
pub struct Held {
    skeleton: FlowSkel<'static>,
    ring: Ring<Seen>,
    target: HeldTarget,
    links: Vec<Link>,
}

enum HeldTarget {
    Command(Waiting),
    Process(Process),
}

/// A process that runs with probes in it.
pub struct Tracer {
    skeleton: FlowSkel<'static>,
    ring: Ring<Seen>,
    target: RunningTarget,
    links: Vec<Link>,
}

enum RunningTarget {
    Command(Running),
    Process(Process),
}

/// A process that is not a child. Its number may be reused; its descriptor tells when it has ended.
struct Process {
    pid: u32,
    descriptor: OwnedFd,
}

impl Process {
    fn open(pid: u32) -> Result<Process, Error> {
        // SAFETY: takes two numbers.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if descriptor < 0 {
            let why = std::io::Error::last_os_error();
            return Err(Error::new(ErrorKind::TargetNotFound, format!("cannot watch process {pid}: {why}")));
        }
        // SAFETY: the system call has just made it, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        Ok(Process { pid, descriptor })
    }

    fn has_ended(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives through the call.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} with {} probes", self.process(), self.links.len())
    }
}

impl Held {
    /// Puts probes into a process: that of a command before its first instruction. `located` is from
    /// [`locate`](super::locate) and has all events; `output` is where a command prints.
    pub fn start(
        file: &ProbeFile,
        located: &[Located],
        target: &Target,
        output: Output,
    ) -> Result<Held, Error> {
        silence_libbpf();
        system::require_privileges()?;
        let mut open = FlowSkelBuilder::default()
            .open(storage())
            .map_err(|error| refused("reading the eBPF program", &error))?;
        let rodata = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks_settings)?;
        rodata.is_late = matches!(target, Target::Process(_));
        for (room, probe) in rodata.probes.iter_mut().zip(&file.probes) {
            *room = in_kernel(probe);
        }
        let skeleton = open.load().map_err(|error| refused("loading the eBPF program", &error))?;
        let ring = Ring::open(&skeleton.maps.records, decode)?;
        let target = match target {
            Target::Command(words) => HeldTarget::Command(Waiting::start(words, output)?),
            Target::Process(pid) => HeldTarget::Process(Process::open(*pid)?),
        };
        let mut held = Held { skeleton, ring, target, links: Vec::new() };
        for it in located {
            held.attach(it, &file.probes[it.probe])?;
        }
        Ok(held)
    }

    fn attach(&mut self, it: &Located, probe: &Probe) -> Result<(), Error> {
        let Some(function) = &it.function else { return Ok(()) };
        let programs = &self.skeleton.progs;
        let program = if probe.at_return { &programs.at_return } else { &programs.at_entry };
        let options =
            UprobeOpts { cookie: it.probe as u64, retprobe: probe.at_return, ..UprobeOpts::default() };
        let link = program
            .attach_uprobe_with_opts(self.process() as i32, &function.file, function.offset, options)
            .map_err(|error| {
                refused(&format!("a probe at {} in {}", it.symbol, function.file.display()), &error)
            })?;
        self.links.push(link);
        Ok(())
    }

    /// The process.
    pub fn process(&self) -> u32 {
        match &self.target {
            HeldTarget::Command(waiting) => waiting.pid(),
            HeldTarget::Process(process) => process.pid,
        }
    }

    /// All probes begin to see, and a command to run.
    pub fn go(self) -> Result<Tracer, Error> {
        let Held { mut skeleton, ring, target, links } = self;
        skeleton.maps.bss_data.as_deref_mut().ok_or_else(lacks_settings)?.is_on = 1;
        let target = match target {
            HeldTarget::Command(waiting) => RunningTarget::Command(waiting.go()?),
            HeldTarget::Process(process) => RunningTarget::Process(process),
        };
        Ok(Tracer { skeleton, ring, target, links })
    }
}

impl Tracer {
    /// The process.
    pub fn process(&self) -> u32 {
        match &self.target {
            RunningTarget::Command(command) => command.pid(),
            RunningTarget::Process(process) => process.pid,
        }
    }

    /// Waits a moment, `timeout` at most, then hands on what has come.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(Seen)) -> Result<(), Error> {
        std::thread::sleep(timeout.min(NAP));
        self.ring.drain(each).map(drop)
    }

    /// Hands on what has come; returns whether that is all. What comes faster than it is taken stays.
    pub fn drain(&mut self, each: &mut dyn FnMut(Seen)) -> Result<bool, Error> {
        Ok(self.ring.drain_at_most(MOST_AT_ONCE, each)? < MOST_AT_ONCE)
    }

    /// Whether the process has ended.
    pub fn ended(&mut self) -> bool {
        match &mut self.target {
            RunningTarget::Command(command) => command.status().is_some(),
            RunningTarget::Process(process) => process.has_ended(),
        }
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
            unconnected: counter(flow_counter::FLOW_UNCONNECTED, 0),
            earlier: counter(flow_counter::FLOW_EARLIER, 0),
        }
    }

    /// Asks a command to end if it still runs, takes the probes out, and hands on the rest. Returns how the
    /// command ended; `None` if it still runs. A process is left alone. The counters are those at the end.
    pub fn finish(
        mut self,
        patience: Duration,
        each: &mut dyn FnMut(Seen),
    ) -> Result<(Option<ExitStatus>, Counted), Error> {
        let Self { ring, target, .. } = &mut self;
        let status = match target {
            RunningTarget::Command(command) => command.end(patience, || ring.drain(&mut *each).map(drop))?,
            RunningTarget::Process(_) => None,
        };
        // All at once: taking probes out one by one takes long, and what only some of them see fits nothing.
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            bss.is_on = 0;
        }
        self.links.clear();
        self.ring.drain(each)?;
        Ok((status, self.counted()))
    }
}
