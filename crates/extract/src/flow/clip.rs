//! A part of a trace, as if the program had been traced in that time only: what is pushed, activated and
//! executed in it.
//!
//! An instance belongs to the part if it is activated in it. Numbers are counted from the part's beginning.

use super::graph::serial_takes;
use punctual_model::Instant;
use punctual_trace::flow::{About, Arming, Barrier, Count, Event, Gap, Item, Kind, Take};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What a part has of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clipped {
    /// The item, with numbers that count from the part's beginning.
    Inside(Item),
    /// The start or stop of an instance that was activated before the part.
    Before(Event),
}

impl Clipped {
    /// The item, if it is of the part.
    pub fn inside(self) -> Option<Item> {
        match self {
            Clipped::Inside(item) => Some(item),
            Clipped::Before(_) => None,
        }
    }
}

/// Passes on the items of a part of a trace.
#[derive(Clone, Debug)]
pub struct Clip {
    from: Instant,
    until: Instant,
    /// The first number of each channel's pushes and each task's instances in the part.
    pushes: FxHashMap<u16, u64>,
    instances: FxHashMap<u16, u64>,
    /// How many there were before, and the counts of barriers at the beginning.
    before: Before,
}

/// What came before a part.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    pushes: BTreeMap<u16, u64>,
    activations: BTreeMap<u16, u64>,
    barriers: BTreeMap<u16, Rounds>,
    pub is_incomplete: bool,
}

#[derive(Clone, Copy, Debug)]
struct Rounds {
    count: u32,
    arrived: u32,
    rounds: u64,
}

impl Rounds {
    fn end(&mut self) {
        if self.arrived >= self.count {
            self.arrived = 0;
            self.rounds += 1;
        }
    }
}

impl Clip {
    /// The part between two times of a trace that `about` describes.
    pub fn new(from: Instant, until: Instant, about: &About) -> Clip {
        let mut before = Before::default();
        before.know(about);
        Clip::behind(from, until, before)
    }

    /// The part between two times, with what came before.
    pub(super) fn behind(from: Instant, until: Instant, before: Before) -> Clip {
        Clip { from, until, pushes: FxHashMap::default(), instances: FxHashMap::default(), before }
    }

    /// The item as the part has it; `None` if it is not in it.
    #[inline]
    pub fn item(&mut self, item: &Item) -> Option<Clipped> {
        let inside = match item {
            Item::Event(event) if event.at < self.from => {
                self.before.event(event);
                None
            }
            Item::Event(event) if event.at > self.until => None,
            Item::Event(event) => return Some(self.event(event)),
            Item::Gap(gap) => self.gap(gap).map(Item::Gap),
            Item::Count(count) if count.at < self.from => {
                self.before.count(count);
                None
            }
            Item::Count(count) => (count.at <= self.until).then_some(Item::Count(*count)),
            Item::Take(take) => self.take(take).map(Item::Take),
        };
        inside.map(Clipped::Inside)
    }

    /// A push of before is not known in the part.
    fn take(&self, take: &Take) -> Option<Take> {
        if take.at < self.from || take.at > self.until {
            return None;
        }
        let first = self.pushes.get(&take.channel);
        Some(Take {
            number: take.number.zip(first).and_then(|(number, first)| number.checked_sub(*first)),
            ..*take
        })
    }

    fn event(&mut self, event: &Event) -> Clipped {
        let first = match event.kind {
            Kind::Push => Some(*self.pushes.entry(event.object).or_insert(event.number)),
            Kind::Activation => Some(*self.instances.entry(event.object).or_insert(event.number)),
            Kind::Start | Kind::Stop => self.instances.get(&event.object).copied(),
        };
        // An instance of before, or one whose order with another producer's is unknown.
        match first.and_then(|first| event.number.checked_sub(first)) {
            Some(number) => Clipped::Inside(Item::Event(Event { number, ..*event })),
            None => Clipped::Before(*event),
        }
    }

    fn gap(&mut self, gap: &Gap) -> Option<Gap> {
        self.before.is_incomplete |= gap.from < self.from;
        (gap.until >= self.from && gap.from <= self.until).then_some(*gap)
    }

    /// What the part's trace would say of the program, after all of it was passed on: how much inputs and
    /// barriers held when it began. Where that is unknown, so is how the input counts.
    pub fn about(&self, about: &About) -> About {
        let mut part = about.clone();
        for (channel, barrier) in &mut part.barriers {
            if let Some(Rounds { count, arrived, .. }) = self.before.barriers.get(channel) {
                (barrier.count, barrier.arrived) = (*count, *arrived);
            }
        }
        let takes = |task: u16| serial_takes(about, task) && !self.before.is_incomplete;
        for input in &mut part.inputs {
            let (channel, task) = (input.connection.channel, input.connection.task);
            input.arming = input.arming.and_then(|arming| {
                if !arming.synchronised {
                    return Some(arming);
                }
                let pending = takes(task).then(|| self.before.pending(&arming, channel, task)).flatten()?;
                Some(Arming { pending, ..arming })
            });
        }
        part
    }
}

impl Before {
    /// Takes the barriers of which it did not know.
    pub fn know(&mut self, about: &About) {
        for (channel, barrier) in &about.barriers {
            let Barrier { count, arrived } = *barrier;
            self.barriers.entry(*channel).or_insert(Rounds { count, arrived, rounds: 0 });
        }
    }

    /// Takes an item that comes before the part.
    pub fn item(&mut self, item: &Item) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Count(count) => self.count(count),
            Item::Gap(_) => self.is_incomplete = true,
            Item::Take(_) => {}
        }
    }

    fn count(&mut self, count: &Count) {
        if let Some(rounds) = self.barriers.get_mut(&count.channel) {
            rounds.count = count.count;
            rounds.end();
        }
    }

    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::Push => {
                *self.pushes.entry(event.object).or_default() += 1;
                if let Some(rounds) = self.barriers.get_mut(&event.object) {
                    rounds.arrived = rounds.arrived.saturating_add(1);
                    rounds.end();
                }
            }
            Kind::Activation => *self.activations.entry(event.object).or_default() += 1,
            Kind::Start | Kind::Stop => {}
        }
    }

    /// What a queue holds of which each activation has taken the threshold.
    fn pending(&self, arming: &Arming, channel: u16, task: u16) -> Option<u32> {
        let pushes = match self.barriers.get(&channel) {
            Some(rounds) => rounds.rounds,
            None => self.pushes.get(&channel).copied().unwrap_or(0),
        };
        let activations = self.activations.get(&task).copied().unwrap_or(0);
        let taken = activations.checked_mul(arming.threshold.into())?;
        u32::try_from((pushes + u64::from(arming.pending)).checked_sub(taken)?).ok()
    }
}
