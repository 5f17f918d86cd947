//! For tests: threads that live as long as somebody wants them.

use punctual_linux::thread::Thread;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A thread that lives until its sender is dropped.
pub fn living() -> (Thread, Sender<()>, JoinHandle<()>) {
    let (end, ended) = channel::<()>();
    let (tell, number) = channel();
    let handle = std::thread::spawn(move || {
        let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let _ = ended.recv();
    });
    let number = number.recv().expect("its number");
    (Thread::pin(number).expect("it lives").0, end, handle)
}
