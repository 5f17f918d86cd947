//! Scheduling latencies of processors against a contract, by the records of their measurement: live and
//! replayed ones take the same way.
//!
//! What counts are wake-ups that no thread delayed that the scheduler preferred, as with bounds. Where it is
//! not known whether one did, a long latency is mentioned and no violation.

use crate::contract::Contract;
use crate::verdict::{Note, Tally, Verdict};
use crate::violation::{Subject, Term, Violation};
use punctual_model::Duration;
use punctual_model::latency::{SchedulingLatency, ThreadId};
use punctual_trace::latency::{Latency, Thread, ThreadWakeup};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Wake-ups beyond what was agreed on that wait until their thread has a name.
const MOST_WAITING: usize = 1024;

/// Checks measured latencies against a contract.
pub struct LatencyChecker {
    processors: BTreeMap<u32, Processor>,
    /// Whether sums begin with the records.
    is_whole: bool,
    lost: u64,
}

/// A processor of which something was agreed on.
struct Processor {
    tally: Tally,
    agreed: Duration,
    threads: BTreeMap<Key, Observed>,
    /// Of threads that have no name yet.
    waiting: Vec<ThreadWakeup>,
    /// Wake-ups beyond what was agreed on that a preferred thread may have delayed.
    doubtful: u64,
    /// Of threads that have been forgotten.
    before: Sums,
}

/// Thread, policy, priority.
type Key = (u32, u32, u32);

/// What is known of a thread on a processor.
#[derive(Default)]
struct Observed {
    id: Option<Arc<ThreadId>>,
    /// Of the time before the records.
    before: Sums,
    sums: Sums,
    /// The greatest that no preferred thread delayed.
    max: Option<Duration>,
    violations: u64,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    wakeups: u64,
    unmeasured: u64,
}

impl LatencyChecker {
    /// A checker of the processors of a contract; `None` if it says nothing of them. Unless the records are
    /// those of a measurement from its beginning (`is_whole`), their sums are also of the time before.
    pub fn new(contract: &Contract, is_whole: bool) -> Option<LatencyChecker> {
        let processor = |it: &crate::contract::ContractProcessor| {
            let tally = Tally::new(&processor_name(it.cpu), [(Term::Latency, Some(it.latency.ns()))]);
            let processor = Processor {
                tally,
                agreed: it.latency,
                threads: BTreeMap::new(),
                waiting: Vec::new(),
                doubtful: 0,
                before: Sums::default(),
            };
            (it.cpu, processor)
        };
        let processors: BTreeMap<u32, Processor> = contract.latencies.iter().map(processor).collect();
        (!processors.is_empty()).then_some(LatencyChecker { processors, is_whole, lost: 0 })
    }

    /// Takes a record, and hands out every violation that it shows.
    pub fn record(&mut self, record: &Latency, each: &mut dyn FnMut(&Violation)) {
        match record {
            Latency::Wakeup(wakeup) => {
                if let Some(processor) = self.processors.get_mut(&wakeup.cpu) {
                    processor.wakeup(wakeup, each);
                }
            }
            Latency::Thread(thread) => {
                if let Some(processor) = self.processors.get_mut(&thread.cpu) {
                    processor.thread(thread, self.is_whole, each);
                }
            }
            Latency::Lost { cpu, count } if self.processors.contains_key(cpu) => {
                self.lost = self.lost.saturating_add(*count);
            }
            _ => {}
        }
    }

    /// Whether violations wait for the names of their threads.
    pub fn asks_for_names(&self) -> bool {
        self.processors.values().any(|it| !it.waiting.is_empty())
    }

    /// Forgets what is known of threads, which are not measured again under the same numbers.
    pub fn forget(&mut self, ended: impl Fn(u32) -> bool) {
        for processor in self.processors.values_mut() {
            let Processor { threads, before, agreed, .. } = processor;
            threads.retain(|(tid, ..), thread| {
                // What broke the contract without a record is told at the end.
                let is_silent = thread.violations == 0 && thread.max > Some(*agreed);
                let is_kept = is_silent || !ended(*tid);
                if !is_kept {
                    before.add(thread.sums);
                }
                is_kept
            });
        }
    }

    /// How all processors stand.
    pub fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.processors.values().map(|it| &it.tally)
    }

    /// Adds what came of it to a verdict. `section` has the bounds, if any follow from what was observed.
    pub fn finish(
        self,
        section: Option<&SchedulingLatency>,
        verdict: &mut Verdict,
        each: &mut dyn FnMut(&Violation),
    ) {
        verdict.lost = verdict.lost.saturating_add(self.lost);
        for (cpu, processor) in self.processors {
            let observed = section.and_then(|section| section.processors.iter().find(|it| it.cpu == cpu));
            let bound = section.zip(observed).and_then(|(section, it)| crate::contract::latency(section, it));
            processor.finish(bound, verdict, each);
        }
    }
}

