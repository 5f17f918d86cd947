//! The machine Punctual runs on.

use punctual_linux::system;
pub(crate) use punctual_linux::system::now;
use punctual_model::{Instant, Platform};
use punctual_trace::About;
use rustix::time::{ClockId, clock_gettime};

/// The clock of all times of an observation.
pub const CLOCK: &str = "CLOCK_MONOTONIC";

/// Describes an observation of this machine that began at `from`.
pub(crate) fn about(from: Instant, switches: bool) -> About {
    About {
        platform: here(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        source: concat!("punctual ", env!("CARGO_PKG_VERSION")).into(),
        clock: CLOCK.into(),
        clock_zero: Some(clock_zero()),
        from,
        switches,
        latency: false,
    }
}

/// The real time at the clock's zero, from the closest of several pairs of readings.
pub(crate) fn clock_zero() -> i64 {
    let ns = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    let tries = (0..8).map(|_| {
        let before = ns(ClockId::Monotonic);
        let real = ns(ClockId::Realtime);
        let after = ns(ClockId::Monotonic);
        (after - before, real - (before + (after - before) / 2))
    });
    tries.min().map_or(0, |(_, zero)| zero)
}

/// The running kernel and its online processors.
pub fn here() -> Platform {
    let uname = rustix::system::uname();
    let online = system::online().map(|all| all.len() as u32);
    let usable = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    Platform {
        kernel: uname.release().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
        cpus: online.unwrap_or_else(usable),
    }
}
