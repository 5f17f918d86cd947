//! Threads of a command, found by their names and attached to the specs that wait for them.

use super::beyond::Beyond;
use super::model::Need;
use super::remarks::shown;
use crate::console;
use punctual_client::{Admission, Client, Error, Refusal, SpecId};
use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the names are looked at: first while a program starts, then for threads that come later or
/// change their names.
const OFTEN: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_millis(200);
/// After so many looks that changed nothing.
const PATIENCE: u32 = 500;

/// A thread of our own that looks, until it is stopped.
pub struct Watcher {
    stop: Sender<()>,
    looking: JoinHandle<Vec<String>>,
}

/// A thread of the command as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    pub name: String,
    /// Whether it is the first thread of its process.
    pub first: bool,
}

impl Live {
    /// A process's first thread often has the name of one that it starts, and is never that one.
    pub fn can_be(&self, need: &Need) -> bool {
        self.name == need.name && (need.first || !self.first)
    }
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

struct Look {
    slots: Vec<Slot>,
    /// What was seen at the last look. What a thread starts has its name at first, so a name counts from the
    /// second look on.
    last: BTreeMap<u32, Live>,
    beyond: Beyond,
    client: Client,
    quiet: bool,
}

impl Watcher {
    pub fn start(process: u32, specs: Vec<(Need, SpecId)>, client: Client, quiet: bool) -> Watcher {
        let slots = specs.into_iter().map(|(need, spec)| Slot {
            need,
            spec,
            thread: None,
            served: false,
            failed: None,
        });
        let mut look =
            Look { slots: slots.collect(), last: BTreeMap::new(), beyond: Beyond::default(), client, quiet };
        let (stop, stopped) = channel();
        let looking = std::thread::spawn(move || {
            let mut unchanged = 0;
            loop {
                let changed = look.at(threads_of(process));
                unchanged = if changed { 0 } else { unchanged + 1 };
                let all = look.slots.iter().all(|slot| slot.thread.is_some() || slot.failed.is_some());
                let pause = if all || unchanged > PATIENCE { SELDOM } else { OFTEN };
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return remarks(&look.slots).into_iter().chain(look.beyond.remarks()).collect();
                }
            }
        });
        Watcher { stop, looking }
    }

    /// Ends it; in words, which specs were of no use, and how many threads had none.
    pub fn stop(self) -> Vec<String> {
        // It ends by the message or by the sender's end.
        let _ = self.stop.send(());
        self.looking.join().unwrap_or_default()
    }
}

/// What became of the specs, where that is not what was meant: a line for each that failed, and one for each
/// name of which threads were missing.
fn remarks(slots: &[Slot]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut names: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for slot in slots {
        let name = shown(&slot.need.name);
        match &slot.failed {
            Some(why) => {
                lines.push(format!("thread {name} ({}) could not be scheduled: {why}", slot.need.told()))
            }
            None => {
                let (served, all) = names.entry(&slot.need.name).or_default();
                (*served, *all) = (*served + usize::from(slot.served), *all + 1);
            }
        }
    }
    for (name, (served, all)) in names {
        let name = shown(name);
        match (served, all) {
            (served, all) if served == all => {}
            (0, 1) => lines.push(format!("no thread named {name} appeared; its spec was not used")),
            (0, all) => lines.push(format!("no thread named {name} appeared; its {all} specs were not used")),
            (served, all) => lines.push(format!(
                "just {served} of {all} threads named {name} appeared; the other specs were not used"
            )),
        }
    }
    lines
}

impl Look {
    /// One look at all threads: those that have gone or have other names now leave their specs, and those
    /// that are waited for get theirs.
    fn at(&mut self, threads: BTreeMap<u32, Live>) -> bool {
        let mut changed = false;
        for slot in &mut self.slots {
            let Some(thread) = slot.thread else { continue };
            let live = threads.get(&thread);
            if live.is_some_and(|live| live.can_be(&slot.need)) {
                continue;
            }
            changed = true;
            slot.thread = None;
            if live.is_some() {
                // Its name is another one now, so it is not the thread that was meant; if it has gone
                // meanwhile, that is as well.
                let _ = self.client.detach_thread(slot.spec);
            }
        }
        let mut beyond = Vec::new();
        // In ascending order of their numbers, which is that of their start.
        for (&tid, live) in &threads {
            if self.slots.iter().any(|slot| slot.thread == Some(tid)) {
                continue;
            }
            let settled = self.last.get(&tid) == Some(live);
            match self.waiting_for(live) {
                // The next look is to come soon.
                Some(_) if !settled => changed = true,
                Some(at) => changed |= self.place(at, tid),
                None if settled && self.is_beyond(live) => beyond.push((tid, live)),
                None => {}
            }
        }
        let needs: Vec<&Need> = self.slots.iter().map(|slot| &slot.need).collect();
        for told in self.beyond.look(&beyond, &needs) {
            console::message(&told);
        }
        self.last = threads;
        changed
    }

