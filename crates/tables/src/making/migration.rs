//! Several processors with migration: jobs are shared out among the intervals between releases and deadlines
//! by a maximum flow (Horn 1974), which finds a schedule if there is one; within an interval by
//! [`super::wrap`].
//!
//! Source → job: its slots. Job → interval: the length, as no job runs on two processors at once. Interval →
//! sink: the length, once for each processor. Where tasks may use some processors only, the processors that
//! the same tasks may use are a class, and each interval has a node for each class. The table is a circle:
//! jobs that exceed it continue at its beginning.

use super::flow::Network;
use super::windows::Windows;
use super::wrap::Amount;
use super::{Problem, Refusal, wrap};
use crate::slot_shifting::Overload;
use punctual_model::{TableJob, TableRun};
use std::collections::BTreeMap;

/// The runs of all jobs.
pub(super) fn schedule(problem: &Problem<'_>, windows: &Windows) -> Result<Vec<TableRun>, Refusal> {
    let jobs = windows.jobs(problem.tasks, problem.slots);
    let classes = classes(problem);
    let cuts = cuts(&jobs, problem.slots);
    let mut graph = Graph::new(&jobs, &classes, &cuts);
    let flow = graph.network.maximise(graph.source, graph.sink);
    if flow < jobs.iter().map(|job| job.slots).sum() {
        return Err(graph.refusal(problem, &jobs, &classes));
    }
    Ok(graph.runs(&jobs, &classes, &cuts))
}

/// The schedule of jobs on processors that all of them may use, until slot `until` or the last deadline;
/// `None` if there is none. No window may be empty.
/// What a dispatcher that plans anew at run time could reach: exact, for what slot shifting is compared with.
pub fn replan(jobs: &[TableJob], processors: &[u32], until: u64) -> Option<Vec<TableRun>> {
    let tasks = jobs.iter().map(|job| job.task + 1).max().unwrap_or(0);
    let classes = [Class { processors: processors.to_vec(), tasks: vec![true; tasks] }];
    let until = jobs.iter().map(|job| job.deadline).fold(until, u64::max);
    let cuts = cuts(jobs, until);
    let mut graph = Graph::new(jobs, &classes, &cuts);
    let flow = graph.network.maximise(graph.source, graph.sink);
    (flow == jobs.iter().map(|job| job.slots).sum::<u64>()).then(|| graph.runs(jobs, &classes, &cuts))
}

/// Processors that the same tasks may use.
struct Class {
    processors: Vec<u32>,
    tasks: Vec<bool>,
}

fn classes(problem: &Problem<'_>) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for &processor in problem.processors {
        let tasks: Vec<bool> = problem.allowed.iter().map(|allowed| allowed.contains(&processor)).collect();
        match classes.iter_mut().find(|class| class.tasks == tasks) {
            Some(class) => class.processors.push(processor),
            None => classes.push(Class { processors: vec![processor], tasks }),
        }
    }
    classes
}

