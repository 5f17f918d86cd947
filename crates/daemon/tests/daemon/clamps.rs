//! Utilization clamps, on kernels that have them; and what is said on others.

use crate::rig::{Daemon, FIFO, Sleeper, seen};
use libtest_mimic::{Completion, Failed};
use punctual_linux::scheduling::{self, Clamps};
use serde_json::{Value, json};

/// Tests, and whether they need a kernel with clamps or one without.
pub const TESTS: &[(&str, bool, fn())] = &[
    ("clamps::they_are_set_and_undone", true, they_are_set_and_undone),
    ("clamps::they_are_undone_after_a_crash", true, they_are_undone_after_a_crash),
    ("clamps::others_have_the_last_word", true, others_have_the_last_word),
    ("clamps::a_kernel_without_them_is_told_of", false, a_kernel_without_them_is_told_of),
];

/// Runs a test, or says what is missing.
pub fn run(needs: bool, test: fn()) -> Result<Completion, Failed> {
    match (needs, scheduling::has_clamps()) {
        (true, false) => {
            Ok(Completion::ignored_with("this kernel has no utilization clamps (CONFIG_UCLAMP_TASK)"))
        }
        (false, true) => Ok(Completion::ignored_with("this kernel has utilization clamps")),
        _ => crate::run(test),
    }
}

const CONFIG: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "FP"
kind = "FP"
priorities = [21, 40]
processors = "0"
util_min = 0.75
[[plugin]]
name = "RR"
kind = "RR"
priorities = [1, 20]
processors = "0"
util_max = 0.5
[[plugin]]
name = "RM"
kind = "RM"
priorities = [41, 50]
processors = "0"
"#;

fn now(thread: u32) -> (u32, u32) {
    let is = scheduling::clamps(thread).unwrap();
    (is.min.unwrap(), is.max.unwrap())
}

fn wish(plugin: &str) -> Value {
    json!({ "plugin": plugin, "priority": 5, "period_ns": 10_000_000 })
}

fn they_are_set_and_undone() {
    let daemon = Daemon::start(CONFIG);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let before = now(sleeper.tid());
    let spec = client.schedule(wish("FP"), sleeper.tid());
    assert_eq!((seen(sleeper.tid()).0, now(sleeper.tid())), (FIFO, (768, 1024)));
    // Others have other clamps, or none of their own: then they are as before.
    client.ask("ChangeSpec", json!({ "spec": spec, "parameters": wish("RR") }));
    assert_eq!(now(sleeper.tid()).1, 512);
    client.ask("ChangeSpec", json!({ "spec": spec, "parameters": wish("RM") }));
    assert_eq!(now(sleeper.tid()).1, 1024);
    client.ask("ChangeSpec", json!({ "spec": spec, "parameters": wish("FP") }));
    assert_eq!(now(sleeper.tid()), (768, 1024));
    client.ask("DetachThread", json!({ "spec": spec }));
    assert_eq!(now(sleeper.tid()), before);
    // What a thread had of its own it has again.
    let own = Clamps { min: Some(100), max: Some(900) };
    scheduling::clamp(sleeper.tid(), &own).unwrap();
    client.ask("AttachThread", json!({ "spec": spec, "thread": sleeper.tid() }));
    assert_eq!(now(sleeper.tid()), (768, 900));
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(now(sleeper.tid()), (100, 900));
}

fn they_are_undone_after_a_crash() {
    let mut daemon = Daemon::start(CONFIG);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let before = now(sleeper.tid());
    client.schedule(wish("FP"), sleeper.tid());
    daemon.kill();
    assert_eq!(now(sleeper.tid()), (768, 1024));
    daemon.run();
    assert_eq!((seen(sleeper.tid()).0, now(sleeper.tid())), (FIFO, (768, 1024)));
    assert!(daemon.stop().success());
    assert_eq!(now(sleeper.tid()), before);
    // The process that had the spec ends while there is no daemon.
    let mut daemon = Daemon::start(CONFIG);
    let mut actor = crate::actor::Actor::start();
    actor.tell(&format!("connect {}", daemon.socket().display()));
    let spec = actor.ask("CreateSpec", json!({ "parameters": wish("FP") }))["admission"]["spec"].clone();
    actor.ask("AttachThread", json!({ "spec": spec, "thread": sleeper.tid() }));
    assert_eq!(now(sleeper.tid()), (768, 1024));
    daemon.kill();
    actor.kill();
    daemon.run();
    assert_eq!(now(sleeper.tid()), before);
}

fn others_have_the_last_word() {
    let daemon = Daemon::start(CONFIG);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let spec = client.schedule(wish("FP"), sleeper.tid());
    scheduling::clamp(sleeper.tid(), &Clamps { min: Some(200), max: None }).unwrap();
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(now(sleeper.tid()), (200, 1024));
}

fn a_kernel_without_them_is_told_of() {
    let daemon = Daemon::start(CONFIG);
    let mut client = daemon.connect();
    let said = "util_min and util_max of 'FP' do nothing: this kernel has no utilization clamps";
    assert!(daemon.log().contains(said), "{}", daemon.log());
    let plugins = client.ask("ListPlugins", json!({}))["plugins"].clone();
    assert!(plugins[0]["warning"].as_str().unwrap().contains(said), "{plugins}");
    assert_eq!(plugins[2].get("warning"), None, "it has no clamps");
    let sleeper = Sleeper::start();
    client.schedule(wish("FP"), sleeper.tid());
    assert_eq!(seen(sleeper.tid()).0, FIFO);
}
