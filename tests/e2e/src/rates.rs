//! Models and contracts of threads with several rates, bursts, and rates and phases that change.

use crate::model::{describe, only_task, primary};
use crate::run::{directory, punctual, workload};
use crate::{Outcome, Result, Test, ensure, fail};
use punctual_model::{Mode, TimingModel};
use punctual_test_support::run;
use std::path::Path;

/// Its threads have real-time priorities.
pub const ALONE: &[(&str, Test)] =
    &[("rates::threads_with_several_rates", several), ("rates::timers_of_event_loops", loops)];

const MS: u64 = 1_000_000;

/// Their arrivals are known, so however late the machine released them, their rates are exact.
fn several() -> Result<Outcome> {
    let directory = directory()?;
    let file = |name: &str| directory.path().join(name);
    let model = observed("rates", &file("first.json"))?;
    for (thread, expected) in [
        ("two", &[&[(5, 1), (7, 1)][..]][..]),
        ("changes", &[&[(5, 1)], &[(8, 1)]]),
        ("bursts", &[&[(20, 4)]]),
        ("jumps", &[&[(10, 1)], &[(10, 1)]]),
        ("one", &[]),
    ] {
        let found = modes(&model, thread)?;
        let in_ns = |mode: &&[(u64, u64)]| mode.iter().map(|(ms, jobs)| (ms * MS, *jobs)).collect();
        let wanted: Vec<Vec<(u64, u64)>> = expected.iter().map(in_ns).collect();
        if found != wanted {
            return fail(format!("{thread} has {found:?} instead of {wanted:?}: {}", describe(&model)));
        }
    }
    let one = primary(only_task(&model, "one")?)?.arrival.periodic.as_ref().map(|it| it.period_ns.ns());
    ensure!(one == Some(10 * MS), "the period of `one` is {one:?}");
    // A contract of them has the same, and the run keeps to it.
    let contract = file("rates.toml");
    let mut agree = punctual(["contract", "--margin", "0%", "-o"]);
    agree.arg(&contract).arg(file("first.json"));
    run(agree)?.expect_code(0)?;
    let text = std::fs::read_to_string(&contract).map_err(|error| error.to_string());
    let text = text.or_else(fail)?;
    for (thread, term) in
        [("two", "period = [\"5ms\", \"7ms\"]"), ("bursts", "burst = 4"), ("changes", "task.mode")]
    {
        // The contract of a thread that was more than half a period late may have separations instead.
        ensure!(text.contains(term) || was_late(&model, thread)?, "no {term}: {text}");
    }
    let mut check = punctual(["check"]);
    check.arg(&contract).arg(file("first.json"));
    run(check)?.expect_code(0)?;
    Ok(Outcome::Completed)
}

/// The kernel shows which of their timers expired, however long one had to wait for another's job; and a
/// recording has it, too.
fn loops() -> Result<Outcome> {
    let directory = directory()?;
    let file = |name: &str| directory.path().join(name);
    let recording = file("recording");
    let mut record = punctual(["record", "--quiet", "-o"]);
    record.arg(&recording).arg("--").arg(workload("loops"));
    run(record)?.expect_code(0)?;
    let mut replay = punctual(["replay", "--quiet", "-o"]);
    replay.arg(file("replayed.json")).arg(&recording);
    run(replay)?.expect_code(0)?;
    let models = [observed("loops", &file("live.json"))?, crate::model::read(&file("replayed.json"))?];
    for (thread, expected) in [("epolled", &[5, 10, 20][..]), ("polled", &[7, 11, 13])] {
        let wanted: Vec<(u64, u64)> = expected.iter().map(|ms| (ms * MS, 1)).collect();
        for model in &models {
            let found = modes(model, thread)?;
            let is_named = found == [wanted.clone()];
            ensure!(is_named, "{thread} has {found:?} instead of {wanted:?}: {}", describe(model));
        }
    }
    Ok(Outcome::Completed)
}

fn observed(program: &str, file: &Path) -> Result<TimingModel> {
    let mut extract = punctual(["extract", "--quiet", "-o"]);
    extract.arg(file).arg("--").arg(workload(program));
    run(extract)?.expect_code(0)?;
    crate::model::read(file)
}

fn was_late(model: &TimingModel, thread: &str) -> Result<bool> {
    let is_late = |it: &punctual_model::Source| it.jitter_ns.ns() * 2 > it.period_ns.ns();
    let modes = &primary(only_task(model, thread)?)?.arrival.modes;
    Ok(modes.iter().flat_map(|mode| &mode.sources).any(is_late))
}

/// Period in nanoseconds and jobs of each source, by mode.
fn modes(model: &TimingModel, thread: &str) -> Result<Vec<Vec<(u64, u64)>>> {
    let of = |mode: &Mode| {
        let source =
            |it: &punctual_model::Source| (it.period_ns.ns(), it.burst.map_or(1, |burst| burst.jobs));
        mode.sources.iter().map(source).collect()
    };
    Ok(primary(only_task(model, thread)?)?.arrival.modes.iter().map(of).collect())
}
