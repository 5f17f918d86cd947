//! Why a trace could not be written or read, in one line that says what to do.

use std::fmt;
use std::io;
use std::path::Path;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such folder or file.
    NotFound,
    /// Not a trace that can be read here.
    NotATrace,
    /// A trace in a version that this Punctual does not read.
    Version,
    /// The disk, or the user's share of it, is full.
    Full,
    /// Any other failure of the file system.
    Io,
    /// Something already exists at the place of the new trace.
    Exists,
    /// The options are invalid.
    Options,
}

/// Why a trace could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// `cannot WHAT PATH: why`.
    pub(crate) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => ErrorKind::Exists,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ErrorKind::Full
            }
            _ => ErrorKind::Io,
        };
        Self::new(kind, format!("cannot {what} {}: {}", path.display(), reason(error)))
    }

    /// The same with more words at its end.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    /// The kind of an error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// An operating system's error without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
