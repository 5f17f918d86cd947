//! The mirror of `bpf/interface.h`: the bytes of the ring buffer and of the thread map, read into records.

use punctual_model::separator::{Call, FileClass, Object, Separator};
use punctual_model::{Disturbance, Duration, Instant, Policy, Reservation, Window};
use punctual_trace::{Activation, Begin, Record, Resumed, Step, Switch, TaskRecord};

pub const CALL_FUTEX: u8 = 60;
pub const CALL_RESTART: u8 = 61;
pub const CALL_SET: u8 = 62;
pub const CALL_NONE: u8 = 255;

/// `enum counter` of the kernel side: records that found no room.
pub const COUNTER_DROPPED: usize = 0;
/// Threads that found no room.
pub const COUNTER_UNTRACKED: usize = 1;
/// Processes that were to be watched and have ended.
pub const COUNTER_ENDED: usize = 2;

const RECORD_TASK: u8 = 1;
const RECORD_ACTIVATION: u8 = 2;
const RECORD_RENAMED: u8 = 3;
const RECORD_EXIT: u8 = 4;
const RECORD_COMMAND: u8 = 5;
const RECORD_SWITCH: u8 = 6;

const ACTIVATION_SLEPT: u8 = 1;
const ACTIVATION_RESUMED: u8 = 2;
const ACTIVATION_DISTURBANCE: u8 = 12;
const DISTURBANCE_SIGNAL: u8 = 1;
const DISTURBANCE_ENDING: u8 = 2;

const OBJECT_CLOCK: u8 = 20;
const OBJECT_CLOCK_ABSOLUTE: u8 = 21;
const OBJECT_ADDRESS: u8 = 22;
const OBJECT_ID: u8 = 23;

const THREAD_ASLEEP: u8 = 3;
const SLEEP_STOPPED: u8 = 1;

pub const AFFINITY_WORDS: usize = 16;
const COMM_LENGTH: usize = 16;
const COMMAND_LENGTH: usize = 256;

