//! The second pass: follows every instance from its activation to its end, and every datum along the chains.

use super::chains::Chains;
use super::clip::Clipped;
use super::ends::Ends;
use super::graph::Graph;
use super::inputs::{Activated, Inputs, Place};
use super::instances::Instance;
use super::kernel::{Split, Threads};
use super::lineage::{Carry, Window};
use super::losses::Losses;
use super::paths::{Inbox, Paths};
use super::sources::EndToEnd;
use super::tasks::Tasks;
use super::tree::{Node, Tree};
use punctual_model::Instant;
use punctual_trace::flow::{Count, Event, Gap, Item, Kind, NUMBERS, Take};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Options of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Longest window of δ⁻ and δ⁺, in activations minus one.
    pub curve_horizon: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { curve_horizon: 1000 }
    }
}

/// Follows instances and data through a trace.
#[derive(Debug)]
pub struct Analysis<'a> {
    pub(super) graph: Cow<'a, Graph>,
    /// The chains, each as the numbers of its tasks.
    pub(super) chains: Cow<'a, Chains>,
    /// What the graph says of the trace.
    is_whole: bool,
    missing_from: u64,
    has_told_takes: bool,
    pub(super) tasks: Tasks,
    pub(super) paths: Paths,
    pub(super) losses: Losses,
    pub(super) ends: Ends,
    producers: FxHashMap<u32, Running>,
    /// By producer: the push that its next activation takes, where the trace tells.
    told: FxHashMap<u32, (u16, Option<u64>)>,
    /// Instances that have not been handed out yet, if they are wanted.
    executed: Option<Vec<Executed>>,
    /// What the kernel did with threads, and which thread each producer is.
    kernel: Option<(&'a Threads, FxHashMap<u32, u32>)>,
}

/// An instance that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The number of its task.
    pub task: u16,
    /// Its own.
    pub instance: u64,
    /// When it was activated, started and stopped.
    pub activation: Instant,
    /// Start.
    pub start: Instant,
    /// Stop.
    pub stop: Instant,
    /// Who executed it.
    pub producer: u32,
}

/// What a producer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    Nothing,
    /// An instance: index of the task, number.
    Instance(usize, u64),
    /// An instance of before the part that may have read data of the part.
    Before,
    /// Events are missing; it may still be at this instance.
    Unknown(Option<(usize, u64)>),
}

