//! How late real-time threads run after they were woken, as records for those who watch a contract: every
//! wake-up beyond a limit, and sums. Without interrupts and measuring threads: a watch lasts for months.

use super::names::Names;
use super::wakeups::{thread, wakeup};
use crate::error::Result;
use punctual_model::Duration;
use punctual_observe::wakeups::{Event, Key, Meter};
use punctual_trace::latency::{Latency, ThreadWakeup};
use rustc_hash::FxHashMap;

/// A measurement under way. It ends when this is dropped.
pub struct Sentry {
    meter: Meter,
    names: Names,
    limits: Vec<(u32, Duration)>,
    /// Wake-ups of each thread by now.
    known: FxHashMap<(u32, u32, u32, u32), u64>,
}

impl Sentry {
    /// Begins; each processor has a limit.
    pub fn start(limits: Vec<(u32, Duration)>) -> Result<Sentry> {
        let meter = Meter::guard(&limits)?;
        Ok(Sentry { meter, names: Names::read(), limits, known: FxHashMap::default() })
    }

    /// Hands on the wake-ups since the last call.
    pub fn wakeups(&mut self, each: &mut dyn FnMut(Latency)) -> Result<()> {
        let Sentry { meter, names, limits, .. } = self;
        meter.drain(&mut |event| {
            let Event::Wakeup(observed) = event else { return };
            if !limits.iter().any(|(cpu, _)| *cpu == observed.key.cpu) {
                return;
            }
            let Key { tid, cpu, policy, priority } = observed.key;
            let wakeup = wakeup(&observed, |number| names.source(number));
            each(Latency::Wakeup(Box::new(ThreadWakeup { cpu, tid, policy, priority, wakeup })));
        })?;
        Ok(())
    }

    /// Hands on the sums of all threads that were woken since the last call. Returns those that have ended,
    /// which are measured no more.
    pub fn sums(&mut self, each: &mut dyn FnMut(Latency)) -> Vec<u32> {
        let mut ended = Vec::new();
        for latencies in self.meter.latencies() {
            let Key { tid, cpu, policy, priority } = latencies.key;
            let place = (tid, cpu, policy, priority);
            let wakeups = latencies.wakeups.saturating_add(latencies.unmeasured);
            let is_news = self.known.insert(place, wakeups) != Some(wakeups);
            if !is_news && !lives(tid) {
                // A thread that ended has had a turn since its last wake-up.
                self.meter.forget(&latencies.key);
                self.known.remove(&place);
                ended.push(tid);
            } else if is_news && self.limits.iter().any(|(limited, _)| *limited == cpu) {
                if let Some(thread) = thread(latencies, &[]) {
                    each(Latency::Thread(Box::new(thread)));
                }
            }
        }
        ended
    }

    /// Hands on what was lost.
    pub fn losses(&self, each: &mut dyn FnMut(Latency)) -> Result<()> {
        for (cpu, _) in &self.limits {
            let count = self.meter.processor(*cpu)?.lost;
            if count > 0 {
                each(Latency::Lost { cpu: *cpu, count });
            }
        }
        Ok(())
    }
}

fn lives(tid: u32) -> bool {
    punctual_linux::proc::exists(tid)
}
