//! Models of jobs that are given as arrays: of releases, costs and ends.

use crate::{arguments, document, errors, run::run};
use punctual_extract::StreamOptions;
use punctual_extract::stream::{Circumstances, Stream};
use punctual_model::{self as model, Duration, Instant, Job, Release, Segment, Separator, Window};
use punctual_workflow::Error;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// Make the models of a stream of jobs: of their releases, in order, and what is known of each.
#[pyfunction]
#[pyo3(signature = (releases, costs = None, *, latest = None, arrivals = None, ends = None,
    curve_horizon = 1000, wcet_horizon = 1000))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn extract<'py>(
    py: Python<'py>,
    releases: &Bound<'py, PyAny>,
    costs: Option<&Bound<'py, PyAny>>,
    latest: Option<&Bound<'py, PyAny>>,
    arrivals: Option<&Bound<'py, PyAny>>,
    ends: Option<&Bound<'py, PyAny>>,
    curve_horizon: usize,
    wcet_horizon: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let options = arguments::horizons(py, curve_horizon, wcet_horizon)?;
    let array = |argument: Option<&Bound<'py, PyAny>>, name| {
        argument.map(|argument| Array::new(argument, name)).transpose()
    };
    let releases = Array::new(releases, "releases")?;
    let [costs, latest, arrivals, ends] =
        [(costs, "costs"), (latest, "latest"), (arrivals, "arrivals"), (ends, "ends")]
            .map(|(argument, name)| array(argument, name));
    let (costs, latest, arrivals, ends) = (costs?, latest?, arrivals?, ends?);
    let numbers = Arrays {
        releases: releases.numbers(),
        costs: costs.as_ref().map(Array::numbers),
        latest: latest.as_ref().map(Array::numbers),
        arrivals: arrivals.as_ref().map(Array::numbers),
        ends: ends.as_ref().map(Array::numbers),
    };
    let text = run(py, |_| {
        let stream = numbers.extract(&options).map_err(Error::usage)?;
        serde_json::to_string(&stream)
            .map_err(|error| Error::usage("cannot write the models").because(error.to_string()))
    })?;
    document::value(py, &text)
}

/// An array that was given: a copy of its bytes, which nobody changes.
struct Array<'py> {
    bytes: Bound<'py, PyBytes>,
    is_signed: bool,
    name: &'static str,
}

impl<'py> Array<'py> {
    /// Of a buffer (numpy, array, memoryview); what turns into one of numpy's; or a list.
    fn new(argument: &Bound<'py, PyAny>, name: &'static str) -> PyResult<Self> {
        let py = argument.py();
        let wrong = |why: String| {
            errors::usage(
                py,
                format!("{name}: expected whole nanoseconds (int64 or uint64) in one dimension, {why}"),
            )
        };
        let view = match PyMemoryView::from(argument) {
            Ok(view) => view,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let buffer =
                    buffer(argument).map_err(|error| wrong(format!("not this: {}", error.value(py))))?;
                PyMemoryView::from(&buffer)
                    .map_err(|error| wrong(format!("not this: {}", error.value(py))))?
            }
            Err(error) => return Err(wrong(format!("not this: {}", error.value(py)))),
        };
        let (format, dimensions, size): (String, usize, usize) = (
            view.getattr("format")?.extract()?,
            view.getattr("ndim")?.extract()?,
            view.getattr("itemsize")?.extract()?,
        );
        let is_signed = match format.trim_start_matches(['@', '=', NATIVE]) {
            "l" | "q" if size == ITEM => true,
            "L" | "Q" if size == ITEM => false,
            _ => return Err(wrong(format!("not items of format {format:?}"))),
        };
        if dimensions != 1 {
            return Err(wrong(format!("not {dimensions}")));
        }
        let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
        Ok(Array { bytes, is_signed, name })
    }

    fn numbers(&self) -> Numbers<'_> {
        let most = if self.is_signed { i64::MAX as u64 } else { u64::MAX };
        Numbers { bytes: self.bytes.as_bytes(), most, name: self.name }
    }
}

/// Bytes of an item.
const ITEM: usize = 8;

/// How a buffer's format says that its bytes are in this machine's order.
const NATIVE: char = if cfg!(target_endian = "little") { '<' } else { '>' };

