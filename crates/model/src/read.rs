//! Strict reading of `*.timing.json`: either a valid model, or an error that says where in the file, what was
//! expected and what was found. Extra fields are allowed.
//!
//! Three passes: is it JSON of a known format and version; does its structure match the types; are its values
//! consistent.

mod strict;
mod v1;

use crate::error::{ReadError, describe};
use crate::file::{FORMAT, TimingModel, VERSION};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strict::Strict;

impl TimingModel {
    /// Reads the text of a `*.timing.json`, of this version or an earlier one. Never panics, whatever the
    /// text. The caller, who knows the file's name, puts it before the error.
    pub fn from_json(text: &str) -> Result<TimingModel, ReadError> {
        let source: Value = serde_json::from_str(text).map_err(|error| ReadError::syntax(&error))?;
        if version(&source)? == 1 {
            return v1::read(text, &source);
        }
        let mut model: TimingModel = shape(text)?;
        count_releases(&mut model, source.pointer("/threads/tasks"));
        model.validate()?;
        Ok(model)
    }
}

/// Format and version are checked first: the rest depends on them.
fn version(source: &Value) -> Result<u64, ReadError> {
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
        Some(Value::Number(version)) => match version.as_u64() {
            Some(known) if (1..=VERSION.into()).contains(&known) => Ok(known),
            _ => Err(ReadError::Version { found: version.to_string() }),
        },
        found => Err(ReadError::value(
            "version",
            format!("the number {VERSION}"),
            found.map_or("nothing".into(), describe),
        )),
    }
}

/// Reads exactly the type, and nothing that only resembles it.
fn shape<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(Strict(&mut deserializer)).map_err(|error| ReadError::shape(&error))
}

/// `releases` is optional: if a tool left it out, every release had its job.
fn count_releases(model: &mut TimingModel, tasks: Option<&Value>) {
    let Some(threads) = &mut model.threads else { return };
    for (task, source) in threads.tasks.iter_mut().zip(array(tasks)) {
        for (stream, source) in task.streams.iter_mut().zip(array(source.get("streams"))) {
            if source.get("releases").is_none() {
                stream.releases = stream.jobs;
            }
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
