//! A system of ROS 2 that is simulated: nodes in three processes, timers, topics with one and two publishers,
//! queues that overflow, transport that reorders, messages within a process, variables, and an executor with
//! several threads. It keeps books of its chains.

use crate::ctf::Value::{Bytes, I32, I64, Text, U64};
use crate::ctf::{Layout, Value, Writer};
use crate::random::Random;
use crate::ros2::{Event, Tracer};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::path::Path;

/// Callbacks by number; each knows its node, and what it does.
#[derive(Clone, Copy, Debug)]
struct Callback {
    name: &'static str,
    node: usize,
    /// Topic that it takes; or a timer's period.
    input: Result<usize, u64>,
    publishes: Option<usize>,
    /// Nanoseconds that it takes.
    cost: (u64, u64),
    /// Whether its messages come within the process.
    is_intra: bool,
}

const TOPICS: [&str; 5] = ["/image", "/objects", "/imu", "/tracks", "/cmd"];
const NODES: [(&str, &str, usize); 7] = [
    ("camera", "/", 0),
    ("camera2", "/", 0),
    ("imu", "/sensors", 0),
    ("detector", "/", 1),
    ("tracker", "/", 1),
    ("planner", "/", 2),
    ("actuator", "/", 2),
];
/// Processes: number, name, threads.
const PROCESSES: [(i32, &str, i32); 3] =
    [(1000, "sensors", 1), (2000, "perception", 2), (3000, "control", 1)];
const MS: u64 = 1_000_000;

/// The callback that logs, with Humble.
const LOGGING: usize = 8;

const CALLBACKS: [Callback; 9] = [
    timer("/camera:timer-10ms", 0, 10, Some(0), (300, 700)),
    timer("/camera2:timer-14ms", 1, 14, Some(0), (200, 500)),
    timer("/sensors/imu:timer-5ms", 2, 5, Some(2), (20, 60)),
    takes("/detector:/image", 3, 0, Some(1), (2_000, 9_000), false),
    takes("/tracker:/objects", 4, 1, None, (100, 400), false),
    timer("/tracker:timer-20ms", 4, 20, Some(3), (500, 1_500)),
    takes("/planner:/tracks", 5, 3, Some(4), (1_000, 3_000), false),
    takes("/planner:/imu", 5, 2, None, (50, 100), false),
    takes("/actuator:/cmd", 6, 4, None, (100, 300), true),
];

const fn timer(
    name: &'static str,
    node: usize,
    ms: u64,
    publishes: Option<usize>,
    cost: (u64, u64),
) -> Callback {
    Callback { name, node, input: Err(ms * MS), publishes, cost, is_intra: false }
}

const fn takes(
    name: &'static str,
    node: usize,
    topic: usize,
    publishes: Option<usize>,
    cost: (u64, u64),
    is_intra: bool,
) -> Callback {
    Callback { name, node, input: Ok(topic), publishes, cost, is_intra }
}

/// Writers and readers of variables: those that publish nothing, and those of their nodes that do.
pub const VARIABLES: [(&str, &str); 2] =
    [("/planner:/imu", "/planner:/tracks"), ("/tracker:/objects", "/tracker:timer-20ms")];

/// All chains from sensors to the actuator, by callback.
const CHAINS: [&[usize]; 3] = [&[0, 3, 4, 5, 6, 8], &[1, 3, 4, 5, 6, 8], &[2, 7, 6, 8]];

/// What the data of one instance come from: by chain and place in it, the instance of the chain's source and
/// its activation.
type Lineage = BTreeMap<(usize, usize), (u64, u64)>;

#[derive(Clone, Debug)]
struct Message {
    stamp: u64,
    by: usize,
    lineage: Lineage,
    /// Slot of the ring buffer.
    slot: u64,
}

/// What is known of one chain without reading the trace.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Names of its callbacks.
    pub tasks: Vec<&'static str>,
    /// Of every instance of the sink that had a datum: source's instance, its activation, end of the sink's.
    pub(crate) sinks: Vec<(u64, u64, u64)>,
    /// Activations of the source, by instance, as far as they put data on the chain.
    pub(crate) sources: Vec<(u64, u64)>,
}

impl Chain {
    /// Data ages, as begin and end, in order.
    pub fn ages(&self) -> Vec<(u64, u64)> {
        self.sinks.iter().map(|(_, from, until)| (*from, *until)).collect()
    }

