//! Overload: losses are reported, and memory is bounded.

use crate::model::{primary, read, tasks};
use crate::run::{Running, children, directory, observe, punctual, sleeps, wait_until, workload};
use crate::{Outcome, Result, Test, ensure};
use punctual_model::{EndedBy, TimingModel};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;

pub const ALL: &[(&str, Test)] = &[
    ("loss::a_stopped_reader_counts_its_losses", stopped_reader),
    ("loss::new_descriptors_without_end", new_descriptors),
    ("loss::new_pipes_under_one_descriptor", new_pipes),
    ("loss::new_addresses_without_end", new_addresses),
];

/// How often one of the two threads must sleep while the reader is stopped: far more records than its buffer
/// holds.
const SLEEPS: u64 = 50_000;
const BUFFER: &str = "64KiB";

fn stopped_reader() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("loss.timing.json");
    let mut command = punctual(["extract", "--for", "120s", "--buffer", BUFFER, "-o"]);
    command.arg(&file).args(["--", &workload("pingpong"), "--for", "100"]);
    let reader = Running::start(command)?;

    let workload = Cell::new(0);
    let slept = || {
        children(reader.pid()).into_iter().find_map(|pid| sleeps(pid, "ping").inspect(|_| workload.set(pid)))
    };
    wait_until("the workload to run", || slept().is_some_and(|sleeps| sleeps > 1000))?;
    reader.signal(Signal::STOP)?;
    let so_far = slept().unwrap_or(0);
    let more = wait_until("more records than fit", || slept().is_some_and(|sleeps| sleeps > so_far + SLEEPS));
    reader.signal(Signal::CONT)?;
    more?;
    let since = slept().unwrap_or(0);
    wait_until("some records after the gap", || slept().is_some_and(|sleeps| sleeps > since + 1000))?;
    // The observation ends with it.
    if let Some(pid) = i32::try_from(workload.get()).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM)?;
    }
    let ended = reader.end()?;
    ensure!(matches!(ended.code, Some(0 | 1)), "{}", ended.all());
    ensure!(file.exists(), "no model was written: {}", ended.all());
    let printed = format!("{}{}", ended.stdout, ended.stderr).to_lowercase();
    ensure!(printed.contains("lost"), "records were lost and the output does not say so: {}", ended.all());
    let rounds = ended.report()?["rounds"].as_u64().unwrap_or(0);
    check_gap(&read(&file)?, rounds)?;
    Ok(Outcome::Completed)
}

fn check_gap(model: &TimingModel, rounds: u64) -> Result {
    ensure!(crate::model::threads(model).lost_records > 0, "no record was lost, which this test is about");
    let mut jobs = 0;
    for name in ["ping", "pong"] {
        let found = tasks(model, name);
        ensure!(found.len() >= 2, "{} tasks of {name}: a gap must end one and begin another", found.len());
        let losses = found.iter().filter(|task| task.ended_by == EndedBy::Loss).count();
        ensure!(losses > 0, "no task of {name} was ended by the loss");
        for pair in found.windows(2).filter(|pair| pair[0].ended_by == EndedBy::Loss) {
            let gap = pair[1].from_ns.since(pair[0].until_ns);
            for task in &found {
                let spans = task.from_ns <= pair[0].until_ns && pair[1].from_ns <= task.until_ns;
                ensure!(!spans || gap.ns() == 0, "a task of {name} spans the gap");
            }
        }
        jobs += found.iter().filter_map(|task| primary(task).ok()).map(|stream| stream.jobs).sum::<u64>();
    }
    ensure!(jobs < 2 * rounds, "{jobs} jobs in {} rounds of two threads, although records were lost", rounds);
    Ok(())
}

/// Observes a thread that never waits on the same object twice, in calls of `call`.
fn many(kind: &str, call: &str, capped: bool) -> Result<Outcome> {
    const JOBS: u64 = 4000;
    let observed = observe(&[], &[&workload("separators"), "--kind", kind, "--jobs", &JOBS.to_string()])?;
    let found = tasks(&observed.model, "many");
    let check = || -> Result {
        ensure!(!found.is_empty(), "no task of thread many");
        let streams: usize = found.iter().map(|task| task.streams.len()).max().unwrap_or(0);
        ensure!(streams < 1000, "{streams} streams: what is remembered of a task grows without bound");
        ensure!(found.iter().any(|task| task.separators_capped) == capped, "separators_capped is wrong");
        let of_call =
            found.iter().flat_map(|task| &task.streams).filter(|stream| stream.separator.call.name() == call);
        let releases: u64 = of_call.map(|stream| stream.releases).sum();
        if model_is_whole(&observed.model) {
            ensure!(
                (JOBS - 1..=JOBS).contains(&releases),
                "{releases} releases in all streams of {call}, there were {JOBS}"
            );
        }
        Ok(())
    };
    observed.explain(check())?;
    Ok(Outcome::Completed)
}

fn model_is_whole(model: &TimingModel) -> bool {
    crate::model::threads(model).lost_records == 0
}

fn new_descriptors() -> Result<Outcome> {
    many("fd", "read", true)
}

fn new_pipes() -> Result<Outcome> {
    many("pipe", "ppoll", false)
}

fn new_addresses() -> Result<Outcome> {
    many("address", "futex_wait", true)
}
