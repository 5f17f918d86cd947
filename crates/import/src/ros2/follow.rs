//! Follows threads through callbacks and messages from publisher to subscription: what happened, in the terms
//! of a dataflow program. Both passes over a trace follow it in the same way.

mod clients;

use super::calls::{Call, Handle, Thread};
use super::graph::Graph;
use super::messages::{Messages, Sent};
use super::open::{Open, Taker};
use punctual_model::Instant;
use rustc_hash::{FxHashMap, FxHashSet};

/// An executor within a callback is another one.
pub type Producer = (Thread, u32);

/// Most callbacks within callbacks.
const MOST_NESTED: usize = 64;
/// Most threads.
const MOST_THREADS: usize = 1 << 16;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Data was put on this topic.
    Push {
        topic: usize,
        number: u64,
    },
    /// A callback is to be called, with this message if it takes one. `None` for the number: it is one that
    /// was not seen.
    Activation {
        task: usize,
        instance: u64,
        takes: Option<(usize, Option<u64>)>,
    },
    Start {
        task: usize,
        instance: u64,
    },
    Stop {
        task: usize,
        instance: u64,
    },
    /// Events of any thread may be missing, from here on or, when that is over, up to here.
    Lost {
        events: u64,
        /// The same of packets: missing, damaged or cut off.
        packets: u64,
        is_over: bool,
    },
}

/// What could not be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Publications by publishers that were made before the trace began.
    pub publishers: u64,
    /// Messages taken by subscriptions that were made before.
    pub subscriptions: u64,
    /// Callbacks called whose making is not in the trace.
    pub callbacks: u64,
    /// Messages taken of which no publication is in the trace, though the topic has some.
    pub messages: u64,
    /// Callbacks of subscriptions without a message.
    pub without_message: u64,
    /// Messages that no callback was called with.
    pub without_callback: u64,
    /// Ends of callbacks without a start.
    pub ends: u64,
    /// Responses that were taken within a callback, or by a thread without an executor: nobody knows until
    /// when they were handled.
    pub responses: u64,
}

/// A thread at work.
#[derive(Debug, Default)]
struct State {
    /// Callbacks that it is in: task, instance, address. A client's has no address.
    stack: Vec<(usize, u64, Option<Handle>)>,
    /// Whether it told of its executor. Then it tells when a client's callback has ended.
    has_executor: bool,
    /// A message that was taken for a callback to come.
    taken: Option<Taken>,
    /// The publication at hand.
    published: Option<Published>,
    /// A publication of an unknown publisher, and the callback that it was in. The middleware may name its
    /// topic.
    unnamed: Option<Option<usize>>,
    /// The middleware is about to write what was published beneath `rcl`.
    is_written: bool,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    at: Instant,
    /// Whose, by subscription or by callback.
    task: usize,
    topic: usize,
    message: Sent,
}

#[derive(Clone, Copy, Debug)]
struct Published {
    publisher: Handle,
    message: Handle,
    topic: usize,
    number: u64,
    /// It was published within the process, and the same message may follow for others.
    is_intra: bool,
    has_stamp: bool,
}

/// The state of everything at a time.
#[derive(Debug, Default)]
pub struct Follow {
    threads: FxHashMap<Thread, State>,
    messages: Messages,
    /// Pushes by topic, and instances by task.
    pushes: Vec<u64>,
    instances: Vec<u64>,
    /// Where publications have no time stamps: from the trace's clock to that of the messages' stamps.
    to_stamps: Option<i64>,
    /// Tasks whose messages were found by the order of publications and time stamps.
    pub assumed: FxHashSet<usize>,
    /// Events may be missing until then.
    gap_until: Option<Instant>,
    pub unknown: Unknown,
    pub open: Open,
}

/// Takes steps: when, who, what.
pub type Out<'a> = &'a mut dyn FnMut(Instant, Producer, Step);

/// The next number; where events are missing, one is left out, as there may have been another.
fn next(counts: &mut Vec<u64>, index: usize, is_behind_missing: bool) -> u64 {
    if counts.len() <= index {
        counts.resize(index + 1, 0);
    }
    counts[index] += 1 + u64::from(is_behind_missing);
    counts[index] - 1
}

