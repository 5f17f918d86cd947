//! The demonstration workload: found against configured timing.

use crate::drivers::is_rounded;
use crate::model::{describe, only_task, primary, read};
use crate::run::{run, tell_misses, workload};
use crate::shared::{self, DEMO, Observation};
use crate::{Failure, Outcome, Result, Test, ensure, fail, in_context, timing};
use punctual_model::{Choice, Stream, Task};
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub const ALL: &[(&str, Test)] = &[("demo::every_thread_as_configured", every_thread)];

/// By the shared observation; a repetition, by one of its own.
fn every_thread() -> Result<Outcome> {
    static IS_REPEATED: AtomicBool = AtomicBool::new(false);
    let observation = match IS_REPEATED.swap(true, Ordering::Relaxed) {
        false => DEMO.get()?,
        true => Arc::new(shared::demo()?),
    };
    every_thread_of(&observation).map_err(|failure| Failure { since: Some(observation.began()), ..failure })
}

fn every_thread_of(observation: &Observation) -> Result<Outcome> {
    let mut truth = Command::new(workload("demo"));
    truth.arg("--truth");
    let truth = run(truth)?.json()?;
    let Some(rows) = truth.as_array() else { return fail("the demonstration has no table") };
    ensure!(rows.len() >= 10, "{} threads, expected at least ten", rows.len());
    let model = read(&observation.model())?;
    tell_misses(&model, "demo");
    for row in rows {
        let name = row["thread"].as_str().unwrap_or_default();
        let checked = only_task(&model, name).and_then(|task| in_context(name, check(row, task)));
        let all = || format!("{}\n{}", describe(&model), observation.ended().all());
        checked
            .map_err(|failure| Failure { message: format!("{}\n{}", failure.message, all()), ..failure })?;
    }
    Ok(Outcome::Completed)
}

fn check(row: &Value, task: &Task) -> Result {
    let stream = primary(task)?;
    ensure!(
        row["call"] == stream.separator.call.name(),
        "primary separator {}, expected {}",
        stream.separator,
        row["call"]
    );
    let number = |field: &str| row[field].as_u64().unwrap_or(0);
    let wcet =
        stream.execution.as_ref().and_then(|execution| execution.wcet_ns.first()).map_or(0, |wcet| wcet.ns());
    ensure!(wcet >= number("cost_ns"), "WCET {wcet} ns, configured {} ns", number("cost_ns"));
    let suspended = stream.suspension.as_ref().map_or(0, |suspension| suspension.dynamic_ns.ns());
    // It sets the timer before it stops; on an undisturbed machine nothing compensates for that moment.
    ensure!(
        suspended * 100 >= number("suspension_ns") * 99,
        "suspended for {suspended} ns at most, configured {} ns",
        number("suspension_ns")
    );

    timing(check_arrivals(row, stream))
}

fn check_arrivals(row: &Value, stream: &Stream) -> Result {
    let number = |field: &str| row[field].as_u64().unwrap_or(0);
    let configured = number("period_ns");
    match row["kind"].as_str() {
        Some("periodic") => check_period(row, configured, stream),
        Some("drifting") => {
            let least =
                stream.arrival.sporadic.as_ref().map_or(0, |sporadic| sporadic.min_separation_ns.ns());
            // Windows make the separation of releases less certain.
            ensure!(
                least >= configured || stream.uncertain_releases > 0,
                "least separation {least} ns, it sleeps for {configured} ns"
            );
            Ok(())
        }
        Some("bursty") => {
            let burst = number("burst") as usize;
            let Some(curve) = &stream.arrival.curve else { return fail("no arrival curve") };
            let least: Vec<u64> = curve.delta_min_ns.iter().take(burst).map(|span| span.ns()).collect();
            let whole = least.len() == burst
                && least[burst - 1] > 0
                && least[..burst - 1].iter().all(|span| *span < configured / 2);
            ensure!(whole, "bursts of {burst}, but the arrival curve begins {least:?}");
            Ok(())
        }
        kind => fail(format!("the demonstration's table has a kind {kind:?}")),
    }
}

fn check_period(row: &Value, configured: u64, stream: &Stream) -> Result {
    let Some(periodic) = &stream.arrival.periodic else { return fail("no periodic model") };
    let found = periodic.period_ns.ns();
    match periodic.choice {
        Choice::Rounded => {
            let is_it = is_rounded(found, configured, stream);
            ensure!(is_it, "rounded period {found} ns, configured {configured} ns")
        }
        _ => ensure!(
            found.abs_diff(configured) * 100 <= configured,
            "period {found} ns, configured {configured} ns"
        ),
    }
    if let Some(exact) = row.get("period_exact") {
        let Some(fraction) = periodic.period_exact else {
            return fail("the period is no whole number of nanoseconds, but printed as one");
        };
        let same = exact["numerator"] == fraction.numerator && exact["denominator"] == fraction.denominator;
        ensure!(same, "exact period {}/{} ns, configured {exact}", fraction.numerator, fraction.denominator);
    }
    Ok(())
}
