//! Why an observation could not be made, in one line that says what to do.

use std::fmt;

/// What kind of thing stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// This user may not observe.
    Privileges,
    /// This kernel lacks something that cannot be done without.
    Kernel,
    /// A process or cgroup that was named does not exist.
    TargetNotFound,
    /// The command could not be started.
    CommandFailed,
    /// Anything else.
    Other,
}

/// An observation that could not be made.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What kind of thing stands in the way.
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
