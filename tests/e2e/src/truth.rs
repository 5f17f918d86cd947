//! Models of live threads against what their jobs log of themselves, while others take the processors.

mod log;

use crate::model::{primary, tasks};
use crate::run::{Running, directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, fail};
use log::{Costs, Key, Listed, Logged};
use punctual_model::{Task, TimingModel};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

pub use log::{skipped_by_arrivals, wrong_period, wrong_slips};

/// They take the processors from all others.
pub const ALONE: &[(&str, Test)] = &[("truth::under_load", under_load)];

/// One of each kind: time is waited for by `drv` itself, by a timer, and made by another thread.
#[rustfmt::skip]
const DRIVERS: [&str; 8] =
    ["sleep_absolute", "sleep_relative", "io_uring_timeout", "read_timerfd", "sigwait", "read_pipe",
     "futex_wait_bitset", "epoll_pwait"];
const PERIOD_US: &str = "4000";
const JOBS: &str = "600";

pub const ALL: &[(&str, Test)] = &[("truth::logs_are_read_right", logs)];

/// Runs each driver into files of its name, four at a time.
const SCRIPT: &str = r#"
drivers=$1 folder=$2 period=$3 jobs=$4 running=0
shift 4
for driver; do
	"$drivers" run "$driver" --period-us "$period" --jobs "$jobs" --truth "$folder/$driver.csv" --skips \
		>"$folder/$driver.json" &
	running=$((running + 1))
	[ $((running % 4)) != 0 ] || wait
done
wait
"#;

/// A recording replayed: its model, and the jobs of its threads of one name.
pub struct Replayed {
    pub model: TimingModel,
    listed: BTreeMap<Key, Vec<Listed>>,
}

