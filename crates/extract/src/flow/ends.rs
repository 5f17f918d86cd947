//! Which chains are whole: nothing precedes their first task, nothing follows their last one.
//!
//! Where the graph may lack connections, none is known to be.

use super::graph::{Graph, Maker};
use punctual_trace::flow::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the ends of chains.
#[derive(Debug)]
pub struct Ends {
    /// By task: those that lead to it, and those that it leads to.
    before: BTreeMap<u16, Vec<u16>>,
    behind: BTreeMap<u16, Vec<u16>>,
    /// Tasks that push to a channel whose readers are unknown.
    loose: BTreeSet<u16>,
    /// Tasks and those behind them, where all connections between them are guesses.
    assumed: BTreeSet<(u16, u16)>,
    /// Tasks that unknown ones may lead to, and those that may lead to unknown ones.
    open_before: BTreeSet<u16>,
    open_behind: BTreeSet<u16>,
    knows_connections: bool,
}

impl Ends {
    pub fn new(graph: &Graph) -> Ends {
        let (mut before, mut behind) = (BTreeMap::<u16, Vec<u16>>::new(), BTreeMap::<u16, Vec<u16>>::new());
        let mut assumed = BTreeSet::new();
        for task in graph.task_names.keys() {
            for (next, channels) in graph.successors(*task) {
                let is_guess =
                    |channel: &u16| graph.assumed.contains(&Connection { channel: *channel, task: next });
                if channels.iter().all(is_guess) {
                    assumed.insert((*task, next));
                }
                behind.entry(*task).or_default().push(next);
                before.entry(next).or_default().push(*task);
            }
        }
        Ends {
            before,
            behind,
            loose: loose(graph),
            assumed,
            open_before: graph.openings.iter().flat_map(|it| &it.before).copied().collect(),
            open_behind: graph.openings.iter().flat_map(|it| &it.behind).copied().collect(),
            knows_connections: graph.knows_connections(),
        }
    }

    /// Whether a chain begins where data come into the program, and ends where they leave it. A first or last
    /// task may be part of a cycle.
    pub fn is_end_to_end(&self, chain: &[u16]) -> bool {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return false };
        let is_guess = |pair: &[u16]| self.assumed.contains(&(pair[0], pair[1]));
        self.knows_connections
            && !chain.windows(2).any(is_guess)
            && self.is_source(*first)
            && self.is_sink(*last)
    }

    fn is_source(&self, task: u16) -> bool {
        let behind = reached(&self.behind, task);
        let before = reached(&self.before, task);
        // Whoever reads a channel of unknown readers could be this task.
        before.is_subset(&behind) && self.loose.is_subset(&behind) && self.open_before.is_disjoint(&before)
    }

    fn is_sink(&self, task: u16) -> bool {
        let behind = reached(&self.behind, task);
        behind.is_subset(&reached(&self.before, task))
            && self.loose.is_disjoint(&behind)
            && self.open_behind.is_disjoint(&behind)
    }
}

/// Tasks that push to a barrier that was never complete, so that it has notified nobody.
fn loose(graph: &Graph) -> BTreeSet<u16> {
    let is_silent =
        |channel: &u16| graph.barriers.contains_key(channel) && !graph.activates.contains_key(channel);
    let makers = graph.pushes.iter().filter(|(channel, _)| is_silent(channel)).flat_map(|(_, makers)| makers);
    makers
        .filter_map(|(maker, _)| match maker {
            Maker::Task(task) => Some(*task),
            Maker::Outside | Maker::Unknown => None,
        })
        .collect()
}

/// The task, and all to which the edges lead.
fn reached(edges: &BTreeMap<u16, Vec<u16>>, task: u16) -> BTreeSet<u16> {
    let mut reached = BTreeSet::new();
    let mut stack = vec![task];
    while let Some(next) = stack.pop() {
        if reached.insert(next) {
            stack.extend(edges.get(&next).into_iter().flatten());
        }
    }
    reached
}
