//! Arguments as options of `workflow`.

use crate::{document, errors};
use punctual_extract::{Options, StreamOptions};
use punctual_workflow::replay::processors;
use punctual_workflow::{Given, ThreadFilter, TimeRange, values};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// A path: text, bytes, or what has one.
#[derive(Clone, Debug)]
pub struct FilePath(pub PathBuf);

impl FromPyObject<'_, '_> for FilePath {
    type Error = PyErr;

    fn extract(path: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let has_one = path.is_instance_of::<PyString>() || path.hasattr("__fspath__")?;
        let named =
            if has_one { path.py().import("os")?.call_method1("fspath", (path,))? } else { path.to_owned() };
        match named.cast::<PyBytes>() {
            Ok(bytes) => Ok(FilePath(OsStr::from_bytes(bytes.as_bytes()).into())),
            Err(_) if has_one => named.extract().map(FilePath),
            Err(_) => Err(unexpected(FilePath::EXPECTED, &path)),
        }
    }
}

/// What an argument is to be, for messages.
pub trait Expected {
    const EXPECTED: &'static str;
}

impl Expected for FilePath {
    const EXPECTED: &'static str = "a path (str, bytes or os.PathLike)";
}

impl Expected for String {
    const EXPECTED: &'static str = "a str";
}

/// An argument of another type.
fn unexpected(expected: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    let kind = argument.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, not {kind}"))
}

/// One of something, or several.
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<'py, T: Expected + for<'a> FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'_, 'py> for OneOrMany<T> {
    type Error = PyErr;

    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(one) = argument.extract() {
            return Ok(OneOrMany::One(one));
        }
        let expected = || format!("{}, or a list of them", T::EXPECTED);
        // The characters of a text, and the keys of a dict, are no list.
        let is_list = argument.hasattr("__getitem__")? && !argument.is_instance_of::<PyDict>();
        let items = if is_list { argument.try_iter().ok() } else { None };
        let Some(items) = items else { return Err(unexpected(&expected(), &argument)) };
        let one = |item: PyResult<Bound<'py, PyAny>>| {
            let item = item?;
            item.extract().map_err(|_| unexpected(&format!("{} in the list", T::EXPECTED), &item))
        };
        items.map(one).collect::<PyResult<_>>().map(OneOrMany::Many)
    }
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
pub fn recordings(py: Python<'_>, paths: OneOrMany<FilePath>) -> PyResult<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = paths.into_vec().into_iter().map(|path| path.0).collect();
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
    Ok(StreamOptions { curve_horizon, wcet_horizon, ..StreamOptions::default() })
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
    match argument.extract() {
        Ok(FilePath(path)) => Ok(Given::File(path)),
        Err(_) => Err(unexpected(&format!("a timing model as a dict, or {}", FilePath::EXPECTED), argument)),
    }
}

/// One of them, or several.
pub fn all_given(argument: &Bound<'_, PyAny>) -> PyResult<Vec<Given>> {
    let is_one = argument.is_instance_of::<PyDict>()
        || argument.is_instance_of::<PyString>()
        || argument.is_instance_of::<PyBytes>()
        || argument.hasattr("__fspath__")?;
    match argument.try_iter() {
        Ok(items) if !is_one => items.map(|item| given(&item?)).collect(),
        _ => Ok(vec![given(argument)?]),
    }
}
