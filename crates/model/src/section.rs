//! The interface of the sections of a timing model.
//!
//! A section is one field of the file, absent if nothing of its kind was observed. It has its own span and
//! losses, because sections may come from different observations. The list of sections is in [`crate::file`].

use crate::error::ReadError;
use crate::time::Instant;
use std::fmt;

/// `Ok` if the values of a section are consistent; otherwise the place and the reason.
pub type Valid = Result<(), ReadError>;

/// A section of the timing model.
pub trait Section: Sized {
    /// When it was observed; `None` of what is planned rather than observed.
    fn span(&self) -> Option<Span>;

    /// What its observation missed; empty if it is complete.
    fn losses(&self) -> Vec<Loss>;

    /// Checks what the types cannot express: bounds between fields, orders, sums. `path` is the section's
    /// place in the file, for errors.
    fn validate(&self, path: &str) -> Valid;

    /// Merges another section of the same kind into this one.
    ///
    /// # Errors
    /// If sections of this kind cannot be merged.
    fn merge(self, other: Self) -> Result<Self, MergeError>;
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub from_ns: Instant,
    /// When it ended.
    pub until_ns: Instant,
}

impl Span {
    /// Whether the two have an instant in common.
    pub fn overlaps(self, other: Span) -> bool {
        self.from_ns <= other.until_ns && other.from_ns <= self.until_ns
    }
}

/// Something an observation missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What is counted: the name of its field, if the file has the number.
    pub counter: &'static str,
    /// How many; greater than zero.
    pub count: u64,
}

impl Loss {
    pub(crate) fn list<const N: usize>(counters: [(&'static str, u64); N]) -> Vec<Loss> {
        let losses = counters.into_iter().map(|(counter, count)| Loss { counter, count });
        losses.filter(|loss| loss.count > 0).collect()
    }
}

/// Two sections cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeError(pub(crate) String);

impl std::error::Error for MergeError {}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a counter is left out of the file.
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}
