//! Who may do what: specs and threads of users, of processes, of other namespaces.

use crate::actor::Actor;
use crate::rig::{Daemon, FIFO, OTHER, PLUGINS, Sleeper, seen, until};
use serde_json::json;

pub const TESTS: &[(&str, fn())] = &[
    ("owners::nothing_is_allowed_without_a_rule", nothing_is_allowed_without_a_rule),
    ("owners::specs_are_their_users", specs_are_their_users),
    ("owners::use_is_reported_by_owners_and_root", use_is_reported_by_owners_and_root),
    ("owners::observers_see_and_tell_and_change_nothing", observers_see_and_tell_and_change_nothing),
    ("owners::threads_are_their_users", threads_are_their_users),
    ("owners::a_user_may_use_what_rules_allow_and_no_more", a_user_may_use_what_rules_allow_and_no_more),
    ("owners::one_thread_one_spec", one_thread_one_spec),
    (
        "owners::a_child_speaks_for_its_parent_while_that_lives",
        a_child_speaks_for_its_parent_while_that_lives,
    ),
    ("owners::threads_of_other_namespaces_are_translated", threads_of_other_namespaces_are_translated),
];

fn nothing_is_allowed_without_a_rule() {
    let daemon = Daemon::with_rules(PLUGINS, "");
    let mut user = Actor::as_user(4001, &daemon.socket());
    let reply = user.call("CreateSpec", json!({ "parameters": { "priority": 1 } }));
    assert_eq!(reply["error"], json!("io.punctual.Scheduler1.NotPermitted"));
    assert_eq!(reply["parameters"].get("rule").unwrap_or(&json!(null)), &json!(null));
    daemon.connect().create(json!({ "priority": 1 }));
    assert_eq!(user.ask("ListSpecs", json!({}))["specs"], json!([]));
}

fn specs_are_their_users() {
    let daemon = Daemon::start(PLUGINS);
    let (mut one, mut two, mut root) =
        (Actor::as_user(4001, &daemon.socket()), Actor::as_user(4002, &daemon.socket()), daemon.connect());
    let spec = one.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }))["admission"]["spec"]
        .as_u64()
        .unwrap();
    let mine = || json!({ "spec": spec });
    for method in ["ReleaseSpec", "DetachThread", "GetSpec"] {
        assert_eq!(two.fail(method, mine()), "NotOwner", "{method}");
    }
    assert_eq!(two.fail("ChangeSpec", json!({ "spec": spec, "parameters": { "priority": 2 } })), "NotOwner");
    assert_eq!(two.fail("AttachThread", json!({ "spec": spec, "thread": two.pid() })), "NotOwner");
    assert_eq!(two.ask("ListSpecs", json!({}))["specs"], json!([]));
    assert_eq!(two.ask("Count", json!({})), json!({ "specs": 0, "plugins": 2, "clients": 1 }));
    assert_eq!(one.ask("Count", json!({})), json!({ "specs": 1, "plugins": 2, "clients": 1 }));
    assert_eq!(root.ask("Count", json!({})), json!({ "specs": 1, "plugins": 2, "clients": 3 }));
    assert_eq!(two.ask("ListClients", json!({}))["clients"].as_array().unwrap().len(), 1);
    assert_eq!(root.ask("GetSpec", mine())["spec"]["user"], json!(4001));
    assert_eq!(root.ask("ListClients", json!({}))["clients"].as_array().unwrap().len(), 3);
    // Another process of the same user may.
    let mut again = Actor::as_user(4001, &daemon.socket());
    again.ask("ChangeSpec", json!({ "spec": spec, "parameters": { "priority": 3 } }));
    assert_eq!(root.ask("GetSpec", mine())["spec"]["parameters"], json!({ "priority": 3 }));
    root.ask("ReleaseSpec", mine());
    assert_eq!(one.fail("GetSpec", mine()), "NoSuchSpec");
}

/// What a thread took is told by its spec's owner and root; others have nothing to say about it.
fn use_is_reported_by_owners_and_root() {
    let daemon = Daemon::start(PLUGINS);
    let (mut one, mut two, mut root) =
        (Actor::as_user(4001, &daemon.socket()), Actor::as_user(4002, &daemon.socket()), daemon.connect());
    let spec = one.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }))["admission"]["spec"].clone();
    let used = |jobs: u64| json!({ "jobs": jobs, "worst_cost_ns": 7 * jobs, "overruns": 1 });
    let report = |thread: u32, jobs| json!({ "spec": spec, "thread": thread, "used": used(jobs) });
    let (mine, foreign) = (one.pid(), two.pid());
    assert_eq!(one.fail("ReportUse", report(mine, 3)), "NotAttached", "no thread yet");
    one.ask("AttachThread", json!({ "spec": spec, "thread": mine }));
    assert_eq!(two.fail("ReportUse", report(mine, 3)), "NotOwner");
    assert_eq!(one.fail("ReportUse", report(foreign, 3)), "NotAttached", "another thread");
    assert_eq!(root.fail("ReportUse", report(foreign, 3)).0, "NotAttached");
    let mut told = || root.ask("GetSpec", json!({ "spec": spec }))["spec"]["used"].clone();
    assert_eq!(told(), json!(null));
    one.ask("ReportUse", report(mine, 3));
    assert_eq!(told(), used(3));
    let mut watcher = daemon.connect();
    watcher.ask("ReportUse", report(mine, 2));
    assert_eq!(told(), used(2), "the latest report counts");
    // Whatever is told decides nothing, and a new attachment begins anew.
    let more = json!({ "spec": spec, "thread": mine, "used": { "jobs": 1, "worst_cost_ns": 1 } });
    assert_eq!(one.fail("ReportUse", more), "InvalidParameter");
    one.ask("DetachThread", json!({ "spec": spec }));
    one.ask("AttachThread", json!({ "spec": spec, "thread": mine }));
    assert_eq!(told(), json!(null));
}

