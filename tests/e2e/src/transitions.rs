//! Task transitions: each task of a thread is reported, with its parameters and why it ended.

use crate::model::{only_task, primary, tasks};
use crate::run::{Observed, observe, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip, timing};
use punctual_model::EndedBy::{AffinityChange, Exec, Exit, PolicyChange, PriorityChange};
use punctual_model::Policy::{Fifo, Other};
use punctual_model::{EndedBy, Policy, Task};

pub const ALL: &[(&str, Test)] = &[
    ("transitions::policy", policy),
    ("transitions::priority", priority),
    ("transitions::affinity", affinity),
    ("transitions::none_without_a_change", same),
    ("transitions::exec", exec),
    ("transitions::none_on_rename", rename),
    ("transitions::children_and_grandchildren", fork),
    ("transitions::from_outside", outside),
    ("transitions::merged", merged),
    ("transitions::best_effort_threads_on_request", best_effort),
];

const JOBS: u64 = 20;

/// Observes one mode of the workload.
fn watch(options: &[&str], mode: &str) -> Result<Observed> {
    let jobs = JOBS.to_string();
    observe(options, &[&workload("transitions"), mode, "--jobs", &jobs])
}

/// Checks policy, priority and end of each task of thread `trans`.
fn expect(observed: &Observed, expected: &[(Policy, u32, EndedBy)]) -> Result<Outcome> {
    // A child has its parent's name at first.
    let tid = observed.ended.long_report()?["phases"][0]["tid"].as_u64();
    let found: Vec<&Task> =
        tasks(&observed.model, "trans").into_iter().filter(|task| Some(task.tid.into()) == tid).collect();
    let so_found: Vec<_> = found.iter().map(|task| (task.policy, task.priority, task.ended_by)).collect();
    observed.explain(if so_found == expected {
        Ok(())
    } else {
        fail(format!("expected {expected:?}, found {so_found:?}"))
    })?;
    for (phase, task) in found.iter().enumerate() {
        observed.explain(each(task, phase as u32))?;
    }
    Ok(Outcome::Completed)
}

fn each(task: &Task, phase: u32) -> Result {
    ensure!(task.phase == phase, "phase {}, expected {phase}", task.phase);
    jobs(task, JOBS)
}

fn jobs(task: &Task, did: u64) -> Result {
    let stream = primary(task)?;
    ensure!(stream.separator.call.name() == "clock_nanosleep", "primary separator {}", stream.separator);
    ensure!(
        (did - 2..=did).contains(&stream.jobs),
        "{} jobs in phase {}, there were {did}",
        stream.jobs,
        task.phase
    );
    let period = stream.arrival.periodic.as_ref().map(|periodic| periodic.period_ns.ns());
    timing(if period == Some(5_000_000) {
        Ok(())
    } else {
        fail(format!("period {period:?} in phase {}", task.phase))
    })
}

fn policy() -> Result<Outcome> {
    let observed = watch(&[], "policy")?;
    expect(&observed, &[(Fifo, 50, PolicyChange), (Other, 0, PolicyChange), (Fifo, 50, Exit)])
}

fn priority() -> Result<Outcome> {
    let observed = watch(&[], "priority")?;
    expect(
        &observed,
        &[
            (Fifo, 50, PriorityChange),
            (Fifo, 51, PriorityChange),
            (Fifo, 52, PriorityChange),
            (Fifo, 53, Exit),
        ],
    )
}

fn affinity() -> Result<Outcome> {
    if std::thread::available_parallelism()?.get() < 2 {
        return skip("needs two processors");
    }
    let observed = watch(&[], "affinity")?;
    expect(&observed, &[(Fifo, 50, AffinityChange), (Fifo, 50, AffinityChange), (Fifo, 50, Exit)])?;
    let processors: Vec<&str> =
        tasks(&observed.model, "trans").iter().map(|task| task.affinity.as_str()).collect();
    observed.explain(affinities(&processors))?;
    Ok(Outcome::Completed)
}

