//! The description of a recording as a whole.

use punctual_model::{Duration, Instant, Platform};

/// The part that is known when a recording begins.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The machine that was observed. Unknown values are empty, or 0.
    pub platform: Platform,
    /// Its name.
    pub host: String,
    /// What made the records: `punctual 0.1.0`, or the tool whose trace was imported.
    pub source: String,
    /// The clock of every instant, as the timing model names it.
    pub clock: String,
    /// The real time (nanoseconds since 1970) at the clock's zero, if it is known.
    pub clock_zero: Option<i64>,
    /// When the observation began.
    pub from: Instant,
    /// Whether it has every context switch and wake-up ([`crate::Switch`]).
    pub switches: bool,
    /// Whether it is a measurement of scheduling latency ([`crate::latency`]).
    pub latency: bool,
}

impl About {
    /// A trace of another tool with its switches, by this clock. Of the machine nothing is known yet.
    pub fn of_switches(source: impl Into<String>, clock: &str, from: Instant) -> About {
        About {
            platform: Platform::default(),
            host: String::new(),
            source: source.into(),
            clock: clock.to_owned(),
            clock_zero: None,
            from,
            switches: true,
            latency: false,
        }
    }
}

/// Counts since the start of an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records that were lost.
    pub lost: u64,
    /// Threads that were not watched: for lack of room, or because they ended before they were seen.
    pub untracked: u64,
    /// Runs of the eBPF programs that the kernel skipped.
    pub skipped: u64,
    /// Time that the hypervisor took from the machine's processors; a recording has it in whole milliseconds.
    pub stolen: Duration,
}
