//! [`Table`] as a section.

use super::{Table, validate};
use crate::section::{Loss, MergeError, Section, Span, Valid};

impl Section for Table {
    /// A table is planned, not observed.
    fn span(&self) -> Option<Span> {
        None
    }

    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }

    fn validate(&self, path: &str) -> Valid {
        validate::table(path, self)
    }

    /// # Errors
    /// Always: two tables would give the same slots twice.
    fn merge(self, _: Table) -> Result<Table, MergeError> {
        let reason = "two tables cannot be merged: both may give the same slots away. Make one table of the \
                      tasks of both";
        Err(MergeError(reason.to_owned()))
    }
}
