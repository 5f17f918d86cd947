//! Models of jobs that are given as arrays: of releases, costs and ends.

use crate::{arguments, document, errors, run::run};
use punctual_extract::StreamOptions;
use punctual_extract::stream::{Circumstances, Stream};
use punctual_model::{self as model, Duration, Instant, Job, Release, Segment, Separator, Window};
use punctual_report::counted;
use punctual_workflow::{Error, Monitor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyMemoryView, PySlice, PyTuple};

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
    #[pyo3(from_py_with = arguments::whole)] curve_horizon: i64,
    #[pyo3(from_py_with = arguments::whole)] wcet_horizon: i64,
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
    let arrays = Arrays { releases, costs, latest, arrivals, ends };
    let text = run(py, |monitor| {
        let stream = arrays.extract(&options, monitor).map_err(Error::usage)?;
        serde_json::to_string(&stream)
            .map_err(|error| Error::usage("cannot write the models").because(error.to_string()))
    })?;
    document::value(py, &text)
}

/// An array that was given. Its numbers are copied, as one wheel for all Pythons from 3.9 on must, but few at
/// a time, which stay in the processor's cache.
struct Array {
    view: Py<PyMemoryView>,
    length: usize,
    /// Greater ones are negative.
    most: u64,
    name: &'static str,
}

/// Numbers that are copied at a time.
const AT_ONCE: usize = 8_192;

/// Jobs after which it is seen whether to stop. With the longest curves, each takes milliseconds.
const UNTIL_STOPPED: usize = 64;