    /// The slot for a thread: rather one that is of a process's first thread, as it is, or is not, as it is
    /// not.
    fn waiting_for(&self, live: &Live) -> Option<usize> {
        let waiting =
            |slot: &&Slot| slot.thread.is_none() && slot.failed.is_none() && live.can_be(&slot.need);
        let slots = self.slots.iter().enumerate();
        let (at, _) =
            slots.filter(|(_, slot)| waiting(slot)).min_by_key(|(_, slot)| slot.need.first != live.first)?;
        Some(at)
    }

    /// Whether all that it could be are others. Where a spec failed, that is told by itself.
    fn is_beyond(&self, live: &Live) -> bool {
        self.slots.iter().any(|slot| slot.need.name == live.name)
            && self.slots.iter().filter(|slot| live.can_be(&slot.need)).all(|slot| slot.failed.is_none())
    }

    /// Attaches a thread to a slot that waits for it. A thread may get its name later than one that was
    /// started after it. While a program starts, its specs go by the order of the threads all the same: this
    /// one takes the place of a younger one that needs something else, which moves on.
    fn place(&mut self, at: usize, mut tid: u32) -> bool {
        let is_new = !self.slots[at].served;
        for earlier in 0..at {
            let (one, other) = (&self.slots[earlier], &self.slots[at]);
            let alike = (&one.need.name, one.need.first) == (&other.need.name, other.need.first);
            let Some(younger) = one.thread.filter(|younger| *younger > tid) else { continue };
            if is_new && alike && one.need.parameters != other.need.parameters {
                // What refuses this refuses the attaching too, which tells.
                let _ = self.client.detach_thread(one.spec);
                self.slots[earlier].thread = None;
                self.attach(earlier, tid, true);
                tid = younger;
            }
        }
        self.attach(at, tid, is_new)
    }

    fn attach(&mut self, at: usize, tid: u32, telling: bool) -> bool {
        let slot = &mut self.slots[at];
        match self.client.attach_thread(slot.spec, tid) {
            Ok(admission) => {
                if telling && !self.quiet {
                    tell(&slot.need, tid, &admission);
                }
                (slot.thread, slot.served) = (Some(tid), true);
                true
            }
            // It has gone, or the daemon has not seen yet that the one before it has: the next look tells.
            Err(Error::Refused(Refusal::NoSuchThread { .. } | Refusal::AlreadyAttached { .. })) => false,
            Err(error) => {
                slot.failed = Some(error.to_string());
                true
            }
        }
    }
}

fn tell(need: &Need, tid: u32, admission: &Admission) {
    console::message(&format!(
        "thread {} ({tid}) runs under {}, {}",
        shown(&need.name),
        admission.plugin,
        need.told()
    ));
}

/// The threads of a process and of all that it has started, by their numbers.
fn threads_of(process: u32) -> BTreeMap<u32, Live> {
    let mut found = BTreeMap::new();
    let mut processes = vec![process];
    while let Some(process) = processes.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let Some(tid) = thread.file_name().to_str().and_then(|tid| tid.parse().ok()) else { continue };
            if let Ok(name) = fs::read(thread.path().join("comm")) {
                let name = String::from_utf8_lossy(&name);
                // The kernel's line end alone: a name may have its own.
                let name = name.strip_suffix('\n').unwrap_or(&name).to_owned();
                found.insert(tid, Live { name, first: tid == process });
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
        assert!(found.values().any(|live| live.name == "a name here" && !live.first), "{found:?}");
        assert!(found.get(&std::process::id()).is_some_and(|live| live.first));
        drop(end);
        thread.join().expect("ended");
    }
}
