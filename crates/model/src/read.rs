//! Strict reading of `*.timing.json`: either a valid model, or an error that says where in the file, what was
//! expected and what was found. Extra fields are allowed.
//!
//! Three passes: is it JSON of a known format and version; does its structure match the types; are its values
//! consistent.

mod shape;
mod strict;
mod v1;

use crate::error::{ReadError, describe};
use crate::file::{FORMAT, TimingModel, VERSION};
use serde_json::Value;
use shape::{count_releases, shape};

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
            _ => Err(ReadError::Version { found: version.to_string(), newest: VERSION }),
        },
        found => Err(ReadError::value(
            "version",
            format!("the number {VERSION}"),
            found.map_or("nothing".into(), describe),
        )),
    }
}
