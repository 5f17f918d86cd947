//! What a watch of months has to survive: more threads than there is room for, a full disk, a clock that is
//! set, a machine that sleeps.

use crate::metrics::{text, value};
use crate::run::{Running, directory, punctual, run, wait_until, workload};
use crate::tool::tool;
use crate::watch::breaks_always;
use crate::{Outcome, Result, Test, ensure, fail, skip};
use rustix::process::Signal;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

pub const ALONE: &[(&str, Test)] = &[
    ("survives::more_threads_than_there_is_room_for", many),
    ("survives::a_full_disk", full_disk),
    ("survives::a_clock_that_is_set", clock),
    ("survives::a_machine_that_sleeps", sleep),
];

/// A thread that keeps to what is agreed on, unless the watch takes one clock for another.
const CONTRACT: &str = "[[task]]\nname = \"task-0\"\nseparator = \"clock_nanosleep*\"\nperiod = \"20ms\"\n\
    jitter = \"10s\"\nskips = 1000000\nresponse = \"10s\"\nwcet = \"1h\"\n";

/// The lab's machines have this file.
pub fn is_lab() -> bool {
    Path::new("/lab/job").exists()
}

/// Threads beyond the room in the kernel's map are not watched until others end: said, and counted.
fn many() -> Result<Outcome> {
    if is_lab() {
        return skip("thousands of threads take too long in software emulation");
    }
    const THREADS: u64 = 2_600;
    let processors = std::thread::available_parallelism().map_or(1, |it| it.get());
    if processors > 30 {
        return skip(format!("with {processors} processors there is room for more threads"));
    }
    let directory = directory()?;
    let contract = directory.path().join("run.toml");
    let many = "[[task]]\nname = \"many\"\nthread = { comm = \"task-*\" }\nseparator = \"clock_nanosleep*\"\n\
        response = \"1h\"\n";
    fs::write(&contract, many)?;
    let mut watch = punctual(["watch", "--json", "--no-journal"]);
    let program = [&workload("periodic"), "--tasks", &THREADS.to_string(), "--rate", "1000", "--for", "3"];
    watch.arg(&contract).arg("--").args(program);
    let ended = run(watch)?;
    ended.expect_code(0)?;
    // At once, and at the end how often.
    ensure!(ended.stderr.contains("there are more threads than can be watched at once"), "{}", ended.all());
    ensure!(ended.stderr.contains("times a thread was not watched when it ran"), "{}", ended.all());
    let end = last(&ended.stdout)?;
    let input = &end["outcome"]["inputs"][0];
    let notes = input["notes"].to_string();
    ensure!(notes.contains("jobs of some are not judged"), "{notes}");
    // Whoever found room is judged.
    let said = ended.stderr.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let done = said.and_then(|said| said["jobs"].as_u64()).unwrap_or(0);
    let judged = input["tasks"][0]["jobs"].as_u64().unwrap_or(0);
    ensure!(judged > done / 4 && judged < done, "{judged} of {done} jobs were judged");
    Ok(Outcome::Completed)
}

/// It costs the recording of the moment, which is said and counted, and no alarm.
fn full_disk() -> Result<Outcome> {
    let directory = directory()?;
    let (mount, contract) = (directory.path().join("small"), directory.path().join("run.toml"));
    fs::create_dir(&mount)?;
    let Some(mut mounted) = tool("mount", &["-t", "tmpfs", "-o", "size=16k", "none"]) else {
        return skip("no mount here");
    };
    if !mounted.arg(&mount).status()?.success() {
        return skip("no tmpfs can be mounted here");
    }
    fs::write(
        &contract,
        "[[task]]\nname = \"task-0\"\nseparator = \"clock_nanosleep*\"\nresponse = \"1ns\"\n",
    )?;
    let mut watch = punctual(["watch", "--json", "--no-journal", "--keep"]);
    watch.arg(&mount).arg(&contract).args(["--", &workload("periodic"), "--for", "3", "2000"]);
    let ended = run(watch);
    if let Some(mut unmount) = tool("umount", &[]) {
        unmount.arg(&mount).status()?;
    }
    let ended = ended?;
    ended.expect_code(8)?;
    ensure!(ended.stderr.contains("the watch goes on without this recording"), "{}", ended.all());
    let end = last(&ended.stdout)?;
    ensure!(end["recordings"]["kept"] == 0 && end["recordings"]["failed"].as_u64() >= Some(1), "{end:#}");
    let task = &end["outcome"]["inputs"][0]["tasks"][0];
    ensure!(task["jobs"].as_u64() > Some(100) && breaks_always(task), "{task:#}");
    Ok(Outcome::Completed)
}

