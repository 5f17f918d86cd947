//! A table while it is dispatched: its status, threads that are stopped, and tables that are refused.

use super::{
    Slots, checked, dispatch, given, seconds, start_slots, stat_field, states, table, unsuitable, write,
};
use crate::run::{Running, directory, punctual, run, wait_until};
use crate::{Outcome, Result, Test, ensure, skip};
use punctual_model::table::OnOverrun;
use rustix::process::Signal;
use std::process::Command;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("tt::a_stopped_thread_gets_no_slot_of_others", stopped::<false>),
    ("tt::overruns_are_stopped_where_the_table_says_so", stop_on_overrun::<false>),
    ("tt::status_shows_slots_and_threads", status::<false>),
    ("tt::a_thread_that_gets_a_priority_above_the_table_is_taken_back", above::<false>),
    ("tt::a_stopped_dispatcher_is_said_to_be_silent", silent),
    ("tt::threads_of_another_table_are_left_to_it", held),
    ("tt::a_table_for_another_machine_is_refused", refused),
    ("tt::the_state_at_the_end_has_the_last_turns", last_turns::<false>),
    ("tt::sched_ext::a_stopped_thread_gets_no_slot_of_others", stopped::<true>),
    ("tt::sched_ext::overruns_are_stopped_where_the_table_says_so", stop_on_overrun::<true>),
    ("tt::sched_ext::a_thread_that_gets_a_priority_above_the_table_is_taken_back", above::<true>),
    ("tt::sched_ext::status_shows_slots_and_threads", status::<true>),
    ("tt::sched_ext::the_state_at_the_end_has_the_last_turns", last_turns::<true>),
];

/// Two threads that never sleep, the command that dispatches them, and their table.
fn two_busy<const EXT: bool>() -> Result<(Slots, Command, String)> {
    let slots = start_slots(&["a:busy", "b:busy"])?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), slots.folder.path())?;
    let mut tt = dispatch::<EXT>(&table);
    tt.args(given(&slots));
    Ok((slots, tt, table))
}

fn stopped<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let (slots, mut tt, table) = two_busy::<EXT>()?;
    let recording = slots.folder.path().join("recording");
    tt.args(["--for", &seconds(2), "--record"]).arg(&recording);
    let tt = Running::start(tt)?;
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        slots.running.signal(Signal::STOP)?;
        std::thread::sleep(std::time::Duration::from_millis(100));
        slots.running.signal(Signal::CONT)?;
    }
    let ended = tt.end()?;
    ended.expect_code(0)?;
    checked(&recording, &table)?;
    slots.running.signal(Signal::TERM)?;
    slots.running.end()?.expect_code(0)?;
    ensure!(slots.log.is_file(), "the threads logged nothing");
    Ok(Outcome::Completed)
}

fn last_turns<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let (slots, mut tt, table) = two_busy::<EXT>()?;
    let recording = slots.folder.path().join("recording");
    tt.args(["--json", "--for", &seconds(1), "--record"]).arg(&recording);
    let ended = run(tt)?;
    ended.expect_code(0)?;
    let ended = ended.json()?;
    let sum = |of: &str, what: &str| -> Option<u64> {
        ended["table"][of].as_array()?.iter().map(|it| it[what].as_u64()).sum()
    };
    let recorded = || -> Result<serde_json::Value> {
        let mut check = punctual(["tt", "check", "--json"]);
        check.arg(&recording).arg(&table);
        run(check)?.json()
    };
    let found = recorded()?;
    ensure!(found["turns"].as_u64() > Some(0), "{found}");
    ensure!(sum("processors", "turns") == found["turns"].as_u64(), "{ended:#} {found:#}");
    ensure!(sum("tasks", "overruns") == found["overruns"].as_u64(), "{ended:#} {found:#}");
    // A run that is refused leaves the recording as it is.
    let mut refused = dispatch::<EXT>(&table);
    refused.args(["--force", "--record"]).arg(&recording).args(["--", "/there/is/no/such/program"]);
    run(refused)?.expect_code(4)?;
    ensure!(recorded()? == found, "the recording has changed");
    drop(slots);
    Ok(Outcome::Completed)
}

fn stop_on_overrun<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy"])?;
    let table = write(table(&["a"], OnOverrun::Stop), slots.folder.path())?;
    let mut tt = dispatch::<EXT>(&table);
    tt.args(given(&slots));
    let tt = Running::start(tt)?;
    let state = || stat_field(slots.tids["a"], 0).unwrap_or_default();
    wait_until("the thread to be stopped", || state() == "T")?;
    tt.signal(Signal::TERM)?;
    let ended = tt.end()?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("is stopped until the table ends"), "{}", ended.all());
    wait_until("the thread to go on", || state() == "R")?;
    Ok(Outcome::Completed)
}

