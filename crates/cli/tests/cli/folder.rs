//! A directory in which `punctual prove` runs, and contracts for it.

use serde_json::Value;
use std::process::{Command, Output};

pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).expect("written")
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.current_dir(&self.0).env("COLUMNS", "200").args(arguments).output().expect("it runs")
    }

    /// The exit code and the document of a proof of `text`.
    pub fn prove(&self, name: &str, text: &str, arguments: &[&str]) -> (Option<i32>, Value) {
        self.write(name, text);
        let output = self.run(&[&["prove", name, "--json"][..], arguments].concat());
        let document = serde_json::from_slice(&output.stdout);
        (output.status.code(), document.unwrap_or_else(|error| panic!("{error}: {output:?}")))
    }
}

/// The names of tasks with this verdict.
pub fn named<'a>(document: &'a Value, verdict: &str) -> Vec<&'a str> {
    let tasks = document["tasks"].as_array().expect("tasks").iter();
    tasks.filter(|it| it["verdict"] == verdict).filter_map(|it| it["name"].as_str()).collect()
}

pub fn task<'a>(document: &'a Value, name: &str) -> &'a Value {
    let tasks = document["tasks"].as_array().expect("tasks");
    tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

/// A task of a contract, without some lines of it.
pub fn agreed(name: &str, cpu: u32, priority: u32, times: (u32, u32), without: &[&str]) -> String {
    let (wcet, period) = times;
    let text = format!(
        "[[task]]\nname = \"{name}\"\npolicy = \"SCHED_FIFO\"\npriority = {priority}\n\
         processors = \"{cpu}\"\nperiod = \"{period}ms\"\njitter = \"0s\"\n\
         wcet = \"{wcet}ms\"\nsuspension = \"0s\"\n"
    );
    let is_kept = |line: &&str| !without.iter().any(|start| line.starts_with(start));
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}
