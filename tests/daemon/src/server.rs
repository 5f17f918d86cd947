//! A daemon for a test, with its own socket and state, and its clients.

use crate::built::built;
use punctual_test_support::{Result, in_context, run};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
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
    /// Starts a daemon and waits until it listens.
    pub fn start() -> Result<Server> {
        let folder = tempfile::Builder::new().prefix("punctual-daemon-").tempdir()?;
        std::fs::write(folder.path().join("punctuald.toml"), CONFIGURATION)?;
        std::fs::write(folder.path().join("rules.conf"), "- - max_utilization 8\n")?;
        let mut server = Server { process: spawn(&folder)?, folder };
        server.await_ready()?;
        Ok(server)
    }

    /// Kills it and starts another one in its place.
    pub fn restart(&mut self) -> Result {
        self.process.kill()?;
        self.process.wait()?;
        self.process = spawn(&self.folder)?;
        self.await_ready()
    }

    fn await_ready(&mut self) -> Result {
        let Some(stderr) = self.process.stderr.take() else { return Err("no standard error".into()) };
        let (ready, is_ready) = channel();
        // Its later output must be read too, or it would block.
        std::thread::spawn(move || {
            let mut lines = Vec::new();
            for line in BufReader::new(stderr).lines().map_while(|line| line.ok()) {
                if line.contains(" is ready at ") {
                    let _ = ready.send(Ok(()));
                }
                lines.push(line);
            }
            let _ = ready.send(Err(lines.join("\n")));
        });
        match is_ready.recv_timeout(LIMIT) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(output)) => Err(format!("punctuald ended: {output}").into()),
            Err(_) => Err("punctuald does not say that it is ready".into()),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A folder for files.
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

fn spawn(folder: &tempfile::TempDir) -> Result<Child> {
    let path = |name: &str| folder.path().join(name);
    let mut command = Command::new(&built().punctuald);
    command
        .arg("--config")
        .arg(path("punctuald.toml"))
        .arg("--socket")
        .arg(path("socket"))
        .arg("--state")
        .arg(path("state"));
    command
        .env_remove("NOTIFY_SOCKET")
        .env_remove("LISTEN_FDS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(command.spawn()?)
}

/// Runs a program, which must exit with `code`. Returns its standard output and standard error.
pub fn expect_exit(command: Command, code: i32) -> Result<(String, String)> {
    let name = format!("{command:?}");
    let ended = run(command)?;
    in_context(&name, ended.expect_code(code))?;
    Ok((ended.stdout, ended.stderr))
}
