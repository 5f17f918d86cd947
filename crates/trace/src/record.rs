//! What was seen of threads, as records: what `observe` delivers, `extract` takes and recordings hold.
//!
//! One [`Activation`] per separation, not one event per context switch: its counters are cumulative, so that
//! every job stream of a thread takes its costs as differences of two readings.

use crate::dispatch::Dispatch;
use crate::latency::Latency;
use crate::ready::Ready;
use punctual_model::{Disturbance, Duration, Instant, Policy, Reservation, Separator, Window};

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A thread came into view, or its task changed.
    Task(Box<TaskRecord>),
    /// A separation of jobs.
    Activation(Activation),
    /// A thread's name changed, without a change of task.
    Renamed {
        /// The thread.
        tid: u32,
        /// Records of this thread before this one.
        sequence: u32,
        /// Its new name.
        name: String,
    },
    /// The command line that a thread was found with, where the task record could not have it.
    Command {
        /// The thread.
        tid: u32,
        /// Records of this thread before this one.
        sequence: u32,
        /// The command line.
        command: String,
    },
    /// A thread's task, which the next record ends, never waited, so that it has no jobs.
    Busy {
        /// The thread.
        tid: u32,
        /// Records of this thread before this one.
        sequence: u32,
        /// Processor time that the task took.
        cpu: Duration,
    },
    /// The observation of a thread ends here, though the thread goes on.
    Last {
        /// The thread.
        tid: u32,
        /// Records of it in all.
        sequence: u32,
        /// When.
        at: Instant,
    },
    /// A thread ended.
    Exit {
        /// The thread.
        tid: u32,
        /// Records of this thread before this one.
        sequence: u32,
        /// When.
        at: Instant,
    },
    /// A thread as it already is: what a recording repeats now and then, so that what follows can be
    /// understood without what came before. Its `sequence` is that of the thread's next record. Says nothing
    /// new where the thread is known.
    Known(Box<TaskRecord>),
    /// A thread that is not watched, seen for the first time or changed: of it, only steps of the scheduler
    /// are recorded. For timelines only. A number can be that of a watched thread later, and the other way
    /// round.
    Bystander(Box<TaskRecord>),
    /// A thread that is not watched ended.
    BystanderExit {
        /// The thread.
        tid: u32,
        /// When.
        at: Instant,
    },
    /// A step of the scheduler. For timelines only, and only where it was asked for: no model depends on it,
    /// and it has no place in the thread's sequence.
    Switch(Switch),
    /// `CLOCK_REALTIME` was set. Arrivals by that clock are those of their time already.
    ClockSet {
        /// When.
        at: Instant,
        /// By so many nanoseconds, forward if positive.
        by_ns: i64,
    },
    /// Records of a time are missing, of any thread and processor. The sequences of threads tell the same of
    /// their activations; steps of the scheduler have none.
    Lost {
        /// Records up to and at this moment are complete.
        since: Instant,
        /// So are those from this moment on.
        until: Instant,
    },
    /// Of a measurement of scheduling latency, which has no other records.
    Latency(Latency),
    /// Of a time-triggered dispatcher, which has no other records.
    Dispatch(Dispatch),
}

impl Record {
    /// The thread that it is about; 0 for a clock, a measurement of scheduling latency and a dispatcher.
    pub fn tid(&self) -> u32 {
        match self {
            Record::Task(task) | Record::Known(task) | Record::Bystander(task) => task.tid,
            Record::Activation(activation) => activation.tid,
            Record::Switch(switch) => switch.tid,
            Record::Renamed { tid, .. }
            | Record::Command { tid, .. }
            | Record::Busy { tid, .. }
            | Record::Last { tid, .. }
            | Record::Exit { tid, .. }
            | Record::BystanderExit { tid, .. } => *tid,
            Record::ClockSet { .. } | Record::Lost { .. } | Record::Latency(_) | Record::Dispatch(_) => 0,
        }
    }
}

/// What the scheduler did with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The thread.
    pub tid: u32,
    /// When.
    pub at: Instant,
    /// On which processor; for a wake-up, the waker's; for a migration, the one that it leaves.
    pub cpu: u32,
    /// What.
    pub step: Step,
}

/// The steps of a thread through the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It got a processor.
    In,
    /// It lost its processor and remains ready to run.
    Preempted,
    /// The same, but its cgroup has used up its quota of processor time.
    Throttled,
    /// It stopped, and waits for something.
    Asleep {
        /// Whether a signal would wake it; what waits for a disk or a lock of the kernel is not woken by
        /// signals.
        interruptible: bool,
    },
    /// A signal or a debugger stopped it.
    Stopped,
    /// It was woken.
    Woken {
        /// By this thread; 0 is an interrupt, or a thread outside the observer's PID namespace.
        by: u32,
    },
    /// While it was ready, it was moved from the queue of the step's processor to that of another.
    Moved {
        /// That one.
        to: u32,
    },
    /// It goes to sleep with its next step, in a system call or a page fault.
    Blocked(Blocked),
    /// It leaves its processor with its next step. Its page faults since it last did.
    Faulted {
        /// Those without I/O.
        minor: u32,
        /// Those with.
        major: u32,
    },
    /// An interrupt, a softirq or a hypervisor had the processor, until now. The `tid` is 0.
    Taken {
        /// What.
        by: Taker,
        /// For how long; a hypervisor at some time since the processor's last switch.
        time: Duration,
    },
}

