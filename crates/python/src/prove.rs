//! Whether threads meet their deadlines.

use crate::arguments::{self, OneOrMany, Time};
use crate::{document, errors, run::run};
use punctual_model::{Duration, Percent};
use punctual_workflow::prove::{Change, Options};
use punctual_workflow::{ThreadFilter, values};
use pyo3::prelude::*;
use std::collections::HashMap;

/// Bound the response times of real-time threads: the dict that `punctual prove --json` prints.
#[pyfunction]
#[pyo3(signature = (model, *, platform = None, deadlines = None, margin = 0.0, what_if = None, threads = None,
    ignore = None, sensitivity = false, assign = false))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn prove<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyAny>,
    platform: Option<&Bound<'py, PyAny>>,
    deadlines: Option<HashMap<String, Time>>,
    margin: f64,
    what_if: Option<OneOrMany<String>>,
    threads: Option<OneOrMany<String>>,
    ignore: Option<OneOrMany<String>>,
    sensitivity: bool,
    assign: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options {
        model: arguments::given(model)?,
        platform: platform.map(arguments::given).transpose()?,
        deadlines: deadlines.into_iter().flatten().map(|it| deadline(py, it)).collect::<PyResult<_>>()?,
        margin: percent(py, margin)?,
        changes: changes(py, what_if)?,
        threads: arguments::threads(py, threads)?,
        ignored: ignore.map(|patterns| arguments::threads(py, Some(patterns))).transpose()?,
        sensitivity,
        assign,
    };
    let text = run(py, |_| Ok(punctual_report::proof::json(&punctual_workflow::prove::prove(&options)?)))?;
    document::value(py, &text)
}

fn deadline(py: Python<'_>, (pattern, time): (String, Time)) -> PyResult<(ThreadFilter, Duration)> {
    let threads = arguments::threads(py, Some(OneOrMany::One(pattern)))?;
    let ns = u64::try_from(time.span(py, "deadlines")?.as_nanos());
    let ns = ns.map_err(|_| errors::usage(py, "deadlines: is too long"))?;
    Ok((threads, Duration::from_ns(ns)))
}

fn percent(py: Python<'_>, margin: f64) -> PyResult<Percent> {
    values::percent(&margin.to_string()).map_err(|error| errors::usage(py, format!("margin: {error}")))
}

fn changes(py: Python<'_>, what_if: Option<OneOrMany<String>>) -> PyResult<Vec<Change>> {
    let change = |text: String| {
        let change = values::change(&text);
        let change = change.map_err(|error| errors::usage(py, format!("what_if: {text:?}: {error}")))?;
        change.resolve().map_err(|error| errors::exception(py, &error))
    };
    what_if.map_or_else(Vec::new, OneOrMany::into_vec).into_iter().map(change).collect()
}
