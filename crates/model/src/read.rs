//! Strict reading of `*.timing.json`: either a model that keeps every promise of its types, or an error that
//! says where in the file, what was expected and what was found. Extra fields are allowed.
//!
//! Three passes: is it JSON of a known format and version; does it have the shape of the types; do its values
//! make sense.

mod error;
mod validate;

pub use error::ReadError;
pub(crate) use validate::{Checked, arrival};

use crate::file::{FORMAT, TimingModel, VERSION};
use error::describe;
use serde_json::Value;

impl TimingModel {
    /// Reads a whole `*.timing.json` text. Never panics, whatever the text is; the caller knows the file's
    /// name and puts it before the error.
    pub fn from_json(text: &str) -> Result<TimingModel, ReadError> {
        let source: Value = serde_json::from_str(text).map_err(|error| ReadError::syntax(&error))?;
        known(&source)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let mut model: TimingModel =
            serde_path_to_error::deserialize(&mut deserializer).map_err(|error| ReadError::shape(&error))?;
        if let Ok(read) = serde_json::to_value(&model) {
            plain(&source, &read, &mut String::new())?;
        }
        count_releases(&mut model, &source);
        validate::model(&model)?;
        Ok(model)
    }
}

/// Format and version come first: of another version, nothing else can be said.
fn known(source: &Value) -> Result<(), ReadError> {
    if !source.is_object() {
        return Err(ReadError::value("", "a timing model (an object)", describe(source)));
    }
    match source.get("format") {
        Some(Value::String(format)) if format == FORMAT => {}
        found => {
            return Err(ReadError::value(
                "format",
                format!("{FORMAT:?}"),
                found.map_or("nothing".into(), describe),
            ));
        }
    }
    match source.get("version") {
        Some(Value::Number(version)) if version.as_u64() == Some(VERSION.into()) => Ok(()),
        Some(Value::Number(version)) => Err(ReadError::Version { found: version.to_string() }),
        found => Err(ReadError::value(
            "version",
            format!("the number {VERSION}"),
            found.map_or("nothing".into(), describe),
        )),
    }
}

/// Fields that may be left out; where they stand, they say something.
const OPTIONAL: [&str; 34] = [
    "nice",
    "reservation",
    "primary",
    "primary_reason",
    "periodic",
    "period_exact",
    "sporadic",
    "curve",
    "execution",
    "suspension",
    "response",
    "typical",
    "reason",
    "percentiles",
    "lateness",
    "cost",
    "mean_ns",
    "clock",
    "clock_id",
    "absolute",
    "object",
    "fd",
    "identity",
    "address",
    "id",
    "dataflow",
    "program",
    "platform",
    "executors",
    "queuing",
    "channel",
    "reaction",
    "age",
    "policy",
];

/// Deserialization takes an array for an object's fields in order, and null for a field that is absent; a
/// file that others read must have neither.
fn plain(source: &Value, read: &Value, path: &mut String) -> Result<(), ReadError> {
    let length = path.len();
    match (source, read) {
        (Value::Array(_), Value::Object(_)) => {
            return Err(ReadError::value(path.clone(), "an object", "an array"));
        }
        (Value::Object(source), Value::Object(read)) => {
            if let Some((name, _)) =
                source.iter().find(|(name, value)| value.is_null() && OPTIONAL.contains(&name.as_str()))
            {
                let path = if length > 0 { format!("{path}.{name}") } else { name.clone() };
                return Err(ReadError::value(path, "a value, or no such field", "null"));
            }
            for (name, read) in read {
                if let Some(source) = source.get(name) {
                    *path += if length > 0 { "." } else { "" };
                    *path += name;
                    plain(source, read, path)?;
                    path.truncate(length);
                }
            }
        }
        (Value::Array(source), Value::Array(read)) => {
            for (index, (source, read)) in
                source.iter().zip(read).enumerate().filter(|(_, (_, read))| !read.is_number())
            {
                *path += &format!("[{index}]");
                plain(source, read, path)?;
                path.truncate(length);
            }
        }
        _ => {}
    }
    Ok(())
}

/// `releases` stands beside the fields that every file has; where another tool left it out, every release had
/// its job.
fn count_releases(model: &mut TimingModel, source: &Value) {
    for (task, task_source) in model.tasks.iter_mut().zip(array(source.get("tasks"))) {
        for (stream, stream_source) in task.streams.iter_mut().zip(array(task_source.get("streams"))) {
            if stream_source.get("releases").is_none() {
                stream.releases = stream.jobs;
            }
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
