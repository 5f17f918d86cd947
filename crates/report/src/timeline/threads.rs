//! Threads and processes: names, tracks, changes, ends.

use super::error::Error;
use super::lanes::Streams;
use super::packets::{Argument, Packets};
use super::proto::{self, BY_RANK, Track};
use super::scheduling::Label;
use punctual_model::{Instant, Policy};
use punctual_trace::{Begin, TaskRecord};
use std::collections::HashMap;
use std::io::Write;

/// A thread that is alive.
pub struct Thread {
    pid: u32,
    pub name: String,
    priority: i32,
    /// Whether it has jobs, beside steps of the scheduler.
    is_watched: bool,
    pub track: u64,
    pub streams: Streams,
}

/// A process with living threads.
struct Process {
    threads: u32,
    /// Its first thread has ended; its number stays in use until the others have ended too.
    first_ended: bool,
}

/// Every thread that is alive.
#[derive(Default)]
pub struct Threads {
    threads: HashMap<u32, Thread>,
    processes: HashMap<u32, Process>,
}

impl Threads {
    pub fn get(&self, tid: u32) -> Option<&Thread> {
        self.threads.get(&tid)
    }

    pub fn get_mut(&mut self, tid: u32) -> Option<&mut Thread> {
        self.threads.get_mut(&tid)
    }

    /// Name and priority of a thread in scheduler events.
    pub fn label(&self, tid: u32) -> Label {
        self.threads
            .get(&tid)
            .map(|thread| Label { name: thread.name.clone(), priority: thread.priority })
            .unwrap_or_default()
    }

    /// Whether this is a thread that is known, and was not watched until now.
    pub fn is_bystander(&self, task: &TaskRecord) -> bool {
        self.get(task.tid).is_some_and(|thread| !thread.is_watched && thread.pid == task.pid)
    }

    /// A new thread; no other has its TID.
    pub fn introduce<W: Write>(
        &mut self,
        task: &TaskRecord,
        is_watched: bool,
        packets: &mut Packets<W>,
    ) -> Result<(), Error> {
        let track = packets.new_track();
        let process = self.processes.entry(task.pid).or_insert(Process { threads: 0, first_ended: false });
        process.threads += 1;
        if process.threads == 1 || task.tid == task.pid {
            packets.process(task.at, task.pid, &task.name, &task.command)?;
        }
        let thread = Thread {
            pid: task.pid,
            name: task.name.clone(),
            priority: kernel_priority(task),
            is_watched,
            track,
            streams: Streams::default(),
        };
        thread.describe(task.tid, task.at, packets)?;
        packets.instant(track, "task", parameters(task), task.at, arguments(task), None)?;
        self.threads.insert(task.tid, thread);
        Ok(())
    }

