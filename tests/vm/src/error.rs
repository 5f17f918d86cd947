//! Errors: one line that says what failed, on what, and why.

use std::fmt;
use std::path::Path;

/// A message for users.
#[derive(Debug)]
pub struct Error(pub String);

pub type Result<T = ()> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// `cannot("read", path, error)`.
pub fn cannot(what: &str, path: &Path, why: impl fmt::Display) -> Error {
    Error(format!("cannot {what} {}: {why}", path.display()))
}