/// The rule for `punctual watch`: all specs of a plugin, and nothing but what their threads took.
fn observers_see_and_tell_and_change_nothing() {
    const RULES: &str = "4001 - max_priority 99\n4003 FP observe true\n4004 RM observe true\n\
                         4005 - observe true\n- - observe false\n";
    let daemon = Daemon::with_rules(PLUGINS, &RULES.replace("- - observe false\n", ""));
    let mut owner = Actor::as_user(4001, &daemon.socket());
    let asks = json!({ "parameters": { "priority": 1, "plugin": "FP" } });
    let spec = owner.ask("CreateSpec", asks.clone())["admission"]["spec"].clone();
    let mine = owner.pid();
    owner.ask("AttachThread", json!({ "spec": spec, "thread": mine }));
    let used = json!({ "jobs": 3, "worst_cost_ns": 7, "overruns": 0 });
    let report = json!({ "spec": spec, "thread": mine, "used": used });
    let listed = |who: &mut Actor| who.ask("ListSpecs", json!({}))["specs"].as_array().unwrap().len();
    let mut observer = Actor::as_user(4003, &daemon.socket());
    assert_eq!(listed(&mut observer), 1);
    observer.ask("ReportUse", report.clone());
    assert_eq!(owner.ask("GetSpec", json!({ "spec": spec }))["spec"]["used"], used);
    for method in ["ReleaseSpec", "DetachThread"] {
        assert_eq!(observer.fail(method, json!({ "spec": spec })), "NotOwner", "{method}");
    }
    assert_eq!(observer.fail("CreateSpec", asks), "NotPermitted", "it opens no door");
    // The rule is about another plugin.
    let mut other = Actor::as_user(4004, &daemon.socket());
    assert_eq!((listed(&mut other), other.fail("ReportUse", report.clone()).as_str()), (0, "NotOwner"));
    // All rules that match have to say so.
    let mut any = Actor::as_user(4005, &daemon.socket());
    assert_eq!(listed(&mut any), 1);
    daemon.write("rules.conf", RULES);
    daemon.reload(PLUGINS);
    assert_eq!((listed(&mut any), any.fail("ReportUse", report).as_str()), (0, "NotOwner"));
}

fn threads_are_their_users() {
    let daemon = Daemon::start(PLUGINS);
    let mut user = Actor::as_user(4001, &daemon.socket());
    let spec = user.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }))["admission"]["spec"]
        .as_u64()
        .unwrap();
    let of_root = Sleeper::start();
    assert_eq!(user.fail("AttachThread", json!({ "spec": spec, "thread": of_root.tid() })), "NotOwner");
    assert_eq!(user.fail("AttachThread", json!({ "spec": spec, "thread": 1 })), "NotOwner");
    // A program that became somebody else by its file's owner has another effective user than real one; both
    // have to be the user.
    for (real, effective) in [(4001, 0), (0, 4001), (4001, 4002)] {
        let mut mixed = Actor::start();
        assert_eq!(mixed.tell(&format!("become {real} {effective}")), "true");
        assert_eq!(
            user.fail("AttachThread", json!({ "spec": spec, "thread": mixed.pid() })),
            "NotOwner",
            "{real} {effective}"
        );
        assert_eq!(seen(mixed.pid()).0, OTHER);
    }
    assert_eq!(seen(of_root.tid()).0, OTHER);
    // Root may, also for others.
    let mut root = daemon.connect();
    root.ask("AttachThread", json!({ "spec": spec, "thread": of_root.tid() }));
    assert_eq!(seen(of_root.tid()).0, FIFO);
    user.ask("DetachThread", json!({ "spec": spec }));
    assert_eq!(seen(of_root.tid()).0, OTHER);
    let pid = user.pid();
    user.ask("AttachThread", json!({ "spec": spec, "thread": pid }));
    assert_eq!(seen(pid).0, FIFO);
}

