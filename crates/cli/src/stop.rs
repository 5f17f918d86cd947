//! Asks to stop: SIGINT, SIGTERM and SIGHUP end an observation, whose models are then still written.

use crate::failure::{Code, Failure, reason};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody asked to stop. A second signal changes nothing: it must not cost the models that are
/// being written.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes the signals over for the rest of the process's life.
    pub fn install() -> Result<Stop, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let hangup = (!ignores_hangup()).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            signal_hook::flag::register(signal, Arc::clone(&asked)).map_err(|error| {
                Failure::new(Code::Other, format!("cannot handle signal {signal}: {}", reason(&error)))
            })?;
        }
        Ok(Stop(asked))
    }

    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Under nohup(1) a hangup is to be ignored; taking it over would undo that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (SIGHUP - 1)) != 0
}