    /// Reaction times of all instances of the source that the sink reacted to.
    pub fn reactions(&self) -> Vec<(u64, u64)> {
        let reaction = |(source, from): &(u64, u64)| {
            let first = self.sinks.iter().find(|(newest, ..)| newest >= source);
            first.map(|(_, _, until)| (*from, *until))
        };
        self.sources.iter().filter_map(reaction).collect()
    }
}

/// What a reader must find.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Events of the trace.
    pub events: u64,
    /// The chains, each from a sensor to the actuator.
    pub chains: Vec<Chain>,
    /// By name: how often a callback ran to its end, and its shortest and longest time.
    pub tasks: BTreeMap<&'static str, (u64, u64, u64)>,
    /// By name: publications.
    pub topics: BTreeMap<&'static str, u64>,
    /// Messages that a full queue dropped.
    pub dropped: u64,
}

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Timer(usize),
    Arrival(usize, u64),
    Publication(usize, usize),
    End(usize, usize),
}

/// The system at work.
pub struct System {
    tracer: Tracer,
    random: Random,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    /// Messages on their way, by number.
    messages: BTreeMap<u64, Message>,
    sent: u64,
    queues: Vec<VecDeque<Message>>,
    slots: Vec<u64>,
    timers: Vec<u64>,
    /// By process and thread: until when it is busy.
    busy: Vec<Vec<bool>>,
    nodes_busy: [bool; NODES.len()],
    variables: BTreeMap<usize, Lineage>,
    running: BTreeMap<usize, Run>,
    instances: [u64; CALLBACKS.len()],
    books: Books,
    out: Vec<Event>,
    /// A processor's events are discarded now and then: after so many of the trace.
    losses: Option<u64>,
    /// Kinds of events that are left out, and of which callbacks.
    left_out: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Debug)]
struct Run {
    thread: usize,
    cpu: u32,
    start: u64,
    lineage: Lineage,
}

pub(crate) fn handle(kind: u64, number: usize) -> u64 {
    0x5500_0000_0000 + (kind << 20) + 0x100 * number as u64
}

impl System {
    /// A system whose chances depend on the seed.
    pub fn new(tracer: Tracer, seed: u64) -> System {
        let chain = |tasks: &&[usize]| Chain {
            tasks: tasks.iter().map(|task| CALLBACKS[*task].name).collect(),
            ..Chain::default()
        };
        System {
            tracer,
            random: Random(seed),
            due: BinaryHeap::new(),
            messages: BTreeMap::new(),
            sent: 0,
            queues: vec![VecDeque::new(); CALLBACKS.len()],
            slots: vec![0; CALLBACKS.len()],
            timers: vec![0; CALLBACKS.len()],
            busy: PROCESSES.iter().map(|(_, _, threads)| vec![false; *threads as usize]).collect(),
            nodes_busy: [false; NODES.len()],
            variables: BTreeMap::new(),
            running: BTreeMap::new(),
            instances: [0; CALLBACKS.len()],
            books: Books { chains: CHAINS.iter().map(chain).collect(), ..Books::default() },
            out: Vec::new(),
            losses: None,
            left_out: Vec::new(),
        }
    }

    /// Events of one processor are discarded, about every so many events of the trace.
    pub fn with_losses(self, every: u64) -> System {
        System { losses: Some(every), ..self }
    }

    /// Without events of this kind of a callback, as if the trace had begun after them.
    pub fn without(mut self, class: &'static str, callback: &'static str) -> System {
        self.left_out.push((class, callback));
        self
    }

    /// Writes a trace of at least so many events, or of so much time, into a folder.
    pub fn write(mut self, folder: &Path, layout: Layout, events: u64) -> std::io::Result<Books> {
        let mut writer = Writer::create(folder, layout, 4)?;
        let mut now = 1_000 * MS;
        self.declare(now);
        now += 100 * MS;
        for (callback, of) in CALLBACKS.iter().enumerate() {
            if of.input.is_err() {
                self.due.push(Reverse((now + callback as u64 * MS / 3, Due::Timer(callback))));
            }
        }
        let mut pending: Vec<Event> = Vec::new();
        while writer.events < events {
            let Some(Reverse((at, due))) = self.due.pop() else { break };
            now = at;
            self.happen(now, due);
            self.dispatch(now);
            pending.append(&mut self.out);
            // Nothing that happens later is earlier.
            if pending.len() > 512 {
                self.flush(&mut writer, &mut pending, now)?;
            }
        }
        self.flush(&mut writer, &mut pending, u64::MAX)?;
        self.books.events = writer.finish()?;
        Ok(self.books)
    }

