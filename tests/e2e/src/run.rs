//! Programs run by the tests: always with a time limit, always gone at the end.

use crate::failure::Failure;
use crate::model::describe;
use crate::{Result, ensure, fail};
use punctual_model::TimingModel;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No run takes this long unless something hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The built command.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PUNCTUAL") {
        return path.into();
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(target).join("release/punctual")
}

/// How the observations of all tests are to see system calls; `None`: as they would by themselves.
pub fn attach() -> Option<String> {
    std::env::var("PUNCTUAL_E2E_ATTACH").ok()
}

/// A command line of Punctual's.
pub fn punctual<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(binary());
    let mut arguments = arguments.into_iter();
    if let Some(first) = arguments.next() {
        command.arg(&first);
        let observes = ["extract", "record"].iter().any(|name| first.as_ref() == *name);
        if let Some(attach) = attach().filter(|_| observes) {
            command.args(["--attach", &attach]);
        }
    }
    command.args(arguments);
    command
}

/// The path of a workload.
pub fn workload(name: &str) -> String {
    format!("{}/{name}", env!("WORKLOADS"))
}

/// A directory for what a test writes; any user may look into it.
pub fn directory() -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::Builder::new().prefix("punctual-e2e-").tempdir()?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(directory)
}

/// What a program left behind.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Everything, for a message.
    pub fn all(&self) -> String {
        let code = self.code.map_or("killed by a signal".into(), |code| format!("exit code {code}"));
        format!("{code}\n--- standard output\n{}--- standard error\n{}", self.stdout, self.stderr)
    }

    /// Fails unless it ended with `code`.
    pub fn expect_code(&self, code: i32) -> Result {
        ensure!(self.code == Some(code), "expected exit code {code}, but: {}", self.all());
        Ok(())
    }

    /// The last line of standard output that is a JSON object: what a workload says that it did.
    pub fn said(&self) -> Result<Value> {
        let line = self.stdout.lines().rev().find(|line| line.starts_with('{'));
        match line.and_then(|line| serde_json::from_str(line).ok()) {
            Some(value) => Ok(value),
            None => fail(format!("the workload said nothing: {}", self.all())),
        }
    }

    /// The JSON object that begins with the last line of standard output that begins with one, over several
    /// lines.
    pub fn said_over_lines(&self) -> Result<Value> {
        let begin = self.stdout.rfind("{\"mode\"").unwrap_or(0);
        serde_json::from_str(&self.stdout[begin..])
            .or_else(|error| fail(format!("no JSON ({error}): {}", self.all())))
    }

    /// The whole of standard output as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.stdout).or_else(|error| fail(format!("no JSON ({error}): {}", self.all())))
    }
}

/// A program under way, with all that it starts. Dropping it ends them.
pub struct Running {
    pid: Pid,
    output: Option<Receiver<std::io::Result<Output>>>,
    name: String,
}

impl Running {
    /// Starts it in a process group of its own.
    pub fn start(mut command: Command) -> Result<Running> {
        let name = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let child = child.or_else(|error| fail(format!("{name} cannot be started: {error}")))?;
        let pid = Pid::from_child(&child);
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        Ok(Running { pid, output: Some(receiver), name })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends it, and it alone, a signal.
    pub fn signal(&self, signal: Signal) -> Result {
        Ok(rustix::process::kill_process(self.pid, signal)?)
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<Ended> {
        let Some(receiver) = self.output.take() else { return fail("waited for twice") };
        match receiver.recv_timeout(LIMIT) {
            Ok(output) => {
                let output = output?;
                Ok(Ended {
                    code: output.status.code(),
                    stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                    stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
                })
            }
            Err(RecvTimeoutError::Timeout) => {
                self.output = Some(receiver);
                fail(format!("{} did not end within {} s", self.name, LIMIT.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => fail(format!("{}: lost sight of it", self.name)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once its end was taken, the number may be somebody else's.
        if self.output.is_some() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// Runs a program to its end.
pub fn run(command: Command) -> Result<Ended> {
    Running::start(command)?.end()
}

/// A successful observation of a command: what it left, and the model that was written.
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
    let skipped = model.observation.skipped_events;
    if let (Some(attach), true) = (attach(), skipped > 0) {
        // Where the way of attaching is being tried, every program must run whenever it is due; not a failure
        // of this test, whose models allow for it, but of the run: whoever runs it looks for this line.
        // Functions on preemptible kernels are known for it, and used only on request.
        let known = attach == "fentry" && crate::doctor::skips_functions();
        let what = if known { "SKIPS" } else { "MISSES" };
        eprintln!(
            "{what}: {skipped} in {} records of {}",
            model.observation.records,
            command.first().copied().unwrap_or_default()
        );
    }
    Ok(Observed { ended, model })
}

impl Observed {
    /// Adds what was found to a failure.
    pub fn explain<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|failure| {
            let message = format!("{}\n{}\n{}", failure.message, describe(&self.model), self.ended.all());
            Failure { message, ..failure }
        })
    }
}

/// Waits until `is_so`, which something else brings about.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result {
    let began = Instant::now();
    while !is_so() {
        ensure!(began.elapsed() < LIMIT, "waited {} s for {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Processes that `pid` started and that still run.
pub fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
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
