//! A limit on the work of an exact test. Such tests take pseudo-polynomial time, and other clients wait while
//! the daemon tests one spec.

use punctual_model::Duration;

/// What is left, in terms of a demand sum. A term is a division, a multiplication and an addition: a few
/// nanoseconds.
#[derive(Debug)]
pub(crate) struct Work(u64);

/// Enough for 256 sums over 1,024 specs; less than a millisecond.
const LIMIT: u64 = 256 << 10;

impl Default for Work {
    fn default() -> Self {
        Self(LIMIT)
    }
}

impl Work {
    /// Takes `terms` of what is left.
    pub(crate) fn spend(&mut self, terms: usize) -> Result<(), Unproven> {
        self.0 = self.0.checked_sub(terms as u64).ok_or(Unproven::TooMuch)?;
        Ok(())
    }

    /// Splits off half of what is left.
    pub(crate) fn half(&mut self) -> Self {
        let half = self.0 / 2;
        self.0 -= half;
        Self(half)
    }

    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        Self(u64::MAX)
    }
}

/// Why an exact test did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// A job of a task (its index among those tested) takes at least this long, which exceeds its deadline.
    Late { task: usize, response: u128 },
    /// An interval of this length can have this much demand, which exceeds it.
    Demand { interval: Duration, demand: u128 },
    /// The limit was reached before the test was decided.
    TooMuch,
}

impl Unproven {
    /// A message for users.
    pub(crate) fn message(self, test: &str, processor: u32) -> String {
        let ns = |ns: u128| Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX));
        match self {
            Unproven::Late { response, .. } => {
                format!("{test}, processor {processor}: a job could take {} or more", ns(response))
            }
            Unproven::Demand { interval, demand } => {
                format!(
                    "{test}, processor {processor}: up to {} of work could be due within {interval}",
                    ns(demand)
                )
            }
            Unproven::TooMuch => format!(
                "{test}, processor {processor}: too complex; the test gave up after {LIMIT} steps. Lower \
                 utilization, and deadlines close to the periods, are tested faster"
            ),
        }
    }
}
