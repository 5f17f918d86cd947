//! What a switch tells of a thread, however it was traced.

use super::thread::{Leave, Thread};
use punctual_model::threads::UNKNOWN_COMMAND;
use punctual_model::{Call, Instant, Policy};
use punctual_trace::{Begin, TaskRecord};

/// Numbers of threads that have ended which are remembered; what comes of them later is their last switch.
pub const MOST_GONE: usize = 100_000;

/// As tracepoints report states, which is not how the kernel keeps them: parked (0x40) and idle (0x80) are
/// sleeps.
const DEAD: i64 = 0x10 | 0x20;
/// By a signal or a debugger.
pub const STOPPED: i64 = 0x4 | 0x8;
/// Preempted while it was about to sleep, or running.
pub const PREEMPTED: i64 = 0x100;

/// Whether a thread that left its processor in this state has ended.
pub const fn is_dead(state: i64) -> bool {
    state & DEAD != 0
}

/// Whether it went to sleep, until something happens or a signal comes.
pub const fn sleeps(state: i64) -> bool {
    const INTERRUPTIBLE: i64 = 0x1;
    state & INTERRUPTIBLE != 0 && state & PREEMPTED == 0
}

/// How a thread left its processor.
pub fn leave(thread: &Thread, state: i64, priority: i64) -> Leave {
    let yields = state == 0 && priority == -1 && thread.is_in(Call::SchedYield);
    match state {
        _ if yields => Leave::Asleep { interruptible: true },
        0 => Leave::Preempted,
        state if state & PREEMPTED != 0 => Leave::Preempted,
        state if state & STOPPED != 0 => Leave::Stopped,
        state => Leave::Asleep { interruptible: state & 1 != 0 },
    }
}

/// How the task of a thread begins that was last seen with a priority, if at all, and now has another.
pub fn begin(known: Option<i64>, priority: i64) -> Begin {
    match known {
        None => Begin::Seen,
        Some(before) if policy(before) != policy(priority) => Begin::Policy,
        Some(_) => Begin::Priority,
    }
}

/// The task of a thread with this priority.
pub fn task(tid: u32, pid: u32, priority: i64, at: Instant, begin: Begin, name: String) -> TaskRecord {
    TaskRecord {
        tid,
        pid,
        sequence: 0,
        at,
        begin,
        name,
        command: UNKNOWN_COMMAND.into(),
        policy: policy(priority),
        priority: if (0..100).contains(&priority) { 99 - priority as u32 } else { 0 },
        nice: (100..140).contains(&priority).then(|| priority as i32 - 120),
        reservation: None,
        affinity: String::new(),
    }
}

/// By the kernel's own priority, which is less the more urgent.
fn policy(priority: i64) -> Policy {
    match priority {
        ..=-1 => Policy::Deadline,
        0..=99 => Policy::Fifo,
        _ => Policy::Other,
    }
}
