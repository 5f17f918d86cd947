//! Whatever ends, threads and kernel settings are as they should be.

use crate::actor::Actor;
use crate::rig::{DEADLINE, Daemon, FIFO, OTHER, PLUGINS, Sleeper, WITH_EDF, rt_runtime, seen, until};
use punctual_linux::scheduling::{self, Scheduling};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

pub const TESTS: &[(&str, fn())] = &[
    ("undo::detaching_and_releasing_put_threads_back", detaching_and_releasing_put_threads_back),
    ("undo::what_a_thread_was_before_is_what_it_is_after", what_a_thread_was_before_is_what_it_is_after),
    ("undo::who_was_changed_by_somebody_else_is_left_so", who_was_changed_by_somebody_else_is_left_so),
    ("undo::children_of_threads_are_ordinary", children_of_threads_are_ordinary),
    ("undo::an_exec_by_another_thread_takes_nothing_along", an_exec_by_another_thread_takes_nothing_along),
    ("undo::a_client_that_ends_is_undone", a_client_that_ends_is_undone),
    ("undo::a_clean_stop_undoes_all", a_clean_stop_undoes_all),
    ("undo::plugins_that_go_release_theirs", plugins_that_go_release_theirs),
    ("undo::a_bad_configuration_changes_nothing", a_bad_configuration_changes_nothing),
    ("undo::a_refused_change_leaves_all_as_it_was", a_refused_change_leaves_all_as_it_was),
    ("undo::changes_never_unschedule", changes_never_unschedule),
    ("undo::priorities_follow_periods", priorities_follow_periods),
];

pub const ALONE: &[(&str, fn())] = &[
    ("undo::the_limit_is_lifted_for_edf_and_restored", the_limit_is_lifted_for_edf_and_restored),
    ("undo::the_limit_comes_back_when_the_kernel_lets_it", the_limit_comes_back_when_the_kernel_lets_it),
    ("undo::where_the_limit_must_stay_edf_is_refused", where_the_limit_must_stay_edf_is_refused),
    ("undo::a_deadline_thread_of_before_is_one_after", a_deadline_thread_of_before_is_one_after),
];

fn detaching_and_releasing_put_threads_back() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let before = seen(sleeper.tid());
    let spec = client.schedule(json!({ "priority": 30 }), sleeper.tid());
    assert_eq!(seen(sleeper.tid()), (FIFO, 30, before.2, "0".into()));
    client.ask("DetachThread", json!({ "spec": spec }));
    assert_eq!(seen(sleeper.tid()), before);
    client.ask("AttachThread", json!({ "spec": spec, "thread": sleeper.tid() }));
    assert_eq!(seen(sleeper.tid()).0, FIFO);
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(seen(sleeper.tid()), before);
    drop(client);
    daemon.assert_empty();
}

fn what_a_thread_was_before_is_what_it_is_after() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let tid = sleeper.tid();
    let processors =
        scheduling::Processors::one(1).unwrap_or_else(|| scheduling::Processors::one(0).unwrap());
    let mut states = vec![
        Scheduling::from_policy(punctual_schedule::AssignedPolicy::Fifo(7)),
        Scheduling::from_policy(punctual_schedule::AssignedPolicy::RoundRobin(8)),
    ];
    for (policy, nice, flags) in
        [(libc::SCHED_OTHER, -7, 0), (libc::SCHED_BATCH, 5, 1), (libc::SCHED_IDLE, 0, 0)]
    {
        let mut state = Scheduling::ordinary();
        (state.policy, state.nice, state.flags) = (policy as u32, nice, flags);
        states.push(state);
    }
    for state in states {
        scheduling::schedule(tid, &state).unwrap();
        let _ = scheduling::pin(tid, &processors);
        let before = (scheduling::scheduling(tid).unwrap(), seen(tid));
        let spec = client.schedule(json!({ "priority": 30 }), tid);
        assert_eq!(seen(tid).0, FIFO);
        client.ask("ReleaseSpec", json!({ "spec": spec }));
        assert_eq!((scheduling::scheduling(tid).unwrap(), seen(tid)), before);
    }
}

fn who_was_changed_by_somebody_else_is_left_so() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let spec = client.schedule(json!({ "priority": 30 }), sleeper.tid());
    scheduling::schedule(
        sleeper.tid(),
        &Scheduling::from_policy(punctual_schedule::AssignedPolicy::RoundRobin(3)),
    )
    .unwrap();
    let now = seen(sleeper.tid());
    client.ask("ChangeSpec", json!({ "spec": spec, "parameters": { "priority": 31 } }));
    assert_eq!(seen(sleeper.tid()), now);
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    // The processors were still the daemon's.
    assert_eq!((seen(sleeper.tid()).0, seen(sleeper.tid()).1), (now.0, now.1));
    assert_eq!(seen(sleeper.tid()).3, seen(std::process::id()).3);
}