impl<'a> Analysis<'a> {
    /// An analysis of a trace with this graph.
    pub fn new(graph: &'a Graph, chains: &'a Chains, options: &Options) -> Analysis<'a> {
        Analysis::of(Cow::Borrowed(graph), Cow::Borrowed(chains), options)
    }

    pub(super) fn of(graph: Cow<'a, Graph>, chains: Cow<'a, Chains>, options: &Options) -> Analysis<'a> {
        let inputs = Inputs::by_task(&graph);
        let mut tree = Tree::new(&graph, &chains, &inputs);
        let tasks = Tasks::new(&graph, &mut tree, inputs, options.curve_horizon);
        let inbox = |node: &Node| {
            let inputs = &tasks.state(node.task).inputs;
            Inbox::new(inputs.registers, inputs.counters.len())
        };
        let inboxes = tree.nodes.iter().map(inbox).collect();
        Analysis {
            is_whole: graph.is_whole,
            missing_from: graph.missing_from,
            has_told_takes: graph.has_told_takes,
            ends: Ends::new(&graph),
            losses: Losses::new(&graph, tree.nodes.iter().map(|node| node.task)),
            paths: Paths::new(tree, &chains, inboxes, (graph.from(), graph.until())),
            graph,
            chains,
            tasks,
            producers: FxHashMap::default(),
            told: FxHashMap::default(),
            executed: None,
            kernel: None,
        }
    }

    /// Splits execution times by what the kernel did with the producers' threads. `producers` are pairs of a
    /// producer and its thread.
    pub fn with_kernel(
        mut self,
        threads: &'a Threads,
        producers: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        self.kernel = Some((threads, producers.into_iter().collect()));
        self
    }

    /// Keeps every end-to-end latency until [`Analysis::ended`] takes it.
    pub fn with_latencies(mut self) -> Self {
        self.paths.ended = Some(Vec::new());
        self
    }

    /// Keeps every whole instance until [`Analysis::executed`] takes it.
    pub fn with_instances(mut self) -> Self {
        self.executed = Some(Vec::new());
        self
    }

    /// Hands out the instances that stopped since the last call.
    pub fn executed(&mut self) -> impl Iterator<Item = Executed> + '_ {
        self.executed.iter_mut().flat_map(|executed| executed.drain(..))
    }

    /// Hands out the latencies that ended since the last call, with the numbers of their chains.
    pub fn ended(&mut self) -> impl Iterator<Item = EndToEnd> + '_ {
        self.paths.ended.iter_mut().flat_map(|ended| ended.drain(..))
    }

    /// Takes the next item of the trace.
    #[inline]
    pub fn item(&mut self, item: &Item) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => self.gap(gap),
            Item::Count(Count { channel, count, .. }) => {
                self.tasks.each_counter(*channel, |counter| counter.count(*count));
            }
            Item::Take(Take { producer, channel, number, .. }) => {
                self.told.insert(*producer, (*channel, *number));
            }
        }
    }

    /// Takes what a part has of the next item.
    #[inline]
    pub fn clipped(&mut self, clipped: &Clipped) {
        match clipped {
            Clipped::Inside(item) => self.item(item),
            Clipped::Before(event) => self.before(event),
        }
    }

    /// An instance of before the part took from its queues what was pushed before the part, but its start
    /// reads what is the newest then. It is not followed, and neither are the data that it may have read.
    fn before(&mut self, event: &Event) {
        let Some(task_index) = self.tasks.index(event.object) else { return };
        let is_start = event.kind == Kind::Start;
        let mut may_have_read = false;
        if is_start {
            for node in &self.tasks.states[task_index].nodes {
                if self.losses.is_any() || self.paths.inbox(*node).holds_newest() {
                    self.paths.forget_waiting(*node, event.at);
                    may_have_read = true;
                }
            }
        } else if event.kind != Kind::Stop {
            return;
        }
        let running = if may_have_read { Running::Before } else { Running::Nothing };
        let earlier = self.producers.insert(event.producer, running);
        if is_start {
            self.end_without_stop(earlier, event);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.losses.gap(gap);
        // A packet may hold as many events as there are numbers.
        if gap.packets > 0 || gap.discarded >= NUMBERS / 2 {
            self.forget_numbers(gap.producer);
        }
        let running = self.producers.entry(gap.producer).or_insert(Running::Nothing);
        *running = match *running {
            Running::Nothing | Running::Before => Running::Unknown(None),
            Running::Instance(task, number) => Running::Unknown(Some((task, number))),
            unknown @ Running::Unknown(_) => unknown,
        };
    }

    /// So much is missing that a number may come again and mean another instance. Instances that have not
    /// started, or that this producer executes, are no longer followed.
    #[cold]
    fn forget_numbers(&mut self, producer: u32) {
        for task in &mut self.tasks.states {
            task.inputs.lose();
            let instances =
                task.live.iter_mut().filter(|instance| instance.start.is_none_or(|(_, by)| by == producer));
            for instance in instances {
                self.paths.abandon(instance, &task.nodes, false);
                instance.waiting.clear();
                instance.carries.fill(Carry::Unknown);
                instance.windows.fill(Window::Unknown);
                instance.activation = None;
            }
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        // Events are missing, and no gap says where.
        if event.at.ns() > self.missing_from {
            self.losses.is_cut = true;
        }
        if event.kind == Kind::Push {
            return self.push(event);
        }
        let Some(task) = self.tasks.index(event.object) else { return };
        match event.kind {
            Kind::Push => {}
            Kind::Activation => self.activation(task, event),
            Kind::Start => self.start(task, event),
            Kind::Stop => self.stop(task, event),
        }
    }

    #[inline]
    fn push(&mut self, event: &Event) {
        self.tasks.each_counter(event.object, |counter| counter.push(event.number));
        self.paths.clear_registers(event.object, event.at);
        match self.producers.get(&event.producer) {
            Some(Running::Instance(task, number)) => self.push_by(*task, *number, event),
            // A producer that never executes a task is outside, whatever is missing.
            Some(Running::Unknown(_)) if self.graph.executing.contains(&event.producer) => {
                self.push_unknown(event);
            }
            Some(Running::Before) => self.push_unknown(event),
            _ => {}
        }
    }

    /// A push by an instance.
    #[inline]
    fn push_by(&mut self, task_index: usize, number: u64, event: &Event) {
        let task = &mut self.tasks.states[task_index];
        if !task.ways.iter().any(|way| way.channel == event.object) {
            return;
        }
        let Some(instance) = task.live.get(number) else { return self.push_unknown(event) };
        let Some((start, _)) = instance.start else { return self.push_unknown(event) };
        // Taken out meanwhile, to reach the tasks behind.
        let (ways, carries, mut entered) = (
            std::mem::take(&mut task.ways),
            std::mem::take(&mut instance.carries),
            std::mem::take(&mut instance.put),
        );
        for way in ways.iter().filter(|way| way.channel == event.object) {
            let carry = &carries[way.from_slot];
            let behind = self.tasks.state(self.paths.tree.nodes[way.node].task);
            // The newest datum stays, for whatever reason.
            let busy = behind.busy.until(event.at).filter(|_| !matches!(way.place, Place::Newest(_)));
            let window = Window::of_push(carry, start, event.at, event.object, busy);
            let counted = |counter: usize| behind.inputs.counters[counter].place(event.number);
            self.paths.inbox_mut(way.node).put(way.place, window, counted);
            self.paths.enter_chains(way.node, carry, &mut entered);
        }
        let task = &mut self.tasks.states[task_index];
        task.ways = ways;
        if let Some(instance) = task.live.get(number) {
            (instance.carries, instance.put) = (carries, entered);
        }
    }

    /// A push of unknown data.
    #[cold]
    fn push_unknown(&mut self, event: &Event) {
        let tasks = &self.tasks;
        let counted =
            |task: u16, counter: usize| tasks.state(task).inputs.counters[counter].place(event.number);
        self.paths.put_unknown(event.object, counted);
    }

    #[inline]
    fn activation(&mut self, task_index: usize, event: &Event) {
        let task = &mut self.tasks.states[task_index];
        let is_next = is_next(task.last_activation, event.number);
        // In a complete trace they are only slightly out of order.
        let is_missing = !is_next && !self.is_whole;
        if is_missing {
            task.activations.interrupt();
        }
        let last = task.last_activation.replace((
            task.last_activation.map_or(event.number, |(last, _)| last.max(event.number)),
            event.at,
        ));
        task.activations.add(event.at);
        let activated = Activated {
            instance: event.number,
            is_behind_missing: is_missing,
            is_whole: self.is_whole,
            has_met_gap: self.losses.is_any(),
            told: if self.has_told_takes { self.told.remove(&event.producer) } else { None },
        };
        task.unexplained += u64::from(!task.inputs.take(activated, &mut task.taken));
        let busy = task.busy.until(event.at).filter(|_| self.is_whole);
        task.busy.begin(event.at, task.live.is_empty());
        let Some(instance) = task.live.add(event.number) else {
            // It has started already.
            return self.give_up(task_index, event);
        };
        (instance.activation, instance.busy, instance.is_read) =
            (Some(event.at), busy, task.inputs.registers == 0);
        // Pushes since the activation before.
        let since = last.map_or(Instant::from_ns(0), |(_, at)| at);
        for node in &task.nodes {
            let window = self.paths.inbox_mut(*node).take(&task.taken);
            let is_unknown =
                is_missing || task.inputs.has_since && self.losses.may_hide_push(*node, since, event.at);
            instance.windows.push(if is_unknown { Window::Unknown } else { window });
        }
        if instance.is_read {
            self.paths.read(instance, &task.nodes, event.at);
        }
        if let Some(instance) = task.live.remove_stale() {
            self.abandon(task_index, &instance, false, event.at);
        }
    }

    #[inline]
    fn start(&mut self, task_index: usize, event: &Event) {
        let earlier = self.producers.insert(event.producer, Running::Instance(task_index, event.number));
        self.end_without_stop(earlier, event);
        match self.tasks.states[task_index].live.get(event.number) {
            Some(instance) if instance.start.is_none() => {
                instance.start = Some((event.at, event.producer));
                if !instance.is_read {
                    self.read_newest(task_index, event);
                }
            }
            Some(_) => self.give_up(task_index, event),
            None => self.start_unknown(task_index, event),
        }
        let last = &mut self.tasks.states[task_index].last_start;
        *last = (*last).max(Some((event.number, event.at)));
    }

    /// A producer that starts an instance does not execute the one of before any more.
    #[inline]
    fn end_without_stop(&mut self, earlier: Option<Running>, start: &Event) {
        if let Some(Running::Instance(task, number) | Running::Unknown(Some((task, number)))) = earlier {
            // Its stop is missing, unless another producer wrote it.
            let is_its = |instance: &mut Instance| instance.start.is_some_and(|(_, by)| by == start.producer);
            if self.tasks.states[task].live.get(number).is_some_and(is_its) {
                self.give_up(task, &Event { number, ..*start });
            }
        }
    }

    /// At its start, an instance reads the newest datum of inputs that keep that.
    fn read_newest(&mut self, task_index: usize, event: &Event) {
        let task = &mut self.tasks.states[task_index];
        // An earlier instance may have been the first to read it.
        let is_missing = !self.is_whole
            && (!is_next(task.last_start, event.number) || task.live.waits_before(event.number));
        let Some(instance) = task.live.get(event.number) else { return };
        for (node, window) in task.nodes.iter().zip(&mut instance.windows) {
            let registers = self.paths.inbox(*node).registers();
            registers.iter().for_each(|(_, register)| window.join(register.clone()));
            let may_miss =
                |(since, _): &(Instant, Window)| self.losses.may_hide_push(*node, *since, event.at);
            if is_missing || registers.iter().any(may_miss) {
                *window = Window::Unknown;
            }
        }
        instance.is_read = true;
        self.paths.read(instance, &task.nodes, event.at);
    }

    /// The start of an instance whose activation is missing: nobody knows what it has read.
    #[cold]
    fn start_unknown(&mut self, task_index: usize, event: &Event) {
        let task = &mut self.tasks.states[task_index];
        if let Some(instance) = task.live.add(event.number) {
            instance.start = Some((event.at, event.producer));
            self.paths.read_unknown(instance, &task.nodes, event.at);
        }
        if let Some(instance) = task.live.remove_stale() {
            self.abandon(task_index, &instance, false, event.at);
        }
    }

    #[inline]
    fn stop(&mut self, task_index: usize, event: &Event) {
        self.producers.insert(event.producer, Running::Nothing);
        let task = &mut self.tasks.states[task_index];
        let Some(instance) = task.live.remove(event.number) else {
            task.incomplete += 1;
            return;
        };
        if task.live.is_empty() {
            task.busy.end(event.at);
        }
        match (instance.activation, instance.start) {
            (Some(activation), Some((start, producer))) if producer == event.producer => {
                task.queuing.add(event.number, activation, start);
                task.execution.add(event.number, start, event.at);
                if let Some(executed) = &mut self.executed {
                    let (task, instance, stop) = (task.number, event.number, event.at);
                    executed.push(Executed { task, instance, activation, start, stop, producer });
                }
                if let Some(split) = split(&self.kernel, event, start) {
                    let Split { running, preempted, suspended } = split;
                    for (part, time) in task.by_kernel.iter_mut().zip([running, preempted, suspended]) {
                        part.add(time);
                    }
                }
                self.paths.complete(&instance, &task.nodes, start, event.at);
            }
            _ => self.abandon(task_index, &instance, false, event.at),
        }
        self.tasks.states[task_index].live.reuse(instance);
    }

    /// The instance of this event can no longer be followed.
    #[cold]
    fn give_up(&mut self, task_index: usize, event: &Event) {
        let task = &mut self.tasks.states[task_index];
        if let Some(instance) = task.live.remove(event.number) {
            if task.live.is_empty() {
                task.busy.end(event.at);
            }
            self.abandon(task_index, &instance, false, event.at);
        }
    }

    /// Nothing more will be known of an instance: it had not ended when the trace did, or events of it are
    /// missing.
    pub(super) fn abandon(
        &mut self,
        task_index: usize,
        instance: &Instance,
        is_in_flight: bool,
        at: Instant,
    ) {
        let task = &mut self.tasks.states[task_index];
        *(if is_in_flight { &mut task.in_flight } else { &mut task.incomplete }) += 1;
        if !instance.is_read && !is_in_flight {
            self.paths.end_unknown(&task.nodes, at);
        }
        self.paths.abandon(instance, &task.nodes, is_in_flight);
    }
}

/// Whether no number is missing between the last one and this.
fn is_next(last: Option<(u64, Instant)>, number: u64) -> bool {
    match last {
        None => number == 0,
        Some((last, _)) => number == last + 1,
    }
}

/// What the kernel did with the producer's thread from `start` to the event.
#[inline]
fn split(kernel: &Option<(&Threads, FxHashMap<u32, u32>)>, event: &Event, start: Instant) -> Option<Split> {
    let (threads, numbers) = kernel.as_ref()?;
    threads.split(*numbers.get(&event.producer)?, start, event.at)
}
