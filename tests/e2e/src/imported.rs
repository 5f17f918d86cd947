//! What another tracer has recorded, imported, beside our own recording of the same threads.

use crate::model::{only_task, primary};
use crate::run::{punctual, run};
use crate::{Result, ensure, in_context, timing};
use punctual_model::{Stream, Task, TimingModel};
use serde_json::Value;
use std::path::Path;

/// Imports `trace` into `folder`; its models must be those of the recording `own` of three periodic tasks.
pub fn has_models_of(own: &Path, trace: &Path, folder: &Path) -> Result {
    let mut import = punctual(["import", "-o"]);
    import.arg(folder).arg(trace);
    let ended = run(import)?;
    ended.expect_code(0)?;
    let (ours, theirs) = (model(own)?, model(folder)?);
    ensure!(theirs.clock == ours.clock, "{} and {}", theirs.clock, ours.clock);
    for name in ["task-0", "task-1", "task-2"] {
        in_context(&format!("{name}, {}", ended.all()), compare(&ours, &theirs, name))?;
    }
    is_judged_as(trace, folder)
}

/// A trace is judged as its import is.
fn is_judged_as(trace: &Path, folder: &Path) -> Result {
    let contract = folder.with_extension("contract.toml");
    let mut agree = punctual(["contract", "--quiet", "--margin", "0%", "-o"]);
    agree.arg(&contract).arg(folder);
    run(agree)?.expect_code(0)?;
    let judged = |input: &Path| -> Result<Value> {
        let mut check = punctual(["check", "--json"]);
        check.arg(&contract).arg(input);
        let ended = run(check)?;
        let verdict: Value = serde_json::from_str(&ended.stdout)?;
        ensure!(verdict["inputs"][0]["tasks"][0]["jobs"].as_u64() > Some(0), "{}", ended.all());
        Ok(verdict["inputs"][0]["tasks"].clone())
    };
    let (of_trace, of_import) = (judged(trace)?, judged(folder)?);
    ensure!(of_trace == of_import, "{of_trace:#}\nand {of_import:#}");
    Ok(())
}

pub fn model(folder: &Path) -> Result<TimingModel> {
    let mut replay = punctual(["replay", "-q", "--json"]);
    replay.arg(folder);
    let ended = run(replay)?;
    ended.expect_code(0)?;
    Ok(TimingModel::from_json(&ended.stdout)?)
}

/// The same separator, period, process and priority; and as many jobs, but for those at either end.
fn compare(ours: &TimingModel, theirs: &TimingModel, name: &str) -> Result {
    let (our_task, their_task) = (only_task(ours, name)?, only_task(theirs, name)?);
    let (our, their) = (primary(our_task)?, primary(their_task)?);
    let what = |task: &Task| (task.pid, task.tid, task.policy, task.priority);
    ensure!(what(our_task) == what(their_task), "{:?} and {:?}", what(our_task), what(their_task));
    ensure!(our.separator.key() == their.separator.key(), "{} and {}", our.separator, their.separator);
    timing(compare_arrivals(our, their))
}

fn compare_arrivals(our: &Stream, their: &Stream) -> Result {
    let period = |stream: &Stream| stream.arrival.periodic.as_ref().map(|it| it.period_ns.ns());
    let (one, other) = (period(our).unwrap_or(0), period(their).unwrap_or(0));
    ensure!(one > 0 && one.abs_diff(other) <= one / 100, "periods {one} ns and {other} ns");
    ensure!(our.jobs.abs_diff(their.jobs) <= 3 + our.jobs / 50, "{} and {} jobs", our.jobs, their.jobs);
    Ok(())
}
