//! What a request is refused with: the errors of the interface, as they go over the wire.

use punctual_schedule::Bound;
use serde::Serialize;

/// `error` and `parameters` of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "error", content = "parameters")]
#[allow(missing_docs, reason = "the interface's own file says what they mean")]
pub enum Error {
    #[serde(rename = "io.punctual.Scheduler1.NotAdmitted")]
    NotAdmitted { reasons: Vec<String> },
    #[serde(rename = "io.punctual.Scheduler1.NotPermitted")]
    NotPermitted { reason: String, rule: Option<String> },
    #[serde(rename = "io.punctual.Scheduler1.OutOfBounds")]
    OutOfBounds { parameter: &'static str, value: u64, bound: String },
    #[serde(rename = "io.punctual.Scheduler1.NoSuchSpec")]
    NoSuchSpec { spec: u64 },
    #[serde(rename = "io.punctual.Scheduler1.NoSuchThread")]
    NoSuchThread { thread: u32 },
    #[serde(rename = "io.punctual.Scheduler1.NoSuchPlugin")]
    NoSuchPlugin { plugin: String },
    #[serde(rename = "io.punctual.Scheduler1.NotOwner")]
    NotOwner { what: String },
    #[serde(rename = "io.punctual.Scheduler1.AlreadyAttached")]
    AlreadyAttached { spec: u64, thread: u32 },
    #[serde(rename = "io.punctual.Scheduler1.NotAttached")]
    NotAttached { spec: u64 },
    #[serde(rename = "io.punctual.Scheduler1.KernelRefused")]
    KernelRefused { reason: String },
    #[serde(rename = "io.punctual.Scheduler1.TooMany")]
    TooMany { what: String, limit: usize },
    #[serde(rename = "org.varlink.service.InvalidParameter")]
    InvalidParameter { parameter: String },
    #[serde(rename = "org.varlink.service.MethodNotFound")]
    MethodNotFound { method: String },
    #[serde(rename = "org.varlink.service.MethodNotImplemented")]
    MethodNotImplemented { method: String },
    #[serde(rename = "org.varlink.service.InterfaceNotFound")]
    InterfaceNotFound { interface: String },
}

impl From<Bound> for Error {
    fn from(it: Bound) -> Self {
        Error::OutOfBounds { parameter: it.parameter, value: it.value, bound: it.bound }
    }
}
