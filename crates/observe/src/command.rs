//! The command under observation: held before its first instruction until everything is attached, ended with
//! the observation.

use crate::descendants;
use crate::error::{Error, ErrorKind};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a command that was asked to end is looked at.
const NAP: Duration = Duration::from_millis(10);

/// Where the output of a command goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Where ours goes.
    #[default]
    Shared,
    /// To our standard error, because standard output is for results.
    StandardError,
    /// Nowhere, and it has no input either: the terminal is in use.
    Nowhere,
}

/// A command that has been forked and waits before it becomes the program.
pub struct Waiting {
    pid: u32,
    gate: UnixStream,
    spawning: std::thread::JoinHandle<std::io::Result<Child>>,
    name: OsString,
}

impl Output {
    /// To standard error if `to_stderr`.
    pub fn or_stderr(to_stderr: bool) -> Output {
        if to_stderr { Output::StandardError } else { Output::Shared }
    }
}

impl Waiting {
    /// Forks.
    pub fn start(words: &[OsString], output: Output) -> Result<Waiting, Error> {
        let (name, arguments) = words.split_first().ok_or_else(no_command)?;
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Other, format!("cannot make a pair of sockets: {error}"))
        };
        let (mut gate, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(name);
        command.args(arguments);
        match output {
            Output::Shared => {}
            Output::StandardError => {
                command.stdout(std::io::stderr());
            }
            Output::Nowhere => {
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        let ours = gate.as_raw_fd();
        // SAFETY: `wait_at_gate` only makes calls that are allowed between fork and exec.
        unsafe { command.pre_exec(move || wait_at_gate(&theirs, ours)) };
        // `spawn` returns when the program runs, so another thread has to wait for that.
        let spawning = std::thread::spawn(move || command.spawn());
        let mut pid = [0; 4];
        match gate.read_exact(&mut pid) {
            Ok(()) => Ok(Waiting { pid: u32::from_ne_bytes(pid), gate, spawning, name: name.clone() }),
            Err(_) => {
                drop(gate);
                Err(spawn_error(spawning.join(), name))
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it become the program.
    pub fn go(mut self) -> Result<Running, Error> {
        let opened = self.gate.write_all(&[1]);
        drop(self.gate);
        match (self.spawning.join(), opened) {
            (Ok(Ok(child)), Ok(())) => Ok(Running { child, status: None }),
            (other, _) => Err(spawn_error(other, &self.name)),
        }
    }
}

/// Tells the parent the process's number and waits for its answer. If the other end is closed instead, the
/// observation has failed, and the command must not run.
fn wait_at_gate(gate: &UnixStream, parents: RawFd) -> std::io::Result<()> {
    let mut byte = 0u8;
    // SAFETY: calls that are allowed between fork and exec, on an open descriptor and buffers of the size
    // given. `parents` is this process's copy of the parent's end, which nobody else here uses: with it, the
    // parent's end would stay open when the parent has gone.
    let answered = unsafe {
        libc::close(parents);
        let pid = libc::getpid().to_ne_bytes();
        libc::write(gate.as_raw_fd(), pid.as_ptr().cast(), pid.len());
        libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) == 1
    };
    if answered { Ok(()) } else { Err(std::io::Error::from_raw_os_error(libc::ECANCELED)) }
}

/// The error where no command was given.
pub fn no_command() -> Error {
    Error::new(ErrorKind::CommandFailed, "there is no command after --")
}

/// The error where a command cannot be started.
pub fn cannot_start(name: &OsStr, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        _ if Path::new(name).is_dir() => {
            "it is a folder; punctual replay makes models of a recording".to_owned()
        }
        std::io::ErrorKind::NotFound => "there is no such program; give its path, or check PATH".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be executed; is it a program?".to_owned(),
        _ => error.to_string(),
    };
    Error::new(ErrorKind::CommandFailed, format!("cannot start {}: {why}", name.to_string_lossy()))
}

fn spawn_error(spawned: std::thread::Result<std::io::Result<Child>>, name: &OsStr) -> Error {
    match spawned {
        Ok(Err(error)) => cannot_start(name, &error),
        _ => Error::new(ErrorKind::Other, format!("cannot start {}", name.to_string_lossy())),
    }
}

/// A command that has been let go. Dropping this leaves it alone.
pub struct Running {
    child: Child,
    status: Option<ExitStatus>,
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Asks it and all that it has started to end (SIGTERM), and waits for it, `patience` at most;
    /// `meanwhile` is called now and then. Returns how it ended; `None` if it still runs.
    pub fn end(
        &mut self,
        patience: Duration,
        mut meanwhile: impl FnMut() -> Result<(), Error>,
    ) -> Result<Option<ExitStatus>, Error> {
        if self.status().is_none() {
            // It has not been waited for, so its number is its own.
            descendants::ask_to_end(self.child.id());
        }
        let deadline = Instant::now() + patience;
        while self.status().is_none() && Instant::now() < deadline {
            std::thread::sleep(NAP);
            meanwhile()?;
        }
        Ok(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when probes are refused: the process that waits must not outlive its parent's interest.
    #[test]
    fn a_command_that_is_never_let_go_ends() {
        let waiting = Waiting::start(&["true".into()], Output::Shared).expect("a process that waits");
        let process = format!("/proc/{}", waiting.pid());
        assert!(std::path::Path::new(&process).exists());
        drop(waiting);
        for _ in 0..60_000 {
            if !std::path::Path::new(&process).exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("it waits for ever");
    }

    /// As `sh -c 'stressor & stressor & wait'`: whoever ended the shell alone would leave them behind.
    #[test]
    fn what_a_command_has_started_ends_with_it() {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        let script = "(sh -c 'echo $$; exec sleep 1000') & (echo $$; exec sleep 1000) & wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(std::os::fd::OwnedFd::from(theirs)).stderr(Stdio::null());
        let child = shell.spawn().expect("a shell");
        drop(shell);
        let mut said = Vec::new();
        while said.iter().filter(|byte| **byte == b'\n').count() < 2 {
            let mut some = [0; 64];
            let length = ours.read(&mut some).expect("readable");
            said.extend_from_slice(&some[..length]);
        }
        let mut running = Running { child, status: None };
        running.end(Duration::from_secs(60), || Ok(())).expect("ended").expect("a status");
        // Whoever still runs holds the other end.
        ours.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        assert_eq!(ours.read_to_end(&mut said).expect("the end, not the timeout"), 0);
    }
}
