//! Why a request was not done.

pub use punctual_protocol::Error as Refusal;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a request was not done.
#[derive(Debug)]
pub enum Error {
    /// There is no daemon at the socket; nothing was done.
    Unreachable {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No answer came in time. Whether it was done is not known, unless it only asks something.
    TimedOut {
        /// What was asked.
        method: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The daemon went away before it answered. Whether it was done is not known, unless it only asks
    /// something.
    Lost {
        /// What was asked.
        method: &'static str,
    },
    /// What came back is no answer of this interface.
    Protocol(String),
    /// The daemon said no.
    Refused(Refusal),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreachable { socket, source } => {
                let said = source.to_string();
                let said = said.split(" (os error").next().unwrap_or(&said).to_lowercase();
                let socket = socket.display();
                write!(f, "punctuald cannot be reached at {socket}: {said}")?;
                match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        write!(
                            f,
                            "; whoever administers it says who may connect ([socket] in its configuration)"
                        )
                    }
                    _ => write!(f, "; start it, or say in PUNCTUALD_SOCKET where its socket is"),
                }
            }
            Error::TimedOut { method, after } => {
                write!(
                    f,
                    "punctuald did not answer {method} within {after:?}; whether it was done is not known"
                )
            }
            Error::Lost { method } => {
                write!(
                    f,
                    "punctuald went away before it answered {method}; whether it was done is not known, the list of specs says"
                )
            }
            Error::Protocol(what) => write!(f, "what came from punctuald's socket is no answer: {what}"),
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
