//! The first pass: finds which tasks push on which channels, which channels activate which tasks, and what is
//! missing.

mod numbered;

use super::names;
use numbered::Numbered;
use punctual_model::Instant;
use punctual_model::dataflow::Connections;
use punctual_trace::flow::{About, Arming, Barrier, Connection, Event, Gap, Item, Kind, Opening};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Who made a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Maker {
    Task(u16),
    /// Not a task: a timer, or the program itself.
    Outside,
    /// Unknown: events before it are missing.
    Unknown,
}

/// What a producer is doing.
#[derive(Clone, Copy, Debug)]
struct Producer {
    running: Maker,
    /// The channel of its last push, as long as activations may belong to it.
    push: Option<u16>,
    executes: bool,
}

const IDLE: Producer = Producer { running: Maker::Outside, push: None, executes: false };

/// Collects the graph of a trace.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    producers: FxHashMap<u32, Producer>,
    pushes: FxHashMap<(Maker, u16), u64>,
    /// A producer's state after a gap.
    unknown: FxHashMap<(u32, u16), u64>,
    activations: FxHashMap<Connection, u64>,
    channels: FxHashMap<u16, Numbered>,
    tasks: FxHashMap<u16, Numbered>,
    gaps: u64,
    /// End of the gap, in nanoseconds.
    gap_until: u64,
    first: Option<u64>,
    last: u64,
    events: u64,
}

