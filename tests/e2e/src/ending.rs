//! Models are written however an observation ends.

use crate::model::{only_task, primary, read, tasks};
use crate::run::{Running, children, directory, punctual, run, sleeps, wait_until, workload};
use crate::{Outcome, Result, Test, ensure, fail, timing};
use punctual_model::EndedBy;
use rustix::process::Signal;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("ending::by_time", by_time),
    ("ending::by_sigint", by_sigint),
    ("ending::by_sigterm", by_sigterm),
    ("ending::by_the_end_of_the_command", by_command),
    ("ending::a_process_that_ends_meanwhile", process_ends),
    ("ending::two_at_once", two_at_once),
];

/// Three threads with periods of 2, 5 and 10 ms.
fn periodic(seconds: &str) -> Command {
    let mut command = Command::new(workload("periodic"));
    command.args(["--for", seconds, "2000", "5000", "10000"]);
    command
}

fn check_periodic(model: &punctual_model::TimingModel, ended_by: EndedBy) -> Result {
    for (number, period) in [2_000_000, 5_000_000, 10_000_000].into_iter().enumerate() {
        let task = only_task(model, &format!("task-{number}"))?;
        let found = primary(task)?.arrival.periodic.as_ref().map(|periodic| periodic.period_ns.ns());
        timing(if found == Some(period) {
            Ok(())
        } else {
            fail(format!("{} has period {found:?}", task.name))
        })?;
        ensure!(
            task.ended_by == ended_by,
            "{} was ended by {:?}, expected {ended_by:?}",
            task.name,
            task.ended_by
        );
    }
    Ok(())
}

fn by_time() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("time.timing.json");
    let workload = Running::start(periodic("60"))?;
    wait_until("the workload to run", || sleeps(workload.pid(), "task-2").is_some_and(|sleeps| sleeps > 5))?;
    let mut extract = punctual(["extract", "--for", "1s", "-o"]);
    extract.arg(&file).args(["--pid", &workload.pid().to_string()]);
    let ended = run(extract)?;
    ended.expect_code(0)?;
    check_periodic(&read(&file)?, EndedBy::ObservationEnd)?;
    ensure!(sleeps(workload.pid(), "task-0").is_some(), "an observed process was ended with the observation");
    Ok(Outcome::Completed)
}

fn by_signal(signal: Signal) -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("signal.timing.json");
    let mut extract = punctual(["extract", "--for", "120s", "-o"]);
    extract.arg(&file).arg("--").arg(workload("periodic")).args(["--for", "100", "2000", "5000", "10000"]);
    let observer = Running::start(extract)?;
    let slept = || children(observer.pid()).into_iter().find_map(|pid| sleeps(pid, "task-2"));
    wait_until("the workload to run", || slept().is_some_and(|sleeps| sleeps > 50))?;
    observer.signal(signal)?;
    let ended = observer.end()?;
    ended.expect_code(0)?;
    if !file.exists() {
        return fail(format!("no model was written: {}", ended.all()));
    }
    let model = read(&file)?;
    let task = only_task(&model, "task-2")?;
    // Everything observed before the signal, even if it was not processed yet.
    ensure!(primary(task)?.jobs >= 45, "{} jobs, there were more than 50", primary(task)?.jobs);
    Ok(Outcome::Completed)
}

fn by_sigint() -> Result<Outcome> {
    by_signal(Signal::INT)
}

fn by_sigterm() -> Result<Outcome> {
    by_signal(Signal::TERM)
}

fn by_command() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("command.timing.json");
    let mut extract = punctual(["extract", "--for", "120s", "-o"]);
    extract.arg(&file).arg("--").arg(workload("periodic")).args(["--for", "1", "2000", "5000", "10000"]);
    run(extract)?.expect_code(0)?;
    check_periodic(&read(&file)?, EndedBy::Exit)?;
    Ok(Outcome::Completed)
}

fn process_ends() -> Result<Outcome> {
    let directory = directory()?;
    let (file, folder) = (directory.path().join("process.timing.json"), directory.path().join("recording"));
    let workload = Running::start(periodic("60"))?;
    let mut extract = punctual(["extract", "--for", "120s", "-o"]);
    extract.arg(&file).arg("--record").arg(&folder).args(["--pid", &workload.pid().to_string()]);
    let observer = Running::start(extract)?;
    let is_observed = || std::fs::metadata(folder.join("stream_0")).is_ok_and(|stream| stream.len() > 0);
    wait_until("the first records", is_observed)?;
    workload.signal(Signal::TERM)?;
    workload.end()?.expect_code(0)?;
    // It may have ended by itself.
    let _ = observer.signal(Signal::INT);
    observer.end()?.expect_code(0)?;
    check_periodic(&read(&file)?, EndedBy::Exit)?;
    Ok(Outcome::Completed)
}

fn two_at_once() -> Result<Outcome> {
    let directory = directory()?;
    let workload = Running::start(periodic("60"))?;
    wait_until("the workload to run", || sleeps(workload.pid(), "task-2").is_some_and(|sleeps| sleeps > 5))?;
    let files = ["one.timing.json", "two.timing.json"].map(|name| directory.path().join(name));
    let mut observers = Vec::new();
    for file in &files {
        let mut extract = punctual(["extract", "--for", "2s", "-o"]);
        extract.arg(file).args(["--pid", &workload.pid().to_string()]);
        observers.push(Running::start(extract)?);
    }
    for observer in observers {
        observer.end()?.expect_code(0)?;
    }
    for file in &files {
        let model = read(file)?;
        check_periodic(&model, EndedBy::ObservationEnd)?;
        ensure!(tasks(&model, "punctual").is_empty(), "one observer observed the other");
    }
    Ok(Outcome::Completed)
}
