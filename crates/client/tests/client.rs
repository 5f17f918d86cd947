//! The client against a daemon of the tests' own, that says what it is told to say. Against the real one:
//! `tests/daemon`.

use punctual_client::{Answer, Client, Error, Parameters, Policy, Refusal, Used};
use punctual_model::Duration;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What the daemon does about a request.
enum Step {
    /// Says this, ended.
    Say(Value),
    /// Writes these bytes as they are.
    Write(Vec<u8>),
    /// Says this and goes away, and when it has gone tells the test `null`.
    SayAndClose(Value),
    /// Goes away.
    Close,
    /// Sends a blank every 5 ms until the client goes, and answers after a minute at the earliest.
    Drip,
    /// Keeps its silence.
    Nothing,
}

/// A daemon with one step for each request, and a new connection after each `Close`. What was asked comes out
/// of the channel.
struct Daemon {
    socket: PathBuf,
    asked: Receiver<Value>,
    _folder: tempfile::TempDir,
}

impl Daemon {
    fn with(steps: Vec<Step>) -> Daemon {
        let folder = tempfile::tempdir().expect("a directory");
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("bound");
        let (sender, asked) = channel();
        thread::spawn(move || serve(&listener, steps, &sender));
        Daemon { socket, asked, _folder: folder }
    }

    fn client(&self) -> Client {
        Client::connect_to(&self.socket).expect("connected")
    }
}

fn serve(listener: &UnixListener, steps: Vec<Step>, asked: &Sender<Value>) {
    let (mut stream, _) = listener.accept().expect("accepted");
    let mut silent = Vec::new();
    for step in steps {
        let mut request = read(&mut stream);
        if request.is_none() {
            (stream, _) = listener.accept().expect("accepted");
            request = read(&mut stream);
        }
        let Some(request) = request else { return };
        asked.send(request).expect("the test waits");
        match step {
            Step::Say(value) => stream.write_all(format!("{value}\0").as_bytes()).expect("said"),
            // The client may have gone before the end.
            Step::Write(bytes) => drop(stream.write_all(&bytes)),
            Step::SayAndClose(value) => {
                stream.write_all(format!("{value}\0").as_bytes()).expect("said");
                drop(stream);
                asked.send(Value::Null).expect("the test waits");
                (stream, _) = listener.accept().expect("accepted");
            }
            Step::Close => {
                drop(stream);
                (stream, _) = listener.accept().expect("accepted");
            }
            Step::Drip => {
                for _ in 0..12_000 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    if stream.write_all(b" ").is_err() {
                        break;
                    }
                }
                drop(stream.write_all(b"{}\0"));
            }
            Step::Nothing => silent.push(stream.try_clone().expect("another descriptor")),
        }
    }
    // What is still asked is not answered; the connection stays until the test has gone.
    let _ = stream.read_to_end(&mut Vec::new());
}

fn read(stream: &mut UnixStream) -> Option<Value> {
    let mut text = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).ok()?;
        match byte[0] {
            0 => return Some(serde_json::from_slice(&text).expect("JSON")),
            byte => text.push(byte),
        }
    }
}

fn admission() -> Value {
    json!({
        "spec": 7, "plugin": "EDF", "answer": "partial", "admission_ignored": false, "processor": 1,
        "accepted_runtime_ns": 3_000_000,
        "policy": "deadline", "policy_priority": null
    })
}

fn done() -> Step {
    Step::Say(json!({"parameters": {}}))
}

fn admitted() -> Step {
    Step::Say(json!({"parameters": {"admission": admission()}}))
}

fn parameters() -> Parameters {
    Parameters {
        runtime: Some(Duration::from_ms(2)),
        period: Some(Duration::from_ms(10)),
        ..Parameters::default()
    }
}

