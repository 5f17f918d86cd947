//! A thread on each processor that sleeps until absolute times, under SCHED_FIFO, as cyclictest has them: the
//! programs measure how late the kernel lets it run after its wake-up, and it measures itself how long after
//! it was due it runs in user space.

use crate::error::{Error, ErrorKind, Result, plain_reason};
use crate::monitor::Monitor;
use punctual_model::{Duration as Ns, Instant};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// As cyclictest is commonly started. Threads above it run on time, whatever this one does.
const PRIORITY: i32 = 95;

/// The measuring threads. They end when this is dropped.
pub struct MeasuringThreads {
    shared: Arc<Shared>,
    cpus: Vec<u32>,
    tids: Vec<u32>,
    /// What each has measured so far.
    lateness: Vec<Arc<Lateness>>,
    threads: Vec<JoinHandle<()>>,
}

/// What all measuring threads are told.
struct Shared {
    is_over: AtomicBool,
    /// Wake-ups count that are due from then on, in nanoseconds.
    from: AtomicU64,
    /// And that have happened until then.
    until: AtomicU64,
}

/// The greatest time of one thread from when it was due until it ran; 0 before the first.
#[derive(Default)]
struct Lateness(AtomicU64);

impl Shared {
    /// Nothing counts yet.
    fn new() -> Shared {
        Shared {
            is_over: AtomicBool::new(false),
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(u64::MAX),
        }
    }

    /// Whether a wake-up counts that was due at `due` and ran at `now`.
    fn counts(&self, due: u64, now: u64) -> bool {
        self.from.load(Ordering::Relaxed) <= due && now <= self.until.load(Ordering::Relaxed)
    }
}

impl Lateness {
    fn add(&self, due: u64, now: u64) {
        self.0.fetch_max(now.saturating_sub(due).max(1), Ordering::Relaxed);
    }

    fn greatest(&self) -> Option<Ns> {
        let greatest = self.0.load(Ordering::Relaxed);
        (greatest > 0).then(|| Ns::from_ns(greatest))
    }
}

impl MeasuringThreads {
    /// One on each of these processors, which wakes up once in `period`. They must not wait for a page that
    /// was taken from them.
    pub fn start(cpus: &[u32], period: Duration, monitor: &dyn Monitor) -> Result<MeasuringThreads> {
        if let Err(error) = lock_memory() {
            let why = plain_reason(&error);
            monitor.warn(&format!("cannot lock memory ({why}): page faults may count as lateness"));
        }
        let mut all = MeasuringThreads {
            shared: Arc::new(Shared::new()),
            cpus: cpus.to_vec(),
            tids: Vec::new(),
            lateness: Vec::new(),
            threads: Vec::new(),
        };
        for &cpu in cpus {
            let (sender, receiver) = mpsc::channel();
            let (shared, lateness) = (Arc::clone(&all.shared), Arc::<Lateness>::default());
            all.lateness.push(Arc::clone(&lateness));
            let body = move || {
                let begun = become_measuring(cpu);
                let is_good = begun.is_ok();
                if sender.send(begun).is_ok() && is_good {
                    wake_up_every(period, cpu, &shared, &lateness);
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

    /// From now on, wake-ups count that are due at `from` or later.
    pub fn begin(&self, from: Instant) {
        self.shared.from.store(from.ns(), Ordering::Relaxed);
    }

    /// No later ones count any more.
    pub fn end(&self, until: Instant) {
        self.shared.until.store(until.ns(), Ordering::Relaxed);
    }

    /// By processor, the greatest time so far from when its thread was due until it ran there.
    pub fn late(&self) -> impl Iterator<Item = (u32, Ns)> {
        let each = self.cpus.iter().zip(&self.lateness);
        each.filter_map(|(&cpu, lateness)| Some((cpu, lateness.greatest()?)))
    }
}

impl Drop for MeasuringThreads {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does nothing that could fail, and there is nothing to do if it has.
            let _ = thread.join();
        }
        // SAFETY: takes no arguments.
        unsafe { libc::munlockall() };
    }
}

/// Keeps every page that the process has touched, or will.
fn lock_memory() -> io::Result<()> {
    // SAFETY: takes no pointer.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
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

/// Where the thread is moved to when its processor goes offline, it measures nothing.
fn wake_up_every(period: Duration, cpu: u32, shared: &Shared, lateness: &Lateness) {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let ns = |time: rustix::time::Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    let mut next = now();
    while !shared.is_over.load(Ordering::Relaxed) {
        let nanoseconds = next.tv_nsec + i64::from(period.subsec_nanos());
        next.tv_sec += period.as_secs() as i64 + nanoseconds / 1_000_000_000;
        next.tv_nsec = nanoseconds % 1_000_000_000;
        let until = libc::timespec { tv_sec: next.tv_sec, tv_nsec: next.tv_nsec };
        // SAFETY: a valid time; the remaining time is not asked for.
        let slept = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
        };
        let (due, ran) = (ns(next), ns(now()));
        // SAFETY: takes no arguments.
        let is_here = u32::try_from(unsafe { libc::sched_getcpu() }) == Ok(cpu);
        if slept == 0 && is_here && shared.counts(due, ran) {
            lateness.add(due, ran);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_of_the_measurement_count() {
        let (shared, lateness) = (Shared::new(), Lateness::default());
        assert!(!shared.counts(10, 20), "not begun");
        shared.from.store(10, Ordering::Relaxed);
        assert!(!shared.counts(9, 20), "due before");
        assert!(shared.counts(10, 20));
        shared.until.store(20, Ordering::Relaxed);
        assert!(shared.counts(10, 20) && !shared.counts(10, 21), "after the end");
        assert_eq!(lateness.greatest(), None);
        lateness.add(10, 10);
        assert_eq!(lateness.greatest(), Some(Ns::from_ns(1)), "one was measured");
        lateness.add(10, 998);
        lateness.add(20, 30);
        assert_eq!(lateness.greatest(), Some(Ns::from_ns(988)));
    }

    /// Under the tests' own policy.
    #[test]
    fn lateness_is_that_of_absolute_sleeps() {
        let (shared, lateness) = (Shared::new(), Lateness::default());
        shared.from.store(0, Ordering::Relaxed);
        // SAFETY: takes no arguments.
        let cpu = unsafe { libc::sched_getcpu() } as u32;
        std::thread::scope(|scope| {
            scope.spawn(|| wake_up_every(Duration::from_micros(500), cpu, &shared, &lateness));
            // It may run elsewhere at first.
            while lateness.greatest().is_none() {
                std::thread::yield_now();
            }
            shared.is_over.store(true, Ordering::Relaxed);
        });
        assert!(lateness.greatest() > Some(Ns::from_ns(1)), "nobody runs at the very instant");
    }
}
