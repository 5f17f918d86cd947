//! A plugin from a shared object in a running daemon: the example, with the kernel's own view of what it
//! decides.

use crate::rig::{Daemon, FIFO, OTHER, Sleeper, seen};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub const TESTS: &[(&str, fn())] = &[
    ("objects::threads_are_scheduled_as_an_object_says", threads_are_scheduled_as_an_object_says),
    ("objects::specs_of_an_object_outlive_the_daemon", specs_of_an_object_outlive_the_daemon),
    (
        "objects::an_object_that_cannot_be_loaded_changes_nothing",
        an_object_that_cannot_be_loaded_changes_nothing,
    ),
];

/// The example, compiled, and a configuration with it.
fn harmonic() -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("harmonic.so");
    // On a machine without a compiler, it was compiled before.
    if let Some(compiled) = std::env::var_os("PUNCTUAL_COMPILED") {
        fs::copy(Path::new(&compiled).join("harmonic.so"), &object).unwrap();
    } else {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I"])
            .arg(root.join("include"));
        let compiled =
            cc.arg("-o").arg(&object).arg(root.join("examples/plugin/harmonic.c")).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }
    fs::set_permissions(&object, Permissions::from_mode(0o644)).unwrap();
    let config = format!(
        "[rules]\nfile = \"rules.conf\"\n\
         [[plugin]]\nname = \"harmonic\"\nobject = \"{}\"\npriorities = [5, 9]\nprocessors = [0]\n",
        object.display()
    );
    (folder, object, config)
}

fn every(period_ms: u64) -> serde_json::Value {
    json!({ "runtime_ns": 100_000, "period_ns": period_ms * 1_000_000 })
}

fn threads_are_scheduled_as_an_object_says() {
    let (_folder, _, config) = harmonic();
    let daemon = Daemon::start(&config);
    let mut client = daemon.connect();
    let (slow, fast) = (Sleeper::start(), Sleeper::start());
    let before = seen(slow.tid());
    client.schedule(every(40), slow.tid());
    assert_eq!(seen(slow.tid()), (FIFO, 9, before.2, "0".into()));
    // A shorter period comes: the other thread moves down, without being asked for.
    let short = client.schedule(every(20), fast.tid());
    assert_eq!((seen(fast.tid()).1, seen(slow.tid()).1), (9, 8));
    let (error, details) = client.fail("CreateSpec", json!({ "parameters": every(30) }));
    assert_eq!(error, "NotAdmitted");
    assert!(
        details["reasons"][0]
            .as_str()
            .unwrap()
            .starts_with("harmonic: harmonic test: on processor 0 its period neither divides"),
        "{details}"
    );
    client.ask("ReleaseSpec", json!({ "spec": short }));
    assert_eq!((seen(fast.tid()).0, seen(slow.tid()).1), (OTHER, 9));
    let listed = client.ask("ListPlugins", json!({}));
    assert_eq!(
        (&listed["plugins"][0]["name"], &listed["plugins"][0]["processors"][0]["specs"]),
        (&json!("harmonic"), &json!(1))
    );
}

fn specs_of_an_object_outlive_the_daemon() {
    let (_folder, _, config) = harmonic();
    let mut daemon = Daemon::start(&config);
    let (slow, fast) = (Sleeper::start(), Sleeper::start());
    let mut client = daemon.connect();
    let spec = client.schedule(every(40), slow.tid());
    client.schedule(every(20), fast.tid());
    let scheduled = (seen(slow.tid()), seen(fast.tid()));
    daemon.kill();
    daemon.run();
    let mut client = daemon.connect();
    assert_eq!((seen(slow.tid()), seen(fast.tid())), scheduled);
    assert_eq!(client.ask("GetStatus", json!({}))["attached"], json!(2));
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!((seen(slow.tid()).0, seen(fast.tid()).1), (OTHER, 9));
}

fn an_object_that_cannot_be_loaded_changes_nothing() {
    let (_folder, object, config) = harmonic();
    let daemon = Daemon::start(&config);
    let sleeper = Sleeper::start();
    let mut client = daemon.connect();
    client.schedule(every(40), sleeper.tid());
    fs::set_permissions(&object, Permissions::from_mode(0o666)).unwrap();
    daemon.reload(&config);
    let printed =
        client.ask("GetStatus", json!({}))["last_reload_error"].as_str().unwrap_or_default().to_owned();
    assert!(
        printed.contains("plugin 'harmonic' cannot be made")
            && printed.contains("is writable by others (mode 666)"),
        "{printed}"
    );
    assert_eq!(seen(sleeper.tid()).1, 9);
}
