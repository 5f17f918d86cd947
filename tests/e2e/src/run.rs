//! The command and the workloads, run by the tests.

use crate::model::describe;
use crate::{Failure, Result, fail};
use punctual_model::TimingModel;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

pub use punctual_test_support::{Ended, Running, run, wait_until};

/// What the variable says, or where this program's build has put it: the program itself is
/// `target/PROFILE/deps/e2e-HASH`.
fn built(variable: &str, levels: usize, name: &str) -> PathBuf {
    let beside = || Some(std::env::current_exe().ok()?.ancestors().nth(levels)?.join(name));
    std::env::var_os(variable).map(PathBuf::from).or_else(beside).unwrap_or_else(|| name.into())
}

/// The command, built with the profile of the tests.
pub fn binary() -> PathBuf {
    built("PUNCTUAL", 2, "punctual")
}

/// The folder of the workloads.
pub fn workloads() -> PathBuf {
    built("WORKLOADS", 3, "workloads")
}

/// The way of attaching for the observations of all tests; `None` for the default.
pub fn attach() -> Option<String> {
    std::env::var("PUNCTUAL_E2E_ATTACH").ok()
}

/// A command line of Punctual's.
pub fn punctual<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(binary());
    let mut arguments = arguments.into_iter();
    if let Some(first) = arguments.next() {
        command.arg(&first);
        let observes =
            ["extract", "record", "top", "watch", "why"].iter().any(|name| first.as_ref() == *name);
        if let Some(attach) = attach().filter(|_| observes) {
            command.args(["--attach", &attach]);
        }
    }
    command.args(arguments);
    command
}

/// The same without `--attach`: for commands that do not observe, such as `why RECORDING`.
pub fn offline<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    command
}

/// The path of a workload.
pub fn workload(name: &str) -> String {
    workloads().join(name).display().to_string()
}

/// A directory for a test's files, readable by all users.
pub fn directory() -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::Builder::new().prefix("punctual-e2e-").tempdir()?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(directory)
}

/// A successful observation of a command: its output and the written model.
pub struct Observed {
    pub ended: Ended,
    pub model: TimingModel,
}

/// Observes `command` until its end, with further options of `extract`.
pub fn observe(options: &[&str], command: &[&str]) -> Result<Observed> {
    let directory = directory()?;
    let file = directory.path().join("observed.timing.json");
    let mut extract = punctual(["extract", "--quiet", "-o"]);
    extract.arg(&file).args(options).arg("--").args(command);
    let ended = run(extract)?;
    if !file.exists() {
        return fail(format!("no model was written: {}", ended.all()));
    }
    let model = crate::model::read(&file)?;
    tell_misses(&model, command.first().copied().unwrap_or_default());
    Ok(Observed { ended, model })
}

/// If the way of attaching is under test, no eBPF program may be skipped. That is not a failure of this test,
/// whose models allow for it, but of the run, whose caller looks for this line. Functions on preemptible
/// kernels are known for it, and used only on request.
pub fn tell_misses(model: &TimingModel, command: &str) {
    let threads = crate::model::threads(model);
    if let (Some(attach), true) = (attach(), threads.skipped_events > 0) {
        let known = attach == "fentry" && crate::doctor::skips_functions();
        let what = if known { "SKIPS" } else { "MISSES" };
        eprintln!("{what}: {} in {} records of {command}", threads.skipped_events, threads.records);
    }
}

impl Observed {
    /// Adds the model to a failure.
    pub fn explain<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|failure| {
            let message = format!("{}\n{}\n{}", failure.message, describe(&self.model), self.ended.all());
            Failure { message, ..failure }
        })
    }
}

/// Processes that `pid` started and that still run.
pub fn children(pid: u32) -> Vec<u32> {
    // Not every kernel lists them (CONFIG_PROC_CHILDREN), but all tell the parent.
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_its = |number: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(')').map(|(_, behind)| behind);
        behind.and_then(|it| it.split_ascii_whitespace().nth(1)?.parse().ok()) == Some(pid)
    };
    numbers.filter(is_its).collect()
}

/// How often thread `name` of process `pid` has gone to sleep so far; `None` without such a thread.
pub fn sleeps(pid: u32, name: &str) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let status =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok()).find(
            |status| status.lines().next().is_some_and(|line| line.strip_prefix("Name:\t") == Some(name)),
        )?;
    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok())
}
