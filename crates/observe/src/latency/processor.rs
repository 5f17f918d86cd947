//! The memory that the programs share with user space, one piece for each processor.

use super::interrupts::{Event, Interrupt, Reader, length};
use super::skeleton::types::{
    latency_culprit, latency_event, latency_maximum, latency_nmi_entry, latency_part, latency_shared,
    latency_thread, latency_wait,
};
use super::symbols::Symbols;
use crate::error::{Error, ErrorKind};
use crate::loader::text;
use memmap2::{MmapMut, MmapOptions};
use punctual_model::{Duration, Instant};
use punctual_trace::latency::WitnessedKind;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::addr_of;

const NMI: u32 = 1;

/// The variables, in the order of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// D_POID.
    Poid,
    /// D_PSD.
    Psd,
    /// D_ST.
    St,
    /// D_PAIE.
    Paie,
}

impl Variable {
    /// All.
    pub const ALL: [Variable; 4] = [Variable::Poid, Variable::Psd, Variable::St, Variable::Paie];
}

/// A place in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function; empty where it is unknown.
    pub function: String,
    /// Its module, if it is not in the kernel itself.
    pub module: Option<String>,
    /// Bytes into it, or the address where it is unknown.
    pub offset: u64,
}

/// Where and in whom a variable was greatest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// How long that was.
    pub duration: Duration,
    /// When it ended.
    pub at: Instant,
    /// The process that ran then.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// What began it, where that is known.
    pub opened: Option<Frame>,
    /// What ended it.
    pub closed: Option<Frame>,
    /// The kernel stack at the end, innermost first.
    pub stack: Vec<Frame>,
}

/// The latencies of one thread on one processor, when it was the ready thread of highest priority: from the
/// entry of the interrupt that woke it, or from when a thread did, until the scheduler let it run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Number of its policy.
    pub policy: u32,
    /// Real-time priority.
    pub priority: u32,
    /// How many there were.
    pub wakeups: u64,
    /// The sum of all.
    pub total: Duration,
    /// The greatest.
    pub max: Duration,
    /// When the thread was ready then.
    pub max_at: Instant,
    /// What the time of threads went to meanwhile, where that is known: the rest of the greatest is
    /// interrupts.
    pub worst: Option<Wait>,
}

/// What a woken thread waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What the time of threads went to.
    pub parts: Vec<WaitPart>,
    /// The observer's own time for noting culprits, which the latency does not contain.
    pub overhead: Duration,
}

/// What a woken thread waited for, besides interrupts: all sections of a variable, where no other was inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitPart {
    /// The variable; `None`: none of them.
    pub variable: Option<Variable>,
    /// For how long.
    pub spent: Duration,
    /// When the first section began, counted from the wake-up without interrupts.
    pub from: Duration,
    /// How long the longest section had been open when the thread was woken, without interrupts.
    pub before: Duration,
    /// What began the longest section, where that is known.
    pub opened: Option<Frame>,
    /// The process that ran at its end.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
}

/// An event that the flight recorder kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witnessed {
    /// When.
    pub at: Instant,
    /// The thread that ran.
    pub tid: u32,
    /// What.
    pub kind: WitnessedKind,
    /// Where, if that is known.
    pub place: Option<Frame>,
}

/// The last events on a processor, in order.
pub type Flight = Vec<Witnessed>;

/// What was the first to be as long as the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The variable; `None`: the latency of a woken thread.
    pub variable: Option<Variable>,
    /// How long it was.
    pub duration: Duration,
    /// When it ended.
    pub at: Instant,
    /// The process that ran then, or was woken.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// What began it, where that is known.
    pub opened: Option<Frame>,
    /// What ended it.
    pub closed: Option<Frame>,
}

/// What was not seen on one processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Its number.
    pub number: u32,
    /// Latencies of threads for which there was no room.
    pub unmeasured: u64,
    /// How often it went offline.
    pub offline: u64,
    /// Durations that came out negative: there must be none.
    pub negative: u64,
    /// Sections and interrupts of which the beginning was not seen, because of an NMI.
    pub unseen: u64,
    /// The observer's own time for noting culprits, which no duration contains.
    pub overhead: Duration,
    /// What the programs have handed over of interrupts and NMIs.
    pub bytes: u64,
}

/// A variable that is greater than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Which.
    pub variable: Variable,
    /// Its greatest duration.
    pub duration: Duration,
    /// Who that was, if that is known.
    pub culprit: Option<Culprit>,
}

/// The memory of one processor.
pub struct Shared {
    pub number: u32,
    memory: MmapMut,
    offset: usize,
    interrupts: Reader,
    read_nmis: u64,
    /// Of each variable the greatest duration and the number of its culprit, as they were handed on last.
    known: [(u64, u32); 4],
}

