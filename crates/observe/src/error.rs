//! Why an observation failed, in one line that says what to do.

use std::fmt;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// This user lacks the privileges to observe.
    Privileges,
    /// This kernel lacks something that observing needs.
    Kernel,
    /// A named process or cgroup does not exist.
    TargetNotFound,
    /// The command could not be started.
    CommandFailed,
    /// Anything else.
    Other,
}

/// An observation that failed.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The kind of an error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
