//! RealtimeKit's interface: a bus of the test's own with the policy that is installed, the daemon on it, and
//! the clients that others wrote: `dbus-send`, RTKit's own test, PipeWire.

use crate::rig::{Daemon, OTHER, PATIENCE, seen, spawn_urgently, until};
use libtest_mimic::{Completion, Failed};
use punctual_linux::scheduling::{self, Processors, Scheduling};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Tests, and the programs that they need.
#[allow(clippy::type_complexity)] // Name, what it needs, and the test.
pub const TESTS: &[(&str, &[&str], fn())] = &[
    ("bus::threads_get_priorities_and_lose_them", &[BUS, SEND], threads_get_priorities_and_lose_them),
    ("bus::refusals_are_those_of_rtkit", &[BUS, SEND], refusals_are_those_of_rtkit),
    ("bus::a_priority_that_was_given_back_is_given_again", &[BUS, SEND], a_priority_is_given_again),
    ("bus::a_detached_thread_ends_its_spec", &[BUS, SEND], a_detached_thread_ends_its_spec),
    ("bus::budgets_are_admitted", &[BUS, SEND], budgets_are_admitted),
    ("bus::a_killed_daemon_keeps_its_threads", &[BUS, SEND], a_killed_daemon_keeps_its_threads),
    ("bus::the_name_is_taken_again_after_the_bus_ended", &[BUS, SEND], the_name_is_taken_again),
    ("bus::rtkits_own_test_passes", &[BUS, RTKIT_TEST], rtkits_own_test_passes),
    ("bus::pipewire_gets_its_priorities", &[BUS, PIPEWIRE, PIPEWIRE_RT], pipewire_gets_its_priorities),
];

pub const BUS: &str = "/usr/bin/dbus-daemon";
const SEND: &str = "/usr/bin/dbus-send";
const RTKIT_TEST: &str = "/usr/libexec/installed-tests/rtkit/rtkit-test";
const PIPEWIRE: &str = "/usr/bin/pipewire";
const PIPEWIRE_RT: &str = "/usr/lib/*/pipewire-0.3/libpipewire-module-rt.so";

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/org.freedesktop.RealtimeKit1.conf");

const RR: u32 = libc::SCHED_RR as u32;
const NOBODY: u32 = 65534;
const ANOTHER: u32 = 1;
const RULES: &str = "65534 RR max_priority 15\n65534 NICE min_nice -12\n";

/// Runs a test, or says what is missing.
pub fn run(needs: &[&str], test: fn()) -> Result<Completion, Failed> {
    let there = |path: &&&str| match path.split_once('*') {
        None => Path::new(path).exists(),
        Some((folder, file)) => fs::read_dir(folder)
            .is_ok_and(|mut all| all.any(|it| it.is_ok_and(|it| it.path().join(&file[1..]).exists()))),
    };
    match needs.iter().find(|path| !there(path)) {
        Some(missing) => Ok(Completion::ignored_with(format!("{missing} is missing: scripts/setup test"))),
        None => crate::run(test),
    }
}

/// A bus, and a daemon on it.
struct Rig {
    daemon: Daemon,
    bus: Child,
}

fn configuration(bus: &Path, more: &str) -> String {
    format!(
        r#"
[rules]
file = "rules.conf"
[realtimekit]
bus = "unix:path={}"
max_realtime_priority = 30
{more}
[[plugin]]
name = "RR"
kind = "RR"
priorities = [1, 40]
processors = "0"
[[plugin]]
name = "NICE"
kind = "NICE"
"#,
        bus.display()
    )
}

impl Rig {
    fn start(rules: &str, more: &str) -> Rig {
        let mut daemon = Daemon::with_rules(crate::rig::PLUGINS, "");
        assert!(daemon.stop().success());
        daemon.write("rules.conf", rules);
        daemon.write("punctuald.toml", &configuration(&daemon.path("bus"), more));
        let bus = start_bus(&daemon, Path::new(POLICY));
        daemon.run();
        let rig = Rig { daemon, bus };
        rig.wait_for_name(1);
        rig
    }