    fn event(
        &mut self,
        at: u64,
        cpu: u32,
        callback: usize,
        thread: usize,
        class: &'static str,
        fields: Vec<Value>,
    ) {
        if self.left_out.contains(&(class, CALLBACKS[callback].name)) {
            return;
        }
        let process = NODES[CALLBACKS[callback].node].2;
        let (pid, name, _) = PROCESSES[process];
        let thread = (pid, pid + thread as i32, name);
        self.out.push(Event { at, cpu, thread, class, fields });
    }

    /// Everything is made.
    fn declare(&mut self, at: u64) {
        for (node, (name, namespace, _)) in NODES.iter().enumerate() {
            let callback = CALLBACKS.iter().position(|it| it.node == node).expect("a callback");
            let fields = vec![U64(handle(1, node)), U64(1), Text((*name).into()), Text((*namespace).into())];
            self.event(at, 0, callback, 0, "ros2:rcl_node_init", fields);
        }
        if self.tracer == Tracer::Humble {
            self.discover(at);
        }
        for (number, callback) in CALLBACKS.iter().enumerate() {
            let node = handle(1, callback.node);
            if let (Some(topic), Tracer::Humble) = (callback.publishes, self.tracer) {
                self.declare_writer(at, number, handle(4, number), &format!("rt{}", TOPICS[topic]));
            }
            if let Some(topic) = callback.publishes {
                let fields = vec![
                    U64(handle(2, number)),
                    U64(node),
                    U64(handle(3, number)),
                    Text(TOPICS[topic].into()),
                    U64(10),
                ];
                self.event(at + 1, 0, number, 0, "ros2:rcl_publisher_init", fields);
            }
            match callback.input {
                Err(period) => {
                    let timer = handle(6, number);
                    self.event(
                        at + 2,
                        0,
                        number,
                        0,
                        "ros2:rcl_timer_init",
                        vec![U64(timer), I64(period as i64)],
                    );
                    let fields = vec![U64(timer), U64(handle(5, number))];
                    self.event(at + 3, 0, number, 0, "ros2:rclcpp_timer_callback_added", fields);
                    let fields = vec![U64(timer), U64(node)];
                    self.event(at + 4, 0, number, 0, "ros2:rclcpp_timer_link_node", fields);
                }
                Ok(topic) => self.declare_subscription(at, number, node, topic),
            }
        }
    }

    /// Whether the tracer shows messages within a process.
    fn shows_rings(&self) -> bool {
        !matches!(self.tracer, Tracer::Caret | Tracer::Humble)
    }

    fn declare_writer(&mut self, at: u64, callback: usize, writer: u64, topic: &str) {
        let fields = vec![U64(writer), Text(topic.into()), Bytes(vec![1; 12]), Bytes(vec![3; 4])];
        self.event(at, 0, callback, 0, "dds:create_writer", fields);
    }

    /// The middleware's own subscription and publications, and those of the actuator's log, which nobody
    /// declares but as a writer.
    fn discover(&mut self, at: u64) {
        let (writer, reader) = (handle(14, 0), handle(14, 1));
        let fields = vec![U64(reader), Bytes(vec![1; 24])];
        self.event(at, 0, LOGGING, 0, "ros2:rmw_subscription_init", fields);
        self.declare_writer(at + 1, LOGGING, writer, "ros_discovery_info");
        self.declare_writer(at + 2, LOGGING, handle(14, 2), "rt/rosout");
        self.event(at + 3, 0, LOGGING, 0, "ros2:rmw_publish", vec![U64(0x7FFC_0000)]);
        self.write_sample(at + 4, 0, (LOGGING, 0), writer, 5);
        self.event(at + 6, 0, LOGGING, 0, "ros2:rmw_take", vec![U64(reader), U64(1), I64(5), I32(1)]);
    }

    fn write_sample(
        &mut self,
        at: u64,
        cpu: u32,
        (callback, thread): (usize, usize),
        writer: u64,
        stamp: u64,
    ) {
        self.event(at, cpu, callback, thread, "dds:write_pre", vec![U64(writer), U64(0x7FFD_0000)]);
        let fields = vec![U64(writer), I64(stamp as i64)];
        self.event(at + 1, cpu, callback, thread, "dds:write", fields);
    }

