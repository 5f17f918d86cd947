//! What an analysis finds: a bound of the response time and what it is made of, or why there is none.

use crate::task::{Gap, Scheduling, Task};
use punctual_model::Duration;
use std::fmt;

/// A bound of a task's response times: from the arrival of a job to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The bound.
    pub response: Duration,
    /// The analysis that it comes from.
    pub method: Method,
    /// What it is made of: the sum of the parts, less `earlier`, is the bound (with [`Method::Density`] there
    /// are none).
    pub parts: Vec<Part>,
    /// The latest release after the beginning of the window in which the worst job is released: the first
    /// jobs of this window belong to the parts, too.
    pub earlier: Duration,
    /// The worst job of the window, from 1.
    pub job: u64,
}

/// A part of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What takes the time.
    pub cause: Cause,
    /// How much.
    pub duration: Duration,
}

/// What a part of a bound is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The task's own jobs.
    Own,
    /// Their suspension of themselves.
    Suspension,
    /// The release comes after the arrival.
    Jitter,
    /// Jobs of another task, by its index.
    Task(usize),
    /// The kernel keeps the processor (L_IF).
    Blocking,
    /// Passes of the scheduler for the task's own jobs.
    Switches,
    /// Interrupts.
    Interrupts,
    /// The reservation waits for its next period: it has used its runtime up, or its deadline has passed.
    Throttling,
}

/// An analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Fixed priorities on one processor: busy windows (Lehoczky 1990; Tindell, Burns, Wellings 1994).
    FixedPriority,
    /// Fixed priorities on several processors (Bertogna and Cirinei 2007; affinities as Gujarati, Cerqueira
    /// and Brandenburg 2013).
    GlobalFixedPriority,
    /// Earliest deadline first on one processor (Spuri 1996; Bozhko and Brandenburg 2020).
    EarliestDeadline,
    /// The same, with deadlines before the ends of periods: the kernel may hold a job until the next period
    /// of its reservation.
    HeldEarliestDeadline,
    /// The density test of global EDF (Goossens, Funk and Baruah 2003; Bertogna, Cirinei, Lipari 2005).
    Density,
    /// The service of a reservation (Abeni and Buttazzo 1998).
    Reservation,
}

impl Method {
    /// Its name for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Method::FixedPriority => "fixed priority",
            Method::GlobalFixedPriority => "global fixed priority",
            Method::EarliestDeadline => "EDF",
            Method::HeldEarliestDeadline => "EDF, held",
            Method::Density => "global EDF density",
            Method::Reservation => "reservation",
        }
    }

    /// Whether a schedule of sporadic tasks without suspension reaches the bound.
    pub const fn is_exact(self) -> bool {
        matches!(self, Method::FixedPriority | Method::EarliestDeadline)
    }
}

/// Why there is no bound of a task's response times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoBound {
    /// It is neither SCHED_FIFO, SCHED_RR nor SCHED_DEADLINE.
    BestEffort,
    /// Its jobs, or those of this task that delays it, may be released without limit.
    Arrivals(usize),
    /// The processor time of this task's jobs is unknown.
    Cost(usize),
    /// The work of the task and of those before it may never end: utilization is too high.
    Overload,
    /// Its suspension counts as work of the processor: so the work may never end or, on several processors,
    /// its jobs may overlap. Without it, neither is so.
    Suspension,
    /// A task that may have jobs left over from before delays it, and that one has no bound.
    Depends(usize),
    /// Jobs of a task on several processors may overlap.
    Overlap,
    /// SCHED_DEADLINE tasks share some processors but not all.
    Affinity(usize),
    /// The reservations of this processor are more than it can give.
    Reservations,
    /// The reservations of these processors may be more than they can give, by a test that suffices.
    Density,
    /// The task may need as much as its reservation serves in the long run, or more.
    Served,
    /// A reservation is impossible: runtime ≤ deadline ≤ period does not hold, or the runtime is zero.
    Impossible,
    /// Too little is known of this task: of the one itself, or of one that may delay it.
    Gap(usize),
}

impl NoBound {
    /// Why task `me` of these has no bound, as a sentence part: `its jobs may arrive without limit`.
    pub fn text(&self, me: usize, tasks: &[Task]) -> String {
        let name = |task: usize| &tasks[task].name;
        let whose = |task: &usize| match *task == me {
            true => "its".to_owned(),
            false => format!("{}'s", name(*task)),
        };
        match self {
            NoBound::BestEffort => "it has no real-time policy".into(),
            NoBound::Arrivals(task) => format!("{} jobs may be released without limit", whose(task)),
            NoBound::Cost(task) => format!("{} processor time is unknown", whose(task)),
            NoBound::Overload => "the processor may never finish its work and that of tasks before it".into(),
            NoBound::Suspension => suspended(&tasks[me]),
            NoBound::Depends(task) => {
                let (other, is_pinned) = (name(*task), tasks[me].is_pinned() && tasks[*task].is_pinned());
                match tasks[*task].scheduling {
                    Scheduling::Deadline(_) if is_pinned => format!(
                        "{other} delays it and has no bound: it needs more than its reservation serves; \
                         raise its runtime"
                    ),
                    _ if !tasks[*task].suspension.is_zero() => {
                        format!("{other} suspends itself, delays it and has no bound")
                    }
                    _ => format!("{other} delays it and has no bound; pin both to processors"),
                }
            }
            NoBound::Overlap => {
                "it may run on several processors, and its jobs may overlap; pin it to one".into()
            }
            NoBound::Affinity(task) => {
                format!("it shares some processors with {}, but not all, under SCHED_DEADLINE", name(*task))
            }
            NoBound::Reservations => {
                "the reservations ask for more than the processor gives until one of their deadlines".into()
            }
            NoBound::Density => {
                "runtime / deadline of all reservations here, with what the kernel takes, exceeds the \
                 density test, so that they may not be kept"
                    .into()
            }
            NoBound::Served => {
                "it may need as much as its reservation serves or more, so that it may never catch up; raise \
                 its runtime"
                    .into()
            }
            NoBound::Impossible => {
                "a reservation here is impossible: the kernel wants runtime ≤ deadline ≤ period".into()
            }
            NoBound::Gap(task) => {
                let gap = tasks[*task].gap.as_ref().map_or("too little is known of it", Gap::text);
                match *task == me {
                    true => gap.to_owned(),
                    false => format!("{} may delay it without a bound: {gap}", name(*task)),
                }
            }
        }
    }
}

/// What its suspension does, and what helps: on one processor, more than one job may be pending.
fn suspended(task: &Task) -> String {
    let takes = task.cost(1).and_then(|cost| cost.checked_add(task.suspension.ns()));
    let fits = takes.is_some_and(|takes| takes <= task.arrivals.span(2));
    let (then, helps) = match task.is_pinned() {
        true => ("the processor may never finish", "or a longer period helps"),
        false if fits => ("its jobs may overlap", "a longer period or one processor of its own helps"),
        false => ("its jobs may overlap", "or a longer period helps"),
    };
    format!(
        "this analysis counts its suspension (up to {} a job) as processor time, and then {then}; this is a \
         limit of the analysis, not an overload; a shorter suspension (a contract can set one) {helps}",
        task.suspension
    )
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
