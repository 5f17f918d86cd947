//! The running threads of a command.

use super::Need;
use std::collections::BTreeMap;
use std::fs;

/// A running thread of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    pub name: String,
    /// Whether it is the first thread of its process.
    pub first: bool,
}

impl Live {
    /// Whether the spec may be for this thread. The first thread of a process often has the name of one that
    /// it starts, but is not that one.
    pub fn matches(&self, need: &Need) -> bool {
        self.name == need.name && (need.first || !self.first)
    }
}

/// The threads of a process and of all its descendants, by TID.
pub fn threads_of(process: u32) -> BTreeMap<u32, Live> {
    let mut found = BTreeMap::new();
    let mut processes = vec![process];
    while let Some(process) = processes.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let Some(tid) = thread.file_name().to_str().and_then(|tid| tid.parse().ok()) else { continue };
            if let Ok(name) = fs::read(thread.path().join("comm")) {
                let name = String::from_utf8_lossy(&name);
                // Only the kernel's line end: a name may contain others.
                let name = name.strip_suffix('\n').unwrap_or(&name).to_owned();
                found.insert(tid, Live { name, first: tid == process });
            }
            // Not every kernel has this file; without it only the command's own threads are found.
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            processes.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn threads_are_found_with_their_names() {
        let (named, is_named) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::Builder::new().name("a name here".into());
        let thread = thread.spawn(move || {
            named.send(()).expect("the test waits");
            let _ = ended.recv();
        });
        let thread = thread.expect("a thread");
        is_named.recv().expect("it runs");
        let found = threads_of(std::process::id());
        assert!(found.values().any(|live| live.name == "a name here" && !live.first), "{found:?}");
        assert!(found.get(&std::process::id()).is_some_and(|live| live.first));
        drop(end);
        thread.join().expect("ended");
    }
}
