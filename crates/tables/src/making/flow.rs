//! Maximum flow: Dinic's algorithm (1970) on integers.
//!
//! Own code, because the implementations of the well-kept crates clear or search the whole network for every
//! augmenting path (`petgraph` 0.8.3, `pathfinding` 4): networks of tables have a hundred thousand edges and
//! as many paths.

use std::collections::VecDeque;

/// A directed network with capacities.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Edge 2k and its reverse 2k + 1.
    edges: Vec<Edge>,
    /// Edges from each node.
    nodes: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: usize,
    /// What can still flow.
    residual: u64,
}

const UNREACHED: u32 = u32::MAX;

impl Network {
    pub(super) fn node(&mut self) -> usize {
        self.nodes.push(Vec::new());
        self.nodes.len() - 1
    }

    /// An edge; returns its number.
    pub(super) fn edge(&mut self, from: usize, to: usize, capacity: u64) -> usize {
        let number = self.edges.len();
        self.edges.push(Edge { to, residual: capacity });
        self.edges.push(Edge { to: from, residual: 0 });
        self.nodes[from].push(number);
        self.nodes[to].push(number + 1);
        number
    }

    /// What flows through an edge.
    pub(super) fn flow(&self, edge: usize) -> u64 {
        self.edges[edge + 1].residual
    }

    /// Makes the flow from source to sink as great as it can be; returns it.
    pub(super) fn maximise(&mut self, source: usize, sink: usize) -> u64 {
        let mut flow = 0;
        loop {
            let mut levels = self.levels(source);
            if levels[sink] == UNREACHED {
                return flow;
            }
            flow += self.block(source, sink, &mut levels);
        }
    }

    /// Nodes that more could flow to from `starts`, but for `barred` and what is behind it.
    pub(super) fn reachable(&self, starts: &[usize], barred: Option<usize>) -> Vec<bool> {
        let mut levels = vec![UNREACHED; self.nodes.len()];
        if let Some(barred) = barred {
            levels[barred] = 0;
        }
        let levels = self.spread(starts, levels);
        (0..levels.len()).map(|node| levels[node] != UNREACHED && Some(node) != barred).collect()
    }

    fn levels(&self, source: usize) -> Vec<u32> {
        self.spread(&[source], vec![UNREACHED; self.nodes.len()])
    }

    /// How many edges each node is away; those that have a level already are passed over.
    fn spread(&self, starts: &[usize], mut levels: Vec<u32>) -> Vec<u32> {
        starts.iter().for_each(|&start| levels[start] = 0);
        let mut queue: VecDeque<usize> = starts.iter().copied().collect();
        while let Some(node) = queue.pop_front() {
            for &edge in &self.nodes[node] {
                let Edge { to, residual } = self.edges[edge];
                if residual > 0 && levels[to] == UNREACHED {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
            }
        }
        levels
    }

    /// Augments along shortest paths until none is left.
    fn block(&mut self, source: usize, sink: usize, levels: &mut [u32]) -> u64 {
        let mut next = vec![0; self.nodes.len()];
        let mut path: Vec<usize> = Vec::new();
        let (mut node, mut flow) = (source, 0);
        loop {
            if node == sink {
                flow += self.augment(&mut path);
            } else if let Some(edge) = self.advance(node, &mut next, levels) {
                path.push(edge);
            } else if let Some(edge) = path.pop() {
                // Nothing leads on from here.
                levels[node] = UNREACHED;
                node = self.edges[edge ^ 1].to;
                continue;
            } else {
                return flow;
            }
            node = path.last().map_or(source, |&edge| self.edges[edge].to);
        }
    }

    fn advance(&self, node: usize, next: &mut [usize], levels: &[u32]) -> Option<usize> {
        while let Some(&edge) = self.nodes[node].get(next[node]) {
            let Edge { to, residual } = self.edges[edge];
            if residual > 0 && levels[to] != UNREACHED && levels[to] == levels[node] + 1 {
                return Some(edge);
            }
            next[node] += 1;
        }
        None
    }

    /// Fills a path; leaves of it what is before the first full edge.
    fn augment(&mut self, path: &mut Vec<usize>) -> u64 {
        let flow = path.iter().map(|&edge| self.edges[edge].residual).min().unwrap_or(0);
        for &edge in path.iter() {
            self.edges[edge].residual -= flow;
            self.edges[edge ^ 1].residual += flow;
        }
        let full = path.iter().position(|&edge| self.edges[edge].residual == 0);
        path.truncate(full.unwrap_or(0));
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CLRS, Figure 26.6.
    #[test]
    fn the_textbook_network_has_a_flow_of_23() {
        let mut network = Network::default();
        for _ in 0..6 {
            network.node();
        }
        let edges = [
            (0, 1, 16),
            (0, 2, 13),
            (2, 1, 4),
            (1, 3, 12),
            (3, 2, 9),
            (2, 4, 14),
            (4, 3, 7),
            (3, 5, 20),
            (4, 5, 4),
        ];
        let numbers: Vec<usize> =
            edges.iter().map(|&(from, to, capacity)| network.edge(from, to, capacity)).collect();
        assert_eq!(network.maximise(0, 5), 23);
        for (&edge, &(_, _, capacity)) in numbers.iter().zip(&edges) {
            assert!(network.flow(edge) <= capacity);
        }
        // The cut: {0, 1, 2, 4} and {3, 5}.
        assert_eq!(network.reachable(&[0], None), [true, true, true, false, true, false]);
    }
}
