//! `org.varlink.service`: what this is, and which interfaces it has.

use crate::error::Error;
use punctual_protocol::{INTERFACE, INTERFACE_TEXT, SERVICE, SERVICE_TEXT};
use serde::{Deserialize, Serialize};

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
        interfaces: [SERVICE, INTERFACE],
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
        INTERFACE => Ok(Description { description: INTERFACE_TEXT }),
        SERVICE => Ok(Description { description: SERVICE_TEXT }),
        _ => Err(Error::InterfaceNotFound { interface: interface.into() }),
    }
}

/// The error for an unknown method.
pub(super) fn unknown(method: &str) -> Error {
    match method.rsplit_once('.') {
        Some((SERVICE | INTERFACE, _)) | None => Error::MethodNotFound { method: method.into() },
        Some((interface, _)) => Error::InterfaceNotFound { interface: interface.into() },
    }
}
