//! Messages on their way, by what identifies them: time stamp, slot of a ring buffer, address, or number of a
//! request. How many are kept is limited.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// Messages of a topic that are kept for those who will take them.
const MOST_STAMPS: usize = 1 << 12;
const MOST_REQUESTS: usize = 1 << 14;
const MOST_ADDRESSES: usize = 1 << 14;
const MOST_SLOTS: usize = 1 << 18;
/// Longest time from a publication's event to its time stamp, in nanoseconds; it takes microseconds.
const LONGEST_WRITE: i64 = 10_000_000;
/// Topics with messages.
const MOST_TOPICS: usize = 1 << 16;

/// Which message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The push with this number.
    Number(u64),
    NotSeen,
}

/// A map of limited size: the oldest entry goes first.
#[derive(Debug)]
struct Recent<K, V> {
    map: FxHashMap<K, V>,
    order: VecDeque<K>,
    most: usize,
}

impl<K: Hash + Eq + Copy, V: Copy> Recent<K, V> {
    fn new(most: usize) -> Recent<K, V> {
        Recent { map: FxHashMap::default(), order: VecDeque::new(), most }
    }

    /// The value before, if there was one.
    fn put(&mut self, key: K, value: V) -> Option<V> {
        let before = self.map.insert(key, value);
        if before.is_none() {
            self.order.push_back(key);
            if self.order.len() > self.most {
                if let Some(oldest) = self.order.pop_front() {
                    self.map.remove(&oldest);
                }
            }
        }
        before
    }

    #[inline]
    fn get(&self, key: &K) -> Option<V> {
        self.map.get(key).copied()
    }
}

/// An object in a process.
type Address = (u32, u64);
/// A slot of a ring buffer in a process.
type Slot = (u32, u64, u64);
/// A client, and its number of the request.
type RequestId = ([u8; 16], u64);

/// Everything on its way.
#[derive(Debug)]
pub struct Messages {
    stamps: FxHashMap<usize, Recent<u64, Sent>>,
    /// By topic, in order: when messages without a time stamp were sent, on the clock of time stamps.
    unstamped: FxHashMap<usize, VecDeque<(i64, u64)>>,
    requests: Recent<RequestId, u64>,
    responses: Recent<RequestId, u64>,
    addresses: Recent<Address, (usize, u64)>,
    slots: Recent<Slot, Option<(usize, u64)>>,
}

impl Default for Messages {
    fn default() -> Messages {
        Messages {
            stamps: FxHashMap::default(),
            unstamped: FxHashMap::default(),
            requests: Recent::new(MOST_REQUESTS),
            responses: Recent::new(MOST_REQUESTS),
            addresses: Recent::new(MOST_ADDRESSES),
            slots: Recent::new(MOST_SLOTS),
        }
    }
}

impl Messages {
    /// A push got a time stamp. Two with the same cannot be told apart.
    pub fn stamp(&mut self, topic: usize, stamp: u64, number: u64) {
        if self.stamps.len() >= MOST_TOPICS && !self.stamps.contains_key(&topic) {
            return;
        }
        let recent = self.stamps.entry(topic).or_insert_with(|| Recent::new(MOST_STAMPS));
        if recent.put(stamp, Sent::Number(number)).is_some() {
            recent.map.insert(stamp, Sent::NotSeen);
        }
    }

    #[inline]
    pub fn stamped(&self, topic: usize, stamp: u64) -> Sent {
        self.stamps.get(&topic).and_then(|recent| recent.get(&stamp)).unwrap_or(Sent::NotSeen)
    }

    /// A push had no time stamp.
    pub fn sent(&mut self, topic: usize, at: i64, number: u64) {
        if self.unstamped.len() < MOST_TOPICS || self.unstamped.contains_key(&topic) {
            let recent = self.unstamped.entry(topic).or_default();
            recent.push_back((at, number));
            if recent.len() > MOST_STAMPS {
                recent.pop_front();
            }
        }
    }

    /// The push that this time stamp probably belongs to: the last one before.
    pub fn likely(&self, topic: usize, stamp: i64) -> Sent {
        let recent = self.unstamped.get(&topic);
        let last = recent.and_then(|sent| {
            let count = sent.partition_point(|(at, _)| *at <= stamp);
            sent.get(count.checked_sub(1)?)
        });
        let is_near = |(at, _): &&(i64, u64)| stamp - at <= LONGEST_WRITE;
        last.filter(is_near).map_or(Sent::NotSeen, |(_, number)| Sent::Number(*number))
    }

    pub fn at(&mut self, address: Address, topic: usize, number: u64) {
        if address.1 != 0 {
            self.addresses.put(address, (topic, number));
        }
    }

    pub fn copy(&mut self, from: Address, to: Address) {
        if let Some(message) = self.addresses.get(&from) {
            self.addresses.put(to, message);
        }
    }

    pub fn at_address(&self, address: Address) -> Sent {
        number(self.addresses.get(&address))
    }

    pub fn put_in_ring(&mut self, slot: Slot, message: Option<(usize, u64)>) {
        self.slots.put(slot, message);
    }

    pub fn in_ring(&self, slot: Slot) -> Sent {
        number(self.slots.get(&slot).flatten())
    }

    pub fn sent_request(&mut self, id: RequestId, number: u64) {
        self.requests.put(id, number);
    }

    pub fn request(&self, id: RequestId) -> Sent {
        self.requests.get(&id).map_or(Sent::NotSeen, Sent::Number)
    }

    pub fn sent_response(&mut self, id: RequestId, number: u64) {
        self.responses.put(id, number);
    }

    pub fn response(&self, id: RequestId) -> Sent {
        self.responses.get(&id).map_or(Sent::NotSeen, Sent::Number)
    }
}

fn number(message: Option<(usize, u64)>) -> Sent {
    message.map_or(Sent::NotSeen, |(_, number)| Sent::Number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_until_too_many_have_come() {
        let mut messages = Messages::default();
        (0..=MOST_STAMPS as u64).for_each(|number| messages.stamp(3, 100 + number, number));
        assert_eq!(messages.stamped(3, 100), Sent::NotSeen);
        assert_eq!(messages.stamped(3, 101), Sent::Number(1));
        assert_eq!(messages.stamped(4, 101), Sent::NotSeen);
        messages.stamp(3, 101, 9);
        assert_eq!(messages.stamped(3, 101), Sent::NotSeen, "two messages have that stamp");
        messages.at((1, 0x10), 3, 5);
        messages.copy((1, 0x10), (1, 0x20));
        assert_eq!(
            (messages.at_address((1, 0x20)), messages.at_address((2, 0x20))),
            (Sent::Number(5), Sent::NotSeen)
        );
        messages.put_in_ring((1, 2, 3), Some((3, 6)));
        assert_eq!(messages.in_ring((1, 2, 3)), Sent::Number(6));
        messages.put_in_ring((1, 2, 3), None);
        assert_eq!(messages.in_ring((1, 2, 3)), Sent::NotSeen);
    }
}
