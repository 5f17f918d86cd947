//! What a message asks, read strictly: what is not known is an error that names it.

use crate::error::Error;
use punctual_model::Duration;
use punctual_schedule::SpecId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What this daemon's own methods begin with.
pub(super) const SCHEDULER: &str = "io.punctual.Scheduler1.";

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
    let call: Call<'_> = serde_json::from_slice(message)
        .map_err(|error| Error::InvalidParameter { parameter: format!("the message is no call: {error}") })?;
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

/// There are to be none.
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
    let said = error.inner().to_string();
    let named = ["unknown field `", "missing field `", "duplicate field `"]
        .iter()
        .find_map(|start| said.strip_prefix(start)?.split('`').next());
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

/// Declared timing needs, as they go over the wire.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runtime_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    desired_runtime_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    period_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ignore_admission: Option<bool>,
}

impl From<Parameters> for punctual_schedule::Parameters {
    fn from(it: Parameters) -> Self {
        Self {
            runtime: it.runtime_ns.map(Duration::from_ns),
            desired_runtime: it.desired_runtime_ns.map(Duration::from_ns),
            period: it.period_ns.map(Duration::from_ns),
            deadline: it.deadline_ns.map(Duration::from_ns),
            priority: it.priority,
            plugin: it.plugin,
            ignore_admission: it.ignore_admission.unwrap_or_default(),
        }
    }
}

