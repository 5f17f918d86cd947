//! Utilization clamps of attached threads: set as their plugins say, always after writing the journal, and
//! undone.

use super::Registry;
use crate::error::Error;
use crate::log;
use punctual_linux::scheduling::{self, Clamped, Refused};
use punctual_schedule::SpecId;

impl Registry {
    /// The clamps of a thread that is to be attached, if any plugin sets some and the kernel has them.
    pub(super) fn unclamped(&self, number: u32) -> Result<Option<Clamped>, Refused> {
        let sets = self.setup.plugins.iter().any(|loaded| !loaded.config.clamps.is_empty());
        match sets && scheduling::has_clamps() {
            true => scheduling::clamps(number).map(|before| Some(Clamped::new(before))),
            false => Ok(None),
        }
    }

    /// Gives the thread of a spec the clamps of its plugin, unless someone else has set others. Threads that
    /// were attached before any plugin had clamps keep theirs.
    pub(super) fn clamp(&mut self, id: SpecId) -> Result<(), Error> {
        let Some(spec) = self.specs.get_mut(&id) else { return Ok(()) };
        let wanted = self.setup.plugins[spec.admission.plugin].config.clamps;
        let Some(attached) = spec.thread.as_mut().filter(|attached| attached.thread.lives()) else {
            return Ok(());
        };
        let (number, Some(clamped)) = (attached.thread.number, attached.clamped.as_mut()) else {
            return Ok(());
        };
        if clamped.applied == wanted {
            return Ok(());
        }
        let refused = |error: Refused| Error::KernelRefused { reason: error.to_string() };
        let was = *clamped;
        let change = clamped.change(scheduling::clamps(number).map_err(refused)?, wanted);
        self.write_record(id);
        match scheduling::clamp(number, &change) {
            Err(error) if !error.is_gone() => {
                if let Some(attached) = self.specs.get_mut(&id).and_then(|spec| spec.thread.as_mut()) {
                    attached.clamped = Some(was);
                }
                self.write_record(id);
                Err(refused(error))
            }
            _ => Ok(()),
        }
    }
}

/// Undoes what was done to the clamps of a thread, as far as nobody else has changed it since.
pub(super) fn undo(number: u32, clamped: Option<&Clamped>) {
    let Some(clamped) = clamped else { return };
    let undone = scheduling::clamps(number).and_then(|now| scheduling::unclamp(number, &clamped.undo(now)));
    match undone {
        Err(error) if !error.is_gone() => {
            log::warning(&format!("thread {number} keeps its utilization clamps: {error}"));
        }
        _ => {}
    }
}
