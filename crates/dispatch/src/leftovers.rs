//! What a dispatcher has left that was killed together with its guardian: sockets, and cgroups with threads
//! in them. The next one clears it away. Priorities stay: nobody knows what they were.

use crate::undo::{remove_cgroup, set_ordinary, threads_in};
use punctual_linux::proc;
use punctual_linux::socket::connect_within;
use punctual_linux::system::is_first_pid_namespace;
use std::fs;
use std::path::{Path, PathBuf};

/// One that is stopped does not answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(100);

/// How cgroups of dispatchers are called: this, the process, and maybe the thread.
const PREFIX: &str = "punctual-tt-";

/// Removes sockets at which nobody listens any more.
pub fn clear_sockets(folder: &Path) {
    for path in entries(folder) {
        let refused = connect_within(&path, PATIENCE)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        if refused {
            // Another one may do the same.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Removes cgroups of dispatchers that have ended; their threads go to the cgroup above. Returns which.
pub fn clear_cgroups(mount: &Path) -> Vec<PathBuf> {
    let mut cleared = Vec::new();
    // In another namespace every number would be that of a process which has ended.
    if !is_first_pid_namespace() {
        return cleared;
    }
    let mut left = vec![mount.to_path_buf()];
    while let Some(folder) = left.pop() {
        for path in entries(&folder).filter(|path| path.is_dir()) {
            match owner(&path) {
                Some(process) if !proc::exists(process) => {
                    let inside = threads_in(&path);
                    let _ = fs::write(path.join("cpuset.cpus.partition"), "member");
                    if remove_cgroup(&path, &folder, &mut |_| ()).is_ok() {
                        inside.into_iter().for_each(set_ordinary);
                        cleared.push(path);
                    }
                }
                Some(_) => {}
                None => left.push(path),
            }
        }
    }
    cleared
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The dispatcher to whose table a thread belongs that is in this cgroup, if that is another one's and runs.
pub fn holder(cgroup: &str, tid: u32) -> Option<u32> {
    let path = Path::new(cgroup);
    let process = owner(path).filter(|process| *process != std::process::id())?;
    let name = path.file_name()?.to_str()?;
    // What a thread of the table has started may be in its cgroup, too.
    let whose = name.strip_prefix(PREFIX)?.split_once('-').map(|(_, of)| of.parse::<u32>());
    let is_its = whose.is_none_or(|of| of == Ok(tid));
    let runs = || is_first_pid_namespace() && proc::exists(process);
    (is_its && runs()).then_some(process)
}

/// The process of a dispatcher's cgroup.
fn owner(path: &Path) -> Option<u32> {
    let rest = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    rest.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_cgroup_names_its_dispatcher() {
        assert_eq!(owner(Path::new("/sys/fs/cgroup/a/punctual-tt-12-34")), Some(12));
        assert_eq!(owner(Path::new("/sys/fs/cgroup/punctual-tt-12")), Some(12));
        assert_eq!(owner(Path::new("/sys/fs/cgroup/punctual-tt-doctor")), None);
        assert_eq!(owner(Path::new("/sys/fs/cgroup/punctual-tt-12/other")), None);
    }

    #[test]
    fn a_thread_in_the_cgroup_of_another_dispatcher_is_its() {
        // The first process always runs; no process has the greatest number.
        let is_first = is_first_pid_namespace();
        let held = is_first.then_some(1);
        assert_eq!(holder("/a/punctual-tt-1-34", 34), held);
        assert_eq!(holder("/a/punctual-tt-1", 34), held);
        assert_eq!(holder("/a/punctual-tt-1-34", 35), None, "a child");
        assert_eq!(holder("/a/punctual-tt-4194304-34", 34), None);
        assert_eq!(holder(&format!("/a/punctual-tt-{}-34", std::process::id()), 34), None);
        assert_eq!(holder("/a/b", 34), None);
    }

    #[test]
    fn sockets_of_the_living_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let (living, dead) = (folder.path().join("1"), folder.path().join("2"));
        let _listener = UnixListener::bind(&living).expect("a socket");
        drop(UnixListener::bind(&dead).expect("a socket"));
        clear_sockets(folder.path());
        assert!(living.exists() && !dead.exists());
    }
}
