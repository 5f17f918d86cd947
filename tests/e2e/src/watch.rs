//! A program with known timing, watched against contracts.

use crate::bound::is_counting;
use crate::run::{Running, children, directory, offline, punctual, run, sleeps, wait_until, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use rustix::process::Signal;
use rustix::time::ClockId;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const ALL: &[(&str, Test)] = &[
    ("watch::what_was_observed_is_agreed_on_and_checked", agreed),
    ("watch::a_violation_is_told_at_once_and_kept", told),
    ("watch::a_thread_that_is_stuck_is_told_once", stuck),
    ("watch::latencies_of_processors_are_judged", latencies),
    ("watch::latencies_of_a_recording_are_judged", recorded_latencies),
    ("watch::a_contract_is_read_again", read_again),
    ("watch::a_reader_that_has_gone_does_not_end_it", without_reader),
];

/// Alone: the whole machine sleeps.
pub const ALONE: &[(&str, Test)] = &[("watch::a_machine_that_was_suspended_is_no_violation", suspended)];

/// No job ends within a nanosecond of its release. (One may take no processor time: where the hypervisor
/// takes all of it, the kernel accounts none to the thread.)
const IMPOSSIBLE: &str =
    "[[task]]\nname = \"task-0\"\nseparator = \"clock_nanosleep*\"\nresponse = \"1ns\"\n";
/// None takes an hour.
const EASY: &str = "[[task]]\nname = \"task-0\"\nseparator = \"clock_nanosleep*\"\nwcet = \"1h\"\n";

/// A thread `task-0` with a period of 2 ms.
fn periodic(seconds: &str) -> [String; 4] {
    [workload("periodic"), "--for".into(), seconds.into(), "2000".into()]
}

fn lines(text: &str) -> Result<Vec<Value>> {
    let parse = |line: &str| serde_json::from_str(line).or_else(|error| fail(format!("{error}: {line}")));
    text.lines().map(parse).collect()
}

fn agreed() -> Result<Outcome> {
    let directory = directory()?;
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (recording, model, contract) = (file("run.recording"), file("run.timing.json"), file("run.toml"));
    let mut extract = punctual(["extract", "--quiet", "-o", &model, "--record", &recording, "--"]);
    extract.args(periodic("2"));
    run(extract)?.expect_code(0)?;
    run(punctual(["contract", "--margin", "0%", &model, "-o", &contract]))?.expect_code(0)?;
    run(punctual(["check", &contract, &recording, &model]))?.expect_code(0)?;
    let text = fs::read_to_string(&contract)?;
    let Some(line) = text.lines().find(|line| line.starts_with("wcet = ")) else {
        return fail(format!("no wcet: {text}"));
    };
    fs::write(&contract, text.replace(line, "wcet = \"1ns\""))?;
    let ended = run(punctual(["check", "--json", &contract, &recording]))?;
    ended.expect_code(8)?;
    let jobs = ended.json()?["inputs"][0]["tasks"][0]["jobs"].clone();
    ensure!(jobs.as_u64().is_some_and(|jobs| jobs > 500), "{jobs} jobs");
    Ok(Outcome::Completed)
}

fn told() -> Result<Outcome> {
    let directory = directory()?;
    let file = |name: &str| directory.path().join(name);
    fs::write(file("run.toml"), IMPOSSIBLE)?;
    let (kept, heard) = (file("kept"), file("heard"));
    let mut watch = punctual(["watch", "--json", "--no-journal", "--before", "1s", "--keep"]);
    watch.arg(&kept).arg("--on-violation").arg(format!("cat > '{}'", heard.display()));
    watch.arg(file("run.toml")).arg("--").args(periodic("2"));
    let ended = run(watch)?;
    ended.expect_code(8)?;
    let lines = lines(&ended.stdout)?;
    let Some((end, alarms)) = lines.split_last() else { return fail("nothing was printed") };
    let of = |event: &str| alarms.iter().filter(|line| line["event"] == event).count();
    ensure!(of("violation") >= 10 && of("more") >= 1, "{}", ended.all());
    ensure!(end["event"] == "end", "{end}");
    let task = &end["outcome"]["inputs"][0]["tasks"][0];
    ensure!(breaks_always(task), "{task:#}");
    // Each violation was told, one by one or in sum.
    let more = alarms.iter().filter_map(|line| line["violations"].as_u64()).sum::<u64>();
    ensure!(end["violations"].as_u64() == Some(of("violation") as u64 + more), "{end:#}");
    ensure!(end["commands"]["started"].as_u64() >= Some(1), "{end:#}");
    wait_until("the command", || fs::read_to_string(&heard).is_ok_and(|text| text.ends_with("}\n")))?;
    let heard: Value = serde_json::from_str(&fs::read_to_string(&heard)?).unwrap_or_default();
    ensure!(heard["task"] == "task-0" && heard["agreed"] == 1, "{heard:#}");
    ensure!(end["recordings"]["kept"].as_u64() >= Some(1), "{end:#}");
    ensure!(end["recordings"]["without"].as_u64().unwrap_or(0) == 0, "{end:#}");
    for entry in fs::read_dir(&kept)? {
        let kept = entry?.path();
        replayed(&kept, &file("run.toml"))?;
        // It has all threads, so nothing is missing for saying why.
        let mut why = offline(["why", "--json", "--all"]);
        why.arg(&kept);
        let explained = run(why)?.json()?;
        let lacks = explained["lacks"].to_string();
        ensure!(!lacks.contains("--all-threads"), "{explained:#}");
    }
    Ok(Outcome::Completed)
}

/// A job that does not end, and a release that does not come: no record tells of them.
fn stuck() -> Result<Outcome> {
    let (busy, waiting) = (Stuck::start("busy")?, Stuck::start("waiting")?);
    busy.tells_once("response")?;
    waiting.tells_once("overdue")?;
    Ok(Outcome::Completed)
}

/// A watched program that gets stuck.
struct Stuck {
    directory: tempfile::TempDir,
    watcher: Running,
}

impl Stuck {
    fn start(how: &str) -> Result<Stuck> {
        let directory = directory()?;
        let contract = directory.path().join("run.toml");
        let terms = "separator = \"clock_nanosleep*\"\nperiod = \"10ms\"\njitter = \"400ms\"\n";
        fs::write(&contract, format!("[[task]]\nname = \"stuck\"\n{terms}response = \"500ms\"\n"))?;
        let mut watch = punctual(["watch", "--json", "--no-journal", "--include-best-effort", "--keep"]);
        watch.arg(directory.path().join("kept")).arg(&contract);
        watch.arg("--").args([&workload("stuck"), how, "--for", "2"]);
        Ok(Stuck { watcher: Running::start(watch)?, directory })
    }

    fn tells_once(self, term: &str) -> Result {
        let ended = self.watcher.end()?;
        ended.expect_code(8)?;
        let lines = lines(&ended.stdout)?;
        let told = lines.iter().filter(|line| line["event"] == "violation");
        let told: Vec<&Value> = told.map(|line| &line["violation"]).filter(|it| it["term"] == term).collect();
        ensure!(told.len() == 1 && told[0]["open"] == true, "{}", ended.all());
        // What was kept shows it, too.
        let mut found = false;
        for recording in fs::read_dir(self.directory.path().join("kept"))? {
            let mut check = punctual(["check", "--json"]);
            check.arg(self.directory.path().join("run.toml")).arg(recording?.path());
            let document = run(check)?.json()?;
            let terms = document["inputs"][0]["tasks"][0]["terms"].as_array().cloned().unwrap_or_default();
            found |= terms.iter().any(|it| it["term"] == term && it["violations"] == 1);
        }
        ensure!(found, "{term}: {}", ended.all());
        Ok(())
    }
}

/// No thread runs within a nanosecond of its wake-up.
fn latencies() -> Result<Outcome> {
    let directory = directory()?;
    let (contract, kept) = (directory.path().join("run.toml"), directory.path().join("kept"));
    let chain = "[[chain]]\ntasks = [\"a\", \"b\"]\ndata_age = \"1ms\"\n";
    fs::write(&contract, format!("{chain}{}", impossible_latencies()?))?;
    let mut watch = punctual(["watch", "--json", "--no-journal", "--before", "2s", "--keep"]);
    watch.arg(&kept).arg(&contract).arg("--").args(periodic("2"));
    let ended = run(watch)?;
    if ended.stderr.contains("scheduling latencies are not watched: ") {
        return skip("this kernel does not allow it");
    }
    ended.expect_code(8)?;
    // What is not watched is said at once.
    ensure!(ended.stderr.contains("chains are not watched: "), "{}", ended.all());
    let lines = lines(&ended.stdout)?;
    let told = lines.iter().filter(|line| line["event"] == "violation").map(|line| &line["violation"]);
    // Of every real-time thread of the machine: others may take the places of those that are told one by one.
    let told: Vec<&Value> =
        told.filter(|it| it["thread"].as_str().is_some_and(|it| !it.is_empty())).collect();
    ensure!(told.len() >= 10, "{}", ended.all());
    ensure!(told.iter().all(|it| it["term"] == "latency" && it["job"].is_null()), "{}", ended.all());
    let end = lines.last().unwrap_or(&Value::Null);
    let processors = end["outcome"]["inputs"][0]["tasks"].as_array().cloned().unwrap_or_default();
    let sum = |what: &str| {
        let each = processors.iter().map(|it| if what == "jobs" { &it[what] } else { &it["terms"][0][what] });
        each.filter_map(Value::as_u64).sum::<u64>()
    };
    let (wakeups, violations) = (sum("jobs"), sum("violations"));
    ensure!(violations >= 500 && violations <= wakeups, "{violations} of {wakeups}: {end:#}");
    let mut found = false;
    for recording in fs::read_dir(&kept)? {
        let mut check = punctual(["check", "--json"]);
        check.arg(&contract).arg(recording?.path());
        let document = run(check)?.json()?;
        found |= document["violations"].as_u64() > Some(0);
    }
    ensure!(found, "{}", ended.all());
    Ok(Outcome::Completed)
}

/// One nanosecond on each processor that is online.
fn impossible_latencies() -> Result<String> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let Some(online) = punctual_model::processor_list(&online) else { return fail(online) };
    let agreed = |cpu: &u32| format!("[[processor]]\ncpu = {cpu}\nlatency = \"1ns\"\n");
    Ok(online.iter().map(agreed).collect())
}

