//! Requests to stop: SIGINT, SIGTERM and SIGHUP end an observation, which then still writes its results.
//! Where a file can be read again meanwhile, SIGHUP asks for that instead.

use crate::failure::{Code, Failure};
use punctual_workflow::plain_reason;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Handles the signals for the rest of the process's life. Returns what they set. A second signal changes
/// nothing: it must not cost the results being written.
pub fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let hangup = (!ignores_hangup()).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        register(signal, &stop)?;
    }
    Ok(stop)
}

/// Has SIGTSTP (Ctrl-Z) do nothing from now on: who dispatches threads must not be stopped while one of them
/// has a processor. What it starts is stopped as ever.
pub fn ignore_suspension() -> Result<(), Failure> {
    // A handler, as one that ignores would be inherited.
    register(SIGTSTP, &Arc::new(AtomicBool::new(false)))
}

/// What signals ask for.
pub struct Signals {
    /// To stop.
    pub stop: Arc<AtomicBool>,
    /// To read files again: SIGHUP, as daemons take it.
    pub reload: Arc<AtomicBool>,
}

/// [`on_signals`], but SIGHUP asks to read files again.
pub fn on_signals_with_reload() -> Result<Signals, Failure> {
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for (signal, flag) in [(SIGINT, &stop), (SIGTERM, &stop), (SIGHUP, &reload)] {
        register(signal, flag)?;
    }
    Ok(Signals { stop, reload })
}

fn register(signal: i32, flag: &Arc<AtomicBool>) -> Result<(), Failure> {
    signal_hook::flag::register(signal, Arc::clone(flag)).map(drop).map_err(|error| {
        Failure::new(Code::Other, format!("cannot handle signal {signal}: {}", plain_reason(&error)))
    })
}

/// nohup(1) sets SIGHUP to ignored; a handler would undo that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (SIGHUP - 1)) != 0
}
