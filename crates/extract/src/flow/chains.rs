//! Finds the chains: those asked for, or all paths from sources to sinks.
//!
//! With feedback, a path visits each task once, and a source or sink may be a whole cycle: one that nothing
//! outside leads to, or that leads to nothing outside.

use super::Graph;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Most paths from sources to sinks that are listed.
pub const MOST_CHAINS: usize = 256;
/// Most tasks of a chain.
pub const MOST_TASKS: usize = 1_024;
/// Most steps of the search, which cycles could make endless.
const MOST_STEPS: usize = 1 << 20;

/// Chains of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// Each with two or more tasks, by number.
    pub(super) chains: Vec<Vec<u16>>,
    /// Whether there are too many paths from sources to sinks; then none is listed.
    pub is_too_many: bool,
}

/// Why a requested chain does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// There is no such task.
    NoSuchTask {
        /// The requested name.
        name: String,
        /// The existing tasks.
        tasks: Vec<String>,
    },
    /// No data of a task activates the next.
    NotConnected {
        /// The task.
        from: String,
        /// The next.
        to: String,
        /// Tasks that its data activate.
        instead: Vec<String>,
    },
    /// No data of a task reaches the other.
    NoPath {
        /// The first task.
        from: String,
        /// The last.
        to: String,
    },
    /// There are too many paths between two tasks.
    TooMany {
        /// The first task.
        from: String,
        /// The last.
        to: String,
    },
    /// It has fewer than two tasks, or too many.
    Length(usize),
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |names: &[String]| {
            const MOST: usize = 20;
            let more =
                if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
            names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ") + &more
        };
        match self {
            ChainError::NoSuchTask { name, tasks } if tasks.is_empty() => {
                write!(f, "there is no task {name}, nor any other")
            }
            ChainError::NoSuchTask { name, tasks } => {
                write!(f, "there is no task {name}; there are {}", some(tasks))
            }
            ChainError::NotConnected { from, to, instead } => {
                write!(
                    f,
                    "{from} and {to} are not connected: {from} pushes on no channel that activates {to}"
                )?;
                match instead.is_empty() {
                    true => write!(f, ", nor any other task"),
                    false => write!(f, "; after {from} can come {}", some(instead)),
                }
            }
            ChainError::NoPath { from, to } => {
                write!(
                    f,
                    "no data of {from} are seen to reach {to}: no path of channels and tasks leads to it"
                )
            }
            ChainError::TooMany { from, to } => {
                write!(
                    f,
                    "there are more than {MOST_CHAINS} paths from {from} to {to}; name one, task by task"
                )
            }
            ChainError::Length(1) => write!(f, "a chain has at least two tasks, separated by commas"),
            ChainError::Length(tasks) => write!(f, "a chain has 2 to {MOST_TASKS} tasks, and not {tasks}"),
        }
    }
}

impl std::error::Error for ChainError {}

impl Chains {
    /// Every path from a source to a sink.
    pub fn all(graph: &Graph) -> Chains {
        let mut search = Search { components: components(graph), graph, found: Vec::new(), steps: 0 };
        let is_complete = search.sources().into_iter().all(|source| search.extend(&mut vec![source]));
        let chains = if is_complete { search.found } else { Vec::new() };
        Chains { chains, is_too_many: !is_complete }
    }

    /// Chains of these tasks, by name.
    pub fn given<S: AsRef<str>>(graph: &Graph, chains: &[Vec<S>]) -> Result<Chains, ChainError> {
        let chain = |names: &Vec<S>| {
            let tasks = names
                .iter()
                .map(|name| graph.task(name.as_ref()))
                .collect::<Result<Vec<u16>, ChainError>>()?;
            if !(2..=MOST_TASKS).contains(&tasks.len()) {
                return Err(ChainError::Length(tasks.len()));
            }
            match tasks.windows(2).find(|pair| graph.channels_between(pair[0], pair[1]).is_empty()) {
                Some(pair) => Err(ChainError::NotConnected {
                    from: graph.task_names[&pair[0]].clone(),
                    to: graph.task_names[&pair[1]].clone(),
                    instead: graph
                        .successors(pair[0])
                        .map(|(task, _)| graph.task_names[&task].clone())
                        .collect(),
                }),
                None => Ok(tasks),
            }
        };
        let mut found: Vec<Vec<u16>> = Vec::new();
        for names in chains {
            let chain = chain(names)?;
            if !found.contains(&chain) {
                found.push(chain);
            }
        }
        Ok(Chains { chains: found, is_too_many: false })
    }

    /// Every path between two tasks of these names. Fails as [`Chains::given`] does, and if there is none or
    /// too many.
    pub fn between(graph: &Graph, first: &str, last: &str) -> Result<Vec<Vec<String>>, ChainError> {
        let (from, to) = (graph.task(first)?, graph.task(last)?);
        let mut search = Search { components: BTreeMap::new(), graph, found: Vec::new(), steps: 0 };
        let is_complete = search.extend_to(&mut vec![from], Some(to));
        let names = |chain: &Vec<u16>| chain.iter().map(|task| graph.task_names[task].clone()).collect();
        match (is_complete, search.found.is_empty()) {
            (true, false) => Ok(search.found.iter().map(names).collect()),
            (true, true) => Err(ChainError::NoPath { from: first.to_owned(), to: last.to_owned() }),
            (false, _) => Err(ChainError::TooMany { from: first.to_owned(), to: last.to_owned() }),
        }
    }

