//! A thread that sleeps while it gets another processor can be sent back to where it slept, and wakes up
//! there without a migration.

use crate::actor::Actor;
use crate::rig::{Client, Daemon, FIFO, seen, until, waits_in};
use punctual_linux::scheduling::{self, Processors};
use serde_json::{Value, json};

/// They need a processor.
pub const ALONE: &[(&str, fn())] = &[
    ("arrival::a_thread_whose_spec_has_moved_is_put_back", a_thread_whose_spec_has_moved_is_put_back),
    ("arrival::a_thread_with_a_runtime_is_put_back", a_thread_with_a_runtime_is_put_back),
    ("arrival::a_thread_that_is_put_back_asleep_is_put_back_again", put_back_asleep),
    ("arrival::a_thread_that_stays_elsewhere_is_left_alone", a_thread_that_stays_elsewhere_is_left_alone),
    ("arrival::a_thread_that_has_arrived_costs_nothing", a_thread_that_has_arrived_costs_nothing),
];

struct Rig {
    daemon: Daemon,
    client: Client,
    actor: Actor,
}

impl Rig {
    /// A daemon with a plugin for each of two processors.
    fn start(enforcement: &str) -> Option<Rig> {
        if std::thread::available_parallelism().unwrap().get() < 2 {
            eprintln!("SKIPPED: there is one processor");
            return None;
        }
        let plugin = |name: &str, processor: u32| {
            format!(
                "[[plugin]]\nname = \"{name}\"\nkind = \"FP\"\npriorities = [21, 40]\n\
                 processors = \"{processor}\"\nadmission = \"utilization\"\n"
            )
        };
        let plugins = plugin("ZERO", 0) + &plugin("ONE", 1);
        let daemon = Daemon::start(&format!("{enforcement}\n[rules]\nfile = \"rules.conf\"\n{plugins}"));
        let client = daemon.connect();
        Some(Rig { daemon, client, actor: Actor::start() })
    }

    fn thread(&self) -> u32 {
        self.actor.pid()
    }

    /// Someone else sends it there, while it sleeps.
    fn send_to(&self, processor: u32) {
        scheduling::pin(self.thread(), &Processors::one(processor).unwrap()).unwrap();
    }

    /// It runs on a processor, and goes to sleep there.
    fn sleeps_on(&mut self, processor: u32) {
        self.send_to(processor);
        self.actor.tell("work 1");
        // It answers before it sleeps.
        until("its sleep", || waits_in("pipe_read", self.thread(), self.thread()));
    }

    /// Lets the daemon's other thread see to it: it was woken before there was an answer.
    fn settle(&self) {
        let is_done = |thread| {
            waits_in("epoll", self.daemon.pid(), thread) || waits_in("ep_poll", self.daemon.pid(), thread)
        };
        until("the daemon's rest", || self.enforcer().is_some_and(is_done));
    }

    /// Stops the daemon's other thread, too.
    fn stop_daemon(&self) {
        self.daemon.signal(libc::SIGSTOP);
        let stat = format!("/proc/{}/task/{}/stat", self.daemon.pid(), self.enforcer().unwrap());
        until("its stop", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    }

    fn is_on(&self) -> String {
        let (policy, _, _, processors) = seen(self.thread());
        assert_eq!(policy, FIFO);
        processors
    }

    /// The daemon is not told of each of its switches.
    #[track_caller]
    fn naps_unnoticed(&mut self) {
        let before = self.looks();
        self.actor.tell("naps 2000");
        let looks = self.looks() - before;
        assert!(looks < 200, "{looks} looks");
    }

    /// How often the daemon's thread that holds others to their runtimes has run.
    fn looks(&self) -> u64 {
        let status = format!("/proc/{}/task/{}/status", self.daemon.pid(), self.enforcer().unwrap());
        let status = std::fs::read_to_string(status).unwrap();
        let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        switches.unwrap().trim().parse().unwrap()
    }

    /// That thread, which has its name once it runs.
    fn enforcer(&self) -> Option<u32> {
        let mut tasks = std::fs::read_dir(format!("/proc/{}/task", self.daemon.pid())).unwrap().flatten();
        let is_it =
            |it: &std::fs::DirEntry| std::fs::read_to_string(it.path().join("comm")).unwrap() == "enforce\n";
        tasks.find(is_it)?.file_name().to_str()?.parse().ok()
    }
}

fn under(plugin: &str) -> Value {
    json!({ "plugin": plugin, "priority": 22 })
}

fn a_thread_whose_spec_has_moved_is_put_back() {
    let Some(mut rig) = Rig::start("") else { return };
    rig.sleeps_on(0);
    let spec = rig.client.schedule(under("ZERO"), rig.thread());
    rig.settle();
    rig.client.ask("ChangeSpec", json!({ "spec": spec, "parameters": under("ONE") }));
    rig.settle();
    assert_eq!(rig.is_on(), "1");
    rig.send_to(0);
    rig.actor.tell("work 300");
    assert_eq!(rig.is_on(), "1");
}

fn a_thread_with_a_runtime_is_put_back() {
    let Some(mut rig) = Rig::start("") else { return };
    rig.sleeps_on(1);
    // Its clock would tell after minutes.
    let parameters = json!({ "plugin": "ZERO", "priority": 30, "runtime_ns": 200_000_000_000_u64,
        "period_ns": 300_000_000_000_u64 });
    rig.client.schedule(parameters, rig.thread());
    rig.settle();
    assert_eq!(rig.is_on(), "0");
    rig.send_to(1);
    rig.actor.tell("work 300");
    assert_eq!(rig.is_on(), "0");
}

/// It has come to its processor, is sent away, sleeps before the daemon puts it back, and is sent away again
/// before it wakes: that is no migration.
fn put_back_asleep() {
    let held = json!({ "plugin": "ZERO", "priority": 30, "runtime_ns": 200_000_000_000_u64,
        "period_ns": 300_000_000_000_u64 });
    for parameters in [under("ZERO"), held] {
        let Some(mut rig) = Rig::start("") else { return };
        rig.sleeps_on(0);
        rig.client.schedule(parameters, rig.thread());
        rig.settle();
        rig.stop_daemon();
        rig.sleeps_on(1);
        rig.daemon.signal(libc::SIGCONT);
        until("its processor", || rig.is_on() == "0");
        rig.settle();
        rig.send_to(1);
        rig.actor.tell("work 300");
        assert_eq!(rig.is_on(), "0");
    }
}

fn a_thread_that_stays_elsewhere_is_left_alone() {
    let Some(mut rig) = Rig::start("[enforcement]\nchanges = \"show\"") else { return };
    rig.sleeps_on(1);
    rig.client.schedule(under("ZERO"), rig.thread());
    rig.settle();
    rig.send_to(1);
    rig.naps_unnoticed();
    assert_eq!(rig.is_on(), "1");
}

fn a_thread_that_has_arrived_costs_nothing() {
    let Some(mut rig) = Rig::start("") else { return };
    rig.sleeps_on(1);
    let spec = rig.client.schedule(under("ZERO"), rig.thread());
    rig.settle();
    rig.client.ask("ChangeSpec", json!({ "spec": spec, "parameters": under("ONE") }));
    rig.settle();
    rig.naps_unnoticed();
    assert_eq!(rig.is_on(), "1");
}
