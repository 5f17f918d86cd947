//! How late real-time threads run after they were woken, and what ran instead, on kernels without the
//! tracepoints of [`crate::latency`]: every interrupt, softirq and NMI, how late timers expire, and the
//! latency of every wake-up, split into interrupts, threads that the scheduler preferred, and all else.
//!
//! No bound follows from this.

mod load;
mod records;

pub use records::{Event, FIRST_SOFTIRQ, Key, Latencies, Missed, Processor, Ran, RanKind, Timers, Wakeup};

use crate::command::{Output, Running, Waiting};
use crate::error::Error;
use crate::latency::symbols::Symbols;
use crate::ring::Ring;
use load::Loaded;
use punctual_model::{Duration, Instant};
use std::ffi::OsString;
use std::process::ExitStatus;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/wakeups.skel.rs"));
}

/// How long a command may take to end when it is asked to.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

/// About as many records as fit into the buffer.
const BUFFERED: usize = 1 << 16;

/// A measurement under way. The programs leave the kernel when it is dropped.
pub struct Meter {
    loaded: Loaded,
    ring: Ring<Event>,
    symbols: Option<Symbols>,
    command: Option<Running>,
    skipped_before: u64,
    has_ended: bool,
    /// When it began: all programs were attached by then.
    pub from: Instant,
}

/// Whether this kernel allows it, by trying.
pub fn supported() -> Result<(), Error> {
    Loaded::new(true).map(drop)
}

impl Meter {
    /// Loads and attaches everything, then begins, calls `begun`, and starts the command if there is one.
    /// Returns what `begun` returned, too.
    pub fn start<T>(
        command: &[OsString],
        to_stderr: bool,
        begun: impl FnOnce() -> T,
    ) -> Result<(Meter, T), Error> {
        let mut loaded = Loaded::new(true)?;
        let ring = Ring::open(&loaded.skeleton.maps.records, records::decode)?;
        let waiting = (!command.is_empty())
            .then(|| Waiting::start(command, Output::or_stderr(to_stderr)))
            .transpose()?;
        let skipped_before = loaded.skipped();
        let from = crate::system::now();
        loaded.set_active(true)?;
        let at_begin = begun();
        let command = waiting.map(Waiting::go).transpose()?;
        // Without the right to read them, functions have no names.
        let symbols = Symbols::read().ok();
        let meter = Meter { loaded, ring, symbols, command, skipped_before, has_ended: false, from };
        Ok((meter, at_begin))
    }

    /// Begins a measurement that hands over wake-ups only: every one above the limit of its processor, and
    /// the greatest ones of each thread.
    pub fn guard(limits: &[(u32, Duration)]) -> Result<Meter, Error> {
        let mut loaded = Loaded::new(false)?;
        loaded.set_limits(limits)?;
        let ring = Ring::open(&loaded.skeleton.maps.records, records::decode)?;
        let skipped_before = loaded.skipped();
        let from = crate::system::now();
        loaded.set_active(true)?;
        Ok(Meter { loaded, ring, symbols: None, command: None, skipped_before, has_ended: false, from })
    }

    /// Forgets the latencies of a thread that has ended.
    pub fn forget(&self, key: &Key) {
        self.loaded.forget(key);
    }

    /// Hands on what came since the last call, in the order of each processor: everything once the
    /// measurement has ended, before that at most what fits into the buffer.
    pub fn drain(&mut self, each: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let most = if self.has_ended { usize::MAX } else { BUFFERED };
        self.ring.drain_at_most(most, each).map(drop)
    }

    /// What was measured on a processor so far.
    pub fn processor(&self, number: u32) -> Result<Processor, Error> {
        self.loaded.processor(number, self.symbols.as_ref())
    }

    /// The latencies of each thread so far.
    pub fn latencies(&self) -> Vec<Latencies> {
        self.loaded.latencies()
    }

    /// Threads and processors of threads that found no room.
    pub fn untracked(&self) -> u64 {
        self.loaded.untracked()
    }

    /// Runs of the programs that the kernel skipped.
    pub fn skipped(&self) -> u64 {
        self.loaded.skipped().saturating_sub(self.skipped_before)
    }

    /// How the command ended, if there is one and it has.
    pub fn command_status(&mut self) -> Option<ExitStatus> {
        self.command.as_mut().and_then(Running::status)
    }

    /// Ends the measurement, for good, and asks the command to end. Returns the command's process if it goes
    /// on nevertheless.
    pub fn stop(&mut self) -> Result<Option<u32>, Error> {
        self.loaded.set_active(false)?;
        self.has_ended = true;
        // Programs that began before may be halfway; they take microseconds.
        std::thread::sleep(std::time::Duration::from_millis(1));
        let Some(command) = &mut self.command else { return Ok(None) };
        let ended = command.end(PATIENCE, || Ok(()))?;
        Ok(ended.is_none().then(|| command.pid()))
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("wake-ups of real-time threads")
    }
}