fn above<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let (slots, tt, _) = two_busy::<EXT>()?;
    let before = states(&slots)?;
    let tt = Running::start(tt)?;
    wait_until("the threads to be bound", || states(&slots).is_ok_and(|now| now != before))?;
    let is_dispatched = || {
        let status = run(punctual(["tt", "status", "--json"])).ok().and_then(|ended| ended.json().ok());
        status.is_some_and(|all| all["tables"][0]["processors"][0]["turns"].as_u64() > Some(0))
    };
    wait_until("the first turn", is_dispatched)?;
    // The field rt_priority; while it is so, nothing else runs on its processor.
    let thread = slots.tids["a"];
    let priority = || stat_field(thread, 37).unwrap_or_default();
    for _ in 0..5 {
        let mut chrt = Command::new("chrt");
        chrt.args(["-f", "-p", "99", &thread.to_string()]);
        run(chrt)?.expect_code(0)?;
        wait_until("the thread to be taken back", || priority() != "99")?;
    }
    tt.signal(Signal::TERM)?;
    let ended = tt.end()?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("something set the policy to"), "{}", ended.all());
    ensure!(states(&slots)? == before, "not as before");
    Ok(Outcome::Completed)
}

fn status<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let (slots, tt, table) = two_busy::<EXT>()?;
    let tt = Running::start(tt)?;
    let mut last = String::new();
    let is_shown = || {
        let Ok(ended) = run(punctual(["tt", "status", "--json"])) else { return false };
        last.clone_from(&ended.stdout);
        let Ok(all) = ended.json() else { return false };
        let it = &all["tables"][0];
        it["pid"] == tt.pid()
            && it["tasks"][0]["tid"] == slots.tids["a"]
            && it["tasks"][1]["overruns"].as_u64() > Some(0)
            && it["processors"][0]["turns"].as_u64() > Some(10)
    };
    let waited = wait_until("the status", is_shown);
    ensure!(waited.is_ok(), "{last}");
    let text = run(punctual(["tt", "status"]))?;
    ensure!(text.stdout.contains(if EXT { "sched_ext" } else { "user space" }), "{}", text.all());
    // A second table for the same processor is refused.
    let mut second = dispatch::<EXT>(&table);
    second.args(["--for", "1"]);
    let second = run(second)?;
    second.expect_code(4)?;
    tt.signal(Signal::INT)?;
    tt.end()?.expect_code(0)?;
    let none = run(punctual(["tt", "status"]))?;
    ensure!(none.stdout.contains("No table"), "{}", none.all());
    Ok(Outcome::Completed)
}

fn silent() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<false>() {
        return skip(reason);
    }
    let (slots, tt, table) = two_busy::<false>()?;
    let before = states(&slots)?;
    let tt = Running::start(tt)?;
    wait_until("the threads to be bound", || states(&slots).is_ok_and(|now| now != before))?;
    let is_shown = || run(punctual(["tt", "status"])).is_ok_and(|ended| ended.stdout.contains("Processor"));
    wait_until("the status", is_shown)?;
    // Ctrl-Z changes nothing.
    tt.signal(Signal::TSTP)?;
    ensure!(is_shown(), "Ctrl-Z has stopped it");
    tt.signal(Signal::STOP)?;
    let asked = run(punctual(["tt", "status", "--json"]));
    let second = run(dispatch::<false>(&table));
    tt.signal(Signal::CONT)?;
    let asked = asked?;
    asked.expect_code(4)?;
    ensure!(asked.json()?["silent"][0] == tt.pid(), "{}", asked.all());
    ensure!(asked.stderr.contains("does not answer"), "{}", asked.all());
    // It may have the processors of any table.
    second?.expect_code(4)?;
    wait_until("the status", is_shown)?;
    tt.signal(Signal::INT)?;
    tt.end()?.expect_code(0)?;
    Ok(Outcome::Completed)
}

fn held() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<false>() {
        return skip(reason);
    }
    let (slots, mut tt, first) = two_busy::<false>()?;
    let recording = slots.folder.path().join("recording");
    tt.arg("--record").arg(&recording);
    let before = states(&slots)?;
    let tt = Running::start(tt)?;
    wait_until("the threads to be bound", || states(&slots).is_ok_and(|now| now != before))?;
    let mut elsewhere = table(&["a", "b"], OnOverrun::Continue);
    elsewhere.processors = vec![0];
    elsewhere.runs.iter_mut().for_each(|run| run.processor = 0);
    let folder = directory()?;
    let mut second = dispatch::<false>(&write(elsewhere, folder.path())?);
    second.args(given(&slots)).args(["--json", "--for", &seconds(1)]);
    let ended = run(second)?;
    ended.expect_code(0)?;
    let its = format!("it belongs to the table that process {} dispatches", tt.pid());
    ensure!(ended.stderr.contains(&its), "{}", ended.all());
    ensure!(ended.json()?["table"]["tasks"][0]["tid"].is_null(), "{}", ended.all());
    tt.signal(Signal::INT)?;
    let ended = tt.end()?;
    ended.expect_code(0)?;
    ensure!(!ended.stderr.contains("something set"), "{}", ended.all());
    checked(&recording, &first)?;
    ensure!(states(&slots)? == before, "not as before");
    Ok(Outcome::Completed)
}

fn refused() -> Result<Outcome> {
    let folder = directory()?;
    let mut elsewhere = table(&["a"], OnOverrun::Continue);
    elsewhere.processors = vec![1_000];
    elsewhere.runs.iter_mut().for_each(|run| run.processor = 1_000);
    let path = write(elsewhere, folder.path())?;
    let ended = run(punctual(["tt", "run", &path, "--for", "1"]))?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("processor 1000"), "{}", ended.all());
    let mut check = punctual(["tt", "check"]);
    check.arg(folder.path()).arg(&path);
    run(check)?.expect_code(5)?;
    Ok(Outcome::Completed)
}
