//! Explains late jobs by the moments that the kernel keeps, and remembers names and priorities of threads for
//! that time. Not for deciding which jobs are late.

use super::events::Events;
use punctual_causes::{Event, Explanation, History, Job, Loss, Thread};
use punctual_model::{Duration, Instant};
use punctual_observe::Moments;
use punctual_trace::{Blocked, Record, Step, Switch};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Most of a job's time is settled this long after its end: the next step of each thread shows it.
const SETTLED: Duration = Duration::from_ms(10);

/// Moments so long before a job are read too: throttling may begin a second before it.
const LEAD: Duration = Duration::from_ms(1_500);

/// Most changes of threads that are remembered.
const MOST_DESCRIBED: usize = 1 << 16;

/// Names and priorities are remembered for about as long as the kernel keeps moments.
const REMEMBERED: Duration = Duration::from_ms(20_000);

/// Jobs to be explained, and the threads as they were lately.
pub(super) struct Kept {
    /// The threads as they were before the records below.
    before: Events,
    /// Who threads are, and their ends.
    described: VecDeque<(Instant, Record)>,
    jobs: Vec<Job>,
}

impl Kept {
    pub fn new() -> Kept {
        Kept { before: Events::forgetting_after(REMEMBERED), described: VecDeque::new(), jobs: Vec::new() }
    }

    /// A thread as it is now.
    pub fn who(&self, tid: u32) -> Thread {
        let told = self.described.iter().rev().find_map(|(_, record)| match record {
            Record::Task(task) | Record::Known(task) if task.tid == tid => Some(task),
            _ => None,
        });
        told.map_or_else(|| self.before.who(tid), |task| Events::info(task))
    }

    /// A job is to be explained.
    pub fn job(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Takes a record. `until` is the time of the last one.
    pub fn record(&mut self, record: &Record, until: &mut Instant) {
        let at = match record {
            Record::Task(task) | Record::Known(task) | Record::Bystander(task) => task.at,
            Record::Exit { at, .. } | Record::BystanderExit { at, .. } => *at,
            Record::Renamed { .. } => *until,
            _ => return,
        };
        *until = at.max(*until);
        self.described.push_back((at, record.clone()));
        if self.described.len() > MOST_DESCRIBED {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, record)) = self.described.pop_front() {
            self.before.of(&record, &mut |_| {});
        }
    }

    /// Of changes long ago, only the outcome is remembered.
    pub fn forget(&mut self, now: Instant) {
        let needed = self.jobs.iter().map(|job| job.begin).min().unwrap_or(now);
        while self.described.front().is_some_and(|(at, _)| needed.since(*at) > REMEMBERED) {
            self.forget_first();
        }
    }

    /// Takes the jobs that can be explained.
    pub fn settled(&mut self, now: Instant, all: bool) -> Vec<Job> {
        let (settled, rest) =
            std::mem::take(&mut self.jobs).into_iter().partition(|job| all || job.end + SETTLED < now);
        self.jobs = rest;
        settled
    }

    /// Explains jobs by the moments that `moments` reads from a time on.
    pub fn explain(
        &self,
        jobs: &[Job],
        now: Instant,
        moments: &mut dyn FnMut(Instant, Duration) -> Option<Moments>,
        each: &mut dyn FnMut(Explanation, &Events),
    ) {
        let began = |job: &Job| job.previous_end.unwrap_or(job.begin).min(job.begin);
        let Some(since) = jobs.iter().map(began).min() else { return };
        let Moments { from, steps, gaps } = moments(since, LEAD).unwrap_or_default();
        let losses = gaps.into_iter().map(|(since, until)| Loss { since, until }).collect();
        let mut events: Vec<Event> = Vec::with_capacity(steps.len());
        let seen: FxHashSet<u32> = steps.iter().flat_map(|step| [step.tid, other(step)]).collect();
        let mut threads = self.before.of_threads(&seen);
        let is_seen = |(_, record): &&(Instant, Record)| seen.contains(&record.tid());
        let mut described: Vec<&(Instant, Record)> = self.described.iter().filter(is_seen).collect();
        described.sort_by_key(|(at, _)| *at);
        let mut described = described.into_iter().peekable();
        while let Some((_, record)) = described.next_if(|(at, _)| *at < from) {
            threads.of(record, &mut |_| {});
        }
        for step in steps {
            while let Some((_, record)) = described.next_if(|(at, _)| *at <= step.at) {
                threads.of(record, &mut |event| events.push(event));
            }
            threads.of(&Record::Switch(step), &mut |event| events.push(event));
        }
        described.for_each(|(_, record)| threads.of(record, &mut |event| events.push(event)));
        events.sort_by_key(|event| event.at);
        let history = History::new(from, now, &events, losses);
        jobs.iter().for_each(|job| each(history.explain(*job), &threads));
    }
}

/// The other thread that has to do with a step: who woke, or owns what it waits for; 0 if there is none.
fn other(switch: &Switch) -> u32 {
    match switch.step {
        Step::Woken { by } => by,
        Step::Blocked(Blocked { owner, .. }) => owner,
        _ => 0,
    }
}
