//! A job that belongs to no task, as its thread's priority changed within it.

use super::judge::{sums_up, time_of};
use crate::run::{directory, punctual, run, workload};
use crate::{Outcome, Result, ensure, fail, skip};
use serde_json::Value;

/// The next jobs are late for that one, live and from a recording: nothing about them is unknown.
pub fn row() -> Result<Outcome> {
    let place = directory()?;
    let recording = place.path().join("recording").display().to_string();
    let program = workload("raised");
    for options in [&["--json", "--"][..], &["--json", "--keep", &recording, "--"]] {
        let ended = run(punctual([&["why"], options, &[&program]].concat()))?;
        ended.expect_code(0)?;
        let explained: Value = serde_json::from_str(&ended.stdout)?;
        let mut jobs = explained["jobs"].as_array().into_iter().flatten();
        let Some(first) = jobs.find(|job| job["phase"] == 1 && job["job"] == 0) else {
            return fail(format!("no first job of the raised thread: {explained:#}"));
        };
        sums_up(first)?;
        if time_of(first, "unknown") > 0 {
            return skip("the kernel hid a switch");
        }
        let backlog = &first["parts"][0];
        ensure!(backlog["kind"] == "backlog" && first["cause"] == "backlog", "{first:#}");
        ensure!(backlog["waited_for"]["role"] == "previous", "{first:#}");
        // It arrived 10 ms after one that took 35 ms.
        ensure!(time_of(first, "backlog") >= 25_000_000, "{first:#}");
    }
    Ok(Outcome::Completed)
}
