//! What the inputs of a task keep, and what an activation takes from them (`docs/flow-traces.md`, "What an
//! input keeps").

use super::Graph;
use punctual_trace::flow::{Arming, Barrier, Connection};
use std::collections::BTreeMap;

/// Where a datum waits for the instance that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With everything since the activation before: the input is unknown.
    Since,
    /// In this register of the task, until a newer one comes.
    Newest(usize),
    /// In order of pushes, at this counter of the task.
    Queue(usize),
}

/// All inputs of one task.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// By channel: a channel may be connected twice.
    pub by_channel: BTreeMap<u16, Vec<Place>>,
    pub counters: Vec<Counter>,
    pub has_since: bool,
    /// Number of registers; an instance reads them at its start.
    pub registers: usize,
    /// Whether a final input can activate the task without the others.
    has_final: bool,
}

/// What an activation takes from a queue. Pushes are counted from 0, including those before the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub from: u64,
    pub until: u64,
    /// Whether what waits before stays: the trace tells what is taken.
    pub is_told: bool,
    /// If not, anything that waits may have been taken.
    pub is_known: bool,
}

/// Circumstances of an activation.
#[derive(Clone, Copy, Debug)]
pub struct Activated {
    pub instance: u64,
    /// Whether activations before it are missing.
    pub is_behind_missing: bool,
    /// Whether the trace is complete; if not, whether anything is missing so far.
    pub is_whole: bool,
    pub has_met_gap: bool,
    /// The push that it takes, as channel and number, where the trace tells.
    pub told: Option<(u16, Option<u64>)>,
}

impl Inputs {
    /// The inputs of each task with connections.
    pub fn by_task(graph: &Graph) -> BTreeMap<u16, Inputs> {
        let mut found: BTreeMap<u16, Inputs> = BTreeMap::new();
        for (channel, tasks) in &graph.activates {
            for task in tasks.keys() {
                let armings = graph.armings.get(&Connection { channel: *channel, task: *task });
                found.entry(*task).or_default().connect(
                    *channel,
                    armings.map_or(&[], Vec::as_slice),
                    graph.barriers.get(channel),
                    graph.has_told_takes,
                );
            }
        }
        found
    }

    fn connect(&mut self, channel: u16, armings: &[Arming], barrier: Option<&Barrier>, is_told: bool) {
        let places = self.by_channel.entry(channel).or_default();
        if armings.is_empty() {
            self.has_since = true;
            places.push(Place::Since);
        }
        for arming in armings {
            self.has_final |= arming.is_final;
            if arming.synchronised {
                places.push(Place::Queue(self.counters.len()));
                // Of two inputs of one channel, one counts a push before an activation in it, and one after.
                let is_lost = armings.len() > 1;
                self.counters.push(Counter { is_lost, is_told, ..Counter::new(channel, arming, barrier) });
            } else if !places.iter().any(|place| matches!(place, Place::Newest(_))) {
                places.push(Place::Newest(self.registers));
                self.registers += 1;
            }
        }
    }

    /// Takes from each counter for an activation. False if the inputs contradict that activation.
    pub fn take(&mut self, activated: Activated, taken: &mut Vec<Taken>) -> bool {
        taken.clear();
        let has_final = self.has_final;
        // Every instance takes the same from an input that it waits for, whatever is missing, unless the task
        // has its own condition.
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

    /// Numbers are no longer meaningful.
    pub fn lose(&mut self) {
        self.counters.iter_mut().for_each(|counter| counter.is_lost = true);
    }
}

/// Pushes at a synchronised input, and how many were taken; for a barrier, rounds.
#[derive(Clone, Debug)]
pub struct Counter {
    pub channel: u16,
    threshold: u64,
    /// Pushes before the trace.
    first: u64,
    is_required: bool,
    barrier: Option<Rounds>,
    arrived: u64,
    taken: u64,
    /// The last activation, by number, took up to here.
    owed: u64,
    holes: Holes,
    is_lost: bool,
    /// The trace tells what activations take.
    is_told: bool,
}

/// The current round of a barrier.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    count: u32,
    has_come: u32,
    /// Number of the last push.
    of_last: u64,
}

