//! What the first pass collects: threads, and the topics and callbacks that are used.

use super::calls::Thread;
use super::follow::{Producer, Step};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Used threads, topics and so on.
#[derive(Debug, Default)]
pub struct Survey {
    /// In order of appearance; and whether they execute callbacks.
    pub producers: Vec<(Producer, bool)>,
    places: FxHashMap<Producer, usize>,
    pub topics: BTreeSet<usize>,
    pub names: FxHashMap<Thread, String>,
}

impl Survey {
    pub fn step(&mut self, producer: Producer, step: Step) {
        let executes = match step {
            Step::Push { topic, .. } => {
                self.topics.insert(topic);
                false
            }
            Step::Activation { .. } | Step::Start { .. } | Step::Stop { .. } => true,
            Step::Lost { .. } => return,
        };
        let place = *self.places.entry(producer).or_insert_with(|| {
            self.producers.push((producer, false));
            self.producers.len() - 1
        });
        self.producers[place].1 |= executes;
    }

    pub fn thread(&mut self, thread: Thread, name: impl FnOnce() -> Option<String>) {
        if !self.names.contains_key(&thread) {
            self.names.extend(name().map(|name| (thread, name)));
        }
    }
}
