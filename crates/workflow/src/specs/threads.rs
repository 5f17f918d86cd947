//! Finds the threads of a command by name and attaches them to their specs.

use super::Need;
use super::live::{Live, threads_of};
use super::remarks::printable;
use super::surplus::Surplus;
use punctual_client::{Admission, Client, Error, Refusal, SpecId};
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval of polling while a program starts.
const OFTEN: Duration = Duration::from_millis(10);
/// Interval of polling for threads that start later or change their names.
const SELDOM: Duration = Duration::from_millis(200);
/// The longer interval begins after this many polls without a change.
const PATIENCE: u32 = 500;

/// A background thread that polls the threads of a command.
pub struct Watcher {
    stop: Sender<()>,
    thread: JoinHandle<Vec<String>>,
}

struct Slot {
    need: Need,
    spec: SpecId,
    thread: Option<u32>,
    /// Whether it ever had a thread.
    served: bool,
    /// Why it cannot be used any more.
    failed: Option<String>,
}

/// Assigns threads to specs.
struct Assigner {
    slots: Vec<Slot>,
    /// The threads at the last poll. A new thread first has the name of the one that started it, so a name
    /// counts from the second poll on.
    last: BTreeMap<u32, Live>,
    surplus: Surplus,
    client: Client,
    /// Takes messages for the user.
    tell: Tell,
    /// Whether to tell which threads got their specs.
    announces: bool,
}

/// Takes messages for the user, from the watching thread.
pub type Tell = Box<dyn Fn(&str) + Send>;

