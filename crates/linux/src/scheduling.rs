//! The interface to the kernel: scheduling, affinity, and the setting that SCHED_DEADLINE on one
//! processor needs.

mod clamps;

pub use clamps::{Clamped, Clamps, WHOLE, clamp, clamps, has_clamps, unclamp};

use punctual_model::Duration;
use punctual_schedule::{AssignedPolicy, Limits};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI64, Ordering};

/// How a thread is scheduled: `struct sched_attr` as of Linux 3.14. It leaves utilization clamps as they are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    size: u32,
    /// `SCHED_OTHER`, …
    pub policy: u32,
    /// `SCHED_FLAG_…`
    pub flags: u64,
    /// Of SCHED_OTHER and SCHED_BATCH.
    pub nice: i32,
    /// Of SCHED_FIFO and SCHED_RR.
    pub priority: u32,
    /// Of SCHED_DEADLINE; of others a time slice, on kernels since 6.12.
    pub runtime_ns: u64,
    /// Of SCHED_DEADLINE.
    pub deadline_ns: u64,
    /// Of SCHED_DEADLINE.
    pub period_ns: u64,
}

/// Not a policy of the kernel: a dispatcher schedules the thread, and undoes that itself.
const DISPATCHED: u32 = u32::MAX;

const SCHEDULING_SIZE: u32 = 48;
const RESET_ON_FORK: u64 = libc::SCHED_FLAG_RESET_ON_FORK as u64;

/// The processors that a thread may run on.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processors([u64; Processors::MOST / 64]);

impl Processors {
    /// More than any machine has that Punctual was ever seen on; where there are more, nothing is attached.
    pub const MOST: usize = 2048;

    /// Just that one.
    pub fn one(number: u32) -> Option<Self> {
        let mut words = [0; Self::MOST / 64];
        *words.get_mut(number as usize / 64)? |= 1 << (number % 64);
        Some(Self(words))
    }

    /// Whether it is just one.
    pub fn is_one(&self) -> bool {
        self.0.iter().map(|word| word.count_ones()).sum::<u32>() == 1
    }

