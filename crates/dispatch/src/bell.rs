//! Sleeps until an instant, or until somebody rings.

use crate::clock::Readable as _;
use punctual_model::{Duration, Instant};
use punctual_tables::Clock;
use rustix::thread::futex;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// The longest sleep: CLOCK_TAI may be set meanwhile.
const NAP: Duration = Duration::from_ms(100);

/// A bell for one thread.
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// Wakes the thread, or keeps it from falling asleep.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        // It fails for nothing that is woken.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// How often it was rung.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps until `at`. Returns the time at its end; `None` if the bell was rung more than `count` times.
    pub fn sleep_until(&self, clock: Clock, at: Instant, count: u32) -> Option<Instant> {
        loop {
            let now = clock.now();
            if self.count() != count {
                return None;
            }
            if now >= at {
                return Some(now);
            }
            // The kernel waits on CLOCK_MONOTONIC; the time that is left is the same on both clocks.
            let until = Clock::Monotonic.now() + at.since(now).min(NAP);
            let until = rustix::time::Timespec {
                tv_sec: (until.ns() / 1_000_000_000) as _,
                tv_nsec: (until.ns() % 1_000_000_000) as _,
            };
            // Whatever wakes it, the loop looks at the time.
            let _ = futex::wait_bitset(&self.0, futex::Flags::PRIVATE, count, Some(&until), NonZeroU32::MAX);
        }
    }

    /// The same, but keeps the processor.
    pub fn spin_until(&self, clock: Clock, at: Instant, count: u32) -> Option<Instant> {
        loop {
            let now = clock.now();
            if self.count() != count {
                return None;
            }
            if now >= at {
                return Some(now);
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn sleep_ends_at_the_instant_or_when_it_rings() {
        let bell = Arc::new(Bell::default());
        for clock in [Clock::Monotonic, Clock::Tai] {
            let at = clock.now() + Duration::from_ms(5);
            assert!(bell.sleep_until(clock, at, bell.count()).is_some_and(|now| now >= at));
            let at = clock.now() + Duration::from_us(100);
            assert!(bell.spin_until(clock, at, bell.count()).is_some_and(|now| now >= at));
        }
        let count = bell.count();
        let ringing = Arc::clone(&bell);
        let thread = std::thread::spawn(move || ringing.ring());
        let never = Clock::Monotonic.now() + Duration::from_ms(1 << 30);
        assert_eq!(bell.sleep_until(Clock::Monotonic, never, count), None);
        thread.join().expect("it rang");
        assert_eq!(bell.spin_until(Clock::Monotonic, never, count), None);
        assert_eq!(bell.sleep_until(Clock::Monotonic, never, count), None, "what was missed is seen");
    }
}