fn a_user_may_use_what_rules_allow_and_no_more() {
    let daemon = Daemon::with_rules(
        PLUGINS,
        "#4001 RM max_utilization 0.5\n#4001 RM max_runtime 4000\n".replace('#', "").as_str(),
    );
    let mut user = Actor::as_user(4001, &daemon.socket());
    let create =
        |runtime: u64| json!({ "parameters": { "runtime_ns": runtime * 1000, "period_ns": 10_000_000 } });
    assert_eq!(user.fail("CreateSpec", create(4_001)), "NotPermitted");
    let spec = user.ask("CreateSpec", create(4_000))["admission"]["spec"].clone();
    assert_eq!(user.fail("CreateSpec", create(1_001)), "NotPermitted");
    user.ask("CreateSpec", create(1_000));
    // A change counts the old as gone.
    user.ask("ChangeSpec", json!({ "spec": spec, "parameters": create(3_900)["parameters"] }));
    assert_eq!(
        user.fail("ChangeSpec", json!({ "spec": spec, "parameters": create(4_001)["parameters"] })),
        "NotPermitted"
    );
    user.ask("CreateSpec", create(100));
    assert_eq!(user.fail("CreateSpec", create(1)), "NotPermitted");
    user.ask("ReleaseSpec", json!({ "spec": spec }));
    user.ask("CreateSpec", create(3_900));
    assert_eq!(
        user.fail("CreateSpec", json!({ "parameters": { "priority": 5, "plugin": "FP" } })),
        "NotPermitted"
    );
}

fn one_thread_one_spec() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    let thread: u32 = actor.tell("thread").parse().unwrap();
    let (one, two) =
        (client.schedule(json!({ "priority": 3 }), thread), client.create(json!({ "priority": 4 })));
    let attach = |spec: u64, thread: u32| json!({ "spec": spec, "thread": thread });
    assert_eq!(
        client.fail("AttachThread", attach(one, actor.pid())),
        ("AlreadyAttached".into(), json!({ "spec": one, "thread": thread }))
    );
    assert_eq!(
        client.fail("AttachThread", attach(two, thread)),
        ("AlreadyAttached".into(), json!({ "spec": one, "thread": thread }))
    );
    // When the thread ends, the spec stays and can have another one.
    actor.tell(&format!("end {thread}"));
    until("the end of the thread", || client.ask("GetStatus", json!({}))["attached"] == json!(0));
    assert!(client.ask("GetSpec", json!({ "spec": one }))["spec"].get("thread").is_none());
    client.ask("AttachThread", attach(one, actor.pid()));
    assert_eq!(seen(actor.pid()).0, FIFO);
}

fn a_child_speaks_for_its_parent_while_that_lives() {
    let daemon = Daemon::start(PLUGINS);
    let mut actor = Actor::start();
    actor.tell(&format!("connect {}", daemon.socket().display()));
    let parent = actor.pid();
    actor.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }));
    let mut root = daemon.connect();
    assert_eq!(root.ask("ListSpecs", json!({}))["specs"][0]["process"], json!(parent));
    // The parent ends in it.
    assert_eq!(actor.tell("fork"), "child");
    actor.wait();
    until("the end of the parent's specs", || root.ask("GetStatus", json!({}))["specs"] == json!(0));
    assert_eq!(actor.fail("CreateSpec", json!({ "parameters": { "priority": 1 } })), "NotPermitted");
    assert_eq!(root.ask("ListClients", json!({}))["clients"].as_array().unwrap().len(), 1);
    // By itself it may.
    actor.tell(&format!("connect {}", daemon.socket().display()));
    actor.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }));
}

fn threads_of_other_namespaces_are_translated() {
    let daemon = Daemon::start(PLUGINS);
    let mut actor = Actor::in_namespace();
    actor.tell(&format!("connect {}", daemon.socket().display()));
    let theirs: u32 = actor.tell("thread").parse().unwrap();
    assert!(theirs < 100, "it is in a namespace of its own");
    let spec = actor.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }))["admission"]["spec"]
        .as_u64()
        .unwrap();
    actor.ask("AttachThread", json!({ "spec": spec, "thread": theirs }));
    let mut root = daemon.connect();
    let process = root.ask("GetSpec", json!({ "spec": spec }))["spec"]["process"].as_u64().unwrap();
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let policies: Vec<u32> = threads
        .map(|thread| seen(thread.unwrap().file_name().to_str().unwrap().parse().unwrap()).0)
        .collect();
    assert_eq!(policies, [OTHER, FIFO]);
    assert_eq!(actor.ask("GetSpec", json!({ "spec": spec }))["spec"]["thread"], json!(theirs));
    let other =
        actor.ask("CreateSpec", json!({ "parameters": { "priority": 1 } }))["admission"]["spec"].clone();
    // What is there outside is not there inside.
    let outside = std::process::id();
    actor.call("AttachThread", json!({ "spec": other, "thread": outside }))["error"]
        .as_str()
        .expect("an error");
    assert_eq!(seen(outside).0, OTHER);
}
