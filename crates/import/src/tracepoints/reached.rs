//! How far the events of each processor have come, and where some of them are missing.

use super::super::notes::Notes;
use super::threads::Threads;
use punctual_model::Instant;
use punctual_trace::Record;
use std::collections::BTreeMap;

/// How far the events have come.
pub struct Reached {
    /// The last event of each processor, and whether events are missing since; those of any processor under
    /// `None`.
    cpus: BTreeMap<Option<u32>, (Instant, bool)>,
    /// The latest event so far.
    pub until: Instant,
    /// Events that were lost, at least.
    pub lost: u64,
}

impl Reached {
    pub fn new(from: Instant) -> Reached {
        Reached { cpus: BTreeMap::new(), until: from, lost: 0 }
    }

    /// An event of a processor is next. Its time is `until`, which never goes back.
    pub fn reach(
        &mut self,
        cpu: u32,
        at: Instant,
        threads: &mut Threads,
        notes: &mut Notes,
        out: &mut dyn FnMut(Record),
    ) {
        if at < self.until {
            notes.count("events out of order: taken at the time of the one before");
        }
        self.until = self.until.max(at);
        for cpu in [None, Some(cpu)] {
            let (last, is_in_gap) = self.cpus.entry(cpu).or_insert((self.until, false));
            if std::mem::take(is_in_gap) {
                threads.lose();
                out(Record::Lost { since: *last, until: self.until });
            }
            *last = self.until;
        }
    }

    /// Events of a processor, or of any, are missing after its last one: at least so many.
    pub fn lose(&mut self, cpu: Option<u32>, events: u64) {
        self.lost = self.lost.saturating_add(events);
        self.cpus.entry(cpu).or_insert((self.until, false)).1 = true;
    }

    /// Gaps that are open reach to the end.
    pub fn finish(&mut self, out: &mut dyn FnMut(Record)) {
        for (since, _) in std::mem::take(&mut self.cpus).into_values().filter(|(_, is_in_gap)| *is_in_gap) {
            out(Record::Lost { since, until: Instant::from_ns(u64::MAX) });
        }
    }

    /// Notes how many events were lost.
    pub fn say(&self, notes: &mut Notes) {
        if self.lost > 0 {
            notes.say(format!("events lost: at least {}; tasks end there", self.lost));
        }
    }
}
