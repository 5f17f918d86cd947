//! Live threads against what their jobs log of themselves, while a second process takes the processors now
//! and then: periods, activations skipped, costs. And programs that are disturbed otherwise: cyclictest,
//! SIGSTOP.
//!
//! `JOBS` sets how many jobs each driver has (5,000), `DRIVERS` which drivers run (all), and `KEEP` names a
//! folder for recordings that gave something wrong, with the log of the driver concerned.

#[path = "../../tests/e2e/src/truth/log.rs"]
mod log;

use log::{Costs, Key, Listed};
use punctual_bench::measure::{built, target};
use punctual_bench::{Error, document};
use punctual_model::{PeriodicOn, Policy, Stream, Task, TimingModel};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What the drivers have in turn, in microseconds.
const PERIODS_US: [&str; 3] = ["4000", "2500", "3140"];
/// How many drivers run at a time. They sleep most of it.
const AT_A_TIME: usize = 4;
/// Drivers whose thread runs within its sleeps, for signals: the job before is charged for that.
const INTERRUPTED: [&str; 2] = ["sleep_interrupted", "sleep_stopped"];
const CYCLICTEST_RUNS: usize = 7;
/// When the process is stopped, in seconds after its beginning; it runs for four.
const STOPS: [&str; 4] = ["0.71", "1.43", "2.19", "2.97"];
const MS: u64 = 1_000_000;

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

fn run() -> Result<(), Error> {
    let folder = Folder::new()?;
    let mut rows = drivers(&folder.0)?;
    rows.extend(cyclictest(&folder.0)?);
    rows.push(stopped(&folder.0)?);
    document::publish("truth", "make bench-truth", &["what", "measured", "goal"], &rows)
}

/// Removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Error> {
        let path = std::env::temp_dir().join(format!("punctual-bench-truth-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Something that runs beside, until it is dropped.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn workload(name: &str) -> PathBuf {
    target().join("workloads").join(name)
}

/// Bursts of some length in µs, and the mean gap between them.
fn disturb(priority: u32, us: Range<u32>, gap_us: u32) -> Result<Beside, Error> {
    let mut command = Command::new(workload("bursts"));
    let numbers = [("priority", priority), ("least-us", us.start), ("most-us", us.end), ("gap-us", gap_us)];
    for (name, number) in numbers {
        command.arg(format!("--{name}")).arg(number.to_string());
    }
    Ok(Beside(command.args(["--for", "100000"]).stdout(Stdio::null()).spawn()?))
}

/// A recording replayed.
struct Replayed {
    model: TimingModel,
    listed: BTreeMap<Key, Vec<Listed>>,
}

impl Replayed {
    fn jobs(&self, task: &Task) -> &[Listed] {
        self.listed.get(&(task.tid.into(), task.phase.into())).map(Vec::as_slice).unwrap_or_default()
    }
}

fn punctual(command: &mut Command) -> Result<(), Error> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Records a command to its end, and lists the jobs of its threads of this name.
fn recorded(folder: &Path, command: &mut Command, thread: &str) -> Result<Replayed, Error> {
    let [recording, jobs, file] = ["recording", "jobs.csv", "x.timing.json"].map(|name| folder.join(name));
    let binary = built("punctual");
    let mut record = Command::new(&binary);
    record.args(["record", "--quiet", "--force", "-o"]).arg(&recording).arg("--");
    punctual(record.arg(command.get_program()).args(command.get_args()))?;
    let mut replay = Command::new(&binary);
    replay.args(["replay", "--quiet", "--force", "--jobs-out"]).arg(&jobs).arg("-o").arg(&file);
    punctual(replay.arg(&recording))?;
    let model = TimingModel::from_json(&fs::read_to_string(&file)?)?;
    let listed = log::listed(&fs::read_to_string(&jobs)?, thread)?;
    Ok(Replayed { model, listed })
}

fn primary(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

fn on_arrivals(stream: &Stream) -> bool {
    stream.arrival.periodic.as_ref().is_some_and(|periodic| periodic.on == PeriodicOn::Arrival)
}

fn row(what: impl Into<String>, measured: impl Into<String>, goal: impl Into<String>) -> [String; 3] {
    [what.into(), measured.into(), goal.into()]
}

/// How often something was right.
#[derive(Default)]
struct Right {
    right: u64,
    total: u64,
}

impl Right {
    fn add(&mut self, right: bool) {
        self.right += u64::from(right);
        self.total += 1;
    }

    fn row(&self, what: &str) -> [String; 3] {
        row(what, format!("{} of {}", self.right, self.total), self.total.to_string())
    }
}

/// What comes of all drivers.
#[derive(Default)]
struct Found {
    periods: Right,
    /// Of those whose arrivals are known.
    slips_known: Right,
    /// Of the others.
    slips: Right,
    skipped: u64,
    costs: Costs,
}

fn drivers(folder: &Path) -> Result<Vec<[String; 3]>, Error> {
    let jobs = std::env::var("JOBS").unwrap_or_else(|_| "5000".into());
    let listed = Command::new(workload("drivers")).arg("list").output()?;
    let all = String::from_utf8(listed.stdout)?;
    let chosen = std::env::var("DRIVERS").unwrap_or_default();
    let is_chosen = |name: &&str| chosen.is_empty() || chosen.split_whitespace().any(|one| one == *name);
    let names: Vec<&str> = all.lines().filter(|name| log::is_on_grid(name)).filter(is_chosen).collect();
    let off = log::OFF_GRID.iter().map(|(name, why)| format!("{name} ({why})")).collect::<Vec<_>>();
    eprintln!("{} drivers of {jobs} jobs each, {AT_A_TIME} at a time …", names.len());
    eprintln!("left out, since on no grid: {}", off.join(", "));
    let _load = disturb(70, 200..9_000, 300_000)?;
    let mut found = Found::default();
    for (number, some) in names.chunks(AT_A_TIME).enumerate() {
        let replayed = recorded(folder, &mut together(folder, some, number, &jobs), "drv")?;
        for driver in some {
            if !found.add(folder, driver, &replayed)? {
                keep(folder, driver)?;
            }
        }
    }
    let Costs { compared, too_little, worst_ns, too_much } = found.costs;
    let worst = if too_little > 0 { format!(", by up to {worst_ns} ns") } else { String::new() };
    Ok(vec![
        found.periods.row("drivers under load whose activations are on a grid: period right"),
        found.slips_known.row("of these with known arrivals: number of activations skipped right"),
        found.slips.row("of the others: the same"),
        row("activations without a release of their own in all", found.skipped.to_string(), ""),
        row("their jobs, compared with their own account", compared.to_string(), ""),
        row("jobs with too little cost", format!("{too_little}{worst}"), "0"),
        row("jobs that cost more than the time from their wake-up to their end", too_much.to_string(), "0"),
    ])
}

/// Some drivers at a time, each with files of its name for what it says and logs.
fn together(folder: &Path, names: &[&str], number: usize, jobs: &str) -> Command {
    let mut script = String::new();
    for (place, name) in names.iter().enumerate() {
        let period = PERIODS_US[(number + place) % PERIODS_US.len()];
        script += &format!("\"$1\" run {name} --period-us {period} --jobs {jobs} ");
        script += &format!("--truth \"$2/{name}.csv\" --skips >\"$2/{name}.json\" &\n");
    }
    let mut command = Command::new("sh");
    command.args(["-c", &(script + "wait"), "sh"]).arg(workload("drivers")).arg(folder);
    command
}

/// Copies the recording and what the driver logged to the folder that `KEEP` names, if it is set.
fn keep(folder: &Path, driver: &str) -> Result<(), Error> {
    let Some(kept) = std::env::var_os("KEEP") else { return Ok(()) };
    let kept =
        (0..).map(|number| Path::new(&kept).join(format!("{driver}-{number}"))).find(|it| !it.exists());
    let kept = kept.ok_or("no name is left in the folder")?;
    fs::create_dir_all(kept.join("recording"))?;
    for entry in fs::read_dir(folder.join("recording"))? {
        let entry = entry?;
        fs::copy(entry.path(), kept.join("recording").join(entry.file_name()))?;
    }
    for name in [format!("{driver}.csv"), format!("{driver}.json")] {
        fs::copy(folder.join(&name), kept.join(&name))?;
    }
    eprintln!("{driver}: kept in {}", kept.display());
    Ok(())
}

impl Found {
    /// Whether everything is right.
    fn add(&mut self, folder: &Path, driver: &str, replayed: &Replayed) -> Result<bool, Error> {
        let report: Value =
            serde_json::from_str(&fs::read_to_string(folder.join(format!("{driver}.json")))?)?;
        if let Some(reason) = report["skip"].as_str() {
            eprintln!("{driver} is left out: {reason}");
            return Ok(true);
        }
        let is_it = |task: &&Task| Some(u64::from(task.pid)) == report["pid"].as_u64() && task.name == "drv";
        let task = replayed.model.tasks().iter().find(is_it).ok_or(format!("{driver} was not seen"))?;
        let stream = primary(task).ok_or(format!("{driver} has no primary separator"))?;
        let logged = log::logged(&fs::read_to_string(folder.join(format!("{driver}.csv")))?)?;
        let wrong = log::wrong_period(stream, report["period_ns"].as_u64().unwrap_or(0));
        self.periods.add(wrong.is_none());
        let skipped = log::skipped(replayed.jobs(task), stream.releases, &logged);
        self.skipped += skipped;
        let wrong_slips = log::wrong_slips(stream, skipped);
        if on_arrivals(stream) {
            self.slips_known.add(wrong_slips.is_none());
        } else {
            self.slips.add(wrong_slips.is_none());
        }
        let wrong = wrong.or(wrong_slips);
        if let Some(wrong) = &wrong {
            eprintln!("{driver}: {wrong}");
        }
        let mut costs = log::costs(replayed.jobs(task), &logged);
        if INTERRUPTED.contains(&driver) {
            costs.too_much = 0;
        }
        let right = wrong.is_none() && costs.too_little + costs.too_much == 0;
        if costs.too_little + costs.too_much > 0 {
            eprintln!("{driver}: {costs:?}");
        }
        self.costs += costs;
        Ok(right)
    }
}

fn cyclictest(folder: &Path) -> Result<[[String; 3]; 2], Error> {
    eprintln!("cyclictest, {CYCLICTEST_RUNS} times …");
    let _bursts = disturb(90, 3_000..8_000, 200_000)?;
    let (mut right, mut skipped_in_all) = (Right::default(), 0);
    for _ in 0..CYCLICTEST_RUNS {
        let mut command = Command::new("cyclictest");
        command.args(["-q", "-t1", "-p80", "-i1000", "-D5"]);
        let replayed = recorded(folder, &mut command, "cyclictest")?;
        let mut fifo = replayed.model.tasks().iter().filter(|task| task.policy == Policy::Fifo);
        let is_it = |task: &&Task| task.name == "cyclictest" && task.primary.is_some();
        let task = fifo.find(is_it).ok_or("cyclictest was not seen")?;
        let stream = primary(task).ok_or("cyclictest has no primary separator")?;
        let skipped = log::skipped_by_arrivals(replayed.jobs(task), MS).ok_or("no arrivals are listed")?;
        let wrong = log::wrong_period(stream, MS).or_else(|| log::wrong_slips(stream, skipped));
        right.add(wrong.is_none());
        skipped_in_all += skipped;
        wrong.inspect(|wrong| eprintln!("cyclictest: {wrong}"));
    }
    let words = "`cyclictest -q -t1 -p80 -i1000 -D5` under bursts: 1 ms, the number skipped right, in runs";
    Ok([right.row(words), row("activations that it skipped in all", skipped_in_all.to_string(), "")])
}

fn stopped(folder: &Path) -> Result<[String; 3], Error> {
    eprintln!("SIGSTOP and SIGCONT in a sleep, {} times …", STOPS.len());
    let script = "\"$1\" --for 4 10000 & sleep \"$2\"; kill -STOP $!; sleep 0.15; kill -CONT $!; wait $!";
    let mut right = Right::default();
    for at in STOPS {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(workload("periodic")).arg(at);
        let replayed = recorded(folder, &mut command, "task-0")?;
        let task =
            replayed.model.tasks().iter().find(|task| task.name == "task-0").ok_or("nothing was seen")?;
        let stream = primary(task).ok_or("there is no primary separator")?;
        let dropped = (!on_arrivals(stream)).then(|| "a known arrival was dropped".to_owned());
        let wrong = log::wrong_period(stream, 10 * MS).or_else(|| log::wrong_slips(stream, 0)).or(dropped);
        right.add(wrong.is_none());
        wrong.inspect(|wrong| eprintln!("SIGSTOP after {at} s: {wrong}"));
    }
    Ok(right.row("SIGSTOP and SIGCONT in an absolute sleep: period right, no arrival dropped"))
}
