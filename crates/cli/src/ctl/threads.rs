//! Threads of a command, found by their names and attached to the specs that wait for them.

use super::model::Need;
use punctual_client::{Client, Error, Refusal, SpecId};
use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the names are looked at: first while a program starts, then for threads that come later or change their names.
const OFTEN: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_millis(200);
/// After so many looks that changed nothing.
const PATIENCE: u32 = 500;

/// A thread of our own that looks, until it is stopped.
pub struct Watcher {
    stop: Sender<()>,
    looking: JoinHandle<Vec<String>>,
}

struct Slot {
    need: Need,
    spec: SpecId,
    thread: Option<u32>,
    /// Whether it ever had one.
    served: bool,
    /// Why it cannot be used any more.
    failed: Option<String>,
}

impl Watcher {
    pub fn start(process: u32, specs: Vec<(Need, SpecId)>, mut client: Client, quiet: bool) -> Watcher {
        let slots = specs.into_iter().map(|(need, spec)| Slot { need, spec, thread: None, served: false, failed: None });
        let mut slots: Vec<Slot> = slots.collect();
        let (stop, stopped) = channel();
        let looking = std::thread::spawn(move || {
            let mut unchanged = 0;
            loop {
                let changed = look(&threads_of(process), &mut slots, &mut client, quiet);
                unchanged = if changed { 0 } else { unchanged + 1 };
                let all = slots.iter().all(|slot| slot.thread.is_some() || slot.failed.is_some());
                let pause = if all || unchanged > PATIENCE { SELDOM } else { OFTEN };
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return slots.iter().filter_map(remark).collect();
                }
            }
        });
        Watcher { stop, looking }
    }

    /// Ends it; in words, which specs were of no use.
    pub fn stop(self) -> Vec<String> {
        // It ends by the message or by the sender's end.
        let _ = self.stop.send(());
        self.looking.join().unwrap_or_default()
    }
}

fn remark(slot: &Slot) -> Option<String> {
    let name = &slot.need.name;
    match (&slot.failed, slot.served) {
        (Some(why), _) => Some(format!("thread {name} could not be scheduled: {why}")),
        (None, false) => Some(format!("no thread named {name} appeared; its spec was not used")),
        (None, true) => None,
    }
}

/// One look at all threads: those that have gone or have other names now leave their specs, and those that are waited for get theirs.
fn look(threads: &BTreeMap<u32, String>, slots: &mut [Slot], client: &mut Client, quiet: bool) -> bool {
    let mut changed = false;
    for slot in slots.iter_mut() {
        let Some(thread) = slot.thread else { continue };
        let name = threads.get(&thread);
        if name == Some(&slot.need.name) {
            continue;
        }
        changed = true;
        slot.thread = None;
        if name.is_some() {
            // Its name is another one now, so it is not the thread that was meant; if it has gone meanwhile, that is as well.
            let _ = client.detach_thread(slot.spec);
        }
    }
    for (&thread, name) in threads {
        if slots.iter().any(|slot| slot.thread == Some(thread)) {
            continue;
        }
        let waiting = |slot: &&mut Slot| slot.thread.is_none() && slot.failed.is_none() && slot.need.name == *name;
        let Some(slot) = slots.iter_mut().find(waiting) else { continue };
        match client.attach_thread(slot.spec, thread) {
            Ok(admission) => {
                if !quiet && !slot.served {
                    eprintln!("punctual: thread {name} ({thread}) runs under {}, {}", admission.plugin, slot.need.told());
                }
                (slot.thread, slot.served, changed) = (Some(thread), true, true);
            }
            // It has gone, or the daemon has not seen yet that the one before it has: the next look tells.
            Err(Error::Refused(Refusal::NoSuchThread { .. } | Refusal::AlreadyAttached { .. })) => {}
            Err(error) => (slot.failed, changed) = (Some(error.to_string()), true),
        }
    }
    changed
}

/// The threads of a process and of all that it has started, with their names.
fn threads_of(process: u32) -> BTreeMap<u32, String> {
    let mut found = BTreeMap::new();
    let mut processes = vec![process];
    while let Some(process) = processes.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let Some(tid) = thread.file_name().to_str().and_then(|tid| tid.parse().ok()) else { continue };
            if let Ok(name) = fs::read(thread.path().join("comm")) {
                found.insert(tid, String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned());
            }
            // Not every kernel has it; then only the command's own threads are found.
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            processes.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(found.values().any(|name| name == "a name here"), "{found:?}");
        assert!(found.contains_key(&std::process::id()));
        drop(end);
        thread.join().expect("ended");
    }
}
