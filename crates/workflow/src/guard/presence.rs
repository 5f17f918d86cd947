//! Which tasks have threads now. A thread that is not there breaks no agreement, so nobody would hear of it
//! before the end.

use punctual_conformance::TaskThreads;
use std::time::{Duration, Instant};

/// After so long, tasks that have had no thread are told of.
const PATIENT: Duration = Duration::from_secs(10);
/// So long nothing more is told of a task, or threads that come and go would fill a log.
const BETWEEN: Duration = Duration::from_secs(60);

/// What has been told of tasks, by their places in the contract.
#[derive(Debug)]
pub struct Presence {
    begun: Instant,
    tasks: Vec<Task>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Whether it had a thread when it was last looked at.
    had: bool,
    told: Option<Instant>,
}

impl Presence {
    /// Of a contract by which threads are judged since then.
    pub fn since(begun: Instant) -> Presence {
        Presence { begun, tasks: Vec::new() }
    }

    /// What is to be told of tasks whose threads are not there, or not any more.
    pub fn look(&mut self, now: Instant, tasks: &[TaskThreads<'_>]) -> Vec<String> {
        self.tasks.resize(tasks.len(), Task::default());
        let is_late = now.duration_since(self.begun) >= PATIENT;
        let mut news = Vec::new();
        for (known, task) in self.tasks.iter_mut().zip(tasks) {
            let had = std::mem::replace(&mut known.had, task.living > 0);
            let text = match task.seen {
                _ if task.living > 0 || !task.is_missed => continue,
                0 if is_late && known.told.is_none() => format!("{} has had no thread yet", task.name),
                0 => continue,
                _ if had && known.told.is_none_or(|told| now.duration_since(told) >= BETWEEN) => {
                    format!("the last thread of {} has ended", task.name)
                }
                _ => continue,
            };
            known.told = Some(now);
            news.push(text);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_without_threads_are_told_of_once() {
        let begun = Instant::now();
        let mut presence = Presence::since(begun);
        let mut at = |seconds: u64, living: u64, seen: u64| {
            let task = |name, is_missed| TaskThreads { name, living, seen, is_missed };
            presence.look(begun + Duration::from_secs(seconds), &[task("control", true), task("tool", false)])
        };
        assert_eq!(at(9, 0, 0), [""; 0]);
        assert_eq!(at(10, 0, 0), ["control has had no thread yet"]);
        assert_eq!(at(11, 0, 0), [""; 0]);
        assert_eq!(at(12, 2, 2), [""; 0]);
        // Threads that come and go are not told of each time.
        assert_eq!(at(80, 0, 2), ["the last thread of control has ended"]);
        assert_eq!(at(81, 0, 2), [""; 0]);
        assert_eq!(at(82, 1, 3), [""; 0]);
        assert_eq!(at(83, 0, 3), [""; 0]);
        assert_eq!(at(200, 1, 4), [""; 0]);
        assert_eq!(at(201, 0, 4), ["the last thread of control has ended"]);
    }
}