/// Of the recording of a measurement, the same is judged as of its timing model.
fn recorded_latencies() -> Result<Outcome> {
    let directory = directory()?;
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (recording, model, contract) = (file("run.recording"), file("run.timing.json"), file("run.toml"));
    let latency = punctual(["latency", "--quiet", "--for", "1", "-o", &model, "--record", &recording]);
    run(latency)?.expect_code(0)?;
    fs::write(&contract, impossible_latencies()?)?;
    let ended = run(punctual(["check", "--json", &contract, &recording, &model]))?;
    ended.expect_code(8)?;
    let document = ended.json()?;
    let worst = |input: usize| {
        let processors = document["inputs"][input]["tasks"].as_array().cloned().unwrap_or_default();
        processors.into_iter().map(|it| it["terms"][0]["worst"].clone()).collect::<Vec<Value>>()
    };
    ensure!(!worst(0).is_empty() && worst(0) == worst(1), "{document:#}");
    // Agreed on as they were, they keep to it.
    run(punctual(["contract", "--quiet", "--margin", "0%", &model, "-o", &contract, "--force"]))?
        .expect_code(0)?;
    run(punctual(["check", &contract, &recording, &model]))?.expect_code(0)?;
    Ok(Outcome::Completed)
}

/// Whether each job of a task broke its first term; so may one that had not ended when the observation did.
pub fn breaks_always(task: &Value) -> bool {
    let (jobs, violations) = (task["jobs"].as_u64(), task["terms"][0]["violations"].as_u64());
    violations.is_some() && (violations == jobs || violations == jobs.map(|it| it + 1))
}

