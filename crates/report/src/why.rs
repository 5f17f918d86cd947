//! Why jobs were late: the section `causes` as text and as JSON.

mod advice;
mod json;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub(crate) use advice::of as advice;
pub(crate) use json::document;
pub use json::json;
pub use text::text;
pub(crate) use text::{lack, late, line, words_of};

use punctual_model::Duration;
use punctual_model::causes::{Causes, LateTask};

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
            evidence: words::evidence(cause),
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

/// The late job that took longest, of those that are shown: the name of its thread, and its number.
pub fn worst(causes: &Causes) -> Option<(&str, u64)> {
    let worst = causes.tasks.iter().filter_map(|task| Some((task, task.worst.first()?)));
    let (task, job) = worst.max_by_key(|(_, job)| job.response_ns)?;
    Some((&task.task, job.job))
}
