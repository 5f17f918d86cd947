//! What the kernel keeps for ordinary threads counts in admission.

use crate::rig::Daemon;
use serde_json::{Value, json};

pub const TESTS: &[(&str, fn())] = &[
    ("supply::what_the_kernel_keeps_counts", what_the_kernel_keeps_counts),
    ("supply::what_the_configuration_says_counts", what_the_configuration_says_counts),
];

const RM: &str = r#"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 20]
processors = "0"
"#;

/// A job of one second every two: it leaves ordinary threads nothing of a second.
fn second(deadline_ms: u64) -> Value {
    let ms = 1_000_000;
    json!({ "runtime_ns": 1000 * ms, "period_ns": 2000 * ms, "deadline_ns": deadline_ms * ms })
}

fn has_fair_server() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

fn what_the_kernel_keeps_counts() {
    let daemon = Daemon::start(RM);
    let mut client = daemon.connect();
    let (error, why) = client.fail("CreateSpec", json!({ "parameters": second(1030) }));
    assert_eq!(error, "NotAdmitted");
    let who =
        if has_fair_server() { "of the kernel's fair server" } else { "of the kernel's real-time throttle" };
    assert!(why.to_string().contains(who), "{why}");
    // Specs that leave them enough do not meet it.
    client.create(json!({ "runtime_ns": 9_000_000, "period_ns": 10_000_000, "plugin": "RM" }));
}

fn what_the_configuration_says_counts() {
    let kernel = |fair_server: &str| {
        format!("[kernel]\nfair_server = {fair_server}\nrealtime_throttle = \"none\"\n{RM}")
    };
    let daemon = Daemon::start(&kernel("\"none\""));
    daemon.connect().create(second(1030));
    // Two times 10 ms, and 1 % of the rest.
    daemon.reload(&kernel("[10000, 1000000]"));
    let mut client = daemon.connect();
    client.fail("CreateSpec", json!({ "parameters": second(1030) }));
    let daemon = Daemon::start(&kernel("[10000, 1000000]"));
    let mut client = daemon.connect();
    client.fail("CreateSpec", json!({ "parameters": second(1030) }));
    client.create(second(1031));
}