/// A program, as its trace shows it.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(super) task_names: BTreeMap<u16, String>,
    pub(super) channel_names: BTreeMap<u16, String>,
    /// By channel: who pushed how often.
    pub(super) pushes: BTreeMap<u16, BTreeMap<Maker, u64>>,
    pub(super) missing_pushes: BTreeMap<u16, u64>,
    /// By channel: time of the last push, in nanoseconds.
    pub(super) last_pushes: BTreeMap<u16, u64>,
    /// By channel: the tasks it can activate, and how many pushes did.
    pub(super) activates: BTreeMap<u16, BTreeMap<u16, u64>>,
    pub(super) declared: BTreeSet<Connection>,
    /// How declared connections count, if known. A channel may be connected to a task twice.
    pub(super) armings: BTreeMap<Connection, Vec<Arming>>,
    pub(super) barriers: BTreeMap<u16, Barrier>,
    /// Whether the trace tells which push an activation takes.
    pub(super) has_told_takes: bool,
    /// How connections are known; `declared` has those that were seen too.
    pub(super) connections: Connections,
    /// Connections that are a guess.
    pub(super) assumed: BTreeSet<Connection>,
    /// Where the trace says that tasks or connections may be missing.
    pub(super) openings: Vec<Opening>,
    /// By task: the channels to each task after it.
    pub(super) successors: BTreeMap<u16, BTreeMap<u16, Vec<u16>>>,
    /// Producers that execute tasks, or might.
    pub(super) executing: BTreeSet<u32>,
    /// Tasks activated from outside: by pushes from outside, or without a push.
    pub(super) stimulated: BTreeSet<u16>,
    pub(super) missing_activations: BTreeMap<u16, u64>,
    /// Whether no event is missing.
    pub(super) is_whole: bool,
    /// After this time, in nanoseconds, events are missing by their numbers although no gap says so: a stream
    /// ends early, or is absent.
    pub(super) missing_from: u64,
    /// Times of the first and the last event, in nanoseconds; and the number of events.
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) events: u64,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Takes the trace's next item.
    #[inline]
    pub fn item(&mut self, item: &Item) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => self.gap(gap),
            // Activations that follow belong to the round that ends with it.
            Item::Count(count) => self.belongs_to(count.producer, count.channel),
            Item::Take(take) => self.belongs_to(take.producer, take.channel),
        }
    }

    /// Activations of the producer that follow belong to this channel.
    fn belongs_to(&mut self, producer: u32, channel: u16) {
        self.producers.entry(producer).or_insert(IDLE).push = Some(channel);
    }

    /// A number that grows with every part of the graph that is seen for the first time.
    pub(super) fn extent(&self) -> usize {
        let GraphBuilder { producers, pushes, unknown, activations, channels, tasks, .. } = self;
        producers.len() + pushes.len() + unknown.len() + activations.len() + channels.len() + tasks.len()
    }

    /// How many pushes and activations are missing by their numbers, so far.
    pub(super) fn missing(&self) -> u64 {
        self.channels.values().chain(self.tasks.values()).map(Numbered::missing).sum()
    }

    /// Events of anybody may be missing from here on.
    pub(super) fn doubt(&mut self) {
        for producer in self.producers.values_mut() {
            (producer.running, producer.push) = (Maker::Unknown, None);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.gaps += 1;
        self.gap_until = self.gap_until.max(gap.until.ns());
        let producer = self.producers.entry(gap.producer).or_insert(IDLE);
        (producer.running, producer.push) = (Maker::Unknown, None);
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        self.events += 1;
        self.first.get_or_insert(event.at.ns());
        self.last = event.at.ns();
        let producer = self.producers.entry(event.producer).or_insert(IDLE);
        match event.kind {
            Kind::Push => {
                producer.push = Some(event.object);
                self.channels.entry(event.object).or_default().add(event.number, event.at, self.gap_until);
                match producer.running {
                    Maker::Unknown => *self.unknown.entry((event.producer, event.object)).or_default() += 1,
                    maker => *self.pushes.entry((maker, event.object)).or_default() += 1,
                }
            }
            Kind::Activation => {
                let task = self.tasks.entry(event.object).or_default();
                task.add(event.number, event.at, self.gap_until);
                task.activation(event.number, event.at, self.gap_until);
                match producer.push {
                    Some(channel) => {
                        *self.activations.entry(Connection { channel, task: event.object }).or_default() += 1
                    }
                    None => task.alone += 1,
                }
            }
            Kind::Start => {
                *producer = Producer { running: Maker::Task(event.object), push: None, executes: true };
                self.tasks.entry(event.object).or_default().execution(event.number, false, self.gap_until);
            }
            Kind::Stop => {
                *producer = Producer { running: Maker::Outside, push: None, executes: true };
                self.tasks.entry(event.object).or_default().execution(event.number, true, self.gap_until);
            }
        }
    }

    /// The graph, including what the trace declares: its connections, and those found unless it declares all.
    pub fn finish(self, about: &About) -> Graph {
        let declared: BTreeSet<Connection> = about.inputs.iter().map(|input| input.connection).collect();
        let mut armings: BTreeMap<Connection, Vec<Arming>> = BTreeMap::new();
        for input in &about.inputs {
            armings.entry(input.connection).or_default().extend(input.arming);
        }
        let activates = self.activates(about, &declared);
        let executing = self.executing(about);
        let pushes = self.pushes(&executing);
        let channels = declared.iter().map(|connection| connection.channel);
        let channels = numbers(&self.channels, &about.channels, channels);
        let tasks = declared.iter().map(|connection| connection.task);
        let tasks = numbers(&self.tasks, &about.tasks, tasks);
        let missing_from = self.missing_from(about);
        Graph {
            task_names: names::unique(&tasks, &about.tasks, "task"),
            channel_names: names::unique(&channels, &about.channels, "channel"),
            missing_pushes: missing(&self.channels),
            last_pushes: self.channels.iter().map(|(number, seen)| (*number, seen.last)).collect(),
            successors: successors(&activates, &pushes),
            stimulated: self.stimulated(&activates, &pushes),
            pushes,
            activates,
            declared,
            armings,
            barriers: about.barriers.clone(),
            has_told_takes: about.has_told_takes,
            connections: match (about.has_all_inputs, about.has_seen_inputs) {
                (true, _) => Connections::Declared,
                (false, true) => Connections::Seen,
                (false, false) => Connections::Inferred,
            },
            assumed: about.assumed.clone(),
            openings: about.openings.clone(),
            executing,
            missing_activations: missing(&self.tasks),
            is_whole: self.gaps == 0 && missing_from == u64::MAX,
            missing_from,
            from: self.first.unwrap_or(0),
            until: self.last,
            events: self.events,
        }
    }

    /// The tasks that each channel activates, and how often.
    fn activates(&self, about: &About, declared: &BTreeSet<Connection>) -> Activates {
        let mut activates = Activates::new();
        for Connection { channel, task } in declared {
            activates.entry(*channel).or_default().insert(*task, 0);
        }
        let is_known = about.has_all_inputs || about.has_seen_inputs;
        let is_connection = |connection: &Connection| !is_known || declared.contains(connection);
        for (connection, count) in self.activations.iter().filter(|(connection, _)| is_connection(connection))
        {
            activates.entry(connection.channel).or_default().insert(connection.task, *count);
        }
        activates
    }

    /// The producers that execute tasks. Executors are numbered first. If their number is not declared, any
    /// producer may be one: its starts may be missing.
    fn executing(&self, about: &About) -> BTreeSet<u32> {
        let may_execute = |number: u32| about.executors.is_none_or(|executors| number < executors.max(1));
        let executing =
            self.producers.iter().filter(|(number, producer)| producer.executes || may_execute(**number));
        executing.map(|(number, _)| *number).collect()
    }

    /// Who pushes into each channel, and how often. A producer that never executes tasks is not a task,
    /// whatever is missing.
    fn pushes(&self, executing: &BTreeSet<u32>) -> Pushes {
        let maker =
            |producer: &u32| if executing.contains(producer) { Maker::Unknown } else { Maker::Outside };
        let unknown =
            self.unknown.iter().map(|((producer, channel), count)| (maker(producer), *channel, *count));
        let known = self.pushes.iter().map(|((maker, channel), count)| (*maker, *channel, *count));
        let mut pushes = Pushes::new();
        for (maker, channel, count) in known.chain(unknown) {
            *pushes.entry(channel).or_default().entry(maker).or_default() += count;
        }
        pushes
    }

    /// The tasks that something outside the program activates.
    fn stimulated(&self, activates: &Activates, pushes: &Pushes) -> BTreeSet<u16> {
        let alone = self.tasks.iter().filter(|(_, task)| task.alone > 0).map(|(number, _)| *number);
        let has_outside =
            |channel| pushes.get(channel).is_some_and(|makers| makers.contains_key(&Maker::Outside));
        let outside = activates.iter().filter(|(channel, _)| has_outside(channel));
        alone.chain(outside.flat_map(|(_, tasks)| tasks.keys().copied())).collect()
    }

    /// When the first event is missing; the greatest time if none is.
    fn missing_from(&self, about: &About) -> u64 {
        // A task whose inputs declare how they count is activated only after the instance before has ended;
        // else that stop is missing.
        let is_serial = |task: &u16| {
            let mut inputs = about.inputs.iter().filter(|input| input.connection.task == *task).peekable();
            about.has_all_inputs
                && !about.has_told_takes
                && inputs.peek().is_some()
                && inputs.all(|input| input.arming.is_some())
        };
        let serial = self.tasks.iter().filter(|(task, _)| is_serial(task));
        let unended = serial.filter_map(|(_, seen)| seen.unended.iter().map(|(_, since)| *since).min());
        let seen = self.channels.values().chain(self.tasks.values());
        let jumped = seen.filter(|seen| seen.missing() > 0).filter_map(|seen| seen.jumped);
        jumped.chain(unended).min().unwrap_or(u64::MAX)
    }
}

