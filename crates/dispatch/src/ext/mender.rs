//! Gives threads of the table their policy again, on a thread of its own.
//!
//! One that has left SCHED_EXT runs ahead of all that have not, on its processor. Meanwhile the session may
//! wait in the kernel for one of those, for example to move a thread to another cgroup, which waits for all
//! readers of RCU: it could not set the policy back then, and nothing else would end that.

use super::scheduling;
use crate::undo::SCHED_EXT;
use punctual_daemon::kernel;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long such a thread may run ahead.
const OFTEN: Duration = Duration::from_millis(20);

/// By task or guest.
#[derive(Debug)]
pub struct Threads(Mutex<Vec<Member>>);

#[derive(Clone, Debug, Default)]
struct Member {
    tid: Option<u32>,
    /// What was found and set back since somebody asked.
    found: Option<String>,
}

impl Threads {
    /// None is bound.
    pub fn new(tasks: usize) -> Arc<Threads> {
        Arc::new(Threads(Mutex::new(vec![Member::default(); tasks])))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of a task.
    pub fn get(&self, task: usize) -> Option<u32> {
        self.all()[task].tid
    }

    /// Binds a thread, or none. The one before keeps its policy from now on. Returns it.
    pub fn set(&self, task: usize, tid: Option<u32>) -> Option<u32> {
        let new = Member { tid, found: None };
        std::mem::replace(&mut self.all()[task], new).tid
    }

    /// Whether a thread is bound.
    pub fn contains(&self, tid: u32) -> bool {
        self.all().iter().any(|member| member.tid == Some(tid))
    }

    /// What was set back for a task since the last time that somebody asked.
    pub fn found(&self, task: usize) -> Option<String> {
        self.all()[task].found.take()
    }

    /// Sets policies back that have changed. The lock is kept: a thread that is no longer bound stays as it
    /// is.
    fn mend(&self) {
        for member in self.all().iter_mut() {
            let Some(tid) = member.tid else { continue };
            let Ok(found) = kernel::scheduling(tid) else { continue };
            if found.policy != SCHED_EXT {
                // One that is gone meanwhile is noticed soon.
                let _ = kernel::schedule(tid, &scheduling());
                member.found = Some(format!("the policy to {found}"));
            }
        }
    }

    /// Does that again and again until it is stopped; wake it up then.
    pub fn start(self: &Arc<Self>, stop: &Arc<AtomicBool>) -> std::io::Result<JoinHandle<()>> {
        let (threads, stop) = (Arc::clone(self), Arc::clone(stop));
        std::thread::Builder::new().name("tt-mender".into()).spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                threads.mend();
                std::thread::park_timeout(OFTEN);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_bound_to_tasks() {
        let threads = Threads::new(2);
        assert_eq!((threads.set(1, Some(7)), threads.set(1, Some(8))), (None, Some(7)));
        assert!(threads.contains(8) && !threads.contains(7));
        assert_eq!((threads.get(0), threads.get(1), threads.found(1)), (None, Some(8), None));
        assert_eq!((threads.set(1, None), threads.get(1)), (Some(8), None));
    }
}
