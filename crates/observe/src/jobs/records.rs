//! Decodes what the programs send, and what they remember of each thread, into records. The types are those
//! of `bpf/interface.h`.

use super::skeleton::types::{
    activation as RawActivation, activation_flags, begin, blocked_record, busy_record, clock_record,
    command_record, counter, disturbance, exit_record, faulted_record, header, limits, object_class,
    other_call, record_kind, renamed, sleep_kind, step, switch_record, taken_record, taker, task_record,
    thread, thread_state,
};
use crate::loader::{Plain, read_plain, text};
use punctual_model::separator::{Call, FileClass, Object, Separator};
use punctual_model::{Disturbance, Duration, Instant, ObjectName, Policy, Reservation, Window};
use punctual_trace::{Activation, Begin, Glance, Ready, Record, Resumed, Step, Switch, Taker, TaskRecord};

/// Records that found no room.
pub const COUNTER_DROPPED: usize = counter::COUNTER_DROPPED.0 as usize;
/// Threads that found no room.
pub const COUNTER_UNTRACKED: usize = counter::COUNTER_UNTRACKED.0 as usize;
/// Observed processes that have ended.
pub const COUNTER_ENDED: usize = counter::COUNTER_ENDED.0 as usize;
/// Threads that ended before they were seen.
pub const COUNTER_UNSEEN: usize = counter::COUNTER_UNSEEN.0 as usize;

/// Words of 64 processors that an affinity mask has room for.
pub const AFFINITY_WORDS: usize = limits::AFFINITY_WORDS.0 as usize;
const COMMAND_LENGTH: usize = limits::COMMAND_LENGTH.0 as usize;

// SAFETY: generated from a C struct of integers, like all below.
unsafe impl Plain for header {}
// SAFETY: as above.
unsafe impl Plain for RawActivation {}
// SAFETY: as above.
unsafe impl Plain for task_record {}
// SAFETY: as above.
unsafe impl Plain for renamed {}
// SAFETY: as above.
unsafe impl Plain for command_record {}
// SAFETY: as above.
unsafe impl Plain for exit_record {}
// SAFETY: as above.
unsafe impl Plain for switch_record {}
// SAFETY: as above.
unsafe impl Plain for busy_record {}
// SAFETY: as above.
unsafe impl Plain for clock_record {}
// SAFETY: as above.
unsafe impl Plain for blocked_record {}
// SAFETY: as above.
unsafe impl Plain for faulted_record {}
// SAFETY: as above.
unsafe impl Plain for taken_record {}
// SAFETY: as above.
unsafe impl Plain for thread {}

/// An entry of the ring buffer.
pub enum Entry {
    /// A complete record, but for the thread's number.
    Record(Record),
    /// A task record; its command line may be incomplete.
    Task(Box<TaskEntry>),
    /// The command line that a thread was found with.
    Command(Box<CommandEntry>),
    /// What a thread is about to wait for, by numbers.
    Blocked(Box<blocked_record>),
}

/// The command line of a thread's process, as of the thread's first call under observation.
pub struct CommandEntry {
    pub tid: u32,
    pub sequence: u32,
    /// The process in the observer's PID namespace, 0 if it is not in it.
    pub seen_tgid: u32,
    pub command: String,
    /// Whether there is more of it.
    pub is_cut: bool,
}

/// A task record and what is needed to complete it.
pub struct TaskEntry {
    /// The record, with numbers of the initial PID namespace.
    pub record: TaskRecord,
    /// The thread in the observer's PID namespace, 0 if it is not in it.
    pub seen_tid: u32,
    /// The process in the observer's PID namespace, 0 if it is not in it.
    pub seen_tgid: u32,
    /// Kernel threads have no command line.
    pub is_kernel_thread: bool,
    /// Whether there is more of the command line.
    pub command_is_cut: bool,
    /// Whether the thread is not watched.
    pub is_bystander: bool,
}

