//! A periodic loop: when the next job is released, and whether the last one met its deadline.

use punctual_model::{Duration, Instant};
use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};

/// How the previous job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It met its deadline.
    InTime,
    /// It missed its deadline.
    Late,
}

/// The releases of a periodic thread: one period apart from the start, however late a job ends. No release is
/// skipped: after a late job the next ones follow without a pause until the thread has caught up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// T.
    pub period: Duration,
    /// D, relative to the release.
    pub deadline: Duration,
    /// Release of the current job, on CLOCK_MONOTONIC.
    pub release: Instant,
    /// Number of missed deadlines.
    pub misses: u64,
}

impl Pace {
    /// Starts the loop: the first job is released now. Without a deadline, it is the period.
    pub fn start(period: Duration, deadline: Option<Duration>) -> Pace {
        Pace { period, deadline: deadline.unwrap_or(period), release: now(), misses: 0 }
    }

    /// Ends the current job and waits for the release of the next one.
    pub fn wait_period(&mut self) -> Ended {
        let ended = self.end(now());
        sleep_until(self.release);
        ended
    }

    /// Ends the current job at `now` and moves on to the next.
    pub(crate) fn end(&mut self, now: Instant) -> Ended {
        let late = now > self.release + self.deadline;
        self.misses += u64::from(late);
        self.release = self.release + self.period;
        if late { Ended::Late } else { Ended::InTime }
    }
}

/// The time of CLOCK_MONOTONIC.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Sleeps until `instant`, even if signals are handled meanwhile.
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
    fn releases_keep_their_distance_after_a_late_job() {
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