impl Shared {
    /// Maps the memory of processor `number`.
    pub fn map(map: &impl AsFd, number: u32) -> Result<Shared, Error> {
        let at = number as usize * size_of::<latency_shared>();
        let page = 4096;
        let begin = at / page * page;
        let length = at - begin + size_of::<latency_shared>();
        // SAFETY: the map is memory of the kernel's that only its programs and we write; nothing can shorten
        // it.
        let mapped =
            unsafe { MmapOptions::new().offset(begin as u64).len(length).map_mut(map.as_fd().as_raw_fd()) };
        let memory = mapped.map_err(|error| {
            Error::new(ErrorKind::Kernel, format!("cannot map the memory of processor {number}: {error}"))
        })?;
        let offset = at - begin;
        Ok(Shared { number, memory, offset, interrupts: Reader::default(), read_nmis: 0, known: [(0, 0); 4] })
    }

    fn shared(&self) -> *const latency_shared {
        // SAFETY: within the mapping, which is as long as the struct from here on.
        unsafe { self.memory.as_ptr().add(self.offset).cast() }
    }

    pub fn set_active(&mut self, active: bool) {
        let offset = self.offset;
        // SAFETY: within the mapping; the programs only read this byte.
        unsafe {
            let shared = self.memory.as_mut_ptr().add(offset).cast::<latency_shared>();
            (&raw mut (*shared).is_active).write_volatile(u8::from(active));
        }
    }

    /// Hands on what has come since the last call, in the order of exits.
    pub fn drain(&mut self, each: &mut dyn FnMut(Event)) {
        let mut events = Vec::new();
        // SAFETY: within the mapping, which only the programs write to.
        unsafe { self.interrupts.drain(&raw const (*self.shared()).interrupts, &mut events) };
        self.drain_nmis(&mut events);
        events.sort_by_key(|event| match event {
            Event::Interrupt(interrupt) => interrupt.exit,
            Event::Lost(_) => Instant::default(),
        });
        events.into_iter().for_each(each);
    }

    fn drain_nmis(&mut self, events: &mut Vec<Event>) {
        let shared = self.shared();
        // SAFETY: within the mapping; the programs write whole words.
        let (end, nmis) =
            unsafe { (addr_of!((*shared).nmis_end).read_volatile(), &raw const (*shared).nmis) };
        let room = length(nmis);
        if end - self.read_nmis > room {
            events.push(Event::Lost(end - self.read_nmis - room));
        }
        for at in self.read_nmis.max(end.saturating_sub(room))..end {
            let place = nmis.cast::<latency_nmi_entry>();
            // SAFETY: within the mapping; the index is below the length.
            let entry = unsafe { place.add((at % room) as usize).read_volatile() };
            events.push(Event::Interrupt(Interrupt {
                source: NMI,
                entry: Instant::from_ns(entry.exit.saturating_sub(entry.execution)),
                exit: Instant::from_ns(entry.exit),
                execution: Duration::from_ns(entry.execution),
            }));
        }
        self.read_nmis = end;
    }

    /// Whether the threshold was exceeded here.
    pub fn is_frozen(&self) -> bool {
        // SAFETY: within the mapping; the programs write whole bytes.
        unsafe { addr_of!((*self.shared()).is_frozen).read_volatile() != 0 }
    }

    /// What exceeded it; `None` if nothing has.
    pub fn exceeded(&self, symbols: &Symbols) -> Option<Exceeded> {
        if !self.is_frozen() {
            return None;
        }
        // SAFETY: within the mapping; nothing is written once it is frozen.
        let exceeded = unsafe { addr_of!((*self.shared()).exceeded).read_volatile() };
        let latency_maximum { duration, at, opened, closed } = exceeded.maximum;
        let place = |address: u64| (address != 0).then(|| frame(address, symbols));
        Some(Exceeded {
            variable: Variable::ALL.get(exceeded.what as usize).copied(),
            duration: Duration::from_ns(duration),
            at: Instant::from_ns(at),
            pid: exceeded.tgid,
            tid: exceeded.tid,
            comm: text(&exceeded.comm.map(|byte| byte as u8)),
            opened: place(opened),
            closed: place(closed),
        })
    }

    /// The events before that.
    pub fn flight(&self, symbols: &Symbols) -> Flight {
        let shared = self.shared();
        // SAFETY: within the mapping; nothing is written once it is frozen.
        let (end, events) =
            unsafe { (addr_of!((*shared).events_end).read_volatile(), &raw const (*shared).events) };
        let room = length(events);
        let read = |at: u64| {
            // SAFETY: as above; the index is below the length.
            let event = unsafe { events.cast::<latency_event>().add((at % room) as usize).read_volatile() };
            witnessed(&event, symbols)
        };
        (end.saturating_sub(room)..end).filter_map(read).collect()
    }

