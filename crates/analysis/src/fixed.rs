//! Response times under preemptive fixed priorities.
//!
//! # One processor
//!
//! The window of a job begins when, for the last time before its release, no job of the task itself was
//! pending, and none of a task that delays it and begins with the window. Until the job ends, one of these is
//! pending at all times. So if the window holds q jobs of the task up to this one, then the job ends before
//!
//! > w(q) = the least t with  B(q) + q·S + C(q) + Σ_k C_k(η⁺_k(t + J_k)) + I(t) ≤ t
//!
//! after the window's beginning: C(q) is WCET(q), S the suspension, B(q) the kernel's blocking, I(t) that of
//! interrupts. It was released at least δ⁻(q) after the beginning, and is the last one to be looked at if
//! w(q) ≤ δ⁻(q + 1). (Lehoczky 1990; Tindell, Burns and Wellings 1994; with curves: Schliecker, Ernst et al.
//! 2008.)
//!
//! J_k = 0 for tasks that never suspend themselves and run on this processor only: the window begins when
//! none of their jobs is pending. Others may have jobs at its beginning that were released at most R_k
//! before, so that J_k = R_k. This is the treatment that Chen et al. ("Many suspensions, many problems", RTS
//! 2019, Section 4) show to be sound; [`Demand::other`] has the improvement by C_k. The task's own suspension
//! counts as execution, which is sound, too.
//!
//! # Several processors
//!
//! While a job is ready and does not run, all m processors that it may use run others (Linux pushes and pulls
//! threads; for affinities: Gujarati, Cerqueira and Brandenburg, RTSS 2013). So it ends before
//!
//! > w = the least t with  B + S + C + I(t) + ⌊Σ_k min(C_k(η⁺_k(t + R_k)), t − C + 1) / m⌋ ≤ t
//!
//! after its release, if no other job of its own is pending then: if w ≤ δ⁻(2). With fewer than m others, it
//! never waits. (Bertogna and Cirinei, RTSS 2007, with curves.)

use crate::bound::{Bound, Method, NoBound};
use crate::demand::Demand;
use crate::window::{MOST_JOBS, least, sum};
use punctual_model::Duration;

/// The bound on one processor.
pub(crate) fn uniprocessor(demand: &Demand<'_>) -> Result<Bound, NoBound> {
    demand.check()?;
    let (arrivals, late) = (&demand.task().arrivals, demand.task().jitter.ns());
    let mut worst: Option<(u64, u64, u64)> = None;
    let mut window = 0;
    for job in 1..=MOST_JOBS + 1 {
        if job > MOST_JOBS {
            return Err(demand.endless());
        }
        let own = demand.own(job);
        window = least(window, |span| {
            let others = demand.others.iter().map(|&other| demand.other(other, span));
            sum(others.chain([own, demand.interrupts(span)]))
        })
        .map_err(|_| demand.endless())?;
        let response = window.saturating_sub(arrivals.earlier(job, late));
        if worst.is_none_or(|(_, _, greatest)| response > greatest) {
            worst = Some((job, window, response));
        }
        if window <= arrivals.span(job + 1) {
            break;
        }
    }
    let (job, window, response) = worst.ok_or_else(|| demand.endless())?;
    Ok(Bound {
        response: Duration::from_ns(response) + demand.task().jitter,
        method: Method::FixedPriority,
        parts: demand.parts(job, window, |other| demand.other(other, window)),
        earlier: Duration::from_ns(arrivals.earlier(job, late)),
        job,
    })
}

/// The bound on several processors.
pub(crate) fn global(demand: &Demand<'_>) -> Result<Bound, NoBound> {
    demand.check()?;
    let task = demand.task();
    let processors = task.processors.len() as u64;
    let cost = task.cost(1).ok_or(NoBound::Cost(demand.me))?;
    let window_of = |own: Option<u64>| {
        least(0, |span| {
            let busy = own?.checked_add(demand.interrupts(span)?)?;
            let others: Option<Vec<u64>> =
                demand.others.iter().map(|&other| demand.other(other, span)).collect();
            busy.checked_add(waiting(&others?, busy.saturating_sub(cost), processors))
        })
    };
    let own = demand.own(1);
    let window = window_of(own).map_err(|_| demand.endless())?;
    let share = |other, span: u64| Some(demand.other(other, span)?.min(span.saturating_sub(cost) + 1));
    let overlaps = |window: u64| window > task.arrivals.span(2);
    if overlaps(window) {
        let awake = window_of(own.and_then(|own| own.checked_sub(task.suspension.ns())));
        return Err(match awake.is_ok_and(|window| !overlaps(window)) {
            true => NoBound::Suspension,
            false => NoBound::Overlap,
        });
    }
    let mut parts = demand.parts(1, window, |other| Some(share(other, window)? / processors));
    // Each share is rounded down by itself; what is missing belongs to the sum.
    let total: u64 = parts.iter().map(|part| part.duration.ns()).sum();
    let response = Duration::from_ns(window) + task.jitter;
    if let Some(part) = parts.iter_mut().find(|part| matches!(part.cause, crate::bound::Cause::Task(_))) {
        part.duration += response.saturating_sub(Duration::from_ns(total));
    }
    Ok(Bound { response, method: Method::GlobalFixedPriority, parts, earlier: Duration::ZERO, job: 1 })
}

/// How long a job waits while others take up to these times on all `processors` at once: the least x with
/// ⌊Σ min(others, x + extra + 1) / m⌋ ≤ x, where `extra` is what takes time beside the job's cost and x.
///
/// The sum is concave in x and not negative at 0, so that all x from the least one on satisfy this.
fn waiting(others: &[u64], extra: u64, processors: u64) -> u64 {
    if (others.len() as u64) < processors {
        return 0;
    }
    let suffices = |x: u64| {
        let most = x.saturating_add(extra).saturating_add(1);
        let sum: u128 = others.iter().map(|&other| u128::from(other.min(most))).sum();
        sum / u128::from(processors) <= u128::from(x)
    };
    let (mut below, mut above) = (0, others.iter().fold(0u64, |sum, &other| sum.saturating_add(other)));
    while below < above {
        let middle = below + (above - below) / 2;
        if suffices(middle) { above = middle } else { below = middle + 1 }
    }
    below
}