/// Whether each activation of a task takes the threshold of each of its queues: it waits for all of them.
pub(super) fn serial_takes(about: &About, task: u16) -> bool {
    let mut inputs = about.inputs.iter().filter(|input| input.connection.task == task);
    (about.has_all_inputs || about.has_seen_inputs)
        && inputs.all(|input| input.arming.is_some_and(|arming| !arming.optional && !arming.is_final))
}

/// By channel, the tasks that it activates, and how often.
type Activates = BTreeMap<u16, BTreeMap<u16, u64>>;

/// By channel, who pushes into it, and how often.
type Pushes = BTreeMap<u16, BTreeMap<Maker, u64>>;

/// By task and successor, the channels from one to the other.
fn successors(activates: &Activates, pushes: &Pushes) -> BTreeMap<u16, BTreeMap<u16, Vec<u16>>> {
    let mut successors: BTreeMap<u16, BTreeMap<u16, Vec<u16>>> = BTreeMap::new();
    for (channel, tasks) in activates {
        for maker in pushes.get(channel).into_iter().flat_map(BTreeMap::keys) {
            if let Maker::Task(from) = maker {
                let successors = successors.entry(*from).or_default();
                tasks.keys().for_each(|task| successors.entry(*task).or_default().push(*channel));
            }
        }
    }
    successors
}

/// All numbers that were seen, named or connected.
fn numbers(
    seen: &FxHashMap<u16, Numbered>,
    named: &BTreeMap<u16, String>,
    connected: impl Iterator<Item = u16>,
) -> BTreeSet<u16> {
    seen.keys().copied().chain(named.keys().copied()).chain(connected).collect()
}

/// By number, how many events are missing.
fn missing(seen: &FxHashMap<u16, Numbered>) -> BTreeMap<u16, u64> {
    let missing = seen.iter().map(|(number, seen)| (*number, seen.missing()));
    missing.filter(|(_, missing)| *missing > 0).collect()
}

impl Graph {
    /// The graph of a part in which nothing is missing.
    pub(super) fn of_whole_part(mut self) -> Graph {
        self.missing_pushes.clear();
        self.missing_activations.clear();
        Graph { is_whole: true, missing_from: u64::MAX, ..self }
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Time of the first event.
    pub fn from(&self) -> Instant {
        Instant::from_ns(self.from)
    }

    /// Time of the last event.
    pub fn until(&self) -> Instant {
        Instant::from_ns(self.until)
    }

    /// A task's name.
    pub fn task_name(&self, number: u16) -> &str {
        self.task_names.get(&number).map_or("", String::as_str)
    }

    /// Names of all tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        self.task_names.values().map(String::as_str)
    }

    /// Whether tasks push to this channel.
    pub(super) fn has_maker(&self, channel: u16) -> bool {
        let makers = self.pushes.get(&channel).into_iter().flat_map(BTreeMap::keys);
        makers.into_iter().any(|maker| matches!(maker, Maker::Task(_)))
    }

    /// Whether no connection is missing from the graph.
    pub(super) fn knows_connections(&self) -> bool {
        self.connections != Connections::Inferred
    }

    /// Tasks that a task's data can activate, with the channels between.
    pub(super) fn successors(&self, task: u16) -> impl Iterator<Item = (u16, &[u16])> {
        self.successors.get(&task).into_iter().flatten().map(|(task, channels)| (*task, &channels[..]))
    }

    pub(super) fn channels_between(&self, from: u16, to: u16) -> &[u16] {
        self.successors.get(&from).and_then(|successors| successors.get(&to)).map_or(&[], Vec::as_slice)
    }
}