    /// The greatest duration of each variable, and the number of its culprit.
    fn greatest(&self) -> [(u64, u32); 4] {
        let shared = self.shared();
        // SAFETY: within the mapping; the programs write whole words.
        let greatest = unsafe { addr_of!((*shared).cpu.greatest).read_volatile() };
        [0, 1, 2, 3].map(|at| {
            // SAFETY: as above; there is a culprit for each variable.
            let sequence = unsafe { addr_of!((*shared).culprits[at].sequence).read_volatile() };
            (greatest[at].duration, sequence)
        })
    }

    /// Whether a variable is greater than when they were handed on last.
    pub fn has_grown(&self) -> bool {
        self.greatest() != self.known
    }

    /// The variables that have grown since the last call.
    pub fn grown(&mut self, symbols: &Symbols) -> Vec<Grown> {
        let now = self.greatest();
        let mut grown = Vec::new();
        for (at, variable) in Variable::ALL.into_iter().enumerate() {
            if now[at] == self.known[at] {
                continue;
            }
            let shared = self.shared();
            // SAFETY: within the mapping; a culprit is read by its sequence.
            let culprit = unsafe { culprit(addr_of!((*shared).culprits[at]), symbols) };
            grown.push(Grown { variable, duration: Duration::from_ns(now[at].0), culprit });
        }
        self.known = now;
        grown
    }

    /// The latencies of woken real-time threads so far, but for those that are just being written.
    pub fn threads(&self, symbols: &Symbols) -> Vec<Thread> {
        // SAFETY: within the mapping.
        let slots = unsafe { &raw const (*self.shared()).threads };
        let read = |at: u64| {
            // SAFETY: within the mapping; the index is below the length.
            unsafe { thread(slots.cast::<latency_thread>().add(at as usize), symbols) }
        };
        (0..length(slots)).filter_map(read).collect()
    }

    /// Whether a program is halfway through what it writes.
    pub fn is_being_written(&self) -> bool {
        let shared = self.shared();
        // SAFETY: within the mapping; the programs write whole words.
        let (threads, culprits) = unsafe { (&raw const (*shared).threads, &raw const (*shared).culprits) };
        let is_odd = |sequence: u32| sequence % 2 != 0;
        let thread = |at: u64| {
            // SAFETY: within the mapping; the index is below the length.
            is_odd(unsafe { addr_of!((*threads)[at as usize].sequence).read_volatile() })
        };
        let culprit = |at: u64| {
            // SAFETY: as above.
            is_odd(unsafe { addr_of!((*culprits)[at as usize].sequence).read_volatile() })
        };
        (0..length(threads)).any(thread) || (0..length(culprits)).any(culprit)
    }

    /// What was not seen so far.
    pub fn counts(&self) -> Counts {
        let shared = self.shared();
        // SAFETY: within the mapping; the programs write whole words.
        unsafe {
            Counts {
                number: self.number,
                unmeasured: addr_of!((*shared).unmeasured).read_volatile(),
                offline: addr_of!((*shared).offline).read_volatile(),
                negative: addr_of!((*shared).cpu.negative).read_volatile(),
                unseen: addr_of!((*shared).cpu.unseen).read_volatile(),
                overhead: Duration::from_ns(addr_of!((*shared).cpu.overhead).read_volatile()),
                bytes: addr_of!((*shared).interrupts.end).read_volatile()
                    + addr_of!((*shared).nmis_end).read_volatile() * size_of::<latency_nmi_entry>() as u64,
            }
        }
    }
}

fn witnessed(event: &latency_event, symbols: &Symbols) -> Option<Witnessed> {
    let detail = event.detail as u32;
    let kind = match event.kind {
        0 => WitnessedKind::IrqsOff,
        1 => WitnessedKind::IrqsOn,
        2 => WitnessedKind::InterruptEntry,
        3 => WitnessedKind::InterruptSource(detail),
        4 => WitnessedKind::InterruptExit,
        5 => WitnessedKind::PreemptOff,
        6 => WitnessedKind::PreemptOn,
        7 => WitnessedKind::SchedulerEntry,
        8 => WitnessedKind::SchedulerExit,
        9 => WitnessedKind::Wakeup(detail),
        _ => return None,
    };
    let place = (event.address != 0).then(|| frame(event.address, symbols));
    Some(Witnessed { at: Instant::from_ns(event.at), tid: event.tid, kind, place })
}