fn affinities(processors: &[&str]) -> Result {
    ensure!(processors[0] == processors[2] && processors[0] != processors[1], "affinities {processors:?}");
    ensure!(processors[1].parse::<u32>().is_ok(), "affinity {:?}, expected one processor", processors[1]);
    Ok(())
}

fn same() -> Result<Outcome> {
    let observed = watch(&[], "same")?;
    let task = observed.explain(only_task(&observed.model, "trans"))?;
    // Two phases of the workload, with a little time between them, are one task.
    let stream = observed.explain(primary(task))?;
    ensure!(
        (2 * JOBS - 2..=2 * JOBS).contains(&stream.jobs),
        "{} jobs, there were {}",
        stream.jobs,
        2 * JOBS
    );
    Ok(Outcome::Completed)
}

fn exec() -> Result<Outcome> {
    let observed = watch(&[], "exec")?;
    let first = observed.model.tasks().first().map(|task| task.tid);
    let found: Vec<&Task> = observed.model.tasks().iter().filter(|task| Some(task.tid) == first).collect();
    let ended: Vec<EndedBy> = found.iter().map(|task| task.ended_by).collect();
    observed.explain(if ended.starts_with(&[Exec]) && ended.ends_with(&[Exit]) {
        Ok(())
    } else {
        fail(format!("ended by {ended:?}"))
    })?;
    let (before, after) = (found[0], found[found.len() - 1]);
    observed.explain(jobs(before, JOBS))?;
    observed.explain(jobs(after, JOBS))?;
    ensure!(
        !before.command.contains("--executed"),
        "the first task's command line is that of the second: {}",
        before.command
    );
    ensure!(
        after.command.contains("--executed"),
        "the second task's command line is that of the first: {}",
        after.command
    );
    Ok(Outcome::Completed)
}

fn rename() -> Result<Outcome> {
    let observed = watch(&[], "rename")?;
    let found: Vec<&Task> = observed
        .model
        .tasks()
        .iter()
        .filter(|task| ["trans", "renamed"].contains(&task.name.as_str()))
        .collect();
    observed.explain(if found.len() == 1 {
        Ok(())
    } else {
        fail(format!("{} tasks, expected one", found.len()))
    })?;
    Ok(Outcome::Completed)
}

fn fork() -> Result<Outcome> {
    let observed = watch(&[], "fork")?;
    let printed = observed.ended.long_report()?;
    for (index, name) in ["parent", "child", "grandchild"].into_iter().enumerate() {
        let task = observed.explain(only_task(&observed.model, name))?;
        observed.explain(jobs(task, JOBS))?;
        let ids = (printed["phases"][index]["pid"].as_u64(), printed["phases"][index]["tid"].as_u64());
        ensure!(
            ids == (Some(task.pid.into()), Some(task.tid.into())),
            "{name} has pid and tid {ids:?}, not {} and {}",
            task.pid,
            task.tid
        );
    }
    Ok(Outcome::Completed)
}

fn outside() -> Result<Outcome> {
    let observed = watch(&[], "outside")?;
    expect(&observed, &[(Fifo, 50, PriorityChange), (Fifo, 55, PolicyChange), (Other, 0, Exit)])
}

fn merged() -> Result<Outcome> {
    for (mode, phases) in [("policy", 3), ("priority", 4)] {
        let observed = watch(&["--merge-transitions"], mode)?;
        let task = observed.explain(only_task(&observed.model, "trans"))?;
        let (found, did) = (observed.explain(primary(task))?.jobs, phases * JOBS);
        ensure!((did - 2..=did).contains(&found), "{mode}: {found} jobs, there were {did}");
    }
    Ok(Outcome::Completed)
}

fn best_effort() -> Result<Outcome> {
    let without = watch(&[], "same")?;
    let with = watch(&["--include-best-effort"], "same")?;
    ensure!(
        tasks(&without.model, "transitions").is_empty(),
        "the main thread is reported although it was never real-time"
    );
    with.explain(if tasks(&with.model, "transitions").is_empty() {
        fail("the main thread is missing")
    } else {
        Ok(())
    })?;
    Ok(Outcome::Completed)
}
