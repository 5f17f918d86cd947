//! The second pass: times of instances, and the way of every datum along the chains.

mod finish;

use super::Histogram;
use super::chains::Chains;
use super::graph::Graph;
use super::inputs::{Activated, Inputs, Place, Taken};
use super::instances::{Instance, Live};
use super::kernel::{Split, Threads};
use super::lineage::{Backlog, Carried, Carry, Window};
use super::sources::ChainState;
use super::times::{Activations, InstanceTimes};
use super::tree::{Node, Tree, Way};
use punctual_model::{Duration, Instant};
use punctual_trace::flow::{Count, Event, Gap, Item, Kind, NUMBERS, OBJECTS};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How far the curves go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most activations that δ⁻ and δ⁺ are about, less one.
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
    graph: &'a Graph,
    /// The chains, by number of tasks.
    asked: &'a Chains,
    tree: Tree,
    /// Of each node: what its task's instances will read, and when a push there may be missing.
    waits: Vec<Waits>,
    misses_pushes: Vec<Misses>,
    chains: Vec<ChainState>,
    tasks: Vec<TaskState>,
    /// Where a task is in `tasks`.
    places: Box<[u32]>,
    /// By channel: whose counters it counts at.
    counted: FxHashMap<u16, Vec<(usize, usize)>>,
    producers: FxHashMap<u32, Running>,
    /// What the kernel did with threads, and which producer is which of them.
    kernel: Option<(&'a Threads, FxHashMap<u32, u32>)>,
    /// Until when events may be missing, of whatever producer; and whether a stream was cut off, so that from
    /// there on anything may.
    gap_until: Option<Instant>,
    is_cut: bool,
}

/// Data on their way to instances of a node's task that are to come.
#[derive(Clone, Debug, Default)]
struct Waits {
    since: Window,
    /// Of each of the task's registers, with the time of the last push there; they keep what an instance has
    /// read.
    registers: Vec<(Instant, Window)>,
    /// Of each of the task's counters.
    queues: Vec<Backlog>,
}

impl Waits {
    /// Keeps a datum where the input does; `counted` says which push it is of a counter.
    #[inline]
    fn put(&mut self, place: Place, window: Window, counted: impl Fn(usize) -> u64) {
        match place {
            Place::Since => self.since.join(window),
            Place::Newest(register) => self.registers[register].1 = window,
            Place::Queue(_) if matches!(window, Window::Empty) => {}
            Place::Queue(counter) => self.queues[counter].put(counted(counter), window),
        }
    }
}

/// What a producer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    Nothing,
    /// An instance: place of the task, number.
    Instance(usize, u64),
    /// Events before are missing; this may still be what it is doing.
    Unknown(Option<(usize, u64)>),
}

/// When pushes that lead to a node may be missing, as far as their numbers say.
#[derive(Clone, Copy, Debug)]
struct Misses {
    /// Some are.
    somewhere: bool,
    /// Behind the last that is there, nobody knows.
    from: Instant,
}

impl Misses {
    /// Of all channels that a task may read: of some, no push may be left that shows who makes them.
    fn by_task(graph: &Graph) -> impl Fn(u16) -> Misses {
        let of = |channel: &u16| Misses {
            somewhere: graph.missing_pushes.contains_key(channel),
            from: Instant::from_ns(graph.last_pushes.get(channel).copied().unwrap_or(0)),
        };
        let mut any = Misses { somewhere: false, from: Instant::from_ns(u64::MAX) };
        graph.channel_names.keys().for_each(|channel| any.and(of(channel)));
        let mut known: BTreeMap<u16, Misses> = BTreeMap::new();
        for (channel, tasks) in &graph.activates {
            tasks.keys().for_each(|task| known.entry(*task).or_insert(of(channel)).and(of(channel)));
        }
        // Where the program does not declare all, it may be any channel.
        let declares = graph.is_declared_whole;
        move |task| known.get(&task).copied().filter(|_| declares).unwrap_or(any)
    }

    fn and(&mut self, other: Misses) {
        self.somewhere |= other.somewhere;
        self.from = self.from.min(other.from);
    }
}

/// How long a task was busy: some instance was activated and had not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    /// Until then.
    sum: Duration,
    since: Option<Instant>,
    /// Instances overlap, so one that is there keeps no other from beginning.
    overlaps: bool,
}

impl Busy {
    #[inline]
    fn until(&self, at: Instant) -> Option<Duration> {
        let now = self.since.map_or(Duration::ZERO, |since| at.since(since));
        (!self.overlaps).then_some(self.sum + now)
    }

