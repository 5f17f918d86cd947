//! What a trace of ROS 2 leaves open: callbacks that others may precede or follow without its showing them.
//!
//! Topics connect callbacks; what is not in the trace may connect them, too: publishers, subscriptions and
//! callbacks that were made before it began, processes that take messages without callbacks, lost events.

use super::follow::Unknown;
use super::graph::{Cause, Graph};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Who took a message with which no callback was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Taker {
    /// A callback, while it ran.
    Callback(usize),
    /// A process, outside any callback.
    Process(u32),
}

impl Taker {
    pub fn callback(self) -> Option<usize> {
        match self {
            Taker::Callback(task) => Some(task),
            Taker::Process(_) => None,
        }
    }
}

/// What was seen of callbacks that matters to it.
#[derive(Debug, Default)]
pub struct Open {
    /// Callbacks, and the topics that they published on.
    pub published: FxHashSet<(usize, usize)>,
    /// Processes, and the topics that they published on outside callbacks.
    pub outside: FxHashSet<(u32, usize)>,
    /// Callbacks that published by unknown publishers.
    pub unknown_publishers: FxHashSet<usize>,
    /// Callbacks whose message nobody published, on topics with other publications or without any.
    pub without_publication: FxHashSet<usize>,
    pub from_outside: FxHashSet<usize>,
    /// Subscriptions, as callbacks that were not called, and who took their messages.
    pub taken: FxHashSet<(usize, Taker)>,
    /// The same of responses, whose handling shows in no event.
    pub responses: FxHashSet<(usize, Taker)>,
    /// Callbacks that responded to clients that are not in the trace.
    pub foreign_responses: FxHashSet<usize>,
    /// Processes in which callbacks ended that had not started.
    pub ended: FxHashSet<u32>,
    pub has_losses: bool,
}

/// Tasks that others may lead to, those that may lead to others, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Ends {
    pub before: BTreeSet<usize>,
    pub behind: BTreeSet<usize>,
    pub why: &'static str,
}

/// Callbacks that others of the same node may precede or follow through variables that nobody declared: all
/// of nodes with several.
pub fn within_nodes(graph: &Graph, tasks: &BTreeMap<usize, String>) -> Option<Ends> {
    let mut by_node: BTreeMap<Option<usize>, BTreeSet<usize>> = BTreeMap::new();
    for task in tasks.keys().filter(|task| graph.has_data(**task)) {
        by_node.entry(graph.tasks[*task].node).or_default().insert(*task);
    }
    let all: BTreeSet<usize> = by_node.into_values().filter(|tasks| tasks.len() > 1).flatten().collect();
    let why = "Callbacks of one node may leave data for each other in variables, which no trace shows \
               (punctual import --variable declares them, or none)";
    (!all.is_empty()).then(|| Ends { before: all.clone(), behind: all, why })
}

impl Open {
    /// All that is open, of tasks that ran.
    pub fn ends(&self, graph: &Graph, unknown: &Unknown, tasks: &BTreeMap<usize, String>) -> Vec<Ends> {
        let all: BTreeSet<usize> = tasks.keys().copied().collect();
        let of = |set: &FxHashSet<usize>| set.iter().copied().collect::<BTreeSet<usize>>();
        let publishing = self.published(|topic| graph.is_of_application(topic));
        let publishing = &publishing | &of(&self.foreign_responses);
        let mut ends = Vec::new();
        let mut add = |why, before: BTreeSet<usize>, behind: BTreeSet<usize>| {
            let (before, behind) = (&before & &all, &behind & &all);
            if !before.is_empty() || !behind.is_empty() {
                ends.push(Ends { before, behind, why });
            }
        };
        if self.has_losses {
            add("Events are missing from the trace", all.clone(), all.clone());
        }
        if !self.unknown_publishers.is_empty() {
            let before = of(&self.from_outside);
            let why = "Callbacks published by publishers or clients whose making is not in the trace";
            add(why, before, of(&self.unknown_publishers));
        }
        let is_unknown = |task: &usize| matches!(graph.tasks[*task].cause, Cause::Unknown(_));
        let callbacks: BTreeSet<usize> = all.iter().copied().filter(is_unknown).collect();
        if !callbacks.is_empty() {
            let behind = &publishing | &callbacks;
            add("Callbacks were called whose making is not in the trace", callbacks, behind);
        } else if unknown.subscriptions > 0 {
            let why = "Messages were taken by subscriptions or clients whose making is not in the trace";
            add(why, BTreeSet::new(), publishing);
        }
        let why = "Messages were taken whose publication is not in the trace";
        add(why, of(&self.without_publication), BTreeSet::new());
        let (before, behind) = self.without_callback(graph);
        add("Messages were taken for which no callback was called", before, behind);
        let before = self.fed_by(graph, &self.ended);
        add("Callbacks ended whose start is not in the trace", before, BTreeSet::new());
        ends
    }

    /// Tasks that published on such topics.
    fn published(&self, is_it: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        self.published.iter().filter(|(_, topic)| is_it(*topic)).map(|(task, _)| *task).collect()
    }

    /// Tasks whose topic one of these processes published on outside callbacks.
    fn fed_by(&self, graph: &Graph, processes: &FxHashSet<u32>) -> BTreeSet<usize> {
        let topics: FxHashSet<usize> =
            self.outside.iter().filter(|(pid, _)| processes.contains(pid)).map(|(_, topic)| *topic).collect();
        let is_fed = |task: &usize| graph.input(*task).is_some_and(|topic| topics.contains(&topic));
        (0..graph.tasks.len()).filter(is_fed).collect()
    }

    /// Who reads otherwise than by callbacks: Python, callbacks that take messages themselves.
    fn without_callback(&self, graph: &Graph) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut before, mut topics) = (BTreeSet::new(), FxHashSet::default());
        let mut processes = FxHashSet::default();
        // A subscription with a callback also takes what has come within the process, and drops it.
        let taken = self.taken.iter().filter(|(task, _)| !graph.tasks[*task].has_run);
        for (task, taker) in taken.chain(&self.responses) {
            let Some(topic) = graph.input(*task).filter(|topic| graph.is_of_application(*topic)) else {
                continue;
            };
            topics.insert(topic);
            match taker {
                Taker::Callback(task) => _ = before.insert(*task),
                Taker::Process(pid) => _ = processes.insert(*pid),
            }
        }
        before.extend(self.fed_by(graph, &processes));
        (before, self.published(|topic| topics.contains(&topic)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::Task;
    use super::*;

    /// A callback that publishes is not taken for a writer; it may be one all the same.
    #[test]
    fn callbacks_of_one_node_may_precede_each_other() {
        let task = |node, cause| Task { node, cause, has_run: true, publishes: true };
        let mut graph = Graph::default();
        graph.nodes = vec!["/fusion".into(), "/imu".into()];
        graph.topics = vec!["/imu".into(), "/parameter_events".into(), "service /imu/get_parameters".into()];
        graph.tasks = vec![
            task(Some(0), Cause::Topic(0)),
            task(Some(0), Cause::Timer(20_000_000)),
            task(Some(1), Cause::Timer(10_000_000)),
            task(Some(1), Cause::Topic(1)),
            task(Some(1), Cause::Service(2)),
        ];
        assert_eq!(graph.default_variables(), []);
        let ends = within_nodes(&graph, &graph.task_names()).expect("two callbacks of a node");
        assert_eq!((ends.before, ends.behind), ([0, 1].into(), [0, 1].into()));
    }
}
