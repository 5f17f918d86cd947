//! Request-bound functions: how much processor time the jobs that a task releases in any interval of length Δ
//! can demand. (papers: LiME, Section VI-A.)
//!
//! Each is an upper bound, from a scalar or a curve for arrivals and for costs; later ones are tighter.
//! `None` if the demand is unbounded (jobs may coincide without limit), no cost is known, or the bound
//! exceeds `u64::MAX` ns.

use crate::arrival::{Curve, Sporadic};
use crate::threads::Execution;
use crate::time::Duration;

/// ⌈Δ/T⌉ · C: from the least separation and the greatest cost.
pub fn sporadic_scalar(sporadic: &Sporadic, execution: &Execution, span: Duration) -> Option<Duration> {
    times(jobs_of_sporadic(sporadic, span)?, execution)
}

/// WCET(⌈Δ/T⌉): from the least separation and the WCET curve.
pub fn sporadic_wcet(sporadic: &Sporadic, execution: &Execution, span: Duration) -> Option<Duration> {
    execution.wcet(jobs_of_sporadic(sporadic, span)?)
}

/// η⁺(Δ) · C: from the arrival curve and the greatest cost.
pub fn curve_scalar(curve: &Curve, execution: &Execution, span: Duration) -> Option<Duration> {
    times(curve.eta_max(span)?, execution)
}

/// WCET(η⁺(Δ)): from both curves.
pub fn curve_wcet(curve: &Curve, execution: &Execution, span: Duration) -> Option<Duration> {
    execution.wcet(curve.eta_max(span)?)
}

fn jobs_of_sporadic(sporadic: &Sporadic, span: Duration) -> Option<u64> {
    match (span.ns(), sporadic.min_separation_ns.ns()) {
        (0, _) => Some(0),
        (_, 0) => None,
        (span, separation) => Some(span.div_ceil(separation)),
    }
}

fn times(jobs: u64, execution: &Execution) -> Option<Duration> {
    match jobs {
        0 => Some(Duration::ZERO),
        _ => Some(Duration::from_ns(execution.wcet(1)?.ns().checked_mul(jobs)?)),
    }
}