    #[inline]
    fn begin(&mut self, at: Instant, is_idle: bool) {
        self.overlaps |= !is_idle;
        self.since = self.since.filter(|_| !is_idle).or(Some(at));
    }

    #[inline]
    fn end(&mut self, at: Instant) {
        if let Some(since) = self.since.take() {
            self.sum += at.since(since);
        }
    }
}

#[derive(Debug)]
struct TaskState {
    number: u16,
    live: Live,
    /// The last activation and start.
    last: Option<(u64, Instant)>,
    last_start: Option<(u64, Instant)>,
    busy: Busy,
    inputs: Inputs,
    /// What the last activation took; here, so that its memory is used again.
    taken: Vec<Taken>,
    unexplained: u64,
    activations: Activations,
    execution: InstanceTimes,
    queuing: InstanceTimes,
    /// Running, preempted, suspended.
    by_kernel: [Histogram; 3],
    incomplete: u64,
    in_flight: u64,
    nodes: Vec<usize>,
    ways: Vec<Way>,
}

impl<'a> Analysis<'a> {
    /// Splits execution times by what the kernel did with the threads of producers, whose numbers the trace
    /// knows.
    pub fn with_kernel(
        mut self,
        threads: &'a Threads,
        producers: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        self.kernel = Some((threads, producers.into_iter().collect()));
        self
    }

