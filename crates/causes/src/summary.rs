//! Sums up explained jobs for the section `causes` of the timing model.

use crate::cause::main_cause;
use crate::event::Interrupt;
use crate::part::{Chain, Culprit, Explanation, Part};
use punctual_model::causes::{
    Cause, Chain as NamedChain, LateJob, LateTask, Limit, Part as NamedPart, Reason,
};
use punctual_model::{Duration, Policy};
use std::cmp::Reverse;

/// What a page fault costs at least. Faults that take less than a tenth of a job's own work are not evidence.
const FAULT_NS: u64 = 500;

/// Names of softirqs, as in /proc/softirqs.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// A thread, as it was when a job was explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its TID.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its policy; `None` if nothing is known but the TID.
    pub policy: Option<Policy>,
    /// Its real-time priority, if the policy has one.
    pub priority: u32,
}

/// Adds a late job to those of its task. At least the `most` longest are kept; [`finish`] leaves no others.
/// `has_arrival` is whether its time begins at a known arrival; `who` knows the threads by their TIDs.
pub fn add(
    task: &mut LateTask,
    most: usize,
    explanation: &Explanation,
    has_arrival: bool,
    who: &dyn Fn(u32) -> Thread,
) {
    // A limit below the usual cost makes jobs late by their own work.
    let is_usual_late = task.limit != Limit::None && task.usual_cost_ns > task.limit_ns;
    let usual = if is_usual_late { Duration::ZERO } else { task.usual_cost_ns };
    let Some(main) = main_cause(explanation, usual) else { return };
    let (job, faults) = (explanation.job, explanation.faults);
    task.late += 1;
    task.longest_ns = task.longest_ns.max(job.time());
    let longest = part(&main, who);
    let reason = longest.reason.clone();
    if most > 0 {
        task.worst.push(LateJob {
            phase: job.phase,
            job: job.number,
            tid: job.thread,
            arrival_ns: has_arrival.then_some(job.begin),
            begin_ns: job.begin,
            end_ns: job.end,
            response_ns: job.time(),
            faults: faults.all(),
            major_faults: faults.major,
            cause: main.kind,
            cause_thread: longest.reason.thread.clone(),
            cause_call: reason.call.clone(),
            cause_object: reason.object.clone(),
            parts: explanation.parts.iter().map(|it| part(it, who)).collect(),
        });
        if task.worst.len() >= most.saturating_mul(2) {
            keep_worst(task, most);
        }
    }
    let is_faulting = faults.major > 0 || faults.all().saturating_mul(FAULT_NS) >= main.time.ns() / 10;
    task.add(Cause {
        reason,
        inversion: main.chain.as_deref().is_some_and(has_inversion),
        jobs: 1,
        ns: main.time,
        least_ns: main.time,
        faulting_jobs: u64::from(faults.all() > 0 && is_faulting),
        faults: faults.all(),
        major_faults: faults.major,
        longest,
    });
}

/// Puts the causes and the worst jobs of a task in order when all late jobs are added.
pub fn finish(task: &mut LateTask, most: usize) {
    keep_worst(task, most);
    task.bound();
}

fn keep_worst(task: &mut LateTask, most: usize) {
    task.worst.sort_by_key(|job| Reverse(job.response_ns));
    task.worst.truncate(most);
}

/// Whether less urgent threads held up somebody on the way to what the job waited for.
fn has_inversion(chain: &Chain) -> bool {
    let longest = chain.parts.iter().max_by_key(|part| part.time);
    chain.inversion || longest.and_then(|part| part.chain.as_deref()).is_some_and(has_inversion)
}

/// A part, with names in the place of numbers.
fn part(part: &Part, who: &dyn Fn(u32) -> Thread) -> NamedPart {
    let wait = part.wait.unwrap_or_default();
    let mut reason = Reason {
        kind: part.kind,
        call: wait.call.map(str::to_owned),
        object: wait.object.map(str::to_owned),
        ..Reason::default()
    };
    let (mut tid, mut job) = (None, None);
    match part.culprit {
        Some(Culprit::Thread(it)) => {
            let Thread { name, policy, priority, .. } = who(it);
            tid = Some(it);
            reason = Reason { thread: Some(name), policy, priority, ..reason };
        }
        Some(Culprit::Interrupt(it)) => reason.interrupt = Some(name_of(it)),
        Some(Culprit::Job(number)) => job = Some(number),
        None => {}
    }
    let waited_for = part.chain.as_deref().map(|it| Box::new(chain(it, who)));
    let (from_ns, ns, uninterruptible) = (part.from, part.time, wait.uninterruptible);
    NamedPart { reason, from_ns, ns, tid, job, uninterruptible, waited_for }
}

fn chain(chain: &Chain, who: &dyn Fn(u32) -> Thread) -> NamedChain {
    let Chain { thread: tid, role, inversion, ref parts } = *chain;
    let parts = parts.iter().map(|it| part(it, who)).collect();
    NamedChain { thread: who(tid).name, tid, role, inversion, parts }
}

fn name_of(interrupt: Interrupt) -> String {
    match interrupt {
        Interrupt::Device { number, name: "" } => format!("interrupt {number}"),
        Interrupt::Device { number, name } => format!("interrupt {number} ({name})"),
        Interrupt::Soft(number) => {
            let name = SOFTIRQS.get(number as usize).map_or_else(|| number.to_string(), |it| (*it).into());
            format!("softirq {name}")
        }
        Interrupt::Timer => "timer interrupt".into(),
        Interrupt::Processor => "request of another processor".into(),
    }
}
