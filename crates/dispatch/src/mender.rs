//! Takes threads of the table back from policies with which they run ahead of it, on a thread of its own.
//!
//! One that has left SCHED_EXT runs ahead of all that have not, on its processor. Meanwhile the session may
//! wait in the kernel for one of those, for example to move a thread to another cgroup, which waits for all
//! readers of RCU: it could not set the policy back then, and nothing else would end that. From user space,
//! one with a greater priority than the dispatching thread keeps that from its processor, with a lock for
//! which the session waits.

use punctual_linux::scheduling::{self, Scheduling};
use punctual_linux::thread::Thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long such a thread may run ahead.
const OFTEN: Duration = Duration::from_millis(20);

/// What a thread gets instead of what was found; `None` if it may keep that.
pub type Instead = dyn Fn(&Scheduling) -> Option<Scheduling> + Send;

/// By task or guest.
#[derive(Debug)]
pub struct Threads(Mutex<Vec<Member>>);

#[derive(Debug, Default)]
struct Member {
    /// Pinned, so that its number cannot stand for another thread after its end.
    thread: Option<Thread>,
    /// What was found and set back since somebody asked.
    found: Option<String>,
}

impl Member {
    fn tid(&self) -> Option<u32> {
        self.thread.as_ref().map(|thread| thread.number)
    }
}

impl Threads {
    /// None is bound.
    pub fn new(tasks: usize) -> Arc<Threads> {
        Arc::new(Threads(Mutex::new((0..tasks).map(|_| Member::default()).collect())))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of a task.
    pub fn get(&self, task: usize) -> Option<u32> {
        self.all()[task].tid()
    }

    /// Binds a thread, or none. The one before keeps its policy from now on. Returns it.
    pub fn set(&self, task: usize, thread: Option<Thread>) -> Option<u32> {
        let new = Member { thread, found: None };
        std::mem::replace(&mut self.all()[task], new).tid()
    }

    /// Whether a thread is bound.
    pub fn contains(&self, tid: u32) -> bool {
        self.all().iter().any(|member| member.tid() == Some(tid))
    }

    /// What was set back for a task since the last time that somebody asked.
    pub fn found(&self, task: usize) -> Option<String> {
        self.all()[task].found.take()
    }

    /// Sets policies back that have changed. The lock is kept: a thread that is no longer bound stays as it
    /// is.
    fn mend(&self, instead: &Instead) {
        for member in self.all().iter_mut() {
            let Some(thread) = &member.thread else { continue };
            let Ok(found) = scheduling::scheduling(thread.number) else { continue };
            // If it lives after its policy was read, that was its own; its end is noticed elsewhere.
            if let Some(scheduling) = instead(&found).filter(|_| thread.lives()) {
                let _ = scheduling::schedule(thread.number, &scheduling);
                member.found = Some(format!("the policy to {found}"));
            }
        }
    }

    /// Does that again and again until it is stopped; wake it up then.
    pub fn start(
        self: &Arc<Self>,
        stop: &Arc<AtomicBool>,
        instead: Box<Instead>,
    ) -> std::io::Result<JoinHandle<()>> {
        let (threads, stop) = (Arc::clone(self), Arc::clone(stop));
        std::thread::Builder::new().name("tt-mender".into()).spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                threads.mend(&instead);
                std::thread::park_timeout(OFTEN);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::living::living;

    #[test]
    fn threads_are_bound_to_tasks() {
        let threads = Threads::new(2);
        let ((one, ..), (other, ..)) = (living(), living());
        let (first, second) = (one.number, other.number);
        assert_eq!((threads.set(1, Some(one)), threads.set(1, Some(other))), (None, Some(first)));
        assert!(threads.contains(second) && !threads.contains(first));
        assert_eq!((threads.get(0), threads.get(1), threads.found(1)), (None, Some(second), None));
        assert_eq!((threads.set(1, None), threads.get(1)), (Some(second), None));
    }

    #[test]
    fn the_number_of_a_thread_that_has_ended_is_nobodys() {
        let (mut ended, end, handle) = living();
        drop(end);
        handle.join().expect("it ends");
        // join() returns before the kernel has quite forgotten the thread.
        while ended.lives() {
            std::thread::yield_now();
        }
        // As if the number had been given to a thread that lives.
        let (other, _end, _handle) = living();
        let before = scheduling::scheduling(other.number).expect("it lives");
        let threads = Threads::new(1);
        ended.number = other.number;
        threads.set(0, Some(ended));
        threads.mend(&|_| Some(Scheduling::ordinary()));
        assert_eq!(threads.found(0), None);
        assert_eq!(scheduling::scheduling(other.number).expect("it lives"), before);
    }
}
