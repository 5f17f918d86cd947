//! Bounds as JSON, as `punctual latency --json` prints them (docs/latency.md).

use super::Threshold;
use crate::analysed::{Analysed, has_latency};
use punctual_latency::{Bound, Bounds, Cause, InterruptModel, Outcome, Part};
use punctual_model::Duration;
use punctual_model::latency::{
    Interrupt, InterruptSource, Measured, SchedulingLatency, Timers, Variable, Wakeup,
};
use serde_json::{Value, json};

/// The bounds of all processors, and whether the threshold of the measurement was reached, if it had one.
pub fn json(section: &SchedulingLatency, threshold: Option<&Threshold>) -> String {
    let processors: Vec<Value> = Analysed::all(section).iter().map(processor).collect();
    let document = json!({
        "kernel": section.kernel,
        "preemption": section.preemption,
        "threshold": threshold.map(Threshold::json),
        "rules": rules(section),
        "processors": processors,
    });
    format!("{document:#}\n")
}

/// What monitors of the kernel said of the rules that the bound rests on.
fn rules(section: &SchedulingLatency) -> Value {
    let watching = section.monitors.iter().filter(|it| !it.watched_ns.is_zero());
    let unwatched = super::unwatched_rules(section).into_iter().map(|rule| format!("R{rule}"));
    json!({
        "watched": watching.collect::<Vec<_>>(),
        "unwatched": unwatched.collect::<Vec<_>>(),
        "violations": section.monitors.iter().map(|it| it.violations).fold(0, u64::saturating_add),
    })
}

fn processor(analysis: &Analysed<'_>) -> Value {
    let cpu = analysis.processor;
    let mut object = json!({
        "cpu": cpu.cpu,
        "observed_ns": cpu.observed_ns.ns(),
        "skipped_events": cpu.skipped_events,
        "lost_records": cpu.lost_records,
        "went_offline": cpu.went_offline,
        "bound_ns": analysis.bound().map(Duration::ns),
        "measured_max_ns": analysis.measured_max().map(Duration::ns),
        "measured_at_least": analysis.is_measured_at_least(),
        "timers": cpu.timers.as_ref().map(timers),
        "interrupts": cpu.interrupts.iter().map(interrupt).collect::<Vec<_>>(),
        "measured": cpu.measured.iter().map(|it| measured(it, cpu.variables.is_some())).collect::<Vec<_>>(),
    });
    let more = match &analysis.bounds {
        Ok(bounds) => json!({
            "interference_free_ns": bounds.interference_free().ns(),
            "at_least": bounds.is_at_least(),
            "largest": part(&bounds.largest()),
            "exceeded": bounds.exceeded().next().is_some(),
            "unreliable": super::unreliable_on(analysis),
            "bounds": InterruptModel::ALL.map(|model| bound(bounds, model)),
        }),
        Err(reason) => json!({"no_bound": reason.to_string()}),
    };
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

fn timers(timers: &Timers) -> Value {
    let mean = timers.total_ns.ns().checked_div(timers.expired);
    let Variable { max_ns, at_least, culprit } = &timers.lateness;
    json!({
        "expired": timers.expired,
        "mean_ns": mean,
        "max_ns": max_ns.ns(),
        "at_least": at_least,
        "at_ns": culprit.as_ref().map(|culprit| culprit.at_ns.ns()),
        "interrupted": culprit.as_ref().map(|culprit| &culprit.thread),
    })
}

fn interrupt(interrupt: &Interrupt) -> Value {
    json!({
        "source": interrupt.source,
        "count": interrupt.curves.count,
        "wcet_ns": interrupt.curves.wcet().ns(),
        "min_separation_ns": interrupt.curves.min_separation_ns.map(Duration::ns),
        "at_least": interrupt.at_least,
    })
}

fn measured(measured: &Measured, has_variables: bool) -> Value {
    json!({
        "thread": measured.thread,
        "wakeups": measured.wakeups,
        "unseen": measured.unmeasured,
        "mean_ns": measured.mean().map(Duration::ns),
        "max_ns": has_latency(measured).then(|| measured.max_ns.ns()),
        "at_least": measured.is_at_least(),
        "bounded_max_ns": measured.bounded_max_ns.map(Duration::ns),
        "from_due_max_ns": measured.from_due_max_ns.map(Duration::ns),
        "worst": measured.worst.iter().map(|it| wakeup(it, has_variables)).collect::<Vec<_>>(),
    })
}

/// As in the timing model; without what ran, why.
fn wakeup(wakeup: &Wakeup, has_variables: bool) -> Value {
    let mut value = json!(wakeup);
    if let Some(why) = super::unknown_ran(wakeup).filter(|_| !has_variables) {
        value["ran_unknown"] = why.into();
    }
    value
}

fn bound(bounds: &Bounds<'_>, model: InterruptModel) -> Value {
    let Bound { outcome, windows, .. } = bounds.under(model);
    let latency = match outcome {
        Outcome::Converged(latency) => Some(latency.ns()),
        Outcome::DoesNotConverge => None,
    };
    let parts: Vec<Value> = bounds.parts(model).iter().map(part).collect();
    let windows: Vec<u64> = windows.iter().map(|window| window.ns()).collect();
    json!({"model": model.field(), "bound_ns": latency, "parts": parts, "windows_ns": windows})
}

fn part(part: &Part<'_>) -> Value {
    let duration_ns = part.duration.ns();
    match part.cause {
        Cause::Variable(symbol, variable) => {
            json!({"variable": symbol, "duration_ns": duration_ns, "culprit": variable.culprit})
        }
        Cause::Interrupt(interrupt) => {
            let InterruptSource { kind, number, name } = &interrupt.source;
            json!({
                "interrupt": {"kind": kind, "number": number, "name": name},
                "duration_ns": duration_ns,
            })
        }
    }
}
