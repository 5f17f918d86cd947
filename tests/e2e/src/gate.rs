//! Contracts of programs that count their own late jobs. The contracts name no separator, and the threads
//! wait for other things besides their next job.

use crate::run::{directory, punctual, run, workload};
use crate::shared::DEMO;
use crate::{Outcome, Result, Test, ensure, fail, timing};
use serde_json::Value;
use std::fs;
use std::path::Path;

pub const ALL: &[(&str, Test)] = &[
    ("gate::a_disk", disk),
    ("gate::files_in_the_first_jobs", files),
    ("gate::a_lock", lock),
    ("gate::a_pool", pool),
    ("gate::a_timer_and_a_socket", socket),
    ("gate::two_semaphores", semaphores),
    ("gate::contracts_with_and_without_separators", demo),
];

fn disk() -> Result<Outcome> {
    found("disk")
}

fn files() -> Result<Outcome> {
    found("files")
}

fn lock() -> Result<Outcome> {
    found("lock")
}

fn pool() -> Result<Outcome> {
    found("pool")
}

fn socket() -> Result<Outcome> {
    found("socket")
}

fn semaphores() -> Result<Outcome> {
    found("semaphores")
}

/// As in tests/workloads/gate.c.
const CONTRACT: &str = "[[task]]\nname = \"loop\"\nperiod = \"10ms\"\ndeadline = \"12ms\"\n";

/// The program's own count.
struct Truth {
    jobs: u64,
    certainly_late: u64,
    perhaps_late: u64,
}

impl Truth {
    fn of(output: &str) -> Result<Truth> {
        let line = output.lines().find(|line| line.split(' ').all(|word| word.parse::<u64>().is_ok()));
        let numbers = line.into_iter().flat_map(|line| line.split(' ').filter_map(|word| word.parse().ok()));
        match numbers.collect::<Vec<u64>>()[..] {
            [jobs, certainly_late, perhaps_late] => Ok(Truth { jobs, certainly_late, perhaps_late }),
            _ => fail(format!("the program did not say how often it was late: {output}")),
        }
    }

    /// Compares the count with that of a check or watch. A tenth of the late jobs may be missing, because a
    /// job whose release was not seen is judged by its shortest possible response. The last job ends with
    /// the thread and may not be counted.
    fn explains(&self, what: &str, task: &Value) -> Result {
        let violations = violations(task);
        let jobs = task["jobs"].as_u64().unwrap_or(0);
        let Truth { certainly_late, perhaps_late, .. } = self;
        let least = certainly_late - certainly_late.div_ceil(10);
        ensure!(
            (least..=*perhaps_late).contains(&violations),
            "{what}: {violations} violations, between {certainly_late} and {perhaps_late} by its own clock: \
             {task:#}"
        );
        let most = self.jobs;
        ensure!(jobs <= most && jobs + 3 + most / 50 >= most, "{what}: {jobs} jobs of {most}: {task:#}");
        Ok(())
    }
}

/// Of the deadline.
fn violations(task: &Value) -> u64 {
    let deadline = task["terms"].as_array().and_then(|all| all.iter().find(|it| it["term"] == "deadline"));
    deadline.and_then(|it| it["violations"].as_u64()).unwrap_or(0)
}

/// Checks a recording, with and without the separator of the model, and the model, and watches a second run.
fn found(mode: &str) -> Result<Outcome> {
    let folder = directory()?;
    let file = |name: &str| folder.path().join(name);
    fs::write(file("run.toml"), CONTRACT)?;
    let gate = workload("gate");
    let mut record = punctual(["extract", "-q", "-o"]);
    record.arg(file("a.timing.json")).arg("--record").arg(file("recording")).args(["--", &gate, mode]);
    let recorded = run(record)?;
    recorded.expect_code(0)?;
    let truth = Truth::of(&recorded.stdout)?;
    let task = checked(&file("run.toml"), &file("recording"))?;
    timing(truth.explains("check", &task))?;
    let model = crate::model::read(&file("a.timing.json"))?;
    let primary = crate::model::primary(crate::model::only_task(&model, "loop")?)?;
    let separator = glob::Pattern::escape(&primary.separator.key().to_string());
    fs::write(file("named.toml"), format!("{CONTRACT}separator = {separator:?}\n"))?;
    let named = checked(&file("named.toml"), &file("recording"))?;
    ensure!(named == task, "with its separator: {named:#}\nwithout: {task:#}");
    let of_model = checked(&file("run.toml"), &file("a.timing.json"))?;
    ensure!(violations(&of_model) > 0, "the model keeps what its recording breaks: {of_model:#}\n{task:#}");

    let mut watch = punctual(["watch", "--json", "--no-journal"]);
    watch.arg(file("run.toml")).args(["--", &gate, mode]);
    let watched = run(watch)?;
    watched.expect_code(8)?;
    let truth = Truth::of(&watched.all())?;
    let end = watched.stdout.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let Some(end) = end.filter(|end| end["event"] == "end") else { return fail(watched.all()) };
    timing(truth.explains("watch", &end["outcome"]["inputs"][0]["tasks"][0]))?;
    Ok(Outcome::Completed)
}

/// The first task of a check's result.
fn checked(contract: &Path, recording: &Path) -> Result<Value> {
    let mut check = punctual(["check", "--json"]);
    check.arg(contract).arg(recording);
    let ended = run(check)?;
    ended.expect_code(8)?;
    Ok(ended.json()?["inputs"][0]["tasks"][0].clone())
}

/// All threads of the demonstration: its own contract, with responses that no job keeps to.
fn demo() -> Result<Outcome> {
    let folder = directory()?;
    let (with, without) = (folder.path().join("with.toml"), folder.path().join("without.toml"));
    let mut contract = punctual(["contract", "--quiet", "-o"]);
    contract.arg(&with).arg(DEMO.get()?.model());
    run(contract)?.expect_code(0)?;
    let text = fs::read_to_string(&with)?;
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some(("response", _)) => "response = \"1ns\"",
        _ => line,
    });
    let lines: Vec<&str> = lines.collect();
    fs::write(&with, lines.join("\n"))?;
    let is_separator = |line: &&&str| line.starts_with("separator = ");
    ensure!(lines.iter().filter(is_separator).count() >= 10, "{text}");
    let rest: Vec<&str> = lines.iter().filter(|line| !is_separator(line)).copied().collect();
    fs::write(&without, rest.join("\n"))?;
    let tasks = |contract: &Path| -> Result<Value> {
        let mut check = punctual(["check", "--json"]);
        check.arg(contract).arg(DEMO.get()?.recording());
        Ok(run(check)?.json()?["inputs"][0]["tasks"].clone())
    };
    let (with, without) = (tasks(&with)?, tasks(&without)?);
    ensure!(with == without, "{}", differences(&with, &without));
    Ok(Outcome::Completed)
}

fn differences(with: &Value, without: &Value) -> String {
    let all = with.as_array().into_iter().flatten().zip(without.as_array().into_iter().flatten());
    let different = all.filter(|(with, without)| with != without);
    different.map(|(with, without)| format!("with: {with:#}\nwithout: {without:#}\n")).collect()
}
