//! What the kernel keeps of a processor for ordinary threads: the fair server (since Linux 6.12) and the
//! throttle of real-time threads.
//!
//! Both act only once real-time threads leave ordinary ones less than their share of a period. A processor
//! whose specs take at most T − Q in every window of T never meets them. On any other, the reserve is a
//! server above all priorities with the budget Q and the period T. Its budget can be used up at the end of
//! one period and again at the beginning of the next, and a constant-bandwidth server has no more than its
//! bandwidth from then on:
//!
//! > I(t) = 2 · Q + ⌈(t − 2 · Q) · Q / T⌉
//!
//! Under SCHED_DEADLINE the fair server is one server among others: when it becomes active it gets a whole
//! period as its deadline, so its demand within t is at most t · Q / T.

use crate::Utilization;
use crate::task::Task;
use punctual_model::Duration;
use std::fmt;

/// Who withholds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveKind {
    /// The fair server: a server under SCHED_DEADLINE that runs ordinary threads.
    FairServer,
    /// `sched_rt_runtime_us`: threads under SCHED_FIFO and SCHED_RR wait for the end of its period.
    Throttle,
}

/// What the kernel keeps of one processor for ordinary threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Which processor.
    pub processor: u32,
    /// Who withholds it.
    pub kind: ReserveKind,
    /// Q: how much of each period; less than that.
    pub runtime: Duration,
    /// T.
    pub period: Duration,
}

impl Reserve {
    /// Q / T, rounded up.
    pub(crate) fn rate(&self) -> Utilization {
        Utilization::new(self.runtime, self.period)
    }

    /// Q / T beside shares that were rounded up: with 0.95 of a processor assigned, 50 ms in a second fit.
    pub(crate) fn bandwidth(&self) -> Utilization {
        self.rate() - Utilization::ALLOWANCE
    }

    /// I(t), once it acts.
    pub(crate) fn taken(&self, t: u64) -> u128 {
        let twice = 2 * u128::from(self.runtime.ns());
        let rest = u128::from(t).saturating_sub(twice);
        twice + self.rate().part_of(u64::try_from(rest).unwrap_or_default())
    }

    /// Whether specs with these sums leave ordinary threads their share in every window, so that it never
    /// acts.
    pub(crate) fn is_left(&self, work: &Workload) -> bool {
        let window = self.period.ns();
        let taken = work.rate.part_of(window).saturating_add(work.carried);
        taken <= u128::from(window.saturating_sub(self.runtime.ns()))
    }
}

/// As messages name it.
impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.kind {
            ReserveKind::FairServer => "fair server",
            ReserveKind::Throttle => "real-time throttle",
        };
        write!(f, "{} in {} of the kernel's {who}", self.runtime, self.period)
    }
}

/// Bounds the time that specs take in a window of any length t: rate · t + carried.
///
/// A task that meets its deadlines takes the most of a window that begins with a job just before its
/// deadline, followed by jobs that run at their release (Bertogna, Cirinei and Lipari 2005):
/// N · Q + min(Q, x − N · T) for x = t + D − Q, N = ⌊x / T⌋. That is at most U · x + Q · (1 − U).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Workload {
    rate: Utilization,
    carried: u128,
}

impl Workload {
    pub(crate) fn add(&mut self, task: &Task) {
        self.rate += task.rate;
        self.carried += Self::carried_by(task);
    }

    pub(crate) fn remove(&mut self, task: &Task) {
        self.rate -= task.rate;
        self.carried -= Self::carried_by(task);
    }

    fn carried_by(task: &Task) -> u128 {
        // U is rounded up, by less than what these 2 ns compensate.
        let twice = 2 * task.rate.part_of(task.runtime.ns()).saturating_sub(2);
        (task.rate.part_of(task.deadline.ns()) + u128::from(task.runtime.ns())).saturating_sub(twice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_ms;

    fn server() -> Reserve {
        Reserve { processor: 0, kind: ReserveKind::FairServer, runtime: MS(50), period: MS(1000) }
    }

    #[test]
    fn it_acts_only_where_too_little_is_left() {
        let work = |tasks: &[(u64, u64)]| {
            let mut work = Workload::default();
            tasks.iter().for_each(|&(q, t)| work.add(&Task::new(MS(q), MS(t), MS(t), true)));
            work
        };
        // 900 ms, and 18 − 16.2 ms.
        assert!(server().is_left(&work(&[(9, 10)])));
        // 950 ms and 1.9 ms.
        assert!(!server().is_left(&work(&[(19, 20)])));
        assert!(!server().is_left(&work(&[(1000, 2000)])));
        // 200 + 200 + 200 − 80 ms, and 200 + 100 + 100 − 40 ms.
        assert!(server().is_left(&work(&[(200, 1000), (100, 500)])));
        assert!(!server().is_left(&work(&[(200, 1000), (100, 500), (45, 500)])));
    }

    #[test]
    fn its_budget_comes_twice_in_a_row_and_then_by_its_bandwidth() {
        // A nanosecond more, where 5 % are rounded up.
        let taken = |ms: u64| server().taken(MS(ms).ns()) / 1_000;
        assert_eq!([10, 100, 1100, 2100].map(taken), [100_000, 100_000, 150_000, 200_000]);
    }

    proptest! {
        /// Whatever a constant-bandwidth server does: chunks x ≤ Q, each followed by a new budget no earlier
        /// than x · T / Q later.
        #[test]
        fn no_server_takes_more(chunks in prop::collection::vec(1..=50u64, 1..20), first in 0..=50u64) {
            let (runtime, period) = (50_000_000u64, 1_000_000_000u64);
            // The last of an earlier period, at its very end.
            let (mut now, mut taken) = (first * 1_000_000, first * 1_000_000);
            for chunk in chunks {
                let chunk = chunk * 1_000_000;
                prop_assert!(u128::from(taken + chunk) <= server().taken(now + chunk));
                taken += chunk;
                now += chunk * (period / runtime);
            }
        }
    }
}
