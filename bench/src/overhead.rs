//! What observing costs: the same workloads with and without Punctual, in one run, as ratios.
//!
//! Prints a table and writes it into `docs/benchmarks.md`, between the marks of its section. Needs root and a
//! quiet machine; says what machine it was. Not for: the speed of extraction alone (`make bench-extract`).

use punctual_bench::measure::{Programs, Punctual, workload};
use punctual_bench::{Error, document};
use serde_json::Value;
use std::time::Duration;

/// Rounds of the paired measurements; the median is printed.
const ROUNDS: usize = 5;

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

fn run() -> Result<(), Error> {
    let minutes: f64 = std::env::var("MINUTES").ok().and_then(|minutes| minutes.parse().ok()).unwrap_or(10.0);
    let mut rows = Vec::new();
    eprintln!("cost per job: 20 tasks, about 6,000 activations per second, 30 s …");
    rows.extend(cost_per_job()?);
    eprintln!("latency of a 1 kHz absolute sleep: {ROUNDS} × 10 s with and without …");
    rows.extend(latency()?);
    eprintln!("a system call that is not observed: {ROUNDS} × with and without …");
    rows.extend(unobserved_call()?);
    eprintln!("resident memory over {minutes} minutes …");
    rows.push(memory(
        "20 tasks",
        &["periodic", "--for", &(minutes * 60.0).to_string()],
        Duration::from_secs_f64(minutes * 60.0),
    )?);
    for kind in ["fd", "pipe", "address"] {
        let arguments = ["separators", "--kind", kind, "--jobs", "50000"];
        rows.push(memory(&format!("a new separator per job ({kind})"), &arguments, Duration::from_secs(30))?);
    }
    document::publish(
        "overhead",
        "make bench-overhead",
        &["what", "without", "with", "ratio or target"],
        &rows,
    )?;
    Ok(())
}

/// Time in the eBPF programs, user time and records for each job.
fn cost_per_job() -> Result<Vec<[String; 4]>, Error> {
    let statistics = Programs::count()?;
    let mut punctual = Punctual::start(&["--"], &["periodic", "--for", "36"])?;
    std::thread::sleep(Duration::from_secs(3));
    let (before, user_before) = (statistics.spent()?, punctual.usage()?);
    let jobs_before = statistics.wakeups()?;
    std::thread::sleep(Duration::from_secs(30));
    let (after, user_after) = (statistics.spent()?, punctual.usage()?);
    let wakeups = (statistics.wakeups()? - jobs_before) as f64;
    let model = punctual.finish()?;
    let jobs = primary_jobs(&model);
    let observed = model["threads"]["until_ns"].as_f64().unwrap_or(0.0)
        - model["threads"]["from_ns"].as_f64().unwrap_or(0.0);
    let jobs_in_window = jobs * 30e9 / observed;
    let records = model["threads"]["records"].as_f64().unwrap_or(0.0);
    let lost = model["threads"]["lost_records"].as_f64().unwrap_or(0.0);
    let per_job = |nanoseconds: f64| format!("{:.2} µs", nanoseconds / jobs_in_window / 1e3);
    Ok(vec![
        row("BPF programs, per job", "0", per_job((after - before) as f64), "target ≤ 1.5 µs"),
        row("user time, per job", "0", per_job(user_after.user_ns - user_before.user_ns), "target ≤ 0.3 µs"),
        row("user and system time, per job", "0", per_job(user_after.total_ns - user_before.total_ns), ""),
        row("records per job", "0", format!("{:.3}", records / jobs), "target ≤ 1.3"),
        row("activations per second", "", format!("{:.0}", wakeups / 30.0), ""),
        row("records lost", "", format!("{lost}"), ""),
    ])
}

fn primary_jobs(model: &Value) -> f64 {
    let tasks = model["threads"]["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    tasks.iter().filter_map(|task| task["streams"][task["primary"].as_u64()? as usize]["jobs"].as_f64()).sum()
}

/// Wake-up latency as the thread itself measures it.
fn latency() -> Result<Vec<[String; 4]>, Error> {
    let arguments = ["latency", "--for", "10"];
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(workload(&arguments)?);
        let punctual = Punctual::start(&["--"], &arguments)?;
        with.push(punctual.output()?);
    }
    Ok(["mean_ns", "p50_ns", "p99_ns", "p99_9_ns"]
        .into_iter()
        .map(|field| {
            let middle = |outputs: &[Value]| {
                median(outputs.iter().filter_map(|output| output[field].as_f64()).collect())
            };
            let (without, with) = (middle(&without), middle(&with));
            let name = field.trim_end_matches("_ns").replace('_', ".");
            row(
                &format!("wake-up latency of a 1 kHz thread, {name}"),
                &format!("{:.1} µs", without / 1e3),
                format!("{:.1} µs", with / 1e3),
                &format!("{:.2} ({:+.1} µs)", with / without, (with - without) / 1e3),
            )
        })
        .collect())
}

/// A loop of a call that separates nothing, in a thread that is not observed, while others are.
fn unobserved_call() -> Result<Vec<[String; 4]>, Error> {
    let arguments = ["getppid"];
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut way = String::new();
    for _ in 0..ROUNDS {
        without.push(workload(&arguments)?["ns_per_call"].as_f64().unwrap_or(0.0));
        let mut punctual =
            Punctual::start(&["--"], &["periodic", "--tasks", "1", "--rate", "10", "--for", "60"])?;
        std::thread::sleep(Duration::from_secs(1));
        with.push(workload(&arguments)?["ns_per_call"].as_f64().unwrap_or(0.0));
        way = Programs::count()?.way()?.to_owned();
        punctual.finish()?;
    }
    let (without, with) = (median(without), median(with));
    Ok(vec![row(
        &format!("a system call that is not observed (by {way})"),
        &format!("{without:.0} ns"),
        format!("{with:.0} ns"),
        &format!("{:.2}", with / without),
    )])
}

/// Resident memory at the beginning, the most, and at the end.
fn memory(name: &str, arguments: &[&str], limit: Duration) -> Result<[String; 4], Error> {
    let mut punctual = Punctual::start(&["--"], arguments)?;
    let mut samples = Vec::new();
    let end = std::time::Instant::now() + limit;
    while std::time::Instant::now() < end && punctual.is_running()? {
        std::thread::sleep(Duration::from_secs(1));
        samples.extend(punctual.resident_kib());
    }
    punctual.finish()?;
    let mebibytes = |kib: Option<&u64>| format!("{:.1} MiB", kib.map_or(0.0, |kib| *kib as f64 / 1024.0));
    let settled = samples.get(10.min(samples.len().saturating_sub(1)));
    Ok(row(
        &format!("resident memory, {name}, {} s", samples.len()),
        "",
        format!(
            "{} after 10 s, {} at the end, {} at most",
            mebibytes(settled),
            mebibytes(samples.last()),
            mebibytes(samples.iter().max())
        ),
        "target ≤ 24 MiB, flat",
    ))
}

fn row(what: &str, without: &str, with: impl Into<String>, ratio: &str) -> [String; 4] {
    [what.to_owned(), without.to_owned(), with.into(), ratio.to_owned()]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
