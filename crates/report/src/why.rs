//! Why jobs were late: the section `causes` as text and as JSON.

mod advice;
mod json;
#[cfg(test)]
mod tests;
mod text;
mod unexplained;
mod words;

pub(crate) use advice::of as advice;
pub(crate) use json::document;
pub use json::{json, one_job};
pub use text::text;
pub(crate) use text::{lack, late, line, words_of};
pub use unexplained::unexplained;

use crate::number::{about, at_most};
use punctual_model::Duration;
use punctual_model::causes::{Causes, Kind, LateTask};

/// A cause of a task's late jobs, in words.
pub struct CauseRow {
    /// How many jobs.
    pub(crate) jobs: u64,
    /// The time of the parts that they are put down to.
    pub(crate) time: Duration,
    /// What it is.
    pub(crate) cause: String,
    /// What speaks for it; may be empty.
    pub(crate) evidence: String,
}

impl CauseRow {
    /// The causes of a task, those of most time first, and others together.
    pub(crate) fn all(task: &LateTask) -> impl Iterator<Item = CauseRow> {
        let listed = task.causes.iter().map(|cause| CauseRow {
            jobs: cause.jobs,
            time: cause.ns,
            cause: words::cause(cause, task),
            evidence: words::evidence(task, cause),
        });
        let others = task.others.map(|others| CauseRow {
            jobs: others.jobs,
            time: others.ns,
            cause: "other causes".into(),
            evidence: String::new(),
        });
        listed.chain(others)
    }
}

/// The only late job of a task: `control: job 3150 took 5.65 ms: preempted by vision (FIFO 90), 3.01 ms
/// (higher priority on the same processor)`.
pub fn one_line(task: &LateTask) -> String {
    let Some((job, cause)) = task.worst.first().zip(CauseRow::all(task).next()) else {
        return crate::visible(&task.task);
    };
    let (name, took, time) = (crate::visible(&task.task), at_most(job.response_ns), about(cause.time));
    let mut line = format!("{name}: {} took {took}: {}", text::name(job), cause.cause);
    // Of own work, the cause has the time.
    if job.cause != Kind::Own {
        line += &format!(", {time}");
    }
    if !cause.evidence.is_empty() {
        line += &format!(" ({})", cause.evidence);
    }
    line
}

/// The late job that took longest, of those that are shown: the name of its thread, and its number.
pub fn worst(causes: &Causes) -> Option<(&str, u64)> {
    let worst = causes.tasks.iter().filter_map(|task| Some((task, task.worst.first()?)));
    let (task, job) = worst.max_by_key(|(_, job)| job.response_ns)?;
    Some((&task.task, job.job))
}