/// Decodes an entry of the ring buffer; `None` if the bytes are not one.
pub fn decode(bytes: &[u8]) -> Option<Entry> {
    let header: header = read_plain(bytes)?;
    let (tid, sequence) = (header.tid, header.sequence);
    match record_kind(header.kind.into()) {
        record_kind::RECORD_ACTIVATION => {
            Some(Entry::Record(Record::Activation(activation(&read_plain(bytes)?)?)))
        }
        record_kind::RECORD_TASK => Some(Entry::Task(Box::new(task(&read_plain(bytes)?)))),
        record_kind::RECORD_BYSTANDER => {
            Some(Entry::Task(Box::new(TaskEntry { is_bystander: true, ..task(&read_plain(bytes)?) })))
        }
        record_kind::RECORD_BYSTANDER_EXIT => {
            let raw: exit_record = read_plain(bytes)?;
            Some(Entry::Record(Record::BystanderExit { tid, at: Instant::from_ns(raw.at) }))
        }
        record_kind::RECORD_RENAMED => {
            let raw: renamed = read_plain(bytes)?;
            Some(Entry::Record(Record::Renamed { tid, sequence, name: text(&raw.comm) }))
        }
        record_kind::RECORD_COMMAND => {
            let raw: command_record = read_plain(bytes)?;
            let length = (raw.length as usize).min(COMMAND_LENGTH);
            Some(Entry::Command(Box::new(CommandEntry {
                tid,
                sequence,
                seen_tgid: raw.seen_tgid,
                command: command_line(&raw.command[..length]),
                is_cut: length == COMMAND_LENGTH,
            })))
        }
        record_kind::RECORD_EXIT => {
            let raw: exit_record = read_plain(bytes)?;
            Some(Entry::Record(Record::Exit { tid, sequence, at: Instant::from_ns(raw.at) }))
        }
        record_kind::RECORD_BUSY => {
            let raw: busy_record = read_plain(bytes)?;
            Some(Entry::Record(Record::Busy { tid, sequence, cpu: Duration::from_ns(raw.cpu) }))
        }
        record_kind::RECORD_CLOCK_SET => {
            let raw: clock_record = read_plain(bytes)?;
            Some(Entry::Record(Record::ClockSet { at: Instant::from_ns(raw.at), by_ns: raw.by }))
        }
        record_kind::RECORD_SWITCH => Some(Entry::Record(Record::Switch(switch(&read_plain(bytes)?)?))),
        record_kind::RECORD_TAKEN => Some(Entry::Record(Record::Switch(taken(&read_plain(bytes)?)?))),
        record_kind::RECORD_BLOCKED => Some(Entry::Blocked(Box::new(read_plain(bytes)?))),
        record_kind::RECORD_FAULTED => {
            let raw: faulted_record = read_plain(bytes)?;
            let faulted = Step::Faulted { minor: raw.minor, major: raw.header.number as u32 };
            let at = Instant::from_ns(raw.at);
            Some(Entry::Record(Record::Switch(Switch { tid, at, cpu: raw.cpu, step: faulted })))
        }
        _ => None,
    }
}

/// What took a processor.
pub fn taken(raw: &taken_record) -> Option<Switch> {
    let number = raw.header.number as u32;
    let by = match taker(raw.header.flags.into()) {
        taker::TAKER_DEVICE => {
            let name = ObjectName::new(&text(&raw.name)).map_or("", ObjectName::text);
            Taker::Device { number, name }
        }
        taker::TAKER_SOFTIRQ => Taker::Softirq(number),
        taker::TAKER_TIMER => Taker::Timer,
        taker::TAKER_PROCESSOR => Taker::Processor,
        taker::TAKER_HYPERVISOR => Taker::Hypervisor,
        _ => return None,
    };
    let taken = Step::Taken { by, time: Duration::from_ns(raw.time) };
    Some(Switch { tid: 0, at: Instant::from_ns(raw.at), cpu: raw.cpu, step: taken })
}

/// A step of the scheduler.
pub fn switch(raw: &switch_record) -> Option<Switch> {
    let kind = match step(raw.header.flags.into()) {
        step::STEP_IN => Step::In,
        step::STEP_PREEMPTED => Step::Preempted,
        step::STEP_ASLEEP => Step::Asleep { interruptible: true },
        step::STEP_ASLEEP_UNINTERRUPTIBLE => Step::Asleep { interruptible: false },
        step::STEP_THROTTLED => Step::Throttled,
        step::STEP_STOPPED => Step::Stopped,
        step::STEP_MOVED => Step::Moved { to: raw.by },
        step::STEP_WOKEN => Step::Woken { by: raw.by },
        _ => return None,
    };
    Some(Switch { tid: raw.header.tid, at: Instant::from_ns(raw.at), cpu: raw.cpu, step: kind })
}

