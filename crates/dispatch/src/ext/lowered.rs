//! Threads of the table with a real-time priority, as ordinary ones until they are bound.
//!
//! Making a partition and enabling a scheduler wait for RCU, and for what the kernel does on each processor.
//! A thread that never sleeps would keep its processor from both, or the one to which the partition moves
//! it; on PREEMPT_RT, where RCU itself runs at a low priority, for ever.

use crate::error::Error;
use crate::guardian::Guardian;
use crate::undo::Undo;
use punctual_linux::scheduling::{self, Scheduling, State};
use punctual_linux::thread::Thread;
use punctual_schedule::AssignedPolicy;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often threads are looked at: some get their priority while the partition is being made.
const OFTEN: Duration = Duration::from_millis(50);

/// Above any priority that they may have: one may occupy the processor of who looks at them.
const GREATEST: u32 = 99;

/// By number, how threads were scheduled, and how they are again.
#[derive(Debug, Default)]
pub struct Lowered(BTreeMap<u32, (Scheduling, Undo)>);

impl Lowered {
    /// Does `work`, which waits for all processors. Lowers the threads that `threads` finds before and, again
    /// and again, meanwhile. The guardian is told before.
    pub fn during<T>(
        &mut self,
        threads: impl Fn() -> Vec<u32> + Send,
        guardian: &mut Guardian,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.lower(&threads(), guardian)?;
        let (is_going, is_done) = channel();
        let (result, looked) = std::thread::scope(|scope| {
            let looking = scope.spawn(|| self.look_until(is_done, threads, guardian));
            let result = work();
            drop(is_going);
            (result, looking.join())
        });
        let looked =
            looked.unwrap_or_else(|_| Err(Error::other("lowering priorities", "the thread for it panicked")));
        result.and_then(|done| looked.map(|()| done))
    }

    /// What fails does not end it: `work` would wait for threads that come later. Returns the first failure.
    fn look_until(
        &mut self,
        is_done: Receiver<()>,
        threads: impl Fn() -> Vec<u32>,
        guardian: &mut Guardian,
    ) -> Result<(), Error> {
        // Without it, it only looks later.
        let _ = scheduling::schedule(0, &Scheduling::from_policy(AssignedPolicy::Fifo(GREATEST)));
        let mut looked = Ok(());
        while is_done.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
            looked = looked.and(self.lower(&threads(), guardian));
        }
        looked
    }

    /// Lowers all of them that can be; returns the first failure.
    fn lower(&mut self, threads: &[u32], guardian: &mut Guardian) -> Result<(), Error> {
        let mut lowered = Ok(());
        for &tid in threads {
            lowered = lowered.and(self.lower_one(tid, guardian));
        }
        lowered
    }

    fn lower_one(&mut self, tid: u32, guardian: &mut Guardian) -> Result<(), Error> {
        // One that ends meanwhile keeps nobody waiting.
        let (Ok((thread, _)), Ok(before)) = (Thread::pin(tid), State::read(tid)) else { return Ok(()) };
        if !before.scheduling.is_fixed_priority() && !before.scheduling.is_deadline() {
            return Ok(());
        }
        let undo = Undo::Thread {
            tid,
            identity: thread.identity,
            before: Box::new(before),
            priorities: Vec::new(),
            processors: Vec::new(),
            policies: vec![libc::SCHED_OTHER as u32],
        };
        guardian.note(undo.clone())?;
        match scheduling::schedule(tid, &Scheduling::ordinary()) {
            Ok(()) => _ = self.0.insert(tid, (before.scheduling, undo)),
            Err(refused) if refused.is_gone() => {}
            Err(refused) => return Err(Error::unsupported("dispatch by sched_ext", refused)),
        }
        Ok(())
    }

    /// How a thread was scheduled that is `found` so.
    pub fn before(&self, tid: u32, found: Scheduling) -> Scheduling {
        let known = self.0.get(&tid).filter(|_| found.matches(&Scheduling::ordinary()));
        known.map_or(found, |(before, _)| *before)
    }

    /// Gives threads their priority again, except those that are bound by now: what becomes of them was noted
    /// anew. Returns what failed, in words; it is tried again at the end. Those that have their priority are
    /// none of the guardian's business from now on: who makes them SCHED_OTHER wants it.
    pub fn give_back(
        &mut self,
        is_bound: impl Fn(u32) -> bool,
        guardian: &mut Guardian,
    ) -> Result<Vec<String>, Error> {
        let (mut over, mut failed) = (Vec::new(), Vec::new());
        for (tid, (_, undo)) in std::mem::take(&mut self.0) {
            let given = if is_bound(tid) { Ok(()) } else { undo.run() };
            match given {
                Ok(()) => over.push(undo),
                Err(why) => {
                    failed.push(format!("thread {tid} keeps SCHED_OTHER until the table ends: {why}"))
                }
            }
        }
        guardian.withdraw(|undo| over.contains(undo)).map(|()| failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardian::put_back;
    use crate::living::living;
    use std::fs;

    fn fifo() -> Scheduling {
        Scheduling::from_policy(AssignedPolicy::Fifo(5))
    }

    /// What becomes of a thread with a priority that is lowered and, by `then`, perhaps given back, if its
    /// owner makes it SCHED_OTHER before the table ends. `None`, and a line that says why, where this cannot
    /// be tried.
    fn at_the_end(then: impl FnOnce(&mut Lowered, &mut Guardian)) -> Option<Scheduling> {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = folder.path().join("notes");
        let mut program: Vec<std::ffi::OsString> = ["sh", "-c", "cat > \"$0\""].map(Into::into).to_vec();
        program.push(notes.clone().into());
        let (thread, _end, _handle) = living();
        let tid = thread.number;
        let started = Guardian::start(program, 6);
        let (Ok(mut guardian), Ok(())) = (started, scheduling::schedule(tid, &fifo())) else {
            println!("skipped: no real-time priority without privileges");
            return None;
        };
        let now = || scheduling::scheduling(tid).expect("it lives");
        let mut lowered = Lowered::default();
        lowered.lower(&[tid], &mut guardian).expect("lowered");
        assert!(now().matches(&Scheduling::ordinary()));
        assert!(lowered.before(tid, now()).matches(&fifo()));
        then(&mut lowered, &mut guardian);
        scheduling::schedule(tid, &Scheduling::ordinary()).expect("the owner may");
        assert!(guardian.finish().expect("it has ended"));
        assert_eq!(put_back(&*fs::read(notes).expect("notes")), Vec::<String>::new());
        Some(now())
    }

    #[test]
    fn who_changes_a_thread_after_it_was_given_back_keeps_it_so() {
        let found = at_the_end(|lowered, guardian| {
            assert_eq!(lowered.give_back(|_| false, guardian).expect("told"), Vec::<String>::new());
        });
        assert!(found.is_none_or(|found| found.matches(&Scheduling::ordinary())), "{found:?}");
    }

    #[test]
    fn a_thread_that_was_bound_is_left_to_the_note_about_that() {
        let found = at_the_end(|lowered, guardian| {
            assert_eq!(lowered.give_back(|_| true, guardian).expect("told"), Vec::<String>::new());
        });
        assert!(found.is_none_or(|found| found.matches(&Scheduling::ordinary())), "{found:?}");
    }

    #[test]
    fn a_thread_that_was_not_given_back_gets_its_priority_at_the_end() {
        let found = at_the_end(|_, _| {});
        assert!(found.is_none_or(|found| found.matches(&fifo())), "{found:?}");
    }
}
