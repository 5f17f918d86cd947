//! Killed at any time and started again: whoever lives is scheduled as before, everything else is undone.

use crate::actor::Actor;
use crate::rig::{DEADLINE, Daemon, FIFO, OTHER, PLUGINS, Sleeper, WITH_EDF, rt_runtime, seen, until};
use punctual_linux::scheduling::{self, Scheduling};
use punctual_linux::thread;
use serde_json::json;
use std::os::unix::fs::FileExt;

pub const TESTS: &[(&str, fn())] = &[
    ("restart::who_lives_keeps_everything", who_lives_keeps_everything),
    ("restart::who_ended_is_undone", who_ended_is_undone),
    ("restart::threads_that_somebody_changed_are_left_so", threads_that_somebody_changed_are_left_so),
    ("restart::a_damaged_journal_is_no_end", a_damaged_journal_is_no_end),
    ("restart::another_configuration_takes_what_it_can", another_configuration_takes_what_it_can),
];

pub const ALONE: &[(&str, fn())] = &[
    ("restart::deadline_threads_are_kept", deadline_threads_are_kept),
    // It has the kernel give numbers again at once, which other daemons take for threads that they know.
    ("restart::a_number_that_is_used_again_is_somebody_else", a_number_that_is_used_again_is_somebody_else),
];

fn who_lives_keeps_everything() {
    let mut daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    let sleepers: Vec<Sleeper> = (0..5).map(|_| Sleeper::start()).collect();
    let before: Vec<_> = sleepers.iter().map(|sleeper| seen(sleeper.tid())).collect();
    let mut specs = Vec::new();
    for (at, sleeper) in sleepers.iter().enumerate() {
        let parameters = match at % 2 {
            0 => json!({ "priority": 30 + at }),
            _ => {
                json!({ "period_ns": 10_000_000 * at, "runtime_ns": 123_456, "desired_runtime_ns": 200_000 })
            }
        };
        specs.push(client.schedule(parameters, sleeper.tid()));
    }
    client.ask("CreateSpec", json!({ "parameters": { "period_ns": 7_000_000 }, "name": "näme" }));
    let scheduled: Vec<_> = sleepers.iter().map(|sleeper| seen(sleeper.tid())).collect();
    let (listed, plugins) = (client.ask("ListSpecs", json!({})), client.ask("ListPlugins", json!({})));
    for _ in 0..3 {
        daemon.kill();
        daemon.run();
        assert_eq!(scheduled, sleepers.iter().map(|sleeper| seen(sleeper.tid())).collect::<Vec<_>>());
        let mut client = daemon.connect();
        assert_eq!(
            (client.ask("ListSpecs", json!({})), client.ask("ListPlugins", json!({}))),
            (listed.clone(), plugins.clone())
        );
        let fresh = client.create(json!({ "priority": 1 }));
        assert!(fresh > *specs.last().unwrap() + 1, "numbers are not given again");
        client.ask("ReleaseSpec", json!({ "spec": fresh }));
    }
    let mut client = daemon.connect();
    for spec in specs {
        client.ask("ReleaseSpec", json!({ "spec": spec }));
    }
    assert_eq!(before, sleepers.iter().map(|sleeper| seen(sleeper.tid())).collect::<Vec<_>>());
}

fn who_ended_is_undone() {
    let mut daemon = Daemon::start(PLUGINS);
    let sleeper = Sleeper::start();
    let before = seen(sleeper.tid());
    let mut actor = Actor::as_user(4001, &daemon.socket());
    let mine =
        actor.ask("CreateSpec", json!({ "parameters": { "priority": 30 } }))["admission"]["spec"].clone();
    let pid = actor.pid();
    actor.ask("AttachThread", json!({ "spec": mine, "thread": pid }));
    let other =
        actor.ask("CreateSpec", json!({ "parameters": { "priority": 31 } }))["admission"]["spec"].clone();
    daemon.connect().ask("AttachThread", json!({ "spec": other, "thread": sleeper.tid() }));
    assert_eq!((seen(pid).0, seen(sleeper.tid()).0), (FIFO, FIFO));
    daemon.kill();
    actor.kill();
    assert_eq!(seen(sleeper.tid()).0, FIFO);
    daemon.run();
    assert_eq!(seen(sleeper.tid()), before);
    daemon.assert_empty();
}

fn threads_that_somebody_changed_are_left_so() {
    let mut daemon = Daemon::start(PLUGINS);
    let (changed, detached) = (Sleeper::start(), Sleeper::start());
    let before = scheduling::scheduling(detached.tid()).unwrap();
    let mut client = daemon.connect();
    let spec = client.schedule(json!({ "priority": 30 }), changed.tid());
    client.schedule(json!({ "priority": 31 }), detached.tid());
    daemon.kill();
    scheduling::schedule(
        changed.tid(),
        &Scheduling::from_policy(punctual_schedule::AssignedPolicy::RoundRobin(3)),
    )
    .unwrap();
    // As it is when the daemon is killed before it tells the kernel, or after it took back what it told.
    scheduling::schedule(detached.tid(), &before).unwrap();
    let now = seen(changed.tid());
    daemon.run();
    assert_eq!(seen(changed.tid()), now);
    assert_eq!((seen(detached.tid()).0, seen(detached.tid()).1), (FIFO, 31));
    let mut client = daemon.connect();
    assert!(client.ask("GetSpec", json!({ "spec": spec }))["spec"].get("thread").is_none());
    assert_eq!(client.ask("GetStatus", json!({}))["attached"], json!(1));
}

