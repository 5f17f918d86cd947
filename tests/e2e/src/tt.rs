//! `punctual tt`: who ran when, by what the threads themselves log, against the recording and the table; and
//! whether everything is as it was before, however the dispatcher ends.
//!
//! Here is what these tests share: tables, threads, and what keeps a machine from running them.

pub mod beside;
pub mod live;
pub mod restored;
mod seen;
pub mod slots;

pub use restored::{left_over, state, states};
pub use seen::checked;

use crate::Result;
use crate::run::{Running, directory, punctual, wait_until, workload};
use punctual_model::table::{Clock, Method, OnOverrun, Table, TableJob, TableRun, TableTask};
use punctual_model::{Duration, TimingModel};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

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
    let has_sched_ext = fs::metadata("/sys/kernel/sched_ext").is_ok();
    (EXT && !has_sched_ext).then_some("this kernel has no sched_ext")
}

/// Whether this machine is software, which takes seconds for a command.
pub fn is_emulated() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|all| all.contains("TCG"))
}

/// How long a table is carried out, for `--for`: on software, only finding the threads takes seconds; less
/// where instructions count, for that is the machine's own time.
fn seconds(here: u32) -> String {
    let is_counting = std::env::var_os("PUNCTUAL_E2E_COUNTING").is_some();
    (here
        * if is_counting {
            2
        } else if is_emulated() {
            10
        } else {
            1
        })
    .to_string()
}

/// `punctual tt run` with a dispatcher.
pub fn dispatch<const EXT: bool>(table: &str) -> Command {
    let dispatcher = if EXT { "sched-ext" } else { "user-space" };
    punctual(["tt", "run", table, "--dispatcher", dispatcher])
}

fn threads(kinds: &[&str], log: &Path) -> Vec<String> {
    let mut words = vec![workload("slots"), "--log".into(), log.display().to_string()];
    words.extend(kinds.iter().map(|kind| (*kind).to_owned()));
    words
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

/// Options that name the threads.
pub fn given(slots: &Slots) -> Vec<String> {
    slots.tids.iter().flat_map(|(name, tid)| ["--thread".to_owned(), format!("{name}={tid}")]).collect()
}

/// A field of a thread's `stat`, counted from its state.
pub fn stat_field(tid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let after_name = stat.rsplit_once(") ")?.1;
    after_name.split(' ').nth(field).map(str::to_owned)
}
