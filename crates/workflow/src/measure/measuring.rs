//! A thread on each processor that sleeps until absolute times, under SCHED_FIFO, as cyclictest has them: the
//! programs measure how late the kernel lets it run.

use crate::error::{Error, ErrorKind, Result, plain_reason};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// As cyclictest is commonly started. Threads above it run on time, whatever this one does.
const PRIORITY: i32 = 95;

/// The measuring threads. They end when this is dropped.
pub struct MeasuringThreads {
    is_over: Arc<AtomicBool>,
    tids: Vec<u32>,
    threads: Vec<JoinHandle<()>>,
}

impl MeasuringThreads {
    /// One on each of these processors, which wakes up once in `period`.
    pub fn start(cpus: &[u32], period: Duration) -> Result<MeasuringThreads> {
        let mut all = MeasuringThreads { is_over: Arc::default(), tids: Vec::new(), threads: Vec::new() };
        for &cpu in cpus {
            let (sender, receiver) = mpsc::channel();
            let is_over = Arc::clone(&all.is_over);
            let body = move || {
                let begun = become_measuring(cpu);
                let is_good = begun.is_ok();
                if sender.send(begun).is_ok() && is_good {
                    wake_up_every(period, &is_over);
                }
            };
            let failed = |error: &io::Error| {
                let message = format!("cannot start the measuring thread of processor {cpu}");
                Error::new(ErrorKind::Unsupported, message)
                    .because(plain_reason(error))
                    .advise("measuring threads need root or CAP_SYS_NICE; --measure off runs none")
            };
            let thread = std::thread::Builder::new().name(format!("measuring/{cpu}")).spawn(body);
            all.threads.push(thread.map_err(|error| failed(&error))?);
            let begun = receiver.recv().map_err(|error| failed(&io::Error::other(error)))?;
            all.tids.push(begun.map_err(|error| failed(&error))?);
        }
        Ok(all)
    }

    /// Their thread numbers.
    pub fn tids(&self) -> &[u32] {
        &self.tids
    }
}

impl Drop for MeasuringThreads {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does nothing that could fail, and there is nothing to do if it has.
            let _ = thread.join();
        }
    }
}

/// Whether measuring threads may have their priority; or why not. A thread of its own tries.
pub fn permitted() -> io::Result<()> {
    std::thread::spawn(set_priority).join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// The calling thread's.
fn set_priority() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: a call on the calling thread, with a valid struct.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Binds the calling thread to a processor, under SCHED_FIFO; returns its number.
fn become_measuring(cpu: u32) -> io::Result<u32> {
    // SAFETY: a call on the calling thread, with a set of the size given; CPU_SET stays within it for numbers
    // below its size, which is checked.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu as usize >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        libc::CPU_SET(cpu as usize, &mut set);
        if libc::sched_setaffinity(0, size_of_val(&set), &set) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    set_priority()?;
    // SAFETY: takes no arguments.
    Ok(unsafe { libc::gettid() } as u32)
}

fn wake_up_every(period: Duration, is_over: &AtomicBool) {
    let mut next = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    while !is_over.load(Ordering::Relaxed) {
        let ns = next.tv_nsec + i64::from(period.subsec_nanos());
        next.tv_sec += period.as_secs() as i64 + ns / 1_000_000_000;
        next.tv_nsec = ns % 1_000_000_000;
        let until = libc::timespec { tv_sec: next.tv_sec, tv_nsec: next.tv_nsec };
        // SAFETY: a valid time; the remaining time is not asked for.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut());
        }
    }
}
