//! What is known of each task while the trace is read.

use super::Histogram;
use super::graph::Graph;
use super::inputs::{Counter, Inputs, Taken};
use super::instances::Live;
use super::times::{Activations, InstanceTimes};
use super::tree::{Tree, Way};
use punctual_model::{Duration, Instant};
use punctual_trace::flow::OBJECTS;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// All tasks of a trace.
#[derive(Debug)]
pub struct Tasks {
    pub states: Vec<TaskState>,
    /// By a task's number: its index in `states`.
    indices: Box<[u32]>,
    /// By channel: the counters that count its pushes, as task and place.
    counters: FxHashMap<u16, Vec<(usize, usize)>>,
}

impl Tasks {
    /// Takes the tasks' ways out of the tree.
    pub fn new(
        graph: &Graph,
        tree: &mut Tree,
        mut inputs: BTreeMap<u16, Inputs>,
        curve_horizon: usize,
    ) -> Tasks {
        let mut counters: FxHashMap<u16, Vec<(usize, usize)>> = FxHashMap::default();
        let mut indices = vec![u32::MAX; OBJECTS].into_boxed_slice();
        let mut states = Vec::new();
        for number in graph.task_names.keys() {
            indices[usize::from(*number)] = states.len() as u32;
            let inputs = inputs.remove(number).unwrap_or_default();
            for (place, counter) in inputs.counters.iter().enumerate() {
                counters.entry(counter.channel).or_default().push((states.len(), place));
            }
            states.push(TaskState {
                number: *number,
                live: Live::default(),
                last_activation: None,
                last_start: None,
                busy: Busy::default(),
                inputs,
                taken: Vec::new(),
                unexplained: 0,
                activations: Activations::new(curve_horizon),
                execution: InstanceTimes::default(),
                by_kernel: Default::default(),
                queuing: InstanceTimes::default(),
                incomplete: 0,
                in_flight: 0,
                nodes: tree.of_task.get(number).cloned().unwrap_or_default(),
                ways: tree.ways.remove(number).unwrap_or_default(),
            });
        }
        Tasks { states, indices, counters }
    }

    /// The index of the task with this number; `None` if the first pass has not seen it, so that the trace
    /// has changed since.
    #[inline]
    pub fn index(&self, number: u16) -> Option<usize> {
        let index = self.indices[usize::from(number)] as usize;
        (index < self.states.len()).then_some(index)
    }

    /// The task with this number, which the graph has.
    #[inline]
    pub fn state(&self, number: u16) -> &TaskState {
        &self.states[self.indices[usize::from(number)] as usize]
    }

    /// Every counter of pushes on this channel.
    #[inline]
    pub fn each_counter(&mut self, channel: u16, mut each: impl FnMut(&mut Counter)) {
        for (task, place) in self.counters.get(&channel).into_iter().flatten() {
            each(&mut self.states[*task].inputs.counters[*place]);
        }
    }
}

/// One task.
#[derive(Debug)]
pub struct TaskState {
    pub number: u16,
    pub live: Live,
    /// Number and time of the latest activation and start.
    pub last_activation: Option<(u64, Instant)>,
    pub last_start: Option<(u64, Instant)>,
    pub busy: Busy,
    pub inputs: Inputs,
    /// What the last activation took; kept for its memory.
    pub taken: Vec<Taken>,
    pub unexplained: u64,
    pub activations: Activations,
    pub execution: InstanceTimes,
    pub queuing: InstanceTimes,
    /// Running, preempted, suspended.
    pub by_kernel: [Histogram; 3],
    pub incomplete: u64,
    pub in_flight: u64,
    /// Its nodes in the tree, and where its pushes lead.
    pub nodes: Vec<usize>,
    pub ways: Vec<Way>,
}

/// How long a task was busy: some instance was activated and had not ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// Before `since`.
    sum: Duration,
    since: Option<Instant>,
    /// Instances overlap, so none keeps another from beginning.
    overlaps: bool,
}

impl Busy {
    /// In all, up to this time; `None` where that does not say how long a datum waits.
    #[inline]
    pub fn until(&self, at: Instant) -> Option<Duration> {
        let now = self.since.map_or(Duration::ZERO, |since| at.since(since));
        (!self.overlaps).then_some(self.sum + now)
    }

    #[inline]
    pub fn begin(&mut self, at: Instant, was_idle: bool) {
        self.overlaps |= !was_idle;
        self.since = self.since.filter(|_| !was_idle).or(Some(at));
    }

    #[inline]
    pub fn end(&mut self, at: Instant) {
        if let Some(since) = self.since.take() {
            self.sum += at.since(since);
        }
    }
}
