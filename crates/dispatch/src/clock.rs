//! The clocks of tables: reading them, and sleeping until an instant.

use crate::plan::Clock;
use punctual_model::{Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest sleep: a request to stop is noticed within it.
const NAP: Duration = Duration::from_ms(100);

impl Clock {
    /// Its number in the kernel.
    pub(crate) fn number(self) -> libc::clockid_t {
        match self {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Tai => libc::CLOCK_TAI,
        }
    }

    /// Its name in the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Monotonic => "CLOCK_MONOTONIC",
            Clock::Tai => "CLOCK_TAI",
        }
    }

    /// The present time.
    pub fn now(self) -> Instant {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` has room for a timespec. Both clocks exist on every kernel that Punctual runs on.
        unsafe { libc::clock_gettime(self.number(), &mut now) };
        Instant::from_ns((now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64)
    }

    /// Sleeps until `at`, or until `stop` is set. Returns the time at its end; `None` if it was stopped.
    pub(crate) fn sleep_until(self, at: Instant, stop: &AtomicBool) -> Option<Instant> {
        loop {
            let now = self.now();
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            if now >= at {
                return Some(now);
            }
            let until = at.min(now + NAP).ns();
            let until = libc::timespec {
                tv_sec: (until / 1_000_000_000) as libc::time_t,
                tv_nsec: (until % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: `until` is a valid timespec; with TIMER_ABSTIME nothing is written back. A sleep that
            // a signal ends is begun again.
            unsafe {
                libc::clock_nanosleep(self.number(), libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
            };
        }
    }
}

/// The time on CLOCK_MONOTONIC, the clock of records.
pub(crate) fn now_monotonic() -> Instant {
    Clock::Monotonic.now()
}
