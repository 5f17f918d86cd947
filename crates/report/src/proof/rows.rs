//! What the figures of a proof are read from.

use super::cause;
use crate::figures::figure::urgency;
use punctual_analysis::{Bound, Cause, NoBound, Proof, Room, Task, Thread, Verdict, verdict};
use punctual_model::Policy;

/// Parts that a remark names at most.
const MOST_PARTS: usize = 4;

/// A task of a proof.
#[derive(Clone, Copy, Debug)]
pub struct ProofRow<'a> {
    /// The proof.
    pub proof: &'a Proof,
    /// The index of the task.
    pub task: usize,
}

impl<'a> ProofRow<'a> {
    /// A row for each task, the most urgent first.
    pub fn by_urgency(proof: &'a Proof) -> Vec<ProofRow<'a>> {
        let mut rows: Vec<ProofRow<'a>> =
            (0..proof.system.tasks.len()).map(|task| ProofRow { proof, task }).collect();
        let policy = |row: &ProofRow<'_>| row.thread().policy.unwrap_or(Policy::Deadline);
        rows.sort_by_key(|row| (urgency(policy(row), row.thread().priority), row.task));
        rows
    }

    /// The task.
    pub fn task(&self) -> &'a Task {
        &self.proof.system.tasks[self.task]
    }

    /// Its thread.
    pub fn thread(&self) -> Thread {
        self.proof.threads[self.task]
    }

    /// Its bound.
    pub fn bound(&self) -> Result<&'a Bound, &'a NoBound> {
        self.proof.bounds[self.task].as_ref()
    }

    /// Its verdict.
    pub fn verdict(&self) -> Verdict {
        verdict(self.task(), &self.proof.bounds[self.task])
    }

    /// How far it may change.
    pub fn room(&self) -> Option<Room> {
        self.proof.rooms.as_ref()?[self.task]
    }

    /// Its processors as a list: `0-1,4`.
    pub fn processors(&self) -> String {
        let ranges = self.task().processors.chunk_by(|one, other| one + 1 == *other);
        let ranges = ranges.map(|range| match (range.first(), range.last()) {
            (Some(first), Some(last)) if first != last => format!("{first}-{last}"),
            (Some(first), _) => first.to_string(),
            _ => String::new(),
        });
        ranges.collect::<Vec<_>>().join(",")
    }

    /// The largest parts of the bound; or why there is none.
    pub fn remark(&self) -> String {
        let bound = match self.bound() {
            Ok(bound) => bound,
            Err(reason) => return self.proof.reason(self.task, reason),
        };
        let mut parts = bound.parts.clone();
        parts.sort_by_key(|part| std::cmp::Reverse((part.cause == Cause::Own, part.duration)));
        let named = parts.iter().take(MOST_PARTS);
        let named = named.map(|part| format!("{} {}", cause(self.proof, part.cause), part.duration));
        let mut text = named.collect::<Vec<_>>().join(", ");
        if parts.len() > MOST_PARTS {
            text += ", …";
        }
        match bound.job {
            0 | 1 => text,
            job => format!("job {job} in a row: {text}"),
        }
    }
}
