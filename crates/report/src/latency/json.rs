//! Bounds as JSON, as `punctual latency --json` prints them (docs/latency.md).

use super::Analysed;
use punctual_latency::{Bound, Bounds, Cause, InterruptModel, Outcome, Part};
use punctual_model::Duration;
use punctual_model::latency::{InterruptSource, SchedulingLatency};
use serde_json::{Value, json};

/// The bounds of all processors.
pub fn json(section: &SchedulingLatency) -> String {
    let processors: Vec<Value> = Analysed::all(section).iter().map(processor).collect();
    let document = json!({
        "kernel": section.kernel,
        "preemption": section.preemption,
        "processors": processors,
    });
    format!("{document:#}\n")
}

fn processor(analysis: &Analysed<'_>) -> Value {
    let measured = analysis.measured_max().map(Duration::ns);
    let bounds = match &analysis.bounds {
        Ok(bounds) => bounds,
        Err(reason) => {
            let (cpu, reason) = (analysis.processor.cpu, reason.to_string());
            return json!({"cpu": cpu, "bound_ns": null, "no_bound": reason, "measured_max_ns": measured});
        }
    };
    let all: Vec<Value> = InterruptModel::ALL.iter().map(|&model| bound(bounds, model)).collect();
    json!({
        "cpu": analysis.processor.cpu,
        "interference_free_ns": bounds.interference_free().ns(),
        "bound_ns": analysis.bound().map(Duration::ns),
        "at_least": bounds.is_at_least(),
        "largest": part(&bounds.largest()),
        "measured_max_ns": measured,
        "exceeded": bounds.exceeded().next().is_some(),
        "bounds": all,
    })
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
