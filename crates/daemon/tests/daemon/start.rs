//! Starting: twice, over a stale socket, with a wrong configuration, by a service manager.

use crate::rig::{Client, Daemon, PLUGINS, Sleeper};
use serde_json::json;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};

pub const TESTS: &[(&str, fn())] = &[
    ("start::a_second_daemon_refuses", a_second_daemon_refuses),
    ("start::a_stale_socket_is_replaced_and_a_file_is_not", a_stale_socket_is_replaced_and_a_file_is_not),
    ("start::configurations_are_checked", configurations_are_checked),
    ("start::a_service_manager_may_hand_over_the_socket", a_service_manager_may_hand_over_the_socket),
    ("start::one_edit_is_named_and_enough", one_edit_is_named_and_enough),
    ("start::a_full_state_folder_is_named", a_full_state_folder_is_named),
    ("start::the_socket_has_the_permissions_it_is_to_have", the_socket_has_the_permissions_it_is_to_have),
];

fn output(mut command: Command) -> (Output, String) {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, printed)
}

fn a_second_daemon_refuses() {
    let daemon = Daemon::start(PLUGINS);
    let (refused, printed) = output(daemon.command());
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed.contains(": another punctuald uses it"), "{printed}");
    let mut elsewhere = daemon.command();
    elsewhere.arg("--state").arg(daemon.path("other-state"));
    // The last one of two is what counts on other command lines; here, two are an error.
    assert_eq!(output(elsewhere).0.status.code(), Some(2));
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_punctuald"));
    elsewhere
        .arg("--config")
        .arg(daemon.path("punctuald.toml"))
        .arg("--socket")
        .arg(daemon.socket())
        .arg("--state")
        .arg(daemon.path("other-state"));
    let (refused, printed) = output(elsewhere);
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed.contains("answers at"), "{printed}");
    daemon.connect().ask("Ping", json!({}));
}

fn a_stale_socket_is_replaced_and_a_file_is_not() {
    let mut daemon = Daemon::start(PLUGINS);
    daemon.kill();
    assert!(daemon.socket().exists());
    daemon.run();
    daemon.connect().ask("Ping", json!({}));
    assert!(daemon.stop().success());
    std::fs::write(daemon.socket(), "mine").unwrap();
    let (refused, printed) = output(daemon.command());
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed.contains("is not a socket; not replacing it"), "{printed}");
    assert_eq!(std::fs::read_to_string(daemon.socket()).unwrap(), "mine");
}

fn configurations_are_checked() {
    let daemon = Daemon::start(PLUGINS);
    let check = |daemon: &Daemon| {
        let mut command = daemon.command();
        command.arg("--check-config");
        output(command)
    };
    assert_eq!(check(&daemon).0.status.code(), Some(0));
    daemon.write("punctuald.toml", "[[plugin]]\nname = \"A\"\nkind = \"XX\"\n");
    let (wrong, printed) = check(&daemon);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(printed.contains("punctuald.toml:3"), "{printed}");
    daemon.write("punctuald.toml", PLUGINS);
    daemon.write("rules.conf", "nonsense\n");
    let (wrong, printed) = check(&daemon);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(printed.contains("rules.conf:1"), "{printed}");
}

fn a_service_manager_may_hand_over_the_socket() {
    let mut daemon = Daemon::start(PLUGINS);
    assert!(daemon.stop().success());
    let listener = UnixListener::bind(daemon.path("handed-over")).unwrap();
    // It waits already when the daemon starts.
    let mut client = Client::connect(&daemon.path("handed-over"));
    client.send(&crate::rig::message("Ping", json!({})));
    let original = daemon.command();
    let mut command = Command::new("sh");
    let hand_over = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
    command
        .args(["-c", hand_over])
        .arg(original.get_program())
        .args(original.get_args())
        .stdin(OwnedFd::from(listener));
    command.env("NOTIFY_SOCKET", daemon.path("notify")).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    daemon.wait_for("READY=1");
    assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    assert!(!daemon.socket().exists());
    // SAFETY: no memory is involved; the number is that of a child that was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    assert!(child.wait().unwrap().success());
    daemon.wait_for("STOPPING=1");
    assert!(daemon.path("handed-over").exists(), "it is the manager's");
}