    /// A thread's parameters or its program changed, or it is watched from now on.
    pub fn change<W: Write>(&mut self, task: &TaskRecord, packets: &mut Packets<W>) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(&task.tid) else {
            return self.introduce(task, true, packets);
        };
        thread.is_watched = true;
        thread.priority = kernel_priority(task);
        let name = match task.begin {
            Begin::Exec => format!("exec {}", task.command),
            Begin::Affinity => format!("processors {}", task.affinity),
            Begin::Policy | Begin::Priority | Begin::Seen => parameters(task),
        };
        let renamed = thread.name != task.name;
        thread.name.clone_from(&task.name);
        let track = thread.track;
        if renamed {
            thread.describe(task.tid, task.at, packets)?;
        }
        // Of a thread that is not watched, the command line is unknown.
        if matches!(task.begin, Begin::Exec | Begin::Seen) {
            packets.process(task.at, task.pid, &task.name, &task.command)?;
        }
        packets.instant(track, "task", name, task.at, arguments(task), None)
    }

    /// A thread that is not watched was seen again, perhaps under another name.
    pub fn update<W: Write>(&mut self, task: &TaskRecord, packets: &mut Packets<W>) -> Result<(), Error> {
        if let Some(thread) = self.threads.get_mut(&task.tid) {
            thread.priority = kernel_priority(task);
            if thread.name != task.name {
                thread.name.clone_from(&task.name);
                thread.describe(task.tid, task.at, packets)?;
            }
        }
        Ok(())
    }

    /// A thread has another name.
    pub fn rename<W: Write>(
        &mut self,
        tid: u32,
        name: &str,
        at: Instant,
        packets: &mut Packets<W>,
    ) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        let arguments = vec![Argument::text("before", thread.name.clone())];
        thread.name = name.to_owned();
        let track = thread.track;
        thread.describe(tid, at, packets)?;
        packets.instant(track, "task", format!("renamed {name}"), at, arguments, None)
    }

    /// The command line of a thread's process.
    pub fn command<W: Write>(
        &mut self,
        tid: u32,
        command: &str,
        at: Instant,
        packets: &mut Packets<W>,
    ) -> Result<(), Error> {
        match self.threads.get(&tid) {
            Some(thread) => packets.process(at, thread.pid, &thread.name, command),
            None => Ok(()),
        }
    }

    /// A thread or its observation ends. Returns the TIDs that may be reused from now on: its own, and once
    /// the process has ended, that of its first thread.
    pub fn end<W: Write>(
        &mut self,
        tid: u32,
        at: Instant,
        exits: bool,
        packets: &mut Packets<W>,
    ) -> Result<Vec<u32>, Error> {
        let Some(thread) = self.threads.remove(&tid) else { return Ok(Vec::new()) };
        packets.instant(
            thread.track,
            "task",
            if exits { "exit" } else { "observation ends" }.into(),
            at,
            Vec::new(),
            None,
        )?;
        let Some(process) = self.processes.get_mut(&thread.pid) else { return Ok(Vec::new()) };
        process.threads -= 1;
        process.first_ended |= exits && tid == thread.pid;
        let (alone, first_ended) = (process.threads == 0, process.first_ended);
        let mut free = Vec::new();
        if exits && tid != thread.pid {
            free.push(tid);
        }
        if alone {
            self.processes.remove(&thread.pid);
            free.extend(first_ended.then_some(thread.pid));
        }
        Ok(free)
    }
}

impl Thread {
    fn describe<W: Write>(&self, tid: u32, at: Instant, packets: &mut Packets<W>) -> Result<(), Error> {
        let thread = proto::Thread { pid: self.pid as i32, tid: tid.into(), name: self.name.clone() };
        packets.track(
            at,
            Track { id: self.track, thread: Some(thread), child_ordering: Some(BY_RANK), ..Track::default() },
        )
    }
}

/// `SCHED_FIFO 80`, `SCHED_OTHER nice 5`, `SCHED_DEADLINE 2 ms in 10 ms, every 10 ms`.
fn parameters(task: &TaskRecord) -> String {
    let policy = task.policy.name();
    match (&task.reservation, task.nice) {
        (Some(reservation), _) => {
            format!(
                "{policy} {} in {}, every {}",
                reservation.runtime_ns, reservation.deadline_ns, reservation.period_ns
            )
        }
        (None, Some(nice)) => format!("{policy} nice {nice}"),
        (None, None) if task.priority > 0 => format!("{policy} {}", task.priority),
        (None, None) => policy.into(),
    }
}

fn arguments(task: &TaskRecord) -> Vec<Argument> {
    let mut arguments =
        vec![Argument::text("policy", task.policy.name()), Argument::text("affinity", task.affinity.clone())];
    if task.priority > 0 {
        arguments.push(Argument::number("priority", task.priority.into()));
    }
    if let Some(nice) = task.nice {
        arguments.push(Argument::signed("nice", nice.into()));
    }
    if let Some(reservation) = &task.reservation {
        arguments.push(Argument::number("runtime_ns", reservation.runtime_ns.ns()));
        arguments.push(Argument::number("deadline_ns", reservation.deadline_ns.ns()));
        arguments.push(Argument::number("period_ns", reservation.period_ns.ns()));
    }
    if !task.command.is_empty() {
        arguments.push(Argument::text("command", task.command.clone()));
    }
    arguments
}

/// The priority as the kernel's tracer has it: the less, the more urgent.
fn kernel_priority(task: &TaskRecord) -> i32 {
    match task.policy {
        Policy::Deadline => -1,
        Policy::Fifo | Policy::Rr => 99 - task.priority.min(99) as i32,
        _ => 120i32.saturating_add(task.nice.unwrap_or(0)),
    }
}
