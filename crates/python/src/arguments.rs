//! Arguments as options of `workflow`.

use crate::{document, errors};
use punctual_extract::{Options, StreamOptions};
use punctual_workflow::replay::processors;
use punctual_workflow::{Given, ThreadFilter, TimeRange, values};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// One of something, or several.
#[derive(FromPyObject)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

/// Recordings: at least one.
pub fn recordings(py: Python<'_>, paths: OneOrMany<PathBuf>) -> PyResult<Vec<PathBuf>> {
    let paths = paths.into_vec();
    match paths.is_empty() {
        true => Err(errors::usage(py, "no recording is given")),
        false => Ok(paths),
    }
}

/// Patterns of thread names.
pub fn threads(py: Python<'_>, patterns: Option<OneOrMany<String>>) -> PyResult<ThreadFilter> {
    let patterns = patterns.map_or_else(Vec::new, OneOrMany::into_vec);
    ThreadFilter::new(&patterns).map_err(|error| errors::exception(py, &error))
}

/// A time: `"10s"`, or a `datetime.timedelta`.
#[derive(FromPyObject)]
pub enum Time {
    Text(String),
    Span(Duration),
}

impl Time {
    fn parse(
        self,
        py: Python<'_>,
        name: &str,
        parse: fn(&str) -> Result<Duration, String>,
    ) -> PyResult<Duration> {
        match self {
            Time::Text(text) => {
                parse(&text).map_err(|error| errors::usage(py, format!("{name}: {text:?}: {error}")))
            }
            Time::Span(span) => Ok(span),
        }
    }

    /// A span longer than zero.
    pub fn span(self, py: Python<'_>, name: &str) -> PyResult<Duration> {
        match self.parse(py, name, values::time)? {
            Duration::ZERO => Err(errors::usage(py, format!("{name}: must be longer than zero"))),
            span => Ok(span),
        }
    }
}

/// Which part of a recording.
pub fn range(py: Python<'_>, from: Option<Time>, until: Option<Time>) -> PyResult<TimeRange> {
    let offset = |time: Option<Time>, name| time.map(|time| time.parse(py, name, values::offset)).transpose();
    Ok(TimeRange { from: offset(from, "from_")?, until: offset(until, "until")? })
}

/// The number of workers; one per processor unless it is given.
pub fn workers(py: Python<'_>, workers: Option<usize>) -> PyResult<NonZeroUsize> {
    match workers {
        None => Ok(processors()),
        Some(number) => NonZeroUsize::new(number)
            .ok_or_else(|| errors::usage(py, "workers: expected a number of workers, at least 1")),
    }
}

/// The longest curves that the commands make.
const LONGEST: usize = 100_000;

/// How long curves are.
pub fn horizons(py: Python<'_>, curve: usize, wcet: usize) -> PyResult<StreamOptions> {
    for (name, horizon) in [("curve_horizon", curve), ("wcet_horizon", wcet)] {
        if !(1..=LONGEST).contains(&horizon) {
            return Err(errors::usage(py, format!("{name}: expected 1 to {LONGEST}, not {horizon}")));
        }
    }
    Ok(StreamOptions { curve_horizon: curve, wcet_horizon: wcet, jobs_only: false })
}

/// Which models to make.
pub fn models(py: Python<'_>, curve: usize, wcet: usize, merge_transitions: bool) -> PyResult<Options> {
    Ok(Options { stream: horizons(py, curve, wcet)?, merge_transitions })
}

/// A timing model as a dict, or a file.
pub fn given(argument: &Bound<'_, PyAny>) -> PyResult<Given> {
    let py = argument.py();
    if argument.is_instance_of::<PyDict>() {
        let text = document::text(argument)?;
        return Given::parse(&text).map_err(|error| errors::exception(py, &error));
    }
    Ok(Given::File(argument.extract()?))
}

/// One of them, or several.
pub fn all_given(argument: &Bound<'_, PyAny>) -> PyResult<Vec<Given>> {
    let is_one = argument.is_instance_of::<PyDict>()
        || argument.is_instance_of::<PyString>()
        || argument.hasattr("__fspath__")?;
    match is_one {
        true => Ok(vec![given(argument)?]),
        false => argument.try_iter()?.map(|item| given(&item?)).collect(),
    }
}
