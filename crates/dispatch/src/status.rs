//! What a running dispatcher says about itself: over a socket of its own, to whoever asks.

use crate::plan::Clock;
use crate::statistics::Errors;
use punctual_linux::socket::connect_within;
use punctual_model::{Duration, Instant};
use punctual_protocol::dispatcher::FOLDER;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// How long an answer may take: a dispatcher looks a few times a second.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// A running dispatcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// `user` or `sched_ext`.
    pub dispatcher: String,
    /// The table's file, as it was named.
    pub table: String,
    /// The table's clock.
    pub clock: Clock,
    /// When the first slot began, on that clock.
    pub start_ns: Instant,
    /// Length of a slot.
    pub slot_ns: Duration,
    /// Slots of the hyperperiod.
    pub slots: u32,
    /// By processor.
    pub processors: Vec<LaneStatus>,
    /// By task.
    pub tasks: Vec<TaskStatus>,
    /// Jobs and tasks that punctuald has admitted, and that are not over.
    #[serde(default)]
    pub guests: Vec<GuestStatus>,
}

/// A processor of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneStatus {
    /// Its number.
    pub cpu: u32,
    /// The present slot, counted since the start; none before.
    pub slot: Option<u64>,
    /// The task that it belongs to; none: idle.
    pub task: Option<String>,
    /// Turns that are over.
    pub turns: u64,
    /// Turns that were missed.
    pub missed: u64,
    /// How late the processor was handed over; none without a turn.
    pub error: Option<Errors>,
}

/// A task of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its name.
    pub name: String,
    /// Its thread; none: not found.
    pub tid: Option<u32>,
    /// Turns that are over.
    pub turns: u64,
    /// Turns without a thread.
    pub unserved: u64,
    /// Ends of jobs at which it was still ready.
    pub overruns: u64,
    /// Jobs that ended early and gave slots back.
    #[serde(default)]
    pub early: u64,
    /// Processor time in its turns.
    pub ran_ns: Duration,
    /// The most that it ran between two turns.
    pub outside_max_ns: Duration,
}

/// A job or task that punctuald has admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestStatus {
    /// Its name.
    pub name: String,
    /// The spec of punctuald; none: not confirmed yet.
    pub spec: Option<u64>,
    /// Its processor.
    pub cpu: u32,
    /// Its thread; none: not attached yet, or ended.
    pub tid: Option<u32>,
    /// The time of its slots, of each job.
    pub runtime_ns: Duration,
    /// From its release to its deadline.
    pub deadline_ns: Duration,
    /// Its period; none: one job.
    pub period_ns: Option<Duration>,
    /// Turns that are over.
    pub turns: u64,
    /// Processor time in its turns.
    pub ran_ns: Duration,
}

/// Answers whoever asks.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
}

impl Server {
    /// Where this process would listen.
    pub fn path() -> PathBuf {
        Path::new(FOLDER).join(std::process::id().to_string())
    }

    /// Listens there. The file has to be removed at the end.
    pub fn start() -> io::Result<Server> {
        fs::create_dir_all(FOLDER)?;
        fs::set_permissions(FOLDER, fs::Permissions::from_mode(0o755))?;
        let path = Server::path();
        // Of a process that had this number before.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener })
    }

    /// Answers all that wait.
    pub fn answer(&self, status: impl Fn() -> Status) {
        while let Ok((mut asker, _)) = self.listener.accept() {
            // An answer fits the socket's buffer; one that does not is an asker's loss.
            let _ = asker.set_nonblocking(true);
            if let Ok(text) = serde_json::to_vec(&status()) {
                let _ = asker.write_all(&text);
            }
        }
    }
}

/// Removes what dispatchers that were killed have left there.
pub fn clear() {
    crate::leftovers::clear_sockets(Path::new(FOLDER));
}

/// All running dispatchers.
#[derive(Debug, Default)]
pub struct Statuses {
    /// What they say, in the order of their processes.
    pub all: Vec<Status>,
    /// The processes of those that did not answer in time: they are stopped, or have no processor.
    pub silent: Vec<u32>,
}

/// Asks all running dispatchers.
///
/// # Errors
/// If this user may not ask one of them.
pub fn statuses() -> io::Result<Statuses> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let process = |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()));
    let mut found = Statuses::default();
    for (process, path) in entries.filter_map(process) {
        match ask(&path).map_err(|error| (error.kind(), error)) {
            Err((io::ErrorKind::PermissionDenied, error)) => return Err(error),
            Err((io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut, _)) => found.silent.push(process),
            // Nobody listens at what an earlier boot or a killed guardian left.
            answer => found.all.extend(answer),
        }
    }
    found.all.sort_by_key(|status| status.pid);
    found.silent.sort_unstable();
    Ok(found)
}

fn ask(path: &Path) -> io::Result<Status> {
    let mut socket = connect_within(path, PATIENCE)?;
    let mut text = Vec::new();
    socket.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
