//! `make demo-tt`: from threads that are observed to a table that is dispatched, with jobs and a task that
//! are admitted meanwhile.

use crate::guests::daemon_path;
use crate::run::{binary, run, workload};
use crate::tt::unsuitable;
use crate::{Outcome, Result, Test, ensure, skip};
use std::path::Path;
use std::process::Command;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] =
    &[("tt::demonstration", demonstration::<false>), ("tt::sched_ext::demonstration", demonstration::<true>)];

fn demonstration<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    if !daemon_path().is_file() {
        return skip("punctuald is not built (make build)");
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workload = workload("periodic");
    let workloads = Path::new(&workload).parent().unwrap_or(Path::new("/"));
    let mut script = Command::new("bash");
    script.arg(repository.join("scripts/demo-tt")).env("SUDO", "");
    script.env("PUNCTUAL", binary()).env("PUNCTUALD", daemon_path()).env("WORKLOADS", workloads);
    script.env("DISPATCHER", if EXT { "sched-ext" } else { "user-space" });
    // On a busy machine, short jobs are over before they are bound.
    script.env("SLOW", "1");
    let ended = run(script)?;
    let all = ended.all();
    // A machine that delays threads shows costs for which there is no room.
    if all.contains("no table found") && !all.contains("== Dispatching it") {
        return skip("this machine disturbed the threads from which the table is made");
    }
    ended.expect_code(0)?;
    for part in [
        "The first job ran.",
        "The second job ran.",
        "slots of 1 ms are needed before the deadline",
        "the earliest deadline that would be accepted now is",
        if EXT { "dispatched by sched_ext" } else { "dispatched by user space" },
        "How late",
        "table.html",
    ] {
        ensure!(all.contains(part), "{part:?} is missing in {all}");
    }
    ensure!(!all.contains("This is not printed."), "what was refused ran: {all}");
    ensure!(!all.contains("wrong owner") && !all.contains("not recorded"), "{all}");
    Ok(Outcome::Completed)
}
