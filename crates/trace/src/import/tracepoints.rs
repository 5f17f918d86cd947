//! Recordings of the kernel's tracepoints, as perf and trace-cmd make them: where fields are, and what they
//! say of threads.

mod format;
mod threads;

use super::notes::Notes;
pub use format::{Format, formats, place};
pub use threads::{Seen, Threads};

/// Tracepoints that say who ran when.
pub const SWITCH: &str = "sched_switch";
/// Those of system calls.
pub const ENTER: &str = "sys_enter";
/// What tells a priority that a lock lends from one that was set.
pub const LEND: &str = "sched_pi_setprio";

/// Notes how many events were not read: of known tracepoints, and others.
pub fn say_unread<'a>(notes: &mut Notes, formats: impl Iterator<Item = &'a Format>, others: (&str, u64)) {
    notes.say_unread(formats.map(|format| (format.name.as_str(), format.unread.get())).chain([others]));
}

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
    /// Notes what is missing.
    pub fn say(&self, notes: &mut Notes, has_calls: bool, has_loans: bool, is_known_machine: bool) {
        let Lacks { tool, lend, calls } = self;
        notes.say(format!(
            "{tool} does not say: which of FIFO and RR a thread is under (taken as FIFO), reservations, \
             affinity, command lines"
        ));
        if !has_loans {
            notes.say(format!(
                "priorities are those of the moment: one that a lock lends a thread begins a task \
                 ({lend} would tell)"
            ));
        }
        notes.say("processor time is the sum of the stretches between switches, not the kernel's account");
        match (has_calls, is_known_machine) {
            (false, _) => {
                notes.say(format!("it has no system calls: every sleep divides jobs; {calls} has them"));
            }
            (true, false) => {
                notes.say("the system calls of its machine are not known here: every sleep divides jobs")
            }
            (true, true) => {
                notes.say("until when a thread sleeps is behind a pointer: arrivals are not known");
                notes.say(
                    "what a descriptor is, and whether it blocks, is not known: a read, accept or receive \
                     divides jobs only where it slept",
                );
            }
        }
    }
}
