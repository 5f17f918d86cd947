//! `punctual doctor`

use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_observe::{Check, Verdict};
use punctual_report::{Item, Standing, checklist};
use serde_json::json;

pub fn run(as_json: bool) -> Result<(), Failure> {
    let checks = punctual_workflow::doctor::doctor();
    let missing: Vec<&str> =
        checks.iter().filter(|check| check.ok == Verdict::Missing).map(|check| check.name).collect();
    if as_json {
        let list: Vec<serde_json::Value> = checks.iter().map(value).collect();
        print(&format!("{:#}\n", json!({"extraction": missing.is_empty(), "checks": list})))?;
    } else {
        let items: Vec<Item> = checks.iter().map(item).collect();
        let verdict = if missing.is_empty() { "\nExtraction works here.\n" } else { "" };
        print(&(checklist(&items, &terminal::page()) + verdict))?;
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(
            Code::CannotHere,
            format!("extraction does not work here: {} missing", missing.join(", ")),
        )),
    }
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