fn last(output: &str) -> Result<Value> {
    let Some(line) = output.lines().last() else { return fail("nothing was printed") };
    serde_json::from_str(line).or_else(|error| fail(format!("{error}: {line}")))
}

/// A program and its watch.
struct Watched {
    _program: Running,
    watcher: Running,
    metrics: SocketAddr,
}

impl Watched {
    fn start(folder: &Path) -> Result<Watched> {
        let contract = folder.join("run.toml");
        fs::write(&contract, CONTRACT)?;
        let mut program = Command::new(workload("periodic"));
        program.args(["--for", "600", "20000"]);
        let program = Running::start(program)?;
        // Free a moment ago.
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut watch = punctual(["watch", "--json", "--no-journal", "--metrics", &metrics.to_string()]);
        watch.arg(&contract).args(["--pid", &program.pid().to_string()]);
        let watched = Watched { watcher: Running::start(watch)?, _program: program, metrics };
        watched.goes_on()?;
        Ok(watched)
    }

    /// Jobs that it has judged.
    fn jobs(&self) -> f64 {
        text(self.metrics)
            .and_then(|text| value(&text, "punctual_jobs_total{task=\"task-0\"}"))
            .unwrap_or(0.0)
    }

    /// Some jobs later.
    fn goes_on(&self) -> Result {
        let before = self.jobs();
        wait_until("some jobs", || self.jobs() > before + 50.0)
    }

    /// It has judged them all, and found nothing wrong.
    fn ends_well(self) -> Result {
        let jobs = self.jobs();
        self.watcher.signal(Signal::INT)?;
        let ended = self.watcher.end()?;
        ended.expect_code(0)?;
        let input = &last(&ended.stdout)?["outcome"]["inputs"][0];
        ensure!(input["violations"] == 0 && input["gaps"] == 0, "{}", ended.all());
        ensure!(input["tasks"][0]["jobs"].as_f64() >= Some(jobs), "{}", ended.all());
        Ok(())
    }
}

/// CLOCK_REALTIME jumps: a day on, two days back, and home.
fn clock() -> Result<Outcome> {
    if !is_lab() {
        return skip("sets the machine's clock, so it runs only in machines of the lab");
    }
    let directory = directory()?;
    let watched = Watched::start(directory.path())?;
    let set = |days: i64| -> Result {
        let now = clock_gettime(ClockId::Realtime);
        let to = Timespec { tv_sec: now.tv_sec + days * 86_400, ..now };
        clock_settime(ClockId::Realtime, to).or_else(|error| fail(format!("the clock was not set: {error}")))
    };
    for days in [1, -2, 1] {
        set(days)?;
        watched.goes_on()?;
    }
    watched.ends_well()?;
    Ok(Outcome::Completed)
}

/// The machine suspends to idle, and its clock wakes it.
fn sleep() -> Result<Outcome> {
    if !is_lab() {
        return skip("suspends the machine, so it runs only in machines of the lab");
    }
    let (state, alarm) = ("/sys/power/state", "/sys/class/rtc/rtc0/wakealarm");
    if !fs::read_to_string(state).is_ok_and(|states| states.contains("freeze")) {
        return skip("this kernel cannot suspend");
    }
    if !Path::new(alarm).exists() {
        return skip("this machine has no clock that could wake it");
    }
    let directory = directory()?;
    let watched = Watched::start(directory.path())?;
    fs::write(alarm, "0")?;
    fs::write(alarm, "+3")?;
    let slept = || {
        let boot = clock_gettime(ClockId::Boottime);
        let awake = clock_gettime(ClockId::Monotonic);
        boot.tv_sec - awake.tv_sec
    };
    let before = slept();
    if let Err(error) = fs::write(state, "freeze") {
        return skip(format!("this machine does not suspend: {error}"));
    }
    let after = slept();
    ensure!(after > before, "it did not sleep: {before} s, {after} s");
    watched.goes_on()?;
    watched.ends_well()?;
    Ok(Outcome::Completed)
}
