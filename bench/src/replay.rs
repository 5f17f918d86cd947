//! How fast recordings are replayed, in how much memory, and how large they are: of a recording that is made
//! for it.
//!
//! Runs `punctual replay` as a process of its own each time. Not for: what recording costs the recorded
//! (`make bench-record`).
//!
//! Two workers are twice as fast only where they get two processors, so it says too how much of these others
//! had meanwhile, and what does not depend on them: the processor time.

use punctual_bench::{Error, document, measure, trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Runs of each measurement, in turn; medians are printed.
const ROUNDS: u64 = 5;

/// What the kernel counts processor time in.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
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
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (activations, threads) = (number("ACTIVATIONS", 10_000_000), number("THREADS", 20));
    let scratch = Scratch(std::env::temp_dir().join(format!("punctual-bench-replay-{}", std::process::id())));
    std::fs::create_dir(&scratch.0)?;
    let folder = scratch.0.join("recording");
    eprintln!("making a recording of {activations} activations of {threads} threads …");
    let recorded = trace::write(&folder, activations, u32::try_from(threads)?)?;

    let rounds = number("ROUNDS", ROUNDS);
    let mut runs = [const { Vec::new() }; WAYS.len()];
    for round in 0..rounds {
        eprintln!("round {} of {rounds} …", round + 1);
        for (way, runs) in WAYS.iter().zip(&mut runs) {
            runs.push(replay(&folder, &scratch.0.join("model.timing.json"), *way)?);
        }
    }
    // One worker leaves them a processor.
    let by_two =
        || WAYS.iter().zip(&runs).filter(|((_, workers), _)| *workers == 2).flat_map(|(_, runs)| runs);
    let others = by_two().map(|run| run.others_seconds).sum::<f64>()
        / by_two().map(|run| run.all_seconds).sum::<f64>();
    let [many, many_by_two, few, few_by_two] = runs.map(|runs| Run {
        seconds: median(runs.iter().map(|run| run.seconds).collect()),
        processor_seconds: median(runs.iter().map(|run| run.processor_seconds).collect()),
        others_seconds: runs.iter().map(|run| run.others_seconds).sum(),
        all_seconds: runs.iter().map(|run| run.all_seconds).sum(),
        resident_mib: runs.iter().map(|run| run.resident_mib).fold(0.0, f64::max),
    });
    let rate = |run: &Run| format!("{:.2} million/s", recorded.activations as f64 / run.seconds / 1e6);
    let memory = |run: &Run| format!("{:.1} MiB", run.resident_mib);
    let speed_up = |one: &Run, two: &Run| format!("{:.2}", one.seconds / two.seconds);
    let work = |one: &Run, two: &Run| format!("{:.2}", two.processor_seconds / one.processor_seconds);
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
        row("processor time of two workers to that of one", work(&many, &many_by_two), "nearly 1"),
        row("replay at a horizon of 32, one worker", rate(&few), "≥ 5 million/s"),
        row("replay at a horizon of 32, two workers", rate(&few_by_two), ""),
        row("how much faster that is", speed_up(&few, &few_by_two), "nearly 2"),
        row("processor time of two workers to that of one", work(&few, &few_by_two), "nearly 1"),
        row(
            "what others had of the processors while there were two workers",
            format!("{:.0} %", others * 100.0),
            "",
        ),
        row("most resident memory, horizon 1,000, one worker", memory(&many), "≤ 64 MiB"),
        row("most resident memory, horizon 1,000, two workers", memory(&many_by_two), "≤ 64 MiB"),
    ];
    document::publish("replay", "make bench-replay", &["what", "measured", "goal"], &rows)
}

/// What one run took, in processor time too; of that, what there was in all and what others had.
struct Run {
    seconds: f64,
    processor_seconds: f64,
    others_seconds: f64,
    all_seconds: f64,
    resident_mib: f64,
}

fn replay(folder: &Path, model: &Path, (horizon, workers): (u32, u32)) -> Result<Run, Error> {
    let (horizon, workers) = (horizon.to_string(), workers.to_string());
    let before = Processors::now()?;
    let began = Instant::now();
    let child = Command::new(measure::built("punctual"))
        .args([
            "replay",
            "--quiet",
            "--force",
            "--curve-horizon",
            &horizon,
            "--wcet-horizon",
            &horizon,
            "--jobs",
            &workers,
            "-o",
        ])
        .arg(model)
        .arg(folder)
        .spawn()?;
    let (success, resident_kib) = measure::end_of(child)?;
    let seconds = began.elapsed().as_secs_f64();
    if !success {
        return Err("punctual replay failed".into());
    }
    let after = Processors::now()?;
    let processor_seconds = after.children - before.children;
    Ok(Run {
        seconds,
        processor_seconds,
        // Ticks of one and the other need not add up.
        others_seconds: (after.busy - before.busy - processor_seconds).max(0.0),
        all_seconds: after.all - before.all,
        resident_mib: resident_kib as f64 / 1024.0,
    })
}

/// Seconds of all processors together so far.
struct Processors {
    all: f64,
    busy: f64,
    /// Those of this process's children that have ended.
    children: f64,
}

impl Processors {
    fn now() -> Result<Processors, Error> {
        let seconds = |text: &str| text.parse().map(|ticks: f64| ticks / TICKS_PER_SECOND);
        let machine = fs::read_to_string("/proc/stat")?;
        // user, nice, system, idle, iowait, irq, softirq, steal; the guests after them are in user already.
        let first = machine.lines().next().unwrap_or_default().split_whitespace();
        let all = first.skip(1).take(8).map(seconds).collect::<Result<Vec<f64>, _>>()?;
        let own = fs::read_to_string("/proc/self/stat")?;
        let children = own.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
        let children = children.map(seconds).collect::<Result<Vec<f64>, _>>()?;
        let idle: f64 = all.iter().skip(3).take(2).sum();
        let all: f64 = all.iter().sum();
        Ok(Processors { all, busy: all - idle, children: children.iter().sum() })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
