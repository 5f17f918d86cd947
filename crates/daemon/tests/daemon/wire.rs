//! What comes over the socket, and what comes back, whoever sends what.

use crate::actor::Actor;
use crate::rig::{Client, Daemon, PLUGINS, message, until};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use std::io::{ErrorKind, Write};
use std::net::Shutdown;

pub const TESTS: &[(&str, fn())] = &[
    ("wire::it_describes_itself", it_describes_itself),
    ("wire::wrong_calls_are_named", wrong_calls_are_named),
    ("wire::calls_come_in_pieces_and_in_heaps", calls_come_in_pieces_and_in_heaps),
    ("wire::oneway_calls_have_no_reply", oneway_calls_have_no_reply),
    ("wire::garbage_ends_a_connection_and_nothing_else", garbage_ends_a_connection_and_nothing_else),
    ("wire::messages_have_an_end", messages_have_an_end),
    ("wire::a_half_closed_connection_is_answered", a_half_closed_connection_is_answered),
    ("wire::who_does_not_read_is_not_read_from", who_does_not_read_is_not_read_from),
    ("wire::two_thousand_connections", two_thousand_connections),
    ("wire::closed_connections_leave_nothing", closed_connections_leave_nothing),
    ("wire::connections_have_a_limit_for_each_user", connections_have_a_limit_for_each_user),
    ("wire::without_descriptors_it_goes_on", without_descriptors_it_goes_on),
    ("wire::who_dies_before_the_answer_leaves_nothing", who_dies_before_the_answer_leaves_nothing),
    ("wire::bounds_are_named", bounds_are_named),
    ("wire::what_a_loop_says_is_shown", what_a_loop_says_is_shown),
];

fn it_describes_itself() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let info = client.ask("org.varlink.service.GetInfo", json!({}));
    assert_eq!(info["interfaces"], json!(["org.varlink.service", "io.punctual.Scheduler1"]));
    for interface in ["org.varlink.service", "io.punctual.Scheduler1"] {
        let text =
            client.ask("org.varlink.service.GetInterfaceDescription", json!({ "interface": interface }));
        assert!(text["description"].as_str().unwrap().contains(&format!("interface {interface}\n")));
    }
    let status = client.ask("GetStatus", json!({}));
    assert_eq!(status["pid"], json!(daemon.pid()));
    assert_eq!(status["clients"], json!(1));
    assert_eq!(client.ask("ListClients", json!({}))["clients"][0]["process"], json!(std::process::id()));
}

fn wrong_calls_are_named() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    assert_eq!(client.fail("Nothing", json!({})).0, "MethodNotFound");
    assert_eq!(client.fail("Ping.Pong", json!({})).0, "InterfaceNotFound");
    assert_eq!(client.fail("org.varlink.service.Nothing", json!({})).0, "MethodNotFound");
    assert_eq!(
        client.fail("org.varlink.service.GetInterfaceDescription", json!({ "interface": "a.b" })).0,
        "InterfaceNotFound"
    );
    assert_eq!(
        client.fail("Ping", json!({ "x": 1 })),
        ("InvalidParameter".into(), json!({ "parameter": "x" }))
    );
    assert_eq!(
        client.fail("ReleaseSpec", json!({ "spec": "1" })),
        ("InvalidParameter".into(), json!({ "parameter": "spec" }))
    );
    assert_eq!(client.fail("ReleaseSpec", json!({ "spec": 1 })), ("NoSuchSpec".into(), json!({ "spec": 1 })));
    assert_eq!(client.fail("CreateSpec", json!({ "parameters": { "plugin": "X" } })).0, "NoSuchPlugin");
    let long = "x".repeat(65);
    assert_eq!(
        client.fail("CreateSpec", json!({ "parameters": { "priority": 1 }, "name": long })).1,
        json!({ "parameter": "name" })
    );
    let spec = client.create(json!({ "priority": 1 }));
    assert_eq!(client.fail("AttachThread", json!({ "spec": spec, "thread": 0 })).0, "NoSuchThread");
    assert_eq!(client.fail("AttachThread", json!({ "spec": spec, "thread": 0x7fff_fff0 })).0, "NoSuchThread");
    assert_eq!(client.fail("AttachThread", json!({ "spec": spec, "thread": u32::MAX })).0, "NoSuchThread");
    assert_eq!(client.fail("DetachThread", json!({ "spec": spec })).0, "NotAttached");
    client.ask("Ping", json!({}));
}

