//! Records of a measurement of scheduling latency: every interrupt, each new greatest value with what caused
//! it, and sums that only grow. The section `latency` of a timing model follows from them (crate `latency`).

use punctual_model::latency::{
    Culprit, InterruptSource, Monitor, NoVariables, Preemption, RealTimeThread, Timers, Wakeup,
};
use punctual_model::{Duration, Instant};

/// One thing that a measurement of scheduling latency saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Latency {
    /// How it measures; the first record.
    Scope(Scope),
    /// A processor that is measured: at the beginning, and again whenever its counts are known.
    Processor(Processor),
    /// What a number of a source stands for: before its first use.
    Source(Box<Source>),
    /// An interrupt.
    Interrupt(Interrupt),
    /// Interrupts of a processor were not read in time: so many records.
    Lost {
        /// The processor.
        cpu: u32,
        /// Records.
        count: u64,
    },
    /// Of an interrupt only the beginning or the end was seen.
    Missed {
        /// Its processor.
        cpu: u32,
        /// The number of its source.
        source: u32,
    },
    /// A processor went offline.
    Offline {
        /// The processor.
        cpu: u32,
    },
    /// A variable is greater than before.
    Maximum(Box<Maximum>),
    /// The latencies of a thread by now.
    Thread(Box<Thread>),
    /// One of the greatest latencies of a thread so far.
    Wakeup(Box<ThreadWakeup>),
    /// The greatest time from when the measuring thread of a processor was due until it ran, by now.
    FromDue {
        /// The processor.
        cpu: u32,
        /// From the due time until user space.
        max: Duration,
    },
    /// How late the timers of a processor expired by now.
    Timers {
        /// The processor.
        cpu: u32,
        /// Sums, and the greatest.
        timers: Box<Timers>,
    },
    /// How many interrupts the kernel itself counted during the measurement.
    Counted {
        /// The processor.
        cpu: u32,
        /// The row of `/proc/interrupts` or `/proc/softirqs`.
        row: String,
        /// How many.
        count: u64,
    },
    /// What a runtime-verification monitor of the kernel found.
    Monitor(Box<Monitor>),
    /// What the flight recorder kept of the time before the threshold was exceeded.
    Witnessed(Box<Witnessed>),
}

/// How latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// How preemptible the kernel is.
    pub preemption: Preemption,
    /// Windows of interrupts are exact up to this length.
    pub horizon: Duration,
    /// Why the variables of the bound are not observed; `None` if they are.
    pub no_variables: Option<NoVariables>,
}

impl Scope {
    /// Whether the variables of the bound are observed.
    pub fn has_variables(&self) -> bool {
        self.no_variables.is_none()
    }
}

/// What was missed on a processor so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Its number.
    pub cpu: u32,
    /// Events that are known to have been missed.
    pub skipped_events: u64,
    /// Durations that came out negative.
    pub negative_durations: u64,
    /// Whether something was missed that may have been greater than what was seen.
    pub is_partial: bool,
}

/// A source of interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its number in the records of this measurement.
    pub number: u32,
    /// What it is.
    pub source: InterruptSource,
    /// The row of `/proc/interrupts` or `/proc/softirqs` that counts it, if there is one.
    pub row: Option<String>,
}

/// One run of an interrupt's handler, a softirq or an NMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The processor.
    pub cpu: u32,
    /// The number of its source.
    pub source: u32,
    /// When the processor entered it.
    pub entry: Instant,
    /// When the processor left it.
    pub exit: Instant,
    /// Its execution time, without what interrupted it.
    pub execution: Duration,
}

/// The variables of the bound, in the paper's order.
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

    /// Its name in recordings and timing models.
    pub const fn name(self) -> &'static str {
        ["poid", "psd", "st", "paie"][self as usize]
    }

    /// Its name in the paper.
    pub const fn symbol(self) -> &'static str {
        ["D_POID", "D_PSD", "D_ST", "D_PAIE"][self as usize]
    }
}

/// The greatest value of a variable by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maximum {
    /// The processor.
    pub cpu: u32,
    /// The variable.
    pub variable: Variable,
    /// The greatest duration.
    pub duration: Duration,
    /// What took that long, where that is known.
    pub culprit: Option<Culprit>,
}

/// The latencies of a thread on a processor by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The processor.
    pub cpu: u32,
    /// The thread, and how it is scheduled.
    pub thread: RealTimeThread,
    /// Whether it is a measuring thread of Punctual itself.
    pub is_measuring: bool,
    /// Wake-ups of which the latency is known.
    pub wakeups: u64,
    /// Wake-ups of which it is not.
    pub unmeasured: u64,
    /// The sum of all latencies.
    pub total: Duration,
    /// The greatest.
    pub max: Duration,
    /// The greatest of those during which no thread ran that the scheduler preferred.
    pub bounded_max: Option<Duration>,
}

/// A wake-up of a thread on a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadWakeup {
    /// The processor.
    pub cpu: u32,
    /// The thread, by number, and how it is scheduled: policy and priority, as the kernel numbers them.
    pub tid: u32,
    /// See `tid`.
    pub policy: u32,
    /// See `tid`.
    pub priority: u32,
    /// When, for how long, and what ran.
    pub wakeup: Wakeup,
}

/// An event that the flight recorder kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witnessed {
    /// The processor.
    pub cpu: u32,
    /// When.
    pub at: Instant,
    /// The thread that ran.
    pub tid: u32,
    /// What.
    pub kind: WitnessedKind,
    /// Where in the kernel, if that is known.
    pub place: Option<String>,
}

/// What the flight recorder saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessedKind {
    /// A thread masked interrupts.
    IrqsOff,
    /// And unmasked them.
    IrqsOn,
    /// An interrupt or exception began.
    InterruptEntry,
    /// It is an interrupt of the source with this number.
    InterruptSource(u32),
    /// It ended.
    InterruptExit,
    /// Preemption was disabled.
    PreemptOff,
    /// And enabled.
    PreemptOn,
    /// The scheduler was called.
    SchedulerEntry,
    /// It returned.
    SchedulerExit,
    /// A thread of this number was woken.
    Wakeup(u32),
}

impl Latency {
    /// When it happened, if it says so.
    pub(crate) fn at(&self) -> Option<Instant> {
        match self {
            Latency::Interrupt(interrupt) => Some(interrupt.exit),
            _ => None,
        }
    }
}
