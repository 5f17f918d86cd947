//! The last values of a sequence, newest first and contiguous, so that comparing one value with all of them
//! is a vector loop.

use crate::batch::{BATCH, PADDING};

/// Initial capacity: most streams of a thread have only a few jobs.
const FIRST: usize = 8;

/// Values are relative to a base and stored as floats, for the kernels; whole numbers up to 2^53 are exact.
/// [`PADDING`] NaNs follow the oldest value; they never compare, so the kernels ignore them.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    values: Vec<f64>,
    newest: usize,
    reach: usize,
}

impl Ring {
    /// An empty ring that keeps at least the last `reach` values and a batch.
    pub fn new(reach: usize) -> Ring {
        Ring { values: Vec::new(), newest: 0, reach: reach + BATCH }
    }

    /// All values, newest first, then the padding.
    pub fn newest_first(&self) -> &[f64] {
        &self.values[self.newest..]
    }

    /// Adds the newest value.
    #[inline]
    pub fn push(&mut self, value: f64) {
        if self.newest == 0 {
            self.make_room();
        }
        self.newest -= 1;
        self.values[self.newest] = value;
    }

    /// Moves the base up by `by`.
    pub fn rebase(&mut self, by: f64) {
        for value in &mut self.values[self.newest..] {
            *value -= by;
        }
    }

    /// Doubles while short, then moves the values it must keep to the far end: rarely, so a push costs O(1).
    #[cold]
    fn make_room(&mut self) {
        let room = self.values.len().saturating_sub(PADDING);
        let most = self.reach + (self.reach / 8).max(BATCH);
        if room < most {
            let grown = (2 * room).clamp(FIRST, most);
            let mut values = vec![f64::NAN; grown + PADDING];
            values[grown - room..grown].copy_from_slice(&self.values[..room]);
            (self.values, self.newest) = (values, grown - room);
        } else {
            self.values.copy_within(..self.reach, most - self.reach);
            self.newest = most - self.reach;
        }
    }
}