fn calls_come_in_pieces_and_in_heaps() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    for byte in message("Ping", json!({})) {
        client.send(&[byte]);
    }
    assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    let heap = message("Ping", json!({})).repeat(2000);
    client.send(&heap);
    for _ in 0..2000 {
        assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    }
    // One whole and a half, then the other half.
    let (first, second) = heap.split_at(heap.len() / 2000 * 3 / 2);
    client.send(first);
    assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    client.send(&second[..heap.len() / 2000 / 2 + 1]);
    assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
}

fn oneway_calls_have_no_reply() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    client.send(
        b"{\"method\":\"io.punctual.Scheduler1.CreateSpec\",\
          \"parameters\":{\"parameters\":{\"priority\":1}},\"oneway\":true}\0",
    );
    client.send(b"{\"method\":\"io.punctual.Scheduler1.Nothing\",\"oneway\":true}\0");
    client.send(b"{\"method\":\"io.punctual.Scheduler1.ListSpecs\",\"more\":true}\0");
    assert_eq!(client.receive().unwrap()["parameters"]["specs"].as_array().unwrap().len(), 1);
}

fn garbage_ends_a_connection_and_nothing_else() {
    let daemon = Daemon::start(PLUGINS);
    let mut other = daemon.connect();
    let deep = [b'['; 60_000];
    for garbage in [
        &b"\0"[..],
        b"GET / HTTP/1.1\r\n\r\n\0",
        b"\xff\xfe\xfd\0",
        b"{\"method\":1}\0",
        b"[]\0",
        &[&deep[..], b"\0"].concat(),
    ] {
        let mut client = daemon.connect();
        client.send(garbage);
        // Behind it, nothing counts.
        let _ = client.stream.write_all(&message("CreateSpec", json!({ "parameters": { "priority": 1 } })));
        assert_eq!(client.receive().unwrap()["error"], json!("org.varlink.service.InvalidParameter"));
        assert_eq!(client.receive(), None);
        other.ask("Ping", json!({}));
    }
    assert_eq!(other.ask("ListSpecs", json!({}))["specs"], json!([]));
}

fn messages_have_an_end() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    // The longest that is taken, and one more byte.
    let mut longest = message("Ping", json!({}));
    longest.pop();
    longest.resize(64 * 1024, b' ');
    longest.push(0);
    client.send(&longest);
    assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    longest.insert(64 * 1024, b' ');
    client.send(&longest);
    assert_eq!(client.receive().unwrap()["error"], json!("io.punctual.Scheduler1.TooMany"));
    assert_eq!(client.receive(), None);
    // A megabyte without an end.
    let mut client = daemon.connect();
    let _ = client.stream.write_all(&vec![b'x'; 1 << 20]);
    if let Some(reply) = client.receive() {
        assert_eq!(reply["error"], json!("io.punctual.Scheduler1.TooMany"));
    }
    daemon.connect().ask("Ping", json!({}));
}

fn a_half_closed_connection_is_answered() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    client.send(&message("Ping", json!({})).repeat(3));
    client.stream.shutdown(Shutdown::Write).unwrap();
    for _ in 0..3 {
        assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    }
    assert_eq!(client.receive(), None);
    let client = daemon.connect();
    client.stream.shutdown(Shutdown::Read).unwrap();
    drop(client);
    daemon.connect().ask("Ping", json!({}));
}

fn memory(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

fn who_does_not_read_is_not_read_from() {
    let daemon = Daemon::start(PLUGINS);
    let mut other = daemon.connect();
    for _ in 0..200 {
        other.create(json!({ "priority": 1 }));
    }
    let before = memory(&daemon);
    let mut deaf: Vec<_> = (0..20).map(|_| daemon.connect()).collect();
    let list = message("ListSpecs", json!({}));
    for client in &mut deaf {
        client.stream.set_nonblocking(true).unwrap();
        let mut sent = 0;
        // Until the daemon takes nothing more; others are answered all the time.
        loop {
            match client.stream.write(&list) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
            assert!(sent < 8 << 20, "it reads for ever from who does not read");
            if sent % 64 == 0 {
                other.ask("Ping", json!({}));
            }
        }
    }
    let grown = memory(&daemon).saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} kB more");
    other.ask("Ping", json!({}));
    // Whoever reads after all gets all of it.
    let mut late = deaf.pop().unwrap();
    late.stream.set_nonblocking(false).unwrap();
    assert_eq!(late.receive().unwrap()["parameters"]["specs"].as_array().unwrap().len(), 200);
    assert!(late.receive().is_some());
}

