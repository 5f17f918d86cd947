//! What the programs hand over, decoded.

use super::skeleton::types;
use crate::latency::Interrupt;
use crate::latency::symbols::Symbols;
use crate::loader::{Plain, read_plain, text};
use punctual_model::{Duration, Instant};

// SAFETY: all are structs of integers and arrays of such, as interface.h has them.
unsafe impl Plain for types::interrupt_record {}
// SAFETY: as above.
unsafe impl Plain for types::wakeup_record {}
// SAFETY: as above.
unsafe impl Plain for types::thread_key {}
// SAFETY: as above.
unsafe impl Plain for types::thread_latencies {}
// SAFETY: as above.
unsafe impl Plain for types::processor {}

/// Numbers of sources, as those of [`crate::latency`]; softirqs come from here on.
const NMI: u32 = 1;
const FIRST_IRQ: u32 = 256;
/// The number of the first softirq as a source of interrupts.
pub const FIRST_SOFTIRQ: u32 = 1 << 20;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interrupt, softirq or NMI on a processor.
    Interrupt(u32, Interrupt),
    /// One of which only the beginning or the end was seen.
    Missed(Missed),
    /// One of the latest wake-ups of a thread.
    Wakeup(Box<Wakeup>),
}

/// An interrupt that was not seen whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The processor.
    pub cpu: u32,
    /// Where it came from.
    pub source: u32,
}

/// Whose latencies are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The thread.
    pub tid: u32,
    /// The processor that it ran on.
    pub cpu: u32,
    /// Its policy's number.
    pub policy: u32,
    /// Its real-time priority.
    pub priority: u32,
}

/// A wake-up among the latest of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Of which thread.
    pub key: Key,
    /// When it was woken.
    pub ready: Instant,
    /// Until it ran.
    pub latency: Duration,
    /// Of that, interrupts, and threads that the scheduler preferred; `None` where something may have been
    /// missed.
    pub split: Option<(Duration, Duration)>,
    /// What ran meanwhile, in order.
    pub ran: Vec<Ran>,
}

/// What ran for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it was.
    pub kind: RanKind,
    /// The thread, or source of interrupts.
    pub number: u32,
    /// The thread's name.
    pub comm: String,
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub until: Instant,
    /// For how long, less what interrupted it.
    pub duration: Duration,
}

/// What kind of thing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanKind {
    /// A thread.
    Thread,
    /// An interrupt of a device or of the processor.
    Interrupt,
    /// A softirq.
    Softirq,
    /// A non-maskable interrupt.
    Nmi,
}

/// The latencies of a thread on a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// Which thread, where, under which policy.
    pub key: Key,
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Wake-ups of which the latency is known.
    pub wakeups: u64,
    /// Wake-ups of which it is not.
    pub unmeasured: u64,
    /// The sum of all latencies.
    pub total: Duration,
    /// The greatest.
    pub max: Duration,
    /// The greatest of those that no preferred thread delayed.
    pub undelayed: Option<Duration>,
}

/// What was measured on one processor.
#[derive(Clone, Debug)]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// Events that show that others were not seen.
    pub missed: u64,
    /// Records that found no room in the buffer.
    pub lost: u64,
    /// How late timers expired.
    pub timers: Timers,
}

/// How late the timers of a processor expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    /// How many.
    pub expired: u64,
    /// The sum of their latenesses.
    pub total: Duration,
    /// The greatest.
    pub max: Duration,
    /// When that was.
    pub at: Instant,
    /// The timer's function, where its name is known.
    pub function: Option<String>,
    /// The thread that was interrupted: process, thread, name.
    pub interrupted: (u32, u32, String),
}

/// A record of the ring buffer.
pub fn decode(bytes: &[u8]) -> Option<Event> {
    let kind = types::record_kind(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?));
    match kind {
        types::record_kind::RECORD_WAKEUP => wakeup(&read_plain(bytes)?).map(Box::new).map(Event::Wakeup),
        types::record_kind::RECORD_INTERRUPT => {
            let raw: types::interrupt_record = read_plain(bytes)?;
            let interrupt = Interrupt {
                source: source(raw.what, raw.number)?,
                entry: Instant::from_ns(raw.entry),
                exit: Instant::from_ns(raw.exit),
                execution: Duration::from_ns(raw.execution),
            };
            Some(Event::Interrupt(raw.cpu, interrupt))
        }
        types::record_kind::RECORD_MISSED => {
            let raw: types::interrupt_record = read_plain(bytes)?;
            Some(Event::Missed(Missed { cpu: raw.cpu, source: source(raw.what, raw.number)? }))
        }
        _ => None,
    }
}

