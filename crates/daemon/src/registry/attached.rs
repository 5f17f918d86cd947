//! The thread of a spec, and what the daemon did to it.

use crate::record::Applied;
use punctual_linux::scheduling::{Clamped, Scheduling, State};
use punctual_linux::thread::Thread;
use punctual_protocol::Used;
use std::sync::Arc;

/// The thread of a spec.
#[derive(Debug)]
pub struct AttachedThread {
    /// Pinned.
    pub thread: Arc<Thread>,
    /// Its TID as the client named it.
    pub named: u32,
    /// The number of its process.
    pub(super) process: u32,
    pub(super) before: State,
    pub(super) applied: Applied,
    pub(super) previous: Option<Applied>,
    /// What was done to its utilization clamps, if a plugin sets any.
    pub(super) clamped: Option<Clamped>,
    /// What it took, by who watches it. For people: nothing is decided by it.
    pub used: Option<Used>,
}

impl AttachedThread {
    /// How the thread is scheduled, if someone else changed that: for people.
    pub fn otherwise(&self) -> Option<String> {
        let (is, applied) = (State::read(self.thread.number).ok()?, self.applied.state(&self.before)?);
        if applied.scheduling.is_dispatched() {
            let is_as_before = is.scheduling.matches(&self.before.scheduling);
            // The dispatcher gives it its processors back when it has had its slots.
            let is_let_go = is.processors == self.before.processors && is.processors != applied.processors;
            return is_as_before.then(|| match is_let_go {
                true => format!("without slots: it has had all of them, and is {} again", is.scheduling),
                false => format!("outside its slots: {}", is.scheduling),
            });
        }
        if !is.scheduling.matches(&applied.scheduling) {
            return Some(is.scheduling.to_string());
        }
        (is.processors != applied.processors).then(|| format!("on processors {:?}", is.processors))
    }

    /// How the thread is scheduled; `None` if it has ended.
    pub fn scheduling(&self) -> Option<Scheduling> {
        State::read(self.thread.number).ok().map(|is| is.scheduling)
    }

    /// The states that this daemon may have given the thread, which may be demoted.
    pub(super) fn applied_states(&self, demoted: Option<Scheduling>) -> Vec<State> {
        let applied = [Some(self.applied), self.previous].into_iter().flatten();
        let states: Vec<State> = applied.filter_map(|applied| applied.state(&self.before)).collect();
        let demoted = demoted.zip(states.first().copied());
        let demoted = demoted.map(|(scheduling, state)| State { scheduling, ..state });
        states.into_iter().chain(demoted).collect()
    }
}

/// Why SCHED_DEADLINE is refused.
pub const NOT_LIFTED: &str = "SCHED_DEADLINE on one processor needs kernel.sched_rt_runtime_us = -1, \
                                     which punctuald's configuration forbids it to set \
                                     (lift_realtime_limit); an administrator can set the one or allow the \
                                     other";
