//! JSON as Python's own values, and back: the interpreter's `json` module does it.

use crate::errors;
use pyo3::prelude::*;

/// The value of a text of JSON.
pub fn value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.getattr("loads")?.call1((text,))
}

/// The text of a value.
pub fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let text = py.import("json")?.getattr("dumps")?.call1((value,));
    text.map_err(|error| errors::usage(py, format!("this is no JSON document: {}", error.value(py))))?
        .extract()
}
