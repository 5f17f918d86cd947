//! Requests that the rules leave to Polkit: polkitd itself on a bus of the test's own, with the actions that
//! are installed and rules of the test's own, in a mount namespace.

use crate::actor::Actor;
use crate::bus::{BUS, start_bus};
use crate::rig::{Daemon, FIFO, PLUGINS, Sleeper, message, seen, spawn_urgently, until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Tests, and the programs that they need.
#[allow(clippy::type_complexity)] // Name, what it needs, and the test.
pub const TESTS: &[(&str, &[&str], fn())] = &[
    ("polkit::its_word_is_enough_and_needed", &[BUS, POLKITD], its_word_is_enough_and_needed),
    ("polkit::limits_hold_whatever_it_says", &[BUS, POLKITD], limits_hold_whatever_it_says),
    ("polkit::changes_are_left_to_it_too", &[BUS, POLKITD], changes_are_left_to_it_too),
    ("polkit::who_is_started_again_begins_later", &[BUS, POLKITD], who_is_started_again_begins_later),
    ("polkit::others_are_served_meanwhile", &[BUS, POLKITD], others_are_served_meanwhile),
    ("polkit::open_questions_are_bounded_and_cancelled", &[BUS, POLKITD], open_questions_are_bounded),
    ("polkit::no_answer_is_a_denial", &[BUS, POLKITD], no_answer_is_a_denial),
    ("polkit::no_polkit_is_a_denial", &[BUS], no_polkit_is_a_denial),
    ("polkit::nobody_asks_without_a_rule", &[], nobody_asks_without_a_rule),
];

const POLKITD: &str = "/usr/lib/polkit-1/polkitd";
const POLICY: &str = "/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf";
const ACTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/io.punctual.scheduler1.policy");

/// What a spec is called says what becomes of it, if all that the daemon tells is right.
const POLKIT_RULES: &str = r#"
polkit.addRule(function(action, subject) {
  if (action.id.indexOf("io.punctual.scheduler1.") != 0) return polkit.Result.NOT_HANDLED;
  if (subject.user != "nobody" || action.lookup("plugin") != "FP") return polkit.Result.NO;
  if (action.lookup("spec")) return action.lookup("priority") == "9" ? polkit.Result.YES : polkit.Result.NO;
  if (action.lookup("name") == "again") return polkit.Result.YES;
  if (action.lookup("runtime_ns") != "1000000" || action.lookup("period_ns") != "10000000")
    return polkit.Result.NO;
  switch (action.lookup("name")) {
    case "yes": return polkit.Result.YES;
    case "ask": return polkit.Result.AUTH_ADMIN;
    default: return polkit.Result.NO;
  }
});
"#;

const NOBODY: u32 = 65534;
const LEFT: &str = "nobody FP max_priority 10 polkit\n";

/// A daemon on a bus, and polkitd if there is one.
struct Rig {
    daemon: Daemon,
    bus: Child,
    polkitd: Option<Child>,
}

impl Rig {
    fn start(rules: &str) -> Rig {
        let mut rig = Rig::without_polkit(rules);
        let folder = rig.daemon.path("rules.d");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("00-punctual.rules"), POLKIT_RULES).unwrap();
        let actions = rig.daemon.path("actions");
        fs::create_dir(&actions).unwrap();
        fs::copy(ACTIONS, actions.join("io.punctual.scheduler1.policy")).unwrap();
        // What stands in /usr/share decides nothing here, as these rules come first.
        let script = "mount --make-rprivate / && mount --bind \"$1\" /usr/share/polkit-1/actions && \
                      mount --bind \"$2\" /etc/polkit-1/rules.d && exec \"$3\" --no-debug";
        let mut polkitd = Command::new("unshare");
        polkitd.args(["--mount", "sh", "-c", script, "polkitd"]).args([&actions, &folder]).arg(POLKITD);
        polkitd.env("DBUS_SYSTEM_BUS_ADDRESS", address(&rig.daemon));
        // The daemon waits 4 s for its word.
        rig.polkitd = Some(spawn_urgently(polkitd.stdin(Stdio::null()).stdout(Stdio::null())));
        rig.wait_for_polkit();
        rig
    }

    fn without_polkit(rules: &str) -> Rig {
        let mut daemon = Daemon::with_rules(PLUGINS, rules);
        assert!(daemon.stop().success());
        let bus = start_bus(&daemon, Path::new(POLICY));
        daemon.set("DBUS_SYSTEM_BUS_ADDRESS", address(&daemon));
        daemon.run();
        Rig { daemon, bus, polkitd: None }
    }

    /// Waits until polkitd answers.
    fn wait_for_polkit(&self) {
        let mut client = self.client();
        until("polkitd", || {
            let reply = client.call("CreateSpec", wish("no", 10));
            !denied(&reply).0.contains("not on the system bus")
        });
    }

    fn client(&self) -> Actor {
        Actor::as_user(NOBODY, &self.daemon.socket())
    }

    /// Stops polkitd, or lets it go on.
    fn signal(&self, signal: i32) {
        let number = self.polkitd.as_ref().unwrap().id();
        // SAFETY: no memory is involved; the number is that of a child that was not waited for.
        assert_eq!(unsafe { libc::kill(number as i32, signal) }, 0);
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for child in self.polkitd.iter_mut().chain([&mut self.bus]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn address(daemon: &Daemon) -> String {
    format!("unix:path={}", daemon.path("bus").display())
}

fn wish(name: &str, priority: u32) -> Value {
    let parameters = json!({
        "plugin": "FP", "priority": priority, "runtime_ns": 1_000_000, "period_ns": 10_000_000
    });
    json!({ "parameters": parameters, "name": name })
}

/// Why something was not permitted, and by which line.
#[track_caller]
fn denied(reply: &Value) -> (String, String) {
    assert_eq!(reply["error"], json!("io.punctual.Scheduler1.NotPermitted"), "{reply}");
    let text = |key: &str| reply["parameters"][key].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("rule"))
}

fn its_word_is_enough_and_needed() {
    let rig = Rig::start(LEFT);
    let mut client = rig.client();
    let spec = client.ask("CreateSpec", wish("yes", 10))["admission"]["spec"].clone();
    let thread: u32 = client.tell("thread").parse().unwrap();
    client.ask("AttachThread", json!({ "spec": spec, "thread": thread }));
    assert_eq!(seen(thread).0, FIFO);
    let (reason, rule) = denied(&client.call("CreateSpec", wish("no", 10)));
    assert_eq!(reason, "Polkit does not authorise io.punctual.scheduler1.create");
    assert!(rule.ends_with("rules.conf:1: nobody FP max_priority 10 polkit"), "{rule}");
    let (reason, _) = denied(&client.call("CreateSpec", wish("ask", 10)));
    assert!(reason.contains("the request does not allow to ask"), "{reason}");
    let mut interactive = wish("ask", 10);
    interactive["interactive"] = json!(true);
    let (reason, _) = denied(&client.call("CreateSpec", interactive));
    assert!(reason.contains("there is no agent"), "{reason}");
    // Somebody else, of whom no rule says anything.
    let (reason, rule) = denied(&Actor::as_user(1, &rig.daemon.socket()).call("CreateSpec", wish("yes", 10)));
    assert_eq!((reason.as_str(), rule.as_str()), ("no rule allows user 1 plugin 'FP'", ""));
    assert_eq!(client.ask("Count", json!({}))["specs"], json!(1));
}

fn limits_hold_whatever_it_says() {
    let rig = Rig::start(&format!("{LEFT}nobody - max_utilization 0.25 polkit\n"));
    let mut client = rig.client();
    let (reason, rule) = denied(&client.call("CreateSpec", wish("yes", 11)));
    assert!(reason.contains("no rule allows") && rule.is_empty(), "{reason} {rule}");
    client.ask("CreateSpec", wish("yes", 10));
    client.ask("CreateSpec", wish("yes", 10));
    let (reason, _) = denied(&client.call("CreateSpec", wish("yes", 10)));
    assert!(reason.contains("no rule allows"), "a tenth each: {reason}");
    // Both were within the limit when they were asked about, and the first has it now.
    client.ask("ReleaseSpec", json!({ "spec": 1 }));
    rig.signal(libc::SIGSTOP);
    let mut other = rig.client();
    for client in [&mut client, &mut other] {
        assert_eq!(client.tell(&format!("send {}", call(wish("yes", 10)))), "sent");
    }
    // The daemon has asked about both when it has taken what came later.
    let mut root = rig.daemon.connect();
    (0..2).for_each(|_| _ = root.ask("Ping", json!({})));
    rig.signal(libc::SIGCONT);
    // The answer to what was sent comes first.
    let mut replies = [&mut client, &mut other].map(|client| client.call("Ping", json!({})));
    replies.sort_by_key(|reply| reply.get("error").is_some());
    assert!(replies[0].get("error").is_none(), "{replies:?}");
    let (reason, _) = denied(&replies[1]);
    assert!(reason.contains("max_utilization of this user is 0.25"), "{reason}");
}

/// A message without its NUL.
fn call(parameters: Value) -> String {
    let mut bytes = message("CreateSpec", parameters);
    bytes.pop();
    String::from_utf8(bytes).unwrap()
}

fn changes_are_left_to_it_too() {
    let mut rig = Rig::start(&format!("nobody FP max_priority 5\n{LEFT}"));
    let mut client = rig.client();
    let spec = client.ask("CreateSpec", wish("no", 5))["admission"]["spec"].clone();
    let change = |priority| json!({ "spec": spec, "parameters": wish("", priority)["parameters"] });
    let (reason, _) = denied(&client.call("ChangeSpec", change(8)));
    assert_eq!(reason, "Polkit does not authorise io.punctual.scheduler1.change");
    client.ask("ChangeSpec", change(9));
    let shown = |client: &mut Actor| {
        client.ask("GetSpec", json!({ "spec": spec }))["spec"]["parameters"]["priority"].clone()
    };
    assert_eq!(shown(&mut client), json!(9));
    // What was admitted stays so.
    rig.daemon.kill();
    rig.daemon.run();
    client.tell(&format!("connect {}", rig.daemon.socket().display()));
    assert_eq!(shown(&mut client), json!(9));
}

/// What has ended, and has used its budget, is in the way of a request for which Polkit's word is needed as
/// little as of others.
fn who_is_started_again_begins_later() {
    let rig = Rig::start("nobody FP max_utilization 0.06\nnobody FP max_utilization 0.12 polkit\n");
    let mut client = rig.client();
    let with = |runtime_ms: u64, priority: u32| {
        let (runtime, period) = (runtime_ms * 1_000_000, 2_000_000_000u64);
        json!({ "plugin": "FP", "priority": priority, "runtime_ns": runtime, "period_ns": period })
    };
    // A hundredth, for which its word is not needed, and a tenth.
    let small = client.ask("CreateSpec", json!({ "parameters": with(20, 10) }))["admission"]["spec"].clone();
    let again = json!({ "parameters": with(200, 10), "name": "again" });
    let thread: u32 = client.tell("periodic 95 100000").parse().unwrap();
    for round in 0..3 {
        let admission = client.ask("CreateSpec", again.clone())["admission"].clone();
        let begins = admission["begins_in_ns"].as_u64();
        assert_eq!(begins.is_some(), round > 0, "{round}: {admission}");
        let spec = admission["spec"].clone();
        client.ask("AttachThread", json!({ "spec": spec, "thread": thread }));
        until("its budget", || seen(thread).0 == FIFO);
        until("its demotion", || seen(thread).0 != FIFO);
        client.ask("ReleaseSpec", json!({ "spec": spec }));
    }
    // A change, too.
    client.ask("ChangeSpec", json!({ "spec": small, "parameters": with(200, 9) }));
    let shown = client.ask("GetSpec", json!({ "spec": small }))["spec"].clone();
    assert!(shown["admission"]["begins_in_ns"].is_u64(), "{shown}");
}

fn others_are_served_meanwhile() {
    let rig = Rig::start(LEFT);
    let mut client = rig.client();
    rig.signal(libc::SIGSTOP);
    client.begin(&format!("send {}", call(wish("yes", 10))));
    assert_eq!(client.answer(), "sent");
    client.begin("send {\"method\":\"io.punctual.Scheduler1.Count\"}");
    assert_eq!(client.answer(), "sent");
    let sleeper = Sleeper::start();
    let mut root = rig.daemon.connect();
    for _ in 0..100 {
        root.ask("Ping", json!({}));
    }
    root.schedule(json!({ "plugin": "FP", "priority": 7 }), sleeper.tid());
    assert_eq!(root.ask("GetStatus", json!({}))["specs"], json!(1), "the other one waits");
    rig.signal(libc::SIGCONT);
    // What came meanwhile is answered afterwards.
    let first = client.call("Ping", json!({}));
    assert_eq!(first["parameters"]["admission"]["plugin"], json!("FP"), "{first}");
    assert_eq!(client.call("Ping", json!({}))["parameters"]["specs"], json!(1));
    assert_eq!(client.call("Ping", json!({}))["parameters"], json!({}));
}

fn open_questions_are_bounded() {
    let rig = Rig::start(LEFT);
    rig.signal(libc::SIGSTOP);
    let mut clients: Vec<Actor> = (0..4).map(|_| rig.client()).collect();
    for client in &mut clients {
        assert_eq!(client.tell(&format!("send {}", call(wish("yes", 10)))), "sent");
    }
    let mut more = rig.client();
    until("the bound", || more.fail("CreateSpec", wish("yes", 10)) == "TooMany");
    // Who goes away asks nothing any more.
    drop(clients);
    let mut root = rig.daemon.connect();
    until("their end", || root.ask("GetStatus", json!({}))["clients"] == json!(2));
    assert_eq!(more.tell(&format!("send {}", call(wish("yes", 10)))), "sent");
    rig.signal(libc::SIGCONT);
    let reply = more.call("Ping", json!({}));
    assert!(reply.get("error").is_none(), "{reply}");
    assert_eq!(root.ask("GetStatus", json!({}))["specs"], json!(1), "and no other");
}

fn no_answer_is_a_denial() {
    let rig = Rig::start(LEFT);
    rig.signal(libc::SIGSTOP);
    let (reason, _) = denied(&rig.client().call("CreateSpec", wish("yes", 10)));
    assert_eq!(reason, "Polkit has not answered within 4 s");
    rig.signal(libc::SIGCONT);
    rig.client().ask("CreateSpec", wish("yes", 10));
}

fn no_polkit_is_a_denial() {
    let mut rig = Rig::without_polkit(LEFT);
    let (reason, rule) = denied(&rig.client().call("CreateSpec", wish("yes", 10)));
    assert!(reason.contains("Polkit is not on the system bus") && rule.contains("polkit"), "{reason}");
    rig.bus.kill().unwrap();
    rig.bus.wait().unwrap();
    let (reason, _) = denied(&rig.client().call("CreateSpec", wish("yes", 10)));
    assert!(reason.contains("Polkit cannot be asked"), "{reason}");
    // Root needs nobody's word.
    rig.daemon.connect().create(json!({ "plugin": "FP", "priority": 10 }));
}

fn nobody_asks_without_a_rule() {
    let mut daemon = Daemon::with_rules(PLUGINS, "nobody FP max_priority 5\n");
    assert!(daemon.stop().success());
    // Whoever asks connects here.
    let bus = std::os::unix::net::UnixListener::bind(daemon.path("bus")).unwrap();
    bus.set_nonblocking(true).unwrap();
    daemon.set("DBUS_SYSTEM_BUS_ADDRESS", address(&daemon));
    daemon.run();
    let mut client = Actor::as_user(NOBODY, &daemon.socket());
    let (reason, _) = denied(&client.call("CreateSpec", wish("yes", 10)));
    assert!(reason.contains("max_priority is 5"), "{reason}");
    assert_eq!(bus.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // With one, it does; and this bus never answers.
    daemon.write("rules.conf", &format!("nobody FP max_priority 5\n{LEFT}"));
    daemon.reload(PLUGINS);
    let (reason, _) = denied(&client.call("CreateSpec", wish("yes", 10)));
    assert!(reason.contains("has not answered"), "{reason}");
    assert!(bus.accept().is_ok());
}
