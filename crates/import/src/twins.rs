//! Events that several buffers of ftrace have (`trace-cmd record -B`): the kernel writes an event into every
//! buffer that asks for it, and it counts once.

use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::Hasher;

/// The same event is in two buffers within this time, unless an interrupt comes between.
const TOGETHER: u64 = 100_000;

/// Events of a processor that may come between.
const BETWEEN: usize = 32;

/// An event that may come again in another buffer.
struct Recent {
    at: u64,
    hash: u64,
    /// Those that have had it.
    buffers: Vec<usize>,
}

/// Finds the events that are in several buffers.
pub struct Twins {
    /// Of each processor; `None` if there is one buffer only.
    recent: Option<FxHashMap<u32, VecDeque<Recent>>>,
}

impl Twins {
    /// `are_possible` if there are several buffers.
    pub fn new(are_possible: bool) -> Twins {
        Twins { recent: are_possible.then(FxHashMap::default) }
    }

    /// Whether another buffer has had this event.
    pub fn is_twin(&mut self, buffer: usize, cpu: u32, at: u64, bytes: &[u8]) -> bool {
        let Some(recent) = &mut self.recent else { return false };
        let recent = recent.entry(cpu).or_default();
        while recent.len() >= BETWEEN || recent.front().is_some_and(|it| it.at.abs_diff(at) > TOGETHER) {
            recent.pop_front();
        }
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        let hash = hasher.finish();
        let twin = recent.iter_mut().find(|it| it.hash == hash && !it.buffers.contains(&buffer));
        match twin {
            Some(twin) => twin.buffers.push(buffer),
            None => {
                recent.push_back(Recent { at, hash, buffers: vec![buffer] });
                return false;
            }
        }
        true
    }
}
