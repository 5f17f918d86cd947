//! The part of a recording that is read.

use crate::Record;
use std::ops::{Range, RangeInclusive};

/// The part of a recording that is read.
pub struct Selection {
    /// The runs that contain it.
    pub runs: Range<usize>,
    /// Timestamps of its events.
    pub stamps_ns: RangeInclusive<u64>,
    /// The threads that are alive at its start.
    pub known: Vec<Record>,
}

impl Selection {
    /// Everything, of a recording with so many runs.
    pub fn all(runs: usize) -> Selection {
        Selection { runs: 0..runs, stamps_ns: 0..=u64::MAX, known: Vec::new() }
    }
}
