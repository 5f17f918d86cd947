//! What a batch of jobs and a block of a curve measure, and how two of their values compare.

/// Jobs collected before the curves are updated.
pub(crate) const BATCH: usize = 64;

/// Lengths of curve arrays are multiples of this.
pub(crate) const WIDTH: usize = 32;

/// NaNs after the oldest value of a ring, so that a batch at the end of a curve's last block stays inside.
pub(crate) const PADDING: usize = BATCH + 2 * WIDTH;

/// The lesser of two; `best` if `value` is NaN. Written so that it compiles to one instruction.
#[inline(always)]
pub(crate) fn lesser(value: f64, best: f64) -> f64 {
    if value < best { value } else { best }
}

/// The greater of two; `best` if `value` is NaN.
#[inline(always)]
pub(crate) fn greater(value: f64, best: f64) -> f64 {
    if value > best { value } else { best }
}