fn children_of_threads_are_ordinary() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    client.schedule(json!({ "priority": 30 }), actor.pid());
    let child: u32 = actor.tell("thread").parse().unwrap();
    assert_eq!((seen(actor.pid()).0, seen(child).0), (FIFO, OTHER));
}

fn an_exec_by_another_thread_takes_nothing_along() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    let before = seen(actor.pid());
    let thread: u32 = actor.tell("thread").parse().unwrap();
    let spec = client.schedule(json!({ "priority": 30 }), thread);
    actor.tell(&format!("exec {thread}"));
    // While the thread becomes the first one, the kernel may find neither.
    let runs_sleep =
        |pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    until("the exec", || runs_sleep(actor.pid()));
    until("the end of the thread", || client.ask("GetStatus", json!({}))["attached"] == json!(0));
    assert_eq!(seen(actor.pid()), before);
    client.ask("AttachThread", json!({ "spec": spec, "thread": actor.pid() }));
    // The first's own spec holds for it.
    let mut actor = Actor::start();
    let thread: u32 = actor.tell("thread").parse().unwrap();
    client.schedule(json!({ "priority": 31 }), thread);
    let own = client.schedule(json!({ "priority": 35 }), actor.pid());
    actor.tell(&format!("exec {thread}"));
    until("the exec", || runs_sleep(actor.pid()));
    until("the end of the thread", || client.ask("GetStatus", json!({}))["attached"] == json!(2));
    assert_eq!((seen(actor.pid()).0, seen(actor.pid()).1), (FIFO, 35));
    client.ask("ReleaseSpec", json!({ "spec": own }));
    assert_eq!(seen(actor.pid()), before);
}

fn a_client_that_ends_is_undone() {
    let daemon = Daemon::start(PLUGINS);
    let sleeper = Sleeper::start();
    let before = seen(sleeper.tid());
    let mut actor = Actor::start();
    actor.tell(&format!("connect {}", daemon.socket().display()));
    let spec =
        actor.ask("CreateSpec", json!({ "parameters": { "priority": 30 } }))["admission"]["spec"].clone();
    actor.ask("AttachThread", json!({ "spec": spec, "thread": sleeper.tid() }));
    assert_eq!(seen(sleeper.tid()).0, FIFO);
    // Its connection may go, its specs stay as long as it lives.
    actor.tell(&format!("connect {}", daemon.socket().display()));
    actor.ask("Ping", json!({}));
    assert_eq!(seen(sleeper.tid()).0, FIFO);
    actor.kill();
    until("the thread's undoing", || seen(sleeper.tid()) == before);
    daemon.assert_empty();
}

fn a_clean_stop_undoes_all() {
    let mut daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleepers: Vec<Sleeper> = (0..10).map(|_| Sleeper::start()).collect();
    let before: Vec<_> = sleepers.iter().map(|sleeper| seen(sleeper.tid())).collect();
    for (at, sleeper) in sleepers.iter().enumerate() {
        client.schedule(json!({ "period_ns": 10_000_000 + at, "runtime_ns": 100_000 }), sleeper.tid());
    }
    assert!(sleepers.iter().all(|sleeper| seen(sleeper.tid()).0 == FIFO));
    assert!(daemon.stop().success());
    assert_eq!(before, sleepers.iter().map(|sleeper| seen(sleeper.tid())).collect::<Vec<_>>());
    assert!(!daemon.socket().exists());
    assert_eq!(client.receive(), None);
    daemon.run();
    daemon.assert_empty();
}

fn plugins_that_go_release_theirs() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let (goes, stays, moves) = (Sleeper::start(), Sleeper::start(), Sleeper::start());
    let before = seen(goes.tid());
    client.schedule(json!({ "priority": 30 }), goes.tid());
    let kept = client.schedule(json!({ "period_ns": 10_000_000, "runtime_ns": 100_000 }), stays.tid());
    client.schedule(json!({ "period_ns": 20_000_000, "runtime_ns": 100_000 }), moves.tid());
    let as_before = seen(stays.tid());
    let (first, _) = PLUGINS.split_once("[[plugin]]\nname = \"FP\"").unwrap();
    daemon.reload(first);
    assert_eq!(seen(goes.tid()), before);
    assert_eq!(seen(stays.tid()), as_before);
    assert_eq!(client.ask("ListPlugins", json!({}))["plugins"].as_array().unwrap().len(), 1);
    assert_eq!(client.ask("GetStatus", json!({}))["specs"], json!(2));
    // Another range of priorities: they are told anew.
    daemon.reload(&first.replace("[1, 20]", "[50, 60]"));
    assert_eq!(seen(stays.tid()).0, FIFO);
    assert!(
        (50..=60).contains(&seen(stays.tid()).1) && seen(stays.tid()).1 > seen(moves.tid()).1,
        "{:?} {:?}",
        seen(stays.tid()),
        seen(moves.tid())
    );
    client.ask(
        "ChangeSpec",
        json!({ "spec": kept, "parameters": { "period_ns": 30_000_000, "runtime_ns": 100_000 } }),
    );
    assert!(seen(stays.tid()).1 < seen(moves.tid()).1);
}

