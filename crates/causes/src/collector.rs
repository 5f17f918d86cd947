//! Explains jobs from a stream of events, keeping only those that the jobs need.

use crate::event::{Event, Loss};
use crate::history::{History, disjoint};
use crate::part::{Explanation, Job};
use crate::tracker::{Nothing, Tracker};
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// Events are out of order by at most this.
const DISORDER: Duration = Duration::from_ms(200);

/// Most stretches of a job's time have ended this long after the job.
const SETTLED: Duration = Duration::from_ms(10);

/// Most events kept. The beginning of a job that needs more is unknown.
const MOST_EVENTS: usize = 1 << 21;

/// The same, where jobs are not known beforehand: some 16 MiB.
const MOST_FOLLOWED: usize = 1 << 18;

/// Most losses kept.
const MOST_LOSSES: usize = 1024;

/// Explains jobs from events as they come.
pub struct Collector {
    /// Jobs still to be explained, by their beginnings.
    jobs: VecDeque<Job>,
    /// The state before the events that are kept.
    before: Tracker,
    /// In the order of time.
    events: VecDeque<Event>,
    /// Events of this time are kept whether a job needs them or not.
    keep: Duration,
    most: usize,
    latest: Instant,
    /// Disjoint, in the order of time.
    losses: Arc<[Loss]>,
}

impl Collector {
    /// Explains these jobs from events that are complete from `from` on.
    pub fn new(mut jobs: Vec<Job>, from: Instant) -> Collector {
        jobs.sort_by_key(order);
        Collector {
            jobs: jobs.into(),
            before: Tracker::new(from),
            events: VecDeque::new(),
            keep: Duration::ZERO,
            most: MOST_EVENTS,
            latest: from,
            losses: Arc::default(),
        }
    }

    /// Explains jobs that are known only when they have ended, and began at most `keep` before. Of longer
    /// ones the beginning is unknown.
    pub fn following(from: Instant, keep: Duration) -> Collector {
        Collector { keep, most: MOST_FOLLOWED, ..Collector::new(Vec::new(), from) }
    }

    /// The same, for the events of some threads only: other occupants of processors are unknown.
    pub fn partial(self) -> Collector {
        Collector { before: self.before.partial(), ..self }
    }

    /// The same, for the events of some processors only: a thread may have run on another one while it seems
    /// to wait for one of these, unless somebody else had that.
    pub fn of_some_processors(self) -> Collector {
        Collector { before: self.before.of_some_processors(), ..self }
    }

    /// The same, where events were lost.
    pub fn with_losses(self, losses: Vec<Loss>) -> Collector {
        Collector { losses: disjoint(losses), ..self }
    }

    /// Events were lost.
    pub fn lost(&mut self, loss: Loss) {
        let mut losses = self.losses.to_vec();
        losses.push(loss);
        let mut losses = disjoint(losses).to_vec();
        if losses.len() > MOST_LOSSES {
            // A thread may have slept ever since: what was between the oldest two counts as lost, too.
            losses[1].since = losses[0].since;
            losses.remove(0);
        }
        self.losses = losses.into();
    }

    /// A job is to be explained.
    pub fn job(&mut self, job: Job) {
        let place = self.jobs.partition_point(|known| order(known) <= order(&job));
        self.jobs.insert(place, job);
    }

    /// An event. It may be up to 200 ms older than one before.
    pub fn event(&mut self, event: Event) {
        if self.jobs.is_empty() && self.keep == Duration::ZERO {
            return;
        }
        self.latest = self.latest.max(event.at);
        let mut place = self.events.len();
        while place > 0 && self.events[place - 1].at > event.at {
            place -= 1;
        }
        self.events.insert(place, event);
        self.forget();
    }

    /// Whether jobs can be explained: no event that they need is still to come.
    pub fn is_due(&self) -> bool {
        self.jobs.front().is_some_and(|job| job.end + DISORDER < self.latest)
    }

    /// Explains the jobs that can be.
    pub fn explain(&mut self, each: &mut impl FnMut(Explanation)) {
        let mut due = Vec::new();
        while self.is_due() {
            due.extend(self.jobs.pop_front());
        }
        self.explain_all(due, each);
        self.forget();
    }

    /// There are no more events.
    pub fn finish(mut self, each: &mut impl FnMut(Explanation)) {
        let rest = std::mem::take(&mut self.jobs);
        self.explain_all(rest.into(), each);
    }

    fn explain_all(&self, jobs: Vec<Job>, each: &mut impl FnMut(Explanation)) {
        let Some(last) = jobs.iter().map(|job| job.end).max() else { return };
        // The event that ends a stretch tells what that was.
        let until = last + SETTLED;
        let after = self.events.partition_point(|event| event.at <= until);
        let events = self.events.range(..after);
        let history = History::after(self.before.clone(), until, events, Arc::clone(&self.losses));
        jobs.into_iter().for_each(|job| each(history.explain(job)));
    }

    /// Forgets events that no job needs.
    fn forget(&mut self) {
        let needed = self.jobs.front().map_or(self.latest, |job| job.begin);
        let keep_from = needed.min(self.latest - DISORDER.max(self.keep));
        while self.events.front().is_some_and(|event| event.at < keep_from) || self.events.len() > self.most {
            let Some(event) = self.events.pop_front() else { break };
            self.before.event(&event, &mut Nothing);
        }
    }
}

fn order(job: &Job) -> (Instant, Instant, u32) {
    (job.begin, job.end, job.thread)
}
