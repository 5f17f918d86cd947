//! Everything is as it was before, however the dispatcher ends.

use super::slots::exchanged;
use super::{
    Slots, checked, dispatch, given, is_emulated, start_slots, stat_field, table, unsuitable, write,
};
use crate::run::{Running, children, punctual, run, wait_until};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::processor_list;
use punctual_model::table::{OnOverrun, Table};
use punctual_test_support::{Random, is_all_wanted};
use rustix::process::Signal;
use std::fs;
use std::process::Command;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("tt::a_busy_thread_with_a_priority_does_not_keep_the_table_from_beginning", busy_before::<false>),
    ("tt::everything_is_put_back_after_kill_and_sigterm", restored::<false>),
    ("tt::a_killed_guardian_is_replaced", guardian::<false>),
    ("tt::the_kernel_runs_rcu_beside_a_table_on_all_processors", all_processors),
    (
        "tt::sched_ext::a_busy_thread_with_a_priority_does_not_keep_the_table_from_beginning",
        busy_before::<true>,
    ),
    ("tt::sched_ext::everything_is_put_back_after_kill_and_sigterm", restored::<true>),
    ("tt::sched_ext::a_killed_guardian_is_replaced", guardian::<true>),
    ("tt::sched_ext::an_ejected_scheduler_is_replaced_in_user_space", ejected),
];

/// All that a dispatcher changes of a thread: priority, nice, policy, processors, cgroup.
pub fn state(tid: u32) -> Result<Vec<String>> {
    let field = |at| stat_field(tid, at).map_or_else(|| fail(format!("thread {tid} is gone")), Ok);
    let status = fs::read_to_string(format!("/proc/{tid}/status"))?;
    let allowed = status.lines().find(|line| line.starts_with("Cpus_allowed_list"));
    let cgroups = fs::read_to_string(format!("/proc/{tid}/cgroup"))?;
    let unified = cgroups.lines().find(|line| line.starts_with("0::"));
    // Priority, nice value, real-time priority and policy.
    Ok(vec![
        field(15)?,
        field(16)?,
        field(37)?,
        field(38)?,
        allowed.unwrap_or_default().to_owned(),
        unified.unwrap_or_default().to_owned(),
    ])
}

pub fn states(slots: &Slots) -> Result<Vec<Vec<String>>> {
    slots.tids.values().map(|tid| state(*tid)).collect()
}

/// Folders and sockets that a dispatcher leaves if nobody puts anything back.
pub fn left_over() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let unified = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&"cgroup2")).then(|| words[1].to_owned())
    });
    let inside = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut left: Vec<String> = Vec::new();
    if let Some(mount) = unified {
        let names = inside(&mount).map(|entry| entry.file_name().to_string_lossy().into_owned());
        left.extend(names.filter(|name| name.starts_with("punctual-tt")));
    }
    left.extend(inside("/run/punctual-tt").map(|entry| entry.path().display().to_string()));
    left
}

/// Runs a command whose last word is a thread.
fn set(command: &str, tid: u32) -> Result {
    let mut words = command.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg(tid.to_string());
    run(command)?.expect_code(0)
}

/// A thread of the table that has a priority, never sleeps and is on the table's processor before it begins.
fn busy_before<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:sleeper"])?;
    // From user space, one above the dispatcher would keep that from its processor.
    let priority = if EXT { "chrt -f -p 85" } else { "chrt -f -p 60" };
    for command in ["taskset -cp 1", priority] {
        set(command, slots.tids["a"])?;
    }
    let before = states(&slots)?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), slots.folder.path())?;
    let recording = slots.folder.path().join("recording");
    let mut tt = dispatch::<EXT>(&table);
    tt.arg("--record").arg(&recording).args(given(&slots));
    let tt = Running::start(tt)?;
    wait_until("the thread to be dispatched", is_dispatched)?;
    tt.signal(Signal::TERM)?;
    tt.end()?.expect_code(0)?;
    checked(&recording, &table)?;
    wait_until("everything to be put back", || {
        states(&slots).is_ok_and(|now| now == before) && left_over().is_empty()
    })?;
    Ok(Outcome::Completed)
}

/// Whether the first task has had some turns.
fn is_dispatched() -> bool {
    let all = run(punctual(["tt", "status", "--json"])).ok().and_then(|ended| ended.json().ok());
    all.is_some_and(|all| all["tables"][0]["tasks"][0]["turns"].as_u64() > Some(5))
}

/// The kernel's threads that end grace periods of RCU.
fn rcu_threads() -> Vec<u32> {
    let is_one = |tid: &u32| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{tid}/{name}")).unwrap_or_default();
        ["rcu_preempt", "rcu_sched"].contains(&read("comm").trim()) && read("cmdline").is_empty()
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
}

