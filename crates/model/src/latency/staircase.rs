//! How much a window of any length may hold, as a staircase: window length against sum.

use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// In windows longer than `span`, the sum may be `sum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sum needs a window longer than this.
    pub span: Duration,
    /// The greatest sum that was seen in such a window.
    pub sum: Duration,
}

/// The greatest sum in any window, by the window's length: the steps that no other dominates (a shorter span
/// with at least the same sum), in ascending order. Staircases of separate observations merge exactly, in any
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Columns", try_from = "Columns")]
pub struct Staircase {
    steps: Vec<Step>,
}

impl Staircase {
    /// The greatest sum in a window of length `length`: of the steps with a span below it. O(log n).
    pub fn sum(&self, length: Duration) -> Duration {
        match self.steps.partition_point(|step| step.span < length) {
            0 => Duration::ZERO,
            shorter => self.steps[shorter - 1].sum,
        }
    }

    /// The steps, by ascending span and sum.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds an observed sum; returns whether it rose above the staircase. O(log n) where it did not.
    pub fn insert(&mut self, span: Duration, sum: Duration) -> bool {
        let at = self.steps.partition_point(|step| step.span < span);
        let covered = at > 0 && self.steps[at - 1].sum >= sum
            || self.steps.get(at).is_some_and(|step| step.span == span && step.sum >= sum);
        if covered || sum.is_zero() {
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

/// In the file, spans and sums stand in an array each.
#[derive(Serialize, Deserialize)]
struct Columns {
    window_ns: Vec<Duration>,
    sum_ns: Vec<Duration>,
}

impl From<Staircase> for Columns {
    fn from(staircase: Staircase) -> Columns {
        let steps = staircase.steps.iter();
        let (window_ns, sum_ns) = steps.map(|step| (step.span, step.sum)).unzip();
        Columns { window_ns, sum_ns }
    }
}

impl TryFrom<Columns> for Staircase {
    type Error = String;

    fn try_from(Columns { window_ns, sum_ns }: Columns) -> Result<Staircase, String> {
        if window_ns.len() != sum_ns.len() {
            return Err(format!(
                "expected as many entries in `window_ns` as in `sum_ns`, found {} and {}",
                window_ns.len(),
                sum_ns.len()
            ));
        }
        let steps: Vec<Step> =
            window_ns.into_iter().zip(sum_ns).map(|(span, sum)| Step { span, sum }).collect();
        let rises = |pair: &[Step]| pair[0].span < pair[1].span && pair[0].sum < pair[1].sum;
        match steps.windows(2).all(rises) && steps.first().is_none_or(|step| !step.sum.is_zero()) {
            true => Ok(Staircase { steps }),
            false => Err("expected both `window_ns` and `sum_ns` to rise, sums from above zero".into()),
        }
    }
}
