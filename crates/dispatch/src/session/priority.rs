//! The priority of the session's own thread, which keeps dispatching threads waiting as little as it can.

use crate::user::Priorities;
use punctual_linux::scheduling::{self, Scheduling};
use punctual_schedule::AssignedPolicy;

/// The priority of the session's own thread.
#[derive(Debug)]
pub(super) struct OwnPriority {
    before: Scheduling,
    above_all: Scheduling,
    /// Whether it has a processor without a table: then it has its priority there all the time, so that a
    /// thread of the table that has set itself free cannot keep it from setting that back.
    is_apart: bool,
}

impl OwnPriority {
    pub(super) fn new(is_apart: bool, priorities: Priorities) -> OwnPriority {
        let above_all = Scheduling::from_policy(AssignedPolicy::Fifo(priorities.guardian()));
        let before = scheduling::scheduling(0).unwrap_or_else(|_| Scheduling::ordinary());
        let own = OwnPriority { before, above_all, is_apart };
        if is_apart {
            own.set(&own.above_all);
        }
        own
    }

    /// Without it, work only takes longer; and the kernel has allowed the same to the dispatching threads.
    fn set(&self, scheduling: &Scheduling) {
        let _ = scheduling::schedule(0, scheduling);
    }

    /// Does something for which a dispatching thread may have to wait: nobody else may be in the way.
    pub(super) fn raised<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_apart {
            return work();
        }
        self.set(&self.above_all);
        let result = work();
        self.set(&self.before);
        result
    }

    /// Does something that takes long and that nobody waits for.
    pub(super) fn ordinary<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.is_apart {
            return work();
        }
        self.set(&self.before);
        let result = work();
        self.set(&self.above_all);
        result
    }
}

impl Drop for OwnPriority {
    fn drop(&mut self) {
        self.set(&self.before);
    }
}