/// What was kept is a recording with steps of the scheduler, in which the violation is found again.
fn replayed(recording: &Path, contract: &Path) -> Result {
    let trace = recording.with_extension("perfetto-trace");
    let mut timeline = punctual(["timeline", "--quiet"]);
    timeline.arg(recording).arg("-o").arg(trace);
    let ended = run(timeline)?;
    ended.expect_code(0)?;
    let mut check = punctual(["check", "--json"]);
    check.arg(contract).arg(recording);
    let ended = run(check)?;
    ended.expect_code(8)?;
    let document: Value = ended.json()?;
    let task = &document["inputs"][0]["tasks"][0];
    ensure!(task["jobs"].as_u64() > Some(0) && breaks_always(task), "{task:#}");
    ensure!(document["inputs"][0]["gaps"] == 0, "{document:#}");
    Ok(())
}

/// A faulty contract is refused and the old one stays; then another one is taken.
fn read_again() -> Result<Outcome> {
    let directory = directory()?;
    let (contract, output) = (directory.path().join("run.toml"), directory.path().join("output"));
    fs::write(&contract, EASY)?;
    let program = Running::start({
        let [program, arguments @ ..] = periodic("60");
        let mut command = Command::new(program);
        command.args(arguments);
        command
    })?;
    wait_until("the workload to run", || sleeps(program.pid(), "task-0").is_some_and(|sleeps| sleeps > 5))?;
    // Its messages are looked at while it runs.
    let mut shell = Command::new("sh");
    let mut watch = punctual(["watch", "--no-journal"]);
    watch.arg(&contract).args(["--pid", &program.pid().to_string()]);
    shell.arg("-c").arg("out=$1; shift; exec \"$@\" 2> \"$out\"").arg("sh").arg(&output);
    shell.arg(watch.get_program()).args(watch.get_args());
    let watcher = Running::start(shell)?;
    let said = |text: &str| fs::read_to_string(&output).is_ok_and(|all| all.contains(text));
    wait_until("the watch to begin", || has_programs(watcher.pid()))?;
    fs::write(&contract, "[[task]]\n")?;
    watcher.signal(Signal::HUP)?;
    wait_until("the refusal", || said("the contract stays as it was"))?;
    fs::write(&contract, IMPOSSIBLE)?;
    watcher.signal(Signal::HUP)?;
    wait_until("the new contract", || said("was read again"))?;
    let before = sleeps(program.pid(), "task-0").unwrap_or(0);
    wait_until("some jobs", || sleeps(program.pid(), "task-0").is_some_and(|sleeps| sleeps > before + 200))?;
    watcher.signal(Signal::INT)?;
    let ended = watcher.end()?;
    ended.expect_code(8)?;
    ensure!(ended.stdout.contains("task-0: response "), "{}", ended.all());
    Ok(Outcome::Completed)
}

