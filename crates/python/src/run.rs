//! Work that takes long: without the interpreter's lock, in a thread, while the caller's thread looks for
//! signals. Ctrl-C stops it, and no panic gets out of it.

use crate::errors;
use punctual_workflow::{Monitor, Progress, Result, Silent, Unit, Watching};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are looked for.
const EVERY: Duration = Duration::from_millis(50);

/// Keeps what an operation says until Python can hear it.
#[derive(Default)]
pub struct Listener {
    is_stopped: AtomicBool,
    said: Mutex<Vec<Said>>,
}

enum Said {
    Warning(String),
    Hint(String),
}

impl Listener {
    /// Asks to stop.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn say(&self, said: Said) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }

    /// Passes on what was said.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        said.iter().try_for_each(|said| match said {
            Said::Warning(message) => errors::warn(py, message),
            Said::Hint(message) => errors::hint(py, message),
        })
    }
}

impl Monitor for Listener {
    fn warn(&self, message: &str) {
        self.say(Said::Warning(message.to_owned()));
    }

    fn hint(&self, message: &str) {
        self.say(Said::Hint(message.to_owned()));
    }

    fn begin(&self, _: &'static str, _: u64, _: Unit) -> Box<dyn Progress> {
        Box::new(Silent)
    }

    fn watching(&self, _: Option<Duration>) -> Box<dyn Watching> {
        Box::new(Silent)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// Does the work.
///
/// # Errors
/// The work's own; what a signal's handler raised (`KeyboardInterrupt`); a warning that is one.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce(&Listener) -> Result<T> + Send) -> PyResult<T> {
    let listener = Listener::default();
    let (result, interruption) = py.detach(|| {
        thread::scope(|scope| {
            let (done, ended) = channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped at the end, even by a panic.
                let _done = done;
                work(&listener)
            });
            let mut interruption = None;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if interruption.is_none() {
                    interruption = Python::attach(|py| py.check_signals()).err();
                    interruption.iter().for_each(|_| listener.stop());
                }
            }
            (worker.join(), interruption)
        })
    });
    if let Some(interruption) = interruption {
        return Err(interruption);
    }
    let result = result.map_err(|panic| errors::defect(py, &*panic))?;
    let result = result.map_err(|error| errors::exception(py, &error))?;
    listener.tell(py)?;
    Ok(result)
}