#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    kind: u8,
    flags: u8,
    call: u8,
    object_class: u8,
    tid: u32,
    sequence: u32,
    number: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawActivation {
    header: Header,
    object: u64,
    stop: u64,
    cpu: u64,
    arrival: u64,
    earliest: u64,
    latest: u64,
    start: u64,
    suspended_after: u64,
    expirations: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawTask {
    header: Header,
    at: u64,
    runtime: u64,
    deadline: u64,
    period: u64,
    tgid: u32,
    seen_tid: u32,
    seen_tgid: u32,
    policy: u32,
    rt_priority: u32,
    nice: i32,
    kernel_thread: u32,
    command_length: u32,
    comm: [u8; COMM_LENGTH],
    affinity: [u64; AFFINITY_WORDS],
    command: [u8; COMMAND_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawRenamed {
    header: Header,
    comm: [u8; COMM_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawCommand {
    header: Header,
    seen_tgid: u32,
    length: u32,
    command: [u8; COMMAND_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawExit {
    header: Header,
    at: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawSwitch {
    header: Header,
    at: u64,
    cpu: u32,
    by: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawThread {
    waking: u64,
    stop: u64,
    clock_from: u64,
    cpu_then: u64,
    unaccounted: u64,
    parameters: u64,
    state: u8,
    sleep: u8,
    call: u8,
    released: u8,
    interrupted: u8,
    unhooked: u8,
    object_class: u8,
    known_class: u8,
    number: i32,
    system_call: i32,
    sequence: u32,
    tid: u32,
    entry: u64,
    cpu_at_entry: u64,
    voluntary_switches: u64,
    first_stop: u64,
    cpu_at_stop: u64,
    arrival: u64,
    earliest: u64,
    latest: u64,
    start: u64,
    suspended_after: u64,
    object: u64,
    expirations: u64,
    left: u64,
    until: u64,
    run_delay: u64,
    arrivals: u64,
    clock_offset: u64,
    clock_read_at: u64,
    policy: u32,
    rt_priority: u32,
    nice: i32,
    command_told: u8,
    disturbance: u8,
    restarted: u8,
    read_by_clock: u8,
    reservation: u64,
    affinity: u64,
    known_file: u64,
    known_inode: u64,
    known_identity: u64,
}

/// Plain data in the kernel side's layout: integers and arrays of them, so that any bytes are a value.
///
/// # Safety
/// Implemented only for `repr(C)` structs of integers.
unsafe trait Plain: Copy {}
// SAFETY: each is `repr(C)` and holds integers and arrays of integers only.
unsafe impl Plain for Header {}
// SAFETY: as above.
unsafe impl Plain for RawActivation {}
// SAFETY: as above.
unsafe impl Plain for RawTask {}
// SAFETY: as above.
unsafe impl Plain for RawRenamed {}
// SAFETY: as above.
unsafe impl Plain for RawCommand {}
// SAFETY: as above.
unsafe impl Plain for RawExit {}
// SAFETY: as above.
unsafe impl Plain for RawSwitch {}
// SAFETY: as above.
unsafe impl Plain for RawThread {}

fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: there are enough bytes, `read_unaligned` asks for no alignment, and any bytes are a `T`.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast::<T>()) })
}

/// One entry of the ring buffer, with what only the kernel side's numbers say of it.
pub enum Entry {
    /// A record as it is.
    Record(Record),
    /// A task record; its command line may have to be asked for, its numbers translated.
    Task(Box<TaskEntry>),
    /// The command line that a thread was found with.
    Command(Box<CommandEntry>),
}

/// The command line of a thread's process, as of its first call since it came into view.
pub struct CommandEntry {
    pub tid: u32,
    pub sequence: u32,
    /// The process in the observer's PID namespace, 0 if it is not in it.
    pub seen_tgid: u32,
    pub command: String,
    /// Whether there is more of it.
    pub cut: bool,
}

/// A task record and what is needed to complete it.
pub struct TaskEntry {
    /// The record, with numbers of the initial PID namespace.
    pub record: TaskRecord,
    /// Thread and process in the observer's PID namespace, 0 if they are not in it.
    pub seen: (u32, u32),
    /// Kernel threads have no command line.
    pub kernel_thread: bool,
    /// Whether there is more of the command line.
    pub command_cut: bool,
}

/// Reads one entry of the ring buffer; `None` if it is none.
pub fn decode(bytes: &[u8]) -> Option<Entry> {
    let header: Header = read(bytes)?;
    match header.kind {
        RECORD_ACTIVATION => Some(Entry::Record(Record::Activation(activation(&read(bytes)?)?))),
        RECORD_TASK => Some(Entry::Task(Box::new(task(&read(bytes)?)))),
        RECORD_RENAMED => {
            let raw: RawRenamed = read(bytes)?;
            Some(Entry::Record(Record::Renamed {
                tid: header.tid,
                sequence: header.sequence,
                name: text(&raw.comm),
            }))
        }
        RECORD_COMMAND => {
            let raw: RawCommand = read(bytes)?;
            let length = (raw.length as usize).min(COMMAND_LENGTH);
            Some(Entry::Command(Box::new(CommandEntry {
                tid: header.tid,
                sequence: header.sequence,
                seen_tgid: raw.seen_tgid,
                command: command_line(&raw.command[..length]),
                cut: length == COMMAND_LENGTH,
            })))
        }
        RECORD_EXIT => {
            let raw: RawExit = read(bytes)?;
            Some(Entry::Record(Record::Exit {
                tid: header.tid,
                sequence: header.sequence,
                at: Instant::from_ns(raw.at),
            }))
        }
        RECORD_SWITCH => Some(Entry::Record(Record::Switch(switch(&read(bytes)?)?))),
        _ => None,
    }
}

fn switch(raw: &RawSwitch) -> Option<Switch> {
    let step = match raw.header.flags {
        0 => Step::In,
        1 => Step::Preempted,
        2 => Step::Asleep { interruptible: true },
        3 => Step::Asleep { interruptible: false },
        4 => Step::Woken { by: raw.by },
        _ => return None,
    };
    Some(Switch { tid: raw.header.tid, at: Instant::from_ns(raw.at), cpu: raw.cpu, step })
}

/// What the kernel side still holds of a thread at the end of the observation: the end of the job that it
/// finished, if it is stopped, and how many records there were.
pub fn last_records(bytes: &[u8], at: Instant) -> Option<(Option<Record>, Record)> {
    let thread: RawThread = read(bytes)?;
    let in_call = thread.call != CALL_NONE;
    let stop = if in_call { thread.first_stop } else { thread.stop };
    // A job goes on while its thread is stopped by a signal.
    let stopped = stop != 0 && (in_call || (thread.state == THREAD_ASLEEP && thread.sleep != SLEEP_STOPPED));
    let mut sequence = thread.sequence;
    let end = stopped
        .then(|| {
            let separator = match in_call {
                true => separator(thread.call, thread.object_class, thread.number, thread.object)?,
                false => Separator::SUSPENSION,
            };
            Some(Record::Activation(Activation {
                tid: thread.tid,
                sequence,
                separator,
                slept: true,
                stop: Instant::from_ns(stop),
                cpu: Duration::from_ns(thread.cpu_at_stop),
                arrival: None,
                resumed: None,
            }))
        })
        .flatten();
    sequence += u32::from(end.is_some());
    Some((end, Record::Last { tid: thread.tid, sequence, at }))
}

fn activation(raw: &RawActivation) -> Option<Activation> {
    let header = &raw.header;
    let slept = header.flags & ACTIVATION_SLEPT != 0;
    let release = match slept {
        true => {
            Some(Window::new(Instant::from_ns(raw.earliest), Instant::from_ns(raw.latest.max(raw.earliest)))?)
        }
        false => None,
    };
    let resumed = (header.flags & ACTIVATION_RESUMED != 0).then(|| Resumed {
        release,
        start: Instant::from_ns(raw.start),
        suspended_after: Duration::from_ns(raw.suspended_after),
        expirations: raw.expirations,
        disturbance: match (header.flags & ACTIVATION_DISTURBANCE) >> 2 {
            DISTURBANCE_SIGNAL => Some(Disturbance::Signal),
            DISTURBANCE_ENDING => Some(Disturbance::Ending),
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

fn separator(call: u8, class: u8, number: i32, object: u64) -> Option<Separator> {
    let call = *Call::ALL.get(usize::from(call))?;
    let object = match class {
        0 => Object::None,
        OBJECT_CLOCK => Object::Clock { id: number, absolute: false },
        OBJECT_CLOCK_ABSOLUTE => Object::Clock { id: number, absolute: true },
        OBJECT_ADDRESS => Object::Address(object),
        OBJECT_ID => Object::Id(number),
        class => {
            let class = *FileClass::ALL.get(usize::from(class).checked_sub(1)?)?;
            Object::File { class, fd: number, identity: if class.has_identity() { object } else { 0 } }
        }
    };
    Some(Separator { call, object })
}

fn task(raw: &RawTask) -> TaskEntry {
    let policy = match raw.policy {
        1 => Policy::Fifo,
        2 => Policy::Rr,
        3 => Policy::Batch,
        5 => Policy::Idle,
        6 => Policy::Deadline,
        7 => Policy::Ext,
        _ => Policy::Other,
    };
    let length = (raw.command_length as usize).min(COMMAND_LENGTH);
    TaskEntry {
        record: TaskRecord {
            tid: raw.header.tid,
            pid: raw.tgid,
            sequence: raw.header.sequence,
            at: Instant::from_ns(raw.at),
            begin: match raw.header.flags {
                1 => Begin::Policy,
                2 => Begin::Priority,
                3 => Begin::Affinity,
                4 => Begin::Exec,
                _ => Begin::Seen,
            },
            name: text(&raw.comm),
            command: command_line(&raw.command[..length]),
            policy,
            priority: if matches!(policy, Policy::Fifo | Policy::Rr) { raw.rt_priority } else { 0 },
            nice: matches!(policy, Policy::Other | Policy::Batch | Policy::Ext).then_some(raw.nice),
            reservation: (policy == Policy::Deadline).then(|| Reservation {
                runtime_ns: Duration::from_ns(raw.runtime),
                deadline_ns: Duration::from_ns(raw.deadline),
                period_ns: Duration::from_ns(raw.period),
            }),
            affinity: processor_list(&raw.affinity),
        },
        seen: (raw.seen_tid, raw.seen_tgid),
        kernel_thread: raw.kernel_thread != 0,
        command_cut: length == COMMAND_LENGTH,
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Arguments with their NULs as one line.
pub fn command_line(bytes: &[u8]) -> String {
    let trimmed = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    String::from_utf8_lossy(trimmed).replace('\0', " ").trim_end().to_owned()
}

/// A processor mask as the kernel writes lists: `0-1,4`.
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
    fn numbers_of_calls_and_classes_are_their_places() {
        for (place, call) in Call::ALL.iter().enumerate() {
            assert_eq!(*call as usize, place);
        }
        for (place, class) in FileClass::ALL.iter().enumerate() {
            assert_eq!(*class as usize, place + 1);
        }
    }

    #[test]
    fn header_file_has_the_same_numbers() {
        let header = include_str!("bpf/interface.h");
        for call in Call::ALL {
            let line = format!("CALL_{} = {},", call.name().to_uppercase(), *call as u8);
            assert!(header.contains(&line), "interface.h lacks {line}");
        }
    }

    #[test]
    fn masks_print_as_lists() {
        assert_eq!(processor_list(&[0b1_0011, 0]), "0-1,4");
        assert_eq!(processor_list(&[u64::MAX, 1]), "0-64");
        assert_eq!(processor_list(&[0, 0]), "");
    }

    #[test]
    fn garbage_is_no_record() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[RECORD_ACTIVATION; 20]).is_none());
        assert!(decode(&[255; 600]).is_none());
    }

    #[test]
    fn arguments_become_a_line() {
        assert_eq!(command_line(b"sleep\x001\0"), "sleep 1");
        assert_eq!(command_line(b""), "");
    }
}
