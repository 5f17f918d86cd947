//! How fast recordings are replayed, in how much memory, and how large they are: of a recording that is made for it.
//!
//! Runs `punctual replay` as a process of its own each time. Not for: what recording costs the recorded (`make bench-record`).

use punctual_bench::{Error, document, measure, trace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Runs of each measurement, in turn; medians are printed.
const ROUNDS: usize = 5;

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-replay: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// A folder that is gone when this is.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Horizon of the curves, and workers.
const WAYS: [(u32, u32); 4] = [(1_000, 1), (1_000, 2), (32, 1), (32, 2)];

fn run() -> Result<(), Error> {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (activations, threads) = (number("ACTIVATIONS", 10_000_000), number("THREADS", 20));
    let scratch = Scratch(std::env::temp_dir().join(format!("punctual-bench-replay-{}", std::process::id())));
    std::fs::create_dir(&scratch.0)?;
    let folder = scratch.0.join("recording");
    eprintln!("making a recording of {activations} activations of {threads} threads …");
    let recorded = trace::write(&folder, activations, u32::try_from(threads)?)?;

    let mut runs = [const { Vec::new() }; WAYS.len()];
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS} …", round + 1);
        for (way, runs) in WAYS.iter().zip(&mut runs) {
            runs.push(replay(&folder, &scratch.0.join("model.timing.json"), *way)?);
        }
    }
    let [many, many_by_two, few, few_by_two] = runs.map(|runs| Run {
        seconds: median(runs.iter().map(|run| run.seconds).collect()),
        resident_mib: runs.iter().map(|run| run.resident_mib).fold(0.0, f64::max),
    });
    let rate = |run: &Run| format!("{:.2} million/s", recorded.activations as f64 / run.seconds / 1e6);
    let memory = |run: &Run| format!("{:.1} MiB", run.resident_mib);
    let speed_up = |one: &Run, two: &Run| format!("{:.2}", one.seconds / two.seconds);
    let row = |what: &str, found: String, goal: &str| [what.to_owned(), found, goal.to_owned()];
    let rows = [
        row("activations, threads", format!("{}, {threads}", recorded.activations), ""),
        row(
            "bytes on disk per activation, everything included",
            format!("{:.1}", recorded.bytes as f64 / recorded.activations as f64),
            "≤ 48",
        ),
        row("replay at a horizon of 1,000, one worker", rate(&many), "≥ 1.5 million/s"),
        row("replay at a horizon of 1,000, two workers", rate(&many_by_two), ""),
        row("how much faster that is", speed_up(&many, &many_by_two), "nearly 2"),
        row("replay at a horizon of 32, one worker", rate(&few), "≥ 5 million/s"),
        row("replay at a horizon of 32, two workers", rate(&few_by_two), ""),
        row("how much faster that is", speed_up(&few, &few_by_two), "nearly 2"),
        row("most resident memory, horizon 1,000, one worker", memory(&many), "≤ 64 MiB"),
        row("most resident memory, horizon 1,000, two workers", memory(&many_by_two), "≤ 64 MiB"),
    ];
    document::publish("replay", "make bench-replay", &["what", "measured", "goal"], &rows)
}

/// What one run took.
struct Run {
    seconds: f64,
    resident_mib: f64,
}

fn replay(folder: &Path, model: &Path, (horizon, workers): (u32, u32)) -> Result<Run, Error> {
    let (horizon, workers) = (horizon.to_string(), workers.to_string());
    let began = Instant::now();
    let child = Command::new(measure::target().join("release/punctual"))
        .args(["replay", "--quiet", "--force", "--curve-horizon", &horizon, "--wcet-horizon", &horizon, "--jobs", &workers, "-o"])
        .arg(model)
        .arg(folder)
        .spawn()?;
    let (success, resident_kib) = measure::end_of(child)?;
    let seconds = began.elapsed().as_secs_f64();
    if !success {
        return Err("punctual replay failed".into());
    }
    Ok(Run { seconds, resident_mib: resident_kib as f64 / 1024.0 })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