/// A process with that number, if the kernel lets one be wished for, and one that did not start in the same
/// hundredth of a second as who had it before: that is all that kernels before 6.9 tell them apart by.
/// Without a wish, nobody gets through all numbers in so little time.
fn sleeper_with(number: u32, start_before: u64) -> Option<Sleeper> {
    (0..1000).find_map(|_| {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).ok()?;
        let is_other = |sleeper: &Sleeper| {
            thread::process_start(number).is_ok_and(|start| sleeper.tid() == number && start != start_before)
        };
        Some(Sleeper::start()).filter(is_other)
    })
}

fn a_number_that_is_used_again_is_somebody_else() {
    let mut daemon = Daemon::start(PLUGINS);
    let mut client = daemon.connect();
    for kill in [true, false] {
        let sleeper = Sleeper::start();
        let number = sleeper.tid();
        let spec = client.schedule(json!({ "priority": 30 }), number);
        let (applied, start) =
            (scheduling::scheduling(number).unwrap(), thread::process_start(number).unwrap());
        if kill {
            daemon.kill();
        }
        drop(sleeper);
        let Some(other) = sleeper_with(number, start) else {
            return eprintln!("SKIPPED: numbers of processes cannot be wished for here");
        };
        // Even if it looks like what the daemon made.
        scheduling::schedule(other.tid(), &applied).unwrap();
        let before = seen(other.tid());
        if kill {
            daemon.run();
            client = daemon.connect();
        }
        // Kernels before 6.9 do not tell, and the daemon looks by itself.
        until("the end of the thread", || {
            client.ask("GetSpec", json!({ "spec": spec }))["spec"].get("thread").is_none()
        });
        client.ask("ReleaseSpec", json!({ "spec": spec }));
        assert_eq!(seen(other.tid()), before);
    }
}

fn a_damaged_journal_is_no_end() {
    let mut daemon = Daemon::start(PLUGINS);
    let (one, two) = (Sleeper::start(), Sleeper::start());
    let mut client = daemon.connect();
    client.schedule(json!({ "priority": 30 }), one.tid());
    let kept = client.schedule(json!({ "priority": 31 }), two.tid());
    daemon.kill();
    // All of the first slot's first bytes, in both cells.
    let journal = std::fs::File::options().write(true).open(daemon.path("state/journal")).unwrap();
    for cell in [2048, 3072] {
        journal.write_at(&[0xa5; 64], cell).unwrap();
    }
    daemon.run();
    assert!(daemon.log().contains("is damaged"), "{}", daemon.log());
    let listed = daemon.connect().ask("ListSpecs", json!({}));
    assert_eq!(
        (listed["specs"].as_array().unwrap().len(), &listed["specs"][0]["admission"]["spec"]),
        (1, &json!(kept))
    );
    assert_eq!(seen(two.tid()).1, 31);
    // Not a journal at all.
    daemon.kill();
    std::fs::write(daemon.path("state/journal"), vec![0x55; 100_000]).unwrap();
    daemon.run();
    daemon.assert_empty();
    daemon.stop();
}

fn another_configuration_takes_what_it_can() {
    let mut daemon = Daemon::start(PLUGINS);
    let (stays, goes) = (Sleeper::start(), Sleeper::start());
    let before = seen(goes.tid());
    let mut client = daemon.connect();
    client.schedule(json!({ "period_ns": 10_000_000, "runtime_ns": 1_000 }), stays.tid());
    client.schedule(json!({ "priority": 31 }), goes.tid());
    daemon.kill();
    let (first, _) = PLUGINS.split_once("[[plugin]]\nname = \"FP\"").unwrap();
    daemon.write("punctuald.toml", &first.replace("[1, 20]", "[50, 60]"));
    daemon.run();
    assert_eq!(seen(goes.tid()), before);
    assert!((50..=60).contains(&seen(stays.tid()).1));
    assert_eq!(daemon.connect().ask("GetStatus", json!({}))["specs"], json!(1));
}

fn deadline_threads_are_kept() {
    let before = rt_runtime();
    let mut daemon = Daemon::start(WITH_EDF);
    let mut client = daemon.connect();
    let sleeper = Sleeper::start();
    client.schedule(
        json!({ "plugin": "EDF", "runtime_ns": 2_000_000, "desired_runtime_ns": 3_000_000,
            "period_ns": 20_000_000 }),
        sleeper.tid(),
    );
    let applied = scheduling::scheduling(sleeper.tid()).unwrap();
    let listed = client.ask("ListSpecs", json!({}));
    daemon.kill();
    daemon.run();
    assert_eq!(
        (rt_runtime(), seen(sleeper.tid()).0, scheduling::scheduling(sleeper.tid()).unwrap()),
        (-1, DEADLINE, applied)
    );
    assert_eq!(daemon.connect().ask("ListSpecs", json!({})), listed);
    assert!(daemon.stop().success());
    assert_eq!((rt_runtime(), seen(sleeper.tid()).0), (before, OTHER));
}
