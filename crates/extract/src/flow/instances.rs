//! Instances of one task that are activated but have not ended.

use super::lineage::{Carry, Window};
use super::sources::Waiting;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;

/// Most instances over which numbers are unique.
const MOST_LIVE: u64 = punctual_trace::flow::NUMBERS / 2;

/// An instance.
#[derive(Debug)]
pub struct Instance {
    pub number: u64,
    /// Absent if missing from the trace.
    pub activation: Option<Instant>,
    /// Its start, and the producer that executes it.
    pub start: Option<(Instant, u32)>,
    /// Total busy time of its task at its activation.
    pub busy: Option<Duration>,
    /// For each node of its task, what it has taken so far, until it has read everything.
    pub windows: Vec<Window>,
    pub is_read: bool,
    /// What it passes on after that.
    pub carries: Vec<Carry>,
    /// Instances of sources that wait for its end, with their chains.
    pub waiting: Vec<(usize, Waiting)>,
    /// Nodes of second tasks of chains that it has already put data before.
    pub put: Vec<usize>,
}

/// Live instances in order of their numbers. Their memory is reused.
#[derive(Debug, Default)]
pub struct Live {
    instances: VecDeque<Instance>,
    spare: Vec<Instance>,
}

impl Live {
    fn place(&self, number: u64) -> Result<usize, usize> {
        // Usually there is one, or it is the last.
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

    /// Adds an empty instance; `None` if the number is taken.
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

    /// Whether an instance with a lower number has not started.
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

    /// Keeps the memory of a removed instance for reuse.
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

    /// Removes an instance so old that its number could mean another.
    pub fn remove_stale(&mut self) -> Option<Instance> {
        let (first, last) = (self.instances.front()?, self.instances.back()?);
        if last.number - first.number >= MOST_LIVE { self.instances.pop_front() } else { None }
    }

    /// Removes any instance, oldest first.
    pub fn remove_any(&mut self) -> Option<Instance> {
        self.instances.pop_front()
    }
}
