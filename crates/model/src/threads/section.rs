//! [`Threads`] as a section.

use super::{Threads, validate};
use crate::section::{Loss, MergeError, Section, Span, Valid};

impl Section for Threads {
    fn span(&self) -> Option<Span> {
        Some(Span { from_ns: self.from_ns, until_ns: self.until_ns })
    }

    fn losses(&self) -> Vec<Loss> {
        Loss::list([
            ("lost_records", self.lost_records),
            ("untracked_threads", self.untracked_threads),
            ("skipped_events", self.skipped_events),
            ("omitted_tasks", self.omitted_tasks),
        ])
    }

    fn validate(&self, path: &str) -> Valid {
        validate::threads(path, self)
    }

    /// The tasks of both observations, from the beginning of the first to the end of the last. The caller
    /// sets [`Task::recording`] to distinguish them.
    fn merge(mut self, other: Threads) -> Result<Threads, MergeError> {
        self.from_ns = self.from_ns.min(other.from_ns);
        self.until_ns = self.until_ns.max(other.until_ns);
        self.records = self.records.saturating_add(other.records);
        self.lost_records = self.lost_records.saturating_add(other.lost_records);
        self.untracked_threads = self.untracked_threads.saturating_add(other.untracked_threads);
        self.skipped_events = self.skipped_events.saturating_add(other.skipped_events);
        self.stolen_ns += other.stolen_ns;
        self.omitted_tasks = self.omitted_tasks.saturating_add(other.omitted_tasks);
        self.clock_steps.extend(other.clock_steps);
        let new = other.notes.into_iter().filter(|note| !self.notes.contains(note)).collect::<Vec<_>>();
        self.notes.extend(new);
        self.tasks.extend(other.tasks);
        Ok(self)
    }
}