impl Processor {
    fn wakeup(&mut self, wakeup: &ThreadWakeup, each: &mut dyn FnMut(&Violation)) {
        if wakeup.wakeup.latency_ns <= self.agreed {
            return;
        }
        match wakeup.wakeup.split {
            Some(split) if !split.threads_ns.is_zero() => return,
            Some(_) => {}
            None => {
                self.doubtful += 1;
                return;
            }
        }
        let key = (wakeup.tid, wakeup.policy, wakeup.priority);
        match self.threads.get(&key).and_then(|thread| thread.id.clone()) {
            Some(id) => self.violation(wakeup, &id, each),
            None if self.waiting.len() < MOST_WAITING => self.waiting.push(wakeup.clone()),
            None => self.violation(wakeup, &unnamed(wakeup.tid), each),
        }
    }

    fn thread(&mut self, thread: &Thread, is_whole: bool, each: &mut dyn FnMut(&Violation)) {
        let key = (thread.thread.id.tid, thread.thread.policy.number(), thread.thread.priority);
        let now = Sums { wakeups: thread.wakeups, unmeasured: thread.unmeasured };
        let known = self.threads.entry(key).or_default();
        if known.id.is_none() && !is_whole {
            known.before = now;
        }
        let new = now.since(known.before);
        self.tally.jobs = self.tally.jobs.saturating_add(new.since(known.sums).wakeups);
        known.sums = new;
        known.max = known.max.max(thread.bounded_max.filter(|_| is_whole));
        let id = Arc::new(thread.thread.id.clone());
        known.id = Some(Arc::clone(&id));
        if let (Some(max), [standing]) = (known.max, &mut self.tally.standings[..]) {
            standing.see(max.ns());
        }
        let (named, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|it| (it.tid, it.policy, it.priority) == key);
        self.waiting = waiting;
        let named: Vec<ThreadWakeup> = named;
        named.iter().for_each(|wakeup| self.violation(wakeup, &id, each));
    }

    fn violation(&mut self, wakeup: &ThreadWakeup, id: &ThreadId, each: &mut dyn FnMut(&Violation)) {
        let key = (wakeup.tid, wakeup.policy, wakeup.priority);
        self.threads.entry(key).or_default().violations += 1;
        let latency = wakeup.wakeup.latency_ns;
        let subject = Subject {
            name: id.name.as_str().into(),
            pid: id.pid,
            tid: wakeup.tid,
            phase: 0,
            job: 0,
            release: wakeup.wakeup.at_ns,
            end: wakeup.wakeup.at_ns + latency,
            is_open: false,
        };
        self.broken(latency, Some(subject), each);
    }

    fn broken(&mut self, latency: Duration, subject: Option<Subject>, each: &mut dyn FnMut(&Violation)) {
        let task = Arc::clone(&self.tally.task);
        let (value, agreed) = (latency.ns(), self.agreed.ns());
        let violation = Violation { task, term: Term::Latency, subject, value, agreed };
        each(&violation);
        if let [standing] = &mut self.tally.standings[..] {
            standing.see(value);
            standing.count(violation, 0);
        }
    }

    fn finish(mut self, bound: Option<Duration>, verdict: &mut Verdict, each: &mut dyn FnMut(&Violation)) {
        for wakeup in std::mem::take(&mut self.waiting) {
            self.violation(&wakeup, &unnamed(wakeup.tid), each);
        }
        // Those of which the records have the greatest value and no wake-up.
        let silent = self.threads.values().filter(|it| it.violations == 0).filter_map(|it| it.max);
        let silent: Vec<Duration> = silent.filter(|max| *max > self.agreed).collect();
        silent.into_iter().for_each(|max| self.broken(max, None, each));
        let (agreed, so_far) = (self.agreed, self.tally.violations());
        match bound {
            Some(bound) if bound > agreed && so_far == 0 => self.broken(bound, None, each),
            Some(bound) => self.tally.standings.iter_mut().for_each(|it| _ = it.see(bound.ns())),
            None => {}
        }
        self.notes(&mut verdict.notes);
        verdict.tallies.push(self.tally);
    }

    fn notes(&self, notes: &mut Vec<Note>) {
        let mut sums = self.before;
        self.threads.values().for_each(|thread| sums.add(thread.sums));
        let mut note = |text: String| notes.push(Note { task: self.tally.task.clone(), text });
        if self.tally.jobs == 0 && self.tally.standings.iter().all(|it| it.worst.is_none()) {
            note("its scheduling latency was not observed: no real-time thread was woken there".into());
        }
        if sums.unmeasured > 0 {
            let Sums { wakeups, unmeasured } = sums;
            note(format!("of {} wake-ups, {unmeasured} were not seen", wakeups.saturating_add(unmeasured)));
        }
        if self.doubtful > 0 {
            note(format!(
                "latency may be beyond what was agreed on: it was in {} wake-ups during which not everything \
                 was seen, so that preferred threads may have run",
                self.doubtful
            ));
        }
    }
}

impl Sums {
    fn since(self, before: Sums) -> Sums {
        Sums {
            wakeups: self.wakeups.saturating_sub(before.wakeups),
            unmeasured: self.unmeasured.saturating_sub(before.unmeasured),
        }
    }

    fn add(&mut self, other: Sums) {
        self.wakeups = self.wakeups.saturating_add(other.wakeups);
        self.unmeasured = self.unmeasured.saturating_add(other.unmeasured);
    }
}

fn unnamed(tid: u32) -> ThreadId {
    ThreadId { name: String::new(), pid: 0, tid }
}

/// What a processor is called in verdicts.
pub(crate) fn processor_name(cpu: u32) -> String {
    format!("CPU {cpu}")
}
