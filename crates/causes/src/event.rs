//! What happened to threads and processors.

use punctual_model::{Duration, Instant};

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// On which processor; of a wake-up, the waker's; of a migration, the one that the thread leaves.
    pub cpu: u32,
    /// What.
    pub step: Step,
}

/// What an event changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A thread got the processor.
    In {
        /// Its TID; 0 is the idle thread.
        thread: u32,
        /// How urgent it was.
        urgency: Urgency,
    },
    /// A thread left the processor.
    Out {
        /// Its TID; 0 is the idle thread.
        thread: u32,
        /// How urgent it was.
        urgency: Urgency,
        /// Why it left.
        why: Departure,
    },
    /// A thread became ready to run.
    Woken {
        /// Its TID.
        thread: u32,
        /// Who woke it.
        by: Waker,
    },
    /// A thread that is ready was moved to the queue of another processor.
    Moved {
        /// Its TID.
        thread: u32,
        /// That processor.
        to: u32,
    },
    /// The processor began to serve an interrupt.
    Began(Interrupt),
    /// The processor is done with an interrupt.
    Ended(Interrupt),
    /// Time that the hypervisor took from the processor since its last switch.
    Stolen(Duration),
    /// A thread that leaves its processor now had page faults since it did so last.
    Faulted {
        /// Its TID.
        thread: u32,
        /// How many.
        faults: Faults,
    },
}

/// Numbers of page faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Faults {
    /// Those without I/O.
    pub minor: u64,
    /// Those with.
    pub major: u64,
}

impl Faults {
    /// Both together.
    pub fn all(self) -> u64 {
        self.minor.saturating_add(self.major)
    }
}

impl std::ops::AddAssign for Faults {
    fn add_assign(&mut self, more: Faults) {
        self.minor = self.minor.saturating_add(more.minor);
        self.major = self.major.saturating_add(more.major);
    }
}

/// A time of which events may be missing, of any thread and processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Events up to and at this moment are complete.
    pub since: Instant,
    /// So are those from this moment on.
    pub until: Instant,
}

/// Why a thread left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It remains ready to run.
    Preempted,
    /// It remains ready to run, but its budget is used up.
    Throttled,
    /// It waits.
    Asleep(Wait),
    /// A signal or a debugger stopped it.
    Stopped,
    /// It ended.
    Ended,
}

/// What a thread waits for, where that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wait {
    /// Whether no signal would wake it: it waits for a disk or a lock of the kernel.
    pub uninterruptible: bool,
    /// The name of the system call that it waits in, or `page fault`.
    pub call: Option<&'static str>,
    /// The name of the file or the futex that the call waits on.
    pub object: Option<&'static str>,
    /// The thread that owns the lock it waits for.
    pub owner: Option<u32>,
}

/// Who made a thread ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// This thread.
    Thread(u32),
    /// An interrupt: a timer, a device.
    Interrupt,
    /// Not known.
    Unknown,
}

/// How urgent a thread is for the scheduler: less is more urgent. Zero is SCHED_DEADLINE, 1 to 99 are
/// real-time priorities 99 to 1, everything else is [`Urgency::FAIR`] or less urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Urgency(pub u8);

impl Urgency {
    /// SCHED_DEADLINE.
    pub const DEADLINE: Urgency = Urgency(0);
    /// Of SCHED_FIFO with priority 99, as which the threads count with which the kernel stops and moves
    /// others.
    pub const MOST_REAL_TIME: Urgency = Urgency(1);
    /// All threads without a real-time policy. Among each other they take turns.
    pub const FAIR: Urgency = Urgency(101);
    /// Not known.
    pub const UNKNOWN: Urgency = Urgency(u8::MAX - 1);
    /// The idle thread.
    pub const IDLE: Urgency = Urgency(u8::MAX);

    /// Of SCHED_FIFO or SCHED_RR with this priority, 1 to 99.
    pub const fn real_time(priority: u32) -> Urgency {
        match priority {
            1..=99 => Urgency(100 - priority as u8),
            _ => Urgency::FAIR,
        }
    }
}

/// What interrupts threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interrupt {
    /// A device.
    Device {
        /// The number of its interrupt.
        number: u32,
        /// The name of its handler; empty if it is not known.
        name: &'static str,
    },
    /// A softirq, by its number.
    Soft(u32),
    /// The local timer.
    Timer,
    /// A request of another processor.
    Processor,
}
