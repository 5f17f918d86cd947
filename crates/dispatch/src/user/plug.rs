//! Keeps a processor from everything of lower priority, or lends it.

use super::enter;
use crate::error::Error;
use punctual_model::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{JoinHandle, Thread};

const KEEP: u8 = 0;
const LEND: u8 = 1;
const END: u8 = 2;

/// A thread that spins at a priority between the turn's and the waiting threads'. It begins lent.
pub struct Plug {
    state: Arc<State>,
    thread: Thread,
}

/// When a plug spun last.
#[derive(Clone)]
pub struct Sight(Arc<State>);

impl Sight {
    /// On the clock of records.
    pub fn seen(&self) -> Instant {
        Instant::from_ns(self.0.seen.load(Ordering::SeqCst))
    }
}

struct State {
    wanted: AtomicU8,
    /// When it spun last (CLOCK_MONOTONIC).
    seen: AtomicU64,
}

impl Plug {
    /// Starts one on a processor. The handle is for waiting after its end.
    pub fn start(processor: u32, priority: u32) -> Result<(Plug, JoinHandle<()>), Error> {
        let state = Arc::new(State { wanted: AtomicU8::new(LEND), seen: AtomicU64::new(0) });
        let (ready, is_ready) = sync_channel(1);
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name(format!("tt-plug/{processor}"))
            .spawn(move || {
                let entered = enter(processor, priority);
                let may_run = entered.is_ok();
                // Whoever started it waits for this.
                let _ = ready.send(entered);
                if may_run {
                    shared.spin();
                }
            })
            .map_err(|error| Error::other("starting a thread", error))?;
        is_ready.recv().map_err(|error| Error::other("starting a thread", error))??;
        Ok((Plug { state, thread: thread.thread().clone() }, thread))
    }

    /// Keeps the processor from now on. One system call if it was lent, otherwise none.
    pub fn keep(&self) {
        if self.state.wanted.swap(KEEP, Ordering::SeqCst) == LEND {
            self.thread.unpark();
        }
    }

    /// Leaves the processor to others as soon as it gets to run.
    pub fn lend(&self) {
        self.state.wanted.store(LEND, Ordering::SeqCst);
    }

    /// For who looks from elsewhere.
    pub fn sight(&self) -> Sight {
        Sight(Arc::clone(&self.state))
    }

    /// When it was seen running last.
    pub fn seen(&self) -> Instant {
        Instant::from_ns(self.state.seen.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
impl Plug {
    /// One that spins where the kernel has it, as an ordinary thread.
    pub fn spinning() -> (Plug, JoinHandle<()>) {
        let state = Arc::new(State { wanted: AtomicU8::new(KEEP), seen: AtomicU64::new(0) });
        let shared = Arc::clone(&state);
        let handle = std::thread::spawn(move || shared.spin());
        (Plug { state, thread: handle.thread().clone() }, handle)
    }
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.state.wanted.store(END, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl State {
    fn spin(&self) {
        loop {
            match self.wanted.load(Ordering::SeqCst) {
                KEEP => {
                    self.seen.store(super::now().ns(), Ordering::Relaxed);
                    std::hint::spin_loop();
                }
                LEND => std::thread::park(),
                _ => return,
            }
        }
    }
}
