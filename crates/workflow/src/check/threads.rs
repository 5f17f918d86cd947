//! Recordings of threads against a contract, by several workers: each reads all records, and judges its share
//! of the threads. Reading costs less than judging, and all that a job is judged by is of its thread.

use super::Unchecked;
use crate::error::Result;
use crate::monitor::{Monitor, Progress, Unit};
use crate::recording::{Recording, Stoppable};
use punctual_conformance::{Checker, Contract, LatencyChecker, Verdict};
use punctual_trace::Record;
use std::num::{NonZeroU32, NonZeroUsize};
use std::panic::resume_unwind;
use std::thread;

/// Fewest activations for which a worker is worth its while.
const LEAST_SHARE: u64 = 100_000;

/// Activations between two reports of progress.
const STEP: u64 = 1 << 16;

/// What is of no thread: the first worker takes it.
struct Common<'a> {
    latencies: Option<LatencyChecker>,
    has_latencies: bool,
    progress: &'a dyn Progress,
}

pub(super) fn check_threads(
    recording: &Recording,
    contract: &Contract,
    workers: NonZeroUsize,
    monitor: &dyn Monitor,
) -> Result<Verdict> {
    let activations = recording.activations();
    let progress = monitor.begin("checking", activations, Unit::Activations);
    let mut common = Common {
        latencies: LatencyChecker::new(contract, false),
        has_latencies: false,
        progress: &*progress,
    };
    let source = recording.stopped_by(monitor);
    let mut checkers = Checker::shares(contract, shares(workers, activations));
    let own = checkers.next().unwrap_or_else(|| Checker::new(contract));
    let (own, others) = thread::scope(|scope| {
        let others: Vec<_> =
            checkers.map(|checker| scope.spawn(move || judge(source, checker, &mut |_, _| {}))).collect();
        let own = judge(source, own, &mut |record, activations| common.record(record, activations));
        let others = others.into_iter().map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (own, others.collect::<Result<Vec<Checker>>>())
    });
    let (own, others) = (own?, others?);
    let Common { latencies, has_latencies, .. } = common;
    drop(progress);
    recording.report_problems(monitor);
    let lost = recording.reader().totals().lost + recording.unreadable();
    let mut verdict = own.finish_with(others, lost, &mut |_| {});
    let latencies = latencies.filter(|_| has_latencies);
    let unchecked = Unchecked { chains: true, latencies: latencies.is_none(), tasks: false };
    if let Some(latencies) = latencies {
        latencies.finish(None, &mut verdict, &mut |_| {});
    }
    verdict.notes.extend(unchecked.note(contract));
    Ok(verdict)
}

/// Into how many shares the threads of so many activations go.
fn shares(workers: NonZeroUsize, activations: u64) -> NonZeroU32 {
    let worthwhile = usize::try_from(activations / LEAST_SHARE).unwrap_or(usize::MAX);
    let shares = u32::try_from(workers.get().min(worthwhile)).unwrap_or(u32::MAX);
    NonZeroU32::new(shares).unwrap_or(NonZeroU32::MIN)
}

/// Gives a checker all records; `each` has them with the number of activations so far.
fn judge(source: Stoppable<'_>, mut checker: Checker, each: &mut dyn FnMut(&Record, u64)) -> Result<Checker> {
    let mut activations = 0_u64;
    source.read_all(&mut |record| {
        checker.record(record, &mut |_| {});
        activations += u64::from(matches!(record, Record::Activation(_)));
        each(record, activations);
    })?;
    Ok(checker)
}

impl Common<'_> {
    fn record(&mut self, record: &Record, activations: u64) {
        match record {
            Record::Activation(_) if activations % STEP == 0 => self.progress.set(activations),
            Record::Latency(latency) => {
                if let Some(latencies) = &mut self.latencies {
                    self.has_latencies = true;
                    latencies.record(latency, &mut |_| {});
                }
            }
            _ => {}
        }
    }
}