impl Counter {
    fn new(channel: u16, arming: &Arming, barrier: Option<&Barrier>) -> Counter {
        let first = u64::from(arming.pending);
        Counter {
            channel,
            threshold: u64::from(arming.threshold),
            first,
            is_required: !arming.optional && !arming.is_final,
            barrier: barrier.map(|barrier| Rounds {
                count: barrier.count,
                has_come: barrier.arrived,
                of_last: first,
            }),
            arrived: first,
            taken: 0,
            owed: 0,
            holes: Holes::default(),
            is_lost: false,
            is_told: false,
        }
    }

    /// The index of the push with this number on the channel; for a barrier, of the last one.
    pub fn place(&self, number: u64) -> u64 {
        self.barrier.map_or(self.first + number, |rounds| rounds.of_last)
    }

    #[inline]
    pub fn push(&mut self, number: u64) {
        if let Some(rounds) = &mut self.barrier {
            rounds.of_last = self.arrived;
            rounds.has_come = rounds.has_come.saturating_add(1);
            return self.end_round();
        }
        let place = self.place(number);
        if place < self.arrived {
            return self.holes.fill(place);
        }
        if place > self.arrived {
            self.holes.add(self.arrived, place);
        } else if self.owed > place {
            // No push is missing, yet an instance was activated that would have needed this one: the task has
            // its own condition.
            self.is_lost = true;
        }
        self.arrived = place + 1;
    }

    /// The barrier's count changes.
    pub fn count(&mut self, count: u32) {
        if let Some(rounds) = &mut self.barrier {
            rounds.count = count;
            self.end_round();
        }
    }

    fn end_round(&mut self) {
        if let Some(rounds) = self.barrier.as_mut().filter(|rounds| rounds.has_come >= rounds.count) {
            rounds.has_come = 0;
            self.arrived += 1;
        }
    }

    /// What an activation takes, and whether that exists.
    fn take(&mut self, activated: Activated, by_number: bool) -> (Taken, bool) {
        if self.is_told {
            return (self.told(activated), true);
        }
        let is_armed = self.arrived - self.taken >= self.threshold;
        // After a gap, the contents of inputs that are not always waited for are unknown, as are ends of
        // rounds.
        let is_behind_gap =
            activated.is_behind_missing && !activated.is_whole || !is_armed && activated.has_met_gap;
        if is_behind_gap && !by_number || activated.has_met_gap && self.barrier.is_some() {
            self.is_lost = true;
        }
        if self.is_lost {
            return (Taken { from: 0, until: u64::MAX, is_told: false, is_known: false }, true);
        }
        let from = if by_number { activated.instance.saturating_mul(self.threshold) } else { self.taken };
        let until = if by_number || is_armed { from.saturating_add(self.threshold) } else { from };
        self.owed = if by_number && self.barrier.is_none() { self.owed.max(until) } else { 0 };
        self.taken = self.taken.max(until.min(self.arrived));
        let is_known = until <= self.arrived && !self.holes.touch(from, until);
        self.holes.forget_before(self.taken);
        (Taken { from, until, is_told: false, is_known }, is_armed)
    }

    /// What an activation takes by what the trace tells: nothing if it tells of another channel.
    fn told(&mut self, activated: Activated) -> Taken {
        let nothing = Taken { from: 0, until: 0, is_told: true, is_known: true };
        match activated.told {
            Some((channel, Some(number))) if channel == self.channel => {
                let until = number.saturating_add(1);
                let is_known = until <= self.arrived && !self.holes.touch(number, until);
                self.holes.forget_before(number.saturating_sub(MOST_BEHIND));
                Taken { from: number, until, is_known, ..nothing }
            }
            Some((channel, None)) if channel == self.channel => Taken { is_known: false, ..nothing },
            Some(_) => nothing,
            None => Taken { is_known: !activated.has_met_gap, ..nothing },
        }
    }
}

/// How much later a push may be taken than others that came after it.
pub const MOST_BEHIND: u64 = 1 << 12;

/// Pushes not seen although later ones were.
#[derive(Clone, Debug, Default)]
struct Holes {
    /// Ranges, in order.
    ranges: Vec<(u64, u64)>,
}

/// Most ranges; beyond that, what lies between two counts as missing too.
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
        let Some(index) = self.ranges.iter().position(|(from, until)| (*from..*until).contains(&place))
        else {
            return;
        };
        let (from, until) = self.ranges.remove(index);
        let rest = [(from, place), (place + 1, until)];
        rest.into_iter()
            .rev()
            .filter(|(from, until)| from < until)
            .for_each(|range| self.ranges.insert(index, range));
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
