//! Targets of observations; output of `show` and `doctor`.

use crate::model::{only_task, parse, primary, tasks, threads};
use crate::run::{Running, directory, observe, punctual, run, sleeps, wait_until, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip, timing};
use punctual_model::{EndedBy, Task};
use std::path::PathBuf;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("targets::all_real_time_threads", all_real_time),
    ("targets::cgroup", cgroup),
    ("targets::several_processes", several),
    ("targets::short_processes", short),
    ("targets::processes_that_run_once", brief),
    ("targets::threads_that_never_wait", never_waits),
    ("targets::a_clock_that_is_set", set_clock),
    ("targets::json_on_standard_output", json),
    ("show::table_task_and_json", show),
    ("doctor::works_here", doctor),
];

fn start_periodic() -> Result<Running> {
    let mut command = Command::new(workload("periodic"));
    command.args(["--for", "60", "5000"]);
    let workload = Running::start(command)?;
    wait_until("the workload to run", || sleeps(workload.pid(), "task-0").is_some_and(|sleeps| sleeps > 5))?;
    Ok(workload)
}

fn extract_json(arguments: &[&str]) -> Result<punctual_model::TimingModel> {
    let mut extract = punctual(["extract", "--for", "1s", "--json"]);
    extract.args(arguments);
    let ended = run(extract)?;
    ended.expect_code(0)?;
    parse(&ended.stdout)
}

fn all_real_time() -> Result<Outcome> {
    let workload = start_periodic()?;
    for arguments in [&["--all-rt"][..], &[]] {
        let model = extract_json(arguments)?;
        let found: Vec<&Task> = model.tasks().iter().filter(|task| task.pid == workload.pid()).collect();
        // Where a busy machine loses records, the gap ends one task and begins another.
        let (before, is_one) = (found.split_last(), |task: &&Task| task.tid == found[0].tid);
        let is_whole = before.is_some_and(|(_, all)| all.iter().all(|task| task.ended_by == EndedBy::Loss));
        ensure!(
            is_whole && found.iter().all(is_one),
            "tasks of the one real-time thread there is: {found:?}"
        );
        let odd = model.tasks().iter().find(|task| task.phase == 0 && !task.policy.is_real_time());
        ensure!(odd.is_none(), "{} is no real-time thread", odd.map_or("", |task| &task.name));
    }
    Ok(Outcome::Completed)
}

/// A cgroup that is removed at the end.
pub struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl Cgroup {
    /// Makes one; or why it cannot be.
    pub fn make(name: &str) -> std::result::Result<Cgroup, String> {
        // Alone, or beside cgroups of version 1.
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists());
        let root = root.ok_or("no cgroups of version 2 here")?;
        let group = Cgroup(root.join(format!("punctual-{name}-{}", std::process::id())));
        std::fs::create_dir(&group.0).map_err(|error| format!("no cgroup can be made here: {error}"))?;
        Ok(group)
    }

    /// Its name, as threads have it: it is one below the root.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Puts a process into it; or why that cannot be.
    pub fn take(&self, pid: u32) -> std::result::Result<(), String> {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string())
            .map_err(|error| format!("no real-time process can be put into a cgroup here: {error}"))
    }

    /// It can only be removed when it is empty.
    pub fn wait_until_empty(&self) -> Result {
        let procs = self.0.join("cgroup.procs");
        wait_until("the cgroup to be empty", || {
            std::fs::read_to_string(&procs).is_ok_and(|procs| procs.is_empty())
        })
    }
}

fn cgroup() -> Result<Outcome> {
    let group = match Cgroup::make("e2e") {
        Ok(group) => group,
        Err(why) => return skip(why),
    };
    let inside = start_periodic()?;
    let outside = start_periodic()?;
    if let Err(why) = group.take(inside.pid()) {
        return skip(why);
    }
    let model = extract_json(&["--cgroup", &group.0.to_string_lossy()]);
    let count =
        |pid| model.as_ref().map_or(0, |model| model.tasks().iter().filter(|task| task.pid == pid).count());
    let found = (count(inside.pid()), count(outside.pid()));
    drop(inside);
    group.wait_until_empty()?;
    model?;
    ensure!(
        found == (1, 0),
        "{} tasks of the process in the cgroup, {} of the one that is not",
        found.0,
        found.1
    );
    Ok(Outcome::Completed)
}

