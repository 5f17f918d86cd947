//! Threads under SCHED_FIFO and SCHED_RR are held to their runtime.

use crate::actor::Actor;
use crate::rig::{Client, Daemon, FIFO, OTHER, Sleeper, in_time, seen, until};
use crate::wire::loop_memory;
use punctual_linux::scheduling::{self, Processors, Scheduling};
use punctual_schedule::AssignedPolicy;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const TESTS: &[(&str, fn())] = &[
    ("enforcement::who_keeps_to_its_runtime_is_left_alone", who_keeps_to_its_runtime_is_left_alone),
    ("enforcement::accounts_leave_who_keeps_to_its_runtime_alone", accounts_leave_it_alone),
    (
        "enforcement::a_thread_that_leaves_its_processor_is_put_back",
        a_thread_that_leaves_its_processor_is_put_back,
    ),
    ("enforcement::threads_without_a_runtime_are_put_back", threads_without_a_runtime_are_put_back),
    ("enforcement::helpers_keep_the_processors_of_the_program", helpers_keep_the_processors_of_the_program),
    ("enforcement::a_thread_that_was_changed_is_detached", a_thread_that_was_changed_is_detached),
];

/// Those that need a processor.
pub const ALONE: &[(&str, fn())] = &[
    ("enforcement::others_are_only_counted_or_warned_of", others_are_only_counted_or_warned_of),
    ("enforcement::who_exceeds_its_runtime_leaves_the_rest", who_exceeds_its_runtime_leaves_the_rest),
    ("enforcement::polling_does_the_same", polling_does_the_same),
    ("enforcement::accounts_do_the_same", accounts_do_the_same),
    ("enforcement::accounts_give_a_share_and_no_more", accounts_give_a_share_and_no_more),
    ("enforcement::accounts_serve_where_perf_events_are_refused", accounts_serve_without_perf_events),
    ("enforcement::demotion_survives_a_kill", demotion_survives_a_kill),
    ("enforcement::a_demoted_thread_is_undone", a_demoted_thread_is_undone),
    ("enforcement::a_demoted_thread_gets_its_new_priority", a_demoted_thread_gets_its_new_priority),
    ("enforcement::a_thread_that_was_real_time_is_demoted_too", a_thread_that_was_real_time_is_demoted_too),
    ("enforcement::who_exceeds_its_runtime_may_be_detached", who_exceeds_its_runtime_may_be_detached),
    ("enforcement::a_demotion_is_not_somebody_elses_change", a_demotion_is_not_somebody_elses_change),
    ("enforcement::who_was_put_back_is_detached_too", who_was_put_back_is_detached_too),
    ("enforcement::a_program_of_other_rights_is_held_too", a_program_of_other_rights_is_held_too),
    ("enforcement::a_demoted_thread_that_executes_is_promoted", a_demoted_thread_that_executes_is_promoted),
    ("enforcement::who_attaches_again_gets_no_new_budget", who_attaches_again_gets_no_new_budget),
    ("enforcement::threads_of_a_spec_have_one_budget", threads_of_a_spec_have_one_budget),
    ("enforcement::changes_give_no_new_budget", changes_give_no_new_budget),
];

pub fn config(enforcement: &str) -> String {
    format!(
        "{enforcement}\n[rules]\nfile = \"rules.conf\"\n\
         [[plugin]]\nname = \"FP\"\nkind = \"FP\"\npriorities = [21, 40]\n\
         processors = \"0\"\nadmission = \"utilization\"\n"
    )
}

/// A process that never sleeps.
pub struct Hog(Child);

