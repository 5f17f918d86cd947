//! Translates records from thread numbers of the initial PID namespace to the observer's, and completes
//! command lines and the names of addresses.

use super::blocked;
use super::moments::Translation;
use super::names::Names;
use super::records::{CommandEntry, Entry, TaskEntry};
use crate::system;
use punctual_trace::Record;
use std::collections::{HashMap, VecDeque};

/// How many command lines are remembered: the latest.
const MOST_COMMANDS: usize = 1024;

/// How many threads that have ended are still known.
const MOST_ENDED: usize = 256;

/// What earlier records said of numbers and command lines.
#[derive(Default)]
pub struct Namespace {
    /// The observer's number of a thread that lives; only where it differs.
    translated: HashMap<u32, u32>,
    /// The other way round.
    originals: HashMap<u32, u32>,
    /// Command lines as executed, for processes that have ended before they could be asked.
    commands: HashMap<u32, String>,
    /// Their processes, in the order in which they came.
    remembered: VecDeque<u32>,
    names: Names,
    /// Threads that have ended and are still known.
    ended: VecDeque<u32>,
}

impl Namespace {
    /// The record of an entry, with the observer's numbers.
    pub fn translate(&mut self, entry: Entry) -> Record {
        let mut record = match entry {
            Entry::Record(record) => record,
            Entry::Task(task) => return self.task(*task),
            Entry::Blocked(raw) => {
                let tid = self.seen(raw.header.tid);
                return Record::Switch(blocked::switch(tid, &raw, &mut self.names));
            }
            Entry::Command(entry) => {
                let CommandEntry { tid, sequence, seen_tgid, command, is_cut } = *entry;
                Record::Command { tid, sequence, command: complete(command, is_cut, seen_tgid) }
            }
        };
        if !self.translated.is_empty() {
            let tid = match &mut record {
                Record::ClockSet { .. } | Record::Lost { .. } | Record::Latency(_) | Record::Dispatch(_) => {
                    return record;
                }
                Record::Task(task) | Record::Known(task) | Record::Bystander(task) => &mut task.tid,
                Record::Activation(activation) => &mut activation.tid,
                Record::Switch(switch) => &mut switch.tid,
                Record::Renamed { tid, .. }
                | Record::Command { tid, .. }
                | Record::Busy { tid, .. }
                | Record::Exit { tid, .. }
                | Record::BystanderExit { tid, .. }
                | Record::Last { tid, .. } => tid,
            };
            *tid = self.translated.get(tid).copied().unwrap_or(*tid);
        }
        match &mut record {
            Record::Activation(activation) => self.names.complete(activation.tid, &mut activation.separator),
            Record::Exit { tid, .. } | Record::BystanderExit { tid, .. } => self.end(*tid),
            _ => {}
        }
        record
    }

    /// The numbers of threads and names of addresses that are known now.
    pub fn translation(&self) -> Translation {
        Translation { numbers: self.translated.clone(), threads: self.names.threads().clone() }
    }

    /// A thread has ended. Its last moments may still be read.
    fn end(&mut self, tid: u32) {
        self.ended.push_back(tid);
        if self.ended.len() > MOST_ENDED {
            if let Some(oldest) = self.ended.pop_front() {
                self.names.end(oldest);
                self.forget(self.original(oldest));
            }
        }
    }

    /// The number in the observer's namespace of a thread with this number in the initial one.
    pub fn seen(&self, original: u32) -> u32 {
        self.translated.get(&original).copied().unwrap_or(original)
    }

    /// The number in the initial namespace of a thread with this number.
    pub fn original(&self, tid: u32) -> u32 {
        self.originals.get(&tid).copied().unwrap_or(tid)
    }

    /// A thread has these numbers; `seen` is 0 if it is not in the observer's namespace. Whoever had them
    /// before has ended, even if its record was lost.
    fn know(&mut self, original: u32, seen: u32) {
        self.ended.retain(|ended| *ended != seen);
        self.forget(original);
        if seen == 0 {
            return;
        }
        if let Some(before) = self.originals.remove(&seen) {
            self.translated.remove(&before);
        }
        if seen != original {
            self.translated.insert(original, seen);
            self.originals.insert(seen, original);
        }
    }

    /// A thread has ended: its number may come again and mean another one.
    fn forget(&mut self, original: u32) {
        if let Some(seen) = self.translated.remove(&original) {
            self.originals.remove(&seen);
        }
    }

    fn remember_command(&mut self, process: u32, command: &str) {
        if self.commands.insert(process, command.to_owned()).is_some() {
            return;
        }
        self.remembered.push_back(process);
        if self.remembered.len() > MOST_COMMANDS {
            if let Some(oldest) = self.remembered.pop_front() {
                self.commands.remove(&oldest);
            }
        }
    }

