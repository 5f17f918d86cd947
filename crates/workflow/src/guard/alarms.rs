//! Who is told of violations: the front end, the systemd journal, and a command of the user's. All by a
//! thread of its own, which may wait.

use crate::error::{Error, Result, plain_reason};
use punctual_conformance::{Term, Violation};
use punctual_model::causes::LateTask;
use punctual_report::{conformance, why};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Alarms that may wait to be told.
const WAITING: usize = 1024;
/// From the start of one command to that of the next, at least.
const BETWEEN_COMMANDS: Duration = Duration::from_secs(1);
/// How long the last command may take to end.
const PATIENCE: Duration = Duration::from_millis(500);
/// Where journald listens for its own protocol.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// What there is to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Alarm {
    /// A violation.
    Violation(Violation),
    /// A late job, and why it was: its task with this job alone.
    Late(Box<LateTask>),
    /// More of a kind than are told one by one, in a second.
    More {
        /// The task.
        task: Arc<str>,
        /// The term.
        term: Term,
        /// How many.
        number: u64,
        /// The worst value of them.
        worst: u64,
    },
}

/// Where a front end shows alarms. It may wait.
pub type Output = Box<dyn FnMut(&Alarm) + Send>;

/// What was told to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Alarms that were shown.
    pub told: u64,
    /// Alarms that found no room, because whoever reads them was too slow.
    pub dropped: u64,
    /// Entries that the journal took.
    pub journal: u64,
    /// Commands that were started.
    pub commands: u64,
    /// Violations for which none was, because one was running or had just been started.
    pub without_command: u64,
    /// Commands that could not be started, or said that they failed.
    pub failed_commands: u64,
    /// Recordings that were kept.
    pub recordings: u64,
    /// Violations for which none was, because there had just been one.
    pub without_recording: u64,
    /// Recordings that could not be written.
    pub failed_recordings: u64,
}

/// Tells alarms without waiting.
pub struct Alarms {
    sender: SyncSender<Alarm>,
    thread: JoinHandle<Counters>,
    dropped: u64,
}

impl Alarms {
    pub fn start(output: Output, command: Option<String>, journal: bool) -> Result<Alarms> {
        let (sender, receiver) = sync_channel(WAITING);
        let herald = Herald {
            output,
            journal: if journal { UnixDatagram::unbound().ok() } else { None },
            command,
            running: None,
            started: None,
            counters: Counters::default(),
        };
        let thread = std::thread::Builder::new().name("alarms".into()).spawn(|| herald.run(receiver));
        let thread = thread.map_err(|error| {
            Error::new(crate::ErrorKind::Other, "cannot start the thread that tells of violations")
                .because(plain_reason(&error))
        })?;
        Ok(Alarms { sender, thread, dropped: 0 })
    }

    /// Tells an alarm, or counts it if too many wait.
    pub fn tell(&mut self, alarm: Alarm) {
        self.dropped += u64::from(self.sender.try_send(alarm).is_err());
    }

    /// Waits until all have been told.
    pub fn finish(self) -> Counters {
        drop(self.sender);
        let counters = self.thread.join().unwrap_or_default();
        Counters { dropped: self.dropped, ..counters }
    }
}

/// The thread that tells.
struct Herald {
    output: Output,
    journal: Option<UnixDatagram>,
    command: Option<String>,
    running: Option<Child>,
    started: Option<Instant>,
    counters: Counters,
}

impl Herald {
    fn run(mut self, alarms: Receiver<Alarm>) -> Counters {
        for alarm in alarms {
            (self.output)(&alarm);
            self.counters.told += 1;
            match &alarm {
                Alarm::Violation(violation) => {
                    self.write_journal(&violation.to_string(), &fields(violation));
                    self.run_command(violation);
                }
                Alarm::Late(task) => self.write_journal(&why::one_line(task), &cause_fields(task)),
                Alarm::More { .. } => {}
            }
        }
        self.await_command();
        self.counters
    }

    fn write_journal(&mut self, message: &str, fields: &[(&'static str, String)]) {
        if let Some(socket) = &self.journal {
            let entry = journal_entry(message, fields);
            self.counters.journal += u64::from(socket.send_to(entry.as_bytes(), JOURNAL).is_ok());
        }
    }

    fn run_command(&mut self, violation: &Violation) {
        self.look_after_command();
        let Some(command) = &self.command else { return };
        if self.running.is_some() || self.started.is_some_and(|started| started.elapsed() < BETWEEN_COMMANDS)
        {
            self.counters.without_command += 1;
            return;
        }
        self.started = Some(Instant::now());
        match start(command, violation) {
            Ok(child) => {
                self.running = Some(child);
                self.counters.commands += 1;
            }
            Err(_) => self.counters.failed_commands += 1,
        }
    }

    /// Counts a command that has ended and failed.
    fn look_after_command(&mut self) {
        let Some(child) = &mut self.running else { return };
        let has_failed = match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => !status.success(),
            Err(_) => true,
        };
        self.counters.failed_commands += u64::from(has_failed);
        self.running = None;
    }

    /// The last command may still be running: it gets a moment to end.
    fn await_command(&mut self) {
        let begun = Instant::now();
        self.look_after_command();
        while self.running.is_some() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
            self.look_after_command();
        }
    }
}

