//! Causes in words.

use super::{Cause, CauseKey, LateTask, Named, Who};
use crate::number::{about, agreeing, count, counted};
use crate::{text, visible};
use punctual_causes::{Chain, Culprit, Interrupt, Kind, Part, Role};
use punctual_model::{Duration, Policy};
use std::collections::BTreeMap;

/// Names of softirqs, as in /proc/softirqs.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// `vision (FIFO 90)`.
pub(super) fn who(who: &Who) -> String {
    thread(&who.name, who.policy, who.priority)
}

fn thread(name: &str, policy: Option<Policy>, priority: u32) -> String {
    match policy {
        Some(policy) => format!("{} ({})", visible(name), text::policy(policy, priority, None)),
        None => visible(name),
    }
}

fn named(who: Option<&Named>) -> String {
    match who {
        Some(Named::Thread { name, policy, priority }) => thread(name, *policy, *priority),
        Some(Named::Interrupt(interrupt)) => self::interrupt(*interrupt),
        None => "an unknown thread".into(),
    }
}

pub(super) fn interrupt(interrupt: Interrupt) -> String {
    match interrupt {
        Interrupt::Device(number) => format!("interrupt {number}"),
        Interrupt::Soft(number) => {
            let name = SOFTIRQS.get(number as usize).map_or_else(|| number.to_string(), |it| (*it).into());
            format!("softirq {name}")
        }
        Interrupt::Timer => "the timer interrupt".into(),
        Interrupt::Processor => "another processor's request".into(),
    }
}

/// What late jobs are put down to.
pub(super) fn cause(key: &CauseKey, cause: &Cause, task: &LateTask) -> String {
    let by = || named(key.who.as_ref());
    match key.kind {
        Kind::Backlog => "the job before was late".into(),
        Kind::LateWakeup => "still asleep when due".into(),
        Kind::Preempted => format!("preempted by {}", by()),
        Kind::Queued => format!("waited behind {}", by()),
        Kind::Throttled if key.who.is_some() => format!("throttled: {} ran", by()),
        Kind::Throttled => "its budget was used up".into(),
        Kind::Dispatch if key.who.is_some() => format!("waited for the kernel to leave {}", by()),
        Kind::Dispatch => "ready, but not running yet".into(),
        Kind::Interrupt | Kind::Softirq => format!("interrupted by {}", by()),
        Kind::Steal => "the hypervisor had the processor".into(),
        Kind::Own => own(cause, task),
        Kind::Blocked => match (&key.who, &cause.example.chain) {
            (Some(_), Some(chain)) if chain.role == Role::Owner => format!("waited for a lock of {}", by()),
            (Some(_), _) => format!("waited for {}", by()),
            (None, _) if cause.example.wait.is_some_and(|wait| wait.uninterruptible) => {
                "waited for a device or the kernel".into()
            }
            (None, _) => "waited for an event".into(),
        },
        Kind::Stopped => "stopped by a signal or a debugger".into(),
        Kind::Unknown => "unknown".into(),
    }
}

fn own(cause: &Cause, task: &LateTask) -> String {
    let range = match (about(cause.least), about(cause.greatest)) {
        (least, greatest) if least == greatest => least.to_string(),
        (least, greatest) => format!("{least} to {greatest}"),
    };
    match task.usual.cost {
        Duration::ZERO => format!("own work: {range}"),
        usual => format!("own work: {range}, usually {}", about(usual)),
    }
}

/// What shows it.
pub(super) fn evidence(key: &CauseKey, cause: &Cause) -> String {
    match key.kind {
        Kind::Preempted => "it is more urgent, on the same processor".into(),
        Kind::Queued => "it is as urgent, on the same processor".into(),
        Kind::Dispatch if key.who.is_some() => "it is less urgent, but had the processor".into(),
        Kind::Dispatch => "the processor was idle, or switching".into(),
        Kind::Throttled if key.who.is_some() => "the kernel keeps time for less urgent threads".into(),
        Kind::LateWakeup => "a late timer (masked interrupts, idle states, a hypervisor), or SIGSTOP".into(),
        Kind::Own if cause.faulting > 0 => {
            let had = agreeing(cause.faulting, "had up to", "had up to");
            format!("{} {had} {}", count(cause.faulting), counted(cause.faults, "page fault"))
        }
        Kind::Blocked => cause.example.chain.as_deref().map(|it| meanwhile(it, cause)).unwrap_or_default(),
        Kind::Unknown => "events of that time are missing".into(),
        _ => String::new(),
    }
}

/// What the thread that was waited for did, in the longest such wait.
fn meanwhile(chain: &Chain, cause: &Cause) -> String {
    let Some(part) = longest(chain) else { return String::new() };
    let inversion = if chain.inversion { "priority inversion: " } else { "" };
    format!("{inversion}{}", did(part, &cause.people))
}

fn longest(chain: &Chain) -> Option<&Part> {
    chain.parts.iter().max_by_key(|part| part.time)
}

fn did(part: &Part, people: &BTreeMap<u32, Who>) -> String {
    let by = match part.culprit {
        Some(Culprit::Thread(tid)) => people.get(&tid).map(who),
        Some(Culprit::Interrupt(it)) => Some(interrupt(it)),
        _ => None,
    };
    let by = by.unwrap_or_else(|| "an unknown thread".into());
    match part.kind {
        Kind::Own => "it was running".into(),
        Kind::Preempted => format!("it was preempted by {by}"),
        Kind::Queued => format!("it waited behind {by}"),
        Kind::Dispatch => "it was ready".into(),
        Kind::Blocked => match part.chain.as_deref().and_then(longest) {
            Some(next) => format!("it waited for {by}; {}", did(next, people)),
            None if part.wait.is_some_and(|wait| wait.uninterruptible) => {
                "it waited for a device or the kernel, or was stopped".into()
            }
            None => "it was asleep".into(),
        },
        Kind::Throttled => "its budget was used up".into(),
        Kind::Stopped => "it was stopped".into(),
        Kind::Interrupt | Kind::Softirq => format!("it was interrupted by {by}"),
        Kind::Steal => "the hypervisor had its processor".into(),
        Kind::Backlog | Kind::LateWakeup | Kind::Unknown => "what it did is unknown".into(),
    }
}
