//! The threads of a kernel trace of LTTng, followed through its events.

use super::super::bystanders::{Bystanders, Shown};
use super::super::switched::{self, MOST_GONE};
use super::super::table;
use super::super::thread::{Out, Thread, Unseen};
use super::calls::{Enter, Happening, MACHINE, Seen, Switched};
use punctual_model::{Duration, Instant};
use punctual_trace::{Begin, TaskRecord};
use rustc_hash::{FxHashMap, FxHashSet};

/// Processors that are followed.
const MOST_CPUS: usize = 1 << 13;

/// A thread that is followed, and the kernel's priority of it, without what a lock lent.
struct Followed {
    thread: Thread,
    priority: i64,
}

/// A processor: who runs there, and how many interrupts are on top.
#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    current: u32,
    interrupts: u32,
    /// Its last switch.
    switched: Option<Instant>,
    /// The last account of a thread that was not seen to run: when, whose, and how long it has run.
    account: Option<(Instant, u32, Duration)>,
}

/// Every thread that came up.
pub struct Threads {
    include_best_effort: bool,
    followed: FxHashMap<u32, Followed>,
    bystanders: Bystanders,
    gone: FxHashSet<u32>,
    pids: FxHashMap<u32, u32>,
    names: FxHashMap<u32, String>,
    /// The priorities that threads have for as long as they hold a lock that a more urgent one waits for.
    lent: FxHashMap<u32, i64>,
    processors: Vec<Processor>,
    /// Of threads that have ended.
    unseen: Unseen,
}

impl Threads {
    pub fn new(include_best_effort: bool) -> Threads {
        Threads {
            include_best_effort,
            followed: FxHashMap::default(),
            bystanders: Bystanders::default(),
            gone: FxHashSet::default(),
            pids: FxHashMap::default(),
            names: FxHashMap::default(),
            lent: FxHashMap::default(),
            processors: Vec::new(),
            unseen: Unseen::default(),
        }
    }

    fn processor(&mut self, cpu: u32) -> &mut Processor {
        let index = (cpu as usize).min(MOST_CPUS);
        if self.processors.len() <= index {
            self.processors.resize(index + 1, Processor::default());
        }
        &mut self.processors[index]
    }

    /// Takes what happened.
    pub fn take(&mut self, seen: &Seen, happening: Happening, out: Out) {
        // The switch to it may be missing.
        if let Some(tid) = seen.tid {
            self.processor(seen.cpu).current = tid;
        }
        match happening {
            Happening::Switch { from, state, to } => {
                if let Some(from) = from {
                    self.leave_processor(seen, &from, state, out);
                }
                let current = to.as_ref().map_or(0, |to| to.tid);
                let switched = Some(seen.at);
                *self.processor(seen.cpu) = Processor { current, switched, ..Processor::default() };
                let Some(to) = to else { return };
                if let Some(followed) = self.follow(&to, seen.at, out) {
                    return followed.thread.switch_in(seen.at, seen.cpu, out);
                }
                let shown = Shown { name: &|| name_of(&self.names, &to), ..ids(&self.pids, &to) };
                self.bystanders.enter(&shown, seen.cpu, seen.at, out);
            }
            Happening::Wake { tid, is_new, begins } => {
                if is_new {
                    self.gone.remove(&tid);
                }
                let Processor { current, interrupts, .. } = *self.processor(seen.cpu);
                let by = if interrupts > 0 { 0 } else { current };
                match self.followed.get_mut(&tid) {
                    Some(followed) if begins => followed.thread.begin_to_wake(seen.at, seen.cpu, by, out),
                    Some(followed) => followed.thread.wake(seen.at, seen.cpu, by, out),
                    None => self.bystanders.wake(tid, by, seen.cpu, seen.at, out),
                }
            }
            Happening::Enter(enter) => self.enter(seen, *enter, out),
            Happening::Leave { result } => {
                if let Some(followed) = self.current(seen) {
                    followed.thread.leave(seen.at, result, out);
                }
            }
            Happening::Move { tid } => {
                if let Some(followed) = self.followed.get_mut(&tid) {
                    followed.thread.migrate(seen.at);
                }
            }
            Happening::Lend { tid, before, priority } => {
                let own = self.followed.get(&tid).map_or(before, |followed| followed.priority);
                // What is given back is no more than its own.
                match priority < own {
                    true => self.lent.insert(tid, priority),
                    false => self.lent.remove(&tid),
                };
            }
            Happening::Account { tid, ran } => self.account(seen, tid, Duration::from_ns(ran), out),
            Happening::Fork { pid, tid } => {
                self.gone.remove(&tid);
                self.names.remove(&tid);
                self.pids.insert(tid, pid);
            }
            Happening::Exec { tid, name } => self.exec(tid, name, seen.at, out),
            Happening::Exit { tid } => self.ended(tid, seen.at, out),
            Happening::Interrupt { is_entry } => {
                let interrupts = &mut self.processor(seen.cpu).interrupts;
                *interrupts = if is_entry { *interrupts + 1 } else { interrupts.saturating_sub(1) };
            }
            Happening::Known { pid, tid, name } => {
                self.pids.insert(tid, pid);
                self.names.entry(tid).or_insert(name);
            }
        }
    }

