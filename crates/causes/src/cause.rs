//! What a late job is put down to.

use crate::part::{Explanation, Kind, Part};
use punctual_model::Duration;

/// What jobs of a task take usually: only what is beyond it makes a job late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    /// Processor time.
    pub cost: Duration,
    /// Time asleep within the job.
    pub suspended: Duration,
}

/// The part that a late job is put down to: the one that exceeds by most what is usual. Its time is the whole
/// of it. `None` for a job without time.
pub fn main_cause(explanation: &Explanation, usual: &Usual) -> Option<Part> {
    let mut blocked_left = usual.suspended;
    let beyond = |part: &Part, blocked_left: &mut Duration| match part.kind {
        Kind::Own => part.time.saturating_sub(usual.cost),
        Kind::Blocked => {
            let usual = (*blocked_left).min(part.time);
            *blocked_left = blocked_left.saturating_sub(usual);
            part.time.saturating_sub(usual)
        }
        _ => part.time,
    };
    let summed = explanation.summed();
    // The shortest waits are the usual ones.
    let mut weighed: Vec<(Duration, Part)> =
        summed.into_iter().rev().map(|part| (beyond(&part, &mut blocked_left), part)).collect();
    weighed.reverse();
    let most = weighed.iter().map(|(beyond, part)| (*beyond, part.time)).max()?;
    weighed.into_iter().find(|(beyond, part)| (*beyond, part.time) == most).map(|(_, part)| part)
}
