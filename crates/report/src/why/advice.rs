//! Advice against causes. Each piece has a condition over the causes found; none is given without evidence.

use super::words::{PAGE_FAULT, culprit, has_owner};
use crate::visible;
use punctual_model::causes::{Cause, Kind, LateTask};
use punctual_model::{Duration, Policy};

/// Causes of less than this part of all time are not worth advice.
const SMALL: u64 = 20;

/// A condition, and the advice if it holds.
type Rule = (fn(&Cause) -> bool, fn(&Cause) -> String);

const RULES: &[Rule] = &[
    (
        |it| it.reason.kind == Kind::Preempted,
        |it| format!("give {} another processor, or a lower priority (punctual prove --assign)", name(it)),
    ),
    (
        |it| it.reason.kind == Kind::Queued,
        |it| {
            let until = match it.reason.policy {
                Some(Policy::Rr) => "RR, threads of equal priority take turns",
                _ => "FIFO, threads of equal priority run until they block",
            };
            format!("give {} another priority: under {until}", name(it))
        },
    ),
    (
        |it| it.reason.kind == Kind::Blocked && it.inversion && has_owner(it),
        |it| {
            let lock = it.reason.object.as_deref().map(visible);
            let lock = lock.unwrap_or_else(|| "the lock".into());
            format!("PTHREAD_PRIO_INHERIT for {lock}: its owner then runs at its waiter's priority")
        },
    ),
    (
        |it| it.reason.kind == Kind::Blocked && !it.inversion && has_owner(it),
        |it| format!("shorten the time that {} holds the lock", name(it)),
    ),
    (
        |it| {
            let may_be_lock = it.reason.call.as_deref().is_none_or(|call| call.starts_with("futex"));
            it.reason.kind == Kind::Blocked && it.inversion && may_be_lock && !has_owner(it)
        },
        |it| {
            let culprit = culprit(&it.reason).unwrap_or_else(|| "the thread that is waited for".into());
            format!("PTHREAD_PRIO_INHERIT if it is a lock; else raise the priority of {culprit}")
        },
    ),
    (
        |it| it.reason.kind == Kind::Blocked && culprit(&it.reason).is_none() && it.longest.uninterruptible,
        |it| match it.reason.call.as_deref() {
            Some(call) if call != PAGE_FAULT => format!("call {call} in another thread"),
            Some(_) => "mlockall(2), so that no page has to be read".into(),
            None => "move blocking I/O to another thread".into(),
        },
    ),
    (
        |it| it.reason.kind == Kind::Own && it.faulting_jobs > 0,
        |_| "mlockall(2), and touch memory before the loop".into(),
    ),
    (
        |it| it.reason.kind == Kind::Dispatch && culprit(&it.reason).is_some(),
        |_| "boot with preempt=full, so that less urgent threads are preempted at once".into(),
    ),
    (
        |it| it.reason.interrupt.as_deref().is_some_and(|name| name.starts_with("interrupt ")),
        |_| "move the interrupt to another processor (/proc/irq/*/smp_affinity_list)".into(),
    ),
    (|it| it.reason.kind == Kind::LateWakeup, |_| "punctual latency finds what holds the timer up".into()),
    (
        |it| it.reason.kind == Kind::Throttled && culprit(&it.reason).is_none(),
        |_| "a larger budget: the runtime of its reservation, or cpu.max of its control group".into(),
    ),
    (
        |it| it.reason.kind == Kind::Throttled && culprit(&it.reason).is_some(),
        |_| "reduce the load of real-time threads, or raise kernel.sched_rt_runtime_us".into(),
    ),
];

/// What only holds for threads that are not real-time.
const OF_ORDINARY: &[Rule] = &[(
    |it| it.reason.kind == Kind::LateWakeup,
    |_| "a real-time policy, or PR_SET_TIMERSLACK: timers of ordinary threads may be late".into(),
)];

/// Advice against the causes of a task's late jobs, in their order; each piece once.
pub(crate) fn of(task: &LateTask) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let whole = task.causes.iter().fold(Duration::ZERO, |sum, cause| sum + cause.ns);
    let large = task.causes.iter().filter(|cause| cause.ns.ns() >= whole.ns() / SMALL);
    let of_ordinary = if task.policy.is_real_time() { &[] } else { OF_ORDINARY };
    let rules = || of_ordinary.iter().chain(RULES);
    for (cause, (applies, advice)) in large.flat_map(|cause| rules().map(move |rule| (cause, rule))) {
        if applies(cause) {
            let advice = advice(cause);
            if !all.contains(&advice) {
                all.push(advice);
            }
        }
    }
    all
}

fn name(cause: &Cause) -> String {
    cause.reason.thread.as_deref().map_or_else(|| "the other thread".into(), visible)
}
