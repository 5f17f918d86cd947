//! Why a test failed, and whether the machine may be the reason.

use crate::Result;
use std::fmt::Display;
use std::time::Instant;

/// A failed check.
pub struct Failure {
    /// What is wrong.
    pub message: String,
    /// Whether the check is about when something happened, which may be wrong if the machine loses its
    /// processors. Everything else must be right on any machine.
    pub is_timing: bool,
    /// When the test began to look, if it judges something older than itself.
    pub since: Option<Instant>,
}

/// Every error is a failure.
impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { message: error.to_string(), is_timing: false, since: None }
    }
}

/// Fails with a message.
pub fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure { message: message.into(), is_timing: false, since: None })
}

/// Marks a failure as one about when something happened.
pub fn timing<T>(result: Result<T>) -> Result<T> {
    result.map_err(|failure| Failure { is_timing: true, ..failure })
}

/// Puts `what` before the message of a failure.
pub fn in_context<T>(what: &str, result: Result<T>) -> Result<T> {
    result.map_err(|failure| Failure { message: format!("{what}: {}", failure.message), ..failure })
}
