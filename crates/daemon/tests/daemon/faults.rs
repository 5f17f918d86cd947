//! The daemon killed at random points under load, again and again. Each time, when it runs again: no thread
//! has a real-time policy without a spec, no spec's thread is without its policy, and the books add up.
//!
//! 100 times where everything is wanted (`make test-faults`).

use crate::actor::Actor;
use crate::rig::{Client, DEADLINE, Daemon, FIFO, OTHER, rt_runtime, seen, until};
use punctual_test_support::is_all_wanted;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

pub const ALONE: &[(&str, fn())] =
    &[("faults::killed_at_any_point_it_goes_on", killed_at_any_point_it_goes_on)];

const ACTORS: usize = 20;
const CLIENTS: usize = 10;

const CONFIG: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "EDF"
kind = "EDF"
processors = "0"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 20]
processors = "0"
admission = "utilization"
[[plugin]]
name = "FP"
kind = "FP"
priorities = [21, 40]
processors = "0"
"#;

/// Not good, but enough to be at another point each time.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
        Self((now ^ u64::from(tid()) << 32) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

fn tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// A thread that is scheduled and never runs, so that the machine stays usable.
pub struct Partner {
    tid: u32,
    _end: Sender<()>,
}

impl Partner {
    fn new() -> Self {
        let (end, ended) = channel::<()>();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            sender.send(tid()).unwrap();
            let _ = ended.recv();
        });
        Self { tid: receiver.recv().unwrap(), _end: end }
    }
}

/// In an actor: clients at work until the daemon is gone. What they met that they should not have.
pub fn load(partners: &mut Vec<Partner>, count: usize, socket: &Path) -> String {
    while partners.len() < count {
        partners.push(Partner::new());
    }
    let workers: Vec<_> = partners
        .iter()
        .map(|partner| {
            let (tid, socket) = (partner.tid, socket.to_owned());
            std::thread::spawn(move || work(tid, &socket))
        })
        .collect();
    let met: Vec<String> = workers.into_iter().filter_map(|worker| worker.join().unwrap().err()).collect();
    if met.is_empty() { "fine".to_owned() } else { met.join("; ") }
}

fn parameters(dice: &mut Dice) -> Value {
    let period = 1_000_000 * (1 + dice.below(50));
    match dice.below(3) {
        0 => {
            json!({ "plugin": "EDF", "period_ns": period, "runtime_ns": 2_000,
                "desired_runtime_ns": 2_000 + dice.below(5_000) })
        }
        1 => json!({ "plugin": "RM", "period_ns": period, "runtime_ns": 1 + dice.below(2_000) }),
        _ => json!({ "priority": 1 + dice.below(99) }),
    }
}

fn work(partner: u32, socket: &Path) -> Result<(), String> {
    let Ok(stream) = UnixStream::connect(socket) else { return Ok(()) };
    let mut client = Client::from_stream(stream);
    let mut dice = Dice::new();
    let mut specs: Vec<u64> = Vec::new();
    loop {
        let spec = if specs.is_empty() { 0 } else { specs[dice.below(specs.len() as u64) as usize] };
        let (method, asked) = match dice.below(12) {
            0..=2 if specs.len() < 4 => ("CreateSpec", json!({ "parameters": parameters(&mut dice) })),
            0..=6 => ("AttachThread", json!({ "spec": spec, "thread": partner })),
            7..=9 => ("ChangeSpec", json!({ "spec": spec, "parameters": parameters(&mut dice) })),
            10 => ("DetachThread", json!({ "spec": spec })),
            _ => ("ReleaseSpec", json!({ "spec": spec })),
        };
        let Some(reply) = client.try_call(method, asked.clone()) else { return Ok(()) };
        if let Some(error) = reply["error"].as_str() {
            let expected = ["NoSuchSpec", "NotAttached", "AlreadyAttached", "NotAdmitted", "NotYet"];
            if !expected.iter().any(|name| error.ends_with(name)) {
                return Err(format!("{method} {asked}: {reply}"));
            }
            continue;
        }
        match method {
            "CreateSpec" => specs.push(reply["parameters"]["admission"]["spec"].as_u64().unwrap()),
            "ReleaseSpec" => specs.retain(|&it| it != spec),
            _ => {}
        }
    }
}

