//! What is true of a whole trace.

use std::collections::{BTreeMap, BTreeSet};

/// How integers lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte first.
    #[default]
    Little,
    /// The most significant byte first.
    Big,
}

/// Data on a channel can activate a task, alone or with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    /// The channel.
    pub channel: u16,
    /// The task.
    pub task: u16,
}

/// How an input counts pushes, and what it keeps of them (`docs/flow.md`, "Activation").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arming {
    /// It is armed when so many pushes count; at least one.
    pub threshold: u32,
    /// All pushes count, and what an activation leaves stays for the instances behind. Otherwise it has the
    /// newest value.
    pub synchronised: bool,
    /// The task does not wait for it.
    pub optional: bool,
    /// It alone activates the task.
    pub is_final: bool,
    /// Pushes that counted when the trace began; of a synchronised one.
    pub pending: u32,
}

impl Default for Arming {
    fn default() -> Arming {
        Arming { threshold: 1, synchronised: true, optional: false, is_final: false, pending: 0 }
    }
}

/// A connection, and how it counts where the trace says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Input {
    /// From where to where.
    pub connection: Connection,
    /// Absent where nothing is known of it.
    pub arming: Option<Arming>,
}

impl From<Connection> for Input {
    fn from(connection: Connection) -> Input {
        Input { connection, arming: None }
    }
}

/// A channel whose inputs are told at each `count`-th push only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// At least one.
    pub count: u32,
    /// Pushes of the first round that had come when the trace began.
    pub arrived: u32,
}

/// Tasks before or after which there may be others that the trace does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Others may lead to these.
    pub before: BTreeSet<u16>,
    /// These may lead to others.
    pub behind: BTreeSet<u16>,
    /// Why, for people.
    pub why: String,
}

/// What is true of a whole trace, as far as it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Of the machine that wrote it.
    pub byte_order: ByteOrder,
    /// The clock's name.
    pub clock: String,
    /// Ticks of the clock in a second; greater than zero.
    pub frequency: u64,
    /// Real time at the clock's zero, in nanoseconds since 1970.
    pub clock_zero: Option<u64>,
    /// Names of channels.
    pub channels: BTreeMap<u16, String>,
    /// Names of tasks.
    pub tasks: BTreeMap<u16, String>,
    /// What was traced.
    pub program: Option<String>,
    /// Operating system and processor, for people.
    pub platform: Option<String>,
    /// Scheduling policy: `fifo`, `lifo`, `priority`.
    pub policy: Option<String>,
    /// How many executors there are.
    pub executors: Option<u32>,
    /// Names of producers, for people.
    pub producers: BTreeMap<u32, String>,
    /// The kernel's numbers of their threads.
    pub threads: BTreeMap<u32, u32>,
    /// Declared connections.
    pub inputs: Vec<Input>,
    /// Whether there are no others.
    pub has_all_inputs: bool,
    /// Whether each activation is told which push it takes, instead of counting ([`Take`](super::Take)).
    /// Instances of a task may overlap then.
    pub has_told_takes: bool,
    /// Whether each input was seen when it was notified, so that `inputs` are all through which data of this
    /// trace went.
    pub has_seen_inputs: bool,
    /// Those of `inputs` that are a guess.
    pub assumed: BTreeSet<Connection>,
    /// Events that the tracer of an imported trace discarded. Their threads are unknown, so each stream
    /// counts at least one, and the sum of the streams is too high.
    pub discarded: Option<u64>,
    /// Where tasks or connections may be missing all the same.
    pub openings: Vec<Opening>,
    /// Barriers, by channel.
    pub barriers: BTreeMap<u16, Barrier>,
}

impl Default for About {
    fn default() -> About {
        About {
            byte_order: ByteOrder::default(),
            clock: "CLOCK_MONOTONIC".into(),
            frequency: 1_000_000_000,
            clock_zero: None,
            channels: BTreeMap::new(),
            tasks: BTreeMap::new(),
            program: None,
            platform: None,
            policy: None,
            executors: None,
            producers: BTreeMap::new(),
            threads: BTreeMap::new(),
            inputs: Vec::new(),
            has_all_inputs: false,
            has_told_takes: false,
            has_seen_inputs: false,
            discarded: None,
            assumed: BTreeSet::new(),
            openings: Vec::new(),
            barriers: BTreeMap::new(),
        }
    }
}

impl About {
    /// A channel as people know it.
    pub fn channel(&self, number: u16) -> String {
        self.channels.get(&number).cloned().unwrap_or_else(|| format!("channel {number}"))
    }

    /// A task as people know it.
    pub fn task(&self, number: u16) -> String {
        self.tasks.get(&number).cloned().unwrap_or_else(|| format!("task {number}"))
    }
}
