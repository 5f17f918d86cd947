//! Why a trace cannot be imported, in one line.

use punctual_trace::reason;
use std::fmt;
use std::path::Path;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file or folder.
    NotFound,
    /// Not a trace of a known tool.
    NotATrace,
    /// A trace that is damaged, or lacks what an import needs.
    Malformed,
    /// What was asked for contradicts itself or the trace.
    Usage,
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
