//! How much a window of any length may hold, as a staircase: window length against sum.

use punctual_model::Duration;

/// From windows longer than `span` on, the sum may be `sum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sum needs a window longer than this.
    pub span: Duration,
    /// The greatest sum that was seen in such a window.
    pub sum: u64,
}

/// The greatest sum in any window, by the window's length: the steps that no other dominates (a shorter span
/// with at least the same sum), in ascending order. Staircases of separate observations merge exactly, in any
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staircase {
    steps: Vec<Step>,
}

impl Staircase {
    /// The greatest sum in a window of length `length`: of the steps with a span below it. O(log n).
    pub fn sum(&self, length: Duration) -> u64 {
        match self.steps.partition_point(|step| step.span < length) {
            0 => 0,
            shorter => self.steps[shorter - 1].sum,
        }
    }

    /// The steps, by ascending span and sum.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds an observed sum; returns whether it rose above the staircase. O(log n) where it did not.
    pub fn insert(&mut self, span: Duration, sum: u64) -> bool {
        let at = self.steps.partition_point(|step| step.span < span);
        let covered = at > 0 && self.steps[at - 1].sum >= sum
            || self.steps.get(at).is_some_and(|step| step.span == span && step.sum >= sum);
        if covered || sum == 0 {
            return false;
        }
        let dominated = self.steps[at..].iter().take_while(|step| step.sum <= sum).count();
        self.steps.splice(at..at + dominated, [Step { span, sum }]);
        true
    }

    /// What holds for both observations.
    pub fn merge(&mut self, other: &Staircase) {
        for step in &other.steps {
            self.insert(step.span, step.sum);
        }
    }
}

impl FromIterator<Step> for Staircase {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let mut staircase = Staircase::default();
        for step in steps {
            staircase.insert(step.span, step.sum);
        }
        staircase
    }
}
