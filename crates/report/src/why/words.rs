//! Causes in words.

use crate::number::{about, count, counted};
use crate::{text, visible};
use punctual_model::causes::{Cause, Chain, Kind, LateTask, Part, Reason, Role};
use punctual_model::{Duration, Policy};

/// The name of a wait for a page, in the place of a call.
pub(super) const PAGE_FAULT: &str = "page fault";

/// `vision (FIFO 90)`.
pub(super) fn thread(name: &str, policy: Option<Policy>, priority: u32) -> String {
    match policy {
        Some(policy) => format!("{} ({})", visible(name), text::policy(policy, priority, None)),
        None => visible(name),
    }
}

/// The thread or interrupt behind a part.
pub(super) fn culprit(reason: &Reason) -> Option<String> {
    let thread = reason.thread.as_deref().map(|name| thread(name, reason.policy, reason.priority));
    thread.or_else(|| reason.interrupt.as_deref().map(visible))
}

/// The cause of late jobs.
pub(super) fn cause(cause: &Cause, task: &LateTask) -> String {
    let who = culprit(&cause.reason);
    let by = || who.clone().unwrap_or_else(|| "an unknown thread".into());
    match cause.reason.kind {
        Kind::Backlog => "previous job was late".into(),
        Kind::LateWakeup => "late wake-up".into(),
        Kind::Preempted => format!("preempted by {}", by()),
        Kind::Queued => format!("queued behind {}", by()),
        Kind::Throttled if who.is_some() => format!("throttled in favour of {}", by()),
        Kind::Throttled if task.policy == Policy::Deadline => "runtime exhausted".into(),
        Kind::Throttled => "budget exhausted".into(),
        Kind::Dispatch if who.is_some() => format!("delayed by {}", by()),
        Kind::Dispatch => "dispatch delay".into(),
        Kind::Interrupt | Kind::Softirq => format!("interrupted: {}", by()),
        Kind::Steal => "hypervisor took the processor".into(),
        Kind::Own => own(cause, task),
        Kind::Blocked => match (&who, blocked_in(&cause.reason)) {
            (Some(_), _) if has_owner(cause) => match &cause.reason.object {
                Some(lock) => format!("waited for {}: lock {}", by(), visible(lock)),
                None => format!("waited for {}: a lock", by()),
            },
            (Some(_), Some(call)) => format!("waited for {}: {call}", by()),
            (Some(_), None) => format!("waited for {}", by()),
            (None, Some(call)) => format!("blocked in {call}"),
            (None, None) if cause.longest.uninterruptible => "waited for a device or the kernel".into(),
            (None, None) => "waited for an event".into(),
        },
        Kind::Stopped => "stopped by a signal or a debugger".into(),
        Kind::Unknown => "unknown".into(),
    }
}

/// `fsync(robot.log)`, `futex_wait robot:lock`, `page fault`.
pub(super) fn blocked_in(reason: &Reason) -> Option<String> {
    let call = reason.call.as_deref()?;
    Some(match &reason.object {
        Some(object) if call.starts_with("futex") => format!("{call} {}", visible(object)),
        Some(object) => format!("{call}({})", visible(object)),
        None => call.to_owned(),
    })
}

fn own(cause: &Cause, task: &LateTask) -> String {
    let range = match (about(cause.least_ns), about(cause.longest.ns)) {
        (least, greatest) if least == greatest => least.to_string(),
        (least, greatest) => format!("{least} to {greatest}"),
    };
    match task.usual_cost_ns {
        Duration::ZERO => format!("own work: {range}"),
        usual => format!("own work: {range}, usually {}", about(usual)),
    }
}

/// Its evidence.
pub(super) fn evidence(task: &LateTask, cause: &Cause) -> String {
    let is_known = culprit(&cause.reason).is_some();
    match cause.reason.kind {
        Kind::Preempted => "higher priority on the same processor".into(),
        Kind::Queued => "same priority on the same processor".into(),
        Kind::Dispatch if is_known => "lower priority, but not yet preempted".into(),
        Kind::Dispatch => "processor idle or switching".into(),
        Kind::Throttled if is_known => "real-time throttling, or the kernel's fair server".into(),
        Kind::Throttled => "ready, but not given the processor".into(),
        Kind::LateWakeup if !task.policy.is_real_time() => {
            "late timer: timer slack, idle states, or the hypervisor".into()
        }
        Kind::LateWakeup => "late timer: masked interrupts, idle states, or the hypervisor".into(),
        Kind::Own if cause.faulting_jobs > 0 => {
            let faults = counted(cause.faults, "page fault");
            let read = match cause.major_faults {
                0 => String::new(),
                major => format!(", {} of them with I/O", count(major)),
            };
            format!("{} had up to {faults}{read}", count(cause.faulting_jobs))
        }
        Kind::Blocked | Kind::Backlog => {
            cause.longest.waited_for.as_deref().map(|it| meanwhile(it, cause)).unwrap_or_default()
        }
        Kind::Unknown => "events were missed".into(),
        _ => String::new(),
    }
}

/// Whether the jobs waited for the owner of a lock.
pub(super) fn has_owner(cause: &Cause) -> bool {
    cause.longest.waited_for.as_ref().is_some_and(|chain| chain.role == Role::Owner)
}

/// Whether the jobs waited for a lock whose owner does not run at its waiter's priority.
pub(super) fn lacks_inheritance(cause: &Cause) -> bool {
    has_owner(cause) && cause.reason.call.as_deref().is_some_and(|call| !call.contains("_pi"))
}

/// The activity of the thread that was waited for, in the longest such wait.
fn meanwhile(chain: &Chain, cause: &Cause) -> String {
    let Some(part) = longest(chain) else { return String::new() };
    let inversion = if chain.inversion { "priority inversion: " } else { "" };
    let who = if chain.role == Role::Previous { "it".into() } else { visible(&chain.thread) };
    let plain = if lacks_inheritance(cause) { "no priority inheritance; " } else { "" };
    format!("{plain}{inversion}{who} {}", activity(part))
}

fn longest(chain: &Chain) -> Option<&Part> {
    chain.parts.iter().max_by_key(|part| part.ns)
}

fn activity(part: &Part) -> String {
    let by = culprit(&part.reason).unwrap_or_else(|| "an unknown thread".into());
    match part.reason.kind {
        Kind::Own => "was running".into(),
        Kind::Preempted => format!("was preempted by {by}"),
        Kind::Queued => format!("was queued behind {by}"),
        Kind::Dispatch => "was ready".into(),
        Kind::Blocked => match (part.waited_for.as_deref().and_then(longest), blocked_in(&part.reason)) {
            (Some(next), _) => format!("waited for {by}, which {}", activity(next)),
            (None, Some(call)) => format!("was blocked in {call}"),
            (None, None) if part.uninterruptible => "waited in the kernel".into(),
            (None, None) => "was asleep".into(),
        },
        Kind::Throttled => "was throttled".into(),
        Kind::Stopped => "was stopped".into(),
        Kind::Interrupt | Kind::Softirq => format!("was interrupted: {by}"),
        Kind::Steal => "lost its processor to the hypervisor".into(),
        Kind::Backlog | Kind::LateWakeup | Kind::Unknown => "is not known to have done anything".into(),
    }
}
