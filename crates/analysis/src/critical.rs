//! The schedule in which a task takes as long as its bound says: everything that delays it comes at once, at
//! the beginning of its window, and again as early as it may. (Liu and Layland 1973; under EDF the task's own
//! job comes where that is worst: Spuri 1996.)

use crate::bound::{Bound, Cause, Method};
use crate::edf;
use crate::simulate::{Job, simulate};
use crate::system::System;
use crate::task::{Scheduling, Task};
use punctual_model::Duration;
use punctual_model::policy::Reservation;

/// Of a schedule that is shown: nobody would read more.
const MOST_JOBS: u64 = 1 << 16;

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

/// The worst schedule of a task, if its bound is one that a schedule reaches: on one processor and without
/// suspension, fixed priorities without reservations above them, or reservations that all jobs fit.
pub fn worst_case(system: &System, me: usize, bound: &Bound) -> Option<WorstCase> {
    match bound.method {
        Method::EarliestDeadline | Method::HeldEarliestDeadline => {
            let all: Vec<usize> = (0..system.tasks.len()).collect();
            Some(begin_with_wait(of_window(&edf::after_waits(system, &all), me, bound)?, bound))
        }
        _ => of_window(system, me, bound),
    }
}

/// The schedule in which the worst job was held before it came.
fn begin_with_wait(worst: WorstCase, bound: &Bound) -> WorstCase {
    let held = part(bound, Cause::Throttling);
    let before = held.saturating_sub(worst.release);
    let later = |it: Stretch| Stretch { from: it.from + before, to: it.to + before, ..it };
    let wait = Stretch { cause: Cause::Throttling, from: Duration::ZERO, to: before };
    let wait = Some(wait).filter(|_| !before.is_zero());
    WorstCase {
        release: (worst.release + before).saturating_sub(held),
        end: worst.end + before,
        stretches: wait.into_iter().chain(worst.stretches.into_iter().map(later)).collect(),
        ..worst
    }
}

fn part(bound: &Bound, cause: Cause) -> Duration {
    let parts = bound.parts.iter().filter(|part| part.cause == cause);
    parts.fold(Duration::ZERO, |sum, part| sum + part.duration)
}

