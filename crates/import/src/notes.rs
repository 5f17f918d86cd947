//! Notes about a source: each once, with a count.

use super::thread::Unseen;
use punctual_model::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Most different notes; a broken source could cause any number.
const MOST: usize = 100;

/// Where a trace begins of which some parts begin later than others, as flight recorders write over them.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The parts whose beginning was written over.
    pub of: String,
    /// From here on all is there.
    pub at: Instant,
    /// What became of it.
    pub why: &'static str,
}

/// What flight recorders do with the oldest events.
pub const WRITTEN_OVER: &str = "was written over";

impl Cut {
    /// Of these processors.
    pub fn of_processors(numbers: &BTreeSet<u32>, at: Instant) -> Cut {
        let names = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        Cut {
            of: format!("processor{} {names}", if numbers.len() == 1 { "" } else { "s" }),
            at,
            why: WRITTEN_OVER,
        }
    }
}

/// Notes, in the order of their first appearance.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    plain: Vec<String>,
    counted: BTreeMap<String, u64>,
    others: u64,
}

impl Notes {
    /// Adds a note about the source as a whole.
    pub fn say(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.plain.len() < MOST && !self.plain.contains(&note) {
            self.plain.push(note);
        }
    }

    /// Counts something; the note is the count, then `what`.
    pub fn count(&mut self, what: &str) {
        if let Some(count) = self.counted.get_mut(what) {
            *count += 1;
        } else if self.counted.len() < MOST {
            self.counted.insert(what.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    /// Says what was cut off, and how many events before the cut were not read.
    pub fn say_cut(&mut self, cut: &Cut, events: u64) {
        self.say(format!(
            "the beginning of {} {}: what is read begins at {} s, from where on all is there; \
             events before that, which are not read: {events}",
            cut.of,
            cut.why,
            seconds(cut.at)
        ));
    }

    /// Says that a part of the trace, that of one processor, ends long before the others.
    pub fn say_early_end(&mut self, part: &str, early: Duration) {
        let ms = early.ns() / 1_000_000;
        let early =
            if ms < 1_000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1_000, ms / 100 % 10) };
        self.say(format!(
            "{part} ends {early} before the others: what its processor did then is not in the trace, or \
             nothing happened there"
        ));
    }

    /// Says which switches are missing, and what that does to costs.
    pub fn say_unseen(&mut self, unseen: Unseen) {
        let Unseen { accounted, gets, leaves } = unseen;
        if accounted > 0 {
            self.say(format!(
                "switches that are not in the trace: {accounted}; for those threads the kernel's own figure \
                 counts (sched_stat_runtime), as far as the trace has it"
            ));
        }
        if gets > 0 {
            self.say(format!(
                "{} a thread left, or used, a processor that it had not been seen to get: its time is \
                 counted from the last event before, so costs may be too high",
                times(gets)
            ));
        }
        if leaves > 0 {
            self.say(format!(
                "{} a thread got a processor that it had not been seen to leave: all the time between \
                 counts, or up to the call that it waited in, so costs may be too high",
                times(leaves)
            ));
        }
    }

    /// All of them.
    pub fn into_list(self) -> Vec<String> {
        let counted = self.counted.into_iter().map(|(what, count)| format!("{count} × {what}"));
        let others =
            (self.others > 0).then(|| format!("other things that were not understood: {}", self.others));
        self.plain.into_iter().chain(counted).chain(others).collect()
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// An instant as tools print it.
fn seconds(at: Instant) -> String {
    format!("{}.{:09}", at.ns() / 1_000_000_000, at.ns() % 1_000_000_000)
}
