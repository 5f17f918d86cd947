//! The schedule in which a task takes as long as its bound says: everything that delays it comes at once, at
//! the beginning of its window, and again as early as it may.

use crate::arrivals::Arrivals;
use crate::bound::{Bound, Cause, Method};
use crate::simulate::{Job, simulate};
use crate::system::System;
use crate::task::{Scheduling, Task};
use punctual_model::{Duration, Execution};

/// A stretch of time in which the processor does one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// What takes the time.
    pub cause: Cause,
    /// From the beginning of the window.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
}

/// A schedule from the beginning of a window to the end of its worst job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// The task.
    pub task: usize,
    /// When the worst job is released.
    pub release: Duration,
    /// When it ends.
    pub end: Duration,
    /// What the processor does, by time.
    pub stretches: Vec<Stretch>,
}

/// The worst schedule of a task, if its bound is one that a schedule reaches: fixed priorities on one
/// processor, without suspension and reservations.
pub fn worst_case(system: &System, me: usize, bound: &Bound) -> Option<WorstCase> {
    let own = &system.tasks[me];
    let delays = |part: &crate::bound::Part| match part.cause {
        Cause::Task(task) => Some(task),
        _ => None,
    };
    let others: Vec<usize> = bound.parts.iter().filter_map(delays).collect();
    let is_simple = |task: &Task| task.is_pinned() && task.suspension.is_zero();
    // A reservation may be throttled, so that its jobs are left over from before the window.
    let begins = |task: &Task| is_simple(task) && matches!(task.scheduling, Scheduling::Priority(_));
    let is_reached = is_simple(own) && others.iter().all(|&it| begins(&system.tasks[it]));
    if bound.method != Method::FixedPriority || !is_reached {
        return None;
    }
    let of = |cause: Cause| {
        bound.parts.iter().filter(|part| part.cause == cause).map(|part| part.duration.ns()).sum()
    };
    let (jitter, window): (u64, u64) = (of(Cause::Jitter), (bound.response + bound.earlier).ns());
    let window = window - jitter;
    let mut tasks: Vec<(Cause, Task)> = vec![(Cause::Own, with_priority(own, 1))];
    tasks.extend(
        others
            .iter()
            .map(|&it| (Cause::Task(it), with_priority(&system.tasks[it], priority(&system.tasks[it])))),
    );
    let mut jobs: Vec<Job> = own_jobs(own, bound.job);
    for (at, &it) in others.iter().enumerate() {
        let total = bound
            .parts
            .iter()
            .filter(|part| part.cause == Cause::Task(it))
            .map(|part| part.duration.ns())
            .sum();
        jobs.extend(other_jobs(at + 1, &system.tasks[it], window, total));
    }
    for cause in [Cause::Blocking, Cause::Switches, Cause::Interrupts] {
        let cost: u64 = of(cause);
        if cost > 0 {
            jobs.push(Job { task: tasks.len(), release: 0, segments: vec![(cost, 0)] });
            tasks.push((cause, kernel(own)));
        }
    }
    let plain: Vec<Task> = tasks.iter().map(|(_, task)| task.clone()).collect();
    let schedule = simulate(&plain, &jobs);
    let last = usize::try_from(bound.job).ok()?.checked_sub(1)?;
    let end = *schedule.ends.get(last)?;
    let within = schedule.runs.iter().filter(|run| run.from < end);
    let stretches = within.map(|run| Stretch {
        cause: tasks[jobs[run.job].task].0,
        from: Duration::from_ns(run.from),
        to: Duration::from_ns(run.to.min(end)),
    });
    Some(WorstCase {
        task: me,
        release: Duration::from_ns(jobs[last].release),
        end: Duration::from_ns(end),
        stretches: stretches.collect(),
    })
}

/// Its own jobs come last among those of equal priority.
fn with_priority(task: &Task, priority: u32) -> Task {
    Task { scheduling: Scheduling::Priority(priority), ..task.clone() }
}

/// From 2 up: equal ones come before the task, too.
fn priority(task: &Task) -> u32 {
    match task.scheduling {
        Scheduling::Priority(priority) => 1 + priority.min(97),
        _ => 1,
    }
}

fn kernel(own: &Task) -> Task {
    Task {
        name: String::new(),
        scheduling: Scheduling::Priority(99),
        processors: own.processors.clone(),
        arrivals: Arrivals::Sporadic { separation: Duration::from_ns(u64::MAX) },
        execution: Execution { wcet_ns: Vec::new(), mean_ns: None },
        suspension: Duration::ZERO,
        suspensions: 0,
        jitter: Duration::ZERO,
        deadline: None,
        deadline_is_period: false,
        gap: None,
    }
}

fn own_jobs(task: &Task, number: u64) -> Vec<Job> {
    (1..=number)
        .map(|job| Job { task: 0, release: task.arrivals.span(job), segments: cost_of(task, job) })
        .collect()
}

/// Costs that sum up to WCET(n) at every n.
fn cost_of(task: &Task, job: u64) -> Vec<(u64, u64)> {
    let total = |jobs| task.cost(jobs).unwrap_or(0);
    vec![(total(job).saturating_sub(total(job - 1)), 0)]
}

/// The jobs released in the window; together they take `total`, which includes passes of the scheduler.
fn other_jobs(index: usize, task: &Task, window: u64, total: u64) -> Vec<Job> {
    let number = task.arrivals.most(window).unwrap_or(0);
    let passes = total.saturating_sub(task.cost(number).unwrap_or(0)) / number.max(1);
    let job = |job| {
        let cost = cost_of(task, job)[0].0 + passes;
        Job { task: index, release: task.arrivals.span(job), segments: vec![(cost, 0)] }
    };
    (1..=number).map(job).collect()
}
