//! Response times under SCHED_DEADLINE: earliest deadline first, each task in a reservation.
//!
//! # Jobs that fit their reservation
//!
//! If every job needs at most the runtime, and releases are at least a period apart, then the deadline of the
//! reservation has passed at each release, so that the kernel begins a new one: jobs have the deadlines of
//! EDF, and are never throttled. On one processor, the job that is released at A in a busy window ends before
//!
//! > w(A) = the least t with  B + C(η⁺(A + 1)) + Σ_k min(C_k(η⁺_k(t)), C_k(η⁺_k(A + 1 + D − D_k))) + I(t) ≤ t
//!
//! and A must be looked at only where a term steps. (Spuri 1996; Bozhko and Brandenburg, ECRTS 2020.)
//! Suspension counts as execution.
//!
//! **Deadlines before the ends of periods.** The kernel (`dl_check_constrained_dl`) holds a job that is
//! released between the deadline of its reservation and the next period until that: T − D at most. When
//! periods begin is not for the thread to say, so this may meet every job. The next one is released at
//! least T later, so what begins after such a wait is sporadic with the separation T, and the bounds above
//! are those from the end of the wait: T − D is added. A job that needs all of the runtime would have its
//! successor's reduced (`update_dl_revised_wakeup`), so there it has to need less.
//!
//! A job that is late has used its runtime up, or the next one comes while it is pending: the kernel then
//! postpones the deadline, and the schedule is no longer that of EDF. Up to the first such job it is, so the
//! bounds hold if none of them exceeds its deadline. The density test below says so at once; if it fails, the
//! bounds of all these tasks are looked at.
//!
//! On several processors, R ≤ D if Σ_k C_k / min(D_k, T_k) ≤ m − (m − 1) · max_k C_k / min(D_k, T_k), for all
//! tasks on these m processors (Goossens, Funk and Baruah 2003; density: Bertogna, Cirinei and Lipari 2005).
//!
//! # Other jobs
//!
//! If the same test passes with Q_k in place of C_k, the kernel keeps all reservations. A job may find that
//! the runtime of the present period is used up, and then gets Q in each period T, at the latest at its end:
//! C(q) is served at the latest T + ⌈C(q) / Q⌉ · T after the window's beginning.

use crate::arrivals::Arrivals;
use crate::bound::{Bound, Cause, Method, NoBound, Part};
use crate::demand::{Demand, Other};
use crate::system::System;
use crate::task::{Scheduling, Task};
use crate::window::{MOST_JOBS, least, sum};
use punctual_model::Duration;
use punctual_model::policy::Reservation;

/// Most instants that are looked at.
const MOST_OFFSETS: usize = 1 << 20;

/// The bound of a SCHED_DEADLINE task; `others` are all others that it shares processors with.
pub(crate) fn bound(system: &System, me: usize, others: Vec<Other>) -> Result<Bound, NoBound> {
    let task = &system.tasks[me];
    let demand = Demand::new(system, me, others);
    demand.check()?;
    let all: Vec<usize> = demand.others.iter().map(|other| other.task).chain([me]).collect();
    if let Some(&other) = all.iter().find(|&&other| system.tasks[other].processors != task.processors) {
        return Err(NoBound::Affinity(other));
    }
    let reservations: Option<Vec<(&Task, Reservation)>> =
        all.iter().map(|&it| Some((&system.tasks[it], reservation(&system.tasks[it])?))).collect();
    let reservations = reservations.ok_or(NoBound::Impossible)?;
    let processors = task.processors.len() as u64;
    let mut with_kernel = reservations.iter().map(|(_, it)| {
        let runtime = it.runtime_ns.ns().saturating_add(kernel(&demand, it));
        (runtime, it.deadline_ns.min(it.period_ns).ns())
    });
    let is_dense_enough = is_dense_enough(&mut with_kernel, processors);
    let fits = reservations.iter().all(|(task, it)| fits(&demand, task, it));
    let own = reservation(task).ok_or(NoBound::Impossible)?;
    match (fits, processors, is_dense_enough) {
        (true, 1, _) if reservations.iter().any(|(_, it)| !held(it).is_zero()) => {
            let waited = after_waits(system, &all);
            let others = demand.others.clone();
            let bound = one_processor(&waited, &Demand::new(&waited, me, others), &all, is_dense_enough, own);
            bound.map(|bound| after_wait(bound, held(&own)))
        }
        (true, 1, _) => one_processor(system, &demand, &all, is_dense_enough, own),
        (_, _, false) => Err(NoBound::Density),
        (true, _, true) => Ok(density(&demand, own)),
        (false, _, true) => served(&demand, own),
    }
}

