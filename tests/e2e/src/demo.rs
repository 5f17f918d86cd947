//! The demonstration workload: found against configured timing.

use crate::model::{only_task, primary};
use crate::run::{observe, run, workload};
use crate::{Outcome, Result, Test, ensure, fail, in_context, timing};
use punctual_model::{Choice, Stream, Task};
use serde_json::Value;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[("demo::every_thread_as_configured", every_thread)];

fn every_thread() -> Result<Outcome> {
    let mut truth = Command::new(workload("demo"));
    truth.arg("--truth");
    let truth = run(truth)?.json()?;
    let Some(rows) = truth.as_array() else { return fail("the demonstration has no table") };
    ensure!(rows.len() >= 10, "{} threads, expected at least ten", rows.len());
    let observed = observe(&[], &[&workload("demo"), "--for", "5"])?;
    observed.explain(observed.ended.expect_code(0))?;
    for row in rows {
        let name = row["thread"].as_str().unwrap_or_default();
        let task = observed.explain(only_task(&observed.model, name))?;
        let checked = in_context(name, check(row, task));
        observed.explain(checked)?;
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
        Some("periodic") => check_period(row, configured, stream.arrival.periodic.as_ref()),
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

fn check_period(row: &Value, configured: u64, periodic: Option<&punctual_model::Periodic>) -> Result {
    let Some(periodic) = periodic else { return fail("no periodic model") };
    let found = periodic.period_ns.ns();
    match periodic.choice {
        Choice::Rounded => {
            ensure!(found == configured, "rounded period {found} ns, configured {configured} ns")
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
