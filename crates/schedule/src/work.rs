//! How much an exact test may do. Such tests take pseudo-polynomial time, and a daemon that admits one client
//! makes others wait.

use punctual_model::Duration;

/// What is left, in terms of a demand sum: a division, a multiplication and an addition, a few nanoseconds.
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

    /// Parts with half of what is left.
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

/// Why an exact test does not say yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// A task (its place in what was tested) needs at least this long for a job, which is beyond its
    /// deadline.
    Late { task: usize, response: u128 },
    /// In some interval of this length more has to be done than that.
    Demand { interval: Duration, demand: u128 },
    /// It took too much work to find out.
    TooMuch,
}

impl Unproven {
    /// For people.
    pub(crate) fn on(self, test: &str, processor: u32) -> String {
        let ns = |ns: u128| Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX));
        match self {
            Unproven::Late { response, .. } => {
                format!("{test}, processor {processor}: a job could take {} or more", ns(response))
            }
            Unproven::Demand { interval, demand } => {
                format!(
                    "{test}, processor {processor}: {} could have to be done within {interval}",
                    ns(demand)
                )
            }
            Unproven::TooMuch => format!(
                "{test}, processor {processor}: too much to prove; it was given up after {LIMIT} steps. Lower utilization, and deadlines not far below the \
                 periods, are proved sooner"
            ),
        }
    }
}
