//! The data of the page's script, as one JSON text: curves, scalars, points and counts per stream.
//!
//! Text is in the HTML, but for the name of one line. Ascending lists are written as differences, which are
//! short.

use super::flow::has_curve;
use super::histogram::Histogram;
use super::jobs::{Due, Jobs, Measure, StreamJobs, due};
use super::raster::Point;
use super::task::drawn;
use super::thin::{Bound, Corners, thin};
use crate::prose::begin;
use punctual_model::{Arrival, Instant, LeftOut, Periodic, Slip, Stream, Task, TimingModel};
use serde::Serialize;

/// Most bars of a histogram that are worth sending: the page joins them to about a hundred.
const MOST_BUCKETS: usize = 512;

#[derive(Serialize)]
struct Data {
    /// In the order of tasks and streams in the model, then of the tasks of a dataflow program; nothing for
    /// those that have no figures.
    streams: Vec<Option<StreamData>>,
}

#[derive(Default, Serialize)]
struct StreamData {
    /// δ⁻(2), δ⁻(3), …
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_min: Option<Table>,
    /// δ⁺(2), δ⁺(3), …
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_max: Option<Table>,
    /// WCET(1), WCET(2), …
    #[serde(skip_serializing_if = "Option::is_none")]
    wcet: Option<Table>,
    #[serde(skip_serializing_if = "Option::is_none")]
    separation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    periodic: Option<PeriodicData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raster: Option<RasterData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    responses: Option<ResponseData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Counts>,
}

/// A thinned curve.
#[derive(Serialize)]
struct Table {
    /// Differences.
    index: Vec<u64>,
    /// Differences.
    value: Vec<u64>,
}

#[derive(Serialize)]
struct PeriodicData {
    /// In nanoseconds; a fraction where the period is one.
    period: f64,
    jitter: u64,
    /// Whether there are as many activations as releases at least: none was skipped.
    is_dense: bool,
}

/// The jobs of points, and their times.
#[derive(Serialize)]
struct Places {
    /// Differences.
    number: Vec<u64>,
    /// Differences, in microseconds since the beginning of the observation: a screen shows no more.
    at_us: Vec<i64>,
    /// How many jobs there are, drawn or not.
    jobs: u64,
}

#[derive(Serialize)]
struct ResponseData {
    #[serde(flatten)]
    places: Places,
    response: Vec<i64>,
    /// Jobs that take longer are late.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<u64>,
    /// The name of that limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_is: Option<&'static str>,
}

#[derive(Serialize)]
struct RasterData {
    #[serde(flatten)]
    places: Places,
    low: Vec<i64>,
    /// Where some are not zero.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    width: Vec<u64>,
    /// The bounds that the model has.
    bounds: Vec<u64>,
    /// Whether it is the lateness that is drawn, or the separation.
    lateness: bool,
    /// Skipped activations (how many) and extra releases (negative).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slips: Vec<Mark>,
    /// Releases that the typical jitter leaves out, and how late they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<Mark>,
}

#[derive(Serialize)]
struct Mark {
    /// Since the beginning of the observation.
    at_us: i64,
    value: i64,
}

#[derive(Serialize)]
struct Counts {
    /// Buckets per octave, as a power of two.
    bits: u32,
    least: u64,
    greatest: u64,
    /// Differences.
    index: Vec<u64>,
    count: Vec<u64>,
}

/// The text, safe inside a script element: `<` is escaped, so nothing can end the element.
pub(crate) fn json(model: &TimingModel, jobs: Option<&Jobs>) -> String {
    let mut data = Data { streams: Vec::new() };
    for task in model.tasks() {
        for stream in &task.streams {
            let seen = jobs.and_then(|jobs| jobs.stream(data.streams.len()));
            data.streams.push(drawn(task, stream).then(|| stream_data(model, task, stream, seen)));
        }
    }
    for task in model.dataflow.iter().flat_map(|flow| &flow.tasks) {
        data.streams.push(has_curve(task).then(|| of_arrival(&task.arrival)));
    }
    serde_json::to_string(&data)
        .expect("numbers in structs and lists, which JSON can always write")
        .replace('<', "\\u003c")
}

fn stream_data(model: &TimingModel, task: &Task, stream: &Stream, jobs: Option<&StreamJobs>) -> StreamData {
    let begin = begin(model, task);
    let seen = jobs.filter(|jobs| jobs.jobs > 0);
    StreamData {
        wcet: stream.execution.as_ref().and_then(|execution| table(thin(&execution.wcet_ns, Bound::Above))),
        raster: seen.and_then(|jobs| raster(jobs, begin)),
        responses: seen.map(|jobs| responses(jobs, due(model, task, stream), begin)),
        lateness: seen.and_then(|jobs| counts(&jobs.worst)),
        cost: seen.and_then(|jobs| counts(&jobs.cost)),
        response: seen.and_then(|jobs| counts(&jobs.response)),
        ..of_arrival(&stream.arrival)
    }
}

