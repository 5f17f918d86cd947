//! How long a proof of many threads takes: a timing model of 1,000 threads on 16 processors, with curves of
//! 1,000 points each. Periods have the shares of automotive software (Kramer, Ziegenbein and Hamann, WATERS
//! 2015). If each job needed its WCET, each processor would be loaded by 60 %.
//!
//! Runs `punctual prove` as a process, so reading the model is a part of it.

use punctual_bench::{Error, document, measure};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

const THREADS: u64 = 1_000;
const PROCESSORS: u64 = 16;
const POINTS: u64 = 1_000;
const ROUNDS: usize = 5;
/// In ms, and their shares in percent; what depends on the angle of an engine has 5 ms here.
const PERIODS: [(u64, u64); 9] =
    [(1, 3), (2, 2), (5, 17), (10, 25), (20, 25), (50, 3), (100, 20), (200, 1), (1000, 4)];

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

/// A file that is gone when this is.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run() -> Result<(), Error> {
    let name = format!("punctual-bench-prove-{}.timing.json", std::process::id());
    let model = Scratch(std::env::temp_dir().join(name));
    let tasks: Vec<Value> = (0..THREADS).map(task).collect();
    let text = json!({
        "format": "punctual.timing-model",
        "version": 2,
        "clock": "CLOCK_MONOTONIC",
        "platform": { "kernel": "0.0.0-generated", "machine": "none", "cpus": PROCESSORS },
        "threads": {
            "from_ns": 0,
            "until_ns": 3_600_000_000_000_u64,
            "records": THREADS * POINTS,
            "lost_records": 0,
            "tasks": tasks,
        },
    });
    std::fs::write(&model.0, text.to_string())?;
    let rows = [
        row("all bounds", measured(&model, &[])?, "≤ 2 s"),
        row("and how far each thread may change (--sensitivity)", measured(&model, &["--sensitivity"])?, ""),
    ];
    document::publish("prove", "make bench-prove", &["what", "elapsed", "resident memory", "goal"], &rows)
}

/// Median of the seconds, and the most MiB.
fn measured(model: &Scratch, more: &[&str]) -> Result<(f64, f64), Error> {
    let (mut seconds, mut most) = (Vec::new(), 0.0_f64);
    // One takes long enough.
    let rounds = if more.is_empty() { ROUNDS } else { 1 };
    for _ in 0..rounds {
        let began = Instant::now();
        let mut command = Command::new(measure::built("punctual"));
        command.args(["prove", "--quiet", "--json"]).args(more).arg(&model.0).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut proof = child.stdout.take().ok_or("no output")?;
        let proof: Value = serde_json::from_reader(&mut proof)?;
        let (_, resident_kib) = measure::end_of(child)?;
        seconds.push(began.elapsed().as_secs_f64());
        most = most.max(resident_kib as f64 / 1024.0);
        let bounded = proof["tasks"].as_array().map_or(0, |tasks| {
            tasks.iter().filter(|task| task["response_ns"].is_u64() && task["exact"] == true).count()
        });
        if bounded as u64 != THREADS {
            return Err(format!("{bounded} of {THREADS} threads have an exact bound").into());
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[seconds.len() / 2], most))
}

fn row(what: &str, (seconds, mib): (f64, f64), goal: &str) -> [String; 4] {
    let what = format!("{what}: {THREADS} threads, {PROCESSORS} processors, curves of {POINTS} points");
    [what, format!("{seconds:.2} s"), format!("{mib:.1} MiB"), goal.into()]
}

/// A thread whose releases are up to a tenth of its period late, and whose jobs rarely need their most.
fn task(number: u64) -> Value {
    let mut share = number * 37 % 100;
    let period_ms = PERIODS.iter().find_map(|(period, of)| {
        let is_this = share < *of;
        share = share.saturating_sub(*of);
        is_this.then_some(*period)
    });
    let period = period_ms.unwrap_or(10) * 1_000_000;
    let jitter = period / 10;
    let on_each = THREADS.div_ceil(PROCESSORS);
    let cost = period * 6 / 10 / on_each;
    let slower = PERIODS.iter().rev().position(|it| it.0 * 1_000_000 == period).unwrap_or(0);
    let least: Vec<u64> = (1..=POINTS).map(|gaps| gaps * period - jitter + gaps % 7).collect();
    let most: Vec<u64> = (1..=POINTS).map(|gaps| gaps * period + jitter).collect();
    let wcet: Vec<u64> = (1..=POINTS).map(|jobs| jobs * cost * 9 / 10 + cost / 10).collect();
    json!({
        "name": format!("thread-{number}"),
        "pid": 2,
        "tid": 100 + number,
        "phase": 0,
        "command": "generated",
        "policy": "SCHED_FIFO",
        "priority": 1 + slower as u64 * 10 + number / PROCESSORS % 10,
        "affinity": (number % PROCESSORS).to_string(),
        "from_ns": 0,
        "until_ns": 3_600_000_000_000_u64,
        "ended_by": "exit",
        "primary": 0,
        "primary_reason": "generated",
        "streams": [{
            "separator": { "call": "suspension" },
            "jobs": 10 * POINTS,
            "releases": 10 * POINTS,
            "uncertain_releases": 0,
            "back_to_back": 0,
            "arrival": {
                "sporadic": { "min_separation_ns": least[0] },
                "curve": { "delta_min_ns": least, "delta_max_ns": most },
            },
            "execution": { "wcet_ns": wcet },
        }],
    })
}
