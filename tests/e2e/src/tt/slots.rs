//! Threads run in their own slots and in no others, whatever they do.

use super::seen::{Seen, carried_out, dispatched};
use super::{SLOT, seconds, table, unsuitable};
use crate::{Outcome, Result, Test, ensure, skip};
use punctual_model::table::{Clock, OnOverrun, Table, TableJob, TableRun, TableTask};
use punctual_trace::dispatch::Turn;
use std::path::Path;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("tt::threads_run_in_their_slots_only", slots::<false>),
    ("tt::threads_that_sleep_fork_and_change_their_policy_stay_in_their_slots", hardship::<false>),
    ("tt::a_thread_that_ends_or_execs_is_noticed", ends::<false>),
    ("tt::the_job_after_an_overrun_is_skipped_where_the_table_says_so", skip_on_overrun::<false>),
    ("tt::threads_change_processors_where_the_table_says_so", migration::<false>),
    ("tt::threads_with_locks_of_the_kernel_change_processors", migration_with_locks),
    ("tt::slots_follow_the_clock_of_the_table", tai::<false>),
    ("tt::sched_ext::threads_run_in_their_slots_only", slots::<true>),
    ("tt::sched_ext::threads_that_sleep_fork_and_change_their_policy_stay_in_their_slots", hardship::<true>),
    ("tt::sched_ext::a_thread_that_ends_or_execs_is_noticed", ends::<true>),
    ("tt::sched_ext::the_job_after_an_overrun_is_skipped_where_the_table_says_so", skip_on_overrun::<true>),
    ("tt::sched_ext::threads_change_processors_where_the_table_says_so", migration::<true>),
    ("tt::sched_ext::slots_follow_the_clock_of_the_table", tai::<true>),
];

/// Ten slots on two processors, which two threads exchange at the third slot: a a b b and b b a a.
pub fn exchanged(processors: [u32; 2]) -> Table {
    let [one, other] = processors;
    let task = |name: &str| TableTask {
        name: name.into(),
        wcet: 4,
        ..table(&["a"], OnOverrun::Continue).tasks.remove(0)
    };
    let run = |processor, from, job| TableRun { processor, from, to: from + 2, job };
    let job = |task| TableJob { task, release: 0, deadline: 10, slots: 4 };
    let mut runs = vec![run(one, 0, 0), run(one, 2, 1), run(other, 0, 1), run(other, 2, 0)];
    runs.sort_by_key(|run| (run.processor, run.from));
    Table {
        processors: processors.to_vec(),
        tasks: vec![task("a"), task("b")],
        jobs: vec![job(0), job(1)],
        runs,
        ..table(&["a"], OnOverrun::Continue)
    }
}

fn slots<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let seen =
        dispatched::<EXT>(&["a:busy", "b:busy", "c:busy"], OnOverrun::Continue, &["--for", &seconds(1)])?;
    let used = seen.check()?;
    ensure!(used.len() == 3 && used.values().all(|&turns| turns > 5), "hardly a turn was used: {used:?}");
    let overruns = seen.turns_of(1).filter(|turn| turn.is_overrun).count();
    ensure!(overruns > 5, "threads that never sleep overran {overruns} times");
    Ok(Outcome::Completed)
}

fn migration<const EXT: bool>() -> Result<Outcome> {
    migration_of::<EXT>("busy")
}

/// On PREEMPT_RT, a thread that was cut off with such a lock cannot be moved until it has run on.
fn migration_with_locks() -> Result<Outcome> {
    migration_of::<false>("locks")
}

