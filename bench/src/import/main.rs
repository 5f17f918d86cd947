//! How fast traces of other tools are imported, in how much memory, and how fast summaries of many runs are
//! merged.
//!
//! Runs `punctual import` as a process of its own each time, kept on one processor.

mod summaries;
mod traces;

// The writers of the tests.
#[allow(dead_code)]
#[path = "../../../crates/import/tests/import/perf_file.rs"]
mod perf_file;
#[allow(dead_code)]
#[path = "../../../crates/import/tests/import/trace_dat.rs"]
mod trace_dat;

use punctual_bench::{Error, document, measure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Runs of each measurement, in turn; medians are printed.
const ROUNDS: u64 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [word, folder, jobs] if word == MAKE => make(Path::new(folder), jobs),
        _ => run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-import: {error}");
            ExitCode::FAILURE
        }
    }
}

/// As a process of its own: the memory that this takes would count as that of every process started later.
const MAKE: &str = "make";
const LTTNG: &str = "lttng";
const TRACE_DAT: &str = "trace.dat";

fn make(folder: &Path, jobs: &str) -> Result<(), Error> {
    let jobs = jobs.parse()?;
    traces::lttng(&folder.join(LTTNG).join("kernel"), jobs)?;
    traces::trace_dat(&folder.join(TRACE_DAT), jobs)
}

fn run() -> Result<(), Error> {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let events = number("EVENTS", 10_000_000);
    let jobs = events / traces::EVENTS / u64::from(traces::CPUS);
    let (summaries, threads) = (number("SUMMARIES", 1_000), number("THREADS", 10));
    let place = tempfile::tempdir()?;
    let (lttng, trace_dat) = (place.path().join(LTTNG), place.path().join(TRACE_DAT));
    eprintln!("making a trace of LTTng and a trace.dat, of {events} events each …");
    let made =
        Command::new(std::env::current_exe()?).arg(MAKE).arg(place.path()).arg(jobs.to_string()).status()?;
    if !made.success() {
        return Err("the traces could not be made".into());
    }
    let (rounds, mut runs) = (number("ROUNDS", ROUNDS), [Vec::new(), Vec::new()]);
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds} …");
        for (source, runs) in [&lttng, &trace_dat].into_iter().zip(&mut runs) {
            runs.push(import(source, &place.path().join("recording"), jobs * u64::from(traces::CPUS))?);
        }
    }
    eprintln!("merging {summaries} summaries …");
    let folder = place.path().join("summaries");
    std::fs::create_dir(&folder)?;
    let merged = summaries::merge(&folder, summaries, threads, rounds)?;
    let seconds = |runs: &[Run]| {
        let mut seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        format!("{:.1} s", seconds.get(seconds.len() / 2).copied().unwrap_or(0.0))
    };
    let memory =
        |runs: &[Run]| format!("{:.1} MiB", runs.iter().map(|run| run.resident_mib).fold(0.0, f64::max));
    let row = |what: String, found: String, goal: &str| [what, found, goal.to_owned()];
    let rows = [
        row(format!("`import` of {events} events of LTTng, on one processor"), seconds(&runs[0]), "≤ 15 s"),
        row("most resident memory".into(), memory(&runs[0]), "≤ 64 MiB"),
        row(format!("`import` of a `trace.dat` of {events} events"), seconds(&runs[1]), "≤ 15 s"),
        row("most resident memory".into(), memory(&runs[1]), "≤ 64 MiB"),
        row(
            format!("`merge` of {summaries} summaries of {threads} tasks into one"),
            format!("{:.2} s", merged.summary),
            "≤ 1 s",
        ),
        row("into a timing model".into(), format!("{:.2} s", merged.model), "≤ 1 s"),
        row("most resident memory".into(), format!("{:.1} MiB", merged.resident_mib), ""),
        row(
            "a task in the summary of one run, and of all".into(),
            format!("{:.1} kB, {:.1} kB", merged.bytes[0] / 1e3, merged.bytes[1] / 1e3),
            "a few kB",
        ),
    ];
    document::publish("import", "make bench-import", &["what", "measured", "goal"], &rows)
}

struct Run {
    seconds: f64,
    resident_mib: f64,
}

/// Imports it, and makes sure that all jobs came through.
fn import(source: &Path, recording: &PathBuf, jobs: u64) -> Result<Run, Error> {
    let punctual = measure::built("punctual");
    let began = Instant::now();
    let child = Command::new("taskset")
        .args(["--cpu-list", "0"])
        .arg(&punctual)
        .args(["import", "--quiet", "--force", "-o"])
        .args([recording, source])
        .spawn()?;
    let (success, resident_kib) = measure::end_of(child)?;
    let seconds = began.elapsed().as_secs_f64();
    if !success {
        return Err(format!("punctual import {} failed", source.display()).into());
    }
    let model = recording.with_extension("timing.json");
    let replayed = Command::new(&punctual)
        .args(["replay", "--quiet", "--force", "--curve-horizon", "8", "--wcet-horizon", "8", "-o"])
        .args([&model, recording])
        .status()?;
    let model: serde_json::Value = serde_json::from_slice(&std::fs::read(&model)?)?;
    let primary = |task: &serde_json::Value| {
        let stream = usize::try_from(task["primary"].as_u64()?).ok()?;
        task["streams"][stream]["jobs"].as_u64()
    };
    let seen: u64 = model["threads"]["tasks"].as_array().into_iter().flatten().filter_map(primary).sum();
    let threads = traces::THREADS * u64::from(traces::CPUS);
    // The first and the last job of each thread are not whole.
    if !replayed.success() || seen + 2 * threads < jobs || seen > jobs {
        return Err(format!("{jobs} jobs were imported as {seen}").into());
    }
    Ok(Run { seconds, resident_mib: resident_kib as f64 / 1024.0 })
}