impl From<&punctual_schedule::Parameters> for Parameters {
    fn from(it: &punctual_schedule::Parameters) -> Self {
        Self {
            runtime_ns: it.runtime.map(Duration::ns),
            desired_runtime_ns: it.desired_runtime.map(Duration::ns),
            period_ns: it.period.map(Duration::ns),
            deadline_ns: it.deadline.map(Duration::ns),
            priority: it.priority,
            plugin: it.plugin.clone(),
            ignore_admission: it.ignore_admission.then_some(true),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateCall {
    parameters: Parameters,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeCall {
    spec: u64,
    parameters: Parameters,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachCall {
    spec: u64,
    thread: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpecCall {
    pub(super) spec: u64,
}

/// What is asked of a spec, and the ping: the methods that a program calls while it works.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Create { parameters: punctual_schedule::Parameters, name: Option<String> },
    Change { spec: SpecId, parameters: punctual_schedule::Parameters },
    Release { spec: SpecId },
    Attach { spec: SpecId, thread: u32 },
    Detach { spec: SpecId },
    Ping,
}

/// What such a method asks; `None` if it is another one.
pub(super) fn request(method: &str, parameters: Option<&RawValue>) -> Result<Option<Request>, Error> {
    let spec = || read::<SpecCall>(parameters).map(|call| SpecId(call.spec));
    Ok(Some(match method {
        "CreateSpec" => {
            let CreateCall { parameters, name } = read(parameters)?;
            Request::Create { parameters: parameters.into(), name }
        }
        "ChangeSpec" => {
            let ChangeCall { spec, parameters } = read(parameters)?;
            Request::Change { spec: SpecId(spec), parameters: parameters.into() }
        }
        "ReleaseSpec" => Request::Release { spec: spec()? },
        "AttachThread" => {
            let AttachCall { spec, thread } = read(parameters)?;
            Request::Attach { spec: SpecId(spec), thread }
        }
        "DetachThread" => Request::Detach { spec: spec()? },
        "Ping" => {
            none(parameters)?;
            Request::Ping
        }
        _ => return Ok(None),
    }))
}

/// Reads such a call in one pass. `None` for whatever is not one as programs write it: that is to be read
/// again, in two, where each error has its name.
pub(super) fn request_at_once(message: &[u8]) -> Option<Request> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Call<'a> {
        #[serde(borrow)]
        method: &'a str,
        parameters: AnyOf,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct AnyOf {
        #[serde(default, deserialize_with = "given")]
        spec: Option<u64>,
        #[serde(default, deserialize_with = "given")]
        thread: Option<u32>,
        #[serde(default, deserialize_with = "given")]
        name: Option<String>,
        #[serde(default, deserialize_with = "given")]
        parameters: Option<Parameters>,
    }
    /// Not null: that is a field too, which a method may not have.
    fn given<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
        T::deserialize(from).map(Some)
    }
    // serde would take lists for objects.
    if memchr::memchr(b'[', message).is_some() {
        return None;
    }
    let Call { method, parameters: AnyOf { spec, thread, name, parameters } } =
        serde_json::from_str(std::str::from_utf8(message).ok()?).ok()?;
    let (spec, parameters) = (spec.map(SpecId), parameters.map(Into::into));
    Some(match (method.strip_prefix(SCHEDULER)?, spec, thread, name, parameters) {
        ("CreateSpec", None, None, name, Some(parameters)) => Request::Create { parameters, name },
        ("ChangeSpec", Some(spec), None, None, Some(parameters)) => Request::Change { spec, parameters },
        ("ReleaseSpec", Some(spec), None, None, None) => Request::Release { spec },
        ("AttachThread", Some(spec), Some(thread), None, None) => Request::Attach { spec, thread },
        ("DetachThread", Some(spec), None, None, None) => Request::Detach { spec },
        ("Ping", None, None, None, None) => Request::Ping,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn create(text: &str) -> Result<CreateCall, Error> {
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

    /// Values that some field would take, and others.
    fn value() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::json;
        let name = prop_oneof![Just(json!("RM")), any::<String>().prop_map(serde_json::Value::from)];
        prop_oneof![4 => any::<u64>().prop_map(Into::into), 4 => any::<u8>().prop_map(Into::into), 2 => name, 1 => Just(json!(null)), 1 => Just(json!(true)),
            1 => Just(json!([7])), 1 => Just(json!({"runtime_ns": 5, "plugin": "RM"})), 1 => Just(json!({}))]
    }

    fn object(names: &'static [&'static str]) -> impl Strategy<Value = serde_json::Value> {
        proptest::collection::btree_map(proptest::sample::select(names), value(), 0..4)
            .prop_map(|it| serde_json::to_value(it).unwrap())
    }

    const FIELDS: &[&str] = &["spec", "thread", "name", "parameters", "other"];
    const DECLARED: &[&str] = &["runtime_ns", "period_ns", "priority", "plugin", "ignore_admission", "other"];
    const METHODS: &[&str] =
        &["CreateSpec", "ChangeSpec", "ReleaseSpec", "AttachThread", "DetachThread", "GetSpec", "Ping"];

    proptest! {
        /// Or not at all, which costs time only.
        #[test]
        fn what_is_read_at_once_is_read_the_same(
            method in proptest::sample::select(METHODS), mut parameters in object(FIELDS), declared in object(DECLARED), declares: bool, extra: bool,
        ) {
            if declares {
                parameters["parameters"] = declared;
            }
            let mut message = serde_json::json!({"method": format!("{SCHEDULER}{method}"), "parameters": parameters});
            if extra {
                message["oneway"] = true.into();
            }
            let message = serde_json::to_vec(&message).unwrap();
            if let Some(request_at_once) = request_at_once(&message) {
                let call = parse(&message).unwrap();
                prop_assert_eq!(request(method, call.parameters).unwrap(), Some(request_at_once));
                prop_assert!(!extra, "a flag was passed over");
            }
        }
    }

    #[test]
    fn calls_as_programs_write_them_are_read_at_once() {
        for call in [
            r#"{"method":"io.punctual.Scheduler1.CreateSpec","parameters":{"parameters":{"runtime_ns":1,"plugin":"RM"},"name":"a"}}"#,
            r#"{"parameters":{"spec":1,"parameters":{}},"method":"io.punctual.Scheduler1.ChangeSpec"}"#,
            r#"{"method":"io.punctual.Scheduler1.AttachThread","parameters":{"spec":1,"thread":2}}"#,
            r#"{"method":"io.punctual.Scheduler1.ReleaseSpec","parameters":{"spec":1}}"#,
            r#"{"method":"io.punctual.Scheduler1.DetachThread","parameters":{"spec":1}}"#,
        ] {
            assert!(request_at_once(call.as_bytes()).is_some(), "{call}");
        }
    }

    /// A field that a method does not have is none of its, whatever its value.
    #[test]
    fn null_does_not_hide_a_field_too_many() {
        for (method, parameters) in [
            ("CreateSpec", r#"{"parameters":{},"spec":null}"#),
            ("CreateSpec", r#"{"parameters":{},"thread":null}"#),
            ("ChangeSpec", r#"{"spec":1,"parameters":{},"name":null}"#),
            ("ReleaseSpec", r#"{"spec":1,"parameters":null}"#),
        ] {
            let message = format!(r#"{{"method":"{SCHEDULER}{method}","parameters":{parameters}}}"#);
            assert!(request(method, parse(message.as_bytes()).unwrap().parameters).is_err(), "{message}");
            assert_eq!(request_at_once(message.as_bytes()), None, "{message}");
        }
    }

    #[test]
    fn null_is_as_if_it_were_not_there() {
        let call =
            create(r#"{"parameters":{"runtime_ns":null,"plugin":null,"ignore_admission":null},"name":null}"#)
                .ok()
                .unwrap();
        assert_eq!(
            punctual_schedule::Parameters::from(call.parameters),
            punctual_schedule::Parameters::default()
        );
        let call = parse(br#"{"method":"m","oneway":null,"parameters":null}"#).unwrap();
        assert!(!call.oneway && call.parameters.is_none());
    }

    #[test]
    fn what_is_no_call_is_said_to_be_none() {
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
