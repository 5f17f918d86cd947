//! What the inputs of a task keep of pushes, and what an activation takes of them (`docs/flow-traces.md`, "What an input keeps").

use super::Graph;
use punctual_trace::flow::{Arming, Barrier, Connection};
use std::collections::BTreeMap;

/// Where a datum waits for the instance that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With everything since the activation before: nothing is known of the input.
    Since,
    /// Until an instance starts, or a newer one comes.
    Newest,
    /// In the order of pushes, at this one of the task's counters.
    Queue(usize),
}

/// All inputs of one task.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// By channel: a channel may be connected twice.
    pub by_channel: BTreeMap<u16, Vec<Place>>,
    pub counters: Vec<Counter>,
    pub has_since: bool,
    pub has_newest: bool,
    /// Whether a final input can activate the task without the others.
    has_final: bool,
}

/// What of a queue an activation takes. Pushes are counted from 0, with those that came before the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub from: u64,
    pub until: u64,
    /// Otherwise, all that waits may have been taken, or not.
    pub is_known: bool,
}

/// How an activation comes about.
#[derive(Clone, Copy, Debug)]
pub struct Activated {
    pub instance: u64,
    /// In a push on this channel.
    pub by: Option<u16>,
    /// Activations before it are missing.
    pub is_behind_missing: bool,
    /// Whether the trace is whole; if not, whether anything is missing so far.
    pub is_whole: bool,
    pub has_met_gap: bool,
}

impl Inputs {
    /// Of each task that something is connected to.
    pub fn of(graph: &Graph) -> BTreeMap<u16, Inputs> {
        let mut found: BTreeMap<u16, Inputs> = BTreeMap::new();
        for (channel, tasks) in &graph.activates {
            for task in tasks.keys() {
                let armings = graph.armings.get(&Connection { channel: *channel, task: *task });
                found.entry(*task).or_default().connect(*channel, armings.map_or(&[], Vec::as_slice), graph.barriers.get(channel));
            }
        }
        found
    }

    fn connect(&mut self, channel: u16, armings: &[Arming], barrier: Option<&Barrier>) {
        let places = self.by_channel.entry(channel).or_default();
        if armings.is_empty() {
            self.has_since = true;
            places.push(Place::Since);
        }
        for arming in armings {
            self.has_final |= arming.is_final;
            if arming.synchronised {
                places.push(Place::Queue(self.counters.len()));
                self.counters.push(Counter::new(channel, arming, barrier));
            } else if !places.contains(&Place::Newest) {
                self.has_newest = true;
                places.push(Place::Newest);
            }
        }
    }

    /// Takes for an activation, of each counter. False if it cannot be by what the task waits for.
    pub fn take(&mut self, activated: Activated, taken: &mut Vec<Taken>) -> bool {
        taken.clear();
        let has_final = self.has_final;
        // Each instance has taken the same of an input that it waits for, whatever is missing; but for tasks with a condition of their own.
        let by_number = !activated.is_whole && !has_final;
        let mut is_explained = true;
        for counter in &mut self.counters {
            let is_required = counter.is_required && !has_final;
            let (range, is_armed) = counter.take(activated, by_number && is_required);
            taken.push(range);
            is_explained &= is_armed || !is_required;
        }
        is_explained || !activated.is_whole
    }

    /// Numbers mean nothing any more.
    pub fn lose(&mut self) {
        self.counters.iter_mut().for_each(|counter| counter.is_lost = true);
    }
}

/// How many pushes there were at a synchronised input, and how many of them were taken.
#[derive(Clone, Debug)]
pub struct Counter {
    pub channel: u16,
    /// Of a barrier, all pushes count here, and an activation takes those of its rounds.
    threshold: u64,
    /// Pushes before the trace.
    first: u64,
    is_required: bool,
    is_barrier: bool,
    /// Of a barrier: its count has changed, which no event says.
    has_changed: bool,
    arrived: u64,
    taken: u64,
    /// By number, this is where the last activation took to.
    owed: u64,
    holes: Holes,
    is_lost: bool,
}

impl Counter {
    fn new(channel: u16, arming: &Arming, barrier: Option<&Barrier>) -> Counter {
        let Barrier { count, arrived } = barrier.copied().unwrap_or(Barrier { count: 1, arrived: 0 });
        // Whatever a trace says, the numbers of its pushes can be added.
        let first = (u64::from(arming.pending) * u64::from(count)).min(1 << 62) + u64::from(arrived);
        Counter {
            channel,
            threshold: u64::from(arming.threshold) * u64::from(count),
            first,
            is_required: !arming.optional && !arming.is_final,
            is_barrier: barrier.is_some(),
            has_changed: false,
            arrived: first,
            taken: 0,
            owed: 0,
            holes: Holes::default(),
            is_lost: false,
        }
    }

