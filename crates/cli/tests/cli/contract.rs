//! `punctual contract` and `punctual check`: from a model to a contract, to a check, to an exit code.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Folder(tempfile::TempDir);

fn recording() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo").display().to_string()
}

impl Folder {
    /// Holds the timing model of the recorded demonstration, and its contract without a margin.
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a directory"));
        expect(&folder.run(&["replay", "-q", &recording(), "-o", "demo.timing.json"]), 0, "");
        let write = ["contract", "demo.timing.json", "--margin", "0%", "-o", "demo.toml"];
        expect(&folder.run(&write), 0, "Wrote demo.toml");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.current_dir(&self.0).env("COLUMNS", "200").args(arguments).output().expect("it runs")
    }

    fn contract(&self) -> String {
        std::fs::read_to_string(self.path("demo.toml")).expect("a contract")
    }

    /// Changes the contract.
    fn agree(&self, contract: &str) {
        std::fs::write(self.path("demo.toml"), contract).expect("written");
    }

    /// Gives a term of a task another value.
    fn change(&self, task: &str, term: &str, value: &str) {
        let contract = self.contract();
        let start = contract.find(&format!("name = \"{task}\"")).expect("the task");
        let start = start + contract[start..].find(&format!("\n{term} = ")).expect("the term") + 1;
        let end = start + contract[start..].find('\n').expect("a line");
        self.agree(&format!("{}{term} = {value}{}", &contract[..start], &contract[end..]));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn expect(output: &Output, code: i32, message: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(text(&output.stderr).contains(message), "{output:?}");
}

#[test]
fn what_was_observed_is_kept() {
    let folder = Folder::new();
    let output = folder.run(&["check", "demo.toml", &recording(), "demo.timing.json"]);
    expect(&output, 0, "");
    let shown = text(&output.stdout);
    assert_eq!(shown.matches("the contract is kept").count(), 2, "{shown}");
    // A timing model is a contract, too.
    expect(&folder.run(&["check", "demo.timing.json", &recording()]), 0, "");
    let every = folder.run(&["check", "demo.toml", &recording(), "--all"]);
    expect(&every, 0, "");
    assert!(text(&every.stdout).lines().count() > 50, "{every:?}");
}

#[test]
fn a_job_that_takes_too_long_has_exit_code_8() {
    let folder = Folder::new();
    folder.change("sleep-abs", "wcet", "\"100us\"");
    let output = folder.run(&["check", "demo.toml", &recording(), "--junit", "report.xml"]);
    expect(&output, 8, "punctual: the contract is not kept: ");
    let shown = text(&output.stdout);
    assert!(shown.contains("NOT KEPT: ") && shown.contains("by 1 task"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("sleep-abs  wcet  100 µs")), "{shown}");
    let xml = std::fs::read_to_string(folder.path("report.xml")).expect("written");
    assert_eq!(xml.matches("<failure").count(), 1, "{xml}");
    assert!(xml.contains("name=\"wcet\" classname=\"sleep-abs\""), "{xml}");
    let output = folder.run(&["check", "demo.toml", &recording(), "--json"]);
    expect(&output, 8, "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["kept"], false);
    let tasks = document["inputs"][0]["tasks"].as_array().expect("tasks");
    let task = tasks.iter().find(|task| task["name"] == "sleep-abs").expect("the task");
    let term = task["terms"].as_array().and_then(|it| it.iter().find(|it| it["term"] == "wcet"));
    let term = term.expect("the term");
    assert_eq!(term["violations"], document["violations"]);
    assert_eq!((&term["agreed"], &term["worst"]), (&Value::from(100_000), &Value::from(277_686)));
    let example = &term["examples"][0];
    assert!(example["value"].as_u64().is_some_and(|value| value > 100_000), "{example}");
    // The model says the same of the worst job.
    let output = folder.run(&["check", "demo.toml", "demo.timing.json"]);
    expect(&output, 8, "1 violation");
}

#[test]
fn missing_tasks_and_unknown_threads_are_what_the_contract_says() {
    let folder = Folder::new();
    let contract = folder.contract();
    let with = |head: &str, more: &str| {
        folder.agree(&format!("{head}\n{contract}\n[[task]]\nname = \"ghost\"\n{more}\n"));
        folder.run(&["check", "demo.toml", &recording()])
    };
    let output = with("", "");
    expect(&output, 8, "1 violation");
    assert!(text(&output.stdout).contains("ghost  missing"), "{output:?}");
    let output = with("", "missing = \"note\"");
    expect(&output, 0, "");
    assert!(text(&output.stdout).contains("Note: ghost: not there."), "{output:?}");
    folder.agree("unknown_threads = \"violation\"\n[[task]]\nname = \"sleep-abs\"\n");
    let output = folder.run(&["check", "demo.toml", &recording()]);
    expect(&output, 8, "violation");
    assert!(text(&output.stdout).contains("Real-time threads of no task: "), "{output:?}");
}

/// Changes the model of the demonstration: each task.
fn changed(folder: &Folder, name: &str, change: impl Fn(&mut Vec<Value>)) {
    let text = std::fs::read_to_string(folder.path("demo.timing.json")).expect("a model");
    let mut model: Value = serde_json::from_str(&text).expect("JSON");
    change(model["threads"]["tasks"].as_array_mut().expect("tasks"));
    std::fs::write(folder.path(name), model.to_string()).expect("written");
}

/// The usual cost of a thread is beyond half of the margin, and none of its jobs beyond the margin.
#[test]
fn slower_threads_break_what_is_typical() {
    let folder = Folder::new();
    let make = ["contract", "demo.timing.json", "-o", "demo.toml", "--force"];
    expect(&folder.run(&make), 0, "");
    assert!(folder.contract().contains("\nmedian_separation = "), "{}", folder.contract());
    expect(&folder.run(&["check", "demo.toml", &recording(), "demo.timing.json"]), 0, "");
    folder.change("sleep-abs", "quartile_cost", "\"150us\"");
    for input in [&recording(), "demo.timing.json"] {
        let output = folder.run(&["check", "demo.toml", input]);
        expect(&output, 8, "violation");
        assert!(text(&output.stdout).contains("sleep-abs  quartile cost  150 µs"), "{output:?}");
    }
    folder.change("sleep-abs", "quartile_cost", "\"1ms\"");
    folder.change("sleep-abs", "wcet", "\"100us\"");
    folder.change("sleep-abs", "may_exceed", "\"50%\"");
    let output = folder.run(&["check", "demo.toml", &recording()]);
    expect(&output, 8, "");
    folder.change("sleep-abs", "wcet", "\"270us\"");
    let output = folder.run(&["check", "demo.toml", &recording()]);
    expect(&output, 0, "");
    assert!(text(&output.stdout).contains("which the contract tolerates (may_exceed)"), "{output:?}");
}

#[test]
fn several_runs_make_one_contract() {
    let folder = Folder::new();
    changed(&folder, "less.timing.json", |tasks| tasks.retain(|task| task["name"] != "sleep-abs"));
    let recording = recording();
    let output = folder.run(&["contract", "demo.timing.json", "less.timing.json", &recording]);
    expect(&output, 0, "sleep-abs is in the contract, but not in less.timing.json");
    let of_one = folder.run(&["contract", "demo.timing.json"]);
    let share = |output: &Output, task: &str| -> f64 {
        let shown = text(&output.stdout);
        let (_, rest) = shown.split_once(&format!("name = \"{task}\"")).expect("the task");
        let (_, rest) = rest.split_once("may_exceed = \"").expect("a share");
        rest.split_once('%').and_then(|(share, _)| share.parse().ok()).expect("a number")
    };
    // Of more jobs, fewer may exceed the limits.
    assert!(share(&output, "timer-sigwait") < share(&of_one, "timer-sigwait"));
    let output = folder.run(&["contract", "demo.timing.json", "--quantile", "90%"]);
    expect(&output, 0, "");
    assert!(share(&output, "timer-sigwait") > share(&of_one, "timer-sigwait"));
}

#[test]
fn every_fault_says_what_to_do() {
    let folder = Folder::new();
    std::fs::write(folder.path("none.json"), "{}").expect("written");
    std::fs::write(folder.path("wrong.toml"), "[[task]]\nname = \"a\"\nwcet = \"much\"").expect("written");
    let recording = recording();
    for (arguments, code, message) in [
        (&["check", "wrong.toml", &recording][..], 5, "wrong.toml is not a valid contract: line 3: "),
        (&["check", "demo.toml", "none.json"], 5, "none.json is not a usable timing model"),
        (&["check", "demo.toml", "nowhere"], 5, "cannot read nowhere"),
        (&["check", "demo.toml", "demo.timing.json", "--from", "1"], 2, "--from and --until are for record"),
        (&["check", "demo.toml"], 2, "the following required arguments were not provided"),
        (&["contract", "demo.timing.json", "--thread", "nobody"], 4, "no thread of demo.timing.json matches"),
        (&["contract", "demo.timing.json", "-o", "demo.toml"], 5, "demo.toml"),
        (&["contract", "demo.timing.json", "--quantile", "95%"], 2, "expected 50%, 90%, 99% or 99.9%"),
        (&["contract", "demo.timing.json", "--quantile", "99%", "--margin", "0%"], 2, "needs a margin"),
        (&["contract"], 2, "the following required arguments were not provided"),
    ] {
        expect(&folder.run(arguments), code, message);
    }
}
