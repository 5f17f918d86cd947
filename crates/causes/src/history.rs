//! What all threads and processors did in a stretch of time.

use crate::event::{Event, Faults, Loss, Urgency};
use crate::processor::{Occupancy, Service, StolenTime};
use crate::thread::{State, Stretch};
use crate::tracker::{Sink, Tracker};
use punctual_model::Instant;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What all threads and processors did between two instants.
#[derive(Debug, Default)]
pub struct History {
    threads: FxHashMap<u32, Vec<Stretch>>,
    occupied: FxHashMap<u32, Vec<Occupancy>>,
    served: FxHashMap<u32, Vec<Service>>,
    stolen: FxHashMap<u32, Vec<StolenTime>>,
    faults: Vec<(u32, Instant, Faults)>,
    /// Disjoint, in the order of time.
    losses: Arc<[Loss]>,
    /// Whether threads may have run on processors of which there are no events.
    pub(crate) hides_processors: bool,
}

impl History {
    /// Of events in the order of time, which are complete from `from` to `until` but for these losses.
    pub fn new<'a>(
        from: Instant,
        until: Instant,
        events: impl IntoIterator<Item = &'a Event>,
        losses: Vec<Loss>,
    ) -> History {
        History::after(Tracker::new(from), until, events, disjoint(losses))
    }

    /// Of events that come after those that `tracker` has seen.
    pub(crate) fn after<'a>(
        mut tracker: Tracker,
        until: Instant,
        events: impl IntoIterator<Item = &'a Event>,
        losses: Arc<[Loss]>,
    ) -> History {
        let mut history =
            History { losses, hides_processors: tracker.hides_processors, ..History::default() };
        for event in events {
            tracker.event(event, &mut history);
        }
        for (thread, now) in &tracker.threads {
            history.thread(*thread, now.stretch(until));
        }
        for (cpu, now) in &tracker.processors {
            history.occupied(*cpu, now.stretch(until));
            if let Some(served) = now.serving_at(until) {
                history.served(*cpu, served);
            }
        }
        history
    }

    /// Until when a stretch of one state is known: up to a loss. After that, or if it began within one, there
    /// may have been other states meanwhile; and its state is the one that it began in.
    fn known_until(&self, from: Instant, until: Instant) -> Instant {
        let next = self.losses.partition_point(|loss| loss.until <= from);
        self.losses.get(next).map_or(until, |loss| loss.since.min(until))
    }

    /// Whether events were lost in this time.
    pub(crate) fn has_loss(&self, from: Instant, until: Instant) -> bool {
        let next = self.losses.partition_point(|loss| loss.until <= from);
        self.losses.get(next).is_some_and(|loss| loss.since < until)
    }

    /// What a thread did from `from` to `until`: stretches without gaps, in the order of time.
    pub(crate) fn of_thread(&self, thread: u32, from: Instant, until: Instant) -> Vec<Stretch> {
        let stretches = self.threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let mut shown = Vec::new();
        let mut reached = from;
        let mut urgency = Urgency::FAIR;
        for stretch in within(stretches, from, until, |it| (it.from, it.until)) {
            urgency = stretch.urgency;
            shown.extend(unknown(reached, stretch.from, urgency));
            shown.push(Stretch {
                from: stretch.from.max(reached),
                until: stretch.until.min(until),
                ..*stretch
            });
            reached = stretch.until.min(until);
        }
        shown.extend(unknown(reached, until, urgency));
        shown
    }

    /// When the sleep began that a thread is in at this moment.
    pub(crate) fn stretch_at(&self, thread: u32, at: Instant) -> Option<&Stretch> {
        let stretches = self.threads.get(&thread)?;
        stretches.get(stretches.partition_point(|it| it.until <= at)).filter(|it| it.from <= at)
    }

    pub(crate) fn occupants(&self, cpu: u32, from: Instant, until: Instant) -> &[Occupancy] {
        within(of(&self.occupied, cpu), from, until, |it| (it.from, it.until))
    }

    pub(crate) fn interrupts(&self, cpu: u32, from: Instant, until: Instant) -> &[Service] {
        within(of(&self.served, cpu), from, until, |it| (it.from, it.until))
    }

    pub(crate) fn stolen(&self, cpu: u32, from: Instant, until: Instant) -> &[StolenTime] {
        within(of(&self.stolen, cpu), from, until, |it| (it.from, it.until))
    }

    /// Page faults of turns on a processor that ended after `from` and began before `until`.
    pub(crate) fn faults(&self, thread: u32, from: Instant, until: Instant) -> Faults {
        let turn = self.stretch_at(thread, until).filter(|it| matches!(it.state, State::Running { .. }));
        let until = turn.filter(|turn| turn.from < until).map_or(until, |turn| turn.until);
        let mut sum = Faults::default();
        for (of, at, faults) in &self.faults {
            if *of == thread && from < *at && *at <= until {
                sum += *faults;
            }
        }
        sum
    }
}

impl Sink for History {
    fn thread(&mut self, thread: u32, stretch: Stretch) {
        let until = self.known_until(stretch.from, stretch.until);
        let stretches = self.threads.entry(thread).or_default();
        // The TID of a thread that ended may be used again.
        let from = stretches.last().map_or(stretch.from, |last| stretch.from.max(last.until));
        let state = if until < stretch.until { stretch.begun } else { stretch.state };
        if from < until {
            stretches.push(Stretch { from, until, state, ..stretch });
        }
    }

    fn occupied(&mut self, cpu: u32, stretch: Occupancy) {
        let until = self.known_until(stretch.from, stretch.until);
        if stretch.from < until {
            let by = if until < stretch.until { stretch.begun } else { stretch.by };
            self.occupied.entry(cpu).or_default().push(Occupancy { until, by, ..stretch });
        }
    }

    fn served(&mut self, cpu: u32, stretch: Service) {
        if stretch.from < stretch.until {
            self.served.entry(cpu).or_default().push(stretch);
        }
    }

    fn stolen(&mut self, cpu: u32, stretch: StolenTime) {
        self.stolen.entry(cpu).or_default().push(stretch);
    }

    fn faulted(&mut self, thread: u32, at: Instant, faults: Faults) {
        self.faults.push((thread, at, faults));
    }
}

/// Losses in the order of time, those that touch as one.
pub(crate) fn disjoint(mut losses: Vec<Loss>) -> Arc<[Loss]> {
    losses.retain(|loss| loss.since < loss.until);
    losses.sort_by_key(|loss| (loss.since, loss.until));
    losses.dedup_by(|next, last| {
        let touches = next.since <= last.until;
        if touches {
            last.until = last.until.max(next.until);
        }
        touches
    });
    losses.into()
}

fn of<T>(map: &FxHashMap<u32, Vec<T>>, cpu: u32) -> &[T] {
    map.get(&cpu).map_or(&[], Vec::as_slice)
}

/// The stretches that overlap `from` to `until`, of disjoint ones in the order of time.
fn within<T>(all: &[T], from: Instant, until: Instant, times: impl Fn(&T) -> (Instant, Instant)) -> &[T] {
    let first = all.partition_point(|it| times(it).1 <= from);
    let after = all.partition_point(|it| times(it).0 < until);
    &all[first.min(after)..after]
}

fn unknown(from: Instant, until: Instant, urgency: Urgency) -> Option<Stretch> {
    let state = State::Unknown;
    (from < until).then_some(Stretch { from, until, state, begun: state, urgency })
}
