//! How a call waits: on what object, and when not at all, as its arguments say. The eBPF program's `waits` is
//! generated from this, and importers of traces read it. A build script includes this file, so it uses
//! nothing else of this crate but the classes of files.

use super::files::FileClass;

/// An argument of a system call; `A` is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The first.
    A,
    /// The second.
    B,
    /// The third.
    C,
    /// The fourth.
    D,
    /// The fifth.
    E,
    /// The sixth.
    F,
}

/// What a call waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Nothing that distinguishes one use of the call from another.
    Nothing,
    /// A signal handler, after which the call ends with an error: it has no other end.
    Handler,
    /// The next budget of a `SCHED_DEADLINE` thread. Other threads do not wait.
    Budget,
    /// `CLOCK_MONOTONIC`, for the time at this address.
    Monotonic(Argument),
    /// A clock, for or until (`TIMER_ABSTIME` in the second) the time at the address in the third.
    Clock(Argument, Argument, Argument),
    /// A descriptor. The file and its flags say whether the call can block; what knows neither assumes this
    /// class.
    File(FileClass, Argument),
    /// A POSIX message queue, whose flags say whether the call can block.
    MessageQueue(Argument),
    /// A descriptor of this class.
    Descriptor(FileClass, Argument),
    /// An array of `struct pollfd`, and its length.
    Polled(Argument, Argument),
    /// The address of a futex word.
    Futex(Argument),
    /// An array of `struct futex_waitv`, and its length.
    Futexes(Argument, Argument),
    /// A context of asynchronous I/O.
    Context(Argument),
    /// A System V identifier.
    Id(Argument),
    /// A set of System V semaphores, an array of `struct sembuf`, and its length.
    Semaphores(Argument, Argument, Argument),
}

/// How long a call waits at most. With zero it does not wait; addresses may be null, for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// In milliseconds; negative for no limit.
    Milliseconds(Argument),
    /// The address of a `struct timespec`.
    Timespec(Argument),
    /// The address of a `struct timeval`.
    Timeval(Argument),
}

/// How a call waits. It waits if all of this allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// On what.
    pub on: On,
    /// How long at most.
    pub timeout: Option<Timeout>,
    /// The number of descriptors: with none, the call is a sleep for its timeout.
    pub descriptors: Option<Argument>,
    /// Only with none of these bits.
    pub without: Option<(Argument, u32)>,
    /// Only with one of these bits.
    pub with: Option<(Argument, u32)>,
    /// The number of events: with none, the call does not wait.
    pub events: Option<Argument>,
}

impl Wait {
    /// A wait on this object, whatever the other arguments.
    pub const fn on(on: On) -> Wait {
        Wait { on, timeout: None, descriptors: None, without: None, with: None, events: None }
    }

    /// For at most this time.
    pub const fn for_at_most(self, timeout: Timeout) -> Wait {
        Wait { timeout: Some(timeout), ..self }
    }

    /// For one of so many descriptors.
    pub const fn for_one_of(self, descriptors: Argument) -> Wait {
        Wait { descriptors: Some(descriptors), ..self }
    }

    /// Not with one of these bits.
    pub const fn without(self, argument: Argument, bits: u32) -> Wait {
        Wait { without: Some((argument, bits)), ..self }
    }

    /// Only with one of these bits.
    pub const fn with(self, argument: Argument, bits: u32) -> Wait {
        Wait { with: Some((argument, bits)), ..self }
    }

    /// For so many events.
    pub const fn for_events(self, events: Argument) -> Wait {
        Wait { events: Some(events), ..self }
    }

    /// Whether the call may be a sleep for, or until, a time that its arguments name.
    pub const fn may_sleep(&self) -> bool {
        matches!(self.on, On::Clock(..) | On::Monotonic(_)) || self.descriptors.is_some()
    }

    /// Whether the call returns how many of several descriptors are ready: none, if the time is over.
    pub const fn returns_ready(&self) -> bool {
        matches!(self.on, On::Descriptor(FileClass::Epoll, _)) || self.descriptors.is_some()
    }
}
