//! Helpers of helpers: until the daemon has sent what an attached thread starts to its processors, what that
//! starts in turn inherits the attached thread's processor, too.
//!
//! A new thread has its processors before anybody can see it: one that is being started while its parent is
//! sent home appears later. So there is more than one look.

use super::{Registry, SpecId};
use crate::enforce::now;
use punctual_linux::proc::children;
use punctual_linux::scheduling::{self, Processors};
use punctual_linux::thread;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The most threads that are looked at in one go, as clients wait meanwhile.
const MOST: usize = 1024;

/// After the first look, there is another one so much later, three times: on busy processors, who starts a
/// thread may have to wait in the middle of that.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(100), Duration::from_millis(1000)];

/// Between two looks at least so many times as long as the first of them took: clients wait meanwhile, and
/// programs may start threads without end.
const REST: u32 = 9;

/// What attached threads have started lately.
#[derive(Debug, Default)]
pub struct Helpers {
    of_specs: BTreeMap<SpecId, Started>,
    /// There is no look before.
    rests_until: Option<Instant>,
}

#[derive(Debug)]
struct Started {
    /// What may have started others.
    parents: BTreeSet<u32>,
    /// Nothing of them is older, on CLOCK_MONOTONIC in ns.
    since: u64,
    /// What was looked at. It may do as it likes since then.
    seen: BTreeSet<u32>,
    looks: usize,
    due: Instant,
}

impl Helpers {
    /// The thread of a spec has started these threads and processes, the first of them at `since`.
    pub(super) fn were_started(&mut self, id: SpecId, children: Vec<u32>, since: u64) {
        let due = Instant::now();
        let started = self.of_specs.entry(id).or_insert_with(|| Started {
            parents: BTreeSet::new(),
            since,
            seen: BTreeSet::new(),
            looks: 0,
            due,
        });
        started.parents.extend(children);
        (started.since, started.looks, started.due) = (started.since.min(since), 0, due);
    }
}

impl Started {
    /// Forgets what has ended, and sets when the next look is due. False if this was the last one.
    fn plan_next_look(&mut self) -> bool {
        let Some(&wait) = AGAIN.get(self.looks) else { return false };
        self.looks += 1;
        self.due = Instant::now() + wait;
        // What began before this look is seen by now, unless it was kept from that by more than the longest
        // wait.
        let longest = AGAIN[AGAIN.len() - 1].as_nanos() as u64;
        self.since = self.since.max(now().saturating_sub(longest));
        self.parents.retain(|&parent| thread::process_start(parent).is_ok());
        while self.parents.len() > MOST {
            self.parents.pop_first();
        }
        true
    }
}

impl Registry {
    /// When [`send_descendants_home`](Self::send_descendants_home) is to be called next.
    pub fn helpers_due(&self) -> Option<Instant> {
        let due = self.helpers.of_specs.values().map(|it| it.due).min()?;
        Some(self.helpers.rests_until.map_or(due, |until| until.max(due)))
    }

    /// Sends home what threads and processes have started before they were sent home themselves, as far as it
    /// is time to look for that.
    pub fn send_descendants_home(&mut self) {
        let begin = Instant::now();
        if self.helpers_due().is_none_or(|due| due > begin) {
            return;
        }
        let mut helpers = std::mem::take(&mut self.helpers);
        helpers.of_specs.retain(|&id, started| {
            started.due > begin || self.send_home_below(id, started) && started.plan_next_look()
        });
        let end = Instant::now();
        helpers.rests_until = Some(end + (end - begin) * REST);
        self.helpers = helpers;
    }

    /// Looks once. Whether the spec has a thread that has other processors than before.
    fn send_home_below(&self, id: SpecId, started: &mut Started) -> bool {
        let Some(attached) = self.specs.get(&id).and_then(|spec| spec.thread.as_ref()) else { return false };
        let home = attached.before.processors;
        let from = attached.applied.state(&attached.before).map(|state| state.processors);
        let Some(from) = from.filter(|from| *from != home) else { return false };
        // A thread that has ended leaves what it has started to the attached thread's process.
        started.parents.insert(attached.thread.number);
        let since = ticks(started.since);
        let mut budget = MOST;
        // One that was not sent home yet may have started another one meanwhile.
        while self.send_children_home(started, (&from, &home), since, &mut budget) && budget > 0 {}
        true
    }

    /// Sends home what has the processors `from` among the threads and children of these processes. Whether
    /// there was something, which may have started more.
    fn send_children_home(
        &self,
        started: &mut Started,
        (from, home): (&Processors, &Processors),
        since: u64,
        budget: &mut usize,
    ) -> bool {
        let mut found = BTreeSet::new();
        for &parent in &started.parents {
            // The threads of a process once.
            if !found.contains(&parent) {
                found.extend(thread::siblings(parent));
            }
        }
        started.parents.iter().for_each(|&parent| found.extend(children(parent).into_iter().flatten()));
        started.seen.retain(|number| found.contains(number));
        // The newest usually have the greatest numbers.
        let looked_at: Vec<u32> = {
            let unseen = found.iter().rev().filter(|number| !started.seen.contains(number));
            unseen.take(*budget).copied().collect()
        };
        started.seen.extend(&looked_at);
        let is_new = |&number: &u32| {
            !self.threads.contains_key(&number)
                && scheduling::processors(number).is_ok_and(|now| now == *from)
                && thread::process_start(number).is_ok_and(|start| start >= since)
        };
        let new = looked_at.iter().copied().filter(is_new);
        // They may have ended meanwhile, or may not go there.
        let new: Vec<u32> = new.filter(|&number| scheduling::pin(number, home).is_ok()).collect();
        *budget -= looked_at.len();
        started.parents.extend(&new);
        !new.is_empty()
    }
}

/// An instant on CLOCK_MONOTONIC (ns), in clock ticks since the machine started.
fn ticks(ns: u64) -> u64 {
    let suspended = {
        let boottime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        (boottime.tv_sec as u64 * 1_000_000_000 + boottime.tv_nsec as u64).saturating_sub(now())
    };
    (ns + suspended) / (1_000_000_000 / rustix::param::clock_ticks_per_second())
}
