//! The clocks of tables.

use crate::plan::Clock;
use punctual_model::Instant;

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
}

/// The time on CLOCK_MONOTONIC, the clock of records.
pub(crate) fn now_monotonic() -> Instant {
    Clock::Monotonic.now()
}
