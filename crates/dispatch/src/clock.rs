//! Reads the clocks of tables.

use punctual_model::Instant;
use punctual_tables::Clock;

/// A clock that can be read.
pub trait Readable {
    /// Its number in the kernel.
    fn number(self) -> libc::clockid_t;

    /// The present time.
    fn now(self) -> Instant;
}

impl Readable for Clock {
    fn number(self) -> libc::clockid_t {
        match self {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Tai => libc::CLOCK_TAI,
        }
    }

    fn now(self) -> Instant {
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
