//! What a late job is put down to.

use crate::part::{Explanation, Kind, Part};
use punctual_model::Duration;

/// The part that a late job is put down to: the longest, of [`Kind::Own`] only the time beyond the usual cost
/// of the task's jobs. `None` for a job without time.
pub fn main_cause(explanation: &Explanation, usual_cost: Duration) -> Option<Part> {
    let unusual = |part: &Part| match part.kind {
        Kind::Own => part.time.saturating_sub(usual_cost),
        _ => part.time,
    };
    // Of equals, the last one is taken: the first of the list.
    explanation.summed().into_iter().rev().max_by_key(unusual)
}
