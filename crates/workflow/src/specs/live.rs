//! The running threads of a command.

use super::Need;
use punctual_linux::proc;
use std::collections::BTreeMap;

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
        for tid in proc::threads(process) {
            if let Some(name) = proc::name(tid) {
                found.insert(tid, Live { name, first: tid == process });
            }
            // Not every kernel lists them; without, only the command's own threads are found.
            processes.extend(proc::children(tid).into_iter().flatten());
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
