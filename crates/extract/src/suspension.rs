//! Self-suspension: the dynamic bound and the bag of segment vectors. (papers: LiME, Section II-B.)
//!
//! The bag has one vector per number of segments: segment by segment, the greatest of all jobs with that
//! many. Several vectors per number would say more, but which jobs share one would depend on their order, and
//! pieces of a trace would not merge to the same bag as the whole.

use punctual_model::{Duration, Job, MAX_SEGMENTS, Segment, SegmentBound, Suspension};

/// The suspension models of a stream of jobs, in constant memory. Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub struct SuspensionSummary {
    dynamic: Duration,
    /// At index `n` the vector of `n + 1` segments; empty if no job had as many.
    vectors: Vec<Vec<SegmentBound>>,
}

impl SuspensionSummary {
    /// A summary of no jobs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job and its segments, first to last; none means a single one. Of more than [`MAX_SEGMENTS`],
    /// the first ones count as one.
    #[inline]
    pub fn push(&mut self, job: &Job, segments: &[Segment]) {
        let whole = [Segment { suspended: job.suspended, cost: job.cost }];
        let segments = if segments.is_empty() { &whole } else { segments };
        if let [segment] = segments {
            self.dynamic = self.dynamic.max(job.suspended).max(segment.suspended);
            let [bound, ..] = self.vector(1) else { return };
            return raise(bound, *segment);
        }
        let (first, rest) = segments.split_at(segments.len().saturating_sub(MAX_SEGMENTS).saturating_add(1));
        let first = total(first);
        self.dynamic = self.dynamic.max(job.suspended).max(total(rest).suspended + first.suspended);
        let [bound, bounds @ ..] = self.vector(1 + rest.len()) else { return };
        raise(bound, first);
        for (bound, segment) in bounds.iter_mut().zip(rest) {
            raise(bound, *segment);
        }
    }

    /// Adds the jobs of another piece.
    pub fn merge(&mut self, other: &SuspensionSummary) {
        self.dynamic = self.dynamic.max(other.dynamic);
        for theirs in other.vectors.iter().filter(|vector| !vector.is_empty()) {
            for (mine, bound) in self.vector(theirs.len()).iter_mut().zip(theirs) {
                raise(mine, Segment { suspended: bound.suspended_ns, cost: bound.cost_ns });
            }
        }
    }

    /// The models; `None` without a job.
    pub fn suspension(&self) -> Option<Suspension> {
        let segmented: Vec<_> = self.vectors.iter().filter(|vector| !vector.is_empty()).cloned().collect();
        (!segmented.is_empty()).then_some(Suspension { dynamic_ns: self.dynamic, segmented })
    }

    /// The vector for this many segments (at least one).
    #[inline]
    fn vector(&mut self, segments: usize) -> &mut [SegmentBound] {
        if self.vectors.len() < segments {
            self.vectors.resize_with(segments, Vec::new);
        }
        let vector = &mut self.vectors[segments - 1];
        if vector.is_empty() {
            vector.resize(segments, SegmentBound { suspended_ns: Duration::ZERO, cost_ns: Duration::ZERO });
        }
        vector
    }
}

fn total(segments: &[Segment]) -> Segment {
    segments.iter().fold(Segment::default(), |sum, segment| Segment {
        suspended: sum.suspended + segment.suspended,
        cost: sum.cost + segment.cost,
    })
}

#[inline]
fn raise(bound: &mut SegmentBound, to: Segment) {
    bound.suspended_ns = bound.suspended_ns.max(to.suspended);
    bound.cost_ns = bound.cost_ns.max(to.cost);
}
