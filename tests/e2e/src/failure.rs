//! Why a test failed, and whether the machine can have been the reason.

use crate::Result;
use std::fmt::Display;

/// A failed check.
pub struct Failure {
    pub message: String,
    /// Whether it is about when something happened, which a machine that loses its processors changes.
    /// Everything else must be right on any machine.
    pub of_time: bool,
}

/// Whatever can be shown can go wrong.
impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { message: error.to_string(), of_time: false }
    }
}

/// Fails with a message.
pub fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure { message: message.into(), of_time: false })
}

/// A check of when something happened.
pub fn of_time<T>(result: Result<T>) -> Result<T> {
    result.map_err(|failure| Failure { of_time: true, ..failure })
}

/// Puts something before the message of a failure.
pub fn in_context<T>(what: &str, result: Result<T>) -> Result<T> {
    result.map_err(|failure| Failure { message: format!("{what}: {}", failure.message), ..failure })
}

/// Fails unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return $crate::failure::fail(format!($($message)+));
        }
    };
}