/// The number of a source of interrupts; `None` for threads.
fn source(kind: u32, number: u32) -> Option<u32> {
    match types::ran_kind(kind) {
        types::ran_kind::RAN_NMI => Some(NMI),
        types::ran_kind::RAN_VECTOR => Some(number),
        types::ran_kind::RAN_INTERRUPT => number.checked_add(FIRST_IRQ),
        types::ran_kind::RAN_SOFTIRQ => number.checked_add(FIRST_SOFTIRQ),
        _ => None,
    }
}

fn key(raw: &types::thread_key) -> Key {
    Key { tid: raw.tid, cpu: raw.cpu, policy: raw.policy, priority: raw.priority }
}

/// The key of the latencies in the map.
pub fn key_bytes(key: &Key) -> Vec<u8> {
    [key.tid, key.cpu, key.policy, key.priority].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn wakeup(raw: &types::wakeup_record) -> Option<Wakeup> {
    let during = raw.ran.iter().filter(|ran| ran.from > 0 && ran.until > raw.ready);
    let mut ran: Vec<Ran> = during.map(ran).collect::<Option<_>>()?;
    ran.sort_by_key(|ran| ran.from);
    let split = (Duration::from_ns(raw.interrupts), Duration::from_ns(raw.threads));
    Some(Wakeup {
        key: key(&raw.key),
        ready: Instant::from_ns(raw.ready),
        latency: Duration::from_ns(raw.latency),
        split: (raw.has_split != 0).then_some(split),
        ran,
    })
}

fn ran(raw: &types::ran) -> Option<Ran> {
    let source = source(raw.kind, raw.number);
    Some(Ran {
        kind: match types::ran_kind(raw.kind) {
            types::ran_kind::RAN_THREAD => RanKind::Thread,
            types::ran_kind::RAN_INTERRUPT | types::ran_kind::RAN_VECTOR => RanKind::Interrupt,
            types::ran_kind::RAN_SOFTIRQ => RanKind::Softirq,
            types::ran_kind::RAN_NMI => RanKind::Nmi,
            _ => return None,
        },
        number: source.unwrap_or(raw.number),
        comm: name(&raw.comm),
        from: Instant::from_ns(raw.from),
        until: Instant::from_ns(raw.until),
        duration: Duration::from_ns(raw.duration),
    })
}

fn name(comm: &[i8]) -> String {
    let bytes: Vec<u8> = comm.iter().map(|letter| *letter as u8).collect();
    text(&bytes)
}

/// The latencies in an entry of the map.
pub fn latencies(bytes: &[u8], value: &[u8]) -> Option<Latencies> {
    let raw: types::thread_latencies = read_plain(value)?;
    Some(Latencies {
        key: key(&read_plain(bytes)?),
        pid: raw.pid,
        comm: name(&raw.comm),
        wakeups: raw.wakeups,
        unmeasured: raw.unmeasured,
        total: Duration::from_ns(raw.total),
        max: Duration::from_ns(raw.greatest),
        undelayed: (raw.has_undelayed != 0).then_some(Duration::from_ns(raw.undelayed)),
    })
}

/// Missed events, lost records and timers of an entry of the map.
pub fn processor(bytes: &[u8]) -> Option<(u64, u64, types::timer_latencies)> {
    let raw: types::processor = read_plain(bytes)?;
    Some((raw.missed, raw.lost_records, raw.timers))
}

impl Timers {
    pub(super) fn new(raw: &types::timer_latencies, symbols: Option<&Symbols>) -> Timers {
        let function = symbols.and_then(|symbols| symbols.name(raw.function));
        Timers {
            expired: raw.expired,
            total: Duration::from_ns(raw.total),
            max: Duration::from_ns(raw.greatest),
            at: Instant::from_ns(raw.at),
            function: function.map(|(name, _)| name.to_owned()),
            interrupted: (raw.pid, raw.tid, name(&raw.comm)),
        }
    }
}
