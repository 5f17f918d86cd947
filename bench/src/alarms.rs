//! How long an alarm takes: from the end of a job that breaks its contract until `punctual watch` has told
//! it.
//!
//! Prints a table and writes it into `docs/benchmarks.md`, between the marks of its section. Needs root. Not
//! for: what watching costs (`make bench-watch`'s other parts).

use punctual_bench::measure::{built, target};
use punctual_bench::{Error, document};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Periods of the threads, in microseconds. An alarm must not wait for the next job.
const PERIODS: [&str; 4] = ["2000", "100000", "1000000", "5000000"];
const SECONDS: &str = "40";

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

fn run() -> Result<(), Error> {
    eprintln!("watching threads for {SECONDS} s …");
    let contract = std::env::temp_dir().join(format!("punctual-bench-alarms-{}.toml", std::process::id()));
    // Each job takes longer.
    let task = |number| {
        format!("[[task]]\nname = \"task-{number}\"\nseparator = \"clock_nanosleep*\"\nwcet = \"1us\"\n")
    };
    fs::write(&contract, (0..PERIODS.len()).map(task).collect::<String>())?;
    let delays = delays(&contract);
    fs::remove_file(&contract)?;
    let rows: Vec<[String; 5]> = delays?
        .into_iter()
        .map(|(task, mut delays)| {
            delays.sort_by(f64::total_cmp);
            let at = |share: f64| format!("{:.0} ms", delays[((delays.len() - 1) as f64 * share) as usize]);
            let number: usize = task.trim_start_matches("task-").parse().unwrap_or_default();
            let period = PERIODS[number].parse().unwrap_or(0.0) / 1_000.0;
            [format!("{period} ms"), delays.len().to_string(), at(0.5), at(1.0), "≤ 250 ms".into()]
        })
        .collect();
    if rows.len() < PERIODS.len() {
        return Err("not every thread had an alarm".into());
    }
    let head = ["period of the thread", "alarms told", "median", "greatest", "goal"];
    document::publish("alarms", "make bench-watch", &head, &rows)
}

/// For each task, the times from the end of its jobs to their alarms, in milliseconds.
fn delays(contract: &std::path::Path) -> Result<BTreeMap<String, Vec<f64>>, Error> {
    let mut watch = Command::new(built("punctual"));
    watch.args(["watch", "--quiet", "--json", "--no-journal"]).arg(contract).arg("--");
    watch.arg(target().join("workloads/periodic")).args(["--cost-us", "100", "--for", SECONDS]).args(PERIODS);
    let mut watch = watch.stdout(Stdio::piped()).spawn()?;
    let lines = watch.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let mut delays: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in lines {
        let line: Value = serde_json::from_str(&line?)?;
        let now = now_ns();
        let violation = &line["violation"];
        let (Some(task), Some(end)) = (violation["task"].as_str(), violation["end_ns"].as_u64()) else {
            continue;
        };
        delays.entry(task.to_owned()).or_default().push(now.saturating_sub(end) as f64 / 1e6);
    }
    // 8: the contract was not kept.
    match watch.wait()?.code() {
        Some(8) => Ok(delays),
        code => Err(format!("punctual watch ended with {code:?}").into()),
    }
}

/// CLOCK_MONOTONIC, by which jobs end.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