#[test]
fn every_method_sends_its_name_and_reads_the_reply() {
    let spec = json!({
        "admission": admission(), "name": null, "parameters": {"period_ns": 10_000_000,
            "ignore_admission": true}, "user": 1000, "process": 12,
        "thread": 13
    });
    let plugin = json!({
        "name": "RM", "kind": "rm", "admission": "exact", "priority_min": 1, "priority_max": 50,
        "threshold": 0.5,
        "processors": [{"number": 1, "utilization": 0.25, "specs": 3}]
    });
    let status = json!({"version": "1", "pid": 1, "since_ns": 5, "specs": 1, "clients": 2, "attached": 1,
        "last_reload_error": null});
    let daemon = Daemon::with(vec![
        admitted(),
        admitted(),
        admitted(),
        done(),
        done(),
        done(),
        Step::Say(json!({"parameters": {"spec": spec.clone()}})),
        Step::Say(json!({"parameters": {"specs": [spec]}})),
        Step::Say(json!({"parameters": {"plugins": [plugin]}})),
        Step::Say(
            json!({"parameters": {"clients": [{"process": 12, "user": 1000, "specs": 1, "command": "a"}]}}),
        ),
        Step::Say(json!({"parameters": status})),
        // An answer without anything may leave its parameters out.
        Step::Say(json!({})),
    ]);
    let mut client = daemon.client();
    let expect_asked = |method: &str, parameters: Value| {
        let asked = daemon.asked.recv().expect("asked");
        assert_eq!(
            asked,
            json!({"method": format!("io.punctual.Scheduler1.{method}"), "parameters": parameters})
        );
    };

    let created = client.create_spec(&parameters(), Some("a name")).expect("admitted");
    assert_eq!(
        (created.spec, created.plugin.as_str(), created.answer, created.policy),
        (7, "EDF", Answer::Partial, Policy::Deadline)
    );
    assert_eq!((created.accepted_runtime, created.policy_priority), (Some(Duration::from_ms(3)), None));
    expect_asked(
        "CreateSpec",
        json!({"parameters": {"runtime_ns": 2_000_000, "period_ns": 10_000_000}, "name": "a name"}),
    );
    let all = Parameters {
        desired_runtime: Some(Duration::from_ms(4)),
        deadline: Some(Duration::from_ms(9)),
        priority: Some(3),
        plugin: Some("RM".into()),
        ignore_admission: true,
        ..parameters()
    };
    client.change_spec(7, &all).expect("admitted");
    let declared = json!({
        "runtime_ns": 2_000_000, "desired_runtime_ns": 4_000_000, "period_ns": 10_000_000,
        "deadline_ns": 9_000_000, "priority": 3, "plugin": "RM",
        "ignore_admission": true
    });
    expect_asked("ChangeSpec", json!({"spec": 7, "parameters": declared}));
    client.attach_thread(7, 99).expect("attached");
    expect_asked("AttachThread", json!({"spec": 7, "thread": 99}));
    client.detach_thread(7).expect("detached");
    expect_asked("DetachThread", json!({"spec": 7}));
    client.release_spec(7).expect("released");
    expect_asked("ReleaseSpec", json!({"spec": 7}));
    let used = Used { jobs: 5, worst_cost: Duration::from_us(40), overruns: 1, misses: Some(2) };
    client.report_use(7, 13, used).expect("told");
    let told = json!({"jobs": 5, "worst_cost_ns": 40_000, "overruns": 1, "misses": 2});
    expect_asked("ReportUse", json!({"spec": 7, "thread": 13, "used": told}));
    let spec = client.get_spec(7).expect("a spec");
    assert_eq!(
        (spec.name, spec.user, spec.thread, spec.parameters.ignore_admission),
        (None, 1000, Some(13), true)
    );
    expect_asked("GetSpec", json!({"spec": 7}));
    assert_eq!(client.list_specs().expect("specs").len(), 1);
    expect_asked("ListSpecs", json!({}));
    assert_eq!(client.list_plugins().expect("plugins")[0].processors[0].specs, 3);
    expect_asked("ListPlugins", json!({}));
    assert_eq!(client.list_clients().expect("clients")[0].process, 12);
    expect_asked("ListClients", json!({}));
    assert_eq!(client.status().expect("a status").attached, 1);
    expect_asked("GetStatus", json!({}));
    client.ping().expect("there");
    expect_asked("Ping", json!({}));
}

