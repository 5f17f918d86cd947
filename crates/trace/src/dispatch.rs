//! Records of a time-triggered dispatcher: the table that it carried out, and what every turn of it came to.

use punctual_model::{Duration, Instant};

/// One thing that a dispatcher did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// The table; the first record.
    Table(Table),
    /// A task of the table, and which thread it is: at the beginning, and whenever that changes.
    Task(Box<Task>),
    /// A turn that is over.
    Turn(Turn),
    /// Turns of a processor are not recorded: so many.
    Lost {
        /// The processor.
        cpu: u32,
        /// Turns.
        count: u64,
    },
    /// A job or task that got a guarantee.
    Guest(Box<Guest>),
    /// A guest gives back all slots from one on; or a task of the table those of its present job.
    GuestOver {
        /// Its number.
        number: u32,
        /// The slot.
        slot: u64,
    },
}

/// How a table was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// When the first slot began, on the table's clock.
    pub start: Instant,
    /// Length of a slot.
    pub slot: Duration,
    /// Slots of the hyperperiod.
    pub slots: u32,
    /// Whether the clock of the slots is CLOCK_TAI; else it is CLOCK_MONOTONIC.
    pub is_tai: bool,
    /// Whether sched_ext dispatched; else a thread per processor did.
    pub is_sched_ext: bool,
}

/// A task of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its place in the table.
    pub number: u32,
    /// Its name in the table.
    pub name: String,
    /// Its thread; 0: none.
    pub tid: u32,
}

/// An aperiodic job or periodic task that got a guarantee while the table runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// What [`Turn::task`] and [`Task::number`] call it: not below the table's tasks. Used again when it is
    /// over.
    pub number: u32,
    /// Its processor.
    pub cpu: u32,
    /// It is ready from this slot on; of a periodic task, the first release.
    pub slot: u64,
    /// Slots of each job from its release to its deadline.
    pub deadline: u64,
    /// Slots of each job.
    pub slots: u32,
    /// Slots; 0: it is one job.
    pub period: u64,
    /// Its name.
    pub name: String,
}

/// Slots of a processor one after the other that have the same owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The processor.
    pub cpu: u32,
    /// The first slot, counted since the start.
    pub slot: u64,
    /// How many slots.
    pub slots: u32,
    /// Place of the owner in the table; `None`: idle.
    pub task: Option<u32>,
    /// Place of the job in the table; 0 where it is idle.
    pub job: u32,
    /// The thread that got the processor; 0: none.
    pub tid: u32,
    /// From the beginning of the first slot until the processor was handed over.
    pub error: Duration,
    /// Processor time of the thread in the turn; 0 where that is not known.
    pub ran: Duration,
    /// Processor time of the thread since the end of its turn before, outside of any turn of its own.
    pub outside: Duration,
    /// Whether the job has no slots left and the thread was still ready.
    pub is_overrun: bool,
    /// Whether nobody got it because the job before overran, and the table says that this one is left out.
    pub is_skipped: bool,
    /// Whether the dispatcher came when the turn was over: nobody got it.
    pub is_missed: bool,
    /// When its end was noticed (CLOCK_MONOTONIC).
    pub at: Instant,
}

impl Dispatch {
    /// When it happened, if it says so.
    pub(crate) fn at(&self) -> Option<Instant> {
        match self {
            Dispatch::Turn(turn) => Some(turn.at),
            _ => None,
        }
    }
}