/// The latencies in the slot at `place`; `None` if it is free, or is being written: for as long as the host
/// holds the processor up, the greatest is then in part the one before.
///
/// # Safety
/// `place` is valid for reading.
unsafe fn thread(place: *const latency_thread, symbols: &Symbols) -> Option<Thread> {
    // SAFETY: as the caller says; the programs write whole words.
    let (tid, wakeups) =
        unsafe { (addr_of!((*place).tid).read_volatile(), addr_of!((*place).wakeups).read_volatile()) };
    if tid == 0 || wakeups == 0 {
        return None;
    }
    // SAFETY: as the caller says.
    let slot = unsafe { consistent(place, |place| addr_of!((*place).sequence).read_volatile()) }?;
    Some(Thread {
        pid: slot.tgid,
        tid: slot.tid,
        comm: text(&slot.comm.map(|byte| byte as u8)),
        policy: slot.policy,
        priority: slot.priority,
        wakeups: slot.wakeups,
        total: Duration::from_ns(slot.total),
        max: Duration::from_ns(slot.max),
        max_at: Instant::from_ns(slot.max_at),
        worst: (slot.worst.ready == slot.max_at).then(|| waited(&slot.worst, symbols)),
    })
}

/// What is at `place`; `None` if it is being written. `sequence` reads its sequence.
///
/// # Safety
/// `place` is valid for reading.
unsafe fn consistent<T>(place: *const T, sequence: impl Fn(*const T) -> u32) -> Option<T> {
    for _ in 0..1000 {
        let before = sequence(place);
        // SAFETY: as the caller says.
        let copy = unsafe { place.read_volatile() };
        if before % 2 == 0 && before == sequence(place) {
            return Some(copy);
        }
        std::thread::yield_now();
    }
    None
}

fn waited(wait: &latency_wait, symbols: &Symbols) -> Wait {
    let parts = wait.parts.iter().enumerate().filter(|(_, part)| part.spent > 0);
    let part = |(index, part): (usize, &latency_part)| WaitPart {
        variable: Variable::ALL.get(index).copied(),
        spent: Duration::from_ns(part.spent),
        from: Duration::from_ns(part.from),
        before: Duration::from_ns(part.before),
        opened: (part.address != 0).then(|| frame(part.address, symbols)),
        pid: part.who.tgid,
        tid: part.who.tid,
        comm: text(&part.who.comm.map(|byte| byte as u8)),
    };
    Wait { parts: parts.map(part).collect(), overhead: Duration::from_ns(wait.overhead) }
}

/// The culprit at `place`, once it is not being written.
///
/// # Safety
/// `place` is valid for reading.
unsafe fn culprit(place: *const latency_culprit, symbols: &Symbols) -> Option<Culprit> {
    // SAFETY: as the caller says.
    let copy = unsafe { consistent(place, |place| addr_of!((*place).sequence).read_volatile()) };
    copy.filter(|copy| copy.maximum.duration > 0).map(|copy| describe(&copy, symbols))
}

fn describe(culprit: &latency_culprit, symbols: &Symbols) -> Culprit {
    let latency_maximum { duration, at, opened, closed } = culprit.maximum;
    let place = |address: u64| (address != 0).then(|| frame(address, symbols));
    let depth = (culprit.depth as usize).min(culprit.stack.len());
    let stack: Vec<Frame> = culprit.stack[..depth].iter().map(|address| frame(*address, symbols)).collect();
    let own = stack.iter().rposition(is_own).map_or(0, |last| last + 1);
    Culprit {
        duration: Duration::from_ns(duration),
        at: Instant::from_ns(at),
        pid: culprit.tgid,
        tid: culprit.tid,
        comm: text(&culprit.comm.map(|byte| byte as u8)),
        opened: place(opened),
        closed: place(closed),
        stack: stack[own..].to_vec(),
    }
}

fn frame(address: u64, symbols: &Symbols) -> Frame {
    match symbols.name(address) {
        Some((name, offset)) => {
            let (function, module) = name.split_once(' ').unwrap_or((name, ""));
            let module = module.trim_matches(['[', ']']);
            let module = (!module.is_empty()).then(|| module.to_owned());
            Frame { function: function.to_owned(), module, offset }
        }
        None => Frame { function: String::new(), module: None, offset: address },
    }
}

/// Whether this is how the kernel comes to our programs.
fn is_own(frame: &Frame) -> bool {
    const OWN: [&str; 7] = [
        "bpf_",
        "__bpf_",
        "__traceiter_",
        "perf_trace_",
        "do_perf_trace_",
        "trace_preempt_",
        "trace_hardirqs_",
    ];
    OWN.iter().any(|prefix| frame.function.starts_with(prefix))
}

#[cfg(test)]
#[path = "processor_tests.rs"]
mod tests;