fn several() -> Result<Outcome> {
    let (one, two, other) = (start_periodic()?, start_periodic()?, start_periodic()?);
    let (first, second) = (one.pid().to_string(), two.pid().to_string());
    let model = extract_json(&["--pid", &first, "--pid", &second])?;
    for pid in [one.pid(), two.pid()] {
        let found = model.tasks().iter().filter(|task| task.pid == pid).count();
        ensure!(found == 1, "{found} tasks of process {pid}, expected one");
    }
    ensure!(
        model.tasks().iter().all(|task| task.pid != other.pid()),
        "a process was observed that nobody asked for"
    );
    Ok(Outcome::Completed)
}

/// Many processes that start and end while others do: the kernel must not skip the programs that notice it.
fn short() -> Result<Outcome> {
    const PROCESSES: usize = 96;
    let script = format!(
        "i=0; while [ $i -lt {PROCESSES} ]; do \
         \"$1\" run sleep_absolute --period-us 1000 --jobs 20 >/dev/null & \
         i=$((i + 1)); [ $((i % 8)) != 0 ] || wait; done; wait"
    );
    let observed = observe(&[], &["sh", "-c", &script, "sh", &workload("drivers")])?;
    let model = &observed.model;
    let ended = tasks(model, "drv").into_iter().filter(|task| task.ended_by == EndedBy::Exit);
    let mut processes: Vec<u32> = ended.map(|task| task.pid).collect();
    processes.sort_unstable();
    processes.dedup();
    let found = processes.len();
    observed.explain(match found == PROCESSES {
        true => Ok(Outcome::Completed),
        false => fail(format!("{found} of {PROCESSES} processes were seen until their end")),
    })
}

/// A process that runs once is seen, or counted as not watched: some machines hide the only switch to one.
fn brief() -> Result<Outcome> {
    let observed = observe(&[], &[&workload("brief")])?;
    let Ok(started) = observed.ended.stdout.trim().parse::<u64>() else { return fail(observed.ended.all()) };
    let starter = tasks(&observed.model, "brief").into_iter().find(|task| !task.streams.is_empty());
    let starter = starter.map(|task| task.pid);
    let mut seen: Vec<u32> = tasks(&observed.model, "brief").into_iter().map(|task| task.pid).collect();
    seen.retain(|pid| Some(*pid) != starter);
    seen.sort_unstable();
    seen.dedup();
    let unwatched = threads(&observed.model).untracked_threads;
    observed.explain(match seen.len() as u64 + unwatched == started {
        true => Ok(Outcome::Completed),
        false => fail(format!("{started} processes: {} seen, {unwatched} not watched", seen.len())),
    })
}

/// A thread that never waits has no jobs, and one that ceases to wait has none of that time. Neither is
/// hidden; a recording tells the same.
fn never_waits() -> Result<Outcome> {
    has_note("0", "never waits, ")?;
    has_note("1", "has been awake for the last ")?;
    has_note("9", "has been awake for the last ")?;
    Ok(Outcome::Completed)
}

/// A thread that spins after so many jobs has a row with this note.
fn has_note(jobs: &str, note: &str) -> Result<()> {
    let arguments = ["--for", "0.5", "--jobs", jobs];
    let directory = directory()?;
    let recording = directory.path().join("spin");
    let mut record = punctual(["record", "--quiet", "-o"]);
    record.arg(&recording).arg("--").arg(workload("spin")).args(arguments);
    run(record)?.expect_code(0)?;
    let mut replay = punctual(["replay"]);
    replay.arg(&recording);
    let live = {
        let mut extract = punctual(["extract", "--"]);
        extract.arg(workload("spin")).args(arguments);
        run(extract)?
    };
    for ended in [live, run(replay)?] {
        ended.expect_code(0)?;
        let has_row = ended.stdout.lines().any(|line| line.starts_with("spin") && line.contains(note));
        ensure!(has_row, "no row with `{note}`: {}", ended.all());
        ensure!(!ended.all().contains("hidden"), "it is called hidden: {}", ended.all());
    }
    Ok(())
}