/// Starts a command for the shell; its output goes to standard error.
fn start(command: &str, violation: &Violation) -> std::io::Result<Child> {
    let output = Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?);
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(output);
    for (name, value) in fields(violation) {
        shell.env(format!("PUNCTUAL_{name}"), value);
    }
    let mut child = shell.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Shorter than a pipe is: this does not wait. Whoever does not read it does not want it.
        let _ = writeln!(stdin, "{}", conformance::violation(violation));
    }
    Ok(child)
}

/// What a command and the journal are told, by name.
fn fields(violation: &Violation) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("TASK", punctual_report::visible(&violation.task)),
        ("TERM", violation.term.name().to_owned()),
        ("VALUE", violation.value.to_string()),
        ("AGREED", violation.agreed.to_string()),
    ];
    if let Some(subject) = &violation.subject {
        fields.extend([
            ("THREAD", punctual_report::visible(&subject.name)),
            ("PID", subject.pid.to_string()),
            ("TID", subject.tid.to_string()),
            ("JOB", subject.job.to_string()),
            ("END_NS", subject.end.ns().to_string()),
        ]);
    }
    fields
}

/// What the journal is told of a late job, by name.
fn cause_fields(task: &LateTask) -> Vec<(&'static str, String)> {
    let mut fields = vec![("TASK", punctual_report::visible(&task.task))];
    if let Some(job) = task.worst.first() {
        fields.extend([
            ("CAUSE", job.cause.name().to_owned()),
            ("TID", job.tid.to_string()),
            ("JOB", job.job.to_string()),
            ("END_NS", job.end_ns.ns().to_string()),
        ]);
    }
    let culprit = task.causes.first().and_then(|cause| cause.reason.culprit());
    fields.extend(culprit.map(|culprit| ("CULPRIT", punctual_report::visible(culprit))));
    fields
}

/// In journald's own protocol: a field a line. No value has a line break, since texts are made visible.
fn journal_entry(message: &str, fields: &[(&'static str, String)]) -> String {
    let message = punctual_report::visible(message);
    let mut entry = format!("MESSAGE={message}\nPRIORITY=4\nSYSLOG_IDENTIFIER=punctual\n");
    for (name, value) in fields {
        entry += &format!("PUNCTUAL_{name}={value}\n");
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn violation() -> Violation {
        Violation { task: "a\nb".into(), term: Term::Wcet, subject: None, value: 2_000, agreed: 1_000 }
    }

    #[test]
    fn a_name_cannot_write_fields_of_the_journal() {
        assert_eq!(
            journal_entry(&violation().to_string(), &fields(&violation())),
            "MESSAGE=a\\nb: wcet 2 µs, agreed at most 1 µs\nPRIORITY=4\nSYSLOG_IDENTIFIER=punctual\n\
             PUNCTUAL_TASK=a\\nb\nPUNCTUAL_TERM=wcet\nPUNCTUAL_VALUE=2000\nPUNCTUAL_AGREED=1000\n"
        );
    }

    #[test]
    fn a_slow_reader_costs_alarms_and_no_time() {
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().expect("a lock");
        let inside = Arc::clone(&gate);
        let output: Output = Box::new(move |_| drop(inside.lock()));
        let mut alarms = Alarms::start(output, None, false).expect("a thread");
        (0..10_000).for_each(|_| alarms.tell(Alarm::Violation(violation())));
        drop(held);
        let counters = alarms.finish();
        assert_eq!(counters.told + counters.dropped, 10_000);
        assert!(counters.dropped >= 10_000 - WAITING as u64 - 1, "{counters:?}");
    }

    #[test]
    fn a_command_is_told_once_in_a_while() {
        let folder = tempfile::tempdir().expect("a directory");
        let told = folder.path().join("told");
        let command = format!("cat >> '{}'; echo \"$PUNCTUAL_TERM\" >> '{}'", told.display(), told.display());
        let mut alarms = Alarms::start(Box::new(|_| ()), Some(command), false).expect("a thread");
        (0..5).for_each(|_| alarms.tell(Alarm::Violation(violation())));
        let counters = alarms.finish();
        assert!(counters.commands >= 1, "{counters:?}");
        assert_eq!(counters.commands + counters.without_command, 5);
        let mut text = String::new();
        for _ in 0..5_000 {
            text = std::fs::read_to_string(&told).unwrap_or_default();
            if text.ends_with("wcet\n") {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(text.contains("\"value\":2000") && text.ends_with("wcet\n"), "{text}");
    }
}