    /// The tasks of each chain, by number.
    pub fn numbers(&self) -> &[Vec<u16>] {
        &self.chains
    }

    /// Number of chains.
    pub fn len(&self) -> usize {
        self.chains.len()
    }

    /// Whether there are no chains.
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }
}

impl Graph {
    /// The task of this name.
    fn task(&self, name: &str) -> Result<u16, ChainError> {
        let found =
            self.task_names.iter().find(|(_, known)| known.as_str() == name).map(|(number, _)| *number);
        found.ok_or_else(|| ChainError::NoSuchTask {
            name: name.to_owned(),
            tasks: self.task_names.values().cloned().collect(),
        })
    }
}

/// The strongly connected component of each task: tasks that lead to each other.
fn components(graph: &Graph) -> BTreeMap<u16, usize> {
    // Kosaraju's two searches, without recursion: a chain of 65,536 tasks must not overflow the stack.
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for task in graph.task_names.keys() {
        let mut stack = vec![(*task, false)];
        while let Some((task, is_done)) = stack.pop() {
            if is_done {
                order.push(task);
            } else if seen.insert(task) {
                stack.push((task, true));
                stack.extend(
                    graph
                        .successors(task)
                        .map(|(next, _)| (next, false))
                        .filter(|(next, _)| !seen.contains(next)),
                );
            }
        }
    }
    let mut predecessors: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for task in graph.task_names.keys() {
        graph.successors(*task).for_each(|(next, _)| predecessors.entry(next).or_default().push(*task));
    }
    let mut components = BTreeMap::new();
    let mut number = 0;
    for task in order.into_iter().rev().filter(|task| graph.task_names.contains_key(task)) {
        let mut stack = vec![task];
        let before = components.len();
        while let Some(task) = stack.pop() {
            if let Entry::Vacant(entry) = components.entry(task) {
                entry.insert(number);
                stack.extend(predecessors.get(&task).into_iter().flatten());
            }
        }
        number += usize::from(components.len() > before);
    }
    components
}

/// Searches for paths, depth first.
struct Search<'a> {
    graph: &'a Graph,
    components: BTreeMap<u16, usize>,
    found: Vec<Vec<u16>>,
    steps: usize,
}

impl Search<'_> {
    /// Tasks in components that no other leads to: of a cycle those activated from outside, else the first.
    fn sources(&self) -> Vec<u16> {
        let mut led_to = BTreeSet::new();
        for task in self.graph.task_names.keys() {
            led_to.extend(
                self.graph
                    .successors(*task)
                    .map(|(next, _)| next)
                    .filter(|next| self.leaves(*task, *next))
                    .map(|next| self.components[&next]),
            );
        }
        let mut by_component: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        for (task, component) in &self.components {
            if !led_to.contains(component) {
                by_component.entry(*component).or_default().push(*task);
            }
        }
        let mut sources: Vec<u16> = Vec::new();
        for tasks in by_component.values() {
            let stimulated = tasks.iter().filter(|task| self.graph.stimulated.contains(task));
            let before = sources.len();
            sources.extend(stimulated);
            if sources.len() == before {
                sources.extend(tasks.first());
            }
        }
        sources.sort_unstable();
        sources
    }

    fn leaves(&self, from: u16, to: u16) -> bool {
        self.components[&from] != self.components[&to]
    }

    /// Lists all paths with this beginning; false if there are too many.
    fn extend(&mut self, path: &mut Vec<u16>) -> bool {
        self.extend_to(path, None)
    }

    /// The same for paths to a task.
    fn extend_to(&mut self, path: &mut Vec<u16>, to: Option<u16>) -> bool {
        // One iterator per task of the path, so that its length does not overflow the stack.
        let mut open: Vec<Vec<u16>> = Vec::new();
        loop {
            if open.len() < path.len() {
                self.steps += 1;
                let last = path[path.len() - 1];
                // The least comes last, so that it is taken first.
                let mut nexts: Vec<u16> = self
                    .graph
                    .successors(last)
                    .map(|(next, _)| next)
                    .filter(|next| !path.contains(next))
                    .collect();
                nexts.reverse();
                let is_end = match to {
                    Some(to) => to == last,
                    None => nexts.is_empty() && self.is_last(last),
                };
                if is_end && path.len() >= 2 {
                    self.found.push(path.clone());
                }
                if to == Some(last) {
                    nexts.clear();
                }
                open.push(nexts);
            }
            if self.found.len() > MOST_CHAINS || self.steps > MOST_STEPS || path.len() > MOST_TASKS {
                return false;
            }
            match open.last_mut().and_then(Vec::pop) {
                Some(next) => path.push(next),
                None => {
                    open.pop();
                    path.pop();
                    if path.is_empty() {
                        return true;
                    }
                }
            }
        }
    }

    /// Whether nothing in this task's component leads out of it.
    fn is_last(&self, task: u16) -> bool {
        let component = self.components[&task];
        let same = self.components.iter().filter(|(_, other)| **other == component).map(|(task, _)| *task);
        !same.into_iter().any(|task| self.graph.successors(task).any(|(next, _)| self.leaves(task, next)))
    }
}
