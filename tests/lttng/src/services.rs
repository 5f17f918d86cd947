//! A service of ROS 2 and two clients, simulated: requests, responses, and what a client's callback
//! publishes. It keeps books of the chains through them.

use crate::ctf::Value::{Bytes, I32, I64, Text, U64};
use crate::ctf::{Layout, Value, Writer};
use crate::random::Random;
use crate::ros2::Event;
use crate::system::{Books, Chain, handle};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

const MS: u64 = 1_000_000;
/// Nodes, each a process with one thread.
const NODES: [(&str, i32); 4] = [("asker", 1000), ("other", 1100), ("server", 2000), ("logger", 3000)];
const SERVER: usize = 2;
const LOGGER: usize = 3;
/// Timers of the clients.
const PERIODS: [u64; 2] = [10 * MS, 14 * MS];

/// Both chains: only the first goes on behind the client.
const CHAINS: [&[&str]; 2] = [
    &["/asker:timer-10ms", "/server:service-/add", "/asker:client-/add", "/logger:/sum"],
    &["/other:timer-14ms", "/server:service-/add", "/other:client-/add"],
];

/// An instance of a timer and its activation. The instance is also the number of the request.
type Datum = (u64, u64);

/// What comes to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Timer(usize),
    /// From this client; back to it.
    Request(usize, Datum),
    Response(usize, Datum),
    /// With its time stamp.
    Sum(Datum, u64),
}

/// The system at work.
pub struct Services {
    random: Random,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    busy: [u64; NODES.len()],
    asked: [u64; 2],
    events: Vec<Event>,
    books: Books,
    /// Whether the server also takes a response within its callback, as of a call that it waits for.
    has_nested: bool,
}

fn gid(client: usize) -> Value {
    Bytes(vec![client as u8 + 1; 16])
}