    /// Of a trace with this graph.
    pub fn new(graph: &'a Graph, chains: &'a Chains, options: &Options) -> Analysis<'a> {
        let mut inputs = Inputs::of(graph);
        let mut tree = Tree::new(graph, chains, &inputs);
        let mut counted: FxHashMap<u16, Vec<(usize, usize)>> = FxHashMap::default();
        let mut places = vec![u32::MAX; OBJECTS].into_boxed_slice();
        let mut tasks = Vec::new();
        for number in graph.task_names.keys() {
            places[usize::from(*number)] = tasks.len() as u32;
            let inputs = inputs.remove(number).unwrap_or_default();
            for (counter, of) in inputs.counters.iter().enumerate() {
                counted.entry(of.channel).or_default().push((tasks.len(), counter));
            }
            tasks.push(TaskState {
                number: *number,
                live: Live::default(),
                last: None,
                last_start: None,
                busy: Busy::default(),
                inputs,
                taken: Vec::new(),
                unexplained: 0,
                activations: Activations::new(options.curve_horizon),
                execution: InstanceTimes::default(),
                by_kernel: Default::default(),
                queuing: InstanceTimes::default(),
                incomplete: 0,
                in_flight: 0,
                nodes: tree.of_task.get(number).cloned().unwrap_or_default(),
                ways: tree.ways.remove(number).unwrap_or_default(),
            });
        }
        let misses = Misses::by_task(graph);
        let waits = |node: &Node| {
            let inputs = &tasks[places[usize::from(node.task)] as usize].inputs;
            Waits {
                since: Window::Empty,
                registers: vec![(Instant::from_ns(0), Window::Empty); inputs.registers],
                queues: vec![Backlog::default(); inputs.counters.len()],
            }
        };
        let waits = tree.nodes.iter().map(waits).collect();
        let misses_pushes = tree.nodes.iter().map(|node| misses(node.task)).collect();
        Analysis {
            graph,
            asked: chains,
            waits,
            counted,
            misses_pushes,
            tree,
            chains: chains.chains.iter().map(|_| ChainState::default()).collect(),
            tasks,
            places,
            producers: FxHashMap::default(),
            kernel: None,
            gap_until: None,
            is_cut: false,
        }
    }

    /// Takes the next of the trace.
    #[inline]
    pub fn item(&mut self, item: &Item) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => self.gap(gap),
            Item::Count(count) => self.count(count),
        }
    }

    fn count(&mut self, count: &Count) {
        for (task, counter) in self.counted.get(&count.channel).into_iter().flatten() {
            self.tasks[*task].inputs.counters[*counter].count(count.count);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.gap_until = self.gap_until.max(Some(gap.until));
        self.is_cut |= gap.until.ns() == u64::MAX;
        // A packet may hold as many as the numbers are told apart over.
        if gap.packets > 0 || gap.discarded >= NUMBERS / 2 {
            self.forget_numbers(gap.producer);
        }
        let running = self.producers.entry(gap.producer).or_insert(Running::Nothing);
        *running = match *running {
            Running::Nothing => Running::Unknown(None),
            Running::Instance(task, number) => Running::Unknown(Some((task, number))),
            unknown @ Running::Unknown(_) => unknown,
        };
    }

    /// So much is missing that a number may come again and mean another instance: those that had not started,
    /// or that this producer executed, are not followed any more.
    #[cold]
    fn forget_numbers(&mut self, producer: u32) {
        for task in &mut self.tasks {
            task.inputs.lose();
            for instance in
                task.live.iter_mut().filter(|instance| instance.start.is_none_or(|(_, by)| by == producer))
            {
                settle(&mut self.chains, &self.tree, &task.nodes, instance, false);
                instance.waiting.clear();
                instance.carries.fill(Carry::Unknown);
                instance.windows.fill(Window::Unknown);
                instance.activation = None;
            }
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        // Events are missing of which no gap says when.
        if event.at.ns() > self.graph.missing_from {
            self.is_cut = true;
        }
        if event.kind == Kind::Push {
            return self.push(event);
        }
        // A task that the first pass has not seen: the trace has changed meanwhile.
        let place = self.places[usize::from(event.object)] as usize;
        if place >= self.tasks.len() {
            return;
        }
        match event.kind {
            Kind::Push => {}
            Kind::Activation => self.activation(place, event),
            Kind::Start => self.start(place, event),
            Kind::Stop => self.stop(place, event),
        }
    }

    #[inline]
    fn push(&mut self, event: &Event) {
        for (task, counter) in self.counted.get(&event.object).into_iter().flatten() {
            self.tasks[*task].inputs.counters[*counter].push(event.number);
        }
        // Whoever makes it, nothing else is the newest there.
        for (node, register) in self.tree.registers.get(&event.object).into_iter().flatten() {
            self.waits[*node].registers[*register] = (event.at, Window::Empty);
        }
        let maker = match self.producers.get(&event.producer) {
            Some(Running::Instance(task, number)) => (*task, *number),
            // Who never executes a task is none, whatever is missing.
            Some(Running::Unknown(_)) if self.graph.executing.contains(&event.producer) => {
                return self.push_unknown(event);
            }
            _ => return,
        };
        let task = &mut self.tasks[maker.0];
        if !task.ways.iter().any(|way| way.channel == event.object) {
            return;
        }
        let Some(instance) = task.live.get(maker.1) else { return self.push_unknown(event) };
        let Some((start, _)) = instance.start else { return self.push_unknown(event) };
        // Taken out meanwhile: another task's counters say where its push belongs.
        let (ways, carries, mut put) = (
            std::mem::take(&mut task.ways),
            std::mem::take(&mut instance.carries),
            std::mem::take(&mut instance.put),
        );
        for way in ways.iter().filter(|way| way.channel == event.object) {
            let (carry, node) = (&carries[way.from_slot], &self.tree.nodes[way.node]);
            let behind = &self.tasks[self.places[usize::from(node.task)] as usize];
            // What is newest stays for whatever reason.
            let busy = behind.busy.until(event.at).filter(|_| !matches!(way.place, Place::Newest(_)));
            let window = Window::of(carry, start, event.at, event.object, busy);
            self.waits[way.node]
                .put(way.place, window, |counter| behind.inputs.counters[counter].place(event.number));
            if !node.chains.is_empty() && !put.contains(&way.node) {
                put.push(way.node);
                for chain in &node.chains {
                    match carry {
                        Carry::Known(carried) => self.chains[*chain].put(carried),
                        _ => self.chains[*chain].put_unknown(),
                    }
                }
            }
        }
        let task = &mut self.tasks[maker.0];
        task.ways = ways;
        if let Some(instance) = task.live.get(maker.1) {
            (instance.carries, instance.put) = (carries, put);
        }
    }

    /// Nobody knows what data this was.
    #[cold]
    fn push_unknown(&mut self, event: &Event) {
        for (node, place) in self.tree.behind.get(&event.object).into_iter().flatten() {
            let counters =
                &self.tasks[self.places[usize::from(self.tree.nodes[*node].task)] as usize].inputs.counters;
            self.waits[*node].put(*place, Window::Unknown, |counter| counters[counter].place(event.number));
        }
    }

    /// Whether a push there may be missing, of those since then.
    fn may_miss(&self, node: usize, since: Instant, at: Instant) -> bool {
        let misses = self.misses_pushes[node];
        self.is_cut
            || self.gap_until.is_some_and(|until| until >= since) && (misses.somewhere || at > misses.from)
    }

    #[inline]
    fn activation(&mut self, place: usize, event: &Event) {
        let task = &mut self.tasks[place];
        let is_next = match task.last {
            None => event.number == 0,
            Some((last, _)) => event.number == last + 1,
        };
        // In a whole trace they are only a little out of order.
        let is_missing = !is_next && !self.graph.is_whole;
        if is_missing {
            task.activations.interrupt();
        }
        // What was pushed since the activation before.
        let since = task.last.map_or(Instant::from_ns(0), |(_, at)| at);
        task.last = Some((task.last.map_or(event.number, |(last, _)| last.max(event.number)), event.at));
        task.activations.add(event.at);
        let activated = Activated {
            instance: event.number,
            is_behind_missing: is_missing,
            is_whole: self.graph.is_whole,
            has_met_gap: self.gap_until.is_some() || self.is_cut,
        };
        task.unexplained += u64::from(!task.inputs.take(activated, &mut task.taken));
        let busy = task.busy.until(event.at).filter(|_| self.graph.is_whole);
        task.busy.begin(event.at, task.live.is_empty());
        let Some(instance) = task.live.add(event.number) else {
            // It has started before.
            return self.give_up(place, event);
        };
        (instance.activation, instance.busy, instance.is_read) =
            (Some(event.at), busy, task.inputs.registers == 0);
        let mut windows = std::mem::take(&mut instance.windows);
        for node in &self.tasks[place].nodes {
            let (waits, task) = (&mut self.waits[*node], &self.tasks[place]);
            let mut window = std::mem::take(&mut waits.since);
            for (queue, taken) in waits.queues.iter_mut().zip(&task.taken) {
                window.join(queue.take(taken.from, taken.until));
                if !taken.is_known {
                    window = Window::Unknown;
                }
            }
            if is_missing || task.inputs.has_since && self.may_miss(*node, since, event.at) {
                window = Window::Unknown;
            }
            windows.push(window);
        }
        let task = &mut self.tasks[place];
        if let Some(instance) = task.live.get(event.number) {
            instance.windows = windows;
            if instance.is_read {
                read(instance, &task.nodes, &self.tree, &mut self.chains, event.at);
            }
        }
        if let Some(instance) = task.live.remove_stale() {
            self.abandon(place, &instance, false, event.at);
        }
    }

    #[inline]
    fn start(&mut self, place: usize, event: &Event) {
        let before = self.producers.insert(event.producer, Running::Instance(place, event.number));
        if let Some(Running::Instance(task, number) | Running::Unknown(Some((task, number)))) = before {
            // Its stop is missing, if it has not had one from another producer.
            let is_its = |instance: &mut Instance| instance.start.is_some_and(|(_, by)| by == event.producer);
            if self.tasks[task].live.get(number).is_some_and(is_its) {
                self.give_up(task, &Event { number, ..*event });
            }
        }
        let task = &mut self.tasks[place];
        match task.live.get(event.number) {
            Some(instance) if instance.start.is_none() => {
                instance.start = Some((event.at, event.producer));
                if !instance.is_read {
                    self.read_newest(place, event);
                }
            }
            Some(_) => self.give_up(place, event),
            None => self.start_unknown(place, event),
        }
        let last = &mut self.tasks[place].last_start;
        *last = (*last).max(Some((event.number, event.at)));
    }

    /// What an instance has of inputs that have the newest value: that of its start.
    fn read_newest(&mut self, place: usize, event: &Event) {
        let task = &mut self.tasks[place];
        let is_next = match task.last_start {
            None => event.number == 0,
            Some((last, _)) => event.number == last + 1,
        };
        // An instance before it may have been the first to read it.
        let is_missing = !self.graph.is_whole && (!is_next || task.live.waits_before(event.number));
        let Some(instance) = task.live.get(event.number) else { return };
        let mut windows = std::mem::take(&mut instance.windows);
        for (node, window) in self.tasks[place].nodes.iter().zip(&mut windows) {
            // What is there is the newest, if nothing is missing behind it.
            let registers = &self.waits[*node].registers;
            registers.iter().for_each(|(_, register)| window.join(register.clone()));
            if is_missing || registers.iter().any(|(since, _)| self.may_miss(*node, *since, event.at)) {
                *window = Window::Unknown;
            }
        }
        let task = &mut self.tasks[place];
        if let Some(instance) = task.live.get(event.number) {
            (instance.windows, instance.is_read) = (windows, true);
            read(instance, &task.nodes, &self.tree, &mut self.chains, event.at);
        }
    }

    /// Its activation is missing: what it has read is not known.
    #[cold]
    fn start_unknown(&mut self, place: usize, event: &Event) {
        let task = &mut self.tasks[place];
        if let Some(instance) = task.live.add(event.number) {
            instance.start = Some((event.at, event.producer));
            read_nothing_known(instance, &task.nodes, &self.tree, &mut self.chains, event.at);
        }
        if let Some(instance) = task.live.remove_stale() {
            self.abandon(place, &instance, false, event.at);
        }
    }

    #[inline]
    fn stop(&mut self, place: usize, event: &Event) {
        self.producers.insert(event.producer, Running::Nothing);
        let task = &mut self.tasks[place];
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
                if let Some((threads, numbers)) = &self.kernel {
                    let split = numbers
                        .get(&event.producer)
                        .and_then(|thread| threads.split(*thread, start, event.at));
                    if let Some(Split { running, preempted, suspended }) = split {
                        for (part, time) in task.by_kernel.iter_mut().zip([running, preempted, suspended]) {
                            part.add(time);
                        }
                    }
                }
                self.complete(place, &instance, start, event.at);
            }
            _ => self.abandon(place, &instance, false, event.at),
        }
        self.tasks[place].live.reuse(instance);
    }

    fn complete(&mut self, place: usize, instance: &Instance, start: Instant, stop: Instant) {
        for (node, carry) in self.tasks[place].nodes.iter().zip(&instance.carries) {
            let (Some(chain), Carry::Known(sink)) = (self.tree.nodes[*node].chain, carry) else { continue };
            let state = &mut self.chains[chain];
            for (_, waiting) in instance.waiting.iter().filter(|(of, _)| *of == chain) {
                state.react(*waiting, sink, start, stop);
            }
            state.end(sink, start, stop);
        }
    }

    /// The instance of this event cannot be followed any more.
    #[cold]
    fn give_up(&mut self, place: usize, event: &Event) {
        let task = &mut self.tasks[place];
        if let Some(instance) = task.live.remove(event.number) {
            if task.live.is_empty() {
                task.busy.end(event.at);
            }
            self.abandon(place, &instance, false, event.at);
        }
    }

    /// An instance of which nothing more will be known: it had not ended when the trace did, or events of it
    /// are missing.
    fn abandon(&mut self, place: usize, instance: &Instance, is_in_flight: bool, at: Instant) {
        let task = &mut self.tasks[place];
        *(if is_in_flight { &mut task.in_flight } else { &mut task.incomplete }) += 1;
        if !instance.is_read && !is_in_flight {
            // Its start is missing, and it has read what was there then.
            let ends = task.nodes.iter().filter_map(|node| self.tree.nodes[*node].chain);
            ends.for_each(|chain| self.chains[chain].read_unknown(at));
        }
        settle(&mut self.chains, &self.tree, &task.nodes, instance, is_in_flight);
    }
}