/// When jobs come, and nothing else.
fn of_arrival(arrival: &Arrival) -> StreamData {
    let curve = arrival.curve.as_ref();
    StreamData {
        delta_min: curve.and_then(|curve| table(thin(&curve.delta_min_ns, Bound::Below))),
        delta_max: curve.and_then(|curve| table(thin(&curve.delta_max_ns, Bound::Above))),
        separation: arrival.sporadic.as_ref().map(|sporadic| sporadic.min_separation_ns.ns()),
        periodic: arrival.periodic.as_ref().map(periodic),
        ..StreamData::default()
    }
}

fn table(corners: Corners) -> Option<Table> {
    let index: Vec<u64> = corners.iter().map(|corner| corner.0).collect();
    let value: Vec<u64> = corners.iter().map(|corner| corner.1).collect();
    (!index.is_empty()).then(|| Table { index: differences(&index), value: differences(&value) })
}

fn periodic(periodic: &Periodic) -> PeriodicData {
    let exact = periodic.period_exact.filter(|exact| exact.denominator > 0);
    let period = exact
        .map_or(periodic.period_ns.ns() as f64, |exact| exact.numerator as f64 / exact.denominator as f64);
    PeriodicData { period, jitter: periodic.jitter_ns.ns(), is_dense: periodic.skipped == 0 }
}

fn places(points: &[Point], jobs: u64, begin: Instant) -> Places {
    let mut before = (begin.ns() / 1_000) as i64;
    let at_us = points.iter().map(|point| {
        let at = (point.at_ns / 1_000) as i64;
        let since = at.saturating_sub(before);
        before = at;
        since
    });
    let number = differences(&points.iter().map(|point| point.number).collect::<Vec<u64>>());
    Places { number, at_us: at_us.collect(), jobs }
}

fn responses(jobs: &StreamJobs, due: Option<Due>, begin: Instant) -> ResponseData {
    let points = jobs.responses.points();
    ResponseData {
        places: places(&points, jobs.jobs, begin),
        response: points.iter().map(|point| point.high_ns).collect(),
        due: due.map(|it| it.after.ns()),
        due_is: due.map(|it| it.name),
    }
}

fn raster(jobs: &StreamJobs, begin: Instant) -> Option<RasterData> {
    let points = jobs.raster.points();
    let width = |point: &Point| point.high_ns.abs_diff(point.low_ns);
    let bounds = match &jobs.measure {
        Measure::Lateness(grid) => vec![grid.jitter_ns],
        Measure::Separation { least_ns, most_ns: u64::MAX } => vec![*least_ns],
        Measure::Separation { least_ns, most_ns } => vec![*least_ns, *most_ns],
    };
    let (slips, left_out) = marks(&jobs.measure, begin);
    (!points.is_empty()).then(|| RasterData {
        places: places(&points, jobs.jobs, begin),
        low: points.iter().map(|point| point.low_ns).collect(),
        width: if points.iter().any(|point| width(point) > 0) {
            points.iter().map(width).collect()
        } else {
            Vec::new()
        },
        bounds,
        lateness: matches!(jobs.measure, Measure::Lateness(_)),
        slips,
        left_out,
    })
}

/// Where there are slips, and what the typical jitter leaves out.
fn marks(measure: &Measure, begin: Instant) -> (Vec<Mark>, Vec<Mark>) {
    let Measure::Lateness(grid) = measure else { return (Vec::new(), Vec::new()) };
    let since = |at: Instant| (at.ns() / 1_000) as i64 - (begin.ns() / 1_000) as i64;
    let slip = |slip: &Slip| Mark { at_us: since(slip.at_ns), value: slip.activations };
    let left_out = |release: &LeftOut| {
        let jitter = if release.off_ns > 0 { i64::try_from(grid.jitter_ns).unwrap_or(i64::MAX) } else { 0 };
        Mark { at_us: since(release.at_ns), value: release.off_ns.saturating_add(jitter) }
    };
    (grid.slips.iter().map(slip).collect(), grid.left_out.iter().map(left_out).collect())
}

fn counts(histogram: &Histogram) -> Option<Counts> {
    let (least, greatest) = histogram.range()?;
    let buckets = histogram.buckets(MOST_BUCKETS);
    let index: Vec<u64> = buckets.counts.iter().map(|(index, _)| *index).collect();
    let count = buckets.counts.iter().map(|(_, count)| *count).collect();
    Some(Counts { bits: buckets.bits, least, greatest, index: differences(&index), count })
}

/// Of an ascending list.
fn differences(list: &[u64]) -> Vec<u64> {
    let mut before = 0;
    let difference = |&value: &u64| {
        let since = value.saturating_sub(before);
        before = value;
        since
    };
    list.iter().map(difference).collect()
}