    fn task(&mut self, entry: TaskEntry) -> Record {
        let mut record = entry.record;
        let process = if entry.seen_tgid != 0 { entry.seen_tgid } else { record.pid };
        self.know(record.tid, entry.seen_tid);
        if entry.seen_tid != 0 {
            record.tid = entry.seen_tid;
            if !entry.is_bystander {
                self.names.begin(record.tid, record.begin);
            }
        }
        record.command = complete(record.command, entry.command_is_cut, process);
        if record.command.is_empty() && !entry.is_kernel_thread {
            record.command = system::command_line(process);
            if record.command.is_empty() {
                record.command = self.commands.get(&record.pid).cloned().unwrap_or_default();
            }
        } else if !record.command.is_empty() {
            self.remember_command(record.pid, &record.command);
        }
        record.pid = process;
        match entry.is_bystander {
            true => Record::Bystander(Box::new(record)),
            false => Record::Task(Box::new(record)),
        }
    }
}

/// The whole of a command line of which the programs sent the beginning, if the process still has it.
fn complete(command: String, is_cut: bool, pid: u32) -> String {
    let whole = if is_cut { system::command_line(pid) } else { String::new() };
    if whole.starts_with(&command) { whole } else { command }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{Instant, Policy};
    use punctual_trace::{Begin, TaskRecord};

    /// A thread with a number in the initial namespace, and in the observer's.
    fn begin(namespace: &mut Namespace, tid: u32, seen_tid: u32) -> u32 {
        let record = TaskRecord {
            tid,
            pid: tid,
            sequence: 0,
            at: Instant::from_ns(0),
            begin: Begin::Seen,
            name: "a".into(),
            command: format!("command {tid}"),
            policy: Policy::Fifo,
            priority: 1,
            nice: None,
            reservation: None,
            affinity: "0".into(),
        };
        let entry = TaskEntry {
            record,
            seen_tid,
            seen_tgid: seen_tid,
            is_kernel_thread: false,
            command_is_cut: false,
            is_bystander: false,
        };
        match namespace.translate(Entry::Task(Box::new(entry))) {
            Record::Task(task) => task.tid,
            other => panic!("{other:?}"),
        }
    }

    fn exit(namespace: &mut Namespace, tid: u32) -> u32 {
        let record = Record::Exit { tid, sequence: 1, at: Instant::from_ns(1) };
        match namespace.translate(Entry::Record(record)) {
            Record::Exit { tid, .. } => tid,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_thread_that_ended_gives_its_numbers_back() {
        let mut namespace = Namespace::default();
        assert_eq!(begin(&mut namespace, 5_000, 7), 7);
        assert_eq!((begin(&mut namespace, 5_001, 8), namespace.original(7)), (8, 5_000));
        // What it did may still be asked for.
        assert_eq!((exit(&mut namespace, 5_000), namespace.seen(5_000)), (7, 7));
        // Its number in the observer's namespace comes again, with another one outside, and the other way.
        assert_eq!((begin(&mut namespace, 6_000, 7), namespace.original(7)), (7, 6_000));
        assert_eq!((begin(&mut namespace, 5_000, 9), namespace.original(9)), (9, 5_000));
        assert_eq!((exit(&mut namespace, 6_000), exit(&mut namespace, 5_000)), (7, 9));
        assert_eq!(exit(&mut namespace, 5_001), 8);
        assert_eq!((namespace.seen(6_000), namespace.ended.len()), (7, 3));
    }

    /// The records of ends may be lost.
    #[test]
    fn numbers_that_come_again_mean_the_new_thread() {
        let mut namespace = Namespace::default();
        begin(&mut namespace, 5_000, 7);
        assert_eq!((begin(&mut namespace, 6_000, 7), namespace.original(7)), (7, 6_000));
        assert_eq!(namespace.translated.len(), 1);
        // Outside of the observer's namespace, and then the same in both.
        assert_eq!((begin(&mut namespace, 6_000, 0), exit(&mut namespace, 6_000)), (6_000, 6_000));
        begin(&mut namespace, 5_000, 7);
        assert_eq!((begin(&mut namespace, 7, 7), namespace.original(7)), (7, 7));
        assert!(namespace.translated.is_empty() && namespace.originals.is_empty());
    }

    #[test]
    fn memory_does_not_grow_with_threads() {
        let mut namespace = Namespace::default();
        for thread in 0..10_000 {
            begin(&mut namespace, 20_000 + thread, 1 + thread % 100);
            exit(&mut namespace, 20_000 + thread);
        }
        assert_eq!((namespace.translated.len(), namespace.originals.len()), (100, 100));
        assert!(namespace.ended.len() <= MOST_ENDED);
        assert_eq!((namespace.commands.len(), namespace.remembered.len()), (MOST_COMMANDS, MOST_COMMANDS));
        assert!(namespace.commands.contains_key(&29_999));
    }
}
