//! Helpers of helpers: until the daemon has sent what an attached thread starts to its processors, what that
//! starts in turn inherits the attached thread's processor, too.

use super::{Registry, SpecId};
use crate::kernel::{self, Processors};
use crate::thread;
use std::collections::BTreeSet;
use std::fs;

/// The most threads that are looked at in one go, as clients wait meanwhile.
const MOST: usize = 1024;

/// What is older than this (in clock ticks of 10 ms) was not started by a child that has ended already.
const RECENT: u64 = 10;

impl Registry {
    /// Sends home what these threads and processes have started before they were sent home themselves.
    pub(super) fn send_descendants_home(&self, id: SpecId, children: &[u32]) {
        let Some(attached) = self.specs.get(&id).and_then(|spec| spec.thread.as_ref()) else { return };
        let Some(from) = attached.applied.state(&attached.before).map(|state| state.processors) else {
            return;
        };
        let home = attached.before.processors;
        if from == home {
            return;
        }
        // Nothing that they have started is older than the first of them. A thread that has ended leaves what
        // it has started to the attached thread's process.
        let started = children.iter().filter_map(|&child| thread::process_start(child).ok());
        let recently = ticks_now().saturating_sub(RECENT);
        let since = started.chain([recently]).min().unwrap_or(recently);
        let mut parents: BTreeSet<u32> = children.iter().copied().chain([attached.thread.number]).collect();
        let mut budget = MOST;
        // One that was not sent home yet may have started another one meanwhile.
        while self.send_home_below(&mut parents, (&from, &home), since, &mut budget) && budget > 0 {}
    }

    /// Sends home what has the processors `from` among the threads and children of these processes. Whether
    /// there was something, which may have started more.
    fn send_home_below(
        &self,
        parents: &mut BTreeSet<u32>,
        (from, home): (&Processors, &Processors),
        since: u64,
        budget: &mut usize,
    ) -> bool {
        let mut found = BTreeSet::new();
        for &parent in &*parents {
            found.extend(thread::siblings(parent));
            found.extend(children_of(parent));
        }
        let is_new = |&number: &u32| {
            !self.threads.contains_key(&number)
                && kernel::processors(number).is_ok_and(|now| now == *from)
                && thread::process_start(number).is_ok_and(|start| start >= since)
        };
        let mut is_any = false;
        // The newest usually have the greatest numbers.
        for number in found.into_iter().rev().take(*budget).filter(is_new) {
            // It may have ended meanwhile, or may not go there.
            is_any |= kernel::pin(number, home).is_ok() && parents.insert(number);
        }
        *budget = budget.saturating_sub(parents.len());
        is_any
    }
}

/// The time since the machine started, in clock ticks.
fn ticks_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    now.tv_sec as u64 * per_second + now.tv_nsec as u64 * per_second / 1_000_000_000
}

/// The processes that a thread has started, where the kernel lists them.
fn children_of(number: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}
