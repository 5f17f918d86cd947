//! The error of dispatching: what failed, on what, and why.

use std::fmt;

/// Which kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This kernel, this machine or these privileges do not allow it.
    Unsupported,
    /// A thread or processor that was named does not exist.
    Target,
    /// A table or recording is not what it should be.
    File,
    /// Anything else.
    Other,
}

/// Something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// `what` failed, and why.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    /// The kernel refused `what`.
    pub fn unsupported(what: &str, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Unsupported, format!("{what}: {why}"))
    }

    /// `what` failed with an error of the operating system.
    pub fn other(what: &str, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Other, format!("{what}: {why}"))
    }

    /// Which kind of thing went wrong.
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