/// Where intervals begin and end.
fn cuts(jobs: &[TableJob], slots: u64) -> Vec<u64> {
    let ends = jobs.iter().flat_map(|job| [job.release % slots, job.deadline % slots]);
    let mut cuts: Vec<u64> = ends.chain([0, slots]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// The intervals within a job's window, in the order of time.
fn intervals(job: &TableJob, cuts: &[u64]) -> impl Iterator<Item = usize> + use<> {
    let slots = cuts.last().copied().unwrap_or(1);
    let place = |slot: u64| cuts.partition_point(|&cut| cut < slot);
    let (first, length) = (job.release % slots, job.deadline - job.release);
    let end = first + length;
    let (until, rest) = (place(end.min(slots)), place(end.saturating_sub(slots)));
    (place(first)..until).chain(0..rest)
}

struct Graph {
    network: Network,
    source: usize,
    sink: usize,
    /// The node and the source's edge of each job.
    jobs: Vec<(usize, usize)>,
    /// The node of each interval and class.
    places: Vec<Vec<usize>>,
    /// Edges into places: interval, class, job, edge.
    shares: Vec<(usize, usize, usize, usize)>,
}

impl Graph {
    fn new(jobs: &[TableJob], classes: &[Class], cuts: &[u64]) -> Self {
        let mut network = Network::default();
        let (source, sink) = (network.node(), network.node());
        let lengths: Vec<u64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut places = Vec::with_capacity(lengths.len());
        for length in &lengths {
            let of_class = |class: &Class| {
                let node = network.node();
                network.edge(node, sink, length * class.processors.len() as u64);
                node
            };
            places.push(classes.iter().map(of_class).collect::<Vec<usize>>());
        }
        let mut graph = Self { network, source, sink, jobs: Vec::new(), places, shares: Vec::new() };
        for (place, job) in jobs.iter().enumerate() {
            let node = graph.network.node();
            graph.jobs.push((node, graph.network.edge(source, node, job.slots)));
            let open: Vec<usize> = (0..classes.len()).filter(|&it| classes[it].tasks[job.task]).collect();
            for interval in intervals(job, cuts) {
                graph.share(place, node, interval, &open, lengths[interval]);
            }
        }
        graph
    }

    /// What a job can get of an interval.
    fn share(&mut self, job: usize, node: usize, interval: usize, open: &[usize], length: u64) {
        let from = match open.len() {
            1 => node,
            _ => {
                let between = self.network.node();
                self.network.edge(node, between, length);
                between
            }
        };
        for &class in open {
            let edge = self.network.edge(from, self.places[interval][class], length);
            self.shares.push((interval, class, job, edge));
        }
    }

    fn runs(&self, jobs: &[TableJob], classes: &[Class], cuts: &[u64]) -> Vec<TableRun> {
        let mut amounts: Vec<Vec<Vec<Amount>>> = vec![vec![Vec::new(); classes.len()]; self.places.len()];
        for &(interval, class, job, edge) in &self.shares {
            let slots = self.network.flow(edge);
            if slots > 0 {
                amounts[interval][class].push((job, slots));
            }
        }
        let mut runs: Vec<TableRun> = Vec::new();
        let mut last: Vec<u32> = vec![u32::MAX; jobs.len()];
        for (interval, mut amounts) in amounts.into_iter().enumerate() {
            let (from, length) = (cuts[interval], cuts[interval + 1] - cuts[interval]);
            // Jobs stay where they were, as far as that is easy.
            amounts.iter_mut().for_each(|jobs| jobs.sort_by_key(|&(job, _)| (last[job], job)));
            let begun = runs.len();
            if is_split(&amounts) {
                let classes = classes.iter().map(|class| &class.processors[..]);
                wrap::open_shop(&classes.zip(amounts).collect::<Vec<_>>(), from, length, &mut runs);
            } else {
                for (class, amounts) in classes.iter().zip(&amounts) {
                    wrap::wrapped(amounts, &class.processors, from, length, &mut runs);
                }
            }
            for run in &runs[begun..] {
                last[run.job] = run.processor;
            }
        }
        runs
    }

    /// What a job with too little leads to, and others with too little at the same time: all of it is full.
    fn refusal(&self, problem: &Problem<'_>, jobs: &[TableJob], classes: &[Class]) -> Refusal {
        let missing = |job: usize| jobs[job].slots - self.network.flow(self.jobs[job].1);
        let lacking: Vec<usize> = (0..jobs.len()).filter(|&job| missing(job) > 0).collect();
        let mut begun: Vec<usize> = lacking.iter().copied().take(1).collect();
        let (reached, inside) = loop {
            let starts: Vec<usize> = begun.iter().map(|&job| self.jobs[job].0).collect();
            // Not through the source, which leads to all others that lack something.
            let reached = self.network.reachable(&starts, Some(self.source));
            let inside: Vec<usize> = (0..jobs.len()).filter(|&job| reached[self.jobs[job].0]).collect();
            let (from, to) = hull(jobs, &inside);
            let is_near = |job: &usize| jobs[*job].release < to && jobs[*job].deadline > from;
            let near: Vec<usize> = lacking.iter().copied().filter(is_near).collect();
            if near.len() <= begun.len() {
                break (reached, inside);
            }
            begun = near;
        };
        let needed: u64 = inside.iter().map(|&job| jobs[job].slots).sum();
        let lacking: u64 = inside.iter().map(|&job| missing(job)).sum();
        let is_full = |class: usize| self.places.iter().any(|of_class| reached[of_class[class]]);
        let full = classes.iter().enumerate().filter(|&(class, _)| is_full(class));
        let mut processors: Vec<u32> = full.flat_map(|(_, class)| class.processors.iter().copied()).collect();
        processors.sort_unstable();
        let mut tasks: Vec<usize> = inside.iter().map(|&job| jobs[job].task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let tasks = tasks.into_iter().map(|task| problem.tasks[task].name.clone()).collect();
        let (from, to) = hull(jobs, &inside);
        let overload = Overload { from, to, needed };
        Refusal::Overload { processors, tasks, overload, available: needed - lacking }
    }
}

/// The slots within which these jobs run.
fn hull(jobs: &[TableJob], inside: &[usize]) -> (u64, u64) {
    let from = inside.iter().map(|&job| jobs[job].release).min();
    let to = inside.iter().map(|&job| jobs[job].deadline).max();
    (from.unwrap_or(0), to.unwrap_or(0))
}

/// Whether a job has slots in several classes.
fn is_split(amounts: &[Vec<Amount>]) -> bool {
    let mut class_of = BTreeMap::new();
    amounts
        .iter()
        .enumerate()
        .any(|(class, jobs)| jobs.iter().any(|&(job, _)| *class_of.entry(job).or_insert(class) != class))
}