impl Follow {
    /// Follows a trace whose publications have no time stamps, by the order of publications and stamps.
    pub fn without_stamps(to_stamps: i64) -> Follow {
        Follow { to_stamps: Some(to_stamps), ..Follow::default() }
    }

    /// Takes what a thread did. False if there are too many threads.
    pub fn call(&mut self, at: Instant, thread: Thread, call: &Call, graph: &mut Graph, out: Out) -> bool {
        if self.gap_until.is_some_and(|until| at >= until) {
            self.gap_until = None;
            self.forget(at, Step::Lost { events: 0, packets: 0, is_over: true }, out);
        }
        match *call {
            Call::Executor | Call::Start { .. } | Call::Take { .. } | Call::TakeRequest { .. } => {
                self.end_client(at, thread, out);
            }
            _ => {}
        }
        match *call {
            Call::Executor => self.threads.entry(thread).or_default().has_executor = true,
            Call::Start { callback } => self.start(at, thread, callback, graph, out),
            Call::End { callback } => self.end(at, thread, callback, out),
            Call::IntraPublish { publisher, message } => {
                let topic = graph.publisher(thread, publisher);
                self.publish(at, thread, topic, (publisher, message, true), graph, out);
            }
            Call::Publish { publisher, message } => {
                self.publish_between(at, thread, (publisher, message), graph, out);
            }
            Call::RmwPublish { rmw: Some(rmw), stamp } => {
                self.rmw_publish(at, thread, rmw, stamp, graph, out);
            }
            Call::RmwPublish { rmw: None, .. } => self.rmw_publish_unnamed(thread),
            Call::Written { writer, stamp } => self.written(at, thread, (writer, stamp), graph, out),
            Call::Stamp { message, stamp } => self.stamp(thread, message, stamp),
            Call::Copy { from, to } => self.copy(thread, from, to),
            Call::Enqueue { ring, index } => self.enqueue(thread, ring, index),
            Call::Dequeue { ring, index } => {
                let message = self.messages.in_ring((thread.pid, ring, index));
                let task = graph.reader_of(thread, ring);
                self.take(at, thread, task, message, graph);
            }
            Call::Take { rmw, stamp } => {
                let task = graph.rmw_subscription(thread, rmw);
                if task.is_none() && graph.is_own(thread, rmw) {
                    return true;
                }
                let message = match self.to_stamps {
                    Some(_) => self.likely(task, stamp, graph),
                    None => self.stamped(task, stamp, graph),
                };
                self.take(at, thread, task, message, graph);
            }
            Call::Dispatch { callback, stamp } => {
                let task = graph.known_callback(thread, callback);
                let message = self.stamped(task, stamp, graph);
                self.take(at, thread, task, message, graph);
            }
            Call::DispatchIntra { callback, message } => {
                let task = graph.known_callback(thread, callback);
                let message = self.messages.at_address((thread.pid, message));
                self.take(at, thread, task, message, graph);
            }
            Call::Request { rmw, sequence } => {
                let Some((topic, _, client)) = graph.known_client(thread, rmw) else {
                    self.unnamed(thread);
                    self.give_up_unnamed(thread);
                    return true;
                };
                let number = self.push(at, thread, topic, graph, out);
                self.messages.sent_request((client, sequence), number);
            }
            Call::TakeRequest { rmw, client, sequence } => {
                let message = self.messages.request((client, sequence));
                self.take(at, thread, graph.rmw_service(thread, rmw), message, graph);
            }
            Call::Response { client, sequence } => {
                let Some(topic) = graph.responses(client) else {
                    let of = self.taker(thread);
                    self.open.foreign_responses.extend(of.callback());
                    return true;
                };
                let number = self.push(at, thread, topic, graph, out);
                self.messages.sent_response((client, sequence), number);
            }
            Call::TakeResponse { rmw, sequence } => {
                self.take_response(at, thread, (rmw, sequence), graph, out)
            }
            _ => {}
        }
        self.threads.len() <= MOST_THREADS
    }

    /// Events are missing up to a time.
    pub fn lose(&mut self, at: Instant, until: Instant, (events, packets): (u64, u64), out: Out) {
        self.gap_until = self.gap_until.max(Some(until));
        self.open.has_losses = true;
        self.forget(at, Step::Lost { events, packets, is_over: false }, out);
    }

