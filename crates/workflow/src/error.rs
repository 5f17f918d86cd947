//! The error of all operations: a kind, what failed, why, and what to do about it.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::io;

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Which kind of thing went wrong. Front ends choose exit codes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The options contradict each other or the input.
    Usage,
    /// This kernel, or this user's privileges, do not allow it.
    Unsupported,
    /// A process, thread, task or function that was named does not exist, or a command cannot be started.
    Target,
    /// A file or folder cannot be read or written, or does not hold what it should.
    File,
    /// What was asked for cannot be had: no schedule gives every job its time.
    Refused,
    /// The [`Monitor`](crate::Monitor) asked to stop.
    Stopped,
    /// Anything else.
    Other,
}

/// An operation that failed.
///
/// `{}` displays the outermost context alone, `{:#}` the whole chain and the advice on one line.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    advice: Option<String>,
}

impl Error {
    /// An error without a deeper cause.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), source: None, advice: None }
    }

    /// Options that contradict each other or the input.
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// Something that was named and does not exist.
    pub fn target(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Target, message)
    }

    /// A file that does not hold what it should.
    pub fn file(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::File, message)
    }

    /// Stopped midway, as asked.
    pub(crate) fn stopped() -> Error {
        Error::new(ErrorKind::Stopped, "stopped")
    }

    /// `cannot ACTION PATH`, because of `error`.
    pub fn io(action: &str, path: impl Display, error: &io::Error) -> Error {
        Error::file(format!("cannot {action} {path}")).because(plain_reason(error))
    }

    /// Adds the cause.
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.source = Some(cause.into());
        self
    }

    /// Adds what the user can do about it. Advice is displayed last.
    pub fn advise(mut self, advice: impl Into<String>) -> Error {
        self.advice = Some(advice.into());
        self
    }

    /// The same failure as the cause of a larger one.
    pub fn context(self, message: impl Into<String>) -> Error {
        Error { kind: self.kind, message: message.into(), source: Some(Box::new(self)), advice: None }
    }

    /// Which kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if f.alternate() {
            if let Some(source) = &self.source {
                write!(f, ": {source:#}")?;
            }
            if let Some(advice) = &self.advice {
                write!(f, "; {advice}")?;
            }
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<punctual_observe::Error> for Error {
    fn from(error: punctual_observe::Error) -> Error {
        let kind = match error.kind() {
            punctual_observe::ErrorKind::Privileges | punctual_observe::ErrorKind::Kernel => {
                ErrorKind::Unsupported
            }
            punctual_observe::ErrorKind::TargetNotFound | punctual_observe::ErrorKind::CommandFailed => {
                ErrorKind::Target
            }
            punctual_observe::ErrorKind::Other => ErrorKind::Other,
        };
        Error::new(kind, format!("{error:#}"))
    }
}

impl From<punctual_trace::Error> for Error {
    fn from(error: punctual_trace::Error) -> Error {
        Error::file(format!("{error:#}"))
    }
}

impl From<punctual_import::Error> for Error {
    fn from(error: punctual_import::Error) -> Error {
        match error.kind() {
            punctual_import::ErrorKind::Usage => Error::usage(format!("{error:#}")),
            _ => Error::file(format!("{error:#}")),
        }
    }
}

/// An operating system's error without its number.
pub fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alternate_form_shows_the_whole_chain_and_the_advice() {
        let missing = io::Error::from_raw_os_error(2);
        let error =
            Error::io("read", "a.json", &missing).advise("make it first").context("nothing to compare");
        assert_eq!(error.to_string(), "nothing to compare");
        assert_eq!(
            format!("{error:#}"),
            "nothing to compare: cannot read a.json: no such file or directory; make it first"
        );
        assert_eq!(error.kind(), ErrorKind::File);
        assert_eq!(StdError::source(&error).map(ToString::to_string).as_deref(), Some("cannot read a.json"));
    }
}
