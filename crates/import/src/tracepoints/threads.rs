//! The threads of a recording of tracepoints, followed through them.

use super::super::bystanders::{Bystanders, Shown};
use super::super::notes::Notes;
use super::super::switched::{self, MOST_GONE};
use super::super::table::{self, Machine};
use super::super::thread::{Out, Thread, Unseen};
use super::Calls;
use super::format::{ENTER_ONE, EXIT_ONE, Format};
use punctual_model::{Duration, Instant};
use punctual_trace::{Begin, TaskRecord};
use std::collections::{HashMap, HashSet};

/// Processors that are followed.
const MOST_CPUS: usize = 1 << 13;

/// A tracepoint that was hit, with who ran there at that moment.
pub struct Seen<'a> {
    pub at: Instant,
    pub cpu: u32,
    pub pid: i32,
    pub tid: i32,
    pub format: &'a Format,
    pub bytes: &'a [u8],
}

impl Seen<'_> {
    fn number(&self, field: &str) -> Option<i64> {
        self.format.number(field, self.bytes)
    }

    fn tid(&self, field: &str) -> Option<i32> {
        i32::try_from(self.number(field)?).ok().filter(|tid| *tid > 0)
    }

    /// In an interrupt, the current thread has nothing to do with what happens.
    fn is_in_interrupt(&self) -> bool {
        const HARD_OR_SOFT: i64 = 0x08 | 0x10;
        self.number("common_flags").is_some_and(|flags| flags & HARD_OR_SOFT != 0)
    }
}

/// A thread that is followed, and what it was last seen as.
struct Followed {
    thread: Thread,
    /// The number of the call that it is in.
    call: Option<i64>,
    /// The kernel's own, without what a lock lent it.
    priority: i64,
}

/// How well the numbers of calls in which threads sleep fit the machine.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    sleeps: u64,
    /// In calls that wait on this machine, and on the other one.
    fits: u64,
    fits_other: u64,
}

impl Fit {
    fn take(&mut self, machine: Machine, call: i64) {
        self.sleeps += 1;
        self.fits += u64::from(machine.waits(call));
        self.fits_other += u64::from(machine.other().waits(call));
    }

    /// Whether nearly all of many sleeps are in calls of the other machine only.
    fn is_of_other(&self) -> bool {
        const MANY: u64 = 10;
        let Fit { sleeps, fits, fits_other } = *self;
        sleeps >= MANY && fits <= sleeps / 10 && fits_other >= sleeps / 2
    }
}

/// Every thread that came up.
pub struct Threads {
    include_best_effort: bool,
    machine: Option<Machine>,
    /// Which tracepoints of system calls are read.
    calls: Calls,
    followed: HashMap<i32, Followed>,
    bystanders: Bystanders,
    /// Threads that have ended; a number comes up again only with a birth.
    gone: HashSet<i32>,
    pids: HashMap<i32, i32>,
    names: HashMap<i32, String>,
    /// Whether the trace has no events of renamed threads.
    names_by_switches: bool,
    /// The priorities that threads have for as long as they hold a lock that a more urgent one waits for.
    lent: HashMap<i32, i64>,
    fit: Fit,
    /// When each processor had its last switch.
    switched: Vec<Option<Instant>>,
    /// Of threads that have ended.
    unseen: Unseen,
}

impl Threads {
    pub fn new(include_best_effort: bool, machine: Option<Machine>, calls: Calls) -> Threads {
        Threads {
            include_best_effort,
            machine,
            calls,
            followed: HashMap::new(),
            bystanders: Bystanders::default(),
            gone: HashSet::new(),
            pids: HashMap::new(),
            names: HashMap::new(),
            names_by_switches: false,
            lent: HashMap::new(),
            fit: Fit::default(),
            switched: Vec::new(),
            unseen: Unseen::default(),
        }
    }

    /// The same for a trace without events of names that threads give themselves: their switches have them.
    pub fn named_by_switches(self, names_by_switches: bool) -> Threads {
        Threads { names_by_switches, ..self }
    }