    /// Nobody's state is known any more.
    fn forget(&mut self, at: Instant, lost: Step, out: Out) {
        self.threads.clear();
        // A publication may be among them.
        let counts = self.pushes.iter_mut().chain(&mut self.instances);
        counts.filter(|count| **count > 0).for_each(|count| *count += 1);
        out(at, (Thread { pid: 0, tid: 0 }, 0), lost);
    }

    fn push(&mut self, at: Instant, thread: Thread, topic: usize, graph: &mut Graph, out: Out) -> u64 {
        let number = next(&mut self.pushes, topic, self.gap_until.is_some());
        let state = self.threads.entry(thread).or_default();
        if let Some((task, ..)) = state.stack.last() {
            graph.tasks[*task].publishes |= graph.is_of_application(topic);
            self.open.published.insert((*task, topic));
        } else {
            self.open.outside.insert((thread.pid, topic));
        }
        out(at, producer(thread, state.stack.len()), Step::Push { topic, number });
        number
    }

    fn publish(
        &mut self,
        at: Instant,
        thread: Thread,
        topic: Option<usize>,
        (publisher, message, is_intra): (Handle, Handle, bool),
        graph: &mut Graph,
        out: Out,
    ) {
        let Some(topic) = topic else { return self.unnamed(thread) };
        self.give_up_unnamed(thread);
        let number = self.push(at, thread, topic, graph, out);
        self.messages.at((thread.pid, message), topic, number);
        if let Some(to_stamps) = self.to_stamps {
            self.messages.sent(topic, (at.ns() as i64).saturating_add(to_stamps), number);
        }
        let published = Published { publisher, message, topic, number, is_intra, has_stamp: false };
        self.threads.entry(thread).or_default().published = Some(published);
    }

    /// Somebody published, and nobody knows on which topic so far.
    fn unnamed(&mut self, thread: Thread) {
        self.give_up_unnamed(thread);
        let state = self.threads.entry(thread).or_default();
        state.published = None;
        state.unnamed = Some(state.stack.last().map(|(task, ..)| *task));
    }

    /// `rmw_publish` before Jazzy: the message of the `rcl_publish` before, or one of the middleware's own
    /// unless a writer names its topic.
    fn rmw_publish_unnamed(&mut self, thread: Thread) {
        let state = self.threads.entry(thread).or_default();
        let is_at_hand = state.published.is_some_and(|published| !published.has_stamp);
        if !is_at_hand && state.unnamed.is_none() {
            state.published = None;
            state.is_written = true;
        }
    }

