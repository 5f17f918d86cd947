//! Threads in cpusets: specs move to the processors that their threads may use.

use crate::rig::{Daemon, FIFO, Sleeper, seen};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

pub const TESTS: &[(&str, fn())] = &[
    ("cpusets::a_spec_moves_to_where_its_thread_may_run", a_spec_moves_to_where_its_thread_may_run),
    ("cpusets::a_change_stays_within_the_cpuset", a_change_stays_within_the_cpuset),
];

const ON_BOTH: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 20]
processors = "0-1"
[[plugin]]
name = "FP"
kind = "FP"
priorities = [21, 40]
processors = "0-1"
"#;

/// A control group whose threads may use processor 1 only, until it is dropped.
struct Cpuset(PathBuf);

impl Cpuset {
    /// `None` where there are no cpusets to make, or no two processors.
    fn of_one() -> Option<Self> {
        let here = |root: &str| {
            Path::new(root).join(format!("punctual-test-{}", rustix::thread::gettid().as_raw_nonzero()))
        };
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
        for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpuset"] {
            let memory = fs::read_to_string(Path::new(root).join("cpuset.mems")).unwrap_or("0".into());
            let folder = here(root);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let cpuset = Self(folder);
            if cpuset.0.join("cpuset.cpus").exists() && fs::write(cpuset.0.join("cpuset.cpus"), "1").is_ok() {
                let _ = fs::write(cpuset.0.join("cpuset.mems"), memory.trim());
                return Some(cpuset);
            }
        }
        None
    }

    fn take(&self, process: u32) {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).unwrap();
        assert_eq!(seen(process).3, "1");
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        if let Ok(left) = fs::read_to_string(self.0.join("cgroup.procs")) {
            let parent = self.0.parent().unwrap().join("cgroup.procs");
            left.lines().for_each(|process| drop(fs::write(&parent, process)));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

fn a_spec_moves_to_where_its_thread_may_run() {
    let Some(cpuset) = Cpuset::of_one() else {
        eprintln!("no cpuset can be made here");
        return;
    };
    let daemon = Daemon::start(ON_BOTH);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    cpuset.take(sleeper.tid());
    let before = seen(sleeper.tid());
    // Processor 0 comes first where both are free.
    let task = |runtime: u64| json!({ "runtime_ns": runtime, "period_ns": 10_000_000, "plugin": "RM" });
    let spec = client.schedule(task(1_000_000), sleeper.tid());
    assert_eq!((seen(sleeper.tid()).0, seen(sleeper.tid()).3.as_str()), (FIFO, "1"));
    let found = client.ask("GetSpec", json!({ "spec": spec }));
    assert_eq!(found["spec"]["admission"]["processor"], json!(1), "{found}");
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(seen(sleeper.tid()), before);
    // Where the cpuset's processors are full, that is the reason, and nothing has changed.
    let full = client.create(json!({ "runtime_ns": 9_000_000, "period_ns": 10_000_000, "plugin": "RM" }));
    let second = Sleeper::start();
    cpuset.take(second.tid());
    client.ask("AttachThread", json!({ "spec": full, "thread": second.tid() }));
    let other = client.create(task(2_000_000));
    let (error, why) = client.fail("AttachThread", json!({ "spec": other, "thread": sleeper.tid() }));
    assert_eq!(error, "NotAdmitted", "{why}");
    assert!(why.to_string().contains("processor 1"), "{why}");
    assert_eq!(seen(sleeper.tid()), before);
    client.ask("ReleaseSpec", json!({ "spec": full }));
    client.ask("AttachThread", json!({ "spec": other, "thread": sleeper.tid() }));
    client.ask("ReleaseSpec", json!({ "spec": other }));
    daemon.assert_empty();
}

fn a_change_stays_within_the_cpuset() {
    let Some(cpuset) = Cpuset::of_one() else {
        eprintln!("no cpuset can be made here");
        return;
    };
    let daemon = Daemon::start(ON_BOTH);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    cpuset.take(sleeper.tid());
    let spec = client.schedule(json!({ "priority": 30 }), sleeper.tid());
    let task = json!({ "runtime_ns": 1_000_000, "period_ns": 10_000_000, "plugin": "RM" });
    client.ask("ChangeSpec", json!({ "spec": spec, "parameters": task }));
    assert_eq!((seen(sleeper.tid()).0, seen(sleeper.tid()).3.as_str()), (FIFO, "1"));
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    daemon.assert_empty();
}