/// EDF on one processor, where all jobs fit.
fn one_processor(
    system: &System,
    demand: &Demand<'_>,
    all: &[usize],
    is_dense_enough: bool,
    own: Reservation,
) -> Result<Bound, NoBound> {
    match is_dense_enough {
        true => uniprocessor(demand, own.deadline_ns.ns()),
        false => all_in_time(system, all, demand.me),
    }
}

/// The longest time for which the kernel may hold a job until the next period.
fn held(reservation: &Reservation) -> Duration {
    reservation.period_ns.saturating_sub(reservation.deadline_ns)
}

/// The system in which jobs are released after they were held.
pub(crate) fn after_waits(system: &System, all: &[usize]) -> System {
    let mut system = system.clone();
    for &task in all {
        let Some(reservation) = reservation(&system.tasks[task]).filter(|it| !held(it).is_zero()) else {
            continue;
        };
        system.tasks[task].arrivals = Arrivals::Sporadic { separation: reservation.period_ns };
    }
    system
}

/// The bound with the time for which the job was held before.
fn after_wait(bound: Bound, held: Duration) -> Bound {
    if held.is_zero() {
        return bound;
    }
    let waiting = Part { cause: Cause::Throttling, duration: held };
    Bound {
        response: bound.response + held,
        method: Method::HeldEarliestDeadline,
        parts: bound.parts.into_iter().chain([waiting]).collect(),
        ..bound
    }
}

/// The bound of one of the tasks `all`, if none of theirs exceeds its deadline.
fn all_in_time(system: &System, all: &[usize], me: usize) -> Result<Bound, NoBound> {
    let mut own = Err(NoBound::Reservations);
    for &task in all {
        let others = all.iter().filter(|&&other| other != task);
        let others = others.map(|&task| Other { task, carry_in: 0 }).collect();
        let deadline = deadline(&system.tasks[task]);
        let bound = uniprocessor(&Demand::new(system, task, others), deadline);
        let bound = bound.map_err(|_| NoBound::Reservations)?;
        if bound.response.saturating_sub(system.tasks[task].jitter).ns() > deadline {
            return Err(NoBound::Reservations);
        }
        if task == me {
            own = Ok(bound);
        }
    }
    own
}

/// The reservation of a task; `None` if it is impossible.
fn reservation(task: &Task) -> Option<Reservation> {
    match task.scheduling {
        Scheduling::Deadline(it) => {
            let possible =
                !it.runtime_ns.is_zero() && it.runtime_ns <= it.deadline_ns && it.deadline_ns <= it.period_ns;
            possible.then_some(it)
        }
        _ => None,
    }
}

/// The most that the kernel may take from a job, charged to each job whole. (Brandenburg, Leontyev and
/// Anderson, RTAS 2009: task-centric accounting of interrupts.)
fn kernel(demand: &Demand<'_>, reservation: &Reservation) -> u64 {
    let delays = demand.platforms.iter().map(|it| it.blocking.ns().saturating_add(2 * it.switch.ns()));
    let interrupts = demand.interrupts(reservation.deadline_ns.ns()).unwrap_or(u64::MAX);
    delays.max().unwrap_or(0).saturating_add(interrupts)
}

/// The least runtime of this reservation that a job of the task fits, with what the kernel takes from it.
pub(crate) fn least_runtime(system: &System, task: usize, reservation: &Reservation) -> Option<Duration> {
    let demand = Demand::new(system, task, Vec::new());
    sum([system.tasks[task].cost(1), Some(kernel(&demand, reservation))]).map(Duration::from_ns)
}

/// Whether all jobs of a task fit its reservation, with what the kernel takes from it, and come no faster.
fn fits(demand: &Demand<'_>, task: &Task, reservation: &Reservation) -> bool {
    let spare = u64::from(!held(reservation).is_zero());
    let needed = sum([task.cost(1), Some(kernel(demand, reservation)), Some(spare)]);
    needed.is_some_and(|needed| needed <= reservation.runtime_ns.ns())
        && task.suspension.is_zero()
        && task.arrivals.span(2) >= reservation.period_ns.ns()
}

/// Σ u ≤ m − (m − 1) · max u, for u = runtime / span. Exact: rounded up to multiples of 2⁻⁶⁰.
fn is_dense_enough(all: &mut dyn Iterator<Item = (u64, u64)>, processors: u64) -> bool {
    const ONE: u128 = 1 << 60;
    let (mut total, mut greatest) = (0u128, 0u128);
    for (runtime, span) in all {
        let density = (u128::from(runtime) * ONE).div_ceil(u128::from(span.max(1)));
        total += density;
        greatest = greatest.max(density);
    }
    greatest <= ONE && total + u128::from(processors - 1) * greatest <= u128::from(processors) * ONE
}