fn two_thousand_connections() {
    let daemon = Daemon::start(PLUGINS);
    let mut clients: Vec<_> = (0..2000).map(|_| daemon.connect()).collect();
    for client in &mut clients {
        client.send(&message("Ping", json!({})));
    }
    for client in &mut clients {
        assert_eq!(client.receive(), Some(json!({ "parameters": {} })));
    }
    assert_eq!(clients[7].ask("GetStatus", json!({}))["clients"], json!(1), "they are one process");
    drop(clients);
    daemon.connect().ask("Ping", json!({}));
}

fn closed_connections_leave_nothing() {
    let daemon = Daemon::start(PLUGINS);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    let mut other = daemon.connect();
    other.ask("Ping", json!({}));
    let before = open();
    let heap = message("Ping", json!({})).repeat(3);
    // Closed at once, behind one message, several, a part of one, nothing; with an answer that nobody reads.
    for at in 0..500 {
        let mut client = daemon.connect();
        client.send(&heap[..at * 7 % heap.len()]);
        if at % 3 == 0 {
            client.stream.shutdown(Shutdown::Write).unwrap();
        }
    }
    until("the end of closed connections", || open() == before);
    assert_eq!(other.ask("GetStatus", json!({}))["clients"], json!(1));
}

fn connections_have_a_limit_for_each_user() {
    let daemon = Daemon::start(
        &PLUGINS
            .replace("connections_per_user = 3000", "connections_per_user = 2")
            .replace("specs_per_user = 2000", "specs_per_user = 3"),
    );
    let (mut one, mut two) = (Actor::as_user(4001, &daemon.socket()), Actor::as_user(4001, &daemon.socket()));
    let mut three = Actor::as_user(4001, &daemon.socket());
    // By then it has been refused: it is told so all the same, and finds no broken connection.
    one.ask("Ping", json!({}));
    one.ask("Ping", json!({}));
    assert_eq!(three.fail("Ping", json!({})), "TooMany");
    // Others are not touched by that, and there is room again when one goes.
    Actor::as_user(4002, &daemon.socket()).ask("Ping", json!({}));
    let create = || json!({ "parameters": { "priority": 1 } });
    one.ask("CreateSpec", create());
    two.ask("CreateSpec", create());
    one.ask("CreateSpec", create());
    assert_eq!(two.fail("CreateSpec", create()), "TooMany");
    one.kill();
    let mut root = daemon.connect();
    until("the end of a client", || root.ask("GetStatus", json!({}))["specs"] == json!(1));
    two.ask("CreateSpec", create());
    Actor::as_user(4001, &daemon.socket()).ask("Ping", json!({}));
}

fn without_descriptors_it_goes_on() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleepers: Vec<_> = (0..4).map(|_| crate::rig::Sleeper::start()).collect();
    let specs: Vec<u64> = sleepers.iter().map(|_| client.create(json!({ "priority": 1 }))).collect();
    let attach = |at: usize| json!({ "spec": specs[at], "thread": sleepers[at].tid() });
    let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    let pid = rustix::process::Pid::from_raw(daemon.pid() as i32);
    let limit = |current| Rlimit { current: Some(current), maximum: getrlimit(Resource::Nofile).maximum };
    prlimit(pid, Resource::Nofile, limit(open as u64)).unwrap();
    for _ in 0..100 {
        // Turned away, not left waiting.
        assert_eq!(daemon.connect().receive(), None);
    }
    // One or two may be free below the limit.
    let replies: Vec<_> = (0..4).map(|at| client.call("AttachThread", attach(at))).collect();
    assert_eq!(replies[3]["error"], json!("io.punctual.Scheduler1.TooMany"));
    assert_eq!(crate::rig::seen(sleepers[3].tid()).0, crate::rig::OTHER);
    prlimit(pid, Resource::Nofile, limit(1000)).unwrap();
    daemon.connect().ask("Ping", json!({}));
    client.ask("AttachThread", attach(3));
}