fn migration_of<const EXT: bool>(kind: &str) -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    // The kernel's dispatcher needs one more for everything else.
    let processors = if EXT { [1, 2] } else { [0, 1] };
    if EXT && !Path::new("/sys/devices/system/cpu/cpu2").exists() {
        return skip("a table on two processors beside everything else needs three");
    }
    let kinds = ["a", "b"].map(|name| format!("{name}:{kind}"));
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let seen = carried_out::<EXT>(exchanged(processors), &kinds, &["--for", &seconds(1)])?;
    let used = seen.check()?;
    ensure!(used["a"] > 5 && used["b"] > 5, "hardly a turn was used: {used:?}");
    for (name, task, cpu) in
        [0, 1].into_iter().flat_map(|at| [("a", 0, processors[at]), ("b", 1, processors[at])])
    {
        let begin = |turn: &Turn| seen.start + turn.slot * SLOT;
        let stretches = &seen.ran[name];
        let runs_in = |from: u64, to: u64| stretches.iter().any(|&(begin, end)| begin < to && from < end);
        // Not at its ends, where the thread may still be on the other processor, or be there already.
        let is_used = |turn: &Turn| runs_in(begin(turn) + SLOT / 2, begin(turn) + SLOT * 3 / 2);
        let ran = seen.turns_of(task).filter(|turn| turn.cpu == cpu && is_used(turn)).count();
        // Where virtual processors take turns, a thread seldom gets from one to another.
        ensure!(ran > 0, "{name} ran in {ran} turns on processor {cpu}: {}", seen.stderr);
    }
    Ok(Outcome::Completed)
}

fn tai<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let table = Table { clock: Clock::Tai, ..table(&["a", "b"], OnOverrun::Continue) };
    let seen = carried_out::<EXT>(table, &["a:busy", "b:busy"], &["--for", &seconds(1)])?;
    let used = seen.check()?;
    ensure!(used["a"] > 5 && used["b"] > 5, "hardly a turn was used: {used:?}");
    Ok(Outcome::Completed)
}

fn hardship<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let seen = dispatched::<EXT>(
        &["a:sleeper", "b:forks", "c:changes"],
        OnOverrun::Continue,
        &["--for", &seconds(1)],
    )?;
    // A thread that takes the priority of its turn from itself runs where it may until it is given again.
    let mut others =
        Seen { ran: seen.ran.clone(), tasks: seen.tasks.clone(), turns: seen.turns.clone(), ..seen };
    others.ran.remove("c");
    let used = others.check()?;
    ensure!(used["a"] > 5 && used["b"] > 5, "hardly a turn was used: {used:?}");
    let said = "something set";
    ensure!(others.stderr.contains(said), "a changed policy was not noticed: {}", others.stderr);
    Ok(Outcome::Completed)
}

fn ends<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let seen = dispatched::<EXT>(&["a:exits", "b:busy"], OnOverrun::Continue, &["--for", &seconds(2)])?;
    seen.check()?;
    let last = seen.tasks.iter().rfind(|task| task.number == 0).map(|task| task.tid);
    ensure!(last == Some(0), "the end of a thread was not noticed: {:?}", seen.tasks);
    ensure!(seen.turns_of(0).any(|turn| turn.tid == 0), "a thread that has ended got slots");
    // Its process's other threads end, and the program starts a new one, which has to be found.
    let seen = dispatched::<EXT>(&["a:execs"], OnOverrun::Continue, &["--for", &seconds(2)])?;
    let used = seen.check()?;
    ensure!(used["a"] > 5, "hardly a turn was used: {used:?}");
    Ok(Outcome::Completed)
}

fn skip_on_overrun<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let seen = dispatched::<EXT>(&["a:busy", "b:busy"], OnOverrun::Skip, &["--for", &seconds(1)])?;
    seen.check()?;
    let given: Vec<bool> = seen
        .turns_of(0)
        .filter(|turn| turn.tid != 0 || turn.is_skipped)
        .map(|turn| turn.is_skipped)
        .collect();
    ensure!(given.iter().filter(|skipped| **skipped).count() > 5, "nothing was skipped: {given:?}");
    // A table of one job for the task: it is the same job that is to be skipped, in the next repetition.
    ensure!(given.iter().any(|skipped| !skipped), "everything was skipped: {given:?}");
    Ok(Outcome::Completed)
}
