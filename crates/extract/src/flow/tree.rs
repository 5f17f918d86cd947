//! All chains as one forest: chains that begin alike share nodes.

use super::Graph;
use super::chains::Chains;
use super::inputs::{Inputs, Place};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A task at its place in one or more chains.
#[derive(Debug)]
pub struct Node {
    pub task: u16,
    pub parent: Option<usize>,
    /// The chain that ends here.
    pub chain: Option<usize>,
    /// For the second task of chains: the chains through it. A source's instance joins them when it pushes to
    /// it.
    pub chains: Vec<usize>,
    /// Its index among its task's nodes.
    pub slot: usize,
}

/// Where a push of a task leads.
#[derive(Debug)]
pub struct Way {
    pub channel: u16,
    /// The pushing task's slot.
    pub from_slot: usize,
    /// The node after the channel, and where its task's input keeps data.
    pub node: usize,
    pub place: Place,
}

#[derive(Debug, Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
    /// By task: its nodes, and where its pushes lead.
    pub of_task: BTreeMap<u16, Vec<usize>>,
    pub ways: BTreeMap<u16, Vec<Way>>,
    /// By channel: all nodes after it, and where their inputs keep data.
    pub behind: BTreeMap<u16, Vec<(usize, Place)>>,
    /// By channel: the nodes that read its newest value, and from which register.
    pub registers: FxHashMap<u16, Vec<(usize, usize)>>,
}

impl Tree {
    pub fn new(graph: &Graph, chains: &Chains, inputs: &BTreeMap<u16, Inputs>) -> Tree {
        let mut tree = Tree::default();
        let mut children: BTreeMap<(Option<usize>, u16), usize> = BTreeMap::new();
        for (chain, tasks) in chains.chains.iter().enumerate() {
            let mut at = None;
            for (depth, task) in tasks.iter().enumerate() {
                let node = match children.get(&(at, *task)) {
                    Some(node) => *node,
                    None => {
                        let node = tree.add(graph, inputs, at, *task);
                        children.insert((at, *task), node);
                        node
                    }
                };
                if depth == 1 {
                    tree.nodes[node].chains.push(chain);
                }
                at = Some(node);
            }
            if let Some(node) = at {
                tree.nodes[node].chain = Some(chain);
            }
        }
        // Everything its task reads, even from tasks not known to push there.
        for (index, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_some()) {
            for (channel, places) in inputs.get(&node.task).into_iter().flat_map(|inputs| &inputs.by_channel)
            {
                tree.behind.entry(*channel).or_default().extend(places.iter().map(|place| (index, *place)));
                for place in places {
                    if let Place::Newest(register) = place {
                        tree.registers.entry(*channel).or_default().push((index, *register));
                    }
                }
            }
        }
        tree
    }

    fn add(
        &mut self,
        graph: &Graph,
        inputs: &BTreeMap<u16, Inputs>,
        parent: Option<usize>,
        task: u16,
    ) -> usize {
        let node = self.nodes.len();
        let of_task = self.of_task.entry(task).or_default();
        self.nodes.push(Node { task, parent, chain: None, chains: Vec::new(), slot: of_task.len() });
        of_task.push(node);
        if let Some(parent) = parent {
            let Node { task: from, slot, .. } = self.nodes[parent];
            for channel in graph.channels_between(from, task) {
                let places = inputs
                    .get(&task)
                    .and_then(|inputs| inputs.by_channel.get(channel))
                    .map_or(&[][..], Vec::as_slice);
                let ways = self.ways.entry(from).or_default();
                ways.extend(places.iter().map(|place| Way {
                    channel: *channel,
                    from_slot: slot,
                    node,
                    place: *place,
                }));
            }
        }
        node
    }
}