    /// Whether a processor is among them.
    pub fn has(&self, number: u32) -> bool {
        (number as usize) < Self::MOST && self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// As the journal has them.
    pub fn from_words(words: [u64; Self::MOST / 64]) -> Self {
        Self(words)
    }

    /// As the journal has them.
    pub fn words(&self) -> [u64; Self::MOST / 64] {
        self.0
    }
}

/// As the kernel lists them: `0-3,7`.
impl fmt::Debug for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |at: usize| self.has(at as u32);
        let mut separator = "";
        for first in (0..Self::MOST).filter(|&at| has(at) && (at == 0 || !has(at - 1))) {
            let last = (first..).find(|&at| !has(at + 1)).unwrap_or(first);
            match first == last {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl Scheduling {
    /// What a policy is to the kernel. What the thread starts does not inherit it.
    pub fn from_policy(policy: AssignedPolicy) -> Self {
        let none = Self { size: SCHEDULING_SIZE, flags: RESET_ON_FORK, ..Self::default() };
        match policy {
            AssignedPolicy::Deadline { runtime, deadline, period } => Self {
                policy: libc::SCHED_DEADLINE as u32,
                runtime_ns: runtime.ns(),
                deadline_ns: deadline.ns(),
                period_ns: period.ns(),
                ..none
            },
            AssignedPolicy::Fifo(priority) => Self { policy: libc::SCHED_FIFO as u32, priority, ..none },
            AssignedPolicy::RoundRobin(priority) => Self { policy: libc::SCHED_RR as u32, priority, ..none },
            AssignedPolicy::Other { nice } => Self { policy: libc::SCHED_OTHER as u32, nice, ..none },
            AssignedPolicy::Dispatched { priority } => {
                Self { policy: DISPATCHED, priority: priority.unwrap_or(0), ..none }
            }
        }
    }

    /// The policy that it was made of.
    pub fn assigned(&self) -> Option<AssignedPolicy> {
        let [runtime, deadline, period] =
            [self.runtime_ns, self.deadline_ns, self.period_ns].map(Duration::from_ns);
        if self.is_dispatched() {
            return Some(AssignedPolicy::Dispatched { priority: Some(self.priority).filter(|it| *it > 0) });
        }
        match self.policy as i32 {
            libc::SCHED_DEADLINE => Some(AssignedPolicy::Deadline { runtime, deadline, period }),
            libc::SCHED_FIFO => Some(AssignedPolicy::Fifo(self.priority)),
            libc::SCHED_RR => Some(AssignedPolicy::RoundRobin(self.priority)),
            libc::SCHED_OTHER => Some(AssignedPolicy::Other { nice: self.nice }),
            _ => None,
        }
    }

    /// SCHED_OTHER, as any thread begins.
    pub fn ordinary() -> Self {
        Self { size: SCHEDULING_SIZE, ..Self::default() }
    }

    /// Whether a thread with that scheduling still has this one.
    pub fn matches(&self, other: &Scheduling) -> bool {
        self.policy == other.policy
            && match self.policy as i32 {
                libc::SCHED_DEADLINE => {
                    (self.runtime_ns, self.deadline_ns, self.period_ns)
                        == (other.runtime_ns, other.deadline_ns, other.period_ns)
                }
                libc::SCHED_FIFO | libc::SCHED_RR => self.priority == other.priority,
                _ => self.nice == other.nice,
            }
    }

    /// Whether a dispatcher schedules the thread.
    pub fn is_dispatched(&self) -> bool {
        self.policy == DISPATCHED
    }

    /// Whether it is SCHED_FIFO or SCHED_RR.
    pub fn is_fixed_priority(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_FIFO | libc::SCHED_RR)
    }

    /// Whether it is SCHED_DEADLINE.
    pub fn is_deadline(&self) -> bool {
        self.policy as i32 == libc::SCHED_DEADLINE
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy as i32 {
            libc::SCHED_DEADLINE => {
                let [runtime, deadline, period] =
                    [self.runtime_ns, self.deadline_ns, self.period_ns].map(Duration::from_ns);
                write!(f, "SCHED_DEADLINE, {runtime} in {period}, deadline {deadline}")
            }
            libc::SCHED_FIFO => write!(f, "SCHED_FIFO, priority {}", self.priority),
            libc::SCHED_RR => write!(f, "SCHED_RR, priority {}", self.priority),
            libc::SCHED_OTHER => write!(f, "SCHED_OTHER, nice {}", self.nice),
            libc::SCHED_BATCH => write!(f, "SCHED_BATCH, nice {}", self.nice),
            libc::SCHED_IDLE => write!(f, "SCHED_IDLE"),
            _ if self.is_dispatched() => write!(f, "slots of a time-triggered table"),
            other => write!(f, "policy {other}"),
        }
    }
}

/// A call that the kernel refused.
#[derive(Debug)]
pub struct Refused {
    /// Which call, on what, with what.
    what: String,
    error: io::Error,
}

impl Refused {
    fn last(what: String) -> Self {
        Self { what, error: io::Error::last_os_error() }
    }

    /// Whether the thread is not there any more.
    pub fn is_gone(&self) -> bool {
        self.error.raw_os_error() == Some(libc::ESRCH)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)?;
        match self.error.raw_os_error() {
            Some(libc::EPERM) if self.what.contains("SCHED_DEADLINE") => {
                write!(f, "; this needs CAP_SYS_NICE, and kernel.sched_rt_runtime_us has to be -1")
            }
            Some(libc::EPERM) => {
                write!(
                    f,
                    "; this needs CAP_SYS_NICE, and the thread's control group real-time bandwidth \
                     (cpu.rt_runtime_us), where the kernel has that"
                )
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}

/// How a thread is scheduled; 0 is the caller.
pub fn scheduling(thread: u32) -> Result<Scheduling, Refused> {
    let mut found = Scheduling::default();
    // SAFETY: the kernel writes at most the size that is said, which is that of the struct.
    match unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut found, SCHEDULING_SIZE, 0) } {
        0 => Ok(found),
        _ => Err(Refused::last(format!("sched_getattr of thread {thread}"))),
    }
}

/// Tells how a thread is scheduled from now on.
pub fn schedule(thread: u32, scheduling: &Scheduling) -> Result<(), Refused> {
    let scheduling = Scheduling { size: SCHEDULING_SIZE, ..*scheduling };
    // SAFETY: the kernel reads as much as `size` says, which is that of the struct.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const scheduling, 0) } {
        0 => Ok(()),
        _ => Err(Refused::last(format!("sched_setattr({scheduling}) of thread {thread}"))),
    }
}

/// Where a thread may run.
pub fn processors(thread: u32) -> Result<Processors, Refused> {
    let mut words = [0u64; Processors::MOST / 64];
    // SAFETY: the kernel writes at most the size that is said, which is that of the array.
    match unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(&words), words.as_mut_ptr())
    } {
        -1 => Err(Refused::last(format!("sched_getaffinity of thread {thread}"))),
        _ => Ok(Processors(words)),
    }
}