    /// Takes a tracepoint.
    pub fn sample(&mut self, seen: &Seen, out: Out) {
        if seen.tid > 0 && seen.pid > 0 {
            self.pids.entry(seen.tid).or_insert(seen.pid);
        }
        match seen.format.name.as_str() {
            "sched_switch" => {
                if self.names_by_switches {
                    self.is_called(seen.tid("prev_pid"), "prev_comm", seen, out);
                    self.is_called(seen.tid("next_pid"), "next_comm", seen, out);
                }
                self.leave_processor(seen, out);
                self.get_processor(seen, out);
                self.switch(seen.cpu, seen.at);
            }
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
                let Some(tid) = seen.tid("pid") else { return };
                if seen.format.name == "sched_wakeup_new" {
                    self.gone.remove(&tid);
                }
                let by = if seen.is_in_interrupt() { 0 } else { u32::try_from(seen.tid).unwrap_or(0) };
                match (self.followed.get_mut(&tid), seen.format.name.as_str()) {
                    (Some(followed), "sched_waking") => {
                        followed.thread.begin_to_wake(seen.at, seen.cpu, by, out);
                    }
                    (Some(followed), _) => followed.thread.wake(seen.at, seen.cpu, by, out),
                    (None, _) => self.bystanders.wake(tid as u32, by, seen.cpu, seen.at, out),
                }
            }
            "sys_enter" => self.enter(seen, out),
            "sys_exit" => self.leave(seen, out),
            "sched_stat_runtime" => self.account(seen, out),
            "sched_migrate_task" => {
                let tid = seen.tid("pid");
                if let Some(followed) = tid.and_then(|tid| self.followed.get_mut(&tid)) {
                    followed.thread.migrate(seen.at);
                }
            }
            "sched_pi_setprio" => {
                if let (Some(tid), Some(before), Some(priority)) =
                    (seen.tid("pid"), seen.number("oldprio"), seen.number("newprio"))
                {
                    let own = self.followed.get(&tid).map_or(before, |followed| followed.priority);
                    // What is given back is no more than its own.
                    if priority < own {
                        self.lent.insert(tid, priority);
                    } else {
                        self.lent.remove(&tid);
                    }
                }
            }
            "sched_process_exit" => {
                if let Some(tid) = seen.tid("pid") {
                    self.ended(tid, seen.at, out);
                }
            }
            // A program that another thread than the first one executes takes the number of the first.
            "sched_process_exec" => {
                if let Some(before) = seen.tid("old_pid").filter(|before| Some(*before) != seen.tid("pid")) {
                    self.ended(before, seen.at, out);
                }
            }
            name if self.calls == Calls::Each && name.starts_with(ENTER_ONE) => self.enter(seen, out),
            name if self.calls == Calls::Each && name.starts_with(EXIT_ONE) => self.leave(seen, out),
            _ => seen.format.count_unread(),
        }
    }

    fn leave_processor(&mut self, seen: &Seen, out: Out) {
        let (Some(tid), Some(priority), Some(state)) =
            (seen.tid("prev_pid"), seen.number("prev_prio"), seen.number("prev_state"))
        else {
            return;
        };
        if switched::is_dead(state) {
            return self.bystanders.end(tid as u32, seen.at, out);
        }
        let switched = self.last_switch(seen.cpu);
        let call = self.followed.get(&tid).and_then(|followed| followed.call);
        if let Some((machine, call)) = self.machine.zip(call).filter(|_| switched::sleeps(state)) {
            self.fit.take(machine, call);
        }
        let Some(followed) = self.follow(tid, priority, seen, "prev_comm", out) else {
            let shown = Shown {
                priority,
                name: &|| name_of(&self.names, tid, seen, "prev_comm"),
                ..ids(&self.pids, tid)
            };
            return self.bystanders.leave(&shown, state, seen.cpu, seen.at, out);
        };
        switched.into_iter().for_each(|at| followed.thread.is_on_processor(at));
        let leave = switched::leave(&followed.thread, state, priority);
        followed.thread.switch_out(seen.at, seen.cpu, leave, out);
    }

    fn get_processor(&mut self, seen: &Seen, out: Out) {
        let (Some(tid), Some(priority)) = (seen.tid("next_pid"), seen.number("next_prio")) else { return };
        if let Some(followed) = self.follow(tid, priority, seen, "next_comm", out) {
            return followed.thread.switch_in(seen.at, seen.cpu, out);
        }
        let shown = Shown {
            priority,
            name: &|| name_of(&self.names, tid, seen, "next_comm"),
            ..ids(&self.pids, tid)
        };
        self.bystanders.enter(&shown, seen.cpu, seen.at, out);
    }

    fn enter(&mut self, seen: &Seen, out: Out) {
        let number =
            || seen.number("id").or_else(|| seen.number("__syscall_nr")).or_else(|| seen.number("nr"));
        let (Some(machine), Some(number)) = (self.machine, number()) else { return };
        let Some(followed) = self.current(seen) else { return };
        followed.call = Some(number);
        if table::restarts(machine, number) {
            followed.thread.restart(seen.at, out);
            return;
        }
        let argument = |index| seen.format.argument(index, seen.bytes);
        let arguments = [argument(0), argument(1), argument(2), argument(3), argument(4), argument(5)];
        let entry = table::entry(machine, number, arguments, followed.priority == -1, seen.at);
        followed.thread.enter(seen.at, entry, out);
    }

    fn leave(&mut self, seen: &Seen, out: Out) {
        if let Some(followed) = self.current(seen) {
            followed.call = None;
            followed.thread.leave(seen.at, seen.number("ret"), out);
        }
    }

    /// The kernel accounts for the time of a thread that runs, here or on another processor.
    fn account(&mut self, seen: &Seen, out: Out) {
        let ran = seen.number("runtime").and_then(|ran| u64::try_from(ran).ok());
        let (Some(tid), Some(ran)) = (seen.tid("pid"), ran) else { return };
        let switched = self.last_switch(seen.cpu).filter(|_| seen.tid == tid);
        let Some(followed) = self.followed.get_mut(&tid) else { return };
        switched.into_iter().for_each(|at| followed.thread.is_on_processor(at));
        // The account of a thread that runs elsewhere does not put it on this processor.
        if seen.tid == tid || followed.thread.is_running() {
            followed.thread.account(seen.at, Duration::from_ns(ran), out);
        }
    }

    /// The thread that runs where something is seen, if it is followed.
    fn current(&mut self, seen: &Seen) -> Option<&mut Followed> {
        let switched = self.last_switch(seen.cpu);
        let followed = self.followed.get_mut(&seen.tid)?;
        switched.into_iter().for_each(|at| followed.thread.is_on_processor(at));
        Some(followed)
    }

    fn last_switch(&self, cpu: u32) -> Option<Instant> {
        self.switched.get(cpu as usize).copied().flatten()
    }

    fn switch(&mut self, cpu: u32, at: Instant) {
        let index = (cpu as usize).min(MOST_CPUS);
        if self.switched.len() <= index {
            self.switched.resize(index + 1, None);
        }
        // Those beyond share a place that nobody looks at.
        self.switched[index] = Some(at).filter(|_| index < MOST_CPUS);
    }

    /// The thread if it is one to follow; one that comes into view or changes says so.
    fn follow(
        &mut self,
        tid: i32,
        priority: i64,
        seen: &Seen,
        name: &str,
        out: Out,
    ) -> Option<&mut Followed> {
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
        let name = name_of(&self.names, tid, seen, name);
        let begin = switched::begin(known, priority);
        let task = self.task(tid, priority, seen.at, begin, name)?;
        match self.followed.get_mut(&tid) {
            Some(followed) => {
                followed.priority = priority;
                followed.thread.change(task, out);
            }
            None => {
                self.bystanders.forget(tid as u32);
                self.followed.insert(tid, Followed { thread: Thread::new(task, out), call: None, priority });
            }
        }
        self.followed.get_mut(&tid)
    }

    /// A thread may have named itself since it was named here.
    fn is_called(&mut self, tid: Option<i32>, field: &str, seen: &Seen, out: Out) {
        let Some((tid, name)) = tid.and_then(|tid| Some((tid, self.names.get_mut(&tid)?))) else { return };
        let other = seen.format.text_other_than(name, field, seen.bytes).filter(|other| !other.is_empty());
        let Some(other) = other else { return };
        match self.followed.get_mut(&tid) {
            Some(followed) => followed.thread.rename(&other, out),
            None => self.bystanders.forget(tid as u32),
        }
        *name = other;
    }

    /// A thread has this name, and belongs to this process; by another program that it executes, or
    /// otherwise.
    pub fn name(&mut self, pid: i32, tid: i32, name: &str, at: Option<Instant>, out: Out) {
        self.gone.remove(&tid);
        self.pids.insert(tid, pid);
        self.names.insert(tid, name.to_owned());
        let Some(followed) = self.followed.get_mut(&tid) else { return self.bystanders.forget(tid as u32) };
        match at {
            Some(at) => {
                let priority = followed.priority;
                if let Some(task) = self.task(tid, priority, at, Begin::Exec, name.to_owned()) {
                    if let Some(followed) = self.followed.get_mut(&tid) {
                        followed.thread.change(task, out);
                    }
                }
            }
            None => followed.thread.rename(name, out),
        }
    }

    fn task(&self, tid: i32, priority: i64, at: Instant, begin: Begin, name: String) -> Option<TaskRecord> {
        let number = u32::try_from(tid).ok()?;
        let pid = self.pids.get(&tid).and_then(|pid| u32::try_from(*pid).ok()).unwrap_or(number);
        Some(switched::task(number, pid, priority, at, begin, name))
    }

    /// The own priority of a thread that is followed, without what a lock lends it.
    pub fn priority(&self, tid: i32) -> Option<i64> {
        self.followed.get(&tid).map(|followed| followed.priority)
    }

    /// The process that a thread belongs to, if it is known.
    pub fn process(&self, tid: i32) -> Option<i32> {
        self.pids.get(&tid).copied()
    }

    /// A thread is created. Its name is its creator's until it says otherwise.
    pub fn born(&mut self, pid: i32, tid: i32) {
        self.gone.remove(&tid);
        self.names.remove(&tid);
        self.pids.insert(tid, pid);
    }

    /// A thread ends.
    pub fn ended(&mut self, tid: i32, at: Instant, out: Out) {
        if let Some(mut followed) = self.followed.remove(&tid) {
            followed.thread.exit(at, out);
            self.unseen += followed.thread.unseen();
        }
        self.bystanders.end(tid as u32, at, out);
        if self.gone.len() < MOST_GONE {
            self.gone.insert(tid);
        }
        self.names.remove(&tid);
        self.pids.remove(&tid);
        self.lent.remove(&tid);
    }

    /// Events are missing: whose is not known, so nobody's models go on across it.
    pub fn lose(&mut self) {
        // Births and locks may be among them.
        self.gone.clear();
        self.lent.clear();
        self.bystanders = Bystanders::default();
        self.followed.values_mut().for_each(|followed| followed.thread.lose());
    }

    /// Notes that the calls in which threads slept are those of another machine.
    pub fn say_machine(&self, notes: &mut Notes) {
        if let Some(machine) = self.machine.filter(|_| self.fit.is_of_other()) {
            let (here, other) = (machine.name(), machine.other().name());
            let Fit { sleeps, fits, fits_other } = self.fit;
            notes.say(format!(
                "its system calls are hardly those of {here}: of {sleeps} sleeps in a call, {fits} are in \
                 one that waits there, and {fits_other} in one that waits on {other}; --machine names the \
                 machine"
            ));
        }
    }

    /// The trace ends. Returns the switches that are missing from it.
    pub fn finish(mut self, at: Instant, out: Out) -> Unseen {
        let mut threads: Vec<_> = self.followed.drain().collect();
        threads.sort_unstable_by_key(|(tid, _)| *tid);
        for (_, mut followed) in threads {
            followed.thread.end(at, out);
            self.unseen += followed.thread.unseen();
        }
        self.unseen
    }
}

/// A thread of this TID, without what a switch tells of it.
fn ids(pids: &HashMap<i32, i32>, tid: i32) -> Shown<'static> {
    let pid = pids.get(&tid).map(|pid| *pid as u32);
    Shown { tid: tid as u32, pid, priority: 0, name: &String::new }
}

/// The name that a thread is known to have, or else that of this field.
fn name_of(names: &HashMap<i32, String>, tid: i32, seen: &Seen, field: &str) -> String {
    names.get(&tid).cloned().or_else(|| seen.format.text(field, seen.bytes)).unwrap_or_default()
}