    /// A line of the log: its publisher has another address than when it was made.
    fn log(&mut self, at: u64, cpu: u32, callback: usize, thread: usize) {
        let message = U64(0x7FFC_1000);
        let fields = vec![U64(handle(14, 3)), message.clone()];
        self.event(at, cpu, callback, thread, "ros2:rcl_publish", fields);
        self.event(at, cpu, callback, thread, "ros2:rmw_publish", vec![message]);
        self.write_sample(at, cpu, (callback, thread), handle(14, 2), 1_700_000_000_000_000_000 + at);
        *self.books.topics.entry("/rosout").or_default() += 1;
    }

    fn declare_subscription(&mut self, at: u64, number: usize, node: u64, topic: usize) {
        let (subscription, object) = (handle(7, number), handle(9, number));
        let fields =
            vec![U64(subscription), U64(node), U64(handle(8, number)), Text(TOPICS[topic].into()), U64(10)];
        self.event(at + 2, 0, number, 0, "ros2:rcl_subscription_init", fields);
        let callback = U64(handle(5, number));
        let mut makes = vec![
            ("ros2:rclcpp_subscription_init", vec![U64(subscription), U64(object)]),
            ("ros2:rclcpp_subscription_callback_added", vec![U64(object), callback.clone()]),
        ];
        if CALLBACKS[number].is_intra && self.shows_rings() {
            // The side within the process comes first, and belongs to the subscription last.
            let (ring, buffer, intra) = (handle(10, number), handle(11, number), handle(12, number));
            makes[1].1[1] = U64(handle(13, number));
            makes.splice(
                0..0,
                [
                    ("ros2:rclcpp_buffer_to_ipb", vec![U64(ring), U64(buffer)]),
                    ("ros2:rclcpp_ipb_to_subscription", vec![U64(buffer), U64(intra)]),
                    ("ros2:rclcpp_subscription_callback_added", vec![U64(intra), callback]),
                    ("ros2:rclcpp_subscription_init", vec![U64(subscription), U64(intra)]),
                ],
            );
        }
        for (place, (class, fields)) in makes.into_iter().enumerate() {
            self.event(at + 3 + place as u64, 0, number, 0, class, fields);
        }
    }

    fn happen(&mut self, now: u64, due: Due) {
        match due {
            Due::Timer(callback) => {
                self.timers[callback] += 1;
                let period = CALLBACKS[callback].input.expect_err("a timer");
                let jitter = self.random.between(0, 50_000);
                self.due.push(Reverse((now / period * period + period + jitter, Due::Timer(callback))));
            }
            Due::Arrival(callback, message) => {
                let message = self.messages.remove(&message).expect("sent");
                let queue = &mut self.queues[callback];
                queue.push_back(message);
                // The queue of the detector is short.
                if queue.len() > if callback == 3 { 2 } else { 10 } {
                    queue.pop_front();
                    self.books.dropped += 1;
                }
            }
            Due::Publication(callback, topic) => self.publish(now, callback, topic),
            Due::End(callback, _) => self.end(now, callback),
        }
    }

    /// Free threads take what is ready.
    fn dispatch(&mut self, now: u64) {
        for process in 0..PROCESSES.len() {
            while let Some(thread) = self.busy[process].iter().position(|busy| !busy) {
                let is_ready = |callback: &usize| {
                    let of = &CALLBACKS[*callback];
                    NODES[of.node].2 == process
                        && !self.nodes_busy[of.node]
                        && (self.timers[*callback] > 0 || !self.queues[*callback].is_empty())
                };
                let Some(callback) = (0..CALLBACKS.len()).find(is_ready) else { break };
                self.start(now, callback, process, thread);
            }
        }
    }