impl Replayed {
    /// The jobs of a task at its primary separator.
    pub fn jobs(&self, task: &Task) -> &[Listed] {
        self.listed.get(&(task.tid.into(), task.phase.into())).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Records a command to its end.
pub fn recorded(folder: &Path, command: &[&str], thread: &str) -> Result<Replayed> {
    let [recording, jobs, file] = ["recording", "jobs.csv", "x.timing.json"].map(|name| folder.join(name));
    let mut record = punctual(["record", "--quiet", "-o"]);
    record.arg(&recording).arg("--").args(command);
    run(record)?.expect_code(0)?;
    let mut replay = punctual(["replay", "--quiet", "--jobs-out"]);
    replay.arg(&jobs).arg("-o").arg(&file).arg(&recording);
    run(replay)?.expect_code(0)?;
    let listed = log::listed(&std::fs::read_to_string(jobs)?, thread)?;
    Ok(Replayed { model: crate::model::read(&file)?, listed })
}

/// Something of this priority that takes all processors now and then, until it is dropped: bursts of some
/// length in µs, and the mean gap between them.
pub fn disturb(priority: u32, us: Range<u32>, gap_us: u32) -> Result<Running> {
    let mut command = Command::new(workload("bursts"));
    let numbers = [("priority", priority), ("least-us", us.start), ("most-us", us.end), ("gap-us", gap_us)];
    for (name, number) in numbers {
        command.arg(format!("--{name}")).arg(number.to_string());
    }
    command.args(["--for", "50"]);
    Running::start(command)
}

fn under_load() -> Result<Outcome> {
    let off = DRIVERS.iter().find(|driver| !log::is_on_grid(driver));
    ensure!(off.is_none(), "{off:?} has no period of its own");
    let directory = directory()?;
    let folder = directory.path().to_string_lossy().into_owned();
    let path = workload("drivers");
    let mut command = vec!["sh", "-c", SCRIPT, "sh", &path, &folder, PERIOD_US, JOBS];
    command.extend(DRIVERS);
    let disturbing = disturb(70, 1_000..9_000, 250_000)?;
    let replayed = recorded(directory.path(), &command, "drv")?;
    drop(disturbing);
    ensure!(crate::model::threads(&replayed.model).lost_records == 0, "records were lost");

    let (mut costs, mut wrong) = (Costs::default(), Vec::new());
    for driver in DRIVERS {
        let Some(driven) = read(directory.path(), driver)? else { continue };
        let own = tasks(&replayed.model, "drv").into_iter().find(|task| u64::from(task.pid) == driven.pid);
        let Some(task) = own else { return fail(format!("{driver} was not seen")) };
        costs += log::costs(replayed.jobs(task), &driven.logged);
        wrong.extend(driven.wrong(task, replayed.jobs(task))?.map(|message| format!("{driver}: {message}")));
    }
    let Costs { compared, too_little, worst_ns, .. } = costs;
    ensure!(compared > 1_000, "only {compared} jobs were compared");
    ensure!(too_little == 0, "{too_little} of {compared} jobs have too little cost, one by {worst_ns} ns");
    // A machine that loses its processors makes lateness, which models must survive.
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(Outcome::Completed)
}

/// Two jobs, of which one has too little cost; three activations, of which one was skipped; and a third job
/// after another that was skipped, which had not ended.
fn logs() -> Result<Outcome> {
    let logged = "index,due_ns,seen_ns,cpu_before_ns,cpu_after_ns
5,100,120,1000,1010
7,300,330,1015,1035
9,500,520,1040,1050
";
    let listed =
        "thread,tid,phase,primary,arrival_ns,release_earliest_ns,release_latest_ns,start_ns,end_ns,cost_ns
drv,3,0,true,100,105,105,110,140,10
drv,3,0,true,300,300,310,310,350,19
src,4,0,true,,1,1,1,2,1
";
    let (logged, listed) = (log::logged(logged)?, log::listed(listed, "drv")?);
    let [listed] = &listed.into_values().collect::<Vec<_>>()[..] else { return fail("one task was listed") };
    let Costs { compared, too_little, worst_ns, .. } = log::costs(listed, &logged);
    ensure!((compared, too_little, worst_ns) == (2, 1, 1), "{compared} compared, {too_little} by {worst_ns}");
    let skipped = [2, 3].map(|releases| log::skipped(listed, releases, &logged));
    ensure!(skipped == [1, 2], "{skipped:?}");
    let skipped = skipped_by_arrivals(listed, 100);
    ensure!(skipped == Some(1), "{skipped:?}");
    Ok(Outcome::Completed)
}

/// What a driver did.
struct Driven {
    pid: u64,
    report: Value,
    logged: Vec<Logged>,
}

/// `None` where the machine cannot run it.
fn read(folder: &Path, driver: &str) -> Result<Option<Driven>> {
    let text = std::fs::read_to_string(folder.join(format!("{driver}.json")))?;
    let report: serde_json::Result<Value> = serde_json::from_str(&text);
    let report = report.or_else(|error| fail(format!("{driver} said '{text}': {error}")))?;
    if let Some(reason) = report["skip"].as_str() {
        eprintln!("{driver} is left out: {reason}");
        return Ok(None);
    }
    let logged = log::logged(&std::fs::read_to_string(folder.join(format!("{driver}.csv")))?)?;
    let Some(pid) = report["pid"].as_u64() else { return fail(format!("{driver} does not say its process")) };
    Ok(Some(Driven { pid, report, logged }))
}

impl Driven {
    /// What is wrong with the period, or with the number of activations skipped where arrivals are exact:
    /// elsewhere a slip beside another is as good as a late release.
    fn wrong(&self, task: &Task, listed: &[Listed]) -> Result<Option<String>> {
        let stream = primary(task)?;
        let period = self.report["period_ns"].as_u64().unwrap_or(0);
        let exact = self.report["driver"] == "sleep_absolute";
        let slips =
            || wrong_slips(stream, log::skipped(listed, stream.releases, &self.logged)).filter(|_| exact);
        Ok(wrong_period(stream, period).or_else(slips))
    }
}
