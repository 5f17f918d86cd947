//! Nobody gets a second budget in a period by ending a spec and creating another, by changes, or by attaching
//! threads in turn.

use crate::actor::Actor;
use crate::enforcement::{Hog, config, enforced, overruns_before_demotion, parameters};
use crate::rig::{Client, DEADLINE, Daemon, FIFO, OTHER, Sleeper, WITH_EDF, in_time, seen, until, waits_in};
use punctual_linux::scheduling::{self, Processors};
use serde_json::json;
use std::time::{Duration, Instant};

/// They need a processor.
pub const ALONE: &[(&str, fn())] = &[
    ("ended::who_needs_the_room_of_others_begins_later", who_needs_the_room_of_others_begins_later),
    ("ended::who_has_room_beside_begins_at_once", who_has_room_beside_begins_at_once),
    ("ended::an_ended_spec_counts_for_what_it_took", an_ended_spec_counts_for_what_it_took),
    ("ended::a_change_of_mode_gives_no_second_budget", a_change_of_mode_gives_no_second_budget),
    ("ended::what_a_change_leaves_is_given_later", what_a_change_leaves_is_given_later),
    ("ended::attaching_in_a_loop_gives_no_time", attaching_in_a_loop_gives_no_time),
    ("ended::who_hops_is_barred", who_hops_is_barred),
    ("ended::threads_take_turns_under_edf", threads_take_turns_under_edf),
];

/// More than half of a processor.
const MOST: (u32, u64, u64) = (40, 500, 750);

fn most() -> serde_json::Value {
    parameters(MOST.0, MOST.1, MOST.2)
}

/// What a spec owes.
struct Debt {
    began: Instant,
    taken_ns: u64,
}

/// A spec for a thread, that takes so much (0.4 s), as admitted, that another 0.2 s pass until that is paid
/// at the rate of [`MOST`].
fn takes_something(client: &mut Client, parameters: serde_json::Value, hog: &Hog) -> (u64, Debt) {
    let began = Instant::now();
    let spec = client.schedule(parameters, hog.tid());
    let before = hog.time();
    until("what it takes", || seen(hog.tid()).0 == FIFO && hog.time() >= before + 40);
    // The clock has hundredths of a second.
    (spec, Debt { began, taken_ns: 390_000_000 })
}

impl Debt {
    /// The thread of a spec in the room of what was taken has nothing yet. An error if it was attached so
    /// late that this may be paid.
    #[track_caller]
    fn stops_at_once(&self, client: &mut Client, spec: u64, when: &str) -> Result<(), String> {
        let attached = self.began.elapsed();
        let (overruns, it) = overruns_before_demotion(client, spec);
        if overruns == 0 {
            return Ok(());
        }
        let paid = Duration::from_nanos(self.taken_ns * MOST.2 / MOST.1);
        assert!(attached >= paid, "{when}: {it}");
        Err(format!("{when}: the machine needed {attached:?} to attach it, when all was paid"))
    }
}

/// A daemon that answers at once and has measured a thread before: the first attachment may take half a
/// second, in which the thread runs already.
fn ready() -> (Daemon, Client) {
    let daemon = Daemon::start(&config(""));
    daemon.hurry();
    let mut client = daemon.connect();
    // Whose thread has taken nothing, owes nothing.
    let sleeper = Sleeper::start();
    let spec = client.schedule(most(), sleeper.tid());
    until("its measuring", || enforced(&mut client, spec)["jobs"].is_u64());
    client.ask("DetachThread", json!({ "spec": spec }));
    release(&mut client, spec);
    (daemon, client)
}

fn release(client: &mut Client, spec: u64) {
    client.ask("ReleaseSpec", json!({ "spec": spec }));
}

