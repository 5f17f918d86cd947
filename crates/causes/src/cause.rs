//! What a late job is put down to.

use crate::part::{Explanation, Kind, Part};
use punctual_model::Duration;
use std::cmp::Reverse;

/// The part that a late job is put down to: the longest, of [`Kind::Own`] only the time beyond the usual cost
/// of the task's jobs. It is the unknown one where that could make another part the longest. `None` for a job
/// without time.
pub fn main_cause(explanation: &Explanation, usual_cost: Duration) -> Option<Part> {
    let unusual = |part: &Part| match part.kind {
        Kind::Own => part.time.saturating_sub(usual_cost),
        _ => part.time,
    };
    let (unknown, mut known): (Vec<Part>, Vec<Part>) =
        explanation.summed().into_iter().partition(|part| part.kind == Kind::Unknown);
    known.sort_by_key(|part| Reverse(unusual(part)));
    let unknown = unknown.into_iter().next();
    let hidden = unknown.as_ref().map_or(Duration::ZERO, |part| part.time);
    let second = known.get(1).map_or(Duration::ZERO, unusual);
    let longest = known.into_iter().next().filter(|part| unusual(part) >= second + hidden);
    longest.or(unknown)
}