fn a_bad_configuration_changes_nothing() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    client.schedule(json!({ "priority": 30 }), sleeper.tid());
    let before = (seen(sleeper.tid()), client.ask("ListPlugins", json!({})));
    for bad in [
        "[[plugin]\n",
        "[[plugin]]\nname = \"X\"\nkind = \"CBS\"\n",
        "[rules]\nfile = \"missing\"\n[[plugin]]\nname = \"R\"\nkind = \"RM\"\npriorities = [1, 9]\n",
    ] {
        daemon.reload(bad);
        assert_eq!((seen(sleeper.tid()), client.ask("ListPlugins", json!({}))), before);
        let error = client.ask("GetStatus", json!({}))["last_reload_error"].clone();
        assert!(error.as_str().is_some_and(|error| !error.is_empty()), "{bad}: {error}");
    }
    daemon.reload(PLUGINS);
    assert!(client.ask("GetStatus", json!({})).get("last_reload_error").is_none());
    assert_eq!((seen(sleeper.tid()), client.ask("ListPlugins", json!({}))), before);
}

/// A thread of the kernel that may run on one processor only, so that the kernel refuses to have it
/// elsewhere.
fn bound_to_processor_1() -> Option<u32> {
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (name.trim_end() == "ksoftirqd/1").then(|| entry.file_name().to_str()?.parse().ok())?
    })
}

fn a_refused_change_leaves_all_as_it_was() {
    let Some(bound) = bound_to_processor_1() else {
        return eprintln!("SKIPPED: there is no ksoftirqd/1 here");
    };
    let plugin = |name: &str, processor: u32, from: u32| {
        format!(
            "[[plugin]]\nname = \"{name}\"\nkind = \"RM\"\npriorities = [{from}, {}]\n\
             processors = \"{processor}\"\nadmission = \"utilization\"\n",
            from + 9
        )
    };
    // The kernel's thread may take any time.
    let counted = "[enforcement]\noverruns = \"count\"\n";
    let daemon = Daemon::start(&format!("{counted}{}{}", plugin("HERE", 1, 1), plugin("THERE", 0, 11)));
    let mut client = daemon.connect();
    let before = seen(bound);
    let parameters =
        |plugin: &str, period: u64| json!({ "plugin": plugin, "period_ns": period, "runtime_ns": 1000 });
    let there = client.create(parameters("THERE", 1_000_000));
    assert_eq!(client.fail("AttachThread", json!({ "spec": there, "thread": bound })).0, "KernelRefused");
    assert_eq!(seen(bound), before);
    assert!(client.ask("GetSpec", json!({ "spec": there }))["spec"].get("thread").is_none());
    client.ask("ReleaseSpec", json!({ "spec": there }));
    let here = client.schedule(parameters("HERE", 1_000_000), bound);
    let sleeper = Sleeper::start();
    client.schedule(parameters("HERE", 2_000_000), sleeper.tid());
    let state = |client: &mut crate::rig::Client| {
        let mut spec = client.ask("GetSpec", json!({ "spec": here }));
        // What the kernel's thread has taken is counted when it is looked at; all else stays.
        for counter in ["jobs", "worst_cost_ns", "overruns", "misses"] {
            spec["spec"]["enforced"][counter].take();
        }
        (seen(bound), seen(sleeper.tid()), spec, client.ask("ListPlugins", json!({})))
    };
    let scheduled = state(&mut client);
    assert_eq!(
        client.fail("ChangeSpec", json!({ "spec": here, "parameters": parameters("THERE", 3_000_000) })).0,
        "KernelRefused"
    );
    assert_eq!(state(&mut client), scheduled);
    client.ask("ChangeSpec", json!({ "spec": here, "parameters": parameters("HERE", 3_000_000) }));
    assert!(seen(bound).1 < seen(sleeper.tid()).1);
    client.ask("ReleaseSpec", json!({ "spec": here }));
    assert_eq!(seen(bound), before);
}

