//! `punctual tt`: who ran when, by what the threads themselves log, against the recording and the table; and
//! whether everything is as it was before, however the dispatcher ends.
//!
//! Nothing depends on how late a slot begins: a thread may run from the planned beginning of its turn until
//! the dispatcher, on the same processor, noticed the turn's end.

pub mod beside;

use crate::run::{Running, directory, punctual, run, wait_until, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::table::{Clock, Method, OnOverrun, Table, TableJob, TableRun, TableTask};
use punctual_model::{Duration, TimingModel};
use punctual_test_support::Random;
use punctual_trace::ctf::Reader;
use punctual_trace::dispatch::{Dispatch, Turn};
use punctual_trace::{Record, dispatch};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("tt::threads_run_in_their_slots_only", slots::<false>),
    ("tt::threads_that_sleep_fork_and_change_their_policy_stay_in_their_slots", hardship::<false>),
    ("tt::a_thread_that_ends_or_execs_is_noticed", ends::<false>),
    ("tt::a_stopped_thread_gets_no_slot_of_others", stopped::<false>),
    ("tt::overruns_are_stopped_where_the_table_says_so", stop_on_overrun::<false>),
    ("tt::the_job_after_an_overrun_is_skipped_where_the_table_says_so", skip_on_overrun::<false>),
    ("tt::everything_is_put_back_after_kill_and_sigterm", restored::<false>),
    ("tt::a_killed_guardian_is_replaced", guardian::<false>),
    ("tt::status_shows_slots_and_threads", status::<false>),
    ("tt::threads_change_processors_where_the_table_says_so", migration::<false>),
    ("tt::slots_follow_the_clock_of_the_table", tai::<false>),
    ("tt::a_table_for_another_machine_is_refused", refused),
    ("tt::sched_ext::threads_run_in_their_slots_only", slots::<true>),
    ("tt::sched_ext::threads_that_sleep_fork_and_change_their_policy_stay_in_their_slots", hardship::<true>),
    ("tt::sched_ext::a_thread_that_ends_or_execs_is_noticed", ends::<true>),
    ("tt::sched_ext::a_stopped_thread_gets_no_slot_of_others", stopped::<true>),
    ("tt::sched_ext::overruns_are_stopped_where_the_table_says_so", stop_on_overrun::<true>),
    ("tt::sched_ext::the_job_after_an_overrun_is_skipped_where_the_table_says_so", skip_on_overrun::<true>),
    ("tt::sched_ext::everything_is_put_back_after_kill_and_sigterm", restored::<true>),
    ("tt::sched_ext::a_killed_guardian_is_replaced", guardian::<true>),
    ("tt::sched_ext::status_shows_slots_and_threads", status::<true>),
    ("tt::sched_ext::threads_change_processors_where_the_table_says_so", migration::<true>),
    ("tt::sched_ext::slots_follow_the_clock_of_the_table", tai::<true>),
    ("tt::sched_ext::an_ejected_scheduler_is_replaced_in_user_space", ejected),
];

pub const SLOT: u64 = 2_000_000;

/// Ten slots on processor 1: a a . b b b . c . .
pub fn table(tasks: &[&str], on_overrun: OnOverrun) -> Table {
    let places = [(0, 2), (3, 6), (7, 8)];
    let task = |name: &&str, (from, to): (u64, u64)| TableTask {
        name: (*name).to_owned(),
        thread: None,
        period: 10,
        wcet: to - from,
        offset: 0,
        deadline: 10,
        processors: Vec::new(),
        exclusive: false,
        after: Vec::new(),
        on_overrun,
    };
    let places = &places[..tasks.len()];
    let job = |(number, (from, to)): (usize, &(u64, u64))| TableJob {
        task: number,
        release: 0,
        deadline: 10,
        slots: to - from,
    };
    let run = |(job, &(from, to)): (usize, &(u64, u64))| TableRun { processor: 1, from, to, job };
    Table {
        slot_ns: Duration::from_ns(SLOT),
        slots: 10,
        clock: Clock::Monotonic,
        processors: vec![1],
        method: Method::Other,
        tasks: tasks.iter().zip(places).map(|(name, place)| task(name, *place)).collect(),
        jobs: places.iter().enumerate().map(job).collect(),
        runs: places.iter().enumerate().map(run).collect(),
    }
}