fn who_needs_the_room_of_others_begins_later() {
    in_time(|| {
        let (daemon, mut client) = ready();
        let mut hog = Hog::start();
        let (spec, debt) = takes_something(&mut client, most(), &hog);
        release(&mut client, spec);
        for when in ["the same thread", "another"] {
            let spec = client.schedule(most(), hog.tid());
            debt.stops_at_once(&mut client, spec, when)?;
            release(&mut client, spec);
            hog = Hog::start();
        }
        // But it gets what it was admitted for.
        let spec = client.schedule(most(), hog.tid());
        debt.stops_at_once(&mut client, spec, "the last")?;
        until("its first budget", || seen(hog.tid()).0 == FIFO);
        release(&mut client, spec);
        daemon.assert_empty();
        Ok(())
    });
}

fn an_ended_spec_counts_for_what_it_took() {
    let (_daemon, mut client) = ready();
    let (hog, other) = (Hog::start(), Hog::start());
    // Two thirds of a processor, for fifty minutes.
    let (spec, _) = takes_something(&mut client, parameters(40, 2_000_000, 3_000_000), &hog);
    release(&mut client, spec);
    drop(hog);
    let spec = client.schedule(most(), other.tid());
    until("its first budget", || seen(other.tid()).0 == FIFO);
    let shown = client.ask("GetSpec", json!({ "spec": spec }));
    // As for any budget, a little earlier is tolerated.
    let begins = shown["spec"]["admission"]["begins_in_ns"].as_u64();
    assert!(begins.is_none_or(|ns| ns <= 1_000_000), "{shown}");
    release(&mut client, spec);
}

fn who_has_room_beside_begins_at_once() {
    let (_daemon, mut client) = ready();
    let (hog, other) = (Hog::start(), Hog::start());
    let (spec, _) = takes_something(&mut client, parameters(40, 2_000, 20_000), &hog);
    release(&mut client, spec);
    let room = |client: &mut Client| {
        client.ask("ListPlugins", json!({}))["plugins"][0]["processors"][0]["utilization"].as_f64().unwrap()
    };
    assert!((room(&mut client) - 0.1).abs() < 1e-9, "its room is taken still");
    let (spec, _) = takes_something(&mut client, parameters(30, 2_000, 20_000), &other);
    assert_eq!(enforced(&mut client, spec)["demoted"], json!(false));
}

fn a_change_of_mode_gives_no_second_budget() {
    in_time(|| {
        let (_daemon, mut client) = ready();
        let (hog, other) = (Hog::start(), Hog::start());
        let (spec, debt) = takes_something(&mut client, most(), &hog);
        let asked = json!({ "release": [spec], "create": [{ "parameters": most() }] });
        let reply = client.ask("ReplaceSpecs", asked);
        let new = reply["admissions"][0]["spec"].as_u64().unwrap();
        client.ask("AttachThread", json!({ "spec": new, "thread": other.tid() }));
        debt.stops_at_once(&mut client, new, "in its room")?;
        // One that has ended is in the way of a change of mode as little as of a new spec.
        release(&mut client, new);
        let reply = client.ask("ReplaceSpecs", json!({ "create": [{ "parameters": most() }] }));
        let new = reply["admissions"][0]["spec"].as_u64().unwrap();
        client.ask("AttachThread", json!({ "spec": new, "thread": hog.tid() }));
        debt.stops_at_once(&mut client, new, "after it")?;
        until("its first budget", || seen(hog.tid()).0 == FIFO);
        Ok(())
    });
}

fn what_a_change_leaves_is_given_later() {
    in_time(|| {
        let (_daemon, mut client) = ready();
        let (hog, other) = (Hog::start(), Hog::start());
        let (spec, debt) = takes_something(&mut client, most(), &hog);
        client.ask("ChangeSpec", json!({ "spec": spec, "parameters": parameters(40, 50, 750) }));
        let new = client.schedule(parameters(30, 375, 750), other.tid());
        debt.stops_at_once(&mut client, new, "in the room that it left")?;
        until("its first budget", || seen(other.tid()).0 == FIFO);
        Ok(())
    });
}

