//! Least fixed points: the least window that holds all the work that may arrive in it.

/// Longer windows are not looked at: a hundred days.
pub(crate) const LIMIT: u64 = 1 << 53;
/// More jobs of a task in one window are not looked at: with a utilization of exactly 1, windows never end.
pub(crate) const MOST_JOBS: u64 = 1 << 14;
const MOST_STEPS: u32 = 1 << 17;

/// No window holds its work, or none that is short enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Diverges;

/// The least t ≥ `from` with `work`(t) ≤ t. `work` must not fall as t grows; `None` stands for infinity.
pub(crate) fn least(from: u64, mut work: impl FnMut(u64) -> Option<u64>) -> Result<u64, Diverges> {
    let mut window = from.max(1);
    for _ in 0..MOST_STEPS {
        match work(window) {
            Some(needed) if needed <= window => return Ok(window),
            Some(needed) if needed <= LIMIT => window = needed,
            _ => break,
        }
    }
    Err(Diverges)
}

/// The sum; `None` beyond 64 bits, or if a summand is `None`.
pub(crate) fn sum(all: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    all.into_iter().try_fold(0u64, |sum, next| sum.checked_add(next?))
}
