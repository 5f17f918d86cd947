//! Which pushes may be missing from the trace: a datum that one of them could have replaced is unknown.

use super::graph::Graph;
use punctual_model::Instant;
use punctual_trace::flow::Gap;
use std::collections::BTreeMap;

/// What is missing so far.
#[derive(Debug)]
pub struct Losses {
    /// By node of the tree: the pushes that lead to its task.
    nodes: Vec<Pushes>,
    /// Events of some producer may be missing up to here.
    gap_until: Option<Instant>,
    /// A stream has ended early: anything may be missing from here on.
    pub is_cut: bool,
}

impl Losses {
    /// For nodes of these tasks.
    pub fn new(graph: &Graph, tasks: impl Iterator<Item = u16>) -> Losses {
        let pushes = Pushes::by_task(graph);
        Losses { nodes: tasks.map(pushes).collect(), gap_until: None, is_cut: false }
    }

    pub fn gap(&mut self, gap: &Gap) {
        self.gap_until = self.gap_until.max(Some(gap.until));
        self.is_cut |= gap.until.ns() == u64::MAX;
    }

    /// Whether anything is missing so far.
    pub fn is_any(&self) -> bool {
        self.gap_until.is_some() || self.is_cut
    }

    /// Whether events since then may be missing.
    pub fn reach(&self, since: Instant) -> bool {
        self.is_cut || self.gap_until.is_some_and(|until| until >= since)
    }

    /// Whether a push to this node may be missing, between `since` and `at`.
    pub fn may_hide_push(&self, node: usize, since: Instant, at: Instant) -> bool {
        let pushes = self.nodes[node];
        self.is_cut
            || self.gap_until.is_some_and(|until| until >= since)
                && (pushes.are_missing || at > pushes.last_known)
    }
}

/// What the numbers of pushes say of those that are missing.
#[derive(Clone, Copy, Debug)]
struct Pushes {
    /// Some are.
    are_missing: bool,
    /// Whether any are missing after the last known one cannot be told from numbers.
    last_known: Instant,
}

impl Pushes {
    /// Of all channels that a task may read.
    fn by_task(graph: &Graph) -> impl Fn(u16) -> Pushes {
        let on = |channel: &u16| Pushes {
            are_missing: graph.missing_pushes.contains_key(channel),
            last_known: Instant::from_ns(graph.last_pushes.get(channel).copied().unwrap_or(0)),
        };
        let mut any = Pushes { are_missing: false, last_known: Instant::from_ns(u64::MAX) };
        graph.channel_names.keys().for_each(|channel| any.join(on(channel)));
        let mut known: BTreeMap<u16, Pushes> = BTreeMap::new();
        for (channel, tasks) in &graph.activates {
            tasks.keys().for_each(|task| known.entry(*task).or_insert(on(channel)).join(on(channel)));
        }
        // A program that does not declare all its connections may read any channel.
        let declares = graph.knows_connections();
        move |task| known.get(&task).copied().filter(|_| declares).unwrap_or(any)
    }

    fn join(&mut self, other: Pushes) {
        self.are_missing |= other.are_missing;
        self.last_known = self.last_known.min(other.last_known);
    }
}
