//! Global EDF: by the kernel's own admission, without pinning.

use crate::rig::{DEADLINE, Daemon, OTHER, Sleeper, rt_runtime, seen};
use serde_json::json;
use std::process::Command;

pub const ALONE: &[(&str, fn())] = &[("global::threads_are_not_pinned", threads_are_not_pinned)];

const GLOBAL: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "GEDF"
kind = "GEDF"
"#;

fn threads_are_not_pinned() {
    let mut daemon = Daemon::start(GLOBAL);
    let (limit, threads) = (rt_runtime(), [Sleeper::start(), Sleeper::start()]);
    let before = seen(threads[0].tid());
    let mut client = daemon.connect();
    let tenth = json!({ "runtime_ns": 1_000_000, "period_ns": 10_000_000 });
    let specs = threads.each_ref().map(|thread| client.schedule(tenth.clone(), thread.tid()));
    for thread in &threads {
        assert_eq!((seen(thread.tid()).0, seen(thread.tid()).3), (DEADLINE, before.3.clone()));
    }
    assert_eq!(rt_runtime(), limit, "the kernel's own admission test stays on");
    let spec = client.ask("GetSpec", json!({ "spec": specs[0] }))["spec"].clone();
    assert_eq!((spec["admission"].get("processor"), &spec["admission"]["plugin"]), (None, &json!("GEDF")));
    assert!(spec.get("thread_is").is_none(), "{spec}");
    // A killed daemon finds them again.
    daemon.kill();
    daemon.run();
    let mut client = daemon.connect();
    assert_eq!(client.ask("Count", json!({}))["specs"], json!(2));
    // A thread that may not run everywhere is refused, if there is more than one processor.
    let pinned = Sleeper::start();
    let first = before.3.split([',', '-']).next().unwrap();
    let set = Command::new("taskset").args(["-pc", first, &pinned.tid().to_string()]).output().unwrap();
    assert!(set.status.success());
    if before.3 != first {
        let spec = client.create(tenth);
        let (error, about) = client.fail("AttachThread", json!({ "spec": spec, "thread": pinned.tid() }));
        assert_eq!(error, "NotAdmitted", "{about}");
        assert_eq!(seen(pinned.tid()).0, OTHER);
        client.ask("ReleaseSpec", json!({ "spec": spec }));
    }
    client.ask("ReplaceSpecs", json!({ "release": specs }));
    assert_eq!(threads.each_ref().map(|thread| seen(thread.tid())), [before.clone(), before]);
}
