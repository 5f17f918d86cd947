//! The jobs of a recording, for whatever takes Arrow: pyarrow, pandas, polars, DuckDB.

use crate::arguments::{self, FilePath, OneOrMany, Time, Whole};
use crate::{arrow, run::run};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use punctual_workflow::jobs::{Choice, Jobs as Inner};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::path::PathBuf;
use std::sync::Arc;

/// The jobs of a recording; each use reads it anew.
#[pyclass(frozen, module = "punctual")]
pub struct Jobs {
    inner: Arc<Inner>,
    path: PathBuf,
}

/// Open a recording for its jobs.
#[pyfunction]
#[pyo3(signature = (recording, *, threads = None, from_ = None, until = None, primary = false,
    merge_transitions = false, workers = None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn jobs(
    py: Python<'_>,
    recording: FilePath,
    threads: Option<OneOrMany<String>>,
    from_: Option<Time>,
    until: Option<Time>,
    primary: bool,
    merge_transitions: bool,
    workers: Option<Whole>,
) -> PyResult<Jobs> {
    let choice = Choice {
        range: arguments::range(py, from_, until)?,
        threads: arguments::threads(py, threads)?,
        merge_transitions,
        primary_only: primary,
        causes: None,
        workers: arguments::workers(py, workers)?,
    };
    let FilePath(recording) = recording;
    let inner = run(py, |monitor| Inner::open(&recording, &choice, monitor))?;
    Ok(Jobs { inner: Arc::new(inner), path: recording })
}

#[pymethods]
impl Jobs {
    /// The clock of all instants.
    #[getter]
    fn clock(&self) -> &str {
        self.inner.clock()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        punctual_report::jobs::columns().map(|(name, _)| name).collect()
    }

    /// The schema, for what takes Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*arrow::schema(self.inner.clock()));
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The jobs, for what takes Arrow. The types are always those of the schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore what it is asked for.
        let _ = requested_schema;
        let batches = arrow::Batches::begin(Arc::clone(&self.inner))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<punctual.Jobs of {}>", punctual_report::visible(&self.path.display().to_string()))
    }
}
