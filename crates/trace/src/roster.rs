//! Which threads live, what they are, and what the next record of each is.

use crate::{Record, TaskRecord};
use punctual_model::Instant;
use rustc_hash::FxHashMap;

/// Follows records, and can say at any moment what somebody must be told who sees only those that come after.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Each thread as it is; its `sequence` is that of its next record.
    threads: FxHashMap<u32, TaskRecord>,
    /// Threads that are not watched.
    bystanders: FxHashMap<u32, TaskRecord>,
}

impl Roster {
    /// Nobody yet.
    pub fn new() -> Roster {
        Roster::default()
    }

    /// Takes one record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Activation(activation) => {
                if let Some(thread) = self.threads.get_mut(&activation.tid) {
                    thread.sequence = activation.sequence.wrapping_add(1);
                }
            }
            Record::Task(task) => self.put(task, task.sequence.wrapping_add(1)),
            Record::Known(task) => self.put(task, task.sequence),
            Record::Renamed { tid, sequence, name } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.sequence = sequence.wrapping_add(1);
                    thread.name.clone_from(name);
                }
            }
            Record::Command { tid, sequence, command } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.sequence = sequence.wrapping_add(1);
                    thread.command.clone_from(command);
                }
            }
            Record::Busy { tid, sequence, .. } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.sequence = sequence.wrapping_add(1);
                }
            }
            Record::Exit { tid, .. } | Record::Last { tid, .. } => {
                self.threads.remove(tid);
            }
            Record::Bystander(task) => {
                self.bystanders.insert(task.tid, TaskRecord::clone(task));
            }
            Record::BystanderExit { tid, .. } => {
                self.bystanders.remove(tid);
            }
            Record::Switch(_)
            | Record::ClockSet { .. }
            | Record::Lost { .. }
            | Record::Latency(_)
            | Record::Dispatch(_) => {}
        }
    }

    fn put(&mut self, task: &TaskRecord, sequence: u32) {
        self.bystanders.remove(&task.tid);
        self.threads.insert(task.tid, TaskRecord { sequence, ..task.clone() });
    }

    /// How many threads live.
    pub fn len(&self) -> usize {
        self.threads.len() + self.bystanders.len()
    }

    /// Whether no thread lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each thread as it is at this moment, as [`Record::Known`] or [`Record::Bystander`], by number.
    pub fn known(&self, at: Instant) -> Vec<Record> {
        let now = |thread: &TaskRecord| Box::new(TaskRecord { at, ..thread.clone() });
        let threads = self.threads.values().map(|thread| Record::Known(now(thread)));
        let bystanders = self.bystanders.values().map(|thread| Record::Bystander(now(thread)));
        let mut records: Vec<Record> = threads.chain(bystanders).collect();
        records.sort_by_key(Record::tid);
        records
    }
}
