//! `sched_rt_runtime_us`, which has to be −1 while threads under SCHED_DEADLINE are pinned to processors.

use super::Registry;
use super::attached::{AttachedThread, NOT_LIFTED};
use crate::error::Error;
use crate::log;
use crate::record::Applied;
use punctual_linux::scheduling;
use punctual_model::Duration;
use std::time::{self, Instant};

/// Between two attempts to restore it.
const RETRY: time::Duration = time::Duration::from_millis(100);
/// How long a daemon that ends goes on trying.
const LAST_TRIES: usize = 50;

/// When the limit is to be restored.
#[derive(Debug, Default)]
pub(super) struct Limit {
    /// The longest period of threads that have left SCHED_DEADLINE since it was lifted: as long, at most,
    /// their bandwidth stays in the kernel's accounts (its 0-lag timers).
    longest: Duration,
    due: Option<Instant>,
    /// Whether an attempt has failed, and people were told.
    failed: bool,
}

impl Limit {
    /// A thread has been given another policy, or has ended.
    pub(super) fn thread_left(&mut self, applied: &Applied) {
        if applied.scheduling.is_deadline() {
            self.longest = self.longest.max(Duration::from_ns(applied.scheduling.period_ns));
            // From the last one on.
            self.due = None;
        }
    }
}

fn refused(reason: impl ToString) -> Error {
    Error::KernelRefused { reason: reason.to_string() }
}

impl Registry {
    /// SCHED_DEADLINE on one processor needs the kernel's own admission test off.
    pub(super) fn lift_limit(&mut self) -> Result<(), Error> {
        if self.journal.rt_runtime().is_some() {
            return Ok(());
        }
        let now = scheduling::rt_runtime().map_err(refused)?;
        if now == -1 {
            return Ok(());
        }
        if !self.setup.may_lift_limit {
            return Err(refused(NOT_LIFTED));
        }
        self.journal.set_rt_runtime(Some(now));
        scheduling::remember_lifted(Some(now));
        scheduling::set_rt_runtime(-1).map_err(|error| {
            self.journal.set_rt_runtime(None);
            scheduling::remember_lifted(None);
            refused(error)
        })
    }

    fn needs_lifted_limit(&self) -> bool {
        let needs = |attached: &AttachedThread| attached.applied.needs_lifted_limit();
        self.threads.values().any(|id| self.specs[id].thread.as_ref().is_some_and(needs))
    }

    /// Restores it a period after the last thread that needs it.
    pub(super) fn restore_limit(&mut self) {
        if self.journal.rt_runtime().is_none() || self.needs_lifted_limit() {
            self.limit.due = None;
        } else if self.limit.due.is_none() {
            let wait = time::Duration::from_nanos(self.limit.longest.ns()) + time::Duration::from_millis(1);
            self.limit.due = Some(Instant::now() + wait);
        }
    }

    /// When [`keep_limit`](Self::keep_limit) is to be called next.
    pub fn limit_due(&self) -> Option<Instant> {
        self.limit.due
    }

    /// Restores the limit if it is time, unless someone else changed it; tries again if the kernel refuses.
    pub fn keep_limit(&mut self) {
        let (Some(due), Some(before)) = (self.limit.due, self.journal.rt_runtime()) else { return };
        if Instant::now() < due {
            return;
        }
        let restored = match scheduling::rt_runtime() {
            Ok(-1) => scheduling::set_rt_runtime(before),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match restored {
            Ok(()) => {
                self.journal.set_rt_runtime(None);
                scheduling::remember_lifted(None);
                self.limit = Limit::default();
            }
            Err(error) => {
                if !std::mem::replace(&mut self.limit.failed, true) {
                    log::warning(&format!(
                        "kernel.sched_rt_runtime_us is still -1, it was {before}; trying again: {error}"
                    ));
                }
                self.limit.due = Some(Instant::now() + RETRY);
            }
        }
    }

    /// Waits until the limit is restored: the daemon ends.
    pub(super) fn restore_limit_now(&mut self) {
        for _ in 0..LAST_TRIES {
            let Some(due) = self.limit.due else { return };
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.keep_limit();
        }
        if let Some(before) = self.journal.rt_runtime() {
            log::error(&format!(
                "kernel.sched_rt_runtime_us stays -1, it was {before}; the next punctuald restores it"
            ));
        }
    }
}