fn deadline(task: &Task) -> u64 {
    match task.scheduling {
        Scheduling::Deadline(it) => it.deadline_ns.ns(),
        _ => 0,
    }
}

/// The work of another task that comes before a job with this absolute deadline, in a window of `span`.
fn urgent(demand: &Demand<'_>, other: Other, due: u64, span: u64) -> Option<u64> {
    let before = (due + 1).saturating_sub(deadline(&demand.system.tasks[other.task]));
    demand.other(other, span.min(before))
}

fn uniprocessor(demand: &Demand<'_>, own: u64) -> Result<Bound, NoBound> {
    let task = demand.task();
    let everything = |span: u64| {
        let jobs = task.arrivals.most(span)?.max(1);
        let others = demand.others.iter().map(|&other| demand.other(other, span));
        sum(others.chain([demand.own(jobs), demand.interrupts(span)]))
    };
    let busy = least(0, everything).map_err(|_| demand.endless())?;
    let mut worst: Option<(u64, u64, u64)> = None;
    for offset in offsets(demand, own, busy) {
        let jobs = task.arrivals.most(offset + 1).unwrap_or(1).max(1);
        let window = least(offset + 1, |span| {
            let others = demand.others.iter().map(|&other| urgent(demand, other, offset + own, span));
            sum(others.chain([demand.own(jobs), demand.interrupts(span)]))
        })
        .map_err(|_| demand.endless())?;
        let response = window - offset;
        if worst.is_none_or(|(_, _, greatest)| response > greatest) {
            worst = Some((offset, window, response));
        }
    }
    let (offset, window, response) = worst.ok_or_else(|| demand.endless())?;
    let jobs = task.arrivals.most(offset + 1).unwrap_or(1).max(1);
    Ok(Bound {
        response: Duration::from_ns(response) + task.jitter,
        method: Method::EarliestDeadline,
        parts: demand.parts(jobs, window, |other| urgent(demand, other, offset + own, window)),
        earlier: Duration::from_ns(offset),
        job: jobs,
    })
}

/// The releases in the busy window at which a term steps: ascending, without repetition.
fn offsets(demand: &Demand<'_>, own: u64, busy: u64) -> Vec<u64> {
    let mut all = vec![0];
    let members = demand.others.iter().map(|other| other.task).chain([demand.me]);
    for index in members {
        let task = &demand.system.tasks[index];
        let later = if index == demand.me { own } else { deadline(task) };
        for job in 1.. {
            let step = task.arrivals.span(job).saturating_add(later);
            if step >= busy.saturating_add(own) || all.len() >= MOST_OFFSETS {
                break;
            }
            all.extend(step.checked_sub(own));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// All jobs meet the reservation's deadline.
fn density(demand: &Demand<'_>, own: Reservation) -> Bound {
    Bound {
        response: own.deadline_ns + held(&own) + demand.task().jitter,
        method: Method::Density,
        parts: Vec::new(),
        earlier: Duration::ZERO,
        job: 1,
    }
}

/// The reservation serves the jobs.
fn served(demand: &Demand<'_>, own: Reservation) -> Result<Bound, NoBound> {
    let task = demand.task();
    let (runtime, period) = (own.runtime_ns.ns(), own.period_ns.ns());
    let mut worst: Option<(u64, u64, u64)> = None;
    for job in 1..=MOST_JOBS + 1 {
        if job > MOST_JOBS {
            return Err(NoBound::Served);
        }
        let needed = demand.own(job).ok_or(NoBound::Served)?;
        let periods = needed.div_ceil(runtime).checked_add(1).ok_or(NoBound::Served)?;
        let window = periods.checked_mul(period).filter(|&it| it <= crate::window::LIMIT);
        let window = window.ok_or(NoBound::Served)?;
        let response = window.saturating_sub(task.arrivals.span(job));
        if worst.is_none_or(|(_, _, greatest)| response > greatest) {
            worst = Some((job, window, response));
        }
        if window <= task.arrivals.span(job + 1) {
            break;
        }
    }
    let (job, window, response) = worst.ok_or(NoBound::Served)?;
    let needed = Duration::from_ns(demand.own(job).unwrap_or(u64::MAX));
    let waiting =
        Part { cause: Cause::Throttling, duration: Duration::from_ns(window).saturating_sub(needed) };
    Ok(Bound {
        response: Duration::from_ns(response) + task.jitter,
        method: Method::Reservation,
        parts: demand.parts(job, 0, |_| Some(0)).into_iter().chain([waiting]).collect(),
        earlier: Duration::from_ns(task.arrivals.span(job)),
        job,
    })
}
