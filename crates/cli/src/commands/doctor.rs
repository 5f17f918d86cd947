//! `punctual doctor`

use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_observe::{Check, Verdict};
use punctual_report::{Item, Standing, checklist};
use punctual_workflow::doctor;
use serde_json::json;

pub fn run(pid: Option<u32>, as_json: bool) -> Result<(), Failure> {
    match pid {
        Some(pid) => {
            let checks = doctor::of_program(pid)?;
            let doubts = checks.iter().filter(|check| check.ok != Verdict::Works).count();
            let verdict = match doubts {
                0 => format!("\nNothing was seen that may make jobs of process {pid} late.\n"),
                1 => format!("\nOne thing may make jobs of process {pid} late.\n"),
                _ => format!("\n{doubts} things may make jobs of process {pid} late.\n"),
            };
            show(&checks, as_json, ("pid", json!(pid)), &verdict)
        }
        None => machine(as_json),
    }
}

fn machine(as_json: bool) -> Result<(), Failure> {
    let checks = doctor::doctor();
    let missing: Vec<&str> =
        checks.iter().filter(|check| check.ok == Verdict::Missing).map(|check| check.name).collect();
    let verdict = if missing.is_empty() { "\nExtraction works here.\n" } else { "" };
    show(&checks, as_json, ("extraction", json!(missing.is_empty())), verdict)?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(
            Code::CannotHere,
            format!("extraction does not work here: {} missing", missing.join(", ")),
        )),
    }
}

/// Prints checks: as JSON, with a member of their own, or as a list with a sentence below it.
fn show(
    checks: &[Check],
    as_json: bool,
    (key, about): (&str, serde_json::Value),
    verdict: &str,
) -> Result<(), Failure> {
    if as_json {
        let list: Vec<serde_json::Value> = checks.iter().map(value).collect();
        return print(&format!("{:#}\n", json!({key: about, "checks": list})));
    }
    let items: Vec<Item> = checks.iter().map(item).collect();
    print(&(checklist(&items, &terminal::page()) + verdict))
}

fn item(check: &Check) -> Item {
    Item {
        name: check.name.into(),
        standing: match check.ok {
            Verdict::Works => Standing::Works,
            Verdict::Degraded => Standing::Degraded,
            Verdict::Missing => Standing::Missing,
        },
        detail: check.detail.clone(),
        advice: check.advice.clone(),
        needed_for: check.needed_for.into(),
    }
}

fn value(check: &Check) -> serde_json::Value {
    let verdict = match check.ok {
        Verdict::Works => "works",
        Verdict::Degraded => "degraded",
        Verdict::Missing => "missing",
    };
    json!({
        "name": check.name, "verdict": verdict, "detail": check.detail, "advice": check.advice,
        "needed_for": check.needed_for,
    })
}
