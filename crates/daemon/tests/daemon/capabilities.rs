//! The capabilities that `dist/punctuald.service` leaves are enough to serve other users.

use crate::actor::Actor;
use crate::rig::{Daemon, FIFO, seen};
use serde_json::json;
use std::process::Command;

pub const TESTS: &[(&str, fn())] = &[
    ("capabilities::suffice_to_tell_users_apart", suffice_to_tell_users_apart),
    ("capabilities::suffice_to_schedule_others", suffice_to_schedule_others),
];

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/punctuald.service");

const CONFIG: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "FP"
kind = "FP"
priorities = [1, 3]
"#;

/// A daemon with these capabilities, and a client of another user; `None`, and said, without `setpriv`.
fn start() -> Option<(Daemon, Actor)> {
    let unit = std::fs::read_to_string(UNIT).unwrap();
    let left = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let left = left.split_whitespace().map(|name| name.strip_prefix("CAP_").unwrap().to_lowercase());
    let bounding = format!("--bounding-set=-all,+{}", left.collect::<Vec<_>>().join(",+"));
    let setpriv = ["setpriv", &bounding, "--inh-caps=-all", "--no-new-privs"];
    if Command::new(setpriv[0]).arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no setpriv here");
        return None;
    }
    let mut daemon = Daemon::with_rules(CONFIG, "4711 FP max_priority 3\n");
    assert!(daemon.stop().success());
    daemon.wrap(&setpriv);
    daemon.run();
    let client = Actor::as_user(4711, &daemon.socket());
    Some((daemon, client))
}

fn suffice_to_tell_users_apart() {
    let Some((_daemon, mut client)) = start() else { return };
    let denied = client.call("CreateSpec", json!({ "parameters": { "priority": 4 } }));
    assert_eq!(denied["error"], "io.punctual.Scheduler1.NotPermitted", "{denied}");
    let rule = denied["parameters"]["rule"].as_str().unwrap_or_else(|| panic!("{denied}"));
    assert!(rule.ends_with("rules.conf:1: 4711 FP max_priority 3"), "{rule}");
}

fn suffice_to_schedule_others() {
    let Some((_daemon, mut client)) = start() else { return };
    let created = client.ask("CreateSpec", json!({ "parameters": { "priority": 2 } }));
    let spec = &created["admission"]["spec"];
    client.ask("AttachThread", json!({ "spec": spec, "thread": client.pid() }));
    assert_eq!(seen(client.pid()).0, FIFO);
}
