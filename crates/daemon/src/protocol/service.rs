//! `org.varlink.service`: what this is, and which interfaces it has.

use crate::error::Error;
use serde::{Deserialize, Serialize};

const SCHEDULER: &str = "io.punctual.Scheduler1";
const SERVICE: &str = "org.varlink.service";
const SCHEDULER_TEXT: &str = include_str!("../../interfaces/io.punctual.Scheduler1.varlink");
const SERVICE_TEXT: &str = include_str!("../../interfaces/org.varlink.service.varlink");

#[derive(Serialize)]
pub(super) struct Info {
    vendor: &'static str,
    product: &'static str,
    version: &'static str,
    url: &'static str,
    interfaces: [&'static str; 2],
}

pub(super) fn info() -> Info {
    Info {
        vendor: "Punctual",
        product: "punctuald",
        version: env!("CARGO_PKG_VERSION"),
        url: "",
        interfaces: [SERVICE, SCHEDULER],
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DescriptionCall {
    pub(super) interface: String,
}

#[derive(Serialize)]
pub(super) struct Description {
    description: &'static str,
}

pub(super) fn description(interface: &str) -> Result<Description, Error> {
    match interface {
        SCHEDULER => Ok(Description { description: SCHEDULER_TEXT }),
        SERVICE => Ok(Description { description: SERVICE_TEXT }),
        _ => Err(Error::InterfaceNotFound { interface: interface.into() }),
    }
}

/// What is wrong with a method that there is none of.
pub(super) fn unknown(method: &str) -> Error {
    match method.rsplit_once('.') {
        Some((SERVICE | SCHEDULER, _)) | None => Error::MethodNotFound { method: method.into() },
        Some((interface, _)) => Error::InterfaceNotFound { interface: interface.into() },
    }
}
