//! Nodes, topics and callbacks of all processes, as events declare them.

use super::calls::{Call, Handle, Owner, Thread};
use super::table::Table;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Most objects of a kind; a trace with more is not of one system.
const MOST: usize = 1 << 20;

/// Most callbacks and buffers of an object; rclcpp gives it one of each.
const MOST_GIVEN: usize = 4;

/// Topics that every node has, and that carry no data of the application.
const OF_EVERY_NODE: [&str; 3] = ["/rosout", "/parameter_events", "/clock"];

/// Services that every node has.
const SERVICES_OF_EVERY_NODE: [&str; 7] = [
    "describe_parameters",
    "get_parameter_types",
    "get_parameters",
    "get_type_description",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

/// What calls a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Messages of this topic, by index.
    Topic(usize),
    /// A timer of this period, in nanoseconds.
    Timer(i64),
    /// Requests to a service: their topic.
    Service(usize),
    /// Responses to a client: their topic.
    Client(usize),
    /// The trace begins after it was made.
    Unknown(Handle),
}

/// A callback: a task. The same subscription may have several objects, within a process and without.
#[derive(Clone, Debug)]
pub struct Task {
    pub node: Option<usize>,
    pub cause: Cause,
    pub has_run: bool,
    /// Whether it published on a topic of the application.
    pub publishes: bool,
}

impl Task {
    pub fn is_unknown(&self) -> bool {
        matches!(self.cause, Cause::Unknown(_))
    }
}

/// Where a publisher publishes.
#[derive(Clone, Copy, Debug)]
struct Publisher {
    topic: usize,
    handle: Handle,
}

/// What a subscription's object is given.
#[derive(Clone, Copy, Debug)]
enum Given {
    Callback(Handle),
    Buffer(Handle),
}

/// An object of one process.
type Of = (u32, Handle);

/// Everything that has been declared.
#[derive(Debug, Default)]
pub struct Graph {
    /// Full names.
    pub nodes: Vec<String>,
    /// Topics, and services as `service NAME`.
    pub topics: Vec<String>,
    pub tasks: Vec<Task>,
    topics_by_name: FxHashMap<String, usize>,
    nodes_by_handle: Table<Of, usize>,
    publishers: Table<Of, usize>,
    rmw_publishers: Table<Of, Publisher>,
    /// The topic of a writer of the middleware; `None` where it is none of ROS.
    writers: Table<Of, Option<usize>>,
    subscriptions: Table<Of, usize>,
    rmw_subscriptions: Table<Of, usize>,
    /// All subscriptions that the middleware made.
    made: FxHashSet<Of>,
    objects: Table<Of, usize>,
    services: Table<Of, usize>,
    rmw_services: Table<Of, usize>,
    /// The topic of a client's requests, and the task that its responses call.
    clients: Table<Of, (usize, usize)>,
    client_ids: Table<Of, [u8; 16]>,
    /// The topic of the responses to a client, by its identity.
    responses: Table<[u8; 16], usize>,
    timers: Table<Of, usize>,
    callbacks: Table<Of, usize>,
    rings: Table<Of, Handle>,
    buffers: Table<Of, usize>,
    /// What an object was given before it was said to be a subscription's: rclcpp makes the side within the
    /// process so.
    early: FxHashMap<Of, Vec<Given>>,
    /// Whether the trace has subscriptions of nodes.
    has_subscriptions: bool,
    is_second: bool,
}