impl Watcher {
    /// Watches the threads of `process` and its descendants. Calls `tell` for threads that share a name with
    /// the model but get no spec, and, if it `announces`, for those that got theirs.
    pub fn start(
        process: u32,
        specs: Vec<(Need, SpecId)>,
        client: Client,
        announces: bool,
        tell: Tell,
    ) -> Watcher {
        let slots = specs.into_iter().map(|(need, spec)| Slot {
            need,
            spec,
            thread: None,
            served: false,
            failed: None,
        });
        let slots = slots.collect();
        let mut assigner =
            Assigner { slots, last: BTreeMap::new(), surplus: Surplus::default(), client, tell, announces };
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut unchanged = 0;
            loop {
                let changed = assigner.update(threads_of(process));
                unchanged = if changed { 0 } else { unchanged + 1 };
                let all = assigner.slots.iter().all(|slot| slot.thread.is_some() || slot.failed.is_some());
                let pause = if all || unchanged > PATIENCE { SELDOM } else { OFTEN };
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    let surplus = assigner.surplus.summary();
                    return remarks(&assigner.slots).into_iter().chain(surplus).collect();
                }
            }
        });
        Watcher { stop, thread }
    }

    /// Stops polling. Returns messages about unused specs and threads without one.
    pub fn stop(self) -> Vec<String> {
        // If sending fails, the thread has ended already.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

/// Specs that did not do what they were meant for: a line for each that failed, and one for each name with
/// missing threads.
fn remarks(slots: &[Slot]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut names: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for slot in slots {
        let name = printable(&slot.need.name);
        match &slot.failed {
            Some(why) => {
                lines.push(format!("thread {name} ({}) could not be scheduled: {why}", slot.need.describe()))
            }
            None => {
                let (served, all) = names.entry(&slot.need.name).or_default();
                (*served, *all) = (*served + usize::from(slot.served), *all + 1);
            }
        }
    }
    for (name, (served, all)) in names {
        let name = printable(name);
        match (served, all) {
            (served, all) if served == all => {}
            (0, 1) => lines.push(format!("no thread named {name} appeared; its spec was not used")),
            (0, all) => lines.push(format!("no thread named {name} appeared; its {all} specs were not used")),
            (served, all) => lines.push(format!(
                "only {served} of {all} threads named {name} appeared; the other specs were not used"
            )),
        }
    }
    lines
}

impl Assigner {
    /// Takes the current threads: those that ended or were renamed leave their specs, and new ones get
    /// theirs. Returns whether anything changed.
    fn update(&mut self, threads: BTreeMap<u32, Live>) -> bool {
        let mut changed = false;
        for slot in &mut self.slots {
            let Some(thread) = slot.thread else { continue };
            let live = threads.get(&thread);
            if live.is_some_and(|live| live.matches(&slot.need)) {
                continue;
            }
            changed = true;
            slot.thread = None;
            if live.is_some() {
                // It was renamed, so it is not the right thread. If it has ended meanwhile, that is fine too.
                let _ = self.client.detach_thread(slot.spec);
            }
        }
        let mut surplus = Vec::new();
        // In order of TIDs, which is the order of their start.
        for (&tid, live) in &threads {
            if self.slots.iter().any(|slot| slot.thread == Some(tid)) {
                continue;
            }
            let settled = self.last.get(&tid) == Some(live);
            match self.waiting_for(live) {
                // Poll again soon.
                Some(_) if !settled => changed = true,
                Some(at) => changed |= self.place(at, tid),
                None if settled && self.is_surplus(live) => surplus.push((tid, live)),
                None => {}
            }
        }
        let needs: Vec<&Need> = self.slots.iter().map(|slot| &slot.need).collect();
        for message in self.surplus.update(&surplus, &needs) {
            (self.tell)(&message);
        }
        self.last = threads;
        changed
    }

    /// The free slot for a thread; preferably one that agrees on whether it is the first of its process.
    fn waiting_for(&self, live: &Live) -> Option<usize> {
        let waiting =
            |slot: &&Slot| slot.thread.is_none() && slot.failed.is_none() && live.matches(&slot.need);
        let slots = self.slots.iter().enumerate();
        let (at, _) =
            slots.filter(|(_, slot)| waiting(slot)).min_by_key(|(_, slot)| slot.need.first != live.first)?;
        Some(at)
    }

    /// Whether all specs for a thread of this name are taken. Failed specs are reported on their own.
    fn is_surplus(&self, live: &Live) -> bool {
        self.slots.iter().any(|slot| slot.need.name == live.name)
            && self.slots.iter().filter(|slot| live.matches(&slot.need)).all(|slot| slot.failed.is_none())
    }

    /// Attaches a thread to a free slot. A thread may get its name later than one that was started after it.
    /// Specs are nevertheless assigned in order of start while a program starts: the thread takes the place
    /// of a younger one with a different spec, which moves on.
    fn place(&mut self, at: usize, mut tid: u32) -> bool {
        let is_new = !self.slots[at].served;
        for earlier in 0..at {
            let (one, other) = (&self.slots[earlier], &self.slots[at]);
            let alike = (&one.need.name, one.need.first) == (&other.need.name, other.need.first);
            let Some(younger) = one.thread.filter(|younger| *younger > tid) else { continue };
            if is_new && alike && one.need.parameters != other.need.parameters {
                // If this is refused, so is attaching, which reports the error.
                let _ = self.client.detach_thread(one.spec);
                self.slots[earlier].thread = None;
                self.attach(earlier, tid, true);
                tid = younger;
            }
        }
        self.attach(at, tid, is_new)
    }

    fn attach(&mut self, at: usize, tid: u32, is_new: bool) -> bool {
        let slot = &mut self.slots[at];
        match self.client.attach_thread(slot.spec, tid) {
            Ok(admission) => {
                if is_new && self.announces {
                    (self.tell)(&announcement(&slot.need, tid, &admission));
                }
                (slot.thread, slot.served) = (Some(tid), true);
                true
            }
            // It has ended, or the daemon has not noticed yet that its predecessor has: the next poll tells.
            Err(Error::Refused(Refusal::NoSuchThread { .. } | Refusal::AlreadyAttached { .. })) => false,
            Err(error) => {
                slot.failed = Some(error.to_string());
                true
            }
        }
    }
}

fn announcement(need: &Need, tid: u32, admission: &Admission) -> String {
    format!("thread {} ({tid}) runs under {}, {}", printable(&need.name), admission.plugin, need.describe())
}
