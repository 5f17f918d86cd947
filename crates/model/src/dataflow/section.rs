//! [`Dataflow`] as a section.

use super::{Dataflow, validate};
use crate::section::{Loss, MergeError, Section, Span, Valid};

impl Section for Dataflow {
    fn span(&self) -> Option<Span> {
        Some(Span { from_ns: self.from_ns, until_ns: self.until_ns })
    }

    fn losses(&self) -> Vec<Loss> {
        Loss::list([
            ("discarded_events", self.discarded_events),
            ("missing_packets", self.missing_packets),
            ("damaged_packets", self.damaged_packets),
            ("missing_events", self.missing_events()),
        ])
    }

    fn validate(&self, path: &str) -> Valid {
        validate::dataflow(path, self)
    }

    /// Two programs cannot be merged: their tasks would share names and numbers.
    fn merge(self, _: Dataflow) -> Result<Dataflow, MergeError> {
        Err(MergeError("both models have a dataflow program, and a file can hold only one".into()))
    }
}
