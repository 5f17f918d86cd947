//! Explains jobs while events pass by, and keeps no more of them than the jobs need.

use crate::event::Event;
use crate::history::History;
use crate::part::{Explanation, Job};
use crate::tracker::{Nothing, Tracker};
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;

/// Events may come later than those after them by at most this.
const DISORDER: Duration = Duration::from_ms(200);

/// So long after the end of a job, most stretches of its time have ended.
const SETTLED: Duration = Duration::from_ms(10);

/// Events that are kept at most; of a job that needs more, the beginning is unknown.
const MOST_EVENTS: usize = 1 << 21;

/// Explains jobs that are known beforehand.
pub struct Collector {
    /// Those that are left, by their beginnings.
    jobs: VecDeque<Job>,
    /// What was before the events that are kept.
    before: Tracker,
    /// In the order of time.
    events: VecDeque<Event>,
    latest: Instant,
}

impl Collector {
    /// Explains these jobs from events that are complete from `from` on.
    pub fn new(mut jobs: Vec<Job>, from: Instant) -> Collector {
        jobs.sort_by_key(|job| (job.begin, job.end, job.thread));
        Collector { jobs: jobs.into(), before: Tracker::new(from), events: VecDeque::new(), latest: from }
    }

    /// Takes an event; passes on the explanations of jobs that are complete.
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
        let history = History::after(self.before.clone(), until, self.events.range(..after));
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
