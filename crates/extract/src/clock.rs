//! Steps of a clock that was set, in the order of the records.

use punctual_model::{ClockStep, Instant};

/// Most steps kept: something may set a clock each second.
const MOST: usize = 100;

/// The first steps of `CLOCK_REALTIME`.
#[derive(Default)]
pub struct ClockSteps(Vec<ClockStep>);

impl ClockSteps {
    pub fn take(&mut self, at_ns: Instant, by_ns: i64) {
        self.append(&ClockSteps(vec![ClockStep { at_ns, by_ns }]));
    }

    /// Takes those of the records that follow.
    pub fn append(&mut self, later: &ClockSteps) {
        let room = MOST - self.0.len();
        self.0.extend(later.0.iter().take(room));
    }

    pub fn all(&self) -> &[ClockStep] {
        &self.0
    }
}