fn changes_never_unschedule() {
    let daemon = Daemon::start(PLUGINS);
    let sleepers: Vec<Sleeper> = (0..8).map(|_| Sleeper::start()).collect();
    let tids: Vec<u32> = sleepers.iter().map(Sleeper::tid).collect();
    let mut owner = daemon.connect();
    let specs: Vec<u64> = tids.iter().map(|&tid| owner.schedule(json!({ "priority": 30 }), tid)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = 0u64;
            while !done.load(Ordering::Relaxed) || looks == 0 {
                for &tid in &tids {
                    assert_eq!(scheduling::scheduling(tid).unwrap().policy, FIFO, "unscheduled in a change");
                    looks += 1;
                }
            }
        });
        let racers: Vec<_> = (0..16)
            .map(|racer| {
                let (daemon, specs) = (&daemon, &specs);
                scope.spawn(move || {
                    let mut client = daemon.connect();
                    for round in 0..100u64 {
                        let spec = specs[((round * 7 + racer) % 8) as usize];
                        let by_priority = json!({ "priority": 21 + (round + racer) % 20 });
                        let by_period = json!({ "period_ns": 1_000_000 * (1 + (round + racer) % 50),
                            "runtime_ns": 1_000 });
                        let parameters = if (round + racer) % 2 == 0 { by_priority } else { by_period };
                        client.ask("ChangeSpec", json!({ "spec": spec, "parameters": parameters }));
                        if round % 10 == 0 {
                            let period_ns = 500_000 + round;
                            let more = client.create(json!({ "period_ns": period_ns, "runtime_ns": 1_000 }));
                            client.ask("ReleaseSpec", json!({ "spec": more }));
                        }
                    }
                })
            })
            .collect();
        let all: Vec<bool> = racers.into_iter().map(|racer| racer.join().is_ok()).collect();
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        assert!(all.into_iter().all(|fine| fine));
    });
    // What is said is what is.
    for spec in owner.ask("ListSpecs", json!({}))["specs"].as_array().unwrap() {
        let tid = spec["thread"].as_u64().unwrap() as u32;
        assert_eq!(json!(seen(tid).1), spec["admission"]["policy_priority"], "{spec}");
    }
    for spec in specs {
        owner.ask("ReleaseSpec", json!({ "spec": spec }));
    }
    drop(owner);
    daemon.assert_empty();
    assert!(tids.iter().all(|&tid| seen(tid).0 == OTHER));
}

fn priorities_follow_periods() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleepers: Vec<Sleeper> = (0..6).map(|_| Sleeper::start()).collect();
    let periods = [50u64, 10, 30, 20, 60, 40];
    let mut specs = Vec::new();
    for (sleeper, period) in sleepers.iter().zip(periods) {
        specs.push(
            client
                .schedule(json!({ "period_ns": period * 1_000_000, "runtime_ns": 1_000_000 }), sleeper.tid()),
        );
        let mut so_far: Vec<(u64, u32)> = sleepers
            .iter()
            .zip(periods)
            .take(specs.len())
            .map(|(sleeper, period)| (period, seen(sleeper.tid()).1))
            .collect();
        so_far.sort_unstable();
        assert!(so_far.windows(2).all(|pair| pair[0].1 > pair[1].1), "{so_far:?}");
    }
    client.ask("ReleaseSpec", json!({ "spec": specs[1] }));
    client.ask(
        "ChangeSpec",
        json!({ "spec": specs[0], "parameters": { "period_ns": 5_000_000, "runtime_ns": 1_000_000 } }),
    );
    let highest = seen(sleepers[0].tid()).1;
    assert!(sleepers[2..].iter().all(|sleeper| seen(sleeper.tid()).1 < highest));
}

fn deadline() -> Value {
    json!({ "plugin": "EDF", "runtime_ns": 2_000_000, "period_ns": 20_000_000, "deadline_ns": 10_000_000 })
}

/// The kernel refuses a limit that is less than what threads under SCHED_DEADLINE have already.
fn the_limit_comes_back_when_the_kernel_lets_it() {
    let before = rt_runtime();
    let daemon = Daemon::start(WITH_EDF);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let spec = client.schedule(deadline(), sleeper.tid());
    let processors = std::thread::available_parallelism().unwrap().get();
    let others: Vec<Sleeper> = (0..processors).map(|_| Sleeper::start()).collect();
    let ms = punctual_model::Duration::from_ms;
    let most =
        punctual_schedule::AssignedPolicy::Deadline { runtime: ms(99), deadline: ms(100), period: ms(100) };
    for other in &others {
        scheduling::schedule(other.tid(), &Scheduling::from_policy(most)).unwrap();
    }
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    until("the refusal", || daemon.log().contains("kernel.sched_rt_runtime_us is still -1"));
    assert_eq!((rt_runtime(), seen(sleeper.tid()).0), (-1, OTHER));
    drop(others);
    until("the limit", || rt_runtime() == before);
    daemon.assert_empty();
}

