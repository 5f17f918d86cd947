//! What threads have started that an attached thread has started: until the daemon has sent those to their
//! processors, what they start is on that of the attached thread, too.

use super::{Registry, SpecId};
use crate::kernel::{self, Processors};
use crate::thread;
use std::collections::BTreeSet;
use std::fs;

/// So many are looked at at one time: an ordinary thread does it, but clients wait meanwhile.
const MOST: usize = 1024;

impl Registry {
    /// Sends home what these threads and processes have started before they were sent home themselves.
    pub(super) fn send_descendants_home(&self, id: SpecId, children: &[u32]) {
        let Some(attached) = self.specs.get(&id).and_then(|spec| spec.thread.as_ref()) else { return };
        let Some(from) = attached.applied.state(&attached.before).map(|state| state.processors) else {
            return;
        };
        let home = attached.before.processors;
        // Nothing that they have started is older than the first of them. Of one that has ended nothing is
        // known, but it has not lived for long.
        let started = children.iter().filter_map(|&child| thread::process_start(child).ok()).min();
        let Some(since) = started.or_else(|| thread::process_start(attached.thread.number).ok()) else {
            return;
        };
        if from == home {
            return;
        }
        let mut parents: BTreeSet<u32> = children.iter().copied().collect();
        let mut budget = MOST;
        // Who was not sent home yet may have started another one while this looked.
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

/// The processes that a thread has started, where the kernel lists them.
fn children_of(number: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}
