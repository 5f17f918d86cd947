//! Events of a program that runs, in the order in which a reader of its trace would give them.
//!
//! They come in order of each producer, and of all producers nearly. What is certain to be complete is given
//! by [`Events::until`]; whatever comes for a time before that is refused, since its place has passed.

use super::event::NOTES;
use super::header::Raw;
use super::merge::{Clock, Merge, Stream};
use super::notes::{self, Note};
use super::stream::Head;
use super::{Item, Kind, NUMBERS};
use std::collections::VecDeque;
use std::convert::Infallible;

/// Puts events in order. Memory is that of the events which have not been given.
pub struct Events {
    streams: Vec<Queue>,
    merge: Merge,
    /// Everything before was given.
    until: u64,
}

/// What one producer wrote that has not been given.
struct Queue {
    producer: u32,
    events: VecDeque<(u64, Raw)>,
    head: Head,
    last: u64,
    /// Events from here on are not given yet.
    until: u64,
}

impl Stream for Queue {
    type Error = Infallible;

    fn head(&self) -> &Head {
        &self.head
    }

    #[inline]
    fn advance(&mut self) -> Result<(), Infallible> {
        self.head = Head::End;
        if self.events.front().is_some_and(|(tick, _)| *tick < self.until) {
            if let Some((tick, raw)) = self.events.pop_front() {
                self.last = tick;
                self.head = Head::Event { tick, raw };
            }
        }
        Ok(())
    }

    fn producer(&self) -> u32 {
        self.producer
    }

    fn tick(&self) -> u64 {
        self.last
    }

    fn offset(&self) -> u64 {
        0
    }
}

impl Default for Events {
    fn default() -> Events {
        // CLOCK_MONOTONIC; a program may have barriers.
        Events { streams: Vec::new(), merge: Merge::new(Clock { frequency: 1_000_000_000 }, true), until: 0 }
    }
}

impl Events {
    /// Another producer; its number.
    pub fn add_producer(&mut self) -> usize {
        let number = self.streams.len();
        let producer = u32::try_from(number).unwrap_or(u32::MAX);
        self.streams.push(Queue { producer, events: VecDeque::new(), head: Head::End, last: 0, until: 0 });
        number
    }

    /// Takes an event, in nanoseconds. False if it comes too late, or before an earlier one of its producer.
    pub fn event(&mut self, producer: usize, tick: u64, kind: Kind, object: u16, number: u64) -> bool {
        let Some(stream) = self.streams.get_mut(producer) else { return false };
        let least = stream.events.back().map_or(stream.last, |(tick, _)| *tick).max(self.until);
        let is_in_time = tick >= least && tick < u64::MAX;
        if is_in_time {
            let raw = Raw { low: tick as u32, kind, number: (number % NUMBERS) as u16, object };
            stream.events.push_back((tick, raw));
        }
        is_in_time
    }

    /// Takes that a barrier's count is another from here on; false as for [`Events::event`].
    pub fn count(&mut self, producer: usize, tick: u64, channel: u16, count: u32) -> bool {
        let mut parts = notes::numbers(Note::Count { channel, count }).into_iter();
        parts.all(|number| self.event(producer, tick, Kind::Push, NOTES, number))
    }

    /// Gives everything before this time.
    pub fn until(&mut self, tick: u64, each: &mut impl FnMut(Item)) {
        self.until = self.until.max(tick);
        for stream in &mut self.streams {
            stream.until = self.until;
            let Ok(()) = stream.advance();
        }
        let Ok(()) = self.merge.run(&mut self.streams, each, &mut |_| {});
    }
}