impl Hog {
    pub fn start() -> Hog {
        Hog(Command::new("sh")
            .args(["-c", "ulimit -t 10; while :; do :; done"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap())
    }

    pub fn tid(&self) -> u32 {
        self.0.id()
    }

    /// Its processor time, in clock ticks.
    pub fn time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.tid())).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell that runs as another user whoever executes it, so that the kernel ends all measuring of who does.
fn shell_of_another(daemon: &Daemon) -> std::path::PathBuf {
    use std::os::unix::fs::{PermissionsExt, chown};
    let path = daemon.path("another");
    std::fs::copy("/bin/sh", &path).unwrap();
    chown(&path, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    path
}

/// Whether a thread executes that shell.
fn is_another(thread: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{thread}/comm")).is_ok_and(|name| name == "another\n")
}

pub fn parameters(priority: u32, runtime_ms: u64, period_ms: u64) -> Value {
    json!({ "priority": priority, "runtime_ns": runtime_ms * 1_000_000, "period_ns": period_ms * 1_000_000 })
}

pub fn enforced(client: &mut Client, spec: u64) -> Value {
    client.ask("GetSpec", json!({ "spec": spec }))["spec"]["enforced"].clone()
}

fn overruns(client: &mut Client, spec: u64) -> u64 {
    enforced(client, spec)["overruns"].as_u64().unwrap_or(0)
}

fn leaves_the_rest(enforcement: &str) {
    let daemon = Daemon::start(&config(enforcement));
    let mut client = daemon.connect();
    let (hog, other) = (Hog::start(), Hog::start());
    let before = seen(hog.tid());
    let spec = client.schedule(parameters(40, 4, 40), hog.tid());
    // Much less than the first one leaves it, on any machine.
    let theirs = client.schedule(parameters(30, 25, 40), other.tid());
    // The more urgent one would take everything, if it could.
    until("the other's share", || other.time() >= 2 * hog.time() + 20);
    until("overruns", || overruns(&mut client, spec) >= 5 && overruns(&mut client, theirs) >= 1);
    // Both go on: demoted, and promoted again.
    until("a demotion", || seen(hog.tid()).0 == OTHER);
    until("a promotion", || seen(hog.tid()).0 == FIFO);
    let it = client.ask("GetSpec", json!({ "spec": spec }))["spec"].clone();
    assert!(it.get("thread_is").is_none(), "nobody else changed it: {it}");
    assert!(it["enforced"]["worst_cost_ns"].as_u64().unwrap() > 4_000_000, "{it}");
    assert!(daemon.log().contains("takes more than its runtime"), "{}", daemon.log());
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(seen(hog.tid()), before);
}

fn who_exceeds_its_runtime_leaves_the_rest() {
    leaves_the_rest("");
}

fn polling_does_the_same() {
    leaves_the_rest("[enforcement]\nmeasuring = \"polling\"");
}

const ACCOUNTS: &str = "[enforcement]\nmeasuring = \"accounting\"";

fn accounts_do_the_same() {
    leaves_the_rest(ACCOUNTS);
}

/// A tenth of the processor for one that never sleeps, beside another that takes what it gets.
fn accounts_give_a_share_and_no_more() {
    let daemon = Daemon::start(&config(ACCOUNTS));
    gets_its_share(&daemon);
    assert!(!daemon.log().contains("perf events"), "{}", daemon.log());
}

fn gets_its_share(daemon: &Daemon) {
    let mut client = daemon.connect();
    let (hog, other) = (Hog::start(), Hog::start());
    let before = seen(hog.tid());
    let spec = client.schedule(parameters(40, 2, 20), hog.tid());
    client.schedule(parameters(30, 15, 20), other.tid());
    until("the other's share", || other.time() >= 3 * hog.time() + 20);
    until("its own", || hog.time() >= 5 && overruns(&mut client, spec) >= 5);
    assert!(20 * hog.time() >= other.time(), "{} of {}", hog.time(), other.time());
    assert_eq!(enforced(&mut client, spec).get("problem"), None);
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(seen(hog.tid()), before);
}

fn accounts_serve_without_perf_events() {
    const SETPRIV: [&str; 3] =
        ["setpriv", "--bounding-set=-perfmon,-sys_admin", "--inh-caps=-perfmon,-sys_admin"];
    let mut daemon = Daemon::start(&config(""));
    assert!(daemon.stop().success());
    if Command::new(SETPRIV[0]).args(&SETPRIV[1..]).arg("true").status().is_ok_and(|it| it.success()) {
        daemon.wrap(&SETPRIV);
    } else {
        return eprintln!("SKIPPED: setpriv cannot take capabilities away");
    }
    daemon.run();
    daemon.connect().create(parameters(25, 1, 100));
    let said = "threads are held to their runtimes by the kernel's accounts";
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse::<i32>().is_ok_and(|level| level < 2) {
        return eprintln!("SKIPPED: kernel.perf_event_paranoid refuses nothing");
    }
    until("the log", || daemon.log().contains(said));
    gets_its_share(&daemon);
    assert_eq!(daemon.log().matches(said).count(), 1, "{}", daemon.log());
    // Who wants perf events alone is told.
    daemon.reload(&config("[enforcement]\nmeasuring = \"events\""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    let spec = client.schedule(parameters(40, 1, 20), hog.tid());
    until("the problem", || enforced(&mut client, spec)["problem"].as_str().is_some());
}

fn accounts_leave_it_alone() {
    is_left_alone(ACCOUNTS);
}

fn who_keeps_to_its_runtime_is_left_alone() {
    is_left_alone("");
}

fn is_left_alone(enforcement: &str) {
    let daemon = Daemon::start(&config(enforcement));
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    let thread: u32 = actor.tell("thread").parse().unwrap();
    let spec = client.schedule(parameters(30, 2, 20), thread);
    until("its measuring", || enforced(&mut client, spec)["jobs"].is_u64());
    let periodic: u32 = actor.tell("periodic 25 60").parse().unwrap();
    let busy = client.schedule(parameters(31, 10, 20), periodic);
    until("its jobs", || enforced(&mut client, busy)["jobs"].as_u64().unwrap() >= 50);
    let it = enforced(&mut client, busy);
    until("the end of its job", || {
        enforced(&mut client, busy)["jobs"].as_u64() >= Some(it["jobs"].as_u64().unwrap() + 2)
    });
    // What a hypervisor or interrupts take from it counts as its own: of a job that lasted as long as several
    // runtimes, so many periods can be exceeded.
    let stretched: u64 = actor.tell("stretched 10").parse().unwrap();
    assert!(it["overruns"].as_u64().unwrap() <= stretched, "{stretched} runtimes: {it}");
    assert!(it["worst_cost_ns"].as_u64().unwrap() > 0, "{it}");
    until("both policies", || (seen(thread).0, seen(periodic).0) == (FIFO, FIFO));
}

fn others_are_only_counted_or_warned_of() {
    for (overruns_are, is_warned) in [("count", false), ("warn", true)] {
        let daemon = Daemon::start(&config(&format!("[enforcement]\noverruns = \"{overruns_are}\"")));
        let mut client = daemon.connect();
        let hog = Hog::start();
        let spec = client.schedule(parameters(40, 1, 20), hog.tid());
        let memory = loop_memory(&mut client, spec);
        until("overruns", || {
            assert_eq!(seen(hog.tid()).0, FIFO);
            overruns(&mut client, spec) >= 3
        });
        let told = || {
            let mut number = [0; 8];
            std::os::unix::fs::FileExt::read_exact_at(&memory, &mut number, 24).unwrap();
            u64::from_ne_bytes(number)
        };
        match is_warned {
            // It is told at most once a second.
            true => until("a warning", || told() >= 2),
            false => assert_eq!(told(), 0),
        }
        drop(hog);
        assert_eq!(daemon.log().contains("takes more than its runtime"), is_warned, "{}", daemon.log());
    }
}

fn who_exceeds_its_runtime_may_be_detached() {
    let daemon = Daemon::start(&config("[enforcement]\noverruns = \"detach\""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    let before = seen(hog.tid());
    let spec = client.schedule(parameters(40, 4, 40), hog.tid());
    let is_attached =
        |client: &mut Client| client.ask("GetSpec", json!({ "spec": spec }))["spec"].get("thread").is_some();
    until("the detachment", || !is_attached(&mut client));
    assert_eq!(seen(hog.tid()), before);
    assert!(daemon.log().contains("it is detached"), "{}", daemon.log());
    let it = shown(&mut client, spec);
    assert_eq!(it["thread_is"], json!("detached: it took more than its runtime"), "{it}");
    assert_eq!((&it["enforced"]["demoted"], it["enforced"].get("demoted_for_ns")), (&json!(false), None));
    // Three in a row.
    assert!(it["enforced"]["overruns"].as_u64().unwrap() >= 3, "{it}");
    assert!(it["enforced"]["worst_cost_ns"].as_u64().unwrap() > 4_000_000, "{it}");
    // What is refused changes nothing of that; another thread, or a change, does.
    client.fail("AttachThread", json!({ "spec": spec, "thread": 0 }));
    client.fail("ChangeSpec", json!({ "spec": spec, "parameters": parameters(40, 50, 40) }));
    assert_eq!(shown(&mut client, spec), it);
    let other = Sleeper::start();
    client.ask("AttachThread", json!({ "spec": spec, "thread": other.tid() }));
    assert_is_forgotten(&mut client, spec);
    client.ask("DetachThread", json!({ "spec": spec }));
    assert_is_forgotten(&mut client, spec);
    client.ask("AttachThread", json!({ "spec": spec, "thread": hog.tid() }));
    until("the detachment", || !is_attached(&mut client));
    client.ask("ChangeSpec", json!({ "spec": spec, "parameters": parameters(40, 5, 40) }));
    assert_is_forgotten(&mut client, spec);
}

/// However often one asks while the daemon demotes a thread and promotes it again.
fn a_demotion_is_not_somebody_elses_change() {
    let daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    let spec = client.schedule(parameters(40, 1, 5), hog.tid());
    loop {
        let it = shown(&mut client, spec);
        assert_eq!(it.get("thread_is"), None, "{it}");
        if it["enforced"]["overruns"].as_u64() >= Some(200) {
            return;
        }
    }
}

fn shown(client: &mut Client, spec: u64) -> Value {
    client.ask("GetSpec", json!({ "spec": spec }))["spec"].clone()
}

/// Nothing is said of a thread that was detached, and nothing of what it took.
#[track_caller]
fn assert_is_forgotten(client: &mut Client, spec: u64) {
    let it = shown(client, spec);
    assert_eq!(it.get("thread_is"), None, "{it}");
    assert!(it["enforced"]["overruns"].as_u64().unwrap_or(0) == 0, "{it}");
}

/// Someone else changes it, which is seen when it has used up its budget.
fn who_was_put_back_is_detached_too() {
    let daemon = Daemon::start(&config("[enforcement]\noverruns = \"detach\""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    let spec = client.schedule(parameters(40, 200, 400), hog.tid());
    scheduling::schedule(hog.tid(), &Scheduling::from_policy(AssignedPolicy::Fifo(3))).unwrap();
    let is_attached =
        |client: &mut Client| client.ask("GetSpec", json!({ "spec": spec }))["spec"].get("thread").is_some();
    until("the detachment", || !is_attached(&mut client));
    assert_eq!(seen(hog.tid()).0, OTHER);
    assert!(daemon.log().contains("it is detached"), "{}", daemon.log());
}

fn a_program_of_other_rights_is_held_too() {
    let daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let shell = shell_of_another(&daemon);
    let script = "read line; exec \"$0\" -c 'ulimit -t 10; while :; do :; done'";
    let mut hog =
        Hog(Command::new("sh").args(["-c", script]).arg(shell).stdin(Stdio::piped()).spawn().unwrap());
    let spec = client.schedule(parameters(40, 4, 40), hog.tid());
    until("its measuring", || enforced(&mut client, spec)["jobs"].is_u64());
    std::io::Write::write_all(&mut hog.0.stdin.take().unwrap(), b"go\n").unwrap();
    until("the program", || is_another(hog.tid()));
    let before = overruns(&mut client, spec);
    until("overruns", || overruns(&mut client, spec) >= before + 3);
    until("a demotion", || seen(hog.tid()).0 == OTHER);
    until("a promotion", || seen(hog.tid()).0 == FIFO);
    assert_eq!(enforced(&mut client, spec).get("problem"), None);
}

fn a_demoted_thread_that_executes_is_promoted() {
    in_time(|| {
        let daemon = Daemon::start(&config(""));
        let mut client = daemon.connect();
        let shell = shell_of_another(&daemon);
        let script = "while read -r line < \"$1\"; [ -z \"$line\" ]; do :; done; exec \"$0\" -c \
                      'ulimit -t 10; while :; do :; done'";
        daemon.write("go", "\n");
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(shell).arg(daemon.path("go")).stdin(Stdio::null());
        let hog = Hog(command.spawn().unwrap());
        let (spec, first) = begin_a_period(&mut client, &hog);
        until("a demotion", || seen(hog.tid()).0 == OTHER);
        daemon.write("go", "go\n");
        until("the program", || is_another(hog.tid()));
        first.gives_no_new_budget(&hog)?;
        until("a promotion", || seen(hog.tid()).0 == FIFO);
        let before = overruns(&mut client, spec);
        until("another demotion", || overruns(&mut client, spec) > before && seen(hog.tid()).0 == OTHER);
        Ok(())
    });
}

/// The first period of a spec of 10 ms every second.
struct First(Instant);

impl First {
    const PERIOD_MS: u64 = 1000;

    /// What its thread, which was demoted, met since then has not promoted it; an error if its next period
    /// may have come meanwhile.
    #[track_caller]
    fn gives_no_new_budget(&self, hog: &Hog) -> Result<(), String> {
        if seen(hog.tid()).0 == OTHER {
            return Ok(());
        }
        assert!(self.0.elapsed() >= Duration::from_millis(Self::PERIOD_MS), "that is no new budget");
        Err(format!("the machine needed more than {} ms", Self::PERIOD_MS))
    }
}

fn begin_a_period(client: &mut Client, hog: &Hog) -> (u64, First) {
    let first = First(Instant::now());
    (client.schedule(parameters(40, 10, First::PERIOD_MS), hog.tid()), first)
}

/// A spec of 0.5 s in 10 s, and a thread of it that has used that up.
fn used_up() -> (Daemon, Client, Hog, u64) {
    let daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    let spec = client.schedule(parameters(40, 500, 10_000), hog.tid());
    until("a demotion", || seen(hog.tid()).0 == OTHER);
    (daemon, client, hog, spec)
}

/// Its thread has nothing left.
#[track_caller]
fn is_stopped_at_once(client: &mut Client, spec: u64, when: &str) {
    let (overruns, it) = overruns_before_demotion(client, spec);
    assert_eq!(overruns, 0, "{when}: {it}");
}

/// What its thread has exceeded by the time that it is demoted: nothing, if it had nothing left.
pub fn overruns_before_demotion(client: &mut Client, spec: u64) -> (u64, Value) {
    until("a demotion", || enforced(client, spec)["demoted"] == json!(true));
    let it = enforced(client, spec);
    (it["overruns"].as_u64().unwrap(), it)
}

fn who_attaches_again_gets_no_new_budget() {
    let (_daemon, mut client, hog, spec) = used_up();
    for round in 0..3 {
        client.ask("DetachThread", json!({ "spec": spec }));
        client.ask("AttachThread", json!({ "spec": spec, "thread": hog.tid() }));
        is_stopped_at_once(&mut client, spec, &format!("round {round}"));
    }
}

/// Whether they take turns or end: what one has used up is used up for the next.
fn threads_of_a_spec_have_one_budget() {
    let (_daemon, mut client, mut hog, spec) = used_up();
    for round in 0..4 {
        let next = Hog::start();
        if round % 2 == 0 {
            client.ask("DetachThread", json!({ "spec": spec }));
            hog = next;
        } else {
            drop(std::mem::replace(&mut hog, next));
            let is_gone =
                |client: &mut Client| client.ask("GetSpec", json!({ "spec": spec }))["spec"].clone();
            until("the detachment", || is_gone(&mut client).get("thread").is_none());
        }
        client.ask("AttachThread", json!({ "spec": spec, "thread": hog.tid() }));
        is_stopped_at_once(&mut client, spec, &format!("round {round}"));
    }
}

/// Each comes long before the budget is used up; what was taken until then counts.
fn changes_give_no_new_budget() {
    in_time(|| {
        let daemon = Daemon::start(&config(""));
        daemon.hurry();
        let mut client = daemon.connect();
        let hog = Hog::start();
        let spec = client.schedule(parameters(40, 500, 10_000), hog.tid());
        let mut rounds = 0;
        until("a demotion", || {
            rounds += 1;
            let changed = parameters(40, 500 + rounds % 2, 10_000 + rounds % 3);
            client.ask("ChangeSpec", json!({ "spec": spec, "parameters": changed }));
            std::thread::sleep(Duration::from_millis(50));
            seen(hog.tid()).0 == OTHER
        });
        if rounds <= 3 {
            return Err(format!("the machine left the budget in {rounds} rounds"));
        }
        let it = enforced(&mut client, spec);
        assert!(it["worst_cost_ns"].as_u64().unwrap() < 900_000_000, "{rounds}: {it}");
        Ok(())
    });
}

fn demotion_survives_a_kill() {
    in_time(|| {
        let mut daemon = Daemon::start(&config(""));
        let mut client = daemon.connect();
        let hog = Hog::start();
        let before = seen(hog.tid());
        let (spec, mut first) = begin_a_period(&mut client, &hog);
        for _ in 0..3 {
            until("a demotion", || seen(hog.tid()).0 == OTHER);
            daemon.kill();
            first.gives_no_new_budget(&hog)?;
            first = First(Instant::now());
            daemon.run();
            client = daemon.connect();
            // It has its guarantee again, and is held to it again.
            until("overruns", || overruns(&mut client, spec) >= 1);
        }
        client.ask("ReleaseSpec", json!({ "spec": spec }));
        assert_eq!(seen(hog.tid()), before);
        daemon.assert_empty();
        Ok(())
    });
}

fn a_demoted_thread_is_undone() {
    let mut daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    let before = seen(hog.tid());
    client.schedule(parameters(40, 10, 3000), hog.tid());
    until("a demotion", || seen(hog.tid()).0 == OTHER);
    assert_ne!(seen(hog.tid()), before, "it stays on its processor");
    assert!(daemon.stop().success());
    assert_eq!(seen(hog.tid()), before);
}

fn a_demoted_thread_gets_its_new_priority() {
    in_time(|| {
        let daemon = Daemon::start(&config(""));
        let mut client = daemon.connect();
        let hog = Hog::start();
        let (spec, first) = begin_a_period(&mut client, &hog);
        until("a demotion", || seen(hog.tid()).0 == OTHER);
        let another = parameters(33, 10, First::PERIOD_MS);
        client.ask("ChangeSpec", json!({ "spec": spec, "parameters": another }));
        first.gives_no_new_budget(&hog)?;
        until("a promotion", || (seen(hog.tid()).0, seen(hog.tid()).1) == (FIFO, 33));
        // Without a runtime, it is not held to one.
        until("a demotion", || seen(hog.tid()).0 == OTHER);
        client.ask("ChangeSpec", json!({ "spec": spec, "parameters": { "priority": 22 } }));
        assert_eq!((seen(hog.tid()).0, seen(hog.tid()).1), (FIFO, 22));
        assert_eq!(enforced(&mut client, spec), Value::Null);
        Ok(())
    });
}

fn a_thread_that_was_real_time_is_demoted_too() {
    let daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let hog = Hog::start();
    scheduling::schedule(hog.tid(), &Scheduling::from_policy(AssignedPolicy::Fifo(3))).unwrap();
    let before = seen(hog.tid());
    let spec = client.schedule(parameters(40, 10, 3000), hog.tid());
    until("a demotion", || seen(hog.tid()).0 == OTHER);
    client.ask("ReleaseSpec", json!({ "spec": spec }));
    assert_eq!(seen(hog.tid()), before);
}

fn a_thread_that_leaves_its_processor_is_put_back() {
    let Some(elsewhere) =
        Processors::one(1).filter(|_| std::thread::available_parallelism().unwrap().get() > 1)
    else {
        return eprintln!("SKIPPED: there is one processor");
    };
    let daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    let thread: u32 = actor.tell("periodic 5 1000000").parse().unwrap();
    let spec = client.schedule(parameters(40, 10, 20), thread);
    until("its jobs", || enforced(&mut client, spec)["jobs"].as_u64().unwrap_or(0) >= 1);
    for round in 1..=3 {
        scheduling::pin(thread, &elsewhere).unwrap();
        until("its processor", || seen(thread).3 == "0");
        until("the count", || enforced(&mut client, spec)["put_back"] == json!(round));
    }
    until("the log", || daemon.log().contains("was changed by someone else to processors 1"));
}

/// They promise nothing, but go before others there, to whom something was promised.
fn threads_without_a_runtime_are_put_back() {
    let Some(elsewhere) =
        Processors::one(1).filter(|_| std::thread::available_parallelism().unwrap().get() > 1)
    else {
        return eprintln!("SKIPPED: there is one processor");
    };
    let daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    let thread: u32 = actor.tell("periodic 5 1000000").parse().unwrap();
    client.schedule(json!({ "priority": 30 }), thread);
    until("its processor", || seen(thread).3 == "0");
    // Whether its changes are heard of, shows when one is.
    for _ in 0..3 {
        until("its processor", || {
            scheduling::pin(thread, &elsewhere).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            seen(thread).3 == "0"
        });
    }
    until("the log", || daemon.log().contains("was changed by someone else to processors 1"));
}

fn a_thread_that_was_changed_is_detached() {
    let Some(elsewhere) =
        Processors::one(1).filter(|_| std::thread::available_parallelism().unwrap().get() > 1)
    else {
        return eprintln!("SKIPPED: there is one processor");
    };
    for (changes, stays) in [("detach", false), ("show", true)] {
        let daemon = Daemon::start(&config(&format!("[enforcement]\nchanges = \"{changes}\"")));
        let mut client = daemon.connect();
        let mut actor = Actor::start();
        let thread: u32 = actor.tell("periodic 5 1000000").parse().unwrap();
        let spec = client.schedule(parameters(40, 10, 20), thread);
        let it = |client: &mut Client| client.ask("GetSpec", json!({ "spec": spec }))["spec"].clone();
        until("its jobs", || it(&mut client)["enforced"]["jobs"].as_u64().unwrap_or(0) >= 1);
        scheduling::pin(thread, &elsewhere).unwrap();
        match stays {
            true => until("the note", || it(&mut client)["thread_is"] == json!("on processors 1")),
            false => until("the detachment", || it(&mut client).get("thread").is_none()),
        }
        if !stays {
            let it = it(&mut client);
            assert_eq!(it["thread_is"], json!("detached: someone else changed its scheduling"), "{it}");
            assert!(it["enforced"]["jobs"].as_u64().unwrap_or(0) >= 1, "{it}");
        }
        assert_eq!((seen(thread).0 == FIFO, seen(thread).3.as_str()), (stays, "1"));
    }
}

/// What an attached thread starts may run where the thread could before, not only beside it.
fn helpers_keep_the_processors_of_the_program() {
    let mut daemon = Daemon::start(&config(""));
    let mut client = daemon.connect();
    let mut actor = Actor::start();
    let first = actor.pid();
    let before = seen(first);
    if before.3 == "0" {
        return eprintln!("SKIPPED: there is one processor");
    }
    for parameters in [parameters(30, 10, 20), json!({ "priority": 22 })] {
        let spec = client.schedule(parameters, first);
        assert_eq!((seen(first).0, seen(first).3.as_str()), (FIFO, "0"));
        // As soon as the daemon watches.
        until("a helper at home", || {
            let helper: u32 = actor.tell("thread").parse().unwrap();
            seen(helper).3 == before.3
        });
        for _ in 0..20 {
            let helper: u32 = actor.tell("thread").parse().unwrap();
            until("the helper's processors", || seen(helper) == before);
        }
        for which in ["thread-of-threads", "thread-of-threads end"].repeat(15) {
            let helper: u32 = actor.tell(which).parse().unwrap();
            until("the processors of a helper's helper", || seen(helper) == before);
        }
        // However late the daemon hears of them, and whoever has ended meanwhile.
        for which in ["thread-of-threads", "thread-of-threads end"] {
            // Until it has looked at those before: three looks, of which the second comes after 110 ms.
            std::thread::sleep(Duration::from_millis(150));
            daemon.signal(libc::SIGSTOP);
            let helper: u32 = actor.tell(which).parse().unwrap();
            // So late that the first looks, after 10 and 100 ms, would be over.
            std::thread::sleep(Duration::from_millis(150));
            daemon.signal(libc::SIGCONT);
            until("the processors of a helper's helper, late", || seen(helper) == before);
        }
        assert_eq!(seen(first).3, "0", "it stays itself");
        client.ask("DetachThread", json!({ "spec": spec }));
        assert_eq!(seen(first), before);
        client.ask("ReleaseSpec", json!({ "spec": spec }));
    }
    // One that was started while there was no daemon.
    client.schedule(parameters(30, 10, 20), first);
    daemon.kill();
    let helper: u32 = actor.tell("thread").parse().unwrap();
    assert_eq!(seen(helper).3, "0");
    daemon.run();
    assert_eq!((seen(helper).3, seen(first).3.as_str()), (before.3, "0"));
}
