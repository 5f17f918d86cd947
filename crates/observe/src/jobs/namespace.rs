//! Translates records from thread numbers of the initial PID namespace to the observer's, and completes
//! command lines.

use super::records::{CommandEntry, Entry, TaskEntry};
use crate::system;
use punctual_trace::Record;
use std::collections::HashMap;

/// How many command lines are remembered at most.
const MOST_COMMANDS: usize = 1024;

/// What earlier records said of numbers and command lines.
#[derive(Default)]
pub struct Namespace {
    /// The observer's number of a thread; only where it differs.
    translated: HashMap<u32, u32>,
    /// Command lines as executed, for processes that have ended before they could be asked.
    commands: HashMap<u32, String>,
}

impl Namespace {
    /// The record of an entry, with the observer's numbers.
    pub fn translate(&mut self, entry: Entry) -> Record {
        let mut record = match entry {
            Entry::Record(record) => record,
            Entry::Task(task) => return self.task(*task),
            Entry::Command(entry) => {
                let CommandEntry { tid, sequence, seen_tgid, command, is_cut } = *entry;
                Record::Command { tid, sequence, command: complete(command, is_cut, seen_tgid) }
            }
        };
        if !self.translated.is_empty() {
            let tid = match &mut record {
                Record::Latency(_) | Record::Dispatch(_) => return record,
                Record::Task(task) | Record::Known(task) | Record::Bystander(task) => &mut task.tid,
                Record::Activation(activation) => &mut activation.tid,
                Record::Switch(switch) => &mut switch.tid,
                Record::Renamed { tid, .. }
                | Record::Command { tid, .. }
                | Record::Exit { tid, .. }
                | Record::BystanderExit { tid, .. }
                | Record::Last { tid, .. } => tid,
            };
            *tid = self.translated.get(tid).copied().unwrap_or(*tid);
        }
        record
    }

    /// The number in the initial namespace of a thread with this number.
    pub fn original(&self, tid: u32) -> u32 {
        self.translated.iter().find(|(_, seen)| **seen == tid).map_or(tid, |(original, _)| *original)
    }

    fn task(&mut self, entry: TaskEntry) -> Record {
        let mut record = entry.record;
        let process = if entry.seen_tgid != 0 { entry.seen_tgid } else { record.pid };
        if entry.seen_tid != 0 && entry.seen_tid != record.tid {
            self.translated.insert(record.tid, entry.seen_tid);
            record.tid = entry.seen_tid;
        }
        record.command = complete(record.command, entry.command_is_cut, process);
        if record.command.is_empty() && !entry.is_kernel_thread {
            record.command = system::command_line(process);
            if record.command.is_empty() {
                record.command = self.commands.get(&record.pid).cloned().unwrap_or_default();
            }
        } else if !record.command.is_empty() && self.commands.len() < MOST_COMMANDS {
            self.commands.insert(record.pid, record.command.clone());
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