    fn start(&mut self, now: u64, callback: usize, process: usize, thread: usize) {
        let of = CALLBACKS[callback];
        let cpu = self.random.between(0, 3) as u32;
        self.busy[process][thread] = true;
        self.nodes_busy[of.node] = true;
        let instance = self.instances[callback];
        self.instances[callback] += 1;
        let message = match of.input {
            Err(_) => {
                self.timers[callback] -= 1;
                None
            }
            Ok(_) => self.queues[callback].pop_front(),
        };
        // The take, and then the start.
        let start = now + 1_000;
        let activation =
            message.as_ref().map_or(start, |message| self.take(now, cpu, callback, thread, message));
        self.event(
            start,
            cpu,
            callback,
            thread,
            "ros2:callback_start",
            vec![U64(handle(5, callback)), I32(i32::from(of.is_intra))],
        );
        let lineage = self.lineage(callback, instance, activation, message.as_ref());
        let cost = self.random.between(of.cost.0 * 1_000, of.cost.1 * 1_000);
        if let Some(topic) = of.publishes {
            self.due.push(Reverse((start + cost * 3 / 4, Due::Publication(callback, topic))));
        }
        self.due.push(Reverse((start + cost, Due::End(callback, process))));
        self.running.insert(callback, Run { thread, cpu, start, lineage });
    }

    /// When it was activated.
    fn take(&mut self, now: u64, cpu: u32, callback: usize, thread: usize, message: &Message) -> u64 {
        let of = CALLBACKS[callback];
        let at = now + 400;
        let stamp = message.stamp;
        if of.is_intra && self.shows_rings() {
            let fields = vec![U64(handle(10, callback)), U64(message.slot), U64(1)];
            self.event(at, cpu, callback, thread, "ros2:rclcpp_ring_buffer_dequeue", fields);
        } else if self.tracer == Tracer::Caret {
            let fields = vec![U64(0x7FAE_0000), U64(handle(5, callback)), U64(stamp), U64(0)];
            self.event(at, cpu, callback, thread, "ros2:dispatch_subscription_callback", fields);
        } else {
            // An attempt that takes nothing, as executors make them.
            let nothing = vec![U64(handle(8, callback)), U64(0x7FAE_0000), I64(0), I32(0)];
            self.event(now + 200, cpu, callback, thread, "ros2:rmw_take", nothing);
            let fields = vec![U64(handle(8, callback)), U64(0x7FAE_0000), I64(stamp as i64), I32(1)];
            self.event(at, cpu, callback, thread, "ros2:rmw_take", fields);
        }
        at
    }

    /// What the instance's data come from, by the rules of queues and newest values.
    fn lineage(
        &mut self,
        callback: usize,
        instance: u64,
        activation: u64,
        message: Option<&Message>,
    ) -> Lineage {
        let mut lineage = Lineage::new();
        for (chain, tasks) in CHAINS.iter().enumerate() {
            for place in (0..tasks.len()).filter(|place| tasks[*place] == callback) {
                if place == 0 {
                    lineage.insert((chain, 0), (instance, activation));
                    if CALLBACKS[callback].publishes.is_some() {
                        self.books.chains[chain].sources.push((instance, activation));
                    }
                    continue;
                }
                let before = tasks[place - 1];
                let by_message = message
                    .filter(|message| message.by == before)
                    .and_then(|it| it.lineage.get(&(chain, place - 1)));
                let by_variable = self.variables.get(&before).and_then(|it| it.get(&(chain, place - 1)));
                let newest = by_message.max(by_variable).copied();
                lineage.extend(newest.map(|newest| ((chain, place), newest)));
            }
        }
        lineage
    }

