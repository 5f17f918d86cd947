//! Advice against causes. Each piece has a condition over the causes found; none is given without evidence.

use super::words::{PAGE_FAULT, has_owner, thread};
use super::{Cause, CauseKey, LateTask, Named};
use punctual_causes::{Culprit, Interrupt, Kind};
use punctual_model::Duration;

/// Causes of less than this part of all time are not worth advice.
const SMALL: u64 = 20;

/// A condition, and the advice if it holds.
type Rule = (fn(&CauseKey, &Cause) -> bool, fn(&CauseKey, &Cause) -> String);

const RULES: &[Rule] = &[
    (
        |key, _| key.kind == Kind::Preempted,
        |key, _| {
            format!(
                "give {} another processor, or a lower priority (punctual prove --assign)",
                name(key.who.as_ref())
            )
        },
    ),
    (
        |key, _| key.kind == Kind::Queued,
        |key, _| {
            format!(
                "give {} another priority: under FIFO, threads of equal priority run until they block",
                name(key.who.as_ref())
            )
        },
    ),
    (
        |key, cause| key.kind == Kind::Blocked && key.inversion && has_owner(cause),
        |key, _| {
            let lock = key.on.and_then(|(_, object)| object).map(crate::visible);
            let lock = lock.unwrap_or_else(|| "the lock".into());
            format!("PTHREAD_PRIO_INHERIT for {lock}: its owner then runs at its waiter's priority")
        },
    ),
    (
        |key, cause| key.kind == Kind::Blocked && !key.inversion && has_owner(cause),
        |key, _| format!("shorten the time that {} holds the lock", name(key.who.as_ref())),
    ),
    (
        |key, cause| {
            let may_be_lock = key.on.is_none_or(|(call, _)| call.starts_with("futex"));
            key.kind == Kind::Blocked && key.inversion && may_be_lock && !has_owner(cause)
        },
        |_, cause| {
            let culprit = match cause.example.culprit {
                Some(Culprit::Thread(tid)) => cause.threads.get(&tid).map(thread),
                _ => None,
            };
            let culprit = culprit.unwrap_or_else(|| "the thread that is waited for".into());
            format!("PTHREAD_PRIO_INHERIT if it is a lock; else raise the priority of {culprit}")
        },
    ),
    (
        |key, cause| {
            key.kind == Kind::Blocked
                && key.who.is_none()
                && cause.example.wait.is_some_and(|wait| wait.uninterruptible)
        },
        |key, _| match key.on {
            Some((call, _)) if call != PAGE_FAULT => format!("call {call} in another thread"),
            Some(_) => "mlockall(2), so that no page has to be read".into(),
            None => "move blocking I/O to another thread".into(),
        },
    ),
    (
        |key, cause| key.kind == Kind::Own && cause.faulting > 0,
        |_, _| "mlockall(2), and touch memory before the loop".into(),
    ),
    (
        |key, _| key.kind == Kind::Dispatch && key.who.is_some(),
        |_, _| "boot with preempt=full, so that less urgent threads are preempted at once".into(),
    ),
    (
        |key, _| matches!(key.who, Some(Named::Interrupt(Interrupt::Device { .. }))),
        |_, _| "move the interrupt to another processor (/proc/irq/*/smp_affinity_list)".into(),
    ),
    (|key, _| key.kind == Kind::LateWakeup, |_, _| "punctual latency finds what holds the timer up".into()),
    (
        |key, _| key.kind == Kind::Throttled && key.who.is_none(),
        |_, _| "give its reservation a larger runtime".into(),
    ),
    (
        |key, _| key.kind == Kind::Throttled && key.who.is_some(),
        |_, _| "reduce the load of real-time threads, or raise kernel.sched_rt_runtime_us".into(),
    ),
];

/// Advice against the causes of a task's late jobs, in their order; each piece once.
pub(super) fn of(task: &LateTask) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let causes = task.causes();
    let whole = causes.iter().fold(Duration::ZERO, |sum, (_, cause)| sum + cause.time);
    for (key, cause) in causes {
        if cause.time.ns() < whole.ns() / SMALL {
            continue;
        }
        for (applies, advice) in RULES {
            if applies(key, cause) {
                let advice = advice(key, cause);
                if !all.contains(&advice) {
                    all.push(advice);
                }
            }
        }
    }
    all
}

fn name(who: Option<&Named>) -> String {
    match who {
        Some(Named::Thread { name, .. }) => crate::visible(name),
        _ => "the other thread".into(),
    }
}
