//! A daemon of a test's own, with its own socket and state, and programs that ask it.

use crate::built::built;
use libtest_mimic::Failed;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// No program takes this long unless something hangs.
const LIMIT: Duration = Duration::from_secs(60);

const CONFIGURATION: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 49]
[[plugin]]
name = "FP"
kind = "FP"
priorities = [1, 49]
[[plugin]]
name = "RR"
kind = "RR"
priorities = [1, 49]
[[plugin]]
name = "EDF"
kind = "EDF"
"#;

pub struct Server {
    process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts one, and waits until it listens.
    pub fn start() -> Result<Server, Failed> {
        let folder = tempfile::Builder::new().prefix("punctual-daemon-").tempdir()?;
        std::fs::write(folder.path().join("punctuald.toml"), CONFIGURATION)?;
        std::fs::write(folder.path().join("rules.conf"), "- - max_utilization 8\n")?;
        let mut server = Server { process: spawn(&folder)?, folder };
        server.await_ready()?;
        Ok(server)
    }

    /// Kills it, and starts another one in its place.
    pub fn restart(&mut self) -> Result<(), Failed> {
        self.process.kill()?;
        self.process.wait()?;
        self.process = spawn(&self.folder)?;
        self.await_ready()
    }

    fn await_ready(&mut self) -> Result<(), Failed> {
        let Some(stderr) = self.process.stderr.take() else { return Err("no standard error".into()) };
        let (ready, is_ready) = channel();
        // What it says later must be read too, or it would wait for its reader.
        std::thread::spawn(move || {
            let mut said = Vec::new();
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if line.contains(" is ready at ") {
                    let _ = ready.send(Ok(()));
                }
                said.push(line);
            }
            let _ = ready.send(Err(said.join("\n")));
        });
        match is_ready.recv_timeout(LIMIT) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(said)) => Err(format!("punctuald ended: {said}").into()),
            Err(_) => Err("punctuald does not say that it is ready".into()),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A place for files.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// A program that finds this daemon, and the library.
    pub fn program(&self, path: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(path);
        command.env("PUNCTUALD_SOCKET", self.socket()).env("LD_LIBRARY_PATH", &built().library);
        command
    }

    /// `punctual ctl` with these arguments.
    pub fn ctl(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(&built().punctual);
        command.arg("ctl").args(arguments);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Politely, so that it undoes what it did.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.process),
            rustix::process::Signal::TERM,
        );
        let _ = self.process.wait();
    }
}

fn spawn(folder: &tempfile::TempDir) -> Result<Child, Failed> {
    let of = |name: &str| folder.path().join(name);
    let mut command = Command::new(&built().punctuald);
    command
        .arg("--config")
        .arg(of("punctuald.toml"))
        .arg("--socket")
        .arg(of("socket"))
        .arg("--state")
        .arg(of("state"));
    command
        .env_remove("NOTIFY_SOCKET")
        .env_remove("LISTEN_FDS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(command.spawn()?)
}

/// Runs a program to its end, which comes.
pub fn run(mut command: Command) -> Result<Output, Failed> {
    let name = format!("{command:?}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(LIMIT) {
        Ok(output) => Ok(output?),
        Err(_) => {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            Err(format!("{name} did not end within {} s", LIMIT.as_secs()).into())
        }
    }
}

/// What a program said, which has to end with `code`.
pub fn said(command: Command, code: i32) -> Result<(String, String), Failed> {
    let name = format!("{command:?}");
    let output = run(command)?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    if output.status.code() != Some(code) {
        return Err(format!("{name}: expected exit code {code}, but {}:\n{out}{err}", output.status).into());
    }
    Ok((out, err))
}