fn of_window(system: &System, me: usize, bound: &Bound) -> Option<WorstCase> {
    let own = &system.tasks[me];
    let of = |cause: Cause| part(bound, cause).ns();
    let others = bound.parts.iter().filter_map(|part| match part.cause {
        Cause::Task(task) => Some(task),
        _ => None,
    });
    let others: Vec<usize> = others.collect();
    let is_simple = |task: &Task| task.is_pinned() && task.suspension.is_zero();
    if !is_simple(own) || !others.iter().all(|&it| is_simple(&system.tasks[it])) {
        return None;
    }
    let outside = part(bound, Cause::Jitter) + part(bound, Cause::Throttling);
    let window = (bound.response + bound.earlier).saturating_sub(outside).ns();
    let plan = match bound.method {
        Method::FixedPriority => Plan::by_priority(window),
        Method::EarliestDeadline | Method::HeldEarliestDeadline => {
            Plan::by_deadline(own, bound.earlier.ns(), window)?
        }
        _ => return None,
    };
    let mut tasks: Vec<(Cause, Task)> = vec![(Cause::Own, plan.own(own))];
    let mut jobs: Vec<Job> = plan.own_jobs(own, bound.job);
    for it in others {
        let (cause, task) = (Cause::Task(it), &system.tasks[it]);
        let span = plan.span(task)?;
        if task.arrivals.most(span)?.saturating_add(jobs.len() as u64) > MOST_JOBS {
            return None;
        }
        jobs.extend(other_jobs(tasks.len(), task, span, of(cause)));
        tasks.push((cause, plan.other(task)));
    }
    for cause in [Cause::Blocking, Cause::Switches, Cause::Interrupts] {
        let cost: u64 = of(cause);
        if cost > 0 {
            jobs.push(Job { task: tasks.len(), release: 0, segments: vec![(cost, 0)] });
            tasks.push((cause, plan.kernel(own)));
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

/// What is released in the window, and in which order it runs.
enum Plan {
    /// Everything at once at its beginning, by priority.
    Priority { window: u64 },
    /// Everything but the task itself, whose worst job comes later; by deadline.
    Deadline { release: u64, due: u64, window: u64 },
}

impl Plan {
    fn by_priority(window: u64) -> Plan {
        Plan::Priority { window }
    }

    fn by_deadline(own: &Task, release: u64, window: u64) -> Option<Plan> {
        // Own jobs run as if their deadline were later by one, which must be a time, too.
        let due = release.checked_add(deadline(own)?).filter(|due| *due < u64::MAX)?;
        Some(Plan::Deadline { release, due, window })
    }

    /// How long jobs of another task are released that delay the worst one; `None` if it delays it otherwise
    /// than this plan has it. (A reservation that is throttled leaves jobs over from before the window.)
    fn span(&self, other: &Task) -> Option<u64> {
        match (self, other.scheduling) {
            (Plan::Priority { window }, Scheduling::Priority(_)) => Some(*window),
            (Plan::Deadline { due, window, .. }, Scheduling::Deadline(_)) => {
                Some((due + 1).saturating_sub(deadline(other)?).min(*window))
            }
            _ => None,
        }
    }

    /// Its jobs run after others that are as urgent.
    fn own(&self, task: &Task) -> Task {
        match (self, task.scheduling) {
            (Plan::Deadline { .. }, Scheduling::Deadline(it)) => with_deadline(task, it.deadline_ns.ns() + 1),
            _ => with_priority(task, 1),
        }
    }

    fn other(&self, task: &Task) -> Task {
        match (self, task.scheduling) {
            // From 2 up: equal ones come before the task, too.
            (Plan::Priority { .. }, Scheduling::Priority(priority)) => {
                with_priority(task, 1 + priority.min(97))
            }
            _ => task.clone(),
        }
    }

    /// More urgent than all tasks.
    fn kernel(&self, own: &Task) -> Task {
        match self {
            Plan::Priority { .. } => with_priority(own, 99),
            Plan::Deadline { .. } => with_deadline(own, 0),
        }
    }

    fn own_jobs(&self, task: &Task, number: u64) -> Vec<Job> {
        let release = |job: u64| match self {
            Plan::Priority { .. } => task.arrivals.span(job),
            // As late before the worst one as they may come.
            Plan::Deadline { release, .. } => release.saturating_sub(task.arrivals.span(number - job + 1)),
        };
        (1..=number).map(|job| Job { task: 0, release: release(job), segments: cost_of(task, job) }).collect()
    }
}

fn deadline(task: &Task) -> Option<u64> {
    match task.scheduling {
        Scheduling::Deadline(it) => Some(it.deadline_ns.ns()),
        _ => None,
    }
}

fn with_priority(task: &Task, priority: u32) -> Task {
    Task { scheduling: Scheduling::Priority(priority), ..task.clone() }
}

fn with_deadline(task: &Task, deadline: u64) -> Task {
    let all = Duration::from_ns(deadline);
    let reservation = Reservation { runtime_ns: all, deadline_ns: all, period_ns: all };
    Task { scheduling: Scheduling::Deadline(reservation), ..task.clone() }
}

/// Costs that sum up to WCET(n) at every n.
fn cost_of(task: &Task, job: u64) -> Vec<(u64, u64)> {
    let total = |jobs| task.cost(jobs).unwrap_or(0);
    vec![(total(job).saturating_sub(total(job - 1)), 0)]
}

/// The jobs released in `span`; together they take `total`, which includes passes of the scheduler.
fn other_jobs(index: usize, task: &Task, span: u64, total: u64) -> Vec<Job> {
    let number = task.arrivals.most(span).unwrap_or(0);
    let passes = total.saturating_sub(task.cost(number).unwrap_or(0)) / number.max(1);
    let job = |job| {
        let cost = cost_of(task, job)[0].0 + passes;
        Job { task: index, release: task.arrivals.span(job), segments: vec![(cost, 0)] }
    };
    (1..=number).map(job).collect()
}