impl Services {
    /// A system whose chances depend on the seed.
    pub fn new(seed: u64) -> Services {
        let chain = |tasks: &&[&'static str]| Chain { tasks: tasks.to_vec(), ..Chain::default() };
        Services {
            random: Random(seed),
            due: BinaryHeap::new(),
            busy: [0; NODES.len()],
            asked: [0; 2],
            events: Vec::new(),
            books: Books { chains: CHAINS.iter().map(chain).collect(), ..Books::default() },
            has_nested: false,
        }
    }

    /// Some response is also taken within a callback.
    pub fn with_nested(self) -> Services {
        Services { has_nested: true, ..self }
    }

    /// Writes a trace of so many requests of the first client into a folder.
    pub fn write(mut self, folder: &Path, layout: Layout, requests: u64) -> std::io::Result<Books> {
        self.declare(1_000 * MS);
        (0..2)
            .for_each(|client| self.due.push(Reverse((1_100 * MS + client as u64 * MS, Due::Timer(client)))));
        while let Some(Reverse((at, due))) = self.due.pop() {
            match due {
                Due::Timer(client) => {
                    if self.asked[0] < requests {
                        let jitter = self.random.between(0, MS);
                        self.due.push(Reverse((at + PERIODS[client] + jitter, due)));
                    }
                    self.ask(at, client);
                }
                Due::Request(client, datum) => self.serve(at, client, datum),
                Due::Response(client, datum) => self.respond(at, client, datum),
                Due::Sum(datum, stamp) => self.log(at, datum, stamp),
            }
        }
        self.events.sort_by_key(|event| event.at);
        let mut writer = Writer::create(folder, layout, NODES.len() as u32)?;
        for event in &self.events {
            writer.event(event.cpu, event.at, event.class, &event.context(), &event.fields)?;
        }
        self.books.events = writer.finish()?;
        Ok(self.books)
    }

    fn event(&mut self, at: u64, node: usize, class: &'static str, fields: Vec<Value>) {
        let (name, pid) = NODES[node];
        self.events.push(Event { at, cpu: node as u32, thread: (pid, pid, name), class, fields });
    }

    fn declare(&mut self, at: u64) {
        self.declare_clients(at);
        for (node, (name, _)) in NODES.iter().enumerate() {
            let fields = vec![U64(handle(1, node)), U64(1), Text((*name).into()), Text("/".into())];
            self.event(at, node, "ros2:rcl_node_init", fields);
        }
        let service = U64(handle(6, 0));
        let fields = vec![service.clone(), U64(handle(1, SERVER)), U64(handle(7, 0)), Text("/add".into())];
        self.event(at + 1, SERVER, "ros2:rcl_service_init", fields);
        let fields = vec![service, U64(handle(3, SERVER))];
        self.event(at + 2, SERVER, "ros2:rclcpp_service_callback_added", fields);
        let topic = || vec![Text("/sum".into()), U64(10)];
        let fields = [vec![U64(handle(8, 0)), U64(handle(1, 0)), U64(handle(9, 0))], topic()].concat();
        self.event(at + 6, 0, "ros2:rcl_publisher_init", fields);
        let (subscription, object) = (U64(handle(10, 0)), U64(handle(11, 0)));
        let fields = vec![subscription.clone(), U64(handle(1, LOGGER)), U64(handle(12, 0))];
        self.event(at + 1, LOGGER, "ros2:rcl_subscription_init", [fields, topic()].concat());
        self.event(at + 2, LOGGER, "ros2:rclcpp_subscription_init", vec![subscription, object.clone()]);
        let fields = vec![object, U64(handle(3, LOGGER))];
        self.event(at + 3, LOGGER, "ros2:rclcpp_subscription_callback_added", fields);
    }

    fn declare_clients(&mut self, at: u64) {
        for (client, period) in PERIODS.into_iter().enumerate() {
            let (timer, node) = (U64(handle(2, client)), U64(handle(1, client)));
            let fields = vec![timer.clone(), I64(period as i64)];
            self.event(at + 1, client, "ros2:rcl_timer_init", fields);
            let fields = vec![timer.clone(), U64(handle(3, client))];
            self.event(at + 2, client, "ros2:rclcpp_timer_callback_added", fields);
            self.event(at + 3, client, "ros2:rclcpp_timer_link_node", vec![timer, node]);
        }
        // The server is a client, too.
        for client in [0, 1, SERVER] {
            let (rmw, node) = (U64(handle(5, client)), U64(handle(1, client)));
            self.event(at + 4, client, "ros2:rmw_client_init", vec![rmw.clone(), gid(client)]);
            let fields = vec![U64(handle(4, client)), node, rmw, Text("/add".into())];
            self.event(at + 5, client, "ros2:rcl_client_init", fields);
        }
    }

    /// The node's executor turns to it when it is free: when that is, and for how long the callback will
    /// run.
    fn begin(&mut self, at: u64, node: usize, cost: (u64, u64)) -> (u64, u64) {
        let begin = at.max(self.busy[node]) + 200;
        self.event(begin - 100, node, "ros2:rclcpp_executor_get_next_ready", Vec::new());
        self.event(begin, node, "ros2:rclcpp_executor_execute", vec![U64(1)]);
        (begin, self.random.between(cost.0 * 1_000, cost.1 * 1_000))
    }

    /// The executor goes on.
    fn end(&mut self, end: u64, node: usize, task: &'static str, begin: u64) {
        self.busy[node] = end + 100;
        let (count, least, most) = self.books.tasks.entry(task).or_insert((0, u64::MAX, 0));
        (*count, *least, *most) = (*count + 1, (*least).min(end - begin), (*most).max(end - begin));
    }

    /// A callback of which events tell.
    fn callback(&mut self, begin: u64, cost: u64, node: usize, task: &'static str) -> u64 {
        let callback = U64(handle(3, node));
        self.event(begin, node, "ros2:callback_start", vec![callback.clone(), I32(0)]);
        self.event(begin + cost, node, "ros2:callback_end", vec![callback]);
        self.event(begin + cost + 50, node, "ros2:rclcpp_executor_wait_for_work", vec![I64(-1)]);
        self.end(begin + cost, node, task, begin);
        begin + cost
    }

    fn ask(&mut self, at: u64, client: usize) {
        let (begin, cost) = self.begin(at, client, (100, 400));
        let start = begin + 300;
        self.callback(start, cost, client, CHAINS[client][0]);
        let datum = (self.asked[client], start);
        self.asked[client] += 1;
        self.books.chains[client].sources.push(datum);
        let sent = start + cost / 2;
        let fields = vec![U64(handle(5, client)), U64(0x7FFD), I64(datum.0 as i64)];
        self.event(sent, client, "ros2:rmw_send_request", fields);
        let delay = self.random.between(20_000, 3 * MS);
        self.due.push(Reverse((sent + delay, Due::Request(client, datum))));
    }

    fn serve(&mut self, at: u64, client: usize, datum: Datum) {
        let (begin, cost) = self.begin(at, SERVER, (500, 4_000));
        let take = |taken: i32| {
            let fields = vec![U64(handle(7, 0)), U64(0x7FFD), gid(client), I64(datum.0 as i64), I32(taken)];
            ("ros2:rmw_take_request", fields)
        };
        for (at, (class, fields)) in [(begin + 100, take(0)), (begin + 400, take(1))] {
            self.event(at, SERVER, class, fields);
        }
        let start = begin + 1_000;
        self.callback(start, cost, SERVER, CHAINS[client][1]);
        if self.has_nested {
            let fields = vec![U64(handle(5, SERVER)), U64(0x7FFD), I64(1), I64(1), I32(1)];
            self.event(start + cost / 4, SERVER, "ros2:rmw_take_response", fields);
        }
        let sent = start + cost * 3 / 4;
        let (number, stamp) = (I64(datum.0 as i64), I64(sent as i64));
        let fields = vec![U64(handle(7, 0)), U64(0x7FFD), gid(client), number, stamp];
        self.event(sent, SERVER, "ros2:rmw_send_response", fields);
        let delay = self.random.between(20_000, 3 * MS);
        self.due.push(Reverse((sent + delay, Due::Response(client, datum))));
    }

    /// No event tells of the client's callback: it begins with the response, and the executor goes on behind
    /// it.
    fn respond(&mut self, at: u64, client: usize, datum: Datum) {
        let (begin, cost) = self.begin(at, client, (50, 900));
        let start = begin + 400;
        let fields = vec![U64(handle(5, client)), U64(0x7FFD), I64(datum.0 as i64), I64(1), I32(1)];
        self.event(start, client, "ros2:rmw_take_response", fields);
        self.event(start + cost, client, "ros2:rclcpp_executor_get_next_ready", Vec::new());
        self.end(start + cost, client, CHAINS[client][2], start);
        if client != 0 {
            self.books.chains[client].sinks.push((datum.0, datum.1, start + cost));
            return;
        }
        let sent = start + cost / 2;
        let stamp = 1_700_000_000_000_000_000 + sent;
        *self.books.topics.entry("/sum").or_default() += 1;
        self.event(sent, 0, "ros2:rcl_publish", vec![U64(handle(8, 0)), U64(0x7FFD)]);
        let fields = vec![U64(handle(9, 0)), U64(0x7FFD), I64(stamp as i64)];
        self.event(sent + 2, 0, "ros2:rmw_publish", fields);
        let delay = self.random.between(20_000, MS);
        self.due.push(Reverse((sent + delay, Due::Sum(datum, stamp))));
    }

    fn log(&mut self, at: u64, datum: Datum, stamp: u64) {
        let (begin, cost) = self.begin(at, LOGGER, (10, 200));
        let fields = vec![U64(handle(12, 0)), U64(0x7FFD), I64(stamp as i64), I32(1)];
        self.event(begin + 400, LOGGER, "ros2:rmw_take", fields);
        let end = self.callback(begin + 500, cost, LOGGER, CHAINS[0][3]);
        self.books.chains[0].sinks.push((datum.0, datum.1, end));
    }
}
