//! Which tasks are phases of one thread. The kernel reuses a TID once its thread has ended, so process and
//! TID alone can name several threads.

use crate::threads::{EndedBy, Task};
use crate::time::Instant;
use std::collections::HashMap;

/// Recording, process, TID.
type Number<'a> = (Option<&'a str>, u32, u32);

/// The thread of each task of a model.
#[derive(Clone, Debug, Default)]
pub struct ThreadIds<'a> {
    /// The threads that had a number, in the order of their first tasks.
    threads: HashMap<Number<'a>, Vec<Thread>>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    from: Instant,
    phases: u64,
}

/// A thread of a model. Ordered by recording, process, TID and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId<'a> {
    recording: Option<&'a str>,
    pid: u32,
    tid: u32,
    /// How many threads had this number before.
    reuse: usize,
}

impl<'a> ThreadIds<'a> {
    /// The threads of these tasks, which may be in any order. O(n log n).
    pub fn new(tasks: impl IntoIterator<Item = &'a Task>) -> ThreadIds<'a> {
        let mut tasks: Vec<&Task> = tasks.into_iter().collect();
        tasks.sort_by_key(|task| (number(task), task.from_ns, task.phase));
        let mut ids = ThreadIds::default();
        let mut before: Option<&Task> = None;
        for task in tasks {
            let threads = ids.threads.entry(number(task)).or_default();
            match threads.last_mut() {
                Some(thread) if before.is_some_and(|before| continues(before, task)) => thread.phases += 1,
                _ => threads.push(Thread { from: task.from_ns, phases: 1 }),
            }
            before = Some(task);
        }
        ids
    }

    /// The threads that had the number of `task`, one of these tasks.
    pub fn near(tasks: &'a [Task], task: &Task) -> ThreadIds<'a> {
        ThreadIds::new(tasks.iter().filter(|other| number(other) == number(task)))
    }

    /// The thread of a task: one of those that these were made of, or the sum of several.
    pub fn of<'t>(&self, task: &'t Task) -> ThreadId<'t> {
        let (recording, pid, tid) = number(task);
        let threads = self.threads.get(&number(task)).map_or(&[][..], |threads| threads);
        let reuse = threads.partition_point(|thread| thread.from <= task.from_ns).saturating_sub(1);
        ThreadId { recording, pid, tid, reuse }
    }

    /// How many phases a task's thread has.
    pub fn phases(&self, task: &Task) -> u64 {
        let threads = self.threads.get(&number(task));
        threads.and_then(|threads| threads.get(self.of(task).reuse)).map_or(1, |thread| thread.phases)
    }
}

fn number(task: &Task) -> Number<'_> {
    (task.recording.as_deref(), task.pid, task.tid)
}

/// Whether `task` is a later phase of the thread of `before`, which had the same number.
fn continues(before: &Task, task: &Task) -> bool {
    // The first phase is missing where tasks were left out.
    before.ended_by != EndedBy::Exit && before.phase < task.phase
}
