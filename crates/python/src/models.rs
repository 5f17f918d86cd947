//! Timing models: read, written, made of recordings.

use crate::arguments::{self, FilePath, OneOrMany, Time, Whole};
use crate::{document, run::run};
use punctual_workflow::replay::Options;
use punctual_workflow::{Destination, Given};
use pyo3::prelude::*;

/// Read a timing model (*.timing.json).
#[pyfunction]
pub fn read_model(py: Python<'_>, path: FilePath) -> PyResult<Bound<'_, PyAny>> {
    let text = run(py, |_| Ok(Given::File(path.0).model()?.to_json()))?;
    document::value(py, &text)
}

/// Write a timing model, after checking it.
#[pyfunction]
#[pyo3(signature = (model, path, *, force = false))]
pub fn write_model(py: Python<'_>, model: &Bound<'_, PyAny>, path: FilePath, force: bool) -> PyResult<()> {
    let text = document::text(model)?;
    run(py, |_| {
        let model = Given::parse(&text)?.model()?;
        Destination::new(&path.0, force)?.write_or_rescue(model.to_json().as_bytes())
    })
}

/// Make one timing model of recordings.
#[pyfunction]
#[pyo3(signature = (recordings, *, threads = None, from_ = None, until = None, curve_horizon = 1000,
    wcet_horizon = 1000, merge_transitions = false, workers = None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn replay<'py>(
    py: Python<'py>,
    recordings: OneOrMany<FilePath>,
    threads: Option<OneOrMany<String>>,
    from_: Option<Time>,
    until: Option<Time>,
    #[pyo3(from_py_with = arguments::whole)] curve_horizon: i64,
    #[pyo3(from_py_with = arguments::whole)] wcet_horizon: i64,
    merge_transitions: bool,
    workers: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options {
        recordings: arguments::recordings(py, recordings)?,
        range: arguments::range(py, from_, until)?,
        threads: arguments::threads(py, threads)?,
        models: arguments::models(py, curve_horizon, wcet_horizon, merge_transitions)?,
        workers: arguments::workers(py, workers)?,
        jobs: None,
    };
    let text = run(py, |monitor| Ok(punctual_workflow::replay::replay(&options, monitor)?.to_json()))?;
    document::value(py, &text)
}