/// 50 jobs become due at once; before the step, none of them was.
fn set_clock() -> Result<Outcome> {
    if !crate::survives::is_lab() {
        return skip("the clock of this machine is not the test's");
    }
    const BY_NS: u64 = 500_000_000;
    let observed = observe(&[], &[&workload("set_clock"), "--by-ms", "500"])?;
    let threads = crate::model::threads(&observed.model);
    let [step] = threads.clock_steps[..] else {
        return fail(format!("steps of the clock: {:?}", threads.clock_steps));
    };
    ensure!(step.by_ns.unsigned_abs().abs_diff(BY_NS) < BY_NS / 10, "the clock was set by {} ns", step.by_ns);
    let stream = primary(only_task(&observed.model, "clocked")?)?;
    let longest = stream.response.as_ref().map_or(0, |response| response.max_ns.ns());
    // Counted from when they would have been due by the clock as it then is, the first of them is later.
    timing(match longest < BY_NS * 9 / 10 {
        true => Ok(Outcome::Completed),
        false => observed.explain(fail(format!("the longest response is {longest} ns"))),
    })
}

fn json() -> Result<Outcome> {
    // The command's own output must not be mixed with the model.
    let mut extract = punctual(["extract", "--json", "--"]);
    extract.arg(workload("drivers")).args(["run", "sleep_absolute", "--jobs", "20"]);
    let ended = run(extract)?;
    ended.expect_code(0)?;
    only_task(&parse(&ended.stdout)?, "drv")?;
    Ok(Outcome::Completed)
}

fn show() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("show.timing.json");
    let mut extract = punctual(["extract", "--quiet", "-o"]);
    extract.arg(&file).arg("--").arg(workload("drivers")).args(["run", "read_pipe", "--jobs", "50"]);
    run(extract)?.expect_code(0)?;

    let table = run(punctual(["show".as_ref(), file.as_os_str()]))?;
    table.expect_code(0)?;
    for word in ["drv", "src", "read", "clock_nanosleep", "10 ms"] {
        ensure!(table.stdout.contains(word), "the table lacks {word:?}: {}", table.all());
    }
    let model = crate::model::read(&file)?;
    let prose = run(punctual(["show".as_ref(), file.as_os_str(), "--task".as_ref(), "drv".as_ref()]))?;
    prose.expect_code(0)?;
    ensure!(
        !prose.stdout.contains("clock_nanosleep") && prose.stdout.contains("read"),
        "not what is known of drv: {}",
        prose.all()
    );
    // What was observed, which is 10 ms on a machine that keeps its processors.
    let Some(periodic) = &primary(only_task(&model, "drv")?)?.arrival.periodic else {
        return timing(fail(format!("no period: {}", prose.all())));
    };
    let is_said = prose.stdout.contains(&format!("Released every {}", periodic.period_ns));
    timing(if is_said { Ok(()) } else { fail(format!("it does not say the period: {}", prose.all())) })?;
    let json = run(punctual(["show".as_ref(), file.as_os_str(), "--json".as_ref()]))?;
    json.expect_code(0)?;
    let same = parse(&json.stdout)? == model;
    ensure!(same, "`show --json` prints another model than the file has");
    Ok(Outcome::Completed)
}

fn doctor() -> Result<Outcome> {
    let ended = run(punctual(["doctor"]))?;
    if ended.code == Some(3) {
        // The tests of `doctor.rs` check whether that is true.
        let why =
            ended.stdout.lines().find(|line| line.starts_with('✗')).unwrap_or_default().split_whitespace();
        return crate::skip(format!(
            "doctor says that nothing works here: {}",
            why.collect::<Vec<_>>().join(" ")
        ));
    }
    ended.expect_code(0)?;
    ensure!(ended.stdout.lines().count() > 3, "it says too little: {}", ended.all());
    let observed = observe(&[], &[&workload("drivers"), "run", "sleep_absolute", "--jobs", "5"])?;
    ensure!(
        !tasks(&observed.model, "drv").is_empty(),
        "the doctor says that extraction works, but it does not"
    );
    Ok(Outcome::Completed)
}