/// Tells where a thread may run.
pub fn pin(thread: u32, to: &Processors) -> Result<(), Refused> {
    // SAFETY: the kernel reads at most the size that is said, which is that of the array.
    match unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(&to.0), to.0.as_ptr()) } {
        0 => Ok(()),
        _ => Err(Refused::last(format!("sched_setaffinity(processors {to:?}) of thread {thread}"))),
    }
}

/// Where a thread's cpuset lets it run at all, whatever it is pinned to now. Only the kernel knows: asks for
/// every processor, and looks at what is left of that. The thread has its affinity back afterwards.
pub fn cpuset(thread: u32) -> Result<Processors, Refused> {
    let before = processors(thread)?;
    pin(thread, &Processors([u64::MAX; Processors::MOST / 64]))?;
    let found = processors(thread);
    pin(thread, &before)?;
    found
}

/// A thread's whole scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How.
    pub scheduling: Scheduling,
    /// Where.
    pub processors: Processors,
}

impl State {
    /// As it is now.
    pub fn read(thread: u32) -> Result<Self, Refused> {
        Ok(Self { scheduling: scheduling(thread)?, processors: processors(thread)? })
    }

    /// Makes a thread so that is `now`: both parts, or an error. It is never unscheduled between.
    pub fn enact(&self, thread: u32, now: &State) -> Result<(), Refused> {
        if self.scheduling.is_dispatched() {
            return Ok(());
        }
        // With the kernel's own admission test, a thread under SCHED_DEADLINE can be pinned neither before it
        // leaves that, nor after it comes to it.
        let first = now.scheduling.is_deadline() && !self.scheduling.is_deadline();
        if first {
            schedule(thread, &self.scheduling)?;
        }
        // Some threads of the kernel may not even be told to stay where they are.
        if now.processors != self.processors {
            pin(thread, &self.processors)?;
        }
        if first { Ok(()) } else { schedule(thread, &self.scheduling) }
    }

    /// Puts a thread back to what it was, part by part, as far as each part is still one of `applied`.
    /// Whoever changed it since had the right to.
    pub fn restore(&self, thread: u32, applied: &[State]) -> Result<(), Refused> {
        let now = State::read(thread)?;
        let scheduling = applied
            .iter()
            .any(|applied| now.scheduling.matches(&applied.scheduling))
            .then_some(self.scheduling);
        let is_given =
            |applied: &State| now.processors == applied.processors && !applied.scheduling.is_dispatched();
        let moved = now.processors != self.processors && applied.iter().any(is_given);
        let processors = moved.then_some(self.processors);
        // A thread under SCHED_DEADLINE can be refused another place, before and after: so that policy is
        // taken first and given last.
        let mut scheduled = Ok(());
        if let Some(to) = scheduling.filter(|to| !to.is_deadline()) {
            scheduled = schedule(thread, &to.without_slice());
        }
        if let Some(to) = processors {
            // What was allowed may not be there any more (hotplug, cpusets); anywhere is then better than
            // here.
            pin(thread, &to).or_else(|error| {
                if error.is_gone() {
                    Err(error)
                } else {
                    pin(thread, &Processors([u64::MAX; Processors::MOST / 64]))
                }
            })?;
        }
        if let Some(to) = scheduling.filter(Scheduling::is_deadline) {
            scheduled = schedule(thread, &to)
                .or_else(|error| schedule(thread, &Scheduling::ordinary()).and(Err(error)));
        }
        scheduled
    }
}

impl Scheduling {
    /// Kernels since 6.12 tell everybody's time slice, and take one as a wish. The default is not to become a
    /// wish.
    pub fn without_slice(self) -> Self {
        use std::sync::OnceLock;
        static DEFAULT: OnceLock<u64> = OnceLock::new();
        let default = *DEFAULT.get_or_init(|| scheduling(1).map_or(0, |first| first.runtime_ns));
        Self { runtime_ns: if self.runtime_ns == default { 0 } else { self.runtime_ns }, ..self }
    }
}

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// That file, if it may be written. Opening it costs more than reading and writing it, so it is done once.
fn rt_runtime_file() -> Option<&'static File> {
    use std::sync::OnceLock;
    static KEPT: OnceLock<Option<File>> = OnceLock::new();
    KEPT.get_or_init(|| File::options().read(true).write(true).open(RT_RUNTIME).ok()).as_ref()
}