fn who_dies_before_the_answer_leaves_nothing() {
    let daemon = Daemon::start(PLUGINS);
    for _ in 0..20 {
        let mut actor = Actor::start();
        actor.tell(&format!("connect {}", daemon.socket().display()));
        actor.tell(concat!(
            r#"send {"method":"io.punctual.Scheduler1.CreateSpec","#,
            r#""parameters":{"parameters":{"priority":1}}}"#
        ));
        actor.kill();
    }
    let mut client = daemon.connect();
    until("the end of all specs", || client.ask("GetStatus", json!({}))["specs"] == json!(0));
    drop(client);
    daemon.assert_empty();
}

fn bounds_are_named() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let huge = i64::MAX as u64;
    for (parameters, culprit) in [
        (json!({ "runtime_ns": 0, "period_ns": 10 }), "runtime_ns"),
        (json!({ "runtime_ns": 11, "period_ns": 10 }), "runtime_ns"),
        (json!({ "runtime_ns": 1, "period_ns": huge + 1 }), "period_ns"),
        (json!({ "runtime_ns": huge, "period_ns": huge, "deadline_ns": 5 }), "deadline_ns"),
        (json!({ "runtime_ns": 10, "desired_runtime_ns": 5, "period_ns": 10 }), "desired_runtime_ns"),
        (json!({ "priority": 0 }), "priority"),
        (json!({ "priority": 100 }), "priority"),
    ] {
        let (error, details) = client.fail("CreateSpec", json!({ "parameters": parameters }));
        assert_eq!((error.as_str(), &details["parameter"]), ("OutOfBounds", &json!(culprit)), "{parameters}");
    }
    let full = client.create(json!({ "runtime_ns": huge / 2, "period_ns": huge }));
    let (error, details) =
        client.fail("CreateSpec", json!({ "parameters": { "runtime_ns": huge / 2, "period_ns": huge } }));
    assert_eq!(error, "NotAdmitted", "{details}");
    client.ask("ReleaseSpec", json!({ "spec": full }));
    drop(client);
    daemon.assert_empty();
}

/// What comes with the reply to `ShareLoop`.
pub fn loop_memory(client: &mut Client, spec: u64) -> std::fs::File {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    client.send(&message("ShareLoop", json!({ "spec": spec })));
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let (mut with, mut bytes) = (RecvAncillaryBuffer::new(&mut space), [0; 64]);
    let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
    let received = recvmsg(&client.stream, &mut parts, &mut with, RecvFlags::empty()).unwrap();
    assert_eq!(&bytes[..received.bytes], b"{\"parameters\":{}}\0");
    let file = with.drain().find_map(|it| match it {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    std::fs::File::from(file.expect("a file comes with it"))
}

/// Memory comes with the reply; whatever the program writes there is shown as what it says, and no more.
fn what_a_loop_says_is_shown() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let spec = client.create(json!({ "priority": 3 }));
    let shown = |client: &mut Client| client.ask("GetSpec", json!({ "spec": spec }))["spec"]["says"].clone();
    assert_eq!(shown(&mut client), Value::Null);
    let share = |client: &mut Client| loop_memory(client, spec);
    let memory = share(&mut client);
    assert_eq!(shown(&mut client), json!({ "jobs": 0, "misses": 0, "worst_response_ns": 0 }));
    let numbers = [1000u64, 7, u64::MAX].map(u64::to_ne_bytes).concat();
    std::os::unix::fs::FileExt::write_all_at(&memory, &numbers, 0).unwrap();
    let says = json!({ "jobs": 1000, "misses": 7, "worst_response_ns": u64::MAX });
    assert_eq!(shown(&mut client), says);
    assert!(memory.set_len(0).is_err() && memory.set_len(1 << 20).is_err());
    // The same memory each time.
    let mut again = [0; 8];
    std::os::unix::fs::FileExt::read_exact_at(&share(&mut client), &mut again, 0).unwrap();
    assert_eq!(u64::from_ne_bytes(again), 1000);
    let mut other = crate::actor::Actor::as_user(65534, &daemon.socket());
    assert_eq!(other.fail("ShareLoop", json!({ "spec": spec })), "NotOwner");
    assert_eq!(other.fail("ShareLoop", json!({ "spec": 99 })), "NoSuchSpec");
    assert_eq!(client.fail("ShareLoop", json!({ "spec": "x" })).0, "InvalidParameter");
    // Who does not take the file gets the reply.
    client.ask("ShareLoop", json!({ "spec": spec }));
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    daemon.assert_empty();
}
