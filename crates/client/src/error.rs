//! Why a request failed.

pub use punctual_protocol::Error as Refusal;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a request failed.
#[derive(Debug)]
pub enum Error {
    /// There is no daemon at the socket; nothing was done.
    Unreachable {
        /// The path of the socket.
        socket: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// No reply within the timeout. The action may have been done.
    TimedOut {
        /// The method.
        method: &'static str,
        /// The timeout.
        after: Duration,
    },
    /// The daemon ended before it replied. The action may have been done.
    Lost {
        /// The method.
        method: &'static str,
    },
    /// The reply does not belong to this interface.
    Protocol(String),
    /// The daemon refused the request.
    Refused(Refusal),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreachable { socket, source } => {
                let reason = source.to_string();
                let reason = reason.split(" (os error").next().unwrap_or(&reason).to_lowercase();
                let socket = socket.display();
                write!(f, "punctuald cannot be reached at {socket}: {reason}")?;
                match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        write!(
                            f,
                            "; the administrator decides who may connect ([socket] in its configuration)"
                        )
                    }
                    _ => write!(f, "; start it, or set PUNCTUALD_SOCKET to the path of its socket"),
                }
            }
            Error::TimedOut { method, after } => {
                write!(
                    f,
                    "punctuald did not answer {method} within {after:?}; it may have been done (see the list \
                     of specs)"
                )
            }
            Error::Lost { method } => {
                write!(
                    f,
                    "punctuald ended before it answered {method}; it may have been done (see the list of \
                     specs)"
                )
            }
            Error::Protocol(what) => write!(f, "the reply from punctuald's socket is not valid: {what}"),
            Error::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unreachable { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}
