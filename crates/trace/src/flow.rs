//! Traces of dataflow programs on disk: four events, with which a framework says itself what its pool of
//! threads executes. The format is `docs/flow-traces.md`.
//!
//! What the events mean (graph, chains, times) is not decided here.

mod about;
mod header;
mod merge;
mod metadata;
mod notes;
mod numbers;
mod reader;
mod stream;
mod writer;

pub use about::{About, Arming, Barrier, ByteOrder, Connection, Input};
pub use reader::{Reader, Totals};
pub use writer::{Writer, metadata};

use header::Raw;
use punctual_model::Instant;

/// Numbers of events are counted modulo this.
pub const NUMBERS: u64 = 1 << 14;
/// Objects are numbered below this.
pub const OBJECTS: usize = 1 << 16;

/// The channel that is none: pushes on it are notes.
pub(crate) const NOTES: u16 = u16::MAX;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Data was put on a channel.
    Push = 0,
    /// An instance of a task became ready and was queued.
    Activation = 1,
    /// An executor began an instance.
    Start = 2,
    /// It ended it.
    Stop = 3,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Kind; 4] = [Kind::Push, Kind::Activation, Kind::Start, Kind::Stop];

    /// As the trace and its readers call it.
    pub fn name(self) -> &'static str {
        ["push", "activation", "start", "stop"][self as usize]
    }
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Who wrote it: an executor, or another thread that pushes.
    pub producer: u32,
    /// What.
    pub kind: Kind,
    /// Of which channel (a push) or task.
    pub object: u16,
    /// How many of that object came before: pushes on the channel, or the instance of the task. What the
    /// trace has modulo [`NUMBERS`], made whole.
    pub number: u64,
}

/// Events of a producer are missing between these: the tracer had no room, or packets are missing or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Whose.
    pub producer: u32,
    /// The last event before it; the clock's zero where there is none.
    pub from: Instant,
    /// The first event behind it; `u64::MAX` ns where there is none.
    pub until: Instant,
    /// Events that the tracer says it discarded.
    pub discarded: u64,
    /// Packets that are missing or damaged.
    pub packets: u64,
}

/// A barrier's count is another from here on. If as many pushes have come already, its inputs are told at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// When.
    pub at: Instant,
    /// Who changed it.
    pub producer: u32,
    /// Of which barrier.
    pub channel: u16,
    /// To what; at least one.
    pub count: u32,
}

/// What a reader gives, in the order of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// A gap; it stands where it begins.
    Gap(Gap),
    /// A barrier's count.
    Count(Count),
}

impl Item {
    /// When it is; of a gap, where it begins.
    pub fn at(&self) -> Instant {
        match self {
            Item::Event(event) => event.at,
            Item::Gap(gap) => gap.from,
            Item::Count(count) => count.at,
        }
    }
}
