//! What `doctor` says works here, against what works when tried.

use crate::run::{Ended, Running, binary, directory, run, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, skip};
use serde_json::Value;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("doctor::is_right_about_tracepoints", tracepoints),
    ("doctor::is_right_about_function_tracing", function_tracing),
    ("doctor::is_right_about_the_bound_of_latencies", latency),
    ("doctor::says_what_measuring_threads_need", measuring_threads),
];

/// The program that it looks at keeps others from their processors.
pub const ALONE: &[(&str, Test)] = &[("doctor::sees_how_a_program_is_set_up", program)];

/// Threads of one priority on a processor, page faults in jobs, and a mutex without inheritance; and no
/// process.
fn program() -> Result<Outcome> {
    // Each second, the loop waits for the mutex four times, for some milliseconds.
    const LOOKS: usize = 8;
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let folder = directory()?;
    let mut late = Command::new(workload("late"));
    late.arg("1500").arg(folder.path().join("late.file"));
    let late = Running::start(late)?;
    let (mut found, mut all) = (Vec::new(), Value::Null);
    for _ in 0..LOOKS {
        let mut command = Command::new(binary());
        command.args(["doctor", "--json", "--pid", &late.pid().to_string()]);
        let ended = run(command)?;
        ended.expect_code(0)?;
        all = ended.json()?;
        let checks = all["checks"].as_array().into_iter().flatten();
        let degraded = checks.filter(|check| check["verdict"] == "degraded").filter_map(|check| {
            Some((check["name"].as_str()?.to_owned(), check["detail"].as_str()?.to_owned()))
        });
        found.extend(degraded);
        let has =
            |name: &str, detail: &str| found.iter().any(|(is, says)| is == name && says.contains(detail));
        if has("priorities", "control (FIFO 60) and equal (FIFO 60)")
            && has("page faults", "control")
            && has("mutexes without inheritance", "control (FIFO 60) for holder (FIFO 10)")
        {
            let mut command = Command::new(binary());
            command.args(["doctor", "--pid", "4194304"]);
            let none = run(command)?;
            none.expect_code(2)?;
            ensure!(none.stderr.contains("there is no process 4194304"), "{}", none.all());
            return Ok(Outcome::Completed);
        }
    }
    fail(format!("{found:?} in {LOOKS} looks; the last one: {all:#}"))
}

fn doctor() -> Result<(Ended, Value)> {
    let mut command = Command::new(binary());
    command.args(["doctor", "--json"]);
    let ended = run(command)?;
    let printed = ended.json()?;
    Ok((ended, printed))
}

fn check<'a>(printed: &'a Value, name: &str) -> Result<&'a Value> {
    let mut checks = printed["checks"].as_array().into_iter().flatten();
    let found = checks.find(|check| check["name"].as_str().is_some_and(|found| found.starts_with(name)));
    found.map_or_else(|| fail(format!("doctor does not say anything of {name}: {printed}")), Ok)
}

/// Why function tracing does not work here according to `doctor`; `None` if it works.
pub fn without_function_tracing() -> Result<Option<String>> {
    let (_, printed) = doctor()?;
    let check = check(&printed, "function tracing")?;
    Ok((check["verdict"] != "works")
        .then(|| format!("no function tracing: {}", check["detail"].as_str().unwrap_or_default())))
}

/// Whether, according to `doctor`, this kernel skips function tracing programs when it preempts threads in
/// them. Punctual then uses tracepoints by default.
pub fn skips_functions() -> bool {
    let printed =
        doctor().and_then(|(_, printed)| Ok(check(&printed, "function tracing")?["detail"].to_string()));
    printed.is_ok_and(|detail| detail.contains("skips it for others"))
}

/// Whether a short observation with this way of attaching finds the workload.
fn works(attach: &str) -> Result<(bool, Ended)> {
    let directory = directory()?;
    let file = directory.path().join("tried.timing.json");
    let mut command = Command::new(binary());
    command.args(["extract", "--quiet", "--attach", attach, "-o"]).arg(&file).arg("--");
    command.args([&workload("drivers"), "run", "sleep_absolute", "--period-us", "10000", "--jobs", "20"]);
    let ended = run(command)?;
    let found = file.exists() && crate::model::only_task(&crate::model::read(&file)?, "drv").is_ok();
    Ok((found && ended.code == Some(0), ended))
}

/// With the capabilities of observing alone, it names the one that is missing; where they all are there, it
/// says that it works.
fn measuring_threads() -> Result<Outcome> {
    let (_, printed) = doctor()?;
    ensure!(check(&printed, "measuring threads")?["verdict"] == "works", "as root: {printed}");
    let Some(mut command) = tool("setpriv", &[]) else { return skip("no setpriv here") };
    let capabilities = "-all,+bpf,+perfmon";
    command.args([&format!("--bounding-set={capabilities}"), "--inh-caps=-all", "--"]);
    command.args(["sh", "-c", "ulimit -r 0; exec \"$0\" doctor --json"]).arg(binary());
    let ended = run(command)?;
    let printed = ended.json()?;
    let found = check(&printed, "measuring threads")?;
    ensure!(found["verdict"] == "degraded", "without CAP_SYS_NICE: {}", ended.all());
    let advice = found["advice"].as_str().unwrap_or_default();
    ensure!(advice.contains("CAP_SYS_NICE") && advice.contains("cap_sys_nice"), "{}", ended.all());
    ensure!(check(&printed, "privileges")?["verdict"] == "works", "{}", ended.all());
    Ok(Outcome::Completed)
}

fn tracepoints() -> Result<Outcome> {
    let (doctor, printed) = doctor()?;
    let (works, ended) = works("tracepoint")?;
    let claimed = check(&printed, "tracepoints")?["verdict"] == "works"
        && printed["extraction"] == true
        && doctor.code == Some(0);
    ensure!(
        claimed == works,
        "doctor says {printed}, but observing through tracepoints came to: {}",
        ended.all()
    );
    Ok(Outcome::Completed)
}

fn function_tracing() -> Result<Outcome> {
    let refused = without_function_tracing()?;
    let (works, ended) = works("fentry")?;
    ensure!(
        refused.is_none() == works,
        "doctor says {refused:?}, but observing through functions came to: {}",
        ended.all()
    );
    ensure!(works || ended.code == Some(3), "what this kernel refuses is exit code 3, but: {}", ended.all());
    Ok(Outcome::Completed)
}

fn latency() -> Result<Outcome> {
    let (_, printed) = doctor()?;
    let check = check(&printed, "scheduling latency")?;
    let mut command = Command::new(binary());
    command.args(["latency", "--quiet", "--json", "--for", "1"]);
    let ended = run(command)?;
    ended.expect_code(0)?;
    let found = ended.json()?;
    let has_bound =
        found["processors"].as_array().is_some_and(|all| all.iter().any(|it| !it["bound_ns"].is_null()));
    ensure!((check["verdict"] == "works") == has_bound, "doctor says {check}, but there is: {found}");
    Ok(Outcome::Completed)
}
