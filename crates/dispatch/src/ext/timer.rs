//! A timer of the kernel's on a processor of the table that ends each turn in time, without a thread: the
//! sampling timer of a perf event, which interrupts even on PREEMPT_RT. A program on the function that it
//! calls (`tt_timer`) has the kernel look for the next thread.
//!
//! Its period is a slot, or a part of one, and it keeps its phase: it begins anew where it was due, not where
//! it was served. But perf starts it relative to the present, so it is started until it happens to be due
//! where slots begin.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use punctual_linux::perf::{self, Event};
use punctual_linux::system;
use punctual_model::{Duration, Instant};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The period is at most this where that divides the slot: starting takes some periods.
const MOST: u64 = 4_000_000;
/// perf does not make it shorter.
const LEAST: u64 = 10_000;
/// It may be due so long after slots begin.
const TOLERANCE: u64 = 300;
/// How often it is started at most.
const TRIES: u32 = 60;

/// A timer, and how it is seen in the kernel.
#[derive(Debug)]
pub struct Timer {
    event: OwnedFd,
    period: u64,
    seen: Seen,
}

/// What the program in the kernel says of timers.
#[derive(Debug)]
pub struct Seen {
    map: MapHandle,
    lane: u32,
}

/// When a timer was last due (CLOCK_MONOTONIC), and how often it was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    pub due: u64,
    pub count: u64,
}

impl Seen {
    pub fn new(map: MapHandle, lane: u32) -> Seen {
        Seen { map, lane }
    }

    /// When it was last due.
    pub fn look(&self) -> Fired {
        let found = self.map.lookup(&self.lane.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        let word = |at: usize| {
            let bytes = found.as_ref().and_then(|bytes| bytes.get(at..at + 8));
            bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        Fired { due: word(0), count: word(8) }
    }
}

/// Whether timers keep their phase on a processor: where the kernel stops its tick, they do not.
pub fn suits(processor: u32) -> bool {
    !system::without_tick().contains(&processor)
}

/// The longest period of which a slot is a multiple.
pub fn period(slot: Duration) -> Option<u64> {
    let parts = slot.ns().div_ceil(MOST).max(1);
    let most = (slot.ns() / LEAST).min(parts + 1_000);
    (parts..=most).find(|parts| slot.ns() % parts == 0).map(|parts| slot.ns() / parts)
}

impl Timer {
    /// Makes one on a processor; it is not started yet. `mark` tells the program whose it is.
    pub fn new(processor: u32, period: u64, mark: u64, seen: Seen) -> io::Result<Timer> {
        let event = Event {
            counter: PERF_COUNT_SW_CPU_CLOCK,
            period,
            flags: DISABLED | EXCLUDE_USER | EXCLUDE_KERNEL,
            mark,
            ..Event::default()
        };
        Ok(Timer { event: perf::open(&event, -1, processor as i32)?, period, seen })
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: `argument` is 0, or the address of the period.
        match unsafe { libc::ioctl(self.event.as_raw_fd(), request, argument) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Stops it.
    pub fn stop(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    /// Starts it so that it is due where slots begin; `start` is when one does, on CLOCK_MONOTONIC. To be
    /// called on its own processor, by a thread that nothing takes it from. False if that does not succeed.
    pub fn start(&self, start: Instant, is_over: impl Fn() -> bool) -> io::Result<bool> {
        let now = || crate::clock::now_monotonic().ns();
        // From the call to where the kernel reads the clock; learned on the way.
        let mut ahead: i64 = 2_000;
        for _ in 0..TRIES {
            if is_over() {
                return Ok(false);
            }
            self.stop()?;
            // Also forgets what was left of the period before.
            self.control(PERIOD, (&raw const self.period) as libc::c_ulong)?;
            let before = self.seen.look();
            let after = now() + 100_000;
            let at = start.ns() as i64
                + (after as i64 - start.ns() as i64).div_euclid(self.period as i64) * self.period as i64
                + self.period as i64;
            sleep_until((at - 60_000).max(0) as u64);
            while (now() as i64) < at - ahead {
                std::hint::spin_loop();
            }
            self.control(ENABLE, 0)?;
            sleep_until(at as u64 + self.period + 50_000);
            let fired = self.seen.look();
            if fired.count == before.count {
                // Not served in time; try again.
                continue;
            }
            let phase = phase(fired.due, start.ns(), self.period);
            if (0..=TOLERANCE as i64).contains(&phase) {
                return Ok(true);
            }
            ahead = (ahead + phase - TOLERANCE as i64 / 2).clamp(0, 50_000);
        }
        self.stop()?;
        Ok(false)
    }

    /// Whether it is served, and where slots begin; `now` and `start` on CLOCK_MONOTONIC.
    pub fn is_well(&self, now: Instant, start: Instant) -> bool {
        is_well(self.seen.look(), now.ns(), start.ns(), self.period)
    }
}

/// Whether one that was last due then is still at work.
fn is_well(fired: Fired, now: u64, start: u64, period: u64) -> bool {
    // Between being due and being served, others may have the processor.
    let is_served = now < fired.due + 2 * period + 1_000_000;
    is_served && (0..=TOLERANCE as i64).contains(&phase(fired.due, start, period))
}

/// How long after the beginning of a slot, or before, it is due.
fn phase(due: u64, start: u64, period: u64) -> i64 {
    let since = (due as i64 - start as i64).rem_euclid(period as i64);
    if since > period as i64 / 2 { since - period as i64 } else { since }
}

fn sleep_until(at: u64) {
    let at = libc::timespec {
        tv_sec: (at / 1_000_000_000) as libc::time_t,
        tv_nsec: (at % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `at` is valid; with TIMER_ABSTIME nothing is written back.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut()) };
}

const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const DISABLED: u64 = 1;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const PERIOD: libc::c_ulong = 0x4008_2404;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_divide_slots() {
        assert_eq!(period(Duration::from_ms(1)), Some(1_000_000));
        assert_eq!(period(Duration::from_ms(10)), Some(10_000_000 / 4));
        assert_eq!(period(Duration::from_ns(10_000_019)), None, "a prime");
        assert_eq!(period(Duration::from_ns(5_000)), None);
    }

    #[test]
    fn phases_are_distances_from_the_next_slot() {
        assert_eq!(phase(5_000_120, 1_000_000, 1_000_000), 120);
        assert_eq!(phase(4_999_990, 1_000_000, 1_000_000), -10);
        assert_eq!(phase(900_100, 1_000_000, 100_000), 100, "before the start");
    }

    #[test]
    fn a_timer_that_is_late_or_shifted_is_not_well() {
        let fired = Fired { due: 5_000_120, count: 4 };
        assert!(is_well(fired, 5_900_000, 1_000_000, 1_000_000));
        assert!(!is_well(fired, 9_000_000, 1_000_000, 1_000_000), "not served");
        assert!(!is_well(Fired { due: 5_100_000, count: 4 }, 5_900_000, 1_000_000, 1_000_000), "shifted");
    }
}
