//! What an import is asked for, and what it returns.

use super::notes::Notes;
use super::table::Machine;
use punctual_model::Instant;
use punctual_trace::Totals;
use punctual_trace::account::Account;

/// What to import of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Also threads under SCHED_OTHER and the like.
    pub include_best_effort: bool,
    /// The machine it was recorded on, if the trace does not name it.
    pub machine: Option<Machine>,
}

impl Options {
    /// The machine that a trace names, or else the given one.
    pub(super) fn machine_of(&self, named: &str, notes: &mut Notes) -> Option<Machine> {
        let known = Machine::from_name(named);
        if let Some(other) = self.machine.filter(|given| known.is_some_and(|known| known != *given)) {
            notes.say(format!("it was recorded on {named}: --machine {} is ignored", other.name()));
        }
        known.or(self.machine)
    }
}

/// Summary of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Time of the last event.
    pub until: Instant,
    /// Events that the tool itself lost.
    pub totals: Totals,
    /// What was in the source, and what it lacks.
    pub account: Account,
    /// What was damaged, lost or not understood: each once, with counts.
    pub notes: Vec<String>,
}
