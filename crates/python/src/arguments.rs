//! Arguments as options of `workflow`.

use crate::{document, errors};
use punctual_extract::{Options, StreamOptions};
use punctual_workflow::replay::processors;
use punctual_workflow::{Given, ThreadFilter, TimeRange, values};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
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

/// A whole number, of any size; its use says which ones make sense.
#[derive(Clone, Copy, Debug)]
pub struct Whole(i64);

impl FromPyObject<'_, '_> for Whole {
    type Error = PyErr;

    fn extract(number: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        whole(&number).map(Whole)
    }
}

/// The same, for an argument with a default. Those that do not fit are too large for any use.
pub fn whole(number: &Bound<'_, PyAny>) -> PyResult<i64> {
    match number.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => {
            Ok(if number.lt(0)? { i64::MIN } else { i64::MAX })
        }
        other => other,
    }
}

fn within(py: Python<'_>, name: &str, number: i64, range: RangeInclusive<usize>) -> PyResult<usize> {
    let (least, most) = (range.start(), range.end());
    let fits = usize::try_from(number).ok().filter(|number| range.contains(number));
    fits.ok_or_else(|| errors::usage(py, format!("{name}: expected {least} to {most}, not {number}")))
}

/// A time: `"10s"`, or a `datetime.timedelta`.
#[derive(Clone, Debug)]
pub enum Time {
    Text(String),
    Span(Duration),
    /// Neither, or a negative one.
    Wrong(String),
}

impl FromPyObject<'_, '_> for Time {
    type Error = PyErr;

    fn extract(time: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(if let Ok(text) = time.extract() {
            Time::Text(text)
        } else if let Ok(span) = time.extract() {
            Time::Span(span)
        } else {
            Time::Wrong(time.repr()?.to_string())
        })
    }
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
            Time::Wrong(what) => {
                let expected = "a time with its unit (\"10s\") or a timedelta that is not negative";
                Err(errors::usage(py, format!("{name}: expected {expected}, not {what}")))
            }
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
pub fn workers(py: Python<'_>, workers: Option<Whole>) -> PyResult<NonZeroUsize> {
    match workers {
        None => Ok(processors()),
        Some(Whole(number)) => {
            let number = within(py, "workers", number, 1..=MOST_WORKERS)?;
            Ok(NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN))
        }
    }
}

/// More workers than any machine has processors.
const MOST_WORKERS: usize = 65_536;

/// The longest curves that the commands make.
const LONGEST: usize = 100_000;

/// How long curves are.
pub fn horizons(py: Python<'_>, curve: i64, wcet: i64) -> PyResult<StreamOptions> {
    let curve_horizon = within(py, "curve_horizon", curve, 1..=LONGEST)?;
    let wcet_horizon = within(py, "wcet_horizon", wcet, 1..=LONGEST)?;
    Ok(StreamOptions { curve_horizon, wcet_horizon, jobs_only: false })
}

/// Which models to make.
pub fn models(py: Python<'_>, curve: i64, wcet: i64, merge_transitions: bool) -> PyResult<Options> {
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
