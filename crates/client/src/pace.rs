//! A periodic loop: when the next job is released, and whether the last one ended in time.

use punctual_model::{Duration, Instant};
use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};

/// How the job before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No later than its deadline.
    InTime,
    /// After it.
    Late,
}

/// The releases of a periodic thread: one period apart, from the start on, however late a job ends. No
/// release is left out: after a job that ended late the next ones follow without a pause until the thread has
/// caught up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// T.
    pub period: Duration,
    /// D, from the release on.
    pub deadline: Duration,
    /// When the job at hand was released, on CLOCK_MONOTONIC.
    pub release: Instant,
    /// How many jobs ended after their deadlines.
    pub misses: u64,
}

impl Pace {
    /// The first job is released now. The deadline is the period, if not given.
    pub fn start(period: Duration, deadline: Option<Duration>) -> Pace {
        Pace { period, deadline: deadline.unwrap_or(period), release: now(), misses: 0 }
    }

    /// The job at hand is done: waits for the release of the next one.
    pub fn wait_period(&mut self) -> Ended {
        let ended = self.end(now());
        sleep_until(self.release);
        ended
    }

    /// The job at hand ends at `now`; the next one is at hand then.
    pub(crate) fn end(&mut self, now: Instant) -> Ended {
        let late = now > self.release + self.deadline;
        self.misses += u64::from(late);
        self.release = self.release + self.period;
        if late { Ended::Late } else { Ended::InTime }
    }
}

/// CLOCK_MONOTONIC.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Sleeps until `instant`, whatever signals are handled meanwhile.
pub(crate) fn sleep_until(instant: Instant) {
    let until = Timespec {
        tv_sec: (instant.ns() / 1_000_000_000) as _,
        tv_nsec: (instant.ns() % 1_000_000_000) as _,
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_keep_their_distance_however_late_a_job_ends() {
        let ms = Duration::from_ms;
        let at = |ns| Instant::from_ns(1_000_000_000) + ms(ns);
        let mut pace = Pace { period: ms(10), deadline: ms(8), release: at(0), misses: 0 };
        assert_eq!(pace.end(at(8)), Ended::InTime);
        assert_eq!((pace.release, pace.misses), (at(10), 0));
        assert_eq!(pace.end(at(35)), Ended::Late);
        assert_eq!((pace.release, pace.misses), (at(20), 1));
        assert_eq!(pace.end(at(36)), Ended::Late);
        assert_eq!(pace.end(at(37)), Ended::InTime);
        assert_eq!((pace.release, pace.misses), (at(40), 2));
    }

    #[test]
    fn a_release_in_the_past_is_not_waited_for() {
        let mut pace = Pace {
            period: Duration::from_ns(1),
            deadline: Duration::ZERO,
            release: Instant::default(),
            misses: 0,
        };
        assert_eq!(pace.wait_period(), Ended::Late);
        assert_eq!(pace.release, Instant::from_ns(1));
    }
}
