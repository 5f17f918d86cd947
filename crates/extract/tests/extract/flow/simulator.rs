//! A dataflow program and its executors, simulated: the events that it would trace, and what really happened,
//! by its own books.

use punctual_model::Instant;
use punctual_trace::flow::{Event, Kind};
use std::collections::VecDeque;

/// SplitMix64: numbers that are always the same.
#[derive(Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// An input of a task.
#[derive(Clone, Debug)]
pub struct Input {
    pub channel: usize,
    /// Pushes that it takes; 0 is optional.
    pub threshold: u32,
    pub keeps: Keeps,
}

/// What an input keeps of pushes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keeps {
    /// Until the next activation, which has all of it; nothing says so.
    Since,
    /// In order, until an activation takes as many as it needs; of an optional one, this many.
    Queue { optional: u32 },
    /// The newest, which an instance has from its start.
    Newest,
}

impl Input {
    /// How many pushes an activation takes of a queue.
    pub fn takes(&self) -> usize {
        match self.keeps {
            Keeps::Queue { optional } if self.threshold == 0 => optional as usize,
            _ => self.threshold as usize,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Task {
    pub inputs: Vec<Input>,
    /// Channels that it pushes on, each with this chance in percent.
    pub outputs: Vec<(usize, u64)>,
    /// Its execution takes between these.
    pub time: (u64, u64),
    /// Whether an instance can be activated while another is queued or runs. If not, what comes meanwhile
    /// activates it at its end.
    pub overlaps: bool,
}

/// Who pushes from outside, or activates a task by itself.
#[derive(Clone, Debug)]
pub struct Timer {
    pub period: u64,
    pub channel: Option<usize>,
    pub task: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    Fifo,
    Lifo,
    Any,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub channels: usize,
    pub tasks: Vec<Task>,
    pub timers: Vec<Timer>,
    pub executors: usize,
    pub policy: Policy,
}

/// A datum.
#[derive(Clone, Debug)]
pub struct Push {
    pub channel: usize,
    pub at: u64,
    /// The instance that made it.
    pub maker: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Instance {
    pub task: usize,
    pub number: u64,
    pub activation: u64,
    /// When it reads: its activation, or its start if there is an input with the newest value.
    pub read: Option<u64>,
    pub start: Option<u64>,
    pub stop: Option<u64>,
    /// Pushes that it has read, in order.
    pub reads: Vec<usize>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub pushes: Vec<Push>,
    /// In order of activation.
    pub instances: Vec<Instance>,
    pub events: Vec<Event>,
}

/// What an executor does next with its instance.
struct Running {
    instance: usize,
    /// Times at which it pushes, and on what, the last first.
    pushes: Vec<(u64, usize)>,
    until: u64,
}

pub struct Simulator<'a> {
    program: &'a Program,
    numbers: Numbers,
    now: u64,
    pub history: History,
    pushed: Vec<u64>,
    /// By task.
    activated: Vec<u64>,
    busy: Vec<u64>,
    counts: Vec<Vec<u32>>,
    windows: Vec<Vec<usize>>,
    /// By task and input.
    queues: Vec<Vec<VecDeque<usize>>>,
    newest: Vec<Vec<Option<usize>>>,
    ready: VecDeque<usize>,
    executors: Vec<Option<Running>>,
    due: Vec<u64>,
}

impl<'a> Simulator<'a> {
    pub fn new(program: &'a Program, seed: u64) -> Simulator<'a> {
        let tasks = program.tasks.len();
        let mut numbers = Numbers(seed);
        let due = program.timers.iter().map(|timer| 10 + numbers.below(timer.period)).collect();
        Simulator {
            program,
            numbers,
            now: 0,
            history: History::default(),
            pushed: vec![0; program.channels],
            activated: vec![0; tasks],
            busy: vec![0; tasks],
            counts: program.tasks.iter().map(|task| vec![0; task.inputs.len()]).collect(),
            windows: vec![Vec::new(); tasks],
            queues: program.tasks.iter().map(|task| vec![VecDeque::new(); task.inputs.len()]).collect(),
            newest: program.tasks.iter().map(|task| vec![None; task.inputs.len()]).collect(),
            ready: VecDeque::new(),
            executors: (0..program.executors).map(|_| None).collect(),
            due,
        }
    }

    /// Runs until there are this many events, or more by what belongs together.
    pub fn run(mut self, events: usize) -> History {
        while self.history.events.len() < events && self.step() {}
        self.history
    }

    /// What comes next, whoever does it; no two events are at the same time.
    fn step(&mut self) -> bool {
        let timer = (0..self.due.len()).min_by_key(|timer| self.due[*timer]);
        let next = |running: &Running| running.pushes.last().map_or(running.until, |push| push.0);
        let executor = (0..self.executors.len()).filter(|index| self.executors[*index].is_some());
        let executor = executor.min_by_key(|index| self.executors[*index].as_ref().map(next));
        let executor_due = executor.and_then(|index| self.executors[index].as_ref()).map(next);
        match (timer.map(|timer| self.due[timer]), executor_due) {
            (None, None) => return false,
            (Some(at), due) if due.is_none_or(|due| at <= due) => {
                self.now = self.now.max(at);
                self.fire(timer.unwrap());
            }
            (_, Some(due)) => {
                self.now = self.now.max(due);
                self.execute(executor.unwrap());
            }
            (Some(_), None) => unreachable!("a timer is due"),
        }
        self.dispatch();
        true
    }

    fn fire(&mut self, timer: usize) {
        let producer = (self.program.executors + timer) as u32;
        let Timer { period, channel, task } = self.program.timers[timer].clone();
        self.due[timer] += period / 2 + self.numbers.below(period);
        if let Some(channel) = channel {
            self.push(producer, channel, None);
        }
        if let Some(task) = task {
            self.activate(producer, task);
        }
    }

    fn execute(&mut self, executor: usize) {
        let Some(running) = &mut self.executors[executor] else { return };
        let instance = running.instance;
        if let Some((_, channel)) = running.pushes.pop() {
            return self.push(executor as u32, channel, Some(instance));
        }
        self.executors[executor] = None;
        let (task, number) = (self.history.instances[instance].task, self.history.instances[instance].number);
        let at = self.event(executor as u32, Kind::Stop, task, number);
        self.history.instances[instance].stop = Some(at);
        self.busy[task] -= 1;
        // What came meanwhile.
        if !self.program.tasks[task].overlaps {
            self.try_activate(executor as u32, task);
        }
    }

    fn dispatch(&mut self) {
        for executor in 0..self.executors.len() {
            if self.executors[executor].is_some() || self.ready.is_empty() {
                continue;
            }
            let place = match self.program.policy {
                Policy::Fifo => 0,
                Policy::Lifo => self.ready.len() - 1,
                Policy::Any => self.numbers.below(self.ready.len() as u64) as usize,
            };
            let Some(instance) = self.ready.remove(place) else { continue };
            let Instance { task, number, .. } = self.history.instances[instance];
            let start = self.event(executor as u32, Kind::Start, task, number);
            self.history.instances[instance].start = Some(start);
            let Task { inputs, outputs, time, .. } = &self.program.tasks[task];
            if inputs.iter().any(|input| input.keeps == Keeps::Newest) {
                let started = &mut self.history.instances[instance];
                started.read = Some(start);
                started.reads.extend(self.newest[task].iter().flatten());
                started.reads.sort_unstable();
            }
            let length = time.0 + self.numbers.below(time.1 - time.0 + 1);
            let mut pushes = Vec::new();
            for (channel, chance) in outputs {
                if self.numbers.chance(*chance) {
                    pushes.push((start + self.numbers.below(length + 1), *channel));
                }
            }
            pushes.sort_unstable_by(|a, b| b.cmp(a));
            self.executors[executor] = Some(Running { instance, pushes, until: start + length });
        }
    }

    fn push(&mut self, producer: u32, channel: usize, maker: Option<usize>) {
        let number = self.pushed[channel];
        self.pushed[channel] += 1;
        let at = self.event(producer, Kind::Push, channel, number);
        let push = self.history.pushes.len();
        self.history.pushes.push(Push { channel, at, maker });
        for task in 0..self.program.tasks.len() {
            let mut is_told = false;
            for (index, input) in self.program.tasks[task]
                .inputs
                .iter()
                .enumerate()
                .filter(|(_, input)| input.channel == channel)
            {
                self.counts[task][index] += u32::from(input.threshold > 0);
                match input.keeps {
                    Keeps::Since => self.windows[task].push(push),
                    Keeps::Queue { .. } => self.queues[task][index].push_back(push),
                    Keeps::Newest => self.newest[task][index] = Some(push),
                }
                is_told = true;
            }
            if is_told {
                self.try_activate(producer, task);
            }
        }
    }

    fn try_activate(&mut self, producer: u32, task: usize) {
        let Task { inputs, overlaps, .. } = &self.program.tasks[task];
        let needs = inputs.iter().any(|input| input.threshold > 0);
        let has = |index: usize, input: &Input| match input.keeps {
            Keeps::Queue { .. } => self.queues[task][index].len() >= input.threshold as usize,
            _ => self.counts[task][index] >= input.threshold,
        };
        let has_all = inputs.iter().enumerate().all(|(index, input)| has(index, input));
        if needs && has_all && (*overlaps || self.busy[task] == 0) {
            self.activate(producer, task);
        }
    }

    fn activate(&mut self, producer: u32, task: usize) {
        if !self.program.tasks[task].overlaps && self.busy[task] > 0 {
            return;
        }
        self.counts[task].fill(0);
        let number = self.activated[task];
        self.activated[task] += 1;
        self.busy[task] += 1;
        let activation = self.event(producer, Kind::Activation, task, number);
        let mut reads = std::mem::take(&mut self.windows[task]);
        let inputs = &self.program.tasks[task].inputs;
        for (input, queue) in
            inputs.iter().zip(&mut self.queues[task]).filter(|(input, queue)| queue.len() >= input.takes())
        {
            reads.extend(queue.drain(..input.takes()));
        }
        reads.sort_unstable();
        let read = inputs.iter().all(|input| input.keeps != Keeps::Newest).then_some(activation);
        self.ready.push_back(self.history.instances.len());
        self.history.instances.push(Instance {
            task,
            number,
            activation,
            read,
            start: None,
            stop: None,
            reads,
        });
    }

    fn event(&mut self, producer: u32, kind: Kind, object: usize, number: u64) -> u64 {
        self.now += 1;
        self.history.events.push(Event {
            at: Instant::from_ns(self.now),
            producer,
            kind,
            object: object as u16,
            number,
        });
        self.now
    }
}
