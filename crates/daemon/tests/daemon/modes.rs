//! Changes of mode: several specs as one. And specs that belong to other processes.

use crate::actor::Actor;
use crate::rig::{Daemon, FIFO, OTHER, Sleeper, seen, until};
use serde_json::{Value, json};

pub const TESTS: &[(&str, fn())] = &[
    ("modes::what_fits_only_together_is_admitted", what_fits_only_together_is_admitted),
    ("modes::a_refusal_leaves_all_as_it_was", a_refusal_leaves_all_as_it_was),
    ("modes::mistakes_change_nothing", mistakes_change_nothing),
    ("modes::specs_can_belong_to_other_processes", specs_can_belong_to_other_processes),
];

const EXACT: &str = r#"
[rules]
file = "rules.conf"
[kernel]
fair_server = "none"
realtime_throttle = "none"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 20]
processors = "0"
"#;

fn times(runtime_ms: u64, period_ms: u64) -> Value {
    json!({ "runtime_ns": runtime_ms * 1_000_000, "period_ns": period_ms * 1_000_000 })
}

/// Two of 0.4 swap with one of 0.4, one of 0.2 and a new one of 0.3: no order of single changes would be
/// admitted with the released one still there.
fn what_fits_only_together_is_admitted() {
    let daemon = Daemon::start(EXACT);
    let mut client = daemon.connect();
    let threads = [Sleeper::start(), Sleeper::start()];
    let before = seen(threads[0].tid());
    let stays = client.schedule(times(4, 10), threads[0].tid());
    let goes = client.schedule(times(8, 20), threads[1].tid());
    assert_eq!(
        client.fail("ChangeSpec", json!({ "spec": stays, "parameters": times(18, 30) })).0,
        "NotAdmitted"
    );
    let reply = client.ask(
        "ReplaceSpecs",
        json!({
            "release": [goes],
            "change": [{ "spec": stays, "parameters": times(18, 30) }],
            "create": [{ "parameters": times(3, 10), "name": "new" }]
        }),
    );
    let admissions = reply["admissions"].as_array().unwrap();
    assert_eq!(admissions.len(), 2);
    assert_eq!(
        (&admissions[0]["spec"], &admissions[0]["accepted_runtime_ns"]),
        (&json!(stays), &json!(18_000_000))
    );
    let new = admissions[1]["spec"].as_u64().unwrap();
    assert_eq!(client.fail("GetSpec", json!({ "spec": goes })).0, "NoSuchSpec");
    assert_eq!(seen(threads[1].tid()), before);
    // The changed one has its thread, below the new one.
    let thread = Sleeper::start();
    client.ask("AttachThread", json!({ "spec": new, "thread": thread.tid() }));
    // What the thread of the released one has taken, on its way to sleep, is gone until its period ends.
    until("its budget", || seen(thread.tid()).0 == FIFO);
    let (of_changed, of_new) = (seen(threads[0].tid()), seen(thread.tid()));
    assert_eq!((of_changed.0, of_new.0), (FIFO, FIFO));
    assert!(of_changed.1 < of_new.1, "{of_changed:?} {of_new:?}");
    client.ask("ReplaceSpecs", json!({ "release": [stays, new] }));
    assert_eq!((seen(threads[0].tid()), seen(thread.tid()).0), (before, OTHER));
    daemon.assert_empty();
}

fn a_refusal_leaves_all_as_it_was() {
    let daemon = Daemon::start(EXACT);
    let mut client = daemon.connect();
    let threads = [Sleeper::start(), Sleeper::start()];
    let one = client.schedule(times(4, 10), threads[0].tid());
    let two = client.schedule(times(8, 20), threads[1].tid());
    let looks = |client: &mut crate::rig::Client| {
        let seen: Vec<_> = threads.iter().map(|thread| seen(thread.tid())).collect();
        (client.ask("ListSpecs", json!({})), client.ask("ListPlugins", json!({})), seen)
    };
    let before = looks(&mut client);
    let (error, about) = client.fail(
        "ReplaceSpecs",
        json!({
            "release": [two],
            "change": [{ "spec": one, "parameters": times(2, 40) }],
            "create": [{ "parameters": times(3, 10) }, { "parameters": times(9, 10) }]
        }),
    );
    assert_eq!(error, "NotAdmitted");
    let reason = about["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("new spec no. 2: RM: "), "{reason}");
    assert_eq!(looks(&mut client), before);
    // They are in the books as before: nothing more fits, and what is released is free.
    assert_eq!(client.fail("CreateSpec", json!({ "parameters": times(2, 10) })).0, "NotAdmitted");
    client.ask("ReleaseSpec", json!({ "spec": one }));
    client.ask("ReleaseSpec", json!({ "spec": two }));
    daemon.assert_empty();
}

fn mistakes_change_nothing() {
    let daemon = Daemon::start(EXACT);
    let mut client = daemon.connect();
    let mine = client.create(times(1, 10));
    let change = json!({ "spec": mine, "parameters": times(1, 20) });
    let twice = json!({ "release": [mine], "change": [change] });
    assert_eq!(client.fail("ReplaceSpecs", twice).0, "InvalidParameter");
    let unknown = json!({ "release": [mine, 4711] });
    assert_eq!(client.fail("ReplaceSpecs", unknown).0, "NoSuchSpec");
    let mut other = Actor::as_user(4001, &daemon.socket());
    assert_eq!(other.fail("ReplaceSpecs", json!({ "release": [mine] })), "NotOwner");
    let spec = client.ask("GetSpec", json!({ "spec": mine }))["spec"].clone();
    assert_eq!(spec["parameters"], times(1, 10));
    assert_eq!(client.ask("ReplaceSpecs", json!({}))["admissions"], json!([]));
}

fn specs_can_belong_to_other_processes() {
    let daemon = Daemon::start(EXACT);
    let (mut one, mut same) =
        (Actor::as_user(4001, &daemon.socket()), Actor::as_user(4001, &daemon.socket()));
    let mut other = Actor::as_user(4002, &daemon.socket());
    let of = |process: u32| json!({ "parameters": times(1, 10), "process": process });
    assert_eq!(other.fail("CreateSpec", of(one.pid())), "NotOwner");
    assert_eq!(other.fail("CreateSpec", of(0x3fff_ffff)), "NoSuchThread");
    let spec = one.ask("CreateSpec", of(same.pid()))["admission"]["spec"].clone();
    let process = one.ask("GetSpec", json!({ "spec": spec }))["spec"]["process"].clone();
    assert_eq!(process, json!(same.pid()));
    // As root, of any user; it ends with that process, not with the one that asked.
    let sleeper = Sleeper::start();
    let mut root = daemon.connect();
    let roots = root.ask("CreateSpec", of(sleeper.tid()))["admission"]["spec"].clone();
    root.ask("AttachThread", json!({ "spec": roots, "thread": sleeper.tid() }));
    drop(sleeper);
    until("the end of the spec", || root.call("GetSpec", json!({ "spec": roots })).get("error").is_some());
    drop(same.call("Ping", json!({})));
}