impl Step {
    /// Whether it changes the state of no thread: it describes the next step, a queue, or time of the
    /// processor.
    pub fn is_detail(self) -> bool {
        matches!(self, Step::Blocked(_) | Step::Faulted { .. } | Step::Taken { .. } | Step::Moved { .. })
    }
}

/// What takes a processor from threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// The interrupt of a device.
    Device {
        /// Its number.
        number: u32,
        /// The name of its handler, as in /proc/interrupts; empty if it is not known.
        name: &'static str,
    },
    /// A softirq, by its number.
    Softirq(u32),
    /// The processor's own timer.
    Timer,
    /// A request of another processor.
    Processor,
    /// A hypervisor.
    Hypervisor,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The name of the system call, `page fault`, or `system call 463` if its name is not known.
    pub call: &'static str,
    /// What the call waits on: the last part of a file's path, or the name of a futex, as
    /// [`ObjectName`](punctual_model::ObjectName) has it. `None` if that is unknown.
    pub object: Option<&'static str>,
    /// The thread that holds the lock; 0 if that is unknown, or there is none.
    pub owner: u32,
}

/// Why a thread's task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// First seen: at the start of the observation, when created, or when it became real-time.
    Seen,
    /// Policy changed.
    Policy,
    /// Priority, nice value or reservation changed.
    Priority,
    /// Affinity changed.
    Affinity,
    /// Executed another program.
    Exec,
}

/// A thread and its scheduling parameters, as of the moment of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRecord {
    /// Thread; unique among the threads alive.
    pub tid: u32,
    /// Process.
    pub pid: u32,
    /// Records of this thread before this one.
    pub sequence: u32,
    /// When.
    pub at: Instant,
    /// Why.
    pub begin: Begin,
    /// `comm`.
    pub name: String,
    /// Command line; empty for kernel threads.
    pub command: String,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority, 0 where the policy has none.
    pub priority: u32,
    /// Nice value, where the policy has one.
    pub nice: Option<i32>,
    /// Reservation, under SCHED_DEADLINE.
    pub reservation: Option<Reservation>,
    /// Processors it may use, as a list.
    pub affinity: String,
}

/// One separation: the job before it ended, the next one was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The thread.
    pub tid: u32,
    /// Records of this thread before this one; a gap means that records were lost.
    pub sequence: u32,
    /// Which call, on what. [`Separator::SUSPENSION`] is a sleep outside of all calls that separate.
    pub separator: Separator,
    /// Whether the thread slept.
    pub slept: bool,
    /// When the job before ended: the thread's first stop inside the call, or the call's entry if it did not
    /// sleep.
    pub stop: Instant,
    /// The thread's cumulative processor time at `stop` (with what it took between spurious wake-ups inside
    /// the call): the kernel's account, and what was taken from the thread while it was on a processor since
    /// a call that did not sleep. There the account is not to be had, so the reading is by the clock; what it
    /// was ahead stays in, or the next job would have had too little.
    pub cpu: Duration,
    /// When the next job should come, where the call says so.
    pub arrival: Option<Instant>,
    /// What followed; absent where the thread was still stopped when the observation or its task ended.
    pub resumed: Option<Resumed>,
}

/// The far side of a separation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// When the next job was released. `None` if the call did not sleep: the event had happened before.
    pub release: Option<Window>,
    /// When the thread ran again.
    pub start: Instant,
    /// Time asleep inside the call after that release (waiting for locks of the kernel).
    pub suspended_after: Duration,
    /// How many expirations of its timer the call told of (`timerfd`, signals of POSIX timers). Zero: not
    /// known.
    pub expirations: u64,
    /// What moved the release, where that was seen. A [`Separator::SUSPENSION`] by a signal releases nothing:
    /// the thread was stopped.
    pub disturbance: Option<Disturbance>,
    /// What was ready, of several things that the call waited for.
    pub ready: Ready,
}

impl Resumed {
    /// Released so, and then run from `start` on, with nothing else to tell.
    pub fn new(release: Option<Window>, start: Instant) -> Resumed {
        Resumed {
            release,
            start,
            suspended_after: Duration::ZERO,
            expirations: 0,
            disturbance: None,
            ready: Ready::default(),
        }
    }
}

/// What a thread was doing at a moment, beyond its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Its records so far.
    pub sequence: u32,
    /// When.
    pub at: Instant,
    /// Its cumulative processor time, at least.
    pub cpu: Duration,
    /// If it was in a call that separates jobs, or asleep: what would be recorded if the observation ended
    /// here. If it had been woken and not run yet, that is its release, with `at` as start.
    pub stopped: Option<Activation>,
    /// If its task has not waited once: the processor time that the task took.
    pub busy: Option<Duration>,
}

impl Glance {
    /// The records that end the observation of the thread here.
    pub fn last_records(&self, tid: u32) -> impl Iterator<Item = Record> {
        let sequence = self.sequence + u32::from(self.stopped.is_some()) + u32::from(self.busy.is_some());
        let busy = self.busy.map(|cpu| Record::Busy { tid, sequence: self.sequence, cpu });
        let last = Record::Last { tid, sequence, at: self.at };
        self.stopped.map(Record::Activation).into_iter().chain(busy).chain([last])
    }
}