/// How long the machine has been suspended since it started.
fn suspension() -> Duration {
    let on = |clock| {
        let now = rustix::time::clock_gettime(clock);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    on(ClockId::Boottime).saturating_sub(on(ClockId::Monotonic))
}

/// Suspends to memory until the alarm of the machine's clock.
fn suspend(seconds: u32) -> Result {
    const ALARM: &str = "/sys/class/rtc/rtc0/wakealarm";
    fs::write(ALARM, "0")?;
    fs::write(ALARM, format!("+{seconds}"))?;
    Ok(fs::write("/sys/power/state", "mem")?)
}

/// While a machine is suspended, CLOCK_MONOTONIC stands still, and nobody is late.
fn suspended() -> Result<Outcome> {
    let states = fs::read_to_string("/sys/power/state").unwrap_or_default();
    if !Path::new("/lab/job").exists() || !states.split_whitespace().any(|state| state == "mem") {
        return skip("this is no machine of the lab that can be suspended");
    }
    if is_counting() {
        return skip("time stands still while a machine that counts instructions is suspended");
    }
    const SECONDS: u32 = 4;
    let directory = directory()?;
    let contract = directory.path().join("run.toml");
    let terms = "separator = \"clock_nanosleep*\"\nperiod = \"2ms\"\njitter = \"1500ms\"\n";
    fs::write(&contract, format!("[[task]]\nname = \"task-0\"\n{terms}response = \"1500ms\"\n"))?;
    // A command begins once it is watched.
    let mut watch = punctual(["watch", "--json", "--no-journal"]);
    watch.arg(&contract).arg("--").args(periodic("60"));
    let watcher = Running::start(watch)?;
    let sleep = || children(watcher.pid()).into_iter().find_map(|child| sleeps(child, "task-0"));
    wait_until("the workload to run", || sleep().is_some_and(|sleeps| sleeps > 5))?;
    let after = |count: u64| {
        let before = sleep().unwrap_or(0);
        wait_until("some jobs", || sleep().is_some_and(|sleeps| sleeps > before + count))
    };
    after(300)?;
    let before = suspension();
    suspend(SECONDS)?;
    let slept = suspension().saturating_sub(before);
    ensure!(slept >= Duration::from_secs(u64::from(SECONDS) - 2), "it was suspended for {slept:?} only");
    after(300)?;
    watcher.signal(Signal::INT)?;
    let ended = watcher.end()?;
    ended.expect_code(0)?;
    let lines = lines(&ended.stdout)?;
    let jobs = lines.last().map(|end| end["outcome"]["inputs"][0]["tasks"][0]["jobs"].clone());
    ensure!(jobs.and_then(|jobs| jobs.as_u64()).is_some_and(|jobs| jobs > 500), "{}", ended.all());
    Ok(Outcome::Completed)
}

/// Whether a process has eBPF programs. A watch loads them after it has read its contract for the first time.
fn has_programs(pid: u32) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = descriptors.filter_map(|it| fs::read_link(it.path()).ok());
    targets.any(|target| target.to_string_lossy().starts_with("anon_inode:bpf"))
}

/// `punctual watch … | head -1`: whoever read the output has gone, and the watch goes on.
fn without_reader() -> Result<Outcome> {
    let directory = directory()?;
    let contract = directory.path().join("run.toml");
    fs::write(&contract, IMPOSSIBLE)?;
    let watch = punctual(["watch", "--no-journal"]);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("{ \"$@\"; echo $? >&2; } | head -1").arg("sh");
    shell.arg(watch.get_program()).args(watch.get_args()).arg(&contract).arg("--").args(periodic("2"));
    let ended = run(shell)?;
    ensure!(ended.stdout.lines().count() == 1, "{}", ended.all());
    ensure!(ended.stderr.lines().any(|line| line == "8"), "{}", ended.all());
    Ok(Outcome::Completed)
}