/// What a thread is doing, from what the programs remember of it: its number, whether its job has ended, if
/// it is stopped, and how many records there were.
pub fn glance(bytes: &[u8], at: Instant) -> Option<(u32, Glance)> {
    let thread: thread = read_plain(bytes)?;
    let in_call = u32::from(thread.call) != other_call::CALL_NONE.0;
    let stop = if in_call { thread.first_stop } else { thread.stop };
    // A job goes on while its thread is stopped by a signal.
    let sleeps = u32::from(thread.state) == thread_state::THREAD_ASLEEP.0
        && u32::from(thread.sleep) != sleep_kind::SLEEP_STOPPED.0;
    let stopped = stop != 0 && (in_call || sleeps);
    let stopped = stopped
        .then(|| {
            let separator = match in_call {
                true => separator(thread.call, thread.object_class, thread.number, thread.object)?,
                false => Separator::SUSPENSION,
            };
            let release = woken(&thread).filter(|release| release.latest() <= at);
            let arrival = Instant::from_ns(thread.arrival);
            Some(Activation {
                tid: thread.tid,
                sequence: thread.sequence,
                separator,
                slept: true,
                stop: Instant::from_ns(stop),
                cpu: Duration::from_ns(thread.cpu_at_stop),
                arrival: release.map(|_| arrival).filter(|it| it.ns() != 0 && *it <= at),
                resumed: release.map(|release| Resumed::new(Some(release), at)),
            })
        })
        .flatten();
    let cpu = Duration::from_ns(thread.cpu_then.saturating_add(thread.unaccounted));
    let busy = (thread.waited == 0 && !sleeps && stopped.is_none())
        .then(|| cpu.saturating_sub(Duration::from_ns(thread.cpu_at_begin)));
    Some((thread.tid, Glance { sequence: thread.sequence, at, cpu, stopped, busy }))
}

/// When a thread was woken that sleeps in a call and has not run since.
fn woken(thread: &thread) -> Option<Window> {
    let waits = u32::from(thread.call) != other_call::CALL_NONE.0
        && u32::from(thread.state) == thread_state::THREAD_ASLEEP.0
        && u32::from(thread.sleep) == sleep_kind::SLEEP_INTERRUPTIBLE.0
        && thread.interrupted == 0;
    (waits && thread.waking >= thread.stop).then(|| Window::at(Instant::from_ns(thread.waking)))
}

/// Time that a thread has had, by the kernel's account, beyond what the programs know of its account.
pub fn unaccounted(bytes: &[u8]) -> Option<Duration> {
    let thread: thread = read_plain(bytes)?;
    Some(Duration::from_ns(thread.unaccounted))
}

fn activation(raw: &RawActivation) -> Option<Activation> {
    let header = &raw.header;
    let flags = u32::from(header.flags);
    let slept = flags & activation_flags::ACTIVATION_SLEPT.0 != 0;
    let release = match slept {
        true => {
            Some(Window::new(Instant::from_ns(raw.earliest), Instant::from_ns(raw.latest.max(raw.earliest)))?)
        }
        false => None,
    };
    let resumed = (flags & activation_flags::ACTIVATION_RESUMED.0 != 0).then(|| Resumed {
        release,
        start: Instant::from_ns(raw.start),
        suspended_after: Duration::from_ns(raw.suspended_after),
        expirations: raw.expirations,
        ready: ready(flags, &raw.ready),
        disturbance: match disturbance(
            (flags & activation_flags::ACTIVATION_DISTURBANCE.0)
                >> activation_flags::ACTIVATION_DISTURBANCE.0.trailing_zeros(),
        ) {
            disturbance::DISTURBANCE_SIGNAL => Some(Disturbance::Signal),
            disturbance::DISTURBANCE_ENDING => Some(Disturbance::Ending),
            disturbance::DISTURBANCE_STALL => Some(Disturbance::Stall),
            _ => None,
        },
    });
    Some(Activation {
        tid: header.tid,
        sequence: header.sequence,
        separator: separator(header.call, header.object_class, header.number, raw.object)?,
        slept,
        stop: Instant::from_ns(raw.stop),
        cpu: Duration::from_ns(raw.cpu),
        arrival: (raw.arrival != 0).then(|| Instant::from_ns(raw.arrival)),
        resumed,
    })
}

