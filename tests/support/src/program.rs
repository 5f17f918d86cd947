//! Programs run by tests: always with a time limit, always gone at the end.

use crate::{Result, ensure, fail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No program takes this long unless something hangs. Machines that are slow set `PUNCTUAL_TEST_LIMIT`, in
/// seconds.
static LIMIT: LazyLock<Duration> = LazyLock::new(|| {
    let seconds = std::env::var("PUNCTUAL_TEST_LIMIT").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
});

/// A program that has ended.
pub struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ended {
    /// Exit code and output, for messages.
    pub fn all(&self) -> String {
        let code = self.code.map_or("killed by a signal".into(), |code| format!("exit code {code}"));
        format!("{code}\n--- standard output\n{}--- standard error\n{}", self.stdout, self.stderr)
    }

    /// Fails unless it ended with `code`.
    pub fn expect_code(&self, code: i32) -> Result {
        ensure!(self.code == Some(code), "expected exit code {code}, but: {}", self.all());
        Ok(())
    }

    /// The last line of standard output that is a JSON object: a workload's report of what it did.
    pub fn report(&self) -> Result<Value> {
        let line = self.stdout.lines().rev().find(|line| line.starts_with('{'));
        match line.and_then(|line| serde_json::from_str(line).ok()) {
            Some(value) => Ok(value),
            None => fail(format!("the workload reported nothing: {}", self.all())),
        }
    }

    /// The same for a report of several lines, which begins with `{"mode"`.
    pub fn long_report(&self) -> Result<Value> {
        let begin = self.stdout.rfind("{\"mode\"").unwrap_or(0);
        serde_json::from_str(&self.stdout[begin..])
            .or_else(|error| fail(format!("not JSON ({error}): {}", self.all())))
    }

    /// The whole of standard output as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.stdout)
            .or_else(|error| fail(format!("not JSON ({error}): {}", self.all())))
    }
}

/// A running program with all its child processes. Dropping it kills them.
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

    /// Sends a signal to it alone.
    pub fn signal(&self, signal: Signal) -> Result {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<Ended> {
        let Some(receiver) = self.output.take() else { return fail("waited for twice") };
        match receiver.recv_timeout(*LIMIT) {
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
        // After waiting for it, the PID may belong to another process.
        if self.output.is_some() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// Runs a program to its end.
pub fn run(command: Command) -> Result<Ended> {
    Running::start(command)?.end()
}

/// Polls until `is_so`.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result {
    let began = Instant::now();
    while !is_so() {
        ensure!(began.elapsed() < *LIMIT, "waited {} s for {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