/// An instance of which events are missing reads whatever there is.
#[cold]
fn read_nothing_known(
    instance: &mut Instance,
    nodes: &[usize],
    tree: &Tree,
    chains: &mut [ChainState],
    at: Instant,
) {
    instance.is_read = true;
    instance.carries.resize(nodes.len(), Carry::Unknown);
    nodes.iter().filter_map(|node| tree.nodes[*node].chain).for_each(|chain| chains[chain].read_unknown(at));
}

/// An instance reads what it has taken at each node.
fn read(instance: &mut Instance, nodes: &[usize], tree: &Tree, chains: &mut [ChainState], at: Instant) {
    let Some(activation) = instance.activation else {
        return read_nothing_known(instance, nodes, tree, chains, at);
    };
    for (node, window) in nodes.iter().zip(instance.windows.drain(..)) {
        let node = &tree.nodes[*node];
        let carry = match node.parent {
            None => Carry::Known(Rc::new(Carried {
                source: instance.number,
                source_activation: activation,
                instance: instance.number,
                activation,
                busy: None,
                via: None,
            })),
            Some(_) => window.read(instance.number, activation, instance.busy),
        };
        if let Some(chain) = node.chain {
            match &carry {
                Carry::Nothing => {}
                Carry::Known(carried) => {
                    chains[chain].read(carried, &mut |waiting| instance.waiting.push((chain, waiting)))
                }
                Carry::Unknown => chains[chain].read_unknown(at),
            }
        }
        instance.carries.push(carry);
    }
}

/// What becomes of a chain's data with an instance that is not followed to its end.
fn settle(chains: &mut [ChainState], tree: &Tree, nodes: &[usize], instance: &Instance, is_in_flight: bool) {
    for (chain, _) in &instance.waiting {
        let state = &mut chains[*chain];
        *(if is_in_flight { &mut state.in_flight } else { &mut state.incomplete }) += 1;
    }
    for (node, carry) in nodes.iter().zip(&instance.carries) {
        // What is unknown has been counted when it was read.
        let (Some(chain), Carry::Known(_)) = (tree.nodes[*node].chain, carry) else { continue };
        let state = &mut chains[chain];
        *(if is_in_flight { &mut state.sinks_in_flight } else { &mut state.sinks_incomplete }) += 1;
    }
}