    /// Waits until the daemon has the name for the given time.
    fn wait_for_name(&self, time: usize) {
        until("the name", || self.daemon.log().matches("serving org.freedesktop").count() >= time);
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.daemon.path("bus").display())
    }

    fn command(&self, program: &str, user: u32) -> Command {
        let mut command = Command::new(program);
        command.uid(user).gid(user).env("DBUS_SYSTEM_BUS_ADDRESS", self.address());
        command
    }

    /// Calls a method as a user; the error's name and text, if there is one.
    fn call(&self, user: u32, method: &str, arguments: &[String]) -> Result<String, (String, String)> {
        let mut command = self.command(SEND, user);
        command.args(["--system", "--print-reply", "--dest=org.freedesktop.RealtimeKit1"]);
        command.arg("/org/freedesktop/RealtimeKit1").arg(method).args(arguments);
        let Output { status, stdout, stderr } = command.output().unwrap();
        if status.success() {
            return Ok(String::from_utf8(stdout).unwrap());
        }
        let said = String::from_utf8(stderr).unwrap();
        let said = said.strip_prefix("Error ").unwrap_or_else(|| panic!("{said}"));
        let (name, text) = said.split_once(": ").unwrap_or((said, ""));
        Err((name.rsplit('.').next().unwrap().trim().to_owned(), text.trim().to_owned()))
    }

    fn realtime(&self, user: u32, thread: u32, priority: u32) -> Result<(), (String, String)> {
        let method = "org.freedesktop.RealtimeKit1.MakeThreadRealtimeWithPID";
        let arguments =
            [format!("uint64:{thread}"), format!("uint64:{thread}"), format!("uint32:{priority}")];
        self.call(user, method, &arguments).map(drop)
    }

    fn nice(&self, user: u32, thread: u32, nice: i32) -> Result<(), (String, String)> {
        let method = "org.freedesktop.RealtimeKit1.MakeThreadHighPriorityWithPID";
        let arguments = [format!("uint64:{thread}"), format!("uint64:{thread}"), format!("int32:{nice}")];
        self.call(user, method, &arguments).map(drop)
    }

    fn specs(&self) -> Vec<Value> {
        self.daemon.connect().ask("ListSpecs", json!({}))["specs"].as_array().unwrap().clone()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}

/// A bus at `bus` in the daemon's folder, with the policy of one service.
pub fn start_bus(daemon: &Daemon, policy: &Path) -> Child {
    let policy = policy.display();
    let text = format!(
        r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow send_type="signal"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
  <include>{policy}</include>
</busconfig>
"#,
        daemon.path("bus").display()
    );
    daemon.write("bus.conf", &text);
    let config = format!("--config-file={}", daemon.path("bus.conf").display());
    let mut bus = Command::new(BUS);
    bus.args([&config, "--nofork", "--nopidfile", "--print-address"]).stdout(Stdio::piped());
    let mut bus = spawn_urgently(bus.stderr(Stdio::null()));
    let mut address = String::new();
    BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert!(address.starts_with("unix:"), "the bus does not start");
    bus
}

/// A process of a user, with the limit that RTKit demands or with none.
struct Player(Child);

