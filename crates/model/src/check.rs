//! Independent checkers, one per model: does this job stream obey that model?
//!
//! They share no code with the inference and are written to be obviously correct, not fast: brute force over
//! every run of consecutive jobs. A release is a window, so a checker asks whether *any* placement of the
//! releases inside their windows, in order, would violate the model; if so, the model is not conservative.
//!
//! Each checker returns its violations, the worst one of each run length; an empty list means the stream
//! obeys the model.

mod curve;
mod grid;
mod jobs;
mod modes;
mod percentiles;
mod periodic;
mod table;
mod typical;
mod violation;

pub use curve::{arrival_counts, curve, sporadic};
pub use jobs::{counts, dynamic_suspension, execution, response, segmented_suspension};
pub use modes::modes;
pub use percentiles::percentiles;
pub use periodic::periodic;
pub use table::{JobName, TableViolation, table};
pub use typical::typical;
pub use violation::{Bound, Model, Value, Violation};

use crate::job::{Job, Release, Segment};
use crate::threads::Stream;

/// Greatest number of segments of a job; if it has more, the first ones are merged into one.
pub const MAX_SEGMENTS: usize = 16;

/// A job and its segments as recorded. No segments means a single one with the whole cost and suspension.
pub type RecordedJob = (Job, Vec<Segment>);

/// Checks these consecutive releases and jobs against every model of the stream. Statements about single
/// releases (slips, releases left out) and percentiles only hold for the data they were made from.
pub fn check_stream(stream: &Stream, releases: &[Release], jobs: &[RecordedJob]) -> Vec<Violation> {
    let mut found = order(releases);
    let arrival = &stream.arrival;
    found.extend(arrival.periodic.iter().flat_map(|model| periodic(model, releases)));
    found.extend(arrival.periodic.iter().flat_map(|model| typical(model, releases)));
    found.extend(modes(&arrival.modes, releases));
    found.extend(arrival.sporadic.iter().flat_map(|model| sporadic(model, releases)));
    found.extend(arrival.curve.iter().flat_map(|model| curve(model, releases)));
    found.extend(stream.execution.iter().flat_map(|model| execution(model, jobs)));
    found.extend(stream.suspension.iter().flat_map(|model| dynamic_suspension(model, jobs)));
    found.extend(stream.suspension.iter().flat_map(|model| segmented_suspension(model, jobs)));
    found.extend(stream.response.iter().flat_map(|model| response(model, jobs)));
    found.extend(stream.percentiles.iter().flat_map(|model| percentiles(model, releases, jobs)));
    found
}

/// Whether the releases can have happened in this order. If not, every model of them is vacuous.
pub fn order(releases: &[Release]) -> Vec<Violation> {
    let windows = placements(releases);
    let out_of_order = windows.iter().enumerate().filter(|(_, window)| window.latest < window.earliest);
    out_of_order
        .map(|(job, window)| Violation {
            model: Model::Order,
            first: job,
            last: job,
            allowed: Bound::AtLeast(Value::At(window.earliest.into())),
            seen: Value::At(window.latest.into()),
        })
        .collect()
}

/// Where a release can lie if its neighbours stay in order, in nanoseconds.
#[derive(Clone, Copy)]
struct Placement {
    earliest: u64,
    latest: u64,
}

/// The window of each release without the parts that no ordered placement reaches: not before an earlier
/// window opens, nor after a later one closes.
fn placements(releases: &[Release]) -> Vec<Placement> {
    let mut windows: Vec<Placement> = releases
        .iter()
        .map(|release| Placement {
            earliest: release.window.earliest().ns(),
            latest: release.window.latest().ns(),
        })
        .collect();
    let mut opened = 0;
    for window in &mut windows {
        opened = window.earliest.max(opened);
        window.earliest = opened;
    }
    let mut closes = u64::MAX;
    for window in windows.iter_mut().rev() {
        closes = window.latest.min(closes);
        window.latest = closes;
    }
    windows
}
