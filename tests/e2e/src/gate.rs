//! Contracts of programs that count their own late jobs. The contracts name no separator, and the threads
//! wait for other things besides their next job.

use crate::run::{directory, punctual, run, workload};
use crate::shared::DEMO;
use crate::{Outcome, Result, Test, ensure, fail, timing};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("gate::a_disk", disk),
    ("gate::files_in_the_first_jobs", files),
    ("gate::a_lock", lock),
    ("gate::a_pool", pool),
    ("gate::a_timer_and_a_socket", socket),
    ("gate::two_semaphores", semaphores),
    ("gate::contracts_with_and_without_separators", demo),
    ("gate::verdicts", verdicts),
];

/// A program, a contract, and the verdict.
struct Row {
    program: &'static [&'static str],
    contract: &'static str,
    exit_code: i32,
    says: &'static str,
}

const SPIN: &[&str] = &["spin", "--for", "0.3"];
const DRIVER: &[&str] =
    &["drivers", "run", "sleep_absolute", "--period-us", "5000", "--cost-us", "300", "--jobs", "60"];
const ROWS: &[Row] = &[
    Row {
        program: SPIN,
        contract: "[[task]]\nname = \"spin\"\ndeadline = \"8ms\"\n",
        exit_code: 0,
        says: "no job was judged: it never waits",
    },
    Row {
        program: SPIN,
        contract: "tasks_without_jobs = \"violation\"\n[[task]]\nname = \"spin\"\ndeadline = \"8ms\"\n",
        exit_code: 8,
        says: "spin",
    },
    Row {
        program: DRIVER,
        contract: "[[task]]\nname = \"drv\"\nwcet = \"5s\"\npolicy = \"FIFO\"\n",
        exit_code: 0,
        says: "the contract is kept",
    },
    Row {
        program: DRIVER,
        contract: "[[task]]\nname = \"drv\"\nwcet = \"250us\"\n",
        exit_code: 8,
        says: "NOT KEPT",
    },
    Row {
        program: DRIVER,
        contract: "scheduling = \"violation\"\n[[task]]\nname = \"drv\"\nwcet = \"5s\"\npolicy = \"RR\"\n",
        exit_code: 8,
        says: "policy",
    },
    Row {
        program: DRIVER,
        contract: "[[task]]\nname = \"nobody\"\nwcet = \"1ms\"\n",
        exit_code: 8,
        says: "nobody",
    },
];

/// Each row has one verdict, whether a recording is checked, its model, or the program is watched.
fn verdicts() -> Result<Outcome> {
    let folder = directory()?;
    let file = |name: &str| folder.path().join(name);
    for Row { program, contract, exit_code, says } in ROWS {
        let (name, arguments) = program.split_first().expect("a program");
        let with_program = |mut command: Command| {
            command.arg("--").arg(workload(name)).args(arguments);
            command
        };
        fs::write(file("a.toml"), contract)?;
        let mut record = punctual(["extract", "-q", "--force", "-o"]);
        record.arg(file("a.timing.json")).arg("--record").arg(file("recording"));
        run(with_program(record))?.expect_code(0)?;
        let mut watch = punctual(["watch", "--no-journal"]);
        watch.arg(file("a.toml"));
        let mut ways = vec![("watch", with_program(watch))];
        for (what, input) in [("recording", "recording"), ("model", "a.timing.json")] {
            let mut check = punctual(["check"]);
            check.arg(file("a.toml")).arg(file(input));
            ways.push((what, check));
        }
        for (what, way) in ways {
            let ended = run(way)?;
            let is_right = ended.code == Some(*exit_code) && ended.all().contains(says);
            ensure!(is_right, "{what} of {program:?}: not {exit_code} with `{says}`: {}", ended.all());
        }
        fs::remove_dir_all(file("recording"))?;
    }
    Ok(Outcome::Completed)
}

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
pub const CONTRACT: &str = "[[task]]\nname = \"loop\"\nperiod = \"10ms\"\ndeadline = \"12ms\"\n";

/// The program's own count.
pub struct Truth {
    jobs: u64,
    certainly_late: u64,
    perhaps_late: u64,
}

impl Truth {
    pub fn of(output: &str) -> Result<Truth> {
        let line = output.lines().find(|line| line.split(' ').all(|word| word.parse::<u64>().is_ok()));
        let numbers = line.into_iter().flat_map(|line| line.split(' ').filter_map(|word| word.parse().ok()));
        match numbers.collect::<Vec<u64>>()[..] {
            [jobs, certainly_late, perhaps_late] => Ok(Truth { jobs, certainly_late, perhaps_late }),
            _ => fail(format!("the program did not say how often it was late: {output}")),
        }
    }

    /// A tenth of the late jobs may be missing, because a job whose release was not seen is judged by its
    /// shortest possible response.
    pub fn explains_late(&self, what: &str, late: u64) -> Result {
        let Truth { certainly_late, perhaps_late, .. } = self;
        let least = certainly_late - certainly_late.div_ceil(10);
        ensure!(
            (least..=*perhaps_late).contains(&late),
            "{late} late jobs, between {certainly_late} and {perhaps_late} by its own clock: {what}"
        );
        Ok(())
    }

    /// Compares the count with that of a check or watch. The last job ends with the thread and may not be
    /// counted.
    fn explains(&self, what: &str, task: &Value) -> Result {
        let violations = violations(task);
        let jobs = task["jobs"].as_u64().unwrap_or(0);
        self.explains_late(&format!("{what}: {task:#}"), violations)?;
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