/// Ten slots on two processors, which two threads exchange at the third slot: a a b b and b b a a.
fn exchanged(processors: [u32; 2]) -> Table {
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

pub fn write(table: Table, folder: &Path) -> Result<String> {
    let path = folder.join("test.table.json");
    let model = TimingModel { table: Some(table), ..TimingModel::new("CLOCK_MONOTONIC") };
    fs::write(&path, model.to_json())?;
    Ok(path.display().to_string())
}

/// Why the tests here do not apply to a dispatcher; `None` where they do.
pub fn unsuitable<const EXT: bool>() -> Option<&'static str> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if read("/sys/devices/system/cpu/online").trim() == "0" {
        return Some("a table beside everything else needs two processors");
    }
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    let is_new = (numbers.next(), numbers.next()) >= (Some(7), Some(1));
    let has_sched_ext = is_new && fs::metadata("/sys/kernel/sched_ext").is_ok();
    (EXT && !has_sched_ext).then_some("dispatch by sched_ext needs Linux 7.1 with sched_ext")
}

/// Whether this machine is software, which takes seconds for a command.
pub fn is_emulated() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|all| all.contains("TCG"))
}

/// How long a table is carried out, for `--for`: on software, only finding the threads takes seconds.
fn seconds(here: u32) -> String {
    (if is_emulated() { 5 * here } else { here }).to_string()
}

/// `punctual tt run` with a dispatcher.
pub fn dispatch<const EXT: bool>(table: &str) -> Command {
    let dispatcher = if EXT { "sched-ext" } else { "user-space" };
    punctual(["tt", "run", table, "--dispatcher", dispatcher])
}

/// What threads logged, and what the dispatcher recorded.
struct Seen {
    /// By thread, the stretches of time in which it ran.
    ran: BTreeMap<String, Vec<(u64, u64)>>,
    start: u64,
    turns: Vec<Turn>,
    tasks: Vec<dispatch::Task>,
    stderr: String,
}

/// When a task had no thread.
struct Unbound {
    /// Until this: its first turn with one.
    begin: u64,
    /// And between these, if it had another one later.
    from: u64,
    until: u64,
}

fn threads(kinds: &[&str], log: &Path) -> Vec<String> {
    let mut words = vec![workload("slots"), "--log".into(), log.display().to_string()];
    words.extend(kinds.iter().map(|kind| (*kind).to_owned()));
    words
}

/// Dispatches `slots` with these threads for a while.
fn dispatched<const EXT: bool>(kinds: &[&str], on_overrun: OnOverrun, options: &[&str]) -> Result<Seen> {
    let names: Vec<&str> = kinds.iter().filter_map(|kind| kind.split(':').next()).collect();
    carried_out::<EXT>(table(&names, on_overrun), kinds, options)
}

/// The same with any table.
fn carried_out<const EXT: bool>(table: Table, kinds: &[&str], options: &[&str]) -> Result<Seen> {
    let folder = directory()?;
    let is_tai = table.clock == Clock::Tai;
    let table = write(table, folder.path())?;
    let (log, recording) = (folder.path().join("log"), folder.path().join("recording"));
    let mut tt = dispatch::<EXT>(&table);
    tt.arg("--record").arg(&recording).args(options).arg("--").args(threads(kinds, &log));
    let ended = run(tt)?;
    ended.expect_code(0)?;
    let (mut start, mut turns, mut tasks) = (0, Vec::new(), Vec::new());
    let reader = Reader::open(&recording).or_else(|error| fail(error.to_string()))?;
    let read = reader.read(0..reader.stretches(), &mut |record| match record {
        Record::Dispatch(Dispatch::Table(table)) => start = table.start.ns(),
        Record::Dispatch(Dispatch::Turn(turn)) => turns.push(*turn),
        Record::Dispatch(Dispatch::Task(task)) => tasks.push((**task).clone()),
        _ => {}
    });
    ensure!(read.is_ok_and(|damage| damage.is_empty()) && reader.complete(), "the recording is damaged");
    ensure!(turns.len() > 20, "only {} turns were recorded: {}", turns.len(), ended.all());
    checked(&recording, &table)?;
    if is_tai {
        start = start.wrapping_sub(ahead_of_monotonic());
    }
    Ok(Seen { ran: stretches(&log)?, start, turns, tasks, stderr: ended.stderr })
}

/// What CLOCK_TAI shows more than CLOCK_MONOTONIC.
fn ahead_of_monotonic() -> u64 {
    use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};
    let ns = |time: Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    // In this order: what passes in between makes slots begin earlier, not later.
    let monotonic = ns(clock_gettime(ClockId::Monotonic));
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).map_or(monotonic, ns);
    tai.wrapping_sub(monotonic)
}

