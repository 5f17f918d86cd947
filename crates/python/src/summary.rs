//! Summaries of recordings, and the models of all runs together.

use crate::arguments::{self, FilePath, OneOrMany, Time, Whole};
use crate::{document, run::run};
use punctual_extract::Summary as Inner;
use punctual_workflow::summary::{self, Options};
use punctual_workflow::{Destination, Error};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use serde_json::{Value, json};
use std::sync::Arc;

/// What merges of any number of runs: exact, and the same bits in any order.
#[pyclass(frozen, module = "punctual")]
pub struct Summary(Arc<Inner>);

/// Summarize recordings, for merging with those of other runs and machines. With `causes`, the late jobs of
/// recordings with switches are explained, too.
#[pyfunction]
#[pyo3(signature = (recordings, *, threads = None, from_ = None, until = None, curve_horizon = 1000,
    wcet_horizon = 1000, merge_transitions = false, causes = false, workers = None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn summarize(
    py: Python<'_>,
    recordings: OneOrMany<FilePath>,
    threads: Option<OneOrMany<String>>,
    from_: Option<Time>,
    until: Option<Time>,
    #[pyo3(from_py_with = arguments::whole)] curve_horizon: i64,
    #[pyo3(from_py_with = arguments::whole)] wcet_horizon: i64,
    merge_transitions: bool,
    causes: bool,
    workers: Option<Whole>,
) -> PyResult<Summary> {
    let options = Options {
        causes,
        recordings: arguments::recordings(py, recordings)?,
        range: arguments::range(py, from_, until)?,
        threads: arguments::threads(py, threads)?,
        must_match: false,
        models: arguments::models(py, curve_horizon, wcet_horizon, merge_transitions)?,
        workers: arguments::workers(py, workers)?,
    };
    let made = run(py, |monitor| summary::summarize(&options, monitor))?;
    Ok(Summary(Arc::new(made)))
}

/// Merge summaries; of none, the empty one. Threads whose commands are unknown are the same task in several
/// runs only with `same_program`.
#[pyfunction]
#[pyo3(signature = (summaries, *, same_program = false))]
pub fn merge(py: Python<'_>, summaries: &Bound<'_, PyAny>, same_program: bool) -> PyResult<Summary> {
    let one = |item: PyResult<Bound<'_, PyAny>>| -> PyResult<Arc<Inner>> {
        Ok(Arc::clone(&item?.cast::<Summary>()?.get().0))
    };
    let all = summaries.try_iter()?.map(one).collect::<PyResult<Vec<_>>>()?;
    let merged = run(py, |monitor| {
        let mut merged = Inner::default();
        for (number, other) in (1..).zip(&all) {
            summary::add(&mut merged, Inner::clone(other), format_args!("summary {number}"))?;
        }
        if same_program {
            merged.unite_programs();
        }
        summary::review(&merged, "same_program=True merges them", monitor);
        Ok(merged)
    })?;
    Ok(Summary(Arc::new(merged)))
}

#[pymethods]
impl Summary {
    /// The summary in a file's contents; every value is checked.
    #[new]
    #[pyo3(signature = (contents = None))]
    fn new(py: Python<'_>, contents: Option<&Bound<'_, PyBytes>>) -> PyResult<Self> {
        let Some(contents) = contents else { return Ok(Summary(Arc::default())) };
        let bytes = contents.as_bytes();
        let inner = run(py, |_| {
            let wrong = |error: punctual_extract::summary::FileError| {
                Error::file("cannot read the summary").because(punctual_report::visible(&error.to_string()))
            };
            Inner::from_bytes(bytes).map_err(wrong)
        })?;
        Ok(Summary(Arc::new(inner)))
    }

    /// Read a summary (*.summary).
    #[classmethod]
    fn read(_: &Bound<'_, PyType>, py: Python<'_>, path: FilePath) -> PyResult<Self> {
        Ok(Summary(Arc::new(run(py, |_| summary::read(&path.0))?)))
    }

    /// Write it to a file, for `punctual merge` or `Summary.read`.
    #[pyo3(signature = (path, *, force = false))]
    fn write(&self, py: Python<'_>, path: FilePath, force: bool) -> PyResult<()> {
        run(py, |_| summary::write(&self.0, &Destination::new(&path.0, force)?))
    }

    /// The timing model of all runs together.
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = run(py, |_| Ok(self.0.to_model().to_json()))?;
        document::value(py, &text)
    }

    /// Which run each extreme is from.
    fn blame<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let extremes = run(py, |_| Ok(summary::blame(&self.0)))?;
        let row = |it: punctual_report::blame::Blame| {
            json!({
                "task": it.task, "tid": it.number, "separator": it.separator.to_string(),
                "extreme": it.what, "value_ns": it.value.ns(), "run": it.run,
            })
        };
        let rows: Vec<Value> = extremes.into_iter().map(row).collect();
        document::value(py, &Value::from(rows).to_string())
    }

    /// Its runs.
    #[getter]
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = |run: &punctual_extract::Run| {
            json!({
                "host": run.host, "name": run.name, "clock": run.clock, "from_ns": run.from.ns(),
                "until_ns": run.until.ns(), "records": run.records, "lost_records": run.lost,
            })
        };
        let runs: Vec<Value> = self.0.runs().iter().map(run).collect();
        document::value(py, &Value::from(runs).to_string())
    }

    /// Number of tasks.
    #[getter]
    fn tasks(&self) -> usize {
        self.0.tasks()
    }

    /// A file's contents: the same for the same runs, however they were merged.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, |_| Ok(self.0.to_bytes()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Summary>(), (self.__bytes__(py)?,)))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Summary>() else { return Ok(false) };
        let other = &other.get().0;
        run(py, |_| Ok(self.0.to_bytes() == other.to_bytes()))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__bytes__(py)?.hash()
    }

    fn __repr__(&self) -> String {
        let count = punctual_report::counted;
        let (runs, tasks) = (self.0.runs().len() as u64, self.0.tasks() as u64);
        format!("<punctual.Summary: {}, {}>", count(runs, "run"), count(tasks, "task"))
    }
}
