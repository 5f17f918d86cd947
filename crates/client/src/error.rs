//! Why a request was not done.

use serde::Deserialize;
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

/// The errors of the interface `io.punctual.Scheduler1`, with what the daemon says about them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum Refusal {
    /// No plugin takes it.
    #[serde(rename = "io.punctual.Scheduler1.NotAdmitted")]
    NotAdmitted {
        /// One for each plugin that was asked, in their order.
        reasons: Vec<String>,
    },
    /// The rules say no.
    #[serde(rename = "io.punctual.Scheduler1.NotPermitted")]
    NotPermitted {
        /// Why.
        reason: String,
        /// The line that decides; `None` where no rule allows anything.
        #[serde(default)]
        rule: Option<String>,
    },
    /// A parameter that nothing can meet.
    #[serde(rename = "io.punctual.Scheduler1.OutOfBounds")]
    OutOfBounds {
        /// Which.
        parameter: String,
        /// What it was.
        value: i128,
        /// What it has to be.
        bound: String,
    },
    /// There is no such spec, or no longer.
    #[serde(rename = "io.punctual.Scheduler1.NoSuchSpec")]
    NoSuchSpec {
        /// Its number.
        spec: i64,
    },
    /// There is no such thread.
    #[serde(rename = "io.punctual.Scheduler1.NoSuchThread")]
    NoSuchThread {
        /// Its TID.
        thread: i64,
    },
    /// There is no such plugin.
    #[serde(rename = "io.punctual.Scheduler1.NoSuchPlugin")]
    NoSuchPlugin {
        /// The name.
        plugin: String,
    },
    /// It is another user's.
    #[serde(rename = "io.punctual.Scheduler1.NotOwner")]
    NotOwner {
        /// What.
        what: String,
    },
    /// The spec has a thread, or the thread has a spec.
    #[serde(rename = "io.punctual.Scheduler1.AlreadyAttached")]
    AlreadyAttached {
        /// The spec.
        spec: i64,
        /// Its thread.
        thread: i64,
    },
    /// The spec has no thread.
    #[serde(rename = "io.punctual.Scheduler1.NotAttached")]
    NotAttached {
        /// The spec.
        spec: i64,
    },
    /// The kernel refused what was admitted.
    #[serde(rename = "io.punctual.Scheduler1.KernelRefused")]
    KernelRefused {
        /// Which call, on what, and why.
        reason: String,
    },
    /// The caller has as much of something as it may have.
    #[serde(rename = "io.punctual.Scheduler1.TooMany")]
    TooMany {
        /// Of what.
        what: String,
        /// How much that is.
        limit: i64,
    },
    /// An argument that the daemon cannot read.
    #[serde(rename = "org.varlink.service.InvalidParameter")]
    InvalidParameter {
        /// Which.
        parameter: String,
    },
    /// The caller may not do this at all.
    #[serde(rename = "org.varlink.service.PermissionDenied")]
    PermissionDenied {},
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotAdmitted { reasons } if reasons.is_empty() => {
                write!(f, "not admitted: there is no plugin to ask")
            }
            Refusal::NotAdmitted { reasons } => write!(f, "not admitted: {}", reasons.join("; ")),
            Refusal::NotPermitted { reason, rule: Some(rule) } => {
                write!(f, "not permitted: {reason} (rule: {rule})")
            }
            Refusal::NotPermitted { reason, rule: None } => write!(f, "not permitted: {reason}"),
            Refusal::OutOfBounds { parameter, value, bound } => {
                match (parameter.strip_suffix("_ns"), u64::try_from(*value)) {
                    (Some(time), Ok(ns)) => {
                        write!(
                            f,
                            "{time} is {}, but has to be {}",
                            punctual_model::Duration::from_ns(ns),
                            bound.replace("_ns)", ")")
                        )
                    }
                    _ => write!(f, "{parameter} is {value}, but has to be {bound}"),
                }
            }
            Refusal::NoSuchSpec { spec } => write!(f, "there is no spec {spec}"),
            Refusal::NoSuchThread { thread } => write!(f, "there is no thread {thread}"),
            Refusal::NoSuchPlugin { plugin } => write!(f, "there is no plugin named {plugin}"),
            Refusal::NotOwner { what } => write!(f, "not permitted: {what}"),
            Refusal::AlreadyAttached { spec, thread } => {
                write!(f, "thread {thread} is attached to spec {spec} already")
            }
            Refusal::NotAttached { spec } => write!(f, "spec {spec} has no thread attached"),
            Refusal::KernelRefused { reason } => write!(f, "the kernel refused: {reason}"),
            Refusal::TooMany { what, limit } => write!(f, "too many {what}: the limit is {limit}"),
            Refusal::InvalidParameter { parameter } => {
                write!(f, "punctuald cannot read the argument {parameter}")
            }
            Refusal::PermissionDenied {} => write!(f, "punctuald does not let this user do that"),
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