impl Array {
    /// Of a buffer (numpy, array, memoryview); what turns into one of numpy's; or a list.
    fn new(argument: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Self> {
        let py = argument.py();
        let wrong = |why: String| {
            errors::usage(
                py,
                format!("{name}: expected whole nanoseconds (int64 or uint64) in one dimension, {why}"),
            )
        };
        if is_masked(argument)? {
            let why = "its masked values would count as data: leave them out (compressed())";
            return Err(errors::usage(py, format!("{name}: {why}")));
        }
        let view = match PyMemoryView::from(argument) {
            Ok(view) => view,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let buffer = buffer(argument).map_err(|error| match impossible(argument, name) {
                    Some(why) => errors::usage(py, why),
                    None => wrong(format!("not this: {}", error.value(py))),
                })?;
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
            "d" | "f" | "O" => {
                return Err(wrong(format!(
                    "not items of format {format:?}: these are floats or objects, as columns with missing \
                     values are: leave out the rows without a value, and convert the others \
                     (astype(\"int64\"))"
                )));
            }
            _ => return Err(wrong(format!("not items of format {format:?}"))),
        };
        if dimensions != 1 {
            return Err(wrong(format!("not {dimensions}")));
        }
        let most = if is_signed { i64::MAX as u64 } else { u64::MAX };
        Ok(Array { length: view.len()?, view: view.unbind(), most, name })
    }

    /// Copies the numbers from `first` on.
    fn read(&self, py: Python<'_>, first: usize, into: &mut Vec<u64>) -> Result<(), String> {
        let last = self.length.min(first + AT_ONCE);
        let copied = PySlice::new(py, first as isize, last as isize, 1);
        let copied = self.view.bind(py).get_item(copied).and_then(|part| part.call_method0("tobytes"));
        let copied = copied.map_err(|error| format!("{} cannot be read: {}", self.name, error.value(py)))?;
        let bytes = copied.cast::<PyBytes>().map_err(|error| format!("{}: {error}", self.name))?;
        into.clear();
        into.extend(bytes.as_bytes().chunks_exact(ITEM).map(|item| {
            let mut bytes = [0; ITEM];
            bytes.copy_from_slice(item);
            u64::from_ne_bytes(bytes)
        }));
        match into.iter().position(|number| *number > self.most) {
            None => Ok(()),
            Some(at) => {
                let (name, index, number) = (self.name, first + at, into[at] as i64);
                Err(format!("{name}[{index}] is {number}: times are not negative"))
            }
        }
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

/// Whether it is an array of numpy.ma in which something is masked.
fn is_masked(argument: &Bound<'_, PyAny>) -> PyResult<bool> {
    let may_be = argument.hasattr("mask")? && argument.hasattr("compressed")?;
    Ok(may_be && argument.py().import("numpy.ma")?.call_method1("is_masked", (argument,))?.is_truthy()?)
}

/// Which item of a list is no time, and why, where that is to be said better than Python does.
fn impossible(argument: &Bound<'_, PyAny>, name: &str) -> Option<String> {
    if !argument.is_instance_of::<PyList>() && !argument.is_instance_of::<PyTuple>() {
        return None;
    }
    argument.try_iter().ok()?.enumerate().find_map(|(index, item)| {
        let item = item.ok()?;
        if item.is_none() {
            return Some(format!("{name}[{index}] is None: leave out what has no value"));
        }
        let is_negative = item.is_instance_of::<PyInt>() && item.lt(0).ok()?;
        is_negative.then(|| format!("{name}[{index}] is {item}: times are not negative"))
    })
}

/// All arrays: one entry for each release, or, of what is known at its end, one less.
struct Arrays {
    releases: Array,
    costs: Option<Array>,
    latest: Option<Array>,
    arrivals: Option<Array>,
    ends: Option<Array>,
}

/// A part of all arrays. What was not given is empty.
#[derive(Default)]
struct Part {
    /// Index of its first release.
    first: usize,
    releases: Vec<u64>,
    costs: Vec<u64>,
    latest: Vec<u64>,
    arrivals: Vec<u64>,
    ends: Vec<u64>,
}

impl Arrays {
    /// The models, without what nothing was said of.
    fn extract(&self, options: &StreamOptions, monitor: &dyn Monitor) -> Result<model::Stream, String> {
        let jobs = self.jobs()?;
        let mut stream = Stream::new(options);
        let mut part = Part::default();
        let (mut before, mut ended) = (0, Instant::from_ns(0));
        let (mut too_long, mut first_too_long) = (0_u64, None);
        for first in (0..self.releases.length).step_by(AT_ONCE) {
            Python::attach(|py| self.read(py, first, &mut part))?;
            for (at, &earliest) in part.releases.iter().enumerate() {
                if at % UNTIL_STOPPED == 0 && monitor.is_stopped() {
                    return Err("interrupted".into());
                }
                let index = first + at;
                if earliest < before {
                    return Err(format!("releases[{index}] is before the one before it: sort them"));
                }
                before = earliest;
                let release = part.release(at, earliest)?;
                stream.release(&release, Circumstances::default());
                if index < jobs {
                    let job = part.job(at, release)?;
                    if self.ends.is_some() && job.end < ended {
                        return Err(format!("ends[{index}] is before the one before it: jobs end in order"));
                    }
                    ended = job.end;
                    if job.end.since(release.window.earliest()) < job.cost {
                        too_long += 1;
                        first_too_long.get_or_insert(index);
                    }
                    stream.complete(&job, &[Segment { suspended: Duration::ZERO, cost: job.cost }]);
                }
            }
        }
        if let Some(index) = first_too_long {
            // Recordings have such jobs, too, where a thread ran after the end that is known.
            monitor.warn(&format!(
                "costs are more than from release to end in {}, first in costs[{index}]: response times are \
                 too small, or costs too large",
                counted(too_long, "job")
            ));
        }
        Ok(self.known(stream.to_model(Separator::SUSPENSION)))
    }

    /// Copies the part from `first` on.
    fn read(&self, py: Python<'_>, first: usize, into: &mut Part) -> Result<(), String> {
        into.first = first;
        self.releases.read(py, first, &mut into.releases)?;
        for (array, into) in [
            (&self.costs, &mut into.costs),
            (&self.latest, &mut into.latest),
            (&self.arrivals, &mut into.arrivals),
            (&self.ends, &mut into.ends),
        ] {
            if let Some(array) = array {
                array.read(py, first, into)?;
            }
        }
        Ok(())
    }

    /// How many jobs have ended.
    fn jobs(&self) -> Result<usize, String> {
        let releases = self.releases.length;
        for array in [&self.latest, &self.arrivals].into_iter().flatten() {
            if array.length != releases {
                return Err(format!(
                    "{}: expected {releases}, as many as releases, not {}",
                    array.name, array.length
                ));
            }
        }
        let Some(costs) = &self.costs else {
            return match &self.ends {
                Some(_) => Err("ends: costs are missing, which are known at the same time".into()),
                None => Ok(0),
            };
        };
        let jobs = costs.length;
        if jobs != releases && jobs + 1 != releases {
            return Err(format!("costs: expected {releases}, as many as releases, or one less, not {jobs}"));
        }
        match self.ends.as_ref().filter(|ends| ends.length != jobs) {
            Some(ends) => Err(format!("ends: expected {jobs}, as many as costs, not {}", ends.length)),
            None => Ok(jobs),
        }
    }

    /// Nothing is known of sleeping; of response times, only with ends.
    fn known(&self, mut stream: model::Stream) -> model::Stream {
        stream.suspension = None;
        if self.ends.is_none() {
            stream.response = None;
            stream.late = None;
            stream.percentiles = stream.percentiles.map(|it| model::Percentiles { response: None, ..it });
            stream.percentiles = stream.percentiles.filter(|it| *it != model::Percentiles::default());
        }
        stream
    }
}

impl Part {
    #[inline]
    fn release(&self, at: usize, earliest: u64) -> Result<Release, String> {
        let latest = self.latest.get(at).copied().unwrap_or(earliest);
        let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(latest));
        let arrival = self.arrivals.get(at).copied().map(Instant::from_ns);
        match window {
            Some(window) => Ok(Release { arrival, window }),
            None => {
                let index = self.first + at;
                Err(format!("latest[{index}] is before releases[{index}]"))
            }
        }
    }

    #[inline]
    fn job(&self, at: usize, release: Release) -> Result<Job, String> {
        let cost = Duration::from_ns(self.costs.get(at).copied().unwrap_or(0));
        let start = release.window.latest();
        let end = match self.ends.get(at) {
            Some(end) => Instant::from_ns(*end),
            None => start + cost,
        };
        if end < release.window.earliest() {
            let index = self.first + at;
            return Err(format!("ends[{index}] is before releases[{index}]"));
        }
        Ok(Job { release, start: start.min(end), end, cost, suspended: Duration::ZERO })
    }
}