impl Player {
    fn start(user: u32, limit: &str) -> Player {
        let mut command = Command::new("/usr/bin/prlimit");
        command.arg(format!("--rttime={limit}")).args(["sleep", "1000"]).uid(user).gid(user);
        let player = Player(command.spawn().unwrap());
        // By then its limit is set.
        let comm = format!("/proc/{}/comm", player.tid());
        until("sleep", || fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n"));
        player
    }

    fn limited(user: u32) -> Player {
        Player::start(user, "200000")
    }

    fn tid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn threads_get_priorities_and_lose_them() {
    let rig = Rig::start(RULES, "");
    let player = Player::limited(NOBODY);
    let before = seen(player.tid());
    rig.nice(NOBODY, player.tid(), -11).unwrap();
    let (policy, _, nice, processors) = seen(player.tid());
    assert_eq!((policy, nice, processors), (OTHER, -11, before.3.clone()), "it is not pinned");
    rig.realtime(NOBODY, player.tid(), 10).unwrap();
    assert_eq!(seen(player.tid()), (RR, 10, seen(player.tid()).2, "0".into()));
    rig.realtime(NOBODY, player.tid(), 12).unwrap();
    assert_eq!((seen(player.tid()).0, seen(player.tid()).1), (RR, 12));
    let specs = rig.specs();
    assert_eq!(specs.len(), 1, "one spec, changed: {specs:?}");
    assert_eq!(specs[0]["name"], json!("RealtimeKit"));
    assert_eq!((&specs[0]["user"], &specs[0]["thread"]), (&json!(NOBODY), &json!(player.tid())));
    assert_eq!(specs[0]["process"], json!(player.tid()));
    // Root lets all of them go; others may not.
    let reset = "org.freedesktop.RealtimeKit1.ResetKnown";
    assert_eq!(rig.call(NOBODY, reset, &[]).unwrap_err().0, "AccessDenied");
    rig.call(0, reset, &[]).unwrap();
    assert_eq!(seen(player.tid()), before);
    assert_eq!(rig.specs(), Vec::<Value>::new());
    // A spec ends with its thread.
    rig.realtime(NOBODY, player.tid(), 10).unwrap();
    drop(player);
    until("the end of the spec", || rig.specs().is_empty());
    rig.daemon.assert_empty();
}

fn refusals_are_those_of_rtkit() {
    let rig = Rig::start(RULES, "");
    let player = Player::limited(NOBODY);
    let refused = |user, priority| rig.realtime(user, player.tid(), priority).unwrap_err();
    assert_eq!(refused(NOBODY, 0).0, "Failed");
    assert_eq!(refused(NOBODY, 100).0, "Failed");
    let (name, text) = refused(NOBODY, 31);
    assert_eq!((name.as_str(), text.contains("above the greatest, 30")), ("AccessDenied", true), "{text}");
    let (name, text) = refused(NOBODY, 16);
    assert_eq!((name.as_str(), text.contains("max_priority is 15")), ("AccessDenied", true), "{text}");
    let (name, text) = refused(ANOTHER, 10);
    assert_eq!((name.as_str(), text.contains("another user")), ("AccessDenied", true), "{text}");
    assert_eq!(rig.nice(NOBODY, player.tid(), -16).unwrap_err().0, "AccessDenied");
    let (name, text) = rig.nice(NOBODY, player.tid(), -13).unwrap_err();
    assert_eq!((name.as_str(), text.contains("min_nice is -12")), ("AccessDenied", true), "{text}");
    let unlimited = Player::start(NOBODY, "unlimited");
    let (name, text) = rig.realtime(NOBODY, unlimited.tid(), 10).unwrap_err();
    assert_eq!((name.as_str(), text.contains("RLIMIT_RTTIME")), ("AccessDenied", true), "{text}");
    let mine = Player::limited(ANOTHER);
    let (name, text) = rig.realtime(ANOTHER, mine.tid(), 10).unwrap_err();
    assert_eq!(name, "AccessDenied", "no rule is for this user: {text}");
    // A thread that is not of that process.
    let method = "org.freedesktop.RealtimeKit1.MakeThreadRealtimeWithPID";
    let other = Player::limited(NOBODY);
    let arguments =
        [format!("uint64:{}", player.tid()), format!("uint64:{}", other.tid()), "uint32:10".to_owned()];
    assert_eq!(rig.call(NOBODY, method, &arguments).unwrap_err().0, "Failed");
    // A thread that its owner has declared otherwise.
    let declared = rig.daemon.connect().create(json!({ "priority": 5 }));
    rig.daemon.connect().ask("AttachThread", json!({ "spec": declared, "thread": player.tid() }));
    assert_eq!(refused(NOBODY, 10).0, "AccessDenied");
    rig.daemon.connect().ask("ReleaseSpec", json!({ "spec": declared }));
    assert_eq!(rig.call(0, "org.freedesktop.RealtimeKit1.Exit", &[]).unwrap_err().0, "NotSupported");
    let get = "org.freedesktop.DBus.Properties.Get";
    for (property, value) in [
        ("MaxRealtimePriority", "int32 30"),
        ("MinNiceLevel", "int32 -15"),
        ("RTTimeUSecMax", "int64 200000"),
    ] {
        let arguments = ["string:org.freedesktop.RealtimeKit1".into(), format!("string:{property}")];
        let reply = rig.call(NOBODY, get, &arguments).unwrap();
        assert!(reply.contains(value), "{property}: {reply}");
    }
    assert_eq!((seen(player.tid()).0, seen(unlimited.tid()).0), (OTHER, OTHER));
    assert_eq!(rig.specs(), Vec::<Value>::new());
}

/// A program that calls `sched_setscheduler(2)` itself, and then asks again.
fn a_priority_is_given_again() {
    let rig = Rig::start(RULES, "");
    let player = Player::limited(NOBODY);
    let (before, thread) = (seen(player.tid()), player.tid());
    for priority in [10, 10, 12] {
        rig.realtime(NOBODY, thread, priority).unwrap();
        assert_eq!((seen(thread).0, seen(thread).1, seen(thread).3.as_str()), (RR, priority, "0"));
        scheduling::schedule(thread, &Scheduling::ordinary()).unwrap();
        if priority == 10 {
            scheduling::pin(thread, &Processors::from_words([u64::MAX; Processors::MOST / 64])).unwrap();
        }
    }
    rig.nice(NOBODY, thread, -11).unwrap();
    assert_eq!((seen(thread).0, seen(thread).2, seen(thread).3), (OTHER, -11, before.3.clone()));
    scheduling::schedule(thread, &Scheduling::ordinary()).unwrap();
    rig.nice(NOBODY, thread, -11).unwrap();
    assert_eq!((seen(thread).0, seen(thread).2), (OTHER, -11));
    assert_eq!(rig.specs().len(), 1);
    rig.call(0, "org.freedesktop.RealtimeKit1.ResetKnown", &[]).unwrap();
    assert_eq!(seen(thread), before);
}

/// Nobody knows its number, so that nobody would attach another.
fn a_detached_thread_ends_its_spec() {
    let rig = Rig::start(RULES, "budget = [2000, 10000]\n");
    let player = Player::limited(NOBODY);
    let before = seen(player.tid());
    rig.realtime(NOBODY, player.tid(), 10).unwrap();
    let spec = rig.specs()[0]["admission"]["spec"].clone();
    rig.daemon.connect().ask("DetachThread", json!({ "spec": spec }));
    assert_eq!(seen(player.tid()), before);
    rig.daemon.assert_empty();
}

/// Two tenths of a processor each: four of them leave no fifth.
fn budgets_are_admitted() {
    let rig = Rig::start(RULES, "budget = [2000, 10000]\n");
    let players: Vec<Player> = (0..5).map(|_| Player::limited(NOBODY)).collect();
    for player in &players[..4] {
        rig.realtime(NOBODY, player.tid(), 10).unwrap();
    }
    let (name, text) = rig.realtime(NOBODY, players[4].tid(), 10).unwrap_err();
    assert_eq!((name.as_str(), text.contains("not admitted")), ("AccessDenied", true), "{text}");
    assert_eq!(seen(players[4].tid()).0, OTHER);
    assert_eq!(rig.specs()[0]["admission"]["accepted_runtime_ns"], json!(2_000_000));
}

fn a_killed_daemon_keeps_its_threads() {
    let mut rig = Rig::start(RULES, "");
    let (stays, ends) = (Player::limited(NOBODY), Player::limited(NOBODY));
    let before = seen(stays.tid());
    rig.realtime(NOBODY, stays.tid(), 10).unwrap();
    rig.nice(NOBODY, ends.tid(), -12).unwrap();
    rig.daemon.kill();
    drop(ends);
    assert_eq!((seen(stays.tid()).0, seen(stays.tid()).1), (RR, 10));
    rig.daemon.run();
    rig.wait_for_name(2);
    assert_eq!(rig.specs().len(), 1);
    rig.nice(NOBODY, stays.tid(), -5).unwrap();
    assert_eq!((seen(stays.tid()).0, seen(stays.tid()).2), (OTHER, -5));
    assert!(rig.daemon.stop().success());
    assert_eq!(seen(stays.tid()), before);
}

fn the_name_is_taken_again() {
    let mut rig = Rig::start(RULES, "");
    rig.bus.kill().unwrap();
    rig.bus.wait().unwrap();
    fs::remove_file(rig.daemon.path("bus")).unwrap();
    until("the loss", || rig.daemon.log().contains("cannot be served"));
    rig.bus = start_bus(&rig.daemon, Path::new(POLICY));
    rig.wait_for_name(2);
    let player = Player::limited(NOBODY);
    rig.realtime(NOBODY, player.tid(), 10).unwrap();
    // Without the table, the name is given back.
    rig.daemon.write("rules.conf", "");
    rig.daemon.reload(crate::rig::PLUGINS);
    until("the end of the service", || {
        rig.realtime(NOBODY, player.tid(), 10).is_err_and(|(name, _)| name == "ServiceUnknown")
    });
}

fn rtkits_own_test_passes() {
    let rig = Rig::start(RULES, "");
    let Output { stdout, stderr, .. } = rig.command(RTKIT_TEST, NOBODY).output().unwrap();
    let said = String::from_utf8(stdout).unwrap();
    for expected in [
        "Max realtime priority is: 30\n",
        "Min nice level is: -15\n",
        "Rttime limit is: 200000 ns\n",
        "Successfully became high priority.\nafter high priority:\n\tSCHED_RESET_ON_FORK: yes\n\
         \tSCHED_OTHER with nice level: -10\n",
        "Successfully became realtime.\nafter realtime:\n\tSCHED_RESET_ON_FORK: yes\n\
         \tSCHED_RR with priority 10\n",
    ] {
        assert!(said.contains(expected), "{said}\n{}", String::from_utf8_lossy(&stderr));
    }
}

/// PipeWire as it is installed, with its module for real-time alone.
fn pipewire_gets_its_priorities() {
    let rig = Rig::start(RULES, "");
    let folder: PathBuf = rig.daemon.path("pipewire");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    rig.daemon.write(
        "test.conf",
        "context.properties = { core.daemon = true core.name = pipewire-0 }\n\
         context.spa-libs = { support.* = support/libspa-support }\n\
         context.modules = [\n\
         { name = libpipewire-module-rt args = { nice.level = -11 rt.prio = 14 rt.time.soft = 100000\n\
         rt.time.hard = 100000 rlimits.enabled = false rtportal.enabled = false } }\n\
         { name = libpipewire-module-protocol-native } ]\n",
    );
    let mut command = rig.command(PIPEWIRE, NOBODY);
    command.env("PIPEWIRE_CONFIG_DIR", rig.daemon.path("")).env("XDG_RUNTIME_DIR", &folder);
    command.args(["-c", "test.conf"]).env("PIPEWIRE_DEBUG", "3").env_remove("PUNCTUALD_SOCKET");
    let log = rig.daemon.path("pipewire.log");
    let pipewire = Player(command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap());
    let threads = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", pipewire.tid())).unwrap();
        tasks.map(|it| it.unwrap().file_name().to_str().unwrap().parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    let begin = std::time::Instant::now();
    while !threads().iter().any(|&thread| is_realtime(pipewire.tid(), thread, 14)) {
        let said = || fs::read_to_string(&log).unwrap_or_default();
        assert!(begin.elapsed() < PATIENCE, "no thread is real-time: {}\n{}", said(), rig.daemon.log());
        std::thread::yield_now();
    }
    until("the nice level", || seen(pipewire.tid()).2 == -11);
    let specs = rig.specs();
    assert_eq!(specs.len(), 2, "{specs:?}");
    assert!(specs.iter().all(|spec| spec["process"] == json!(pipewire.tid())), "{specs:?}");
    drop(pipewire);
    until("the end of its specs", || rig.specs().is_empty());
}

fn is_realtime(process: u32, thread: u32, priority: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")) else { return false };
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    (fields[38], fields[37]) == ("2", priority.to_string().as_str())
}