/// `tt check` must find no wrong owner and no gap; how late this machine makes slots is not its fault.
pub fn checked(recording: &Path, table: &str) -> Result {
    let mut check = punctual(["tt", "check", "--json"]);
    check.arg(recording).arg(table);
    let ended = run(check)?;
    let found = ended.json()?;
    for kind in ["wrong owner", "not recorded", "twice"] {
        ensure!(found["violations"][kind].is_null(), "{kind}: {}", ended.all());
    }
    let is_clean = found["violations"].as_object().is_some_and(serde_json::Map::is_empty);
    ended.expect_code(if is_clean { 0 } else { 9 })
}

fn stretches(log: &Path) -> Result<BTreeMap<String, Vec<(u64, u64)>>> {
    let mut ran: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for line in fs::read_to_string(log)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, from, to] = words[..] else { return fail(format!("the log has {line:?}")) };
        let (Ok(from), Ok(to)) = (from.parse(), to.parse()) else { return fail(format!("{line:?}")) };
        ran.entry(name.to_owned()).or_default().push((from, to));
    }
    Ok(ran)
}

impl Seen {
    /// Every stretch of running lies within a turn of the thread's own. Returns how many turns each used.
    fn check(&self) -> Result<BTreeMap<&str, usize>> {
        let end = self.turns.iter().map(|turn| turn.at.ns()).max().unwrap_or(0);
        let mut used = BTreeMap::new();
        for (number, task) in self.tasks.iter().enumerate().take_while(|(_, task)| task.tid == 0) {
            let own = self.turns.iter().filter(|turn| turn.task == Some(number as u32) && turn.tid != 0);
            let own = joined(own.collect(), self.start);
            let unbound = self.unbound(number as u32);
            let mut turns = BTreeSet::new();
            for &(from, to) in self.ran.get(&task.name).into_iter().flatten() {
                // Before and after the table it is free.
                if to < unbound.begin || to > end || (unbound.from <= from && to <= unbound.until) {
                    continue;
                }
                let from = from.max(unbound.begin);
                match own.iter().position(|turn| turn.0 <= from && to <= turn.1) {
                    Some(turn) => _ = turns.insert(turn),
                    None => {
                        return fail(format!(
                            "{} ran from {} to {} µs after the start, in no turn of its own: {}",
                            task.name,
                            (from - self.start) / 1_000,
                            (to - self.start) / 1_000,
                            self.stderr
                        ));
                    }
                }
            }
            used.insert(task.name.as_str(), turns.len());
        }
        Ok(used)
    }

    /// When a task had no thread: its threads are free then.
    fn unbound(&self, task: u32) -> Unbound {
        let turns: Vec<&Turn> = self.turns_of(task).filter(|turn| turn.tid != 0).collect();
        let begin = |turn: &Turn| self.start + turn.slot * SLOT;
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else {
            return Unbound { begin: u64::MAX, from: 0, until: 0 };
        };
        let mut unbound = Unbound { begin: begin(first), from: 0, until: 0 };
        if first.tid != last.tid {
            let end = turns.iter().rfind(|turn| turn.tid == first.tid);
            let again = turns.iter().find(|turn| turn.tid == last.tid);
            unbound.from = end.map_or(0, |turn| turn.at.ns());
            unbound.until = again.map_or(0, |turn| begin(turn));
        }
        unbound
    }

    fn turns_of(&self, task: u32) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(move |turn| turn.task == Some(task))
    }
}

/// From when until when turns are a thread's: those that follow one another, on whatever processors, are one.
fn joined(mut turns: Vec<&Turn>, start: u64) -> Vec<(u64, u64)> {
    turns.sort_by_key(|turn| turn.slot);
    let mut joined: Vec<(u64, u64, u64)> = Vec::new();
    for turn in turns {
        let (end, at) = (turn.slot + u64::from(turn.slots), turn.at.ns());
        match joined.last_mut().filter(|last| last.2 == turn.slot) {
            Some(last) => (last.1, last.2) = (last.1.max(at), end),
            None => joined.push((start + turn.slot * SLOT, at, end)),
        }
    }
    joined.into_iter().map(|(from, to, _)| (from, to)).collect()
}

fn slots<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let seen =
        dispatched::<EXT>(&["a:busy", "b:busy", "c:busy"], OnOverrun::Continue, &["--for", &seconds(3)])?;
    let used = seen.check()?;
    ensure!(used.len() == 3 && used.values().all(|&turns| turns > 5), "hardly a turn was used: {used:?}");
    let overruns = seen.turns_of(1).filter(|turn| turn.is_overrun).count();
    ensure!(overruns > 5, "threads that never sleep overran {overruns} times");
    Ok(Outcome::Completed)
}