    /// Nobody named the topic.
    fn give_up_unnamed(&mut self, thread: Thread) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        state.is_written = false;
        if let Some(task) = state.unnamed.take() {
            self.unknown.publishers += 1;
            self.open.unknown_publishers.extend(task);
        }
    }

    /// The trace has ended.
    pub fn finish(&mut self) {
        let threads: Vec<Thread> = self.threads.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.give_up_unnamed(thread));
    }

    /// `rcl_publish`: the message that was just published within the process, or another.
    fn publish_between(
        &mut self,
        at: Instant,
        thread: Thread,
        (publisher, message): (Handle, Handle),
        graph: &mut Graph,
        out: Out,
    ) {
        let published = self.threads.get_mut(&thread).and_then(|state| state.published.as_mut());
        if let Some(same) = published.filter(|it| it.is_intra && it.publisher == publisher) {
            (same.is_intra, same.message) = (false, message);
            return;
        }
        let topic = graph.publisher(thread, publisher);
        self.publish(at, thread, topic, (publisher, message, false), graph, out);
    }

    /// `rmw_publish`: the message of the `rcl_publish` before, or one on its own.
    fn rmw_publish(
        &mut self,
        at: Instant,
        thread: Thread,
        rmw: Handle,
        stamp: Option<u64>,
        graph: &mut Graph,
        out: Out,
    ) {
        let found = graph.rmw_publisher(thread, rmw);
        let at_hand = self.threads.get(&thread).and_then(|state| state.published);
        let is_same = |published: Published| {
            found.is_some_and(|(topic, handle)| topic == published.topic && handle == published.publisher)
                && !published.has_stamp
        };
        if !at_hand.is_some_and(is_same) {
            let (topic, handle) = (found.map(|(topic, _)| topic), found.map_or(0, |(_, handle)| handle));
            self.publish(at, thread, topic, (handle, 0, false), graph, out);
        }
        self.stamp_published(thread, stamp);
    }

    fn stamp_published(&mut self, thread: Thread, stamp: Option<u64>) {
        let Some(published) = self.threads.get_mut(&thread).and_then(|state| state.published.as_mut()) else {
            return;
        };
        (published.has_stamp, published.is_intra) = (true, false);
        if let Some(stamp) = stamp {
            self.messages.stamp(published.topic, stamp, published.number);
        }
    }

    /// The middleware wrote the message at hand, or another: replies, and its own.
    fn written(
        &mut self,
        at: Instant,
        thread: Thread,
        (writer, stamp): (Handle, u64),
        graph: &mut Graph,
        out: Out,
    ) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let topic = graph.writer(thread, writer);
        let is_same = |published: Published| {
            !published.has_stamp
                && !published.is_intra
                && topic.is_none_or(|topic| topic == Some(published.topic))
        };
        if state.published.is_some_and(is_same) {
            return self.stamp_published(thread, Some(stamp));
        }
        // One that belongs to no topic of ROS is nobody's publication.
        if let (true, Some(topic)) = (state.unnamed.is_some() || state.is_written, topic) {
            (state.unnamed, state.is_written) = (None, false);
            if topic.is_some() {
                self.publish(at, thread, topic, (0, 0, false), graph, out);
                self.stamp_published(thread, Some(stamp));
            }
        }
    }

    /// CARET's time stamp: of the message at hand, if it is that one.
    fn stamp(&mut self, thread: Thread, message: Handle, stamp: u64) {
        let published = self.threads.get(&thread).and_then(|state| state.published);
        if published.is_some_and(|published| published.message == message && !published.has_stamp) {
            self.stamp_published(thread, Some(stamp));
        }
    }

    fn copy(&mut self, thread: Thread, from: Handle, to: Handle) {
        self.messages.copy((thread.pid, from), (thread.pid, to));
        let published = self.threads.get_mut(&thread).and_then(|state| state.published.as_mut());
        if let Some(published) = published.filter(|published| published.message == from) {
            published.message = to;
        }
    }

    fn enqueue(&mut self, thread: Thread, ring: Handle, index: u64) {
        let published = self.threads.get(&thread).and_then(|state| state.published);
        let message = published.map(|published| (published.topic, published.number));
        self.messages.put_in_ring((thread.pid, ring, index), message);
    }

    /// The message with this time stamp on the topic of a task.
    fn stamped(&self, task: Option<usize>, stamp: u64, graph: &Graph) -> Sent {
        task.and_then(|task| graph.input(task))
            .map_or(Sent::NotSeen, |topic| self.messages.stamped(topic, stamp))
    }

    /// The message on the topic of a task that was published last before this time stamp.
    fn likely(&mut self, task: Option<usize>, stamp: u64, graph: &Graph) -> Sent {
        let Some((task, topic)) = task.and_then(|task| Some((task, graph.input(task)?))) else {
            return Sent::NotSeen;
        };
        self.assumed.insert(task);
        self.messages.likely(topic, stamp as i64)
    }

    fn take(&mut self, at: Instant, thread: Thread, task: Option<usize>, message: Sent, graph: &Graph) {
        let state = self.threads.entry(thread).or_default();
        let Some((task, topic)) = task.and_then(|task| Some((task, graph.input(task)?))) else {
            self.unknown.subscriptions += 1;
            state.taken = None;
            return;
        };
        // CARET and ros2_tracing both tell of one message.
        if let Some(before) = state.taken.filter(|before| before.task == task && before.message == message) {
            state.taken = Some(Taken { at: before.at, ..before });
            return;
        }
        let before = state.taken.replace(Taken { at, task, topic, message });
        self.not_called(thread, before);
    }

    /// A message was taken, and no callback called with it.
    fn not_called(&mut self, thread: Thread, taken: Option<Taken>) {
        let Some(taken) = taken else { return };
        self.unknown.without_callback += 1;
        self.open.taken.insert((taken.task, self.taker(thread)));
    }

    /// Who takes what the thread takes.
    fn taker(&self, thread: Thread) -> Taker {
        let stack = self.threads.get(&thread).map(|state| &state.stack);
        let running = stack.and_then(|stack| stack.last()).map(|(task, ..)| *task);
        running.map_or(Taker::Process(thread.pid), Taker::Callback)
    }

    fn start(&mut self, at: Instant, thread: Thread, callback: Handle, graph: &mut Graph, out: Out) {
        let is_known = graph.known_callback(thread, callback).is_some();
        let task = graph.callback(thread, callback);
        graph.tasks[task].has_run = true;
        let is_unknown = graph.tasks[task].is_unknown();
        self.unknown.callbacks += u64::from(!is_known || is_unknown);
        let has_input = graph.input(task).is_some();
        let state = self.threads.entry(thread).or_default();
        if state.stack.len() >= MOST_NESTED {
            state.stack.clear();
        }
        let taken = state.taken.take();
        let of_it = taken.filter(|taken| taken.task == task);
        self.not_called(thread, taken.filter(|_| of_it.is_none()));
        self.unknown.without_message += u64::from(has_input && of_it.is_none());
        let takes = match of_it {
            Some(Taken { topic, message: Sent::Number(number), .. }) => Some((topic, Some(number))),
            // Nobody who is traced publishes there: it comes from outside.
            Some(Taken { topic, .. }) if !self.has_pushes(topic) => None,
            Some(Taken { topic, .. }) => {
                self.unknown.messages += 1;
                Some((topic, None))
            }
            None => graph.input(task).filter(|topic| self.has_pushes(*topic)).map(|topic| (topic, None)),
        };
        self.lacks_publication(task, has_input, takes);
        let activation = of_it.map_or(at, |taken| taken.at);
        self.run(thread, (task, Some(callback)), (activation, at), takes, out);
    }

    /// Notes a message whose publication was not seen.
    fn lacks_publication(&mut self, task: usize, has_input: bool, takes: Option<(usize, Option<u64>)>) {
        match takes {
            Some((_, Some(_))) => {}
            Some((_, None)) => _ = self.open.without_publication.insert(task),
            None if has_input => _ = self.open.from_outside.insert(task),
            None => {}
        }
    }

    /// A callback begins: it was activated, and starts.
    fn run(
        &mut self,
        thread: Thread,
        (task, callback): (usize, Option<Handle>),
        (activation, start): (Instant, Instant),
        takes: Option<(usize, Option<u64>)>,
        out: Out,
    ) {
        self.give_up_unnamed(thread);
        let instance = next(&mut self.instances, task, self.gap_until.is_some());
        let state = self.threads.entry(thread).or_default();
        state.stack.push((task, instance, callback));
        state.published = None;
        let producer = producer(thread, state.stack.len());
        out(activation, producer, Step::Activation { task, instance, takes });
        out(start, producer, Step::Start { task, instance });
    }

    fn has_pushes(&self, topic: usize) -> bool {
        self.pushes.get(topic).is_some_and(|pushes| *pushes > 0)
    }

    fn end(&mut self, at: Instant, thread: Thread, callback: Handle, out: Out) {
        self.give_up_unnamed(thread);
        let state = self.threads.entry(thread).or_default();
        let Some(place) = state.stack.iter().rposition(|(_, _, of)| *of == Some(callback)) else {
            self.unknown.ends += 1;
            self.open.ended.insert(thread.pid);
            return;
        };
        // Ends of those within it are missing.
        self.unknown.ends += (state.stack.len() - place - 1) as u64;
        let (task, instance, _) = state.stack[place];
        let producer = producer(thread, place + 1);
        let taken = state.taken.take();
        state.published = None;
        // Within the callback, while it was not over.
        self.not_called(thread, taken);
        self.threads.entry(thread).or_default().stack.truncate(place);
        out(at, producer, Step::Stop { task, instance });
    }
}

/// A thread with so many callbacks open.
fn producer(thread: Thread, depth: usize) -> Producer {
    (thread, (depth.max(1) - 1) as u32)
}
