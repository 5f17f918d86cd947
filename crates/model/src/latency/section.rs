//! [`SchedulingLatency`] as a section.

use super::{Processor, SchedulingLatency, merge, validate};
use crate::section::{Loss, MergeError, Section, Span, Valid};

impl Section for SchedulingLatency {
    fn span(&self) -> Option<Span> {
        Some(Span { from_ns: self.from_ns, until_ns: self.until_ns })
    }

    fn losses(&self) -> Vec<Loss> {
        let sum =
            |count: fn(&Processor) -> u64| self.processors.iter().map(count).fold(0, u64::saturating_add);
        Loss::list([
            ("skipped_events", sum(|cpu| cpu.skipped_events)),
            ("lost_records", sum(|cpu| cpu.lost_records)),
            ("went_offline", sum(|cpu| cpu.went_offline)),
            ("negative_durations", sum(|cpu| cpu.negative_durations)),
            ("unseen_wakeups", sum(Processor::unmeasured)),
            ("damaged_recordings", self.damaged_recordings),
        ])
    }

    fn validate(&self, path: &str) -> Valid {
        validate::latency(path, self)
    }

    /// What holds for both observations, in any order and partition. They must be of the same kernel, and not
    /// overlap in time.
    fn merge(self, other: SchedulingLatency) -> Result<SchedulingLatency, MergeError> {
        merge::latency(self, other)
    }
}

impl Processor {
    /// Wake-ups of which the latency is not known.
    fn unmeasured(&self) -> u64 {
        self.measured.iter().map(|thread| thread.unmeasured).fold(0, u64::saturating_add)
    }
}
