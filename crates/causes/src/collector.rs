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

/// Explains jobs that are known beforehand.
pub struct Collector {
    /// Jobs still to be explained, by their beginnings.
    jobs: VecDeque<Job>,
    /// The state before the events that are kept.
    before: Tracker,
    /// In the order of time.
    events: VecDeque<Event>,
    latest: Instant,
    /// Disjoint, in the order of time.
    losses: Arc<[Loss]>,
}

impl Collector {
    /// Explains these jobs from events that are complete from `from` on.
    pub fn new(mut jobs: Vec<Job>, from: Instant) -> Collector {
        jobs.sort_by_key(|job| (job.begin, job.end, job.thread));
        let (before, events, losses) = (Tracker::new(from), VecDeque::new(), Arc::default());
        Collector { jobs: jobs.into(), before, events, latest: from, losses }
    }

    /// The same, for the events of some threads only: other occupants of processors are unknown.
    pub fn partial(self) -> Collector {
        Collector { before: self.before.partial(), ..self }
    }

    /// The same, where events were lost.
    pub fn with_losses(self, losses: Vec<Loss>) -> Collector {
        Collector { losses: disjoint(losses), ..self }
    }

    /// Takes an event; passes on the explanations of complete jobs.
    pub fn event(&mut self, event: Event, each: &mut impl FnMut(Explanation)) {
        if self.jobs.is_empty() {
            return;
        }
        self.latest = self.latest.max(event.at);
        let mut place = self.events.len();
        while place > 0 && self.events[place - 1].at > event.at {
            place -= 1;
        }
        self.events.insert(place, event);
        while self.jobs.front().is_some_and(|job| job.end + DISORDER < self.latest) {
            self.explain_first(each);
        }
        self.forget();
    }

    /// There are no more events.
    pub fn finish(mut self, each: &mut impl FnMut(Explanation)) {
        while !self.jobs.is_empty() {
            self.explain_first(each);
        }
    }

    fn explain_first(&mut self, each: &mut impl FnMut(Explanation)) {
        let Some(job) = self.jobs.pop_front() else { return };
        // The event that ends a stretch tells what that was.
        let until = job.end + SETTLED;
        let after = self.events.partition_point(|event| event.at <= until);
        let losses = Arc::clone(&self.losses);
        let events = self.events.range(..after);
        let history = History::after(self.before.clone(), until, events, losses);
        each(history.explain(job));
    }

    /// Forgets events that no job needs.
    fn forget(&mut self) {
        let needed = self.jobs.front().map_or(self.latest, |job| job.begin);
        let keep_from = needed.min(self.latest - DISORDER);
        while self.events.front().is_some_and(|event| event.at < keep_from) || self.events.len() > MOST_EVENTS
        {
            let Some(event) = self.events.pop_front() else { break };
            self.before.event(&event, &mut Nothing);
        }
    }
}
