//! Errors that the daemon replies with.

use crate::{Bound, one_line};
use punctual_model::Duration;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The errors of the interface, and those of `org.varlink.service` that the daemon uses: `error` and
/// `parameters` of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum Error {
    /// No plugin admits it.
    #[serde(rename = "io.punctual.Scheduler1.NotAdmitted")]
    NotAdmitted {
        /// One for each plugin asked, in order.
        reasons: Vec<String>,
    },
    /// The rules deny it.
    #[serde(rename = "io.punctual.Scheduler1.NotPermitted")]
    NotPermitted {
        /// The reason.
        reason: String,
        /// The rule that decides; `None` if no rule matches.
        #[serde(default)]
        rule: Option<String>,
    },
    /// A parameter is out of bounds.
    #[serde(rename = "io.punctual.Scheduler1.OutOfBounds")]
    OutOfBounds {
        /// Its field in the protocol.
        parameter: String,
        /// Its value.
        value: u64,
        /// The bound.
        bound: String,
    },
    /// The spec does not exist, or no longer.
    #[serde(rename = "io.punctual.Scheduler1.NoSuchSpec")]
    NoSuchSpec {
        /// Its number.
        spec: u64,
    },
    /// There is no such thread.
    #[serde(rename = "io.punctual.Scheduler1.NoSuchThread")]
    NoSuchThread {
        /// Its TID.
        thread: u32,
    },
    /// There is no such plugin.
    #[serde(rename = "io.punctual.Scheduler1.NoSuchPlugin")]
    NoSuchPlugin {
        /// The name.
        plugin: String,
        /// What to do about it, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// It belongs to another user.
    #[serde(rename = "io.punctual.Scheduler1.NotOwner")]
    NotOwner {
        /// A message: what belongs to whom.
        what: String,
    },
    /// The spec has a thread, or the thread has a spec.
    #[serde(rename = "io.punctual.Scheduler1.AlreadyAttached")]
    AlreadyAttached {
        /// The spec.
        spec: u64,
        /// Its thread.
        thread: u32,
    },
    /// The spec has no thread.
    #[serde(rename = "io.punctual.Scheduler1.NotAttached")]
    NotAttached {
        /// The spec.
        spec: u64,
    },
    /// The spec's runtime of this period was used by another thread.
    #[serde(rename = "io.punctual.Scheduler1.NotYet")]
    NotYet {
        /// By which.
        reason: String,
        /// After so long, the thread can be attached.
        #[serde(rename = "wait_ns")]
        wait: Duration,
    },
    /// The kernel refused the admitted scheduling.
    #[serde(rename = "io.punctual.Scheduler1.KernelRefused")]
    KernelRefused {
        /// The call, its object, and the error.
        reason: String,
    },
    /// The caller has reached a limit.
    #[serde(rename = "io.punctual.Scheduler1.TooMany")]
    TooMany {
        /// What is limited.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// An argument is missing, unknown or malformed.
    #[serde(rename = "org.varlink.service.InvalidParameter")]
    InvalidParameter {
        /// Its name.
        parameter: String,
    },
    /// The caller may not do this.
    #[serde(rename = "org.varlink.service.PermissionDenied")]
    PermissionDenied {},
    /// The interface has no such method.
    #[serde(rename = "org.varlink.service.MethodNotFound")]
    MethodNotFound {
        /// The method.
        method: String,
    },
    /// The service has no such interface.
    #[serde(rename = "org.varlink.service.InterfaceNotFound")]
    InterfaceNotFound {
        /// The interface.
        interface: String,
    },
}

impl From<Bound> for Error {
    fn from(it: Bound) -> Self {
        Error::OutOfBounds { parameter: it.parameter.into(), value: it.value, bound: it.bound }
    }
}

/// One line, whatever it quotes.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.message()))
    }
}

impl Error {
    fn message(&self) -> String {
        match self {
            Error::NotAdmitted { reasons } if reasons.is_empty() => {
                "not admitted: there are no plugins".into()
            }
            Error::NotAdmitted { reasons } => format!("not admitted: {}", reasons.join("; ")),
            Error::NotPermitted { reason, rule: Some(rule) } => {
                format!("not permitted: {reason} (rule: {rule})")
            }
            Error::NotPermitted { reason, rule: None } => format!("not permitted: {reason}"),
            Error::OutOfBounds { parameter, value, bound } => match parameter.strip_suffix("_ns") {
                Some(time) => {
                    let (value, bound) = (Duration::from_ns(*value), bound.replace("_ns)", ")"));
                    format!("{time} is {value}, but must be {bound}")
                }
                None => format!("{parameter} is {value}, but must be {bound}"),
            },
            Error::NoSuchSpec { spec } => format!("there is no spec {spec}"),
            Error::NoSuchThread { thread } => format!("there is no thread {thread}"),
            Error::NoSuchPlugin { plugin, hint } => {
                let hint = hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
                format!("there is no plugin named {plugin}{hint}")
            }
            Error::NotOwner { what } => format!("not permitted: {what}"),
            Error::AlreadyAttached { spec, thread } => {
                format!("thread {thread} is already attached to spec {spec}")
            }
            Error::NotAttached { spec } => format!("spec {spec} has no thread attached"),
            Error::NotYet { reason, wait } => format!("{reason}: it can be attached in {wait}"),
            Error::KernelRefused { reason } => format!("the kernel refused: {reason}"),
            Error::TooMany { what, limit } => format!("too many {what}: the limit is {limit}"),
            Error::InvalidParameter { parameter } => {
                format!("punctuald cannot read the argument {parameter}")
            }
            Error::PermissionDenied {} => "punctuald does not let this user do that".into(),
            Error::MethodNotFound { method } => format!("punctuald has no method {method}"),
            Error::InterfaceNotFound { interface } => format!("punctuald has no interface {interface}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_it_quotes() {
        let error = Error::NoSuchPlugin { plugin: "R\nM\u{1b}[1m".into(), hint: None };
        assert_eq!(error.to_string(), "there is no plugin named R\\nM\\u{1b}[1m");
    }

    #[test]
    fn a_bound_names_parameter_value_and_reason() {
        let error = Error::OutOfBounds {
            parameter: "runtime_ns".into(),
            value: 11,
            bound: "at most 10 ns (period_ns)".into(),
        };
        assert_eq!(error.to_string(), "runtime is 11 ns, but must be at most 10 ns (period)");
    }
}
