//! Whether recordings, traces and timing models keep to a contract.

use crate::arguments::{self, FilePath, Time, Whole};
use crate::{document, errors, run::run};
use punctual_report::conformance;
use punctual_workflow::check::Options;
use punctual_workflow::{Bounds, parse_bounds, read_bounds};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Check inputs against a contract, each for itself: the dict that `punctual check --json` prints.
#[pyfunction]
#[pyo3(signature = (contract, inputs, *, bounds = None, from_ = None, until = None, workers = None))]
pub fn check<'py>(
    py: Python<'py>,
    contract: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    bounds: Option<&Bound<'py, PyAny>>,
    from_: Option<Time>,
    until: Option<Time>,
    workers: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options {
        contract: arguments::given(contract)?,
        inputs: arguments::all_given(inputs)?,
        range: arguments::range(py, from_, until)?,
        bounds: bounds.map(proven).transpose()?.unwrap_or_default(),
        workers: arguments::workers(py, workers)?,
    };
    let text = run(py, |monitor| {
        let checked = punctual_workflow::check::check(&options, monitor)?;
        Ok(conformance::json(&checked))
    })?;
    document::value(py, &text)
}

/// What `prove` returned, or the file that the command wrote.
fn proven(bounds: &Bound<'_, PyAny>) -> PyResult<Bounds> {
    let read = match bounds.is_instance_of::<PyDict>() {
        true => parse_bounds(&document::text(bounds)?, "the proof"),
        false => read_bounds(&bounds.extract::<FilePath>()?.0),
    };
    read.map_err(|error| errors::exception(bounds.py(), &error))
}