fn the_socket_has_the_permissions_it_is_to_have() {
    let daemon = Daemon::start(&format!("[socket]\nmode = \"0640\"\n{PLUGINS}"));
    assert_eq!(std::fs::metadata(daemon.socket()).unwrap().permissions().mode() & 0o777, 0o640);
}

/// The configuration that is installed, with one of the plugins that it only shows.
fn uncommented(name: &str) -> String {
    let start = format!("#[[plugin]]\n#name = \"{name}\"\n");
    let (before, block) = punctual_daemon::config::DEFAULT_TEXT.split_once(&start).expect(name);
    let (block, after) = block.split_once("\n\n").expect("a block");
    let block: Vec<&str> = block.lines().map(|line| line.strip_prefix('#').expect("a comment")).collect();
    format!("{before}[[plugin]]\nname = \"{name}\"\n{}\n\n{after}", block.join("\n"))
}

fn one_edit_is_named_and_enough() {
    let installed = punctual_daemon::config::DEFAULT_TEXT.replace("/etc/punctual/rules.conf", "rules.conf");
    let mut daemon = Daemon::start(&installed);
    let thread = Sleeper::start();
    let edit = |name: &str| {
        let file = daemon.path("punctuald.toml");
        format!("uncomment the [[plugin]] {name} in {}, then systemctl reload punctuald", file.display())
    };
    let mut client = daemon.connect();
    let (error, about) = client.fail("CreateSpec", json!({ "parameters": { "priority": 10 } }));
    assert_eq!(error, "NotAdmitted");
    assert_eq!(about["reasons"], json!(["RM: needs a declared period", edit("FP or RR")]));
    let times = json!({ "runtime_ns": 1_000_000, "period_ns": 100_000_000, "plugin": "EDF" });
    let (error, about) = client.fail("CreateSpec", json!({ "parameters": times }));
    assert_eq!((error.as_str(), &about["hint"]), ("NoSuchPlugin", &json!(edit("EDF"))));
    assert!(client.fail("CreateSpec", json!({ "parameters": { "plugin": "X" } })).1.get("hint").is_none());
    for (name, parameters) in [
        ("FP", json!({ "priority": 10 })),
        ("RR", json!({ "priority": 10 })),
        ("NICE", json!({ "nice": -3 })),
        ("EDF", times),
    ] {
        daemon.reload(&uncommented(name).replace("/etc/punctual/rules.conf", "rules.conf"));
        let spec = daemon.connect().schedule(parameters, thread.tid());
        let plugin =
            daemon.connect().ask("GetSpec", json!({ "spec": spec }))["spec"]["admission"]["plugin"].clone();
        assert_eq!(plugin, json!(name));
        daemon.connect().ask("ReleaseSpec", json!({ "spec": spec }));
    }
    // So that it restores `sched_rt_runtime_us`, which EDF lifted.
    assert!(daemon.stop().success());
}

/// Where the journal has no room, the client reads which folder is full, and of what.
fn a_full_state_folder_is_named() {
    let mut daemon = Daemon::start(PLUGINS);
    assert!(daemon.stop().success());
    let state = daemon.path("state");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k,mode=0755", "none"])
        .arg(&state)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("SKIPPED: nothing can be mounted here");
        return;
    }
    daemon.run();
    let (error, about) = daemon.connect().fail("CreateSpec", json!({ "parameters": { "priority": 1 } }));
    daemon.kill();
    assert!(Command::new("umount").arg(&state).status().unwrap().success());
    assert_eq!(error, "KernelRefused");
    let reason = about["reason"].as_str().unwrap();
    let journal = state.join("journal").display().to_string();
    assert!(reason.contains(&journal) && reason.contains("No space left on device"), "{reason}");
    assert!(reason.ends_with("free some space there, or configure another state.directory"), "{reason}");
}
