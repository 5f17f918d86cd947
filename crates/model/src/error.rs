//! Why a text is not a timing model: the place, the reason and the remedy.

use serde_json::{Value, error::Category};
use std::fmt;

/// Why a text is not a timing model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The text ends in the middle of the model.
    Truncated {
        /// Line of the end, from 1.
        line: usize,
        /// Column of the end, from 1.
        column: usize,
    },
    /// The text is not JSON.
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The format is right, but this Punctual does not read its version.
    Version {
        /// The version in the file.
        found: String,
        /// The newest version that it reads.
        newest: u32,
    },
    /// A value is missing, of the wrong kind, or invalid.
    Value {
        /// Where, such as `tasks[3].streams[0].arrival.periodic.period_ns`; empty for the whole document.
        path: String,
        /// What was expected, and what was found.
        problem: String,
        /// Line and column from 1, where they are known.
        position: Option<(usize, usize)>,
    },
}

impl std::error::Error for ReadError {}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Truncated { line, column } => {
                write!(
                    f,
                    "line {line}, column {column}: the text ends in the middle of the model; is the file \
                     truncated?"
                )
            }
            ReadError::NotJson { line, column, problem } => {
                write!(f, "line {line}, column {column}: not JSON: {problem}")
            }
            ReadError::Version { found, newest } => {
                write!(
                    f,
                    "version {found} is not supported by this Punctual (it reads versions 1 to {newest})"
                )
            }
            ReadError::Value { path, problem, position } => {
                if !path.is_empty() {
                    write!(f, "{path}: ")?;
                }
                f.write_str(problem)?;
                match position {
                    Some((line, column)) => write!(f, " (line {line}, column {column})"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl ReadError {
    /// The place in the file, if the error has one.
    pub fn path(&self) -> Option<&str> {
        match self {
            ReadError::Value { path, .. } => Some(path),
            _ => None,
        }
    }

    pub(crate) fn value(
        path: impl Into<String>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> ReadError {
        ReadError::Value {
            path: path.into(),
            problem: format!("expected {expected}, found {found}"),
            position: None,
        }
    }

    pub(crate) fn map_path(mut self, change: impl FnOnce(&str) -> String) -> ReadError {
        if let ReadError::Value { path, .. } = &mut self {
            *path = change(path);
        }
        self
    }

    pub(crate) fn syntax(error: &serde_json::Error) -> ReadError {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => ReadError::Truncated { line, column },
            _ => ReadError::NotJson { line, column, problem: bare(error) },
        }
    }

    pub(crate) fn shape(error: &serde_path_to_error::Error<serde_json::Error>) -> ReadError {
        let path = match error.path().to_string() {
            path if path == "." => String::new(),
            path => path,
        };
        let inner = error.inner();
        let problem = bare(inner);
        let position = (inner.line() > 0).then(|| (inner.line(), inner.column()));
        if let Some(field) = problem.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
            let path = if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            return ReadError::Value {
                path,
                problem: "expected a value, found nothing (the field is missing)".to_owned(),
                position,
            };
        }
        ReadError::Value { path, problem: reworded(&problem).unwrap_or(problem), position }
    }
}

/// A short description of a value.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{:?}", shortened(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A parser's message without the position at its end.
fn bare(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((bare, _)) if error.line() > 0 => bare.to_owned(),
        _ => message,
    }
}

/// `invalid type: string "x", expected u64` in the words of the other errors; `None` for other messages.
fn reworded(problem: &str) -> Option<String> {
    let problem = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant "]
        .iter()
        .find_map(|prefix| problem.strip_prefix(prefix))?;
    let (found, expected) = problem.rsplit_once(", expected ")?;
    let expected = match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, zero or greater",
        "i32" | "i64" => "a whole number",
        "a sequence" => "an array",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    let found = match found {
        "map" => "an object",
        "sequence" => "an array",
        found => found,
    };
    Some(format!("expected {expected}, found {}", shortened(found)))
}

/// Keeps an error on one line, whatever the file has as a name.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
