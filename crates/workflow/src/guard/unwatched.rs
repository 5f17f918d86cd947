//! What of a contract is not watched, and why: said at the start and again at the end.

use super::chains;
use super::latencies::{self, Latencies};
use crate::error::{Error, Result};
use crate::model_file::display_name;
use crate::monitor::Monitor;
use punctual_conformance::{Contract, Note};
use punctual_observe::Statistics;
use std::path::Path;

/// Whether a contract says how long data take.
fn has_chains(contract: &Contract) -> bool {
    contract.chains.iter().any(|chain| chain.has_times())
}

/// Refuses a contract of which nothing is watched, and probes for nothing.
pub fn can_be_watched(contract: &Contract, has_probes: bool, path: &Path) -> Result<()> {
    let name = display_name(path);
    if has_probes && !has_chains(contract) {
        return Err(Error::usage(format!("{name} has no chains to watch"))
            .advise("leave out --flow-probes, or agree on reaction_time or data_age of a [[chain]]"));
    }
    if contract.tasks.is_empty() && contract.latencies.is_empty() && !has_probes {
        let error = Error::usage(format!("{name} has no tasks and no processors to watch"));
        return Err(match has_chains(contract) {
            true => error.advise("--flow-probes watches its chains"),
            false => error,
        });
    }
    Ok(())
}

/// What of the contract is not watched, and why.
#[derive(Default)]
pub struct Unwatched {
    pub notes: Vec<Note>,
    is_crowded: bool,
    has_unseen: bool,
}

impl Unwatched {
    pub fn new(contract: &Contract, has_probes: bool, monitor: &dyn Monitor) -> Unwatched {
        let mut unwatched = Unwatched::default();
        if has_chains(contract) && !has_probes {
            unwatched.note(chains::unwatched(), monitor);
        }
        unwatched
    }

    /// Tells it at once, and again at the end.
    fn note(&mut self, note: Note, monitor: &dyn Monitor) {
        monitor.warn(&note.text);
        self.notes.push(note);
    }

    /// Notes once that some threads were not watched, for each reason.
    pub fn threads(&mut self, statistics: &Statistics, monitor: &dyn Monitor) {
        let Statistics { untracked, unseen, .. } = statistics;
        if *untracked > 0 && !std::mem::replace(&mut self.is_crowded, true) {
            let text = "there are more threads than can be watched at once; jobs of some are not judged";
            self.note(Note { task: "".into(), text: text.into() }, monitor);
        }
        if *unseen > 0 && !std::mem::replace(&mut self.has_unseen, true) {
            let text = "some threads ended before they were seen; their jobs are not judged";
            self.note(Note { task: "".into(), text: text.into() }, monitor);
        }
    }

    pub fn latencies(&mut self, why: &str, monitor: &dyn Monitor) {
        self.note(latencies::unwatched(why), monitor);
    }

    pub fn start_latencies(&mut self, contract: &Contract, monitor: &dyn Monitor) -> Option<Latencies> {
        let started = Latencies::start(contract);
        started.unwrap_or_else(|error| {
            self.latencies(&format!("{error:#}"), monitor);
            None
        })
    }

    pub fn refusal(self) -> Error {
        let why: Vec<String> = self.notes.into_iter().map(|note| note.text).collect();
        Error::new(crate::ErrorKind::Unsupported, "nothing of the contract can be watched")
            .because(why.join("; "))
    }
}
