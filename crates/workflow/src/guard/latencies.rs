//! The scheduling latencies of processors that a contract agrees on, watched: measured wake-ups of real-time
//! threads. The bound is not: the events that it follows from slow every system call down.

use crate::error::Result;
use crate::measure::sentry::Sentry;
use punctual_conformance::{Contract, ContractProcessor, LatencyChecker, Note, Tally, Verdict, Violation};
use punctual_trace::latency::Latency;
use rustc_hash::FxHashSet;

/// Measures, and judges what was measured.
pub struct Latencies {
    sentry: Sentry,
    checker: LatencyChecker,
    agreed: Vec<ContractProcessor>,
}

impl Latencies {
    /// Begins; `None` if nothing was agreed on.
    pub fn start(contract: &Contract) -> Result<Option<Latencies>> {
        let Some(checker) = LatencyChecker::new(contract, true) else { return Ok(None) };
        let agreed = contract.latencies.clone();
        let sentry = Sentry::start(agreed.iter().map(|it| (it.cpu, it.latency)).collect())?;
        Ok(Some(Latencies { sentry, checker, agreed }))
    }

    /// Whether this contract agrees on the same.
    pub fn are_of(&self, contract: &Contract) -> bool {
        self.agreed == contract.latencies
    }

    /// Judges what was measured since the last call, and hands out violations and records. Sums are read if
    /// they are due, or a violation waits for the name of its thread.
    pub fn look(
        &mut self,
        is_due: bool,
        each: &mut dyn FnMut(&Violation),
        each_record: &mut dyn FnMut(Latency),
    ) -> Result<()> {
        let Latencies { sentry, checker, .. } = self;
        let mut judge = |record: Latency| {
            checker.record(&record, each);
            each_record(record);
        };
        sentry.wakeups(&mut judge)?;
        if is_due || checker.asks_for_names() {
            let mut judge = |record: Latency| {
                checker.record(&record, each);
                each_record(record);
            };
            let ended: FxHashSet<u32> = sentry.sums(&mut judge).into_iter().collect();
            if !ended.is_empty() {
                checker.forget(|tid| ended.contains(&tid));
            }
        }
        Ok(())
    }

    /// How the processors stand.
    pub fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.checker.tallies()
    }

    /// Ends, and adds what came of it to a verdict.
    pub fn finish(mut self, verdict: &mut Verdict, each: &mut dyn FnMut(&Violation)) -> Result<()> {
        let read = self.look(true, each, &mut |_| {});
        let Latencies { sentry, mut checker, .. } = self;
        let lost = sentry.losses(&mut |record| checker.record(&record, each));
        checker.finish(None, verdict, each);
        read.and(lost)
    }
}

/// That they cannot be watched, and why.
pub fn unwatched(why: &str) -> Note {
    Note { task: "".into(), text: format!("scheduling latencies are not watched: {why}") }
}
