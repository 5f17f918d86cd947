//! Recordings of the kernel's tracepoints, as perf and trace-cmd make them: where fields are, and what they
//! say of threads.

mod format;
mod threads;

use super::notes::Notes;
use format::ENTER_ONE;
pub use format::{Format, formats, place};
pub use threads::{Seen, Threads};

/// Tracepoints that say who ran when.
pub const SWITCH: &str = "sched_switch";
/// Those of system calls.
const ENTER: &str = "sys_enter";
/// Which tracepoints of system calls there are: those of all calls at once (`raw_syscalls`), or else those of
/// each call (`syscalls`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    None,
    Each,
    All,
}

impl Calls {
    pub fn of<'a>(formats: impl Iterator<Item = &'a Format>) -> Calls {
        let mut calls = Calls::None;
        for format in formats {
            match format.name.as_str() {
                ENTER => return Calls::All,
                name if name.starts_with(ENTER_ONE) => calls = Calls::Each,
                _ => {}
            }
        }
        calls
    }
}

/// What tells a priority that a lock lends from one that was set.
const LEND: &str = "sched_pi_setprio";

/// Notes how many events were not read: of known tracepoints, and others.
pub fn say_unread<'a>(notes: &mut Notes, formats: impl Iterator<Item = &'a Format>, others: (&str, u64)) {
    notes.say_unread(formats.map(|format| (format.name.as_str(), format.unread.get())).chain([others]));
}

/// What a trace without wake-ups costs.
pub const NO_WAKES: &str = "it has no wake-ups (sched_waking): when a thread was released is known only to \
                            lie between two events, and responses are the worst case";

/// What a tool's recording may lack, and what would add it.
pub struct Lacks {
    /// The tool.
    pub tool: &'static str,
    /// The event that tells lent priorities.
    pub lend: &'static str,
    /// The command that records system calls.
    pub calls: &'static str,
}

impl Lacks {
    /// Notes what is missing; `has` says whether there are events of this name.
    pub fn say(&self, notes: &mut Notes, calls: Calls, has: &dyn Fn(&str) -> bool, is_known_machine: bool) {
        let Lacks { tool, lend, calls: how } = self;
        notes.say(format!(
            "{tool} does not say: which of FIFO and RR a thread is under (taken as FIFO), reservations, \
             affinity, command lines"
        ));
        if !has(LEND) {
            notes.say(format!(
                "priorities are those of the moment: one that a lock lends a thread begins a task \
                 ({lend} would tell)"
            ));
        }
        if !has("sched_waking") && !has("sched_wakeup") {
            notes.say(NO_WAKES);
        }
        notes.say("processor time is the sum of the stretches between switches, not the kernel's account");
        match (calls, is_known_machine) {
            (Calls::None, _) => {
                notes.say(format!("it has no system calls: every sleep divides jobs; {how} has them"));
            }
            (_, false) => {
                notes.say("the system calls of its machine are not known here: every sleep divides jobs")
            }
            (_, true) => {
                notes.say("until when a thread sleeps is behind a pointer: arrivals are not known");
                notes.say(
                    "what a descriptor is, and whether it blocks, is not known: a read, accept or receive \
                     divides jobs only where it slept",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_without_wake_ups_says_so() {
        const LACKS: Lacks = Lacks { tool: "it", lend: "that", calls: "this" };
        for (events, is_said) in
            [(&["sched_switch"][..], true), (&["sched_waking"], false), (&["sched_wakeup"], false)]
        {
            let mut notes = Notes::default();
            LACKS.say(&mut notes, Calls::All, &|name| events.contains(&name), true);
            assert_eq!(notes.into_list().iter().any(|note| note == NO_WAKES), is_said, "{events:?}");
        }
    }
}
