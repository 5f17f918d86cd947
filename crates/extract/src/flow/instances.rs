//! Instances of one task that were activated and have not ended.

use super::lineage::{Carry, Window};
use super::sources::Waiting;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;

/// Numbers are told apart over this many instances.
const MOST_LIVE: u64 = punctual_trace::flow::NUMBERS / 2;

/// An instance.
#[derive(Debug)]
pub struct Instance {
    pub number: u64,
    /// Absent where it is missing from the trace.
    pub activation: Option<Instant>,
    /// When it started, and by whom it is executed.
    pub start: Option<(Instant, u32)>,
    /// How long its task had been busy when it was activated.
    pub busy: Option<Duration>,
    /// For each node of its task: what it has taken so far, until it has read all.
    pub windows: Vec<Window>,
    pub is_read: bool,
    /// And then what it carries on.
    pub carries: Vec<Carry>,
    /// Who waits for its end: chain, and instance of its source.
    pub waiting: Vec<(usize, Waiting)>,
    /// Nodes of second tasks of chains that it has put data before.
    pub put: Vec<usize>,
}

/// In order of their numbers. Whatever memory they take is used again.
#[derive(Debug, Default)]
pub struct Live {
    instances: VecDeque<Instance>,
    spare: Vec<Instance>,
}

impl Live {
    fn place(&self, number: u64) -> Result<usize, usize> {
        // Mostly there is one, or it is the last.
        match self.instances.back() {
            None => Err(0),
            Some(last) if last.number < number => Err(self.instances.len()),
            Some(last) if last.number == number => Ok(self.instances.len() - 1),
            Some(_) => self.instances.binary_search_by_key(&number, |instance| instance.number),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    #[inline]
    pub fn get(&mut self, number: u64) -> Option<&mut Instance> {
        let place = self.place(number).ok()?;
        self.instances.get_mut(place)
    }

    /// A new one without anything; `None` if there is one of this number.
    #[inline]
    pub fn add(&mut self, number: u64) -> Option<&mut Instance> {
        let place = self.place(number).err()?;
        let mut instance = self.spare.pop().unwrap_or_else(|| Instance {
            number,
            activation: None,
            start: None,
            busy: None,
            windows: Vec::new(),
            is_read: false,
            carries: Vec::new(),
            waiting: Vec::new(),
            put: Vec::new(),
        });
        instance.number = number;
        self.instances.insert(place, instance);
        self.instances.get_mut(place)
    }

    /// Whether one of a lower number has not started.
    pub fn waits_before(&self, number: u64) -> bool {
        self.instances
            .iter()
            .take_while(|instance| instance.number < number)
            .any(|instance| instance.start.is_none())
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Instance> {
        self.instances.iter_mut()
    }

    pub fn remove(&mut self, number: u64) -> Option<Instance> {
        let place = self.place(number).ok()?;
        self.instances.remove(place)
    }

    /// Gives back the memory of one that was removed.
    #[inline]
    pub fn reuse(&mut self, mut instance: Instance) {
        instance.windows.clear();
        instance.carries.clear();
        instance.waiting.clear();
        instance.put.clear();
        (instance.activation, instance.start, instance.busy, instance.is_read) = (None, None, None, false);
        if self.spare.len() < 16 {
            self.spare.push(instance);
        }
    }

    /// One that is so old that its number could mean another.
    pub fn remove_stale(&mut self) -> Option<Instance> {
        let (first, last) = (self.instances.front()?, self.instances.back()?);
        if last.number - first.number >= MOST_LIVE { self.instances.pop_front() } else { None }
    }

    /// Any, the oldest first.
    pub fn remove_any(&mut self) -> Option<Instance> {
        self.instances.pop_front()
    }
}