    fn leave_processor(&mut self, seen: &Seen, from: &Switched, state: i64, out: Out) {
        if switched::is_dead(state) {
            return self.bystanders.end(from.tid, seen.at, out);
        }
        let Processor { switched, account, .. } = *self.processor(seen.cpu);
        let Some(followed) = self.follow(from, seen.at, out) else {
            let shown = Shown { name: &|| name_of(&self.names, from), ..ids(&self.pids, from) };
            return self.bystanders.leave(&shown, state, seen.cpu, seen.at, out);
        };
        switched.into_iter().for_each(|at| followed.thread.is_on_processor(at));
        if let Some((at, _, ran)) = account.filter(|(_, tid, _)| *tid == from.tid) {
            followed.thread.account(at, ran, out);
        }
        let leave = switched::leave(&followed.thread, state, from.priority);
        followed.thread.switch_out(seen.at, seen.cpu, leave, out);
    }

    fn enter(&mut self, seen: &Seen, enter: Enter, out: Out) {
        let Some(followed) = self.current(seen) else { return };
        match enter {
            Enter::Restart => followed.thread.restart(seen.at, out),
            Enter::Other => followed.thread.enter(seen.at, None, out),
            Enter::Call { number, arguments } => {
                let entry = table::entry(MACHINE, number, arguments, followed.priority == -1, seen.at);
                followed.thread.enter(seen.at, entry, out);
            }
        }
    }

    /// The kernel accounts for the time of a thread that runs, here or on another processor. Where the switch
    /// to it is missing, the one from it shows that it ran here.
    fn account(&mut self, seen: &Seen, tid: u32, ran: Duration, out: Out) {
        let processor = self.processor(seen.cpu);
        let (is_current, switched) = (processor.current == tid, processor.switched);
        let Some(followed) = self.followed.get_mut(&tid) else { return };
        if is_current {
            switched.into_iter().for_each(|at| followed.thread.is_on_processor(at));
        }
        match is_current || followed.thread.is_running() {
            true => followed.thread.account(seen.at, ran, out),
            false => self.processor(seen.cpu).account = Some((seen.at, tid, ran)),
        }
    }

    /// The thread that runs where something is seen, if it is followed.
    fn current(&mut self, seen: &Seen) -> Option<&mut Followed> {
        let Processor { current, switched, .. } = *self.processor(seen.cpu);
        let followed = self.followed.get_mut(&current)?;
        switched.into_iter().for_each(|at| followed.thread.is_on_processor(at));
        Some(followed)
    }

    /// The thread if it is one to follow; one that comes into view or changes says so.
    fn follow(&mut self, switched: &Switched, at: Instant, out: Out) -> Option<&mut Followed> {
        let Switched { tid, priority, .. } = *switched;
        if self.gone.contains(&tid) {
            return None;
        }
        let known = self.followed.get(&tid).map(|followed| followed.priority);
        if known == Some(priority) || self.lent.get(&tid) == Some(&priority) {
            return self.followed.get_mut(&tid);
        }
        if known.is_none() && priority >= 100 && !self.include_best_effort {
            return None;
        }
        let begin = switched::begin(known, priority);
        let name = name_of(&self.names, switched);
        let task = self.task(tid, priority, at, begin, name);
        match self.followed.get_mut(&tid) {
            Some(followed) => {
                followed.priority = priority;
                followed.thread.change(task, out);
            }
            None => {
                self.bystanders.forget(tid);
                self.followed.insert(tid, Followed { thread: Thread::new(task, out), priority });
            }
        }
        self.followed.get_mut(&tid)
    }

    fn exec(&mut self, tid: u32, name: String, at: Instant, out: Out) {
        self.gone.remove(&tid);
        self.names.insert(tid, name.clone());
        let Some(priority) = self.followed.get(&tid).map(|followed| followed.priority) else {
            return self.bystanders.forget(tid);
        };
        let task = self.task(tid, priority, at, Begin::Exec, name);
        if let Some(followed) = self.followed.get_mut(&tid) {
            followed.thread.change(task, out);
        }
    }

    fn task(&self, tid: u32, priority: i64, at: Instant, begin: Begin, name: String) -> TaskRecord {
        let pid = self.pids.get(&tid).copied().unwrap_or(tid);
        switched::task(tid, pid, priority, at, begin, name)
    }

    fn ended(&mut self, tid: u32, at: Instant, out: Out) {
        if let Some(mut followed) = self.followed.remove(&tid) {
            followed.thread.exit(at, out);
            self.unseen += followed.thread.unseen();
        }
        self.bystanders.end(tid, at, out);
        if self.gone.len() < MOST_GONE {
            self.gone.insert(tid);
        }
        self.names.remove(&tid);
        self.pids.remove(&tid);
        self.lent.remove(&tid);
    }

    /// Events are missing: whose is not known, so nobody's models go on across it.
    pub fn lose(&mut self) {
        self.gone.clear();
        self.lent.clear();
        self.bystanders = Bystanders::default();
        self.processors.clear();
        self.followed.values_mut().for_each(|followed| followed.thread.lose());
    }

    /// The trace ends. Returns the switches that are missing from it.
    pub fn finish(&mut self, at: Instant, out: Out) -> Unseen {
        let mut threads: Vec<_> = self.followed.drain().collect();
        threads.sort_unstable_by_key(|(tid, _)| *tid);
        for (_, mut followed) in threads {
            followed.thread.end(at, out);
            self.unseen += followed.thread.unseen();
        }
        std::mem::take(&mut self.unseen)
    }
}

/// A thread at a switch, without its name.
fn ids(pids: &FxHashMap<u32, u32>, switched: &Switched) -> Shown<'static> {
    let Switched { tid, priority, .. } = *switched;
    Shown { tid, pid: pids.get(&tid).copied(), priority, name: &String::new }
}

/// The name that a thread is known to have, or else that of the switch.
fn name_of(names: &FxHashMap<u32, String>, switched: &Switched) -> String {
    names.get(&switched.tid).cloned().unwrap_or_else(|| switched.name.clone())
}