impl Graph {
    /// Takes what declares something. False if there is too much.
    pub fn declare(&mut self, thread: Thread, call: &Call) -> bool {
        let of = |handle: Handle| (thread.pid, handle);
        match call {
            Call::Node { node, name, namespace } => {
                let nodes = &mut self.nodes;
                self.nodes_by_handle.define(of(*node), || push(nodes, full_name(namespace, name)));
            }
            Call::Publisher { publisher, rmw, topic } => {
                let topic = self.topic(topic);
                self.publishers.define(of(*publisher), || topic);
                self.rmw_publishers.define(of(*rmw), || Publisher { topic, handle: *publisher });
            }
            Call::Writer { writer, topic } => {
                let topic = topic.strip_prefix("rt/").map(|topic| self.topic(&format!("/{topic}")));
                self.writers.define(of(*writer), || topic);
            }
            Call::Subscription { subscription, node, rmw, topic } => {
                let topic = self.topic(topic);
                let task = self.task(of(*node), Cause::Topic(topic));
                self.has_subscriptions = true;
                self.subscriptions.define(of(*subscription), || task);
                self.rmw_subscriptions.define(of(*rmw), || task);
            }
            Call::RmwSubscription { rmw } => _ = self.made.insert(of(*rmw)),
            Call::SubscriptionObject { subscription, object } => {
                if let Some(task) = self.subscriptions.get(&of(*subscription)) {
                    self.objects.define(of(*object), || task);
                    for given in self.early.remove(&of(*object)).unwrap_or_default() {
                        self.give(thread.pid, task, given);
                    }
                }
            }
            Call::Service { service, node, rmw, name } => {
                let topic = self.topic(&format!("service {name}"));
                let task = self.task(of(*node), Cause::Service(topic));
                self.services.define(of(*service), || task);
                self.rmw_services.define(of(*rmw), || task);
            }
            Call::Client { node, rmw, name } => self.client(thread, (*node, *rmw), name),
            Call::ClientId { rmw, id } => self.client_ids.define(of(*rmw), || *id),
            Call::Timer { timer, period } => {
                let task = self.task(of(0), Cause::Timer(*period));
                self.timers.define(of(*timer), || task);
            }
            Call::TimerNode { timer, node } => {
                let found = (self.timers.get(&of(*timer)), self.nodes_by_handle.get(&of(*node)));
                if let (Some(task), Some(node), false) = (found.0, found.1, self.is_second) {
                    self.tasks[task].node = Some(node);
                }
            }
            Call::Callback { of: Owner::SubscriptionObject, handle, callback } => {
                self.give_object(of(*handle), Given::Callback(*callback));
            }
            Call::Callback { of: owner, handle, callback } => {
                let table = if *owner == Owner::Service { &self.services } else { &self.timers };
                if let Some(task) = table.get(&of(*handle)) {
                    self.give(thread.pid, task, Given::Callback(*callback));
                }
            }
            Call::RingBuffer { ring, buffer } => self.rings.define(of(*ring), || *buffer),
            Call::Buffer { buffer, object } => self.give_object(of(*object), Given::Buffer(*buffer)),
            _ => {}
        }
        self.nodes
            .len()
            .max(self.topics.len())
            .max(self.tasks.len())
            .max(self.early.len())
            .max(self.made.len())
            < MOST
    }

    fn give(&mut self, pid: u32, task: usize, given: Given) {
        match given {
            Given::Callback(callback) => self.callbacks.define((pid, callback), || task),
            Given::Buffer(buffer) => self.buffers.define((pid, buffer), || task),
        }
    }

    /// The object may be a subscription's already, or become one: its address may have been another's.
    fn give_object(&mut self, object: Of, given: Given) {
        if let Some(task) = self.objects.get(&object) {
            self.give(object.0, task, given);
        }
        let early = self.early.entry(object).or_default();
        if early.len() < MOST_GIVEN {
            early.push(given);
        }
    }

    /// A client has a topic for its responses alone, as those to others do not reach it.
    fn client(&mut self, thread: Thread, (node, rmw): (Handle, Handle), name: &str) {
        let (node, rmw) = ((thread.pid, node), (thread.pid, rmw));
        let requests = self.topic(&format!("service {name}"));
        let mut responses = 0;
        if !self.is_second {
            let of = self.nodes_by_handle.get(&node).map_or("unknown node", |node| self.nodes[node].as_str());
            let name = format!("response {name} to {of}");
            let others = (2..).map(|number| format!("{name}#{number}"));
            let free = std::iter::once(name.clone()).chain(others);
            let free = free.into_iter().find(|name| !self.topics_by_name.contains_key(name));
            responses = self.topic(&free.unwrap_or(name));
        }
        let task = self.task(node, Cause::Client(responses));
        self.clients.define(rmw, || (requests, task));
        if let Some(id) = self.client_ids.get(&rmw) {
            self.responses.define(id, || responses);
        }
    }

