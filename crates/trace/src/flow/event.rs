//! What a trace holds: events, gaps, changes of barriers.

use punctual_model::Instant;

/// Events are numbered modulo this.
pub const NUMBERS: u64 = 1 << 14;
/// Objects are numbered below this.
pub const OBJECTS: usize = 1 << 16;

/// Not a channel: pushes on it are notes.
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
    /// An executor ended it.
    Stop = 3,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Kind; 4] = [Kind::Push, Kind::Activation, Kind::Start, Kind::Stop];

    /// Its name in traces.
    pub fn name(self) -> &'static str {
        ["push", "activation", "start", "stop"][self as usize]
    }
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// The thread that wrote it: an executor, or another thread that pushes.
    pub producer: u32,
    /// What.
    pub kind: Kind,
    /// The channel (of a push) or task.
    pub object: u16,
    /// Number of pushes on the channel before, or the task's instance. The trace has it modulo [`NUMBERS`];
    /// this is the whole number.
    pub number: u64,
}

/// Events of a producer are missing here: the tracer had no room, or packets are missing or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The producer.
    pub producer: u32,
    /// The last event before it, or the clock's zero.
    pub from: Instant,
    /// The first event after it, or `u64::MAX` ns.
    pub until: Instant,
    /// Events that the tracer discarded.
    pub discarded: u64,
    /// Packets that are missing or damaged.
    pub packets: u64,
}

/// A barrier's count changes. If that many pushes have already come, its inputs see a push at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// When.
    pub at: Instant,
    /// The producer that changed it.
    pub producer: u32,
    /// The barrier.
    pub channel: u16,
    /// The new count; at least one.
    pub count: u32,
}

/// The next activation of this producer takes this push, of whatever came or comes before or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// When.
    pub at: Instant,
    /// The producer that writes the activation.
    pub producer: u32,
    /// The channel.
    pub channel: u16,
    /// Number of the push; `None` if it is not known.
    pub number: Option<u64>,
}

/// What a reader yields, in causal order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// A gap, placed where it begins.
    Gap(Gap),
    /// A change of a barrier's count.
    Count(Count),
    /// What the next activation takes.
    Take(Take),
}

impl Item {
    /// When it happened; for a gap, when it begins.
    pub fn at(&self) -> Instant {
        match self {
            Item::Event(event) => event.at,
            Item::Gap(gap) => gap.from,
            Item::Count(count) => count.at,
            Item::Take(take) => take.at,
        }
    }
}