/// However short each turn is.
fn attaching_in_a_loop_gives_no_time() {
    in_time(|| {
        let (_daemon, mut client) = ready();
        let hog = Hog::start();
        let before = seen(hog.tid());
        // 0.4 s in 60 s.
        let spec = client.create(parameters(40, 400, 60_000));
        let attach = json!({ "spec": spec, "thread": hog.tid() });
        let mut turns = 0;
        until("an attached thread that has nothing left", || {
            turns += 1;
            client.ask("AttachThread", attach.clone());
            let is_stopped = seen(hog.tid()).0 == OTHER;
            client.ask("DetachThread", json!({ "spec": spec }));
            assert_eq!(seen(hog.tid()), before);
            is_stopped
        });
        if turns <= 3 {
            return Err(format!("the machine left it all in {turns} turns"));
        }
        for _ in 0..20 {
            client.ask("AttachThread", attach.clone());
            assert_eq!(seen(hog.tid()).0, OTHER, "not even for a moment");
            client.ask("DetachThread", json!({ "spec": spec }));
        }
        Ok(())
    });
}

/// A thread that is moved away again and again runs as an ordinary one for a while; so does what its user
/// attaches meanwhile.
fn who_hops_is_barred() {
    let Some(elsewhere) =
        Processors::one(1).filter(|_| std::thread::available_parallelism().unwrap().get() > 1)
    else {
        return eprintln!("SKIPPED: there is one processor");
    };
    for parameters in [parameters(40, 10, 20), json!({ "priority": 22 })] {
        let daemon = Daemon::start(&config(""));
        let mut client = daemon.connect();
        let (mut actor, other) = (Actor::start(), Sleeper::start());
        let thread: u32 = actor.tell("periodic 5 1000000").parse().unwrap();
        // If it is there already, it does not migrate the first time.
        scheduling::pin(thread, &elsewhere).unwrap();
        until("its sleep there", || waits_in("nanosleep", actor.pid(), thread));
        let spec = client.schedule(parameters, thread);
        let before = seen(thread);
        assert_eq!((before.0, before.3.as_str()), (FIFO, "0"));
        until("the bar", || {
            if seen(thread).0 == FIFO {
                scheduling::pin(thread, &elsewhere).unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
            seen(thread).0 == OTHER
        });
        let another = client.schedule(json!({ "priority": 21 }), other.tid());
        assert_eq!(seen(other.tid()).0, OTHER);
        until("the log", || daemon.log().contains("was changed too often"));
        until("the end of the bar", || seen(thread) == before && seen(other.tid()).0 == FIFO);
        release(&mut client, spec);
        release(&mut client, another);
    }
}

fn threads_take_turns_under_edf() {
    let mut daemon = Daemon::start(WITH_EDF);
    let mut client = daemon.connect();
    let threads = [Sleeper::start(), Sleeper::start()];
    let wanted = json!({ "plugin": "EDF", "runtime_ns": 600_000_000, "period_ns": 1_000_000_000 });
    let spec = client.schedule(wanted.clone(), threads[0].tid());
    client.ask("DetachThread", json!({ "spec": spec }));
    let not_yet = |client: &mut Client, attach: &serde_json::Value| {
        let (error, told) = client.fail("AttachThread", attach.clone());
        assert_eq!(error, "NotYet");
        let wait = told["wait_ns"].as_u64().expect("a time");
        assert!((1..=1_000_000_000).contains(&wait), "{told}");
        told["reason"].as_str().expect("a reason").to_owned()
    };
    let attach = json!({ "spec": spec, "thread": threads[1].tid() });
    let used = format!("thread {} has used the runtime of this period", threads[0].tid());
    assert_eq!(not_yet(&mut client, &attach), used);
    assert_eq!(seen(threads[1].tid()).0, OTHER);
    // The same one goes on with what it has left.
    client.ask("AttachThread", json!({ "spec": spec, "thread": threads[0].tid() }));
    assert_eq!(seen(threads[0].tid()).0, DEADLINE);
    release(&mut client, spec);
    let spec = client.create(wanted);
    let attach = json!({ "spec": spec, "thread": threads[1].tid() });
    assert!(not_yet(&mut client, &attach).starts_with("a spec that has ended"));
    until("its turn", || client.call("AttachThread", attach.clone()).get("error").is_none());
    assert_eq!(seen(threads[1].tid()).0, DEADLINE);
    // It restores the machine's limit.
    assert!(daemon.stop().success());
}