fn killed_at_any_point_it_goes_on() {
    let rounds = if is_all_wanted() { 100 } else { 5 };
    let limit = rt_runtime();
    let mut daemon = Daemon::start(CONFIG);
    let mut dice = Dice::new();
    let mut actors: Vec<Actor> = (0..ACTORS).map(|_| Actor::start()).collect();
    let (mut specs, mut threads) = (0, 0);
    for round in 0..rounds {
        for actor in &mut actors {
            actor.begin(&format!("load {CLIENTS} {}", daemon.socket().display()));
        }
        // Where the machine is slow, the time below may be over before there is anything to lose: half of the
        // rounds begin when there is.
        if round % 2 == 1 {
            let mut client = daemon.connect();
            until("the first thread", || client.ask("GetStatus", json!({}))["attached"] != json!(0));
        }
        // A random point is what this is about: somewhere between the first request and well into the load.
        std::thread::sleep(Duration::from_micros(20_000 + dice.below(60_000)));
        daemon.kill();
        for actor in &mut actors {
            assert_eq!(actor.answer(), "fine", "round {round}");
        }
        // Some end while the daemon is away.
        let mut gone = Vec::new();
        for _ in 0..dice.below(4) {
            let mut actor = actors.swap_remove(dice.below(actors.len() as u64) as usize);
            actor.kill();
            gone.push(actor.pid());
            actors.push(Actor::start());
        }
        // And sometimes it is killed again while it finds out what happened.
        if dice.below(3) == 0 {
            daemon.begin();
            std::thread::sleep(Duration::from_micros(dice.below(8_000)));
            daemon.kill();
        }
        daemon.run();
        let (round_specs, round_threads) = check(&daemon, &actors, &gone);
        specs += round_specs;
        threads += round_threads;
        let mut client = daemon.connect();
        for spec in client.ask("ListSpecs", json!({}))["specs"].as_array().unwrap() {
            client.ask("ReleaseSpec", json!({ "spec": spec["admission"]["spec"] }));
        }
        drop(client);
        daemon.assert_empty();
        until("the limit", || rt_runtime() == limit);
        check(&daemon, &actors, &[]);
    }
    assert!(specs > 0 && threads > 0, "the daemon was never killed with anything to lose");
    println!("killed {rounds} times: {specs} specs, {threads} of them with threads, were found again");
    assert!(daemon.stop().success());
    assert_eq!(rt_runtime(), limit);
}

/// What is said against what is. How many specs there are, and how many have threads.
fn check(daemon: &Daemon, actors: &[Actor], gone: &[u32]) -> (usize, usize) {
    let mut client = daemon.connect();
    let listed = client.ask("ListSpecs", json!({}));
    let listed = listed["specs"].as_array().unwrap();
    let mut of_thread: HashMap<u32, &Value> = HashMap::new();
    let mut sums: HashMap<&str, (u64, f64)> = HashMap::new();
    for spec in listed {
        assert!(
            !gone.contains(&(spec["process"].as_u64().unwrap() as u32)),
            "of a process that ended: {spec}"
        );
        if let Some(thread) = spec.get("thread") {
            assert!(
                of_thread.insert(thread.as_u64().unwrap() as u32, spec).is_none(),
                "one thread, two specs: {spec}"
            );
        }
        let sum = sums.entry(spec["admission"]["plugin"].as_str().unwrap()).or_default();
        sum.0 += 1;
        if let (Some(runtime), Some(period)) =
            (spec["admission"].get("accepted_runtime_ns"), spec["parameters"].get("period_ns"))
        {
            sum.1 += runtime.as_f64().unwrap() / period.as_f64().unwrap();
        }
    }
    let mut real_time = 0;
    for actor in actors {
        for entry in fs::read_dir(format!("/proc/{}/task", actor.pid())).unwrap() {
            let thread: u32 = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
            let (policy, priority, _, processors) = seen(thread);
            match of_thread.remove(&thread) {
                None => assert_eq!(
                    (policy, &processors),
                    (OTHER, &seen(std::process::id()).3),
                    "thread {thread} has no spec"
                ),
                Some(spec) => {
                    real_time += 1;
                    let expected = match spec["admission"]["policy"].as_str().unwrap() {
                        "deadline" => (DEADLINE, 0),
                        _ => (FIFO, spec["admission"]["policy_priority"].as_u64().unwrap() as u32),
                    };
                    assert_eq!(((policy, priority), processors.as_str()), (expected, "0"), "{spec}");
                }
            }
        }
    }
    assert!(of_thread.is_empty(), "specs whose threads are not there: {of_thread:?}");
    for plugin in client.ask("ListPlugins", json!({}))["plugins"].as_array().unwrap() {
        let (specs, utilization) = sums.get(plugin["name"].as_str().unwrap()).copied().unwrap_or_default();
        let booked = &plugin["processors"][0];
        assert_eq!(booked["specs"], json!(specs), "{plugin}");
        assert!(
            (booked["utilization"].as_f64().unwrap() - utilization).abs() < 1e-9,
            "{plugin}: {utilization}"
        );
    }
    let deadline =
        listed.iter().any(|spec| spec.get("thread").is_some() && spec["admission"]["policy"] == "deadline");
    // It comes back a period after the last of them.
    until("the limit", || (rt_runtime() == -1) == deadline);
    (listed.len(), real_time)
}