fn the_limit_is_lifted_for_edf_and_restored() {
    let before = rt_runtime();
    let mut daemon = Daemon::start(WITH_EDF);
    let mut client = daemon.connect();
    let (one, two) = (Sleeper::start(), Sleeper::start());
    let first = client.create(deadline());
    assert_eq!(rt_runtime(), before);
    client.ask("AttachThread", json!({ "spec": first, "thread": one.tid() }));
    assert_eq!((rt_runtime(), seen(one.tid()).0, seen(one.tid()).3.as_str()), (-1, DEADLINE, "0"));
    let applied = scheduling::scheduling(one.tid()).unwrap();
    assert_eq!(
        (applied.runtime_ns, applied.deadline_ns, applied.period_ns),
        (2_000_000, 10_000_000, 10_000_000)
    );
    let second = client.schedule(deadline(), two.tid());
    client.ask("DetachThread", json!({ "spec": first }));
    assert_eq!((rt_runtime(), seen(one.tid()).0), (-1, OTHER));
    // From EDF to FP and back, without being ordinary between.
    client.ask("ChangeSpec", json!({ "spec": second, "parameters": { "priority": 30 } }));
    assert_eq!(seen(two.tid()).0, FIFO);
    until("the limit", || rt_runtime() == before);
    client.ask("ChangeSpec", json!({ "spec": second, "parameters": deadline() }));
    assert_eq!((rt_runtime(), seen(two.tid()).0), (-1, DEADLINE));
    // It ends by itself.
    drop(two);
    until("the end of the thread", || rt_runtime() == before);
    client.ask("AttachThread", json!({ "spec": first, "thread": one.tid() }));
    assert!(daemon.stop().success());
    assert_eq!((rt_runtime(), seen(one.tid()).0), (before, OTHER));
    // Killed, and started again without what it was for.
    daemon.run();
    let mut actor = Actor::start();
    actor.tell(&format!("connect {}", daemon.socket().display()));
    let spec = actor.ask("CreateSpec", json!({ "parameters": deadline() }))["admission"]["spec"].clone();
    actor.ask("AttachThread", json!({ "spec": spec, "thread": one.tid() }));
    daemon.kill();
    actor.kill();
    assert_eq!((rt_runtime(), seen(one.tid()).0), (-1, DEADLINE));
    daemon.run();
    assert_eq!(seen(one.tid()).0, OTHER);
    until("the limit", || rt_runtime() == before);
    daemon.assert_empty();
}

fn where_the_limit_must_stay_edf_is_refused() {
    let daemon = Daemon::start(&format!("[kernel]\nlift_realtime_limit = false\n{WITH_EDF}"));
    let mut client = daemon.connect();
    let (error, details) = client.fail("CreateSpec", json!({ "parameters": deadline() }));
    assert_eq!(error, "NotAdmitted");
    assert!(details["reasons"][0].as_str().unwrap().contains("sched_rt_runtime_us"), "{details}");
    // Another plugin that can do it gets it.
    client.create(json!({ "priority": 30, "runtime_ns": 2_000_000, "period_ns": 20_000_000 }));
    let spec = client.create(json!({ "priority": 20 }));
    assert_eq!(client.fail("ChangeSpec", json!({ "spec": spec, "parameters": deadline() })).0, "NotAdmitted");
    assert_eq!(client.ask("GetSpec", json!({ "spec": spec }))["spec"]["admission"]["plugin"], json!("FP"));
}

fn a_deadline_thread_of_before_is_one_after() {
    let daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    let ms = punctual_model::Duration::from_ms;
    let deadline =
        punctual_schedule::AssignedPolicy::Deadline { runtime: ms(1), deadline: ms(100), period: ms(100) };
    scheduling::schedule(sleeper.tid(), &Scheduling::from_policy(deadline)).unwrap();
    let before = (scheduling::scheduling(sleeper.tid()).unwrap(), seen(sleeper.tid()).3);
    let spec = client.schedule(json!({ "priority": 30 }), sleeper.tid());
    assert_eq!(seen(sleeper.tid()).0, FIFO);
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!((scheduling::scheduling(sleeper.tid()).unwrap(), seen(sleeper.tid()).3), before);
}