    fn publish(&mut self, now: u64, callback: usize, topic: usize) {
        let run = self.running[&callback].clone();
        let (cpu, thread) = (run.cpu, run.thread);
        let publisher = handle(2, callback);
        let address = 0x7FFD_0000 + self.sent % 4 * 0x100;
        let intra = CALLBACKS.iter().position(|it| it.is_intra && it.input == Ok(topic));
        *self.books.topics.entry(TOPICS[topic]).or_default() += 1;
        let stamp = 1_700_000_000_000_000_000 + now + 7;
        if let (Some(reader), true) = (intra, self.shows_rings()) {
            let slot = self.slots[reader] % 10;
            self.slots[reader] += 1;
            self.event(
                now,
                cpu,
                callback,
                thread,
                "ros2:rclcpp_intra_publish",
                vec![U64(publisher), U64(address)],
            );
            let fields = vec![U64(handle(10, reader)), U64(slot), U64(1), I32(0)];
            self.event(now + 3, cpu, callback, thread, "ros2:rclcpp_ring_buffer_enqueue", fields);
            self.send(
                now,
                reader,
                Message { stamp, by: callback, lineage: run.lineage.clone(), slot },
                10_000,
            );
        }
        // Others, outside the process, may want the same message.
        self.event(now + 4, cpu, callback, thread, "ros2:rclcpp_publish", vec![U64(address)]);
        self.event(now + 5, cpu, callback, thread, "ros2:rcl_publish", vec![U64(publisher), U64(address)]);
        let rmw = U64(handle(3, callback));
        match self.tracer {
            Tracer::Jazzy => {
                let fields = vec![rmw, U64(address), I64(stamp as i64)];
                self.event(now + 7, cpu, callback, thread, "ros2:rmw_publish", fields);
            }
            Tracer::Humble | Tracer::Iron => {
                self.event(now + 6, cpu, callback, thread, "ros2:rmw_publish", vec![U64(address)]);
                if self.tracer == Tracer::Humble {
                    self.write_sample(now + 6, cpu, (callback, thread), handle(4, callback), stamp);
                }
            }
            Tracer::Caret => {
                self.event(now + 6, cpu, callback, thread, "ros2_caret:dds_write", vec![U64(address)]);
                let fields = vec![U64(address), U64(stamp)];
                self.event(now + 7, cpu, callback, thread, "ros2_caret:dds_bind_addr_to_stamp", fields);
            }
        }
        let is_to = |reader: &usize| {
            let of = &CALLBACKS[*reader];
            of.input == Ok(topic) && (!of.is_intra || !self.shows_rings())
        };
        let readers: Vec<usize> = (0..CALLBACKS.len()).filter(is_to).collect();
        for reader in readers {
            let message = Message { stamp, by: callback, lineage: run.lineage.clone(), slot: 0 };
            // Long enough for one publisher's message to overtake another's.
            self.send(now, reader, message, 3 * MS);
        }
    }

    fn send(&mut self, now: u64, reader: usize, message: Message, most: u64) {
        let delay = self.random.between(5_000, most.max(6_000));
        self.messages.insert(self.sent, message);
        self.due.push(Reverse((now + delay, Due::Arrival(reader, self.sent))));
        self.sent += 1;
    }

    fn end(&mut self, now: u64, callback: usize) {
        let run = self.running.remove(&callback).expect("it runs");
        let of = CALLBACKS[callback];
        if callback == LOGGING && self.tracer == Tracer::Humble {
            self.log(now - 10, run.cpu, callback, run.thread);
        }
        self.event(now, run.cpu, callback, run.thread, "ros2:callback_end", vec![U64(handle(5, callback))]);
        self.busy[NODES[of.node].2][run.thread] = false;
        self.nodes_busy[of.node] = false;
        let time = now - run.start;
        let (count, least, most) = self.books.tasks.entry(of.name).or_insert((0, u64::MAX, 0));
        (*count, *least, *most) = (*count + 1, (*least).min(time), (*most).max(time));
        for (chain, tasks) in CHAINS.iter().enumerate() {
            if let Some((source, from)) = run.lineage.get(&(chain, tasks.len() - 1)) {
                if tasks[tasks.len() - 1] == callback {
                    self.books.chains[chain].sinks.push((*source, *from, now));
                }
            }
        }
        if VARIABLES.iter().any(|(writer, _)| *writer == of.name) {
            self.variables.insert(callback, run.lineage);
        }
    }
}

impl System {
    /// Writes what is before that time, in order.
    fn flush(&mut self, writer: &mut Writer, pending: &mut Vec<Event>, until: u64) -> std::io::Result<()> {
        pending.sort_by_key(|event| event.at);
        let ready = pending.partition_point(|event| event.at < until);
        let (mut lossy, mut lost) = (None, 0);
        for event in pending.drain(..ready) {
            let begins =
                self.losses.is_some_and(|every| writer.events > 1_000 && self.random.next() % every == 0);
            if begins && lossy.is_none() {
                lossy = Some(event.cpu);
            }
            if lossy == Some(event.cpu) && lost < 20 {
                lost += 1;
                continue;
            }
            if let Some(cpu) = lossy.filter(|_| lost == 20) {
                writer.discard(cpu, std::mem::take(&mut lost))?;
                lossy = None;
            }
            writer.event(event.cpu, event.at, event.class, &event.context(), &event.fields)?;
        }
        match lossy {
            Some(cpu) => writer.discard(cpu, lost),
            None => Ok(()),
        }
    }
}
