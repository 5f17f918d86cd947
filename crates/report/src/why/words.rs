//! Causes in words.

use super::{Cause, CauseKey, LateTask, Named, ThreadInfo};
use crate::number::{about, count, counted};
use crate::{text, visible};
use punctual_causes::{Chain, Culprit, Interrupt, Kind, Part, Role};
use punctual_model::{Duration, Policy};
use std::collections::BTreeMap;

/// The name of a wait for a page, in the place of a call.
pub(super) const PAGE_FAULT: &str = "page fault";

/// Names of softirqs, as in /proc/softirqs.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// `vision (FIFO 90)`.
pub(super) fn thread(thread: &ThreadInfo) -> String {
    thread_with(&thread.name, thread.policy, thread.priority)
}

fn thread_with(name: &str, policy: Option<Policy>, priority: u32) -> String {
    match policy {
        Some(policy) => format!("{} ({})", visible(name), text::policy(policy, priority, None)),
        None => visible(name),
    }
}

fn named(who: Option<&Named>) -> String {
    match who {
        Some(Named::Thread { name, policy, priority }) => thread_with(name, *policy, *priority),
        Some(Named::Interrupt(interrupt)) => self::interrupt(*interrupt),
        None => "an unknown thread".into(),
    }
}

pub(super) fn interrupt(interrupt: Interrupt) -> String {
    match interrupt {
        Interrupt::Device { number, name: "" } => format!("interrupt {number}"),
        Interrupt::Device { number, name } => format!("interrupt {number} ({})", visible(name)),
        Interrupt::Soft(number) => {
            let name = SOFTIRQS.get(number as usize).map_or_else(|| number.to_string(), |it| (*it).into());
            format!("softirq {name}")
        }
        Interrupt::Timer => "timer interrupt".into(),
        Interrupt::Processor => "request of another processor".into(),
    }
}

/// The cause of late jobs.
pub(super) fn cause(key: &CauseKey, cause: &Cause, task: &LateTask) -> String {
    let by = || named(key.who.as_ref());
    match key.kind {
        Kind::Backlog => "previous job was late".into(),
        Kind::LateWakeup => "late wake-up".into(),
        Kind::Preempted => format!("preempted by {}", by()),
        Kind::Queued => format!("queued behind {}", by()),
        Kind::Throttled if key.who.is_some() => format!("throttled in favour of {}", by()),
        Kind::Throttled => "runtime exhausted".into(),
        Kind::Dispatch if key.who.is_some() => format!("delayed by {}", by()),
        Kind::Dispatch => "dispatch delay".into(),
        Kind::Interrupt | Kind::Softirq => format!("interrupted: {}", by()),
        Kind::Steal => "hypervisor took the processor".into(),
        Kind::Own => own(cause, task),
        Kind::Blocked => {
            let is_owner = has_owner(cause);
            match (&key.who, key.on.map(blocked_in)) {
                (Some(_), _) if is_owner => match key.on.and_then(|(_, object)| object) {
                    Some(lock) => format!("waited for {}: lock {}", by(), visible(lock)),
                    None => format!("waited for {}: a lock", by()),
                },
                (Some(_), Some(call)) => format!("waited for {}: {call}", by()),
                (Some(_), None) => format!("waited for {}", by()),
                (None, Some(call)) => format!("blocked in {call}"),
                (None, None) if cause.example.wait.is_some_and(|wait| wait.uninterruptible) => {
                    "waited for a device or the kernel".into()
                }
                (None, None) => "waited for an event".into(),
            }
        }
        Kind::Stopped => "stopped by a signal or a debugger".into(),
        Kind::Unknown => "unknown".into(),
    }
}

/// `fsync(robot.log)`, `futex_wait robot:lock`, `page fault`.
pub(super) fn blocked_in((call, object): (&str, Option<&str>)) -> String {
    match object {
        Some(object) if call.starts_with("futex") => format!("{call} {}", visible(object)),
        Some(object) => format!("{call}({})", visible(object)),
        None => call.to_owned(),
    }
}

