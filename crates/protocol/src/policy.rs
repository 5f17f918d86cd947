//! The policies that the daemon assigns, by their names in the protocol.

use punctual_model::Policy;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use std::borrow::Cow;

const NAMES: [(Policy, &str); 3] =
    [(Policy::Deadline, "deadline"), (Policy::Fifo, "fifo"), (Policy::Rr, "rr")];

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's contract")]
pub(crate) fn serialize<S: Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
    match NAMES.iter().find(|(known, _)| known == policy) {
        Some((_, name)) => to.serialize_str(name),
        None => Err(S::Error::custom("the daemon assigns no such policy")),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Policy, D::Error> {
    let name = Cow::<str>::deserialize(from)?;
    NAMES
        .iter()
        .find_map(|(policy, known)| (*known == name).then_some(*policy))
        .ok_or_else(|| D::Error::custom(format!("there is no policy {name}")))
}