    fn topic(&mut self, name: &str) -> usize {
        if let Some(topic) = self.topics_by_name.get(name) {
            return *topic;
        }
        let topic = push(&mut self.topics, name.to_owned());
        self.topics_by_name.insert(name.to_owned(), topic);
        topic
    }

    /// A new task; in the second pass its number does not matter, as it is known.
    fn task(&mut self, node: Of, cause: Cause) -> usize {
        if self.is_second {
            return 0;
        }
        let node = self.nodes_by_handle.get(&node);
        push(&mut self.tasks, Task { node, cause, has_run: false, publishes: false })
    }

    /// The second pass begins.
    pub fn rewind(&mut self) {
        self.is_second = true;
        self.nodes_by_handle.rewind();
        self.rmw_publishers.rewind();
        self.writers.rewind();
        self.early.clear();
        self.client_ids.rewind();
        self.clients.rewind();
        self.responses.rewind();
        for table in [
            &mut self.publishers,
            &mut self.subscriptions,
            &mut self.rmw_subscriptions,
            &mut self.objects,
            &mut self.services,
            &mut self.rmw_services,
            &mut self.timers,
            &mut self.callbacks,
            &mut self.buffers,
        ] {
            table.rewind();
        }
        self.rings.rewind();
    }

    /// The task of a callback; one that was not declared becomes one.
    #[inline]
    pub fn callback(&mut self, thread: Thread, callback: Handle) -> usize {
        let of = (thread.pid, callback);
        match self.callbacks.get(&of) {
            Some(task) => task,
            None => {
                let task = self.task((thread.pid, 0), Cause::Unknown(callback));
                self.callbacks.define(of, || task);
                task
            }
        }
    }

    pub fn known_callback(&self, thread: Thread, callback: Handle) -> Option<usize> {
        self.callbacks.get(&(thread.pid, callback))
    }

    pub fn publisher(&self, thread: Thread, publisher: Handle) -> Option<usize> {
        self.publishers.get(&(thread.pid, publisher))
    }

    /// The topic, and the handle that `rcl_publish` has for the same publisher.
    pub fn rmw_publisher(&self, thread: Thread, rmw: Handle) -> Option<(usize, Handle)> {
        self.rmw_publishers.get(&(thread.pid, rmw)).map(|publisher| (publisher.topic, publisher.handle))
    }

    /// The topic of a writer of the middleware; within, `None` if it is none of ROS.
    pub fn writer(&self, thread: Thread, writer: Handle) -> Option<Option<usize>> {
        self.writers.get(&(thread.pid, writer))
    }

    pub fn rmw_subscription(&self, thread: Thread, rmw: Handle) -> Option<usize> {
        self.rmw_subscriptions.get(&(thread.pid, rmw))
    }

    /// Whether a subscription is the middleware's own: it was made, and belongs to no node.
    pub fn is_own(&self, thread: Thread, rmw: Handle) -> bool {
        self.has_subscriptions && self.made.contains(&(thread.pid, rmw))
    }

    pub fn rmw_service(&self, thread: Thread, rmw: Handle) -> Option<usize> {
        self.rmw_services.get(&(thread.pid, rmw))
    }

    /// The topic of a client's requests, its task, and its identity.
    pub fn known_client(&self, thread: Thread, rmw: Handle) -> Option<(usize, usize, [u8; 16])> {
        let of = (thread.pid, rmw);
        let (requests, task) = self.clients.get(&of)?;
        Some((requests, task, self.client_ids.get(&of)?))
    }

    /// The topic of the responses to a client that is traced.
    pub fn responses(&self, client: [u8; 16]) -> Option<usize> {
        self.responses.get(&client)
    }

    /// The task that reads a ring buffer.
    pub fn reader_of(&self, thread: Thread, ring: Handle) -> Option<usize> {
        self.buffers.get(&(thread.pid, self.rings.get(&(thread.pid, ring))?))
    }

    /// The topic whose messages a task takes.
    #[inline]
    pub fn input(&self, task: usize) -> Option<usize> {
        match self.tasks[task].cause {
            Cause::Topic(topic) | Cause::Service(topic) | Cause::Client(topic) => Some(topic),
            Cause::Timer(_) | Cause::Unknown(_) => None,
        }
    }