    /// Which one the push of this number on the channel is.
    pub fn place(&self, number: u64) -> u64 {
        self.first + number
    }

    #[inline]
    pub fn push(&mut self, number: u64) {
        let place = self.place(number);
        if place < self.arrived {
            return self.holes.fill(place);
        }
        if place > self.arrived {
            self.holes.add(self.arrived, place);
        } else if self.owed > place {
            // No push is missing, and still an instance has been activated that would have needed this one: the task has a condition of its own.
            self.is_lost = true;
        }
        self.arrived = place + 1;
    }

    /// What an activation takes, and whether it is there.
    fn take(&mut self, activated: Activated, by_number: bool) -> (Taken, bool) {
        // Behind a gap, nobody knows any more what an input has that is not always waited for.
        let is_armed = self.arrived - self.taken >= self.threshold;
        if !by_number && (activated.is_behind_missing && !activated.is_whole || !is_armed && activated.has_met_gap) {
            self.is_lost = true;
        }
        if self.is_lost {
            return (Taken { from: 0, until: u64::MAX, is_known: false }, true);
        }
        if self.is_barrier {
            return (self.take_rounds(activated, by_number), true);
        }
        let (from, until) = self.next(activated, by_number, is_armed);
        self.owed = if by_number { self.owed.max(until) } else { 0 };
        (self.taken_to(from, until), is_armed)
    }

    fn next(&self, activated: Activated, by_number: bool, is_armed: bool) -> (u64, u64) {
        let from = if by_number { activated.instance.saturating_mul(self.threshold) } else { self.taken };
        (from, if by_number || is_armed { from.saturating_add(self.threshold) } else { from })
    }

    fn taken_to(&mut self, from: u64, until: u64) -> Taken {
        self.taken = self.taken.max(until.min(self.arrived));
        let is_known = until <= self.arrived && !self.holes.touch(from, until);
        self.holes.forget_before(self.taken);
        Taken { from, until, is_known }
    }

    /// A push on a barrier that activates a task ends a round, and all rounds before have been taken: otherwise it would not have waited for this
    /// one. Where that is not so, the barrier's count is not what it was.
    fn take_rounds(&mut self, activated: Activated, by_number: bool) -> Taken {
        let is_armed = self.arrived - self.taken >= self.threshold;
        let (from, until) = self.next(activated, by_number, is_armed);
        let is_direct = activated.by == Some(self.channel);
        let is_first = !self.has_changed && (is_direct && until != self.arrived || !is_armed && self.is_required);
        self.has_changed |= is_first;
        if !self.has_changed {
            return self.taken_to(from, until);
        }
        let (from, until) = (self.taken, self.arrived);
        let taken = self.taken_to(from, until);
        // Which rounds an instance has taken that began later, nobody knows.
        Taken { is_known: taken.is_known && is_direct && !is_first, ..taken }
    }
}

/// Pushes that have not been seen, though later ones have.
#[derive(Clone, Debug, Default)]
struct Holes {
    /// From, until; in order.
    ranges: Vec<(u64, u64)>,
}

/// Beyond, what is between two is taken for missing, too.
const MOST_HOLES: usize = 64;

impl Holes {
    #[cold]
    fn add(&mut self, from: u64, until: u64) {
        match self.ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = until,
            _ => self.ranges.push((from, until)),
        }
        if self.ranges.len() > MOST_HOLES {
            if let Some(last) = self.ranges.pop() {
                self.ranges[MOST_HOLES - 1].1 = last.1;
            }
        }
    }

    #[cold]
    fn fill(&mut self, place: u64) {
        let Some(index) = self.ranges.iter().position(|(from, until)| (*from..*until).contains(&place)) else { return };
        let (from, until) = self.ranges.remove(index);
        let rest = [(from, place), (place + 1, until)];
        rest.into_iter().rev().filter(|(from, until)| from < until).for_each(|range| self.ranges.insert(index, range));
    }

    fn touch(&self, from: u64, until: u64) -> bool {
        self.ranges.iter().any(|range| range.0 < until && from < range.1)
    }

    #[inline]
    fn forget_before(&mut self, place: u64) {
        if !self.ranges.is_empty() {
            self.ranges.retain(|range| range.1 > place);
        }
    }
}