/// What share of a period real-time threads may have, in µs; −1: all of it, and SCHED_DEADLINE's own
/// admission test is off.
pub fn rt_runtime() -> Result<i64, Refused> {
    let refused = |error| Refused { what: format!("reading {RT_RUNTIME}"), error };
    let mut bytes = [0; 32];
    let length = match rt_runtime_file() {
        Some(file) => file.read_at(&mut bytes, 0),
        None => File::open(RT_RUNTIME).and_then(|mut file| file.read(&mut bytes)),
    };
    let text = std::str::from_utf8(&bytes[..length.map_err(refused)?]).unwrap_or_default();
    text.trim().parse().map_err(|_| refused(io::ErrorKind::InvalidData.into()))
}

/// What it was before this daemon set −1; 0 as long as it has not.
static LIFTED_FROM: AtomicI64 = AtomicI64::new(0);

/// Remembers what to tell of the limit while it is lifted.
pub fn remember_lifted(from: Option<i64>) {
    LIFTED_FROM.store(from.unwrap_or(0), Ordering::Relaxed);
}

/// The limit that holds, or comes back once no thread needs it lifted; `None` if there is none.
pub fn configured_rt_runtime() -> Option<i64> {
    let lifted_from = LIFTED_FROM.load(Ordering::Relaxed);
    match rt_runtime().ok()? {
        -1 if lifted_from > 0 => Some(lifted_from),
        -1 => None,
        runtime => Some(runtime),
    }
}

/// The period of that limit, in µs.
pub fn rt_period() -> Option<u64> {
    fs::read_to_string("/proc/sys/kernel/sched_rt_period_us").ok()?.trim().parse().ok()
}

/// Sets it.
pub fn set_rt_runtime(to: i64) -> Result<(), Refused> {
    let text = format!("{to}\n");
    let written = match rt_runtime_file() {
        Some(file) => file.write_all_at(text.as_bytes(), 0),
        None => fs::write(RT_RUNTIME, text),
    };
    written.map_err(|error| Refused { what: format!("writing {to} to {RT_RUNTIME}"), error })
}

/// Whether this is a kernel with PREEMPT_RT.
pub fn is_preempt_rt() -> bool {
    let is_said = fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1");
    is_said || rustix::system::uname().version().to_string_lossy().contains("PREEMPT_RT")
}

/// What this kernel accepts at all.
pub fn limits() -> Limits {
    let otherwise = Limits::default();
    let sysctl = |name: &str, otherwise: Duration| {
        let read = fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        read.map_or(otherwise, Duration::from_us)
    };
    let priority = |bound: i32, otherwise: u32| u32::try_from(bound).unwrap_or(otherwise);
    // SAFETY: no memory is involved.
    let (least, greatest) = unsafe {
        (libc::sched_get_priority_min(libc::SCHED_FIFO), libc::sched_get_priority_max(libc::SCHED_FIFO))
    };
    Limits {
        least_runtime: otherwise.least_runtime,
        // Kernels before 5.4 have no such settings and no such bounds; these are the defaults of those that
        // have.
        least_period: sysctl("sched_deadline_period_min_us", otherwise.least_period),
        greatest_period: sysctl("sched_deadline_period_max_us", otherwise.greatest_period),
        priorities: (priority(least, 1), priority(greatest, 99)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_can_be_read() {
        let state = State::read(0).unwrap();
        assert!(state.scheduling.matches(&state.scheduling));
        assert_ne!(state.processors.words(), [0; 32]);
    }

    #[test]
    fn one_processor_is_one_bit() {
        assert_eq!(format!("{:?}", Processors::one(70).unwrap()), "70");
        let mut words = [0; 32];
        (words[0], words[31]) = (0b1_0111, u64::MAX);
        assert_eq!(format!("{:?}", Processors::from_words(words)), "0-2,4,1984-2047");
        assert!(Processors::one(2048).is_none());
    }

    #[test]
    fn messages_say_what_was_refused() {
        let error = schedule(u32::MAX >> 1, &Scheduling::from_policy(AssignedPolicy::Fifo(7))).unwrap_err();
        assert!(error.is_gone());
        assert!(
            error
                .to_string()
                .starts_with("sched_setattr(SCHED_FIFO, priority 7) of thread 2147483647: No such process"),
            "{error}"
        );
    }
}