    /// Whether a topic carries data of the application.
    pub fn is_of_application(&self, topic: usize) -> bool {
        !OF_EVERY_NODE.contains(&self.topics[topic].as_str())
    }

    /// Whether a callback may have data of the application: not those that every node has.
    pub fn has_data(&self, task: usize) -> bool {
        match self.tasks[task].cause {
            Cause::Topic(topic) => self.is_of_application(topic),
            Cause::Service(topic) | Cause::Client(topic) => {
                let service = service_of(&self.topics[topic]).rsplit('/').next().unwrap_or_default();
                !SERVICES_OF_EVERY_NODE.contains(&service)
            }
            Cause::Timer(_) | Cause::Unknown(_) => true,
        }
    }

    /// Names of the tasks that ran, each once, by index.
    pub fn task_names(&self) -> BTreeMap<usize, String> {
        let mut count: FxHashMap<String, usize> = FxHashMap::default();
        let mut names = BTreeMap::new();
        for (index, task) in self.tasks.iter().enumerate().filter(|(_, task)| task.has_run) {
            let name = self.task_name(task);
            let seen = count.entry(name.clone()).or_default();
            *seen += 1;
            names.insert(index, if *seen == 1 { name } else { format!("{name}#{seen}") });
        }
        names
    }

    fn task_name(&self, task: &Task) -> String {
        let node = task.node.map_or("(unknown node)", |node| self.nodes[node].as_str());
        match task.cause {
            Cause::Topic(topic) | Cause::Service(topic) => {
                format!("{node}:{}", self.topics[topic].replace("service ", "service-"))
            }
            Cause::Client(topic) => format!("{node}:client-{}", service_of(&self.topics[topic])),
            Cause::Timer(period) => format!("{node}:timer-{}", period_text(period)),
            Cause::Unknown(callback) => format!("callback-{callback:#x}"),
        }
    }

    /// From which callback to which data goes within nodes by default: from those that publish nothing to
    /// those that do.
    pub fn default_variables(&self) -> Vec<(usize, usize)> {
        let is_input = |task: &Task| match task.cause {
            Cause::Topic(topic) => self.is_of_application(topic),
            Cause::Timer(_) => true,
            Cause::Service(_) | Cause::Client(_) | Cause::Unknown(_) => false,
        };
        let ran = || self.tasks.iter().enumerate().filter(|(_, task)| task.has_run && task.node.is_some());
        let mut readers: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (index, task) in ran().filter(|(_, task)| task.publishes) {
            readers.entry(task.node).or_default().push(index);
        }
        let writers = ran().filter(|(_, task)| !task.publishes && is_input(task));
        let pairs = |(writer, task): (usize, &Task)| {
            readers.get(&task.node).into_iter().flatten().map(move |reader| (writer, *reader))
        };
        writers.flat_map(pairs).collect()
    }
}

fn push<T>(list: &mut Vec<T>, item: T) -> usize {
    list.push(item);
    list.len() - 1
}

/// The service of a topic `response SERVICE to NODE`.
fn service_of(responses: &str) -> &str {
    let rest = responses.strip_prefix("response ").unwrap_or(responses);
    rest.split_once(" to ").map_or(rest, |(service, _)| service)
}

/// A node's namespace and name.
fn full_name(namespace: &str, name: &str) -> String {
    format!("{}/{name}", namespace.trim_end_matches('/'))
}

/// As short as it is exact.
fn period_text(ns: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (size, unit) = units.into_iter().find(|(size, _)| ns % size == 0).unwrap_or((1, "ns"));
    format!("{}{unit}", ns / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_exact() {
        let names =
            [("/", "a"), ("", "a"), ("/x", "a"), ("/x/y/", "a")].map(|(space, name)| full_name(space, name));
        assert_eq!(names, ["/a", "/a", "/x/a", "/x/y/a"]);
        let periods = [100_000_000, 2_000_000_000, 1_500_000, 33_333_333].map(period_text);
        assert_eq!(periods, ["100ms", "2s", "1500us", "33333333ns"]);
    }
}
