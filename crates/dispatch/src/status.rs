//! What a running dispatcher says about itself: over a socket of its own, to whoever asks.

use punctual_linux::socket::connect_within;
use punctual_protocol::dispatcher::FOLDER;
use punctual_tables::Status;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// How long an answer may take: a dispatcher looks a few times a second.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

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