fn migration<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    // The kernel's dispatcher needs one more for everything else.
    let processors = if EXT { [1, 2] } else { [0, 1] };
    if EXT && !Path::new("/sys/devices/system/cpu/cpu2").exists() {
        return skip("a table on two processors beside everything else needs three");
    }
    let seen = carried_out::<EXT>(exchanged(processors), &["a:busy", "b:busy"], &["--for", &seconds(3)])?;
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
    let seen = carried_out::<EXT>(table, &["a:busy", "b:busy"], &["--for", &seconds(2)])?;
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
        &["--for", &seconds(2)],
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
    let seen = dispatched::<EXT>(&["a:execs"], OnOverrun::Continue, &["--for", &seconds(3)])?;
    let used = seen.check()?;
    ensure!(used["a"] > 5, "hardly a turn was used: {used:?}");
    Ok(Outcome::Completed)
}

/// The process of `slots` with these threads, and their numbers.
pub struct Slots {
    pub running: Running,
    pub tids: BTreeMap<String, u32>,
    log: std::path::PathBuf,
    pub folder: tempfile::TempDir,
}

pub fn start_slots(kinds: &[&str]) -> Result<Slots> {
    let folder = directory()?;
    let log = folder.path().join("log");
    let words = threads(kinds, &log);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let running = Running::start(command)?;
    let pid = running.pid();
    let named = || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let name = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned();
            Some((name, task.file_name().to_str()?.parse().ok()?))
        };
        tasks.filter_map(name).collect::<BTreeMap<String, u32>>()
    };
    let names: Vec<&str> = kinds.iter().filter_map(|kind| kind.split(':').next()).collect();
    let mut tids = BTreeMap::new();
    wait_until("the threads", || {
        tids = named();
        names.iter().all(|name| tids.contains_key(*name))
    })?;
    tids.retain(|name, _| names.contains(&name.as_str()));
    Ok(Slots { running, tids, log, folder })
}

fn stopped<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:busy"])?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), slots.folder.path())?;
    let recording = slots.folder.path().join("recording");
    let mut tt = dispatch::<EXT>(&table);
    tt.args(["--for", &seconds(2), "--record"]).arg(&recording).args(given(&slots));
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

/// Options that name the threads.
pub fn given(slots: &Slots) -> Vec<String> {
    slots.tids.iter().flat_map(|(name, tid)| ["--thread".to_owned(), format!("{name}={tid}")]).collect()
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

fn skip_on_overrun<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let seen = dispatched::<EXT>(&["a:busy", "b:busy"], OnOverrun::Skip, &["--for", &seconds(3)])?;
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

/// A field of a thread's `stat`, counted from its state.
fn stat_field(tid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let after_name = stat.rsplit_once(") ")?.1;
    after_name.split(' ').nth(field).map(str::to_owned)
}

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

fn restored<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:sleeper", "c:forks"])?;
    // A busy thread with a real-time priority would keep the kernel from making a partition.
    let (busy, sleeper) = if EXT { ("b", "a") } else { ("a", "b") };
    for (command, name) in [("chrt -f -p 7", busy), ("chrt -b -p 0", sleeper), ("taskset -cp 0", "c")] {
        let words = command.split(' ').chain([""; 0]);
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        words.push(slots.tids[name].to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        run(command)?.expect_code(0)?;
    }
    let before = states(&slots)?;
    let table = write(table(&["a", "b", "c"], OnOverrun::Continue), slots.folder.path())?;
    let mut random = Random(17);
    let rounds = std::env::var("PUNCTUAL_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    for round in 0..rounds.unwrap_or(if EXT { 5 } else { 20 }) {
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
    let children = || crate::run::children(tt.pid());
    wait_until("the guardian", || !children().is_empty())?;
    let first = children();
    for child in &first {
        let mut kill = Command::new("kill");
        kill.args(["-KILL", &child.to_string()]);
        run(kill)?;
    }
    wait_until("another guardian", || children().iter().any(|child| !first.contains(child)))?;
    // It has to be told first what to put back.
    std::thread::sleep(std::time::Duration::from_secs(1));
    tt.signal(Signal::KILL)?;
    tt.end()?;
    wait_until("everything to be put back", || {
        states(&slots).is_ok_and(|now| now == before) && left_over().is_empty()
    })?;
    Ok(Outcome::Completed)
}

fn status<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let slots = start_slots(&["a:busy", "b:busy"])?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), slots.folder.path())?;
    let mut tt = dispatch::<EXT>(&table);
    tt.args(given(&slots));
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
