//! By how much latencies may be wrong where the trace does not say how inputs buffer data: the same analysis,
//! if all of these are queues, and if all keep the newest datum.

use super::graph::Graph;
use punctual_model::dataflow::{Alternative, Channel, Dataflow, Keeps};
use punctual_trace::flow::{Arming, Connection};

/// A graph in which inputs of unknown kind buffer data in one way.
#[derive(Clone, Debug)]
pub struct Assumed {
    /// The way.
    pub keeps: Keeps,
    /// The graph.
    pub graph: Graph,
}

impl Graph {
    /// The graphs to analyse beside this one: none if it says how all inputs between tasks buffer data.
    pub fn assumed(&self) -> Vec<Assumed> {
        let unknown = self.unknown_inputs();
        if unknown.is_empty() {
            return Vec::new();
        }
        let assume = |keeps| {
            let arming = Arming { synchronised: keeps == Keeps::Queue, ..Arming::default() };
            let mut graph = self.clone();
            graph.armings.extend(unknown.iter().map(|connection| (*connection, vec![arming])));
            Assumed { keeps, graph }
        };
        [Keeps::Queue, Keeps::Newest].map(assume).into()
    }

    /// Inputs that get data of tasks and do not say how they buffer them. A barrier holds no datum, so its
    /// inputs are not among them: who reads it has read all of the round.
    fn unknown_inputs(&self) -> Vec<Connection> {
        let mut unknown = Vec::new();
        for (channel, tasks) in &self.activates {
            if self.barriers.contains_key(channel) || !self.has_maker(*channel) {
                continue;
            }
            let connections = tasks.keys().map(|task| Connection { channel: *channel, task: *task });
            let is_known = |it: &Connection| self.armings.get(it).is_some_and(|armings| !armings.is_empty());
            unknown.extend(connections.filter(|it| !is_known(it)));
        }
        unknown
    }
}

impl Assumed {
    /// Puts what an analysis of this graph found beside the results of the graph as it is, for the chains
    /// through inputs of unknown kind.
    pub fn put_beside(&self, flow: &mut Dataflow, other: Dataflow) {
        let unknown = flow.unknown_inputs();
        let leads = |from: &str, to: &str| {
            let is_between = |channel: &Channel| {
                channel.pushed_by.iter().any(|by| by.task == from)
                    && unknown.contains(&(channel.name.as_str(), to))
            };
            flow.channels.iter().any(is_between)
        };
        let is_meant: Vec<bool> = flow
            .chains
            .iter()
            .map(|chain| chain.tasks.windows(2).any(|pair| leads(&pair[0], &pair[1])))
            .collect();
        let chains = flow.chains.iter_mut().zip(other.chains).zip(is_meant);
        for ((chain, other), _) in chains.filter(|(_, is_meant)| *is_meant) {
            for (latency, other) in [(&mut chain.reaction, other.reaction), (&mut chain.age, other.age)] {
                let Some(latency) = latency else { continue };
                let distribution = other.map(|latency| latency.distribution);
                latency.alternatives.push(Alternative { keeps: self.keeps, distribution });
            }
        }
    }
}