/// Without a processor of its own, RCU has nothing but what the table leaves.
fn all_processors() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<false>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:busy"])?;
    let rcu = rcu_threads();
    ensure!(!rcu.is_empty(), "no thread of RCU was found");
    let everything = || -> Result<Vec<Vec<String>>> {
        let mut all = states(&slots)?;
        rcu.iter().try_for_each(|tid| state(*tid).map(|state| all.push(state)))?;
        Ok(all)
    };
    let before = everything()?;
    let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let processors = processor_list(&online).unwrap_or_default();
    let table = write(Table { processors, ..exchanged([0, 1]) }, slots.folder.path())?;
    for signal in [Signal::TERM, Signal::KILL] {
        let mut tt = dispatch::<false>(&table);
        tt.args(given(&slots));
        let tt = Running::start(tt)?;
        wait_until("the threads to be dispatched", is_dispatched)?;
        for tid in &rcu {
            let priority = state(*tid)?[2].clone();
            ensure!(priority.parse::<u32>().is_ok_and(|priority| priority >= 79), "it has {priority}");
        }
        tt.signal(signal)?;
        tt.end()?;
        wait_until("everything to be put back", || {
            everything().is_ok_and(|now| now == before) && left_over().is_empty()
        })?;
    }
    Ok(Outcome::Completed)
}

fn restored<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:sleeper", "c:forks"])?;
    for (command, name) in [("chrt -f -p 7", "a"), ("chrt -b -p 0", "b"), ("taskset -cp 0", "c")] {
        set(command, slots.tids[name])?;
    }
    let before = states(&slots)?;
    let table = write(table(&["a", "b", "c"], OnOverrun::Continue), slots.folder.path())?;
    let mut random = Random(17);
    let rounds = if is_all_wanted() { 100 } else { 7 };
    for round in 0..rounds {
        let mut tt = dispatch::<EXT>(&table);
        tt.arg("--quiet").args(given(&slots));
        let tt = Running::start(tt)?;
        let longest = if is_emulated() { 4_000_000 } else { 600_000 };
        std::thread::sleep(std::time::Duration::from_micros(random.below(longest)));
        let signal = if round % 4 == 0 { Signal::TERM } else { Signal::KILL };
        tt.signal(signal)?;
        let ended = tt.end()?;
        let is_back = || states(&slots).is_ok_and(|now| now == before) && left_over().is_empty();
        let waited = wait_until("everything to be put back", is_back);
        ensure!(
            waited.is_ok(),
            "round {round}: {:?} instead of {before:?}, left over {:?}: {}",
            states(&slots)?,
            left_over(),
            ended.all()
        );
    }
    Ok(Outcome::Completed)
}

fn guardian<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:busy"])?;
    let before = states(&slots)?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), slots.folder.path())?;
    let mut tt = dispatch::<EXT>(&table);
    tt.args(given(&slots));
    let tt = Running::start(tt)?;
    wait_until("the threads to be dispatched", || states(&slots).is_ok_and(|now| now != before))?;
    wait_until("the guardian", || !children(tt.pid()).is_empty())?;
    let first = children(tt.pid());
    for child in &first {
        let mut kill = Command::new("kill");
        kill.args(["-KILL", &child.to_string()]);
        run(kill)?;
    }
    wait_until("another guardian", || children(tt.pid()).iter().any(|child| !first.contains(child)))?;
    // It has to be told first what to put back.
    std::thread::sleep(std::time::Duration::from_secs(1));
    tt.signal(Signal::KILL)?;
    tt.end()?;
    wait_until("everything to be put back", || {
        states(&slots).is_ok_and(|now| now == before) && left_over().is_empty()
    })?;
    Ok(Outcome::Completed)
}

/// The kernel ends the scheduler, as SysRq-S has it do.
fn ejected() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<true>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:sleeper"])?;
    let before = states(&slots)?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), slots.folder.path())?;
    let recording = slots.folder.path().join("recording");
    let mut tt = dispatch::<true>(&table);
    tt.arg("--record").arg(&recording).args(given(&slots));
    let tt = Running::start(tt)?;
    let turns = |by: &str| {
        let all = run(punctual(["tt", "status", "--json"])).ok().and_then(|ended| ended.json().ok());
        let it = all.map(|all| all["tables"][0].clone()).unwrap_or_default();
        if it["dispatcher"] == by { it["processors"][0]["turns"].as_u64().unwrap_or(0) } else { 0 }
    };
    wait_until("the first turns", || turns("sched_ext") > 10)?;
    fs::write("/proc/sysrq-trigger", "S")?;
    wait_until("turns from user space", || turns("user") > 0)?;
    let then = turns("user");
    wait_until("more turns from user space", || turns("user") > then + 20)?;
    tt.signal(Signal::TERM)?;
    let ended = tt.end()?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("it goes on in user space"), "{}", ended.all());
    checked(&recording, &table)?;
    wait_until("everything to be put back", || {
        states(&slots).is_ok_and(|now| now == before) && left_over().is_empty()
    })?;
    Ok(Outcome::Completed)
}
