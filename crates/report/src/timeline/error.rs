//! Why a timeline could not be written.

use std::fmt;

/// Why a timeline could not be written.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    pub(super) fn write(why: impl fmt::Display) -> Error {
        Error(format!("cannot write the timeline: {why}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