/// A buffer of something that is none.
fn buffer<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match argument.hasattr("__array__")? {
        true => argument.call_method0("__array__"),
        false => argument.py().import("array")?.getattr("array")?.call1(("Q", argument)),
    }
}

/// Numbers of one array.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    bytes: &'a [u8],
    /// Greater ones are negative.
    most: u64,
    name: &'static str,
}

impl Numbers<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / ITEM
    }

    #[inline]
    fn at(&self, index: usize) -> Result<u64, String> {
        let mut bytes = [0; ITEM];
        bytes.copy_from_slice(&self.bytes[index * ITEM..][..ITEM]);
        let number = u64::from_ne_bytes(bytes);
        if number > self.most {
            return Err(format!("{}[{index}] is {}: times are not negative", self.name, number as i64));
        }
        Ok(number)
    }
}

/// All arrays: one entry for each release, or, of what is known at its end, one less.
struct Arrays<'a> {
    releases: Numbers<'a>,
    costs: Option<Numbers<'a>>,
    latest: Option<Numbers<'a>>,
    arrivals: Option<Numbers<'a>>,
    ends: Option<Numbers<'a>>,
}

impl Arrays<'_> {
    /// The models, without what nothing was said of.
    fn extract(&self, options: &StreamOptions) -> Result<model::Stream, String> {
        let jobs = self.jobs()?;
        let mut stream = Stream::new(options);
        let mut before = 0;
        for index in 0..self.releases.len() {
            let (release, earliest) = self.release(index)?;
            if earliest < before {
                return Err(format!("releases[{index}] is before the one before it: sort them"));
            }
            before = earliest;
            stream.release(&release, Circumstances::default());
            if index < jobs {
                let job = self.job(index, release)?;
                stream.complete(&job, &[Segment { suspended: Duration::ZERO, cost: job.cost }]);
            }
        }
        Ok(self.known(stream.to_model(Separator::SUSPENSION)))
    }

    /// How many jobs have ended.
    fn jobs(&self) -> Result<usize, String> {
        let releases = self.releases.len();
        for array in [self.latest, self.arrivals].into_iter().flatten() {
            if array.len() != releases {
                return Err(format!(
                    "{}: expected {releases}, as many as releases, not {}",
                    array.name,
                    array.len()
                ));
            }
        }
        let Some(costs) = self.costs else {
            return match self.ends {
                Some(_) => Err("ends: costs are missing, which are known at the same time".into()),
                None => Ok(0),
            };
        };
        let jobs = costs.len();
        if jobs != releases && jobs + 1 != releases {
            return Err(format!("costs: expected {releases}, as many as releases, or one less, not {jobs}"));
        }
        match self.ends.filter(|ends| ends.len() != jobs) {
            Some(ends) => Err(format!("ends: expected {jobs}, as many as costs, not {}", ends.len())),
            None => Ok(jobs),
        }
    }

    #[inline]
    fn release(&self, index: usize) -> Result<(Release, u64), String> {
        let earliest = self.releases.at(index)?;
        let latest = self.latest.map_or(Ok(earliest), |latest| latest.at(index))?;
        let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(latest));
        let window = window.ok_or_else(|| format!("latest[{index}] is before releases[{index}]"))?;
        let arrival = self.arrivals.map(|arrivals| arrivals.at(index)).transpose()?.map(Instant::from_ns);
        Ok((Release { arrival, window }, earliest))
    }

    #[inline]
    fn job(&self, index: usize, release: Release) -> Result<Job, String> {
        let cost = Duration::from_ns(self.costs.map_or(Ok(0), |costs| costs.at(index))?);
        let start = release.window.latest();
        let end = match self.ends {
            Some(ends) => Instant::from_ns(ends.at(index)?),
            None => start + cost,
        };
        if end < release.window.earliest() {
            return Err(format!("ends[{index}] is before releases[{index}]"));
        }
        Ok(Job { release, start: start.min(end), end, cost, suspended: Duration::ZERO })
    }

    /// Nothing is known of sleeping; of response times, only with ends.
    fn known(&self, mut stream: model::Stream) -> model::Stream {
        stream.suspension = None;
        if self.ends.is_none() {
            stream.response = None;
            stream.percentiles = stream.percentiles.map(|it| model::Percentiles { response: None, ..it });
            stream.percentiles = stream.percentiles.filter(|it| *it != model::Percentiles::default());
        }
        stream
    }
}
