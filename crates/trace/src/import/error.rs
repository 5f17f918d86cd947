//! Why a trace cannot be imported, in one line.

use crate::error::reason;
use std::fmt;
use std::path::Path;

/// What kind of thing stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file or folder.
    NotFound,
    /// It is no trace of a tool that is known here.
    NotATrace,
    /// It is one, but it is damaged or lacks what an import needs.
    Malformed,
    /// The file system failed.
    Io,
}

/// A trace that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    pub(crate) fn malformed(path: &Path, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Malformed, format!("{}: {why}", path.display()))
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Error {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Io };
        Error::new(kind, format!("cannot read {}: {}", path.display(), reason(error)))
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
