//! Measures what the scheduling-latency bound is made of, on every processor: the greatest durations of the
//! paper's variables with their culprits, every interrupt, and the latency of every real-time thread that was
//! woken. (paper: scheduling-latency, Table 1)
//!
//! Needs a kernel with the `preemptirq` tracepoints. Not for the bound itself: that is `punctual-latency`.

mod interrupts;
mod load;
mod processor;
pub(crate) mod symbols;

pub use interrupts::{Event, Interrupt};
pub use load::{Losses, Unsupported};
pub use processor::{
    Counts, Culprit, Exceeded, Flight, Frame, Grown, Thread, Variable, Wait, WaitPart, Witnessed,
};

use crate::command::{Output, Running, Waiting};
use crate::error::{Error, ErrorKind};
use load::Loaded;
use processor::Shared;
use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use symbols::Symbols;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/latency.skel.rs"));
}

/// Why these variables cannot be observed here; `Ok` if they can.
pub fn supported() -> Result<(), Unsupported> {
    load::require_tracepoints()
}

/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// On which processors.
    pub processors: Vec<u32>,
    /// Keep the last events before the first duration or latency of this length.
    pub threshold: Option<punctual_model::Duration>,
    /// What to run meanwhile; nothing, if empty.
    pub command: Vec<OsString>,
    /// Whether what it prints goes to standard error.
    pub command_to_stderr: bool,
}

/// A measurement under way. The programs leave the kernel when it is dropped.
pub struct Meter {
    loaded: Loaded,
    shared: Vec<Shared>,
    symbols: Symbols,
    before: Losses,
    /// The command, until the measurement begins.
    waiting: Option<Waiting>,
    command: Option<Running>,
}

impl Meter {
    /// Loads and attaches everything, and calls `attached`. The programs do nothing yet.
    pub fn load<T>(options: &Options, attached: impl FnOnce() -> T) -> Result<(Meter, T), Error> {
        let symbols = Symbols::read()?;
        let loaded = Loaded::new(&symbols, options.threshold)?;
        let Options { processors, command, command_to_stderr, .. } = options;
        let waiting = (!command.is_empty())
            .then(|| Waiting::start(command, Output::or_stderr(*command_to_stderr)))
            .transpose()?;
        let before = loaded.runs();
        let shared = processors
            .iter()
            .map(|&number| Shared::map(&loaded.skeleton.maps.processors, number))
            .collect::<Result<Vec<_>, Error>>()?;
        let attached = attached();
        Ok((Meter { loaded, shared, symbols, before, waiting, command: None }, attached))
    }

    /// Leaves out all other processors.
    pub fn retain(&mut self, processors: &[u32]) {
        self.shared.retain(|shared| processors.contains(&shared.number));
    }

    /// Begins to measure, and starts the command, if there is one. What the caller does to prepare comes
    /// before, or its own system calls would be measured, and might exceed the threshold.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.shared.iter_mut().for_each(|processor| processor.set_active(true));
        self.command = self.waiting.take().map(Waiting::go).transpose()?;
        Ok(())
    }

    /// Hands on all interrupts since the last call, each processor's in order. At least once in 100 ms, or
    /// interrupts are lost.
    pub fn drain(&mut self, each: &mut dyn FnMut(u32, Event)) {
        for shared in &mut self.shared {
            let number = shared.number;
            shared.drain(&mut |event| each(number, event));
        }
    }

    /// Whether something was as long as the threshold.
    pub fn is_over_threshold(&self) -> bool {
        self.shared.iter().any(Shared::is_frozen)
    }

    /// The processor on which the threshold was exceeded first, by what, and the last events before; `None`
    /// if none was.
    pub fn flight(&self) -> Option<(u32, Exceeded, Flight)> {
        let exceeded = self.shared.iter().filter_map(|it| Some((it, it.exceeded(&self.symbols)?)));
        let (frozen, exceeded) = exceeded.min_by_key(|(_, exceeded)| exceeded.at)?;
        Some((frozen.number, exceeded, frozen.flight(&self.symbols)))
    }

    /// Hands on, by processor, the variables that have grown since the last call.
    pub fn grown(&mut self, each: &mut dyn FnMut(u32, Grown)) -> Result<(), Error> {
        if !self.shared.iter().any(Shared::has_grown) {
            return Ok(());
        }
        // Modules may have been loaded meanwhile.
        self.symbols.refresh()?;
        for shared in &mut self.shared {
            let number = shared.number;
            shared.grown(&self.symbols).into_iter().for_each(|grown| each(number, grown));
        }
        Ok(())
    }

    /// The latencies of woken real-time threads so far, by processor and thread.
    pub fn threads(&self) -> Vec<(u32, Thread)> {
        let threads_on = |shared: &Shared| {
            let number = shared.number;
            shared.threads(&self.symbols).into_iter().map(move |thread| (number, thread))
        };
        self.shared.iter().flat_map(threads_on).collect()
    }

    /// What was not seen on each processor so far.
    pub fn counts(&self) -> Vec<Counts> {
        self.shared.iter().map(Shared::counts).collect()
    }

    /// How the command ended, if there is one and it has.
    pub fn command_status(&mut self) -> Option<ExitStatus> {
        self.command.as_mut().and_then(Running::status)
    }

    /// Ends the measurement, for good, and asks the command to end. Returns the command's process if it goes
    /// on nevertheless.
    pub fn stop(&mut self) -> Result<Option<u32>, Error> {
        self.set_inactive()?;
        let Some(command) = &mut self.command else { return Ok(None) };
        let ended = command.end(PATIENCE, || Ok(()))?;
        Ok(ended.is_none().then(|| command.pid()))
    }

    fn set_inactive(&mut self) -> Result<(), Error> {
        self.shared.iter_mut().for_each(|processor| processor.set_active(false));
        // Programs that began before may be halfway; they take microseconds, unless a host holds their
        // processor up.
        let end = Instant::now() + PATIENCE;
        loop {
            std::thread::sleep(Duration::from_millis(1));
            match self.shared.iter().find(|processor| processor.is_being_written()) {
                None => return Ok(()),
                Some(_) if Instant::now() < end => {}
                Some(stuck) => {
                    let number = stuck.number;
                    let what = format!("the programs on processor {number} do not end what they write");
                    return Err(Error::new(ErrorKind::Kernel, what));
                }
            }
        }
    }

    /// What was not seen since the beginning.
    pub fn losses(&self) -> Losses {
        let now = self.loaded.runs();
        Losses {
            skipped: now.skipped.saturating_sub(self.before.skipped),
            runs: now.runs.saturating_sub(self.before.runs),
            program_ns: now.program_ns.saturating_sub(self.before.program_ns),
        }
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "latency of {} processors", self.shared.len())
    }
}