#[test]
fn errors_keep_the_details_of_the_daemon() {
    let cases = [
        ("NotAdmitted", json!({"reasons": ["EDF: full", "RM: full"]}), "not admitted: EDF: full; RM: full"),
        (
            "NotPermitted",
            json!({"reason": "runtime", "rule": "rules:3: …"}),
            "not permitted: runtime (rule: rules:3: …)",
        ),
        (
            "NotPermitted",
            json!({"reason": "no rule allows it", "rule": null}),
            "not permitted: no rule allows it",
        ),
        (
            "OutOfBounds",
            json!({"parameter": "runtime_ns", "value": 18446744073709551615u64, "bound": "at most 9"}),
            "runtime is 18446744073.709551615 s, but must be at most 9",
        ),
        ("NoSuchSpec", json!({"spec": 3}), "there is no spec 3"),
        ("NoSuchThread", json!({"thread": 3}), "there is no thread 3"),
        ("NoSuchPlugin", json!({"plugin": "XY"}), "there is no plugin named XY"),
        ("NotOwner", json!({"what": "thread 3 is root's"}), "not permitted: thread 3 is root's"),
        ("AlreadyAttached", json!({"spec": 3, "thread": 4}), "thread 4 is already attached to spec 3"),
        ("NotAttached", json!({"spec": 3}), "spec 3 has no thread attached"),
        (
            "NotYet",
            json!({"reason": "thread 3 has used the runtime of this period", "wait_ns": 2_500_000}),
            "thread 3 has used the runtime of this period: it can be attached in 2.5 ms",
        ),
        (
            "KernelRefused",
            json!({"reason": "sched_setattr: busy"}),
            "the kernel refused: sched_setattr: busy",
        ),
        ("TooMany", json!({"what": "specs", "limit": 64}), "too many specs: the limit is 64"),
    ];
    let steps = cases.iter().map(|(name, about, _)| {
        let name = format!("io.punctual.Scheduler1.{name}");
        Step::Say(json!({"error": name, "parameters": about}))
    });
    let daemon = Daemon::with(steps.collect());
    let mut client = daemon.client();
    for (name, _, expected) in cases {
        let error = client.create_spec(&parameters(), None).expect_err("refused");
        assert!(matches!(error, Error::Refused(_)), "{name}: {error:?}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_unknown_error_is_passed_on_unchanged() {
    let unknown = json!({"error": "io.punctual.Scheduler1.Tired", "parameters": {"until": 5}});
    let daemon = Daemon::with(vec![
        Step::Say(unknown),
        Step::Say(json!({"error": "org.varlink.service.PermissionDenied"})),
    ]);
    let error = daemon.client().ping().expect_err("refused").to_string();
    assert!(error.contains("io.punctual.Scheduler1.Tired") && error.contains(r#"{"until":5}"#), "{error}");
}

#[test]
fn the_client_reconnects_to_a_restarted_daemon() {
    let daemon = Daemon::with(vec![done(), Step::Close]);
    let mut client = daemon.client();
    client.ping().expect("there");
    let folder = daemon.socket.parent().expect("a folder").to_owned();
    // The old one goes, as seen by the client: its side of the connection is closed before it is asked again.
    std::fs::remove_file(&daemon.socket).expect("removed");
    let again = folder.join("socket");
    let listener = UnixListener::bind(&again).expect("bound");
    let (sender, asked) = channel();
    thread::spawn(move || serve(&listener, vec![done(), admitted()], &sender));
    client.ping().expect("a question may be asked twice");
    assert_eq!(daemon.asked.iter().take(2).count(), 2, "the old one was asked, and went without an answer");
    client.create_spec(&parameters(), None).expect("admitted by the new one");
    assert_eq!(asked.iter().take(2).count(), 2);
}

#[test]
fn an_unanswered_action_is_not_repeated() {
    let daemon = Daemon::with(vec![done(), Step::Close, done()]);
    let mut client = daemon.client();
    client.ping().expect("there");
    let error = client.create_spec(&parameters(), None).expect_err("no answer");
    assert!(matches!(error, Error::Lost { method: "CreateSpec" }), "{error:?}");
    client.ping().expect("a new connection");
    let asked: Vec<String> = daemon.asked.iter().take(3).map(|asked| asked["method"].to_string()).collect();
    assert_eq!(asked.iter().filter(|method| method.contains("CreateSpec")).count(), 1, "{asked:?}");
}

#[test]
fn a_dead_connection_is_replaced_before_an_action() {
    let daemon = Daemon::with(vec![Step::SayAndClose(json!({})), admitted()]);
    let mut client = daemon.client();
    client.ping().expect("there");
    assert_eq!(daemon.asked.iter().take(2).last(), Some(Value::Null), "it has closed");
    client.create_spec(&parameters(), None).expect("nobody can have read it, so it is asked again");
}

#[test]
fn a_late_reply_is_not_taken_for_the_next_one() {
    let daemon = Daemon::with(vec![Step::Nothing, Step::Say(json!({"parameters": {"specs": []}}))]);
    let limit = Some(std::time::Duration::from_millis(20));
    let mut client = Client::connect_within(&daemon.socket, limit).expect("connected");
    let error = client.ping().expect_err("silence");
    assert!(matches!(error, Error::TimedOut { method: "Ping", .. }), "{error:?}");
    client.set_timeout(None);
    assert_eq!(client.list_specs().expect("another connection").len(), 0);
}

#[test]
fn a_trickle_of_bytes_does_not_extend_the_timeout() {
    let daemon = Daemon::with(vec![Step::Drip]);
    let mut client = Client::connect_within(&daemon.socket, Some(std::time::Duration::from_millis(20)))
        .expect("connected");
    let error = client.ping().expect_err("an answer long after its time");
    assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
}

#[test]
fn the_length_of_replies_is_limited() {
    let many: Vec<Value> = (0..5_000)
        .map(|process| json!({"process": process, "user": 0, "specs": 1, "command": "x".repeat(50)}))
        .collect();
    let long = Step::Say(json!({"parameters": {"clients": many}}));
    let daemon = Daemon::with(vec![long, done(), Step::Write(vec![b' '; 17 << 20])]);
    let mut client = daemon.client();
    assert_eq!(client.list_clients().expect("a long answer").len(), 5_000);
    client.ping().expect("a short one");
    let error = client.ping().expect_err("an endless one");
    assert!(matches!(&error, Error::Protocol(why) if why.contains("16 MiB")), "{error}");
}

#[test]
fn garbage_is_an_error_and_ends_the_connection() {
    let garbage: [&[u8]; 5] = [b"\0", b"{}{}\0", b"\xff\xfe\0", b"{\"parameters\":3}\0", b"{}\0{}\0"];
    let daemon = Daemon::with(garbage.iter().map(|bytes| Step::Write(bytes.to_vec())).collect());
    let mut client = daemon.client();
    for bytes in garbage {
        let error = client.ping().expect_err("garbage");
        assert!(matches!(error, Error::Protocol(_)), "{}: {error:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn without_a_daemon_the_error_names_the_socket() {
    let folder = tempfile::tempdir().expect("a directory");
    let error = Client::connect_to(&folder.path().join("none")).expect_err("nobody there").to_string();
    assert!(error.contains("/none: no such file or directory; start it, or set PUNCTUALD_SOCKET"), "{error}");
    let long = folder.path().join("x".repeat(200));
    assert!(matches!(Client::connect_to(&long), Err(Error::Unreachable { .. })));
    let refusal: Error = Refusal::NoSuchSpec { spec: 1 }.into();
    assert!(std::error::Error::source(&refusal).is_none());
}
