//! The memory in which a program counts the jobs of its periodic loop, shared with the daemon, and in which
//! the daemon warns it of overruns. Its layout is part of the interface: 64 bits each, in the machine's
//! order.

use crate::Says;
use punctual_model::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is at the beginning of that memory; more may follow.
#[repr(C)]
#[derive(Debug, Default)]
pub struct LoopMemory {
    jobs: AtomicU64,
    misses: AtomicU64,
    worst_response_ns: AtomicU64,
    /// The daemon's.
    overruns: AtomicU64,
}

/// Bytes of the memory: a page on every machine, or part of one.
pub const LOOP_MEMORY_SIZE: usize = 4096;

impl LoopMemory {
    /// The loop begins, or begins anew.
    pub fn begin(&self) {
        for number in [&self.misses, &self.jobs, &self.worst_response_ns] {
            number.store(0, Ordering::Release);
        }
    }

    /// A job has ended, so long after its release. For one thread at a time.
    pub fn end_job(&self, response: Duration, late: bool) {
        let add = |number: &AtomicU64, count: u64| {
            number.store(number.load(Ordering::Relaxed).wrapping_add(count), Ordering::Release);
        };
        add(&self.jobs, 1);
        add(&self.misses, u64::from(late));
        let worst = self.worst_response_ns.load(Ordering::Relaxed).max(response.ns());
        self.worst_response_ns.store(worst, Ordering::Release);
    }

    /// The daemon has seen the thread take more than its runtime so often.
    pub fn warn(&self, overruns: u64) {
        self.overruns.store(overruns, Ordering::Release);
    }

    /// How often the thread took more than its runtime, as the daemon has told last.
    pub fn overruns(&self) -> u64 {
        self.overruns.load(Ordering::Acquire)
    }

    /// What it says now. Anything can be there, since a program writes it.
    pub fn read(&self) -> Says {
        let misses = self.misses.load(Ordering::Acquire);
        let jobs = self.jobs.load(Ordering::Acquire);
        let worst_response = Duration::from_ns(self.worst_response_ns.load(Ordering::Acquire));
        Says { jobs, misses, worst_response }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_loop_counts_is_read() {
        let memory = LoopMemory::default();
        memory.end_job(Duration::from_ms(3), false);
        memory.end_job(Duration::from_ms(12), true);
        memory.end_job(Duration::from_ms(4), false);
        assert_eq!(memory.read(), Says { jobs: 3, misses: 1, worst_response: Duration::from_ms(12) });
        memory.warn(7);
        memory.begin();
        assert_eq!((memory.read(), memory.overruns()), (Says::default(), 7));
        assert!(size_of::<LoopMemory>() <= LOOP_MEMORY_SIZE);
    }
}
