//! Periods of disturbed programs, which skip activations or are stopped in a sleep.

use crate::model::{only_task, primary, tasks};
use crate::run::{Running, children, directory, punctual, sleeps, wait_until, workload};
use crate::truth::{disturb, recorded, skipped_by_arrivals, wrong_period, wrong_slips};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::{PeriodicOn, Policy};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::Duration;

/// Above the priority of all workloads.
pub const ALONE: &[(&str, Test)] = &[("periods::cyclictest_skips", cyclictest)];

pub const ALL: &[(&str, Test)] = &[
    ("periods::stopped_early_for_less_than_a_period", || stopped(50, Duration::from_millis(2))),
    ("periods::stopped_early_for_long", || stopped(50, Duration::from_millis(150))),
    ("periods::stopped_late_for_less_than_a_period", || stopped(250, Duration::from_millis(2))),
    ("periods::stopped_late_for_long", || stopped(250, Duration::from_millis(150))),
];

const MS: u64 = 1_000_000;

/// Linux's own latency test skips activations that are over when it wakes up: it adds intervals to the time
/// of the next one until that is in the future.
fn cyclictest() -> Result<Outcome> {
    if Command::new("cyclictest").arg("--help").output().is_err() {
        return skip("there is no cyclictest here (Debian: rt-tests)");
    }
    let directory = directory()?;
    // Each burst hides at least two activations.
    let disturbing = disturb(90, 3_000..8_000, 200_000)?;
    let words = ["cyclictest", "-q", "-t1", "-p80", "-i1000", "-D2"];
    let replayed = recorded(directory.path(), &words, "cyclictest")?;
    drop(disturbing);
    let mut fifo = tasks(&replayed.model, "cyclictest");
    fifo.retain(|task| task.policy == Policy::Fifo && task.primary.is_some());
    let [task] = fifo[..] else { return fail(format!("{} tasks of cyclictest's thread", fifo.len())) };
    let stream = primary(task)?;
    let skipped = skipped_by_arrivals(replayed.jobs(task), MS);
    let Some(skipped) = skipped else { return fail("no arrivals are listed") };
    ensure!(skipped > 0, "nothing was skipped");
    // Arrivals are known, so period and slips are exact whatever happened to the machine.
    wrong_period(stream, MS).or_else(|| wrong_slips(stream, skipped)).map_or(Ok(Outcome::Completed), fail)
}

/// A process is stopped and continued once, while its thread sleeps until a time, after this many sleeps.
fn stopped(after: u64, stays: Duration) -> Result<Outcome> {
    const PERIOD_NS: u64 = 5 * MS;
    let directory = directory()?;
    let file = directory.path().join("stopped.timing.json");
    let mut extract = punctual(["extract", "--quiet", "-o"]);
    extract.arg(&file).arg("--").arg(workload("periodic")).args(["--for", "2", "5000"]);
    let observer = Running::start(extract)?;
    let workload = || children(observer.pid()).into_iter().find(|pid| sleeps(*pid, "task-0").is_some());
    let slept = || workload().and_then(|pid| sleeps(pid, "task-0"));
    wait_until("the workload to sleep", || slept().is_some_and(|sleeps| sleeps >= after))?;
    let pid = workload().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let Some(pid) = pid else { return fail("the workload has ended") };
    kill_process(pid, Signal::STOP)?;
    // How long it is stopped is the point of the test.
    std::thread::sleep(stays);
    kill_process(pid, Signal::CONT)?;
    let ended = observer.end()?;
    ended.expect_code(0)?;
    let model = crate::model::read(&file)?;
    let stream = primary(only_task(&model, "task-0")?)?;
    let on = stream.arrival.periodic.as_ref().map(|periodic| periodic.on);
    ensure!(on == Some(PeriodicOn::Arrival), "its arrivals are known, but the period is measured on {on:?}");
    wrong_period(stream, PERIOD_NS).or_else(|| wrong_slips(stream, 0)).map_or(Ok(Outcome::Completed), fail)
}