fn own(cause: &Cause, task: &LateTask) -> String {
    let range = match (about(cause.least), about(cause.greatest)) {
        (least, greatest) if least == greatest => least.to_string(),
        (least, greatest) => format!("{least} to {greatest}"),
    };
    match task.usual_cost {
        Duration::ZERO => format!("own work: {range}"),
        usual => format!("own work: {range}, usually {}", about(usual)),
    }
}

/// Its evidence.
pub(super) fn evidence(key: &CauseKey, cause: &Cause) -> String {
    match key.kind {
        Kind::Preempted => "higher priority on the same processor".into(),
        Kind::Queued => "same priority on the same processor".into(),
        Kind::Dispatch if key.who.is_some() => "lower priority, but not yet preempted".into(),
        Kind::Dispatch => "processor idle or switching".into(),
        Kind::Throttled if key.who.is_some() => "real-time throttling, or the kernel's fair server".into(),
        Kind::LateWakeup => "late timer: masked interrupts, idle states, or the hypervisor".into(),
        Kind::Own if cause.faulting > 0 => {
            let faults = counted(cause.faults.all(), "page fault");
            let read = match cause.faults.major {
                0 => String::new(),
                major => format!(", {} of them with I/O", count(major)),
            };
            format!("{} had up to {faults}{read}", count(cause.faulting))
        }
        Kind::Blocked => {
            cause.example.chain.as_deref().map(|it| meanwhile(it, key, cause)).unwrap_or_default()
        }
        Kind::Unknown => "events were missed".into(),
        _ => String::new(),
    }
}

/// Whether the jobs waited for the owner of a lock.
pub(super) fn has_owner(cause: &Cause) -> bool {
    cause.example.chain.as_ref().is_some_and(|chain| chain.role == Role::Owner)
}

/// Whether the jobs waited for a lock whose owner does not run at its waiter's priority.
pub(super) fn lacks_inheritance(key: &CauseKey, cause: &Cause) -> bool {
    has_owner(cause) && key.on.is_some_and(|(call, _)| !call.contains("_pi"))
}

/// The activity of the thread that was waited for, in the longest such wait.
fn meanwhile(chain: &Chain, key: &CauseKey, cause: &Cause) -> String {
    let Some(part) = longest(chain) else { return String::new() };
    let inversion = if chain.inversion { "priority inversion: " } else { "" };
    let plain = if lacks_inheritance(key, cause) { "no priority inheritance; " } else { "" };
    let who = cause.threads.get(&chain.thread).map(|who| visible(&who.name) + " ").unwrap_or_default();
    format!("{plain}{inversion}{who}{}", activity(part, &cause.threads))
}

fn longest(chain: &Chain) -> Option<&Part> {
    chain.parts.iter().max_by_key(|part| part.time)
}

fn activity(part: &Part, threads: &BTreeMap<u32, ThreadInfo>) -> String {
    let by = match part.culprit {
        Some(Culprit::Thread(tid)) => threads.get(&tid).map(thread),
        Some(Culprit::Interrupt(it)) => Some(interrupt(it)),
        _ => None,
    };
    let by = by.unwrap_or_else(|| "an unknown thread".into());
    match part.kind {
        Kind::Own => "was running".into(),
        Kind::Preempted => format!("was preempted by {by}"),
        Kind::Queued => format!("was queued behind {by}"),
        Kind::Dispatch => "was ready".into(),
        Kind::Blocked => match part.chain.as_deref().and_then(longest) {
            Some(next) => format!("waited for {by}, which {}", activity(next, threads)),
            None if part.wait.is_some_and(|wait| wait.call.is_some()) => {
                let on = part.wait.and_then(|wait| Some((wait.call?, wait.object)));
                format!("was blocked in {}", on.map(blocked_in).unwrap_or_default())
            }
            None if part.wait.is_some_and(|wait| wait.uninterruptible) => "waited in the kernel".into(),
            None => "was asleep".into(),
        },
        Kind::Throttled => "was throttled".into(),
        Kind::Stopped => "was stopped".into(),
        Kind::Interrupt | Kind::Softirq => format!("was interrupted: {by}"),
        Kind::Steal => "lost its processor to the hypervisor".into(),
        Kind::Backlog | Kind::LateWakeup | Kind::Unknown => "is not known to have done anything".into(),
    }
}
