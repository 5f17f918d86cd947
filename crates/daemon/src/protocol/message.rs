//! What a message asks, read strictly: what is not known is an error that names it.

use crate::error::Error;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A call. Its parameters are read when the method is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call<'a> {
    /// Interface and name.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// An object.
    #[serde(borrow, default)]
    pub parameters: Option<&'a RawValue>,
    /// No reply is wanted.
    #[serde(default, deserialize_with = "flag")]
    pub oneway: bool,
    /// Several replies would be taken; there is one.
    #[serde(default, deserialize_with = "flag")]
    pub more: bool,
    /// Something else is to be spoken then; nothing is.
    #[serde(default, deserialize_with = "flag")]
    pub upgrade: bool,
}

/// A flag may be null, which is as if it were not there.
fn flag<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::<bool>::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads a message, without its NUL.
pub fn parse(message: &[u8]) -> Result<Call<'_>, Error> {
    let refused = |why: &dyn std::fmt::Display| Error::InvalidParameter {
        parameter: format!("the message is not a call: {why}"),
    };
    let text = std::str::from_utf8(message).map_err(|error| refused(&error))?;
    let call: Call<'_> = serde_json::from_str(text).map_err(|error| refused(&error))?;
    if call.upgrade {
        return Err(Error::InvalidParameter { parameter: "upgrade".into() });
    }
    Ok(call)
}

/// Reads the parameters of a call.
pub(super) fn read<T: DeserializeOwned>(parameters: Option<&RawValue>) -> Result<T, Error> {
    let text = parameters.map_or("{}", RawValue::get);
    // Objects only: serde would take a list too, in the order of the fields.
    if !text.starts_with('{') {
        return Err(Error::InvalidParameter { parameter: "parameters".into() });
    }
    serde_json::from_str(text).map_err(|_| Error::InvalidParameter { parameter: culprit::<T>(text) })
}

/// Must be empty.
pub(super) fn none(parameters: Option<&RawValue>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    match parameters {
        None => Ok(()),
        Some(_) => read::<Nothing>(parameters).map(|Nothing {}| ()),
    }
}

/// The parameter that could not be read. Slow, for errors only.
fn culprit<T: DeserializeOwned>(text: &str) -> String {
    let mut reader = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return "parameters".into();
    };
    let problem = error.inner().to_string();
    let named = ["unknown field `", "missing field `", "duplicate field `"]
        .iter()
        .find_map(|start| problem.strip_prefix(start)?.split('`').next());
    let place = error.path().to_string();
    match (place.as_str(), named) {
        (".", None) => "parameters".into(),
        (".", Some(named)) => named.into(),
        // The path of an unknown field ends with it already.
        (place, Some(named)) if place.ends_with(named) => place.into(),
        (place, Some(named)) => format!("{place}.{named}"),
        (place, None) => place.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_protocol::CreateSpec;

    fn create(text: &str) -> Result<CreateSpec, Error> {
        let message = format!(r#"{{"method":"m","parameters":{text}}}"#);
        read(parse(message.as_bytes())?.parameters)
    }

    #[track_caller]
    fn culprit_of(text: &str) -> String {
        match create(text) {
            Err(Error::InvalidParameter { parameter }) => parameter,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it was taken"),
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        assert_eq!(culprit_of(r#"{"parameters":{"runtime_ns":1.5}}"#), "parameters.runtime_ns");
        assert_eq!(culprit_of(r#"{"parameters":{"runtime_ns":-1}}"#), "parameters.runtime_ns");
        assert_eq!(
            culprit_of(r#"{"parameters":{"runtime_ns":99999999999999999999}}"#),
            "parameters.runtime_ns"
        );
        assert_eq!(culprit_of(r#"{"parameters":{"runtime_ns":1e3}}"#), "parameters.runtime_ns");
        assert_eq!(culprit_of(r#"{"parameters":{"runtime":1}}"#), "parameters.runtime");
        assert_eq!(culprit_of(r#"{"parameters":{"priority":4294967296}}"#), "parameters.priority");
        assert_eq!(culprit_of(r#"{"parameters":{"period_ns":1,"period_ns":1}}"#), "parameters.period_ns");
        assert_eq!(culprit_of(r#"{"parameters":{},"nam":""}"#), "nam");
        assert_eq!(culprit_of(r#"{"name":""}"#), "parameters");
        assert_eq!(culprit_of(r#"{"parameters":{},"name":7}"#), "name");
        assert_eq!(culprit_of("[{}]"), "parameters");
        assert_eq!(culprit_of("7"), "parameters");
    }

    #[test]
    fn null_is_treated_as_absent() {
        let call =
            create(r#"{"parameters":{"runtime_ns":null,"plugin":null,"ignore_admission":null},"name":null}"#)
                .ok()
                .unwrap();
        assert_eq!(call.parameters, punctual_protocol::Parameters::default());
        let call = parse(br#"{"method":"m","oneway":null,"parameters":null}"#).unwrap();
        assert!(!call.oneway && call.parameters.is_none());
    }

    #[test]
    fn messages_that_are_not_calls_are_refused() {
        let deep = "[".repeat(60_000);
        let deep_parameters = format!(r#"{{"method":"m","parameters":{deep}"#);
        for bad in [
            &b""[..],
            b"{",
            b"null",
            b"[]",
            b"\xff\xfe",
            b"{\"method\":7}",
            b"{\"method\":\"\xff\"}",
            b"{\"methd\":\"m\"}",
            deep.as_bytes(),
            deep_parameters.as_bytes(),
        ] {
            assert!(matches!(parse(bad), Err(Error::InvalidParameter { .. })));
        }
        assert!(parse(br#"{"method":"m","upgrade":true}"#).is_err());
        assert!(parse(br#"{"method":"m"} x"#).is_err());
    }
}