fn ready(flags: u32, keys: &[u32; Ready::MOST]) -> Ready {
    let count = (flags & activation_flags::ACTIVATION_READY.0)
        >> activation_flags::ACTIVATION_READY.0.trailing_zeros();
    keys.get(..count as usize).and_then(Ready::new).unwrap_or_default()
}

fn separator(call: u8, class: u8, number: i32, object: u64) -> Option<Separator> {
    let call = Call::from_number(call)?;
    let object = match object_class(class.into()) {
        object_class::OBJECT_NONE => Object::None,
        object_class::OBJECT_CLOCK => Object::Clock { id: number, absolute: false },
        object_class::OBJECT_CLOCK_ABSOLUTE => Object::Clock { id: number, absolute: true },
        object_class::OBJECT_ADDRESS => Object::address(object),
        object_class::OBJECT_ID => Object::Id(number),
        _ => {
            let class = FileClass::from_number(class)?;
            Object::File { class, fd: number, identity: if class.has_identity() { object } else { 0 } }
        }
    };
    Some(Separator { call, object })
}

fn task(raw: &task_record) -> TaskEntry {
    let policy = Policy::from_number(raw.policy).unwrap_or(Policy::Other);
    let length = (raw.command_length as usize).min(COMMAND_LENGTH);
    TaskEntry {
        record: TaskRecord {
            tid: raw.header.tid,
            pid: raw.tgid,
            sequence: raw.header.sequence,
            at: Instant::from_ns(raw.at),
            begin: match begin(raw.header.flags.into()) {
                begin::BEGIN_POLICY => Begin::Policy,
                begin::BEGIN_PRIORITY => Begin::Priority,
                begin::BEGIN_AFFINITY => Begin::Affinity,
                begin::BEGIN_EXEC => Begin::Exec,
                _ => Begin::Seen,
            },
            name: text(&raw.comm),
            command: command_line(&raw.command[..length]),
            policy,
            priority: if policy.has_priority() { raw.rt_priority } else { 0 },
            nice: policy.has_nice().then_some(raw.nice),
            reservation: (policy == Policy::Deadline).then(|| Reservation {
                runtime_ns: Duration::from_ns(raw.runtime),
                deadline_ns: Duration::from_ns(raw.deadline),
                period_ns: Duration::from_ns(raw.period),
            }),
            affinity: processor_list(&raw.affinity),
        },
        seen_tid: raw.seen_tid,
        seen_tgid: raw.seen_tgid,
        is_kernel_thread: raw.kernel_thread != 0,
        command_is_cut: length == COMMAND_LENGTH,
        is_bystander: false,
    }
}

/// Arguments, each with its NUL, as one line.
pub fn command_line(bytes: &[u8]) -> String {
    let trimmed = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    String::from_utf8_lossy(trimmed).replace('\0', " ").trim_end().to_owned()
}

/// A mask of processors as the list that the kernel would print: `0-1,4`.
fn processor_list(words: &[u64]) -> String {
    let is_set = |cpu: usize| words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1);
    let mut ranges = Vec::new();
    let mut cpu = 0;
    while cpu < words.len() * 64 {
        if !is_set(cpu) {
            cpu += 1;
            continue;
        }
        let first = cpu;
        while is_set(cpu + 1) {
            cpu += 1;
        }
        ranges.push(if first == cpu { first.to_string() } else { format!("{first}-{cpu}") });
        cpu += 1;
    }
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_print_as_lists() {
        assert_eq!(processor_list(&[0b1_0011, 0]), "0-1,4");
        assert_eq!(processor_list(&[u64::MAX, 1]), "0-64");
        assert_eq!(processor_list(&[0, 0]), "");
    }

    #[test]
    fn garbage_is_not_a_record() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[record_kind::RECORD_ACTIVATION.0 as u8; 20]).is_none());
        assert!(decode(&[255; 600]).is_none());
    }

    #[test]
    fn arguments_become_a_line() {
        assert_eq!(command_line(b"sleep\x001\0"), "sleep 1");
        assert_eq!(command_line(b""), "");
    }
}
