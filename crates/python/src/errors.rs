//! Errors as Python's exceptions. The classes are Python's own (`punctual._errors`): each has two bases.

use punctual_workflow::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyType;

const MODULE: &str = "punctual._errors";

/// A class of `punctual._errors`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import(MODULE)?.getattr(name)?.cast_into::<PyType>()?)
}

fn raised(py: Python<'_>, name: &str, message: String) -> PyErr {
    match class(py, name) {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}

/// Options of the command, and the arguments that they are here.
const ARGUMENTS: [(&str, &str); 8] = [
    ("--from", "from_"),
    ("--until", "until"),
    ("--thread", "threads"),
    ("--jobs", "workers"),
    ("--force", "force=True"),
    ("--deadline", "deadlines"),
    ("--ignore", "ignore"),
    ("--what-if", "what_if"),
];

/// A message of the command with the names of arguments.
fn in_python(message: &str) -> String {
    let word = |word: &str| {
        let known = ARGUMENTS
            .iter()
            .find(|(option, _)| word.strip_suffix([',', ';', ':']).unwrap_or(word) == *option);
        known.map_or_else(|| word.to_owned(), |(option, argument)| word.replacen(option, argument, 1))
    };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The exception of an error: its message is the command's.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let name = match error.kind() {
        ErrorKind::Usage => "UsageError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Target => "TargetError",
        ErrorKind::File => "FileError",
        ErrorKind::Refused => "RefusedError",
        _ => "Error",
    };
    raised(py, name, in_python(&format!("{error:#}")))
}

/// An argument that cannot be used.
pub fn usage(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, "UsageError", message.into())
}

/// A panic: what it said, and what to do.
pub fn defect(py: Python<'_>, panic: &(dyn std::any::Any + Send)) -> PyErr {
    raised(py, "Error", format!("{}; please report it", defect_text(panic)))
}

/// What a panic said.
pub fn defect_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a defect of Punctual: {}", text.unwrap_or("it stopped unexpectedly"))
}

/// Warns in Python's own way: a filter may turn it into an exception.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let class = class(py, "PunctualWarning")?;
    py.import("warnings")?.getattr("warn")?.call1((in_python(message), class))?;
    Ok(())
}

/// A hint goes to the log.
pub fn hint(py: Python<'_>, message: &str) -> PyResult<()> {
    let log = py.import("logging")?.getattr("getLogger")?.call1(("punctual",))?;
    // Without its own % formatting.
    log.call_method1("info", ("%s", in_python(message)))?;
    Ok(())
}
