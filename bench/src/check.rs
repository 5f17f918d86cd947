//! How fast a recording is checked against a contract, beside its replay: of the recording of `make
//! bench-replay`, by a contract that was made of its model.
//!
//! Runs `punctual` as a process of its own each time, with one worker and with two. Others may have the
//! processors meanwhile, so what counts is processor time, which workers share.

use punctual_bench::{Error, document, measure, trace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Runs of each measurement, in turn; medians are printed.
const ROUNDS: usize = 5;

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

fn run() -> Result<(), Error> {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (activations, threads) = (number("ACTIVATIONS", 10_000_000), number("THREADS", 20));
    let scratch = Scratch(std::env::temp_dir().join(format!("punctual-bench-check-{}", std::process::id())));
    std::fs::create_dir(&scratch.0)?;
    let file = |name: &str| scratch.0.join(name).display().to_string();
    let (folder, model, contract) = (file("recording"), file("model.timing.json"), file("contract.toml"));
    eprintln!("making a recording of {activations} activations of {threads} threads …");
    let recorded = trace::write(Path::new(&folder), activations, u32::try_from(threads)?)?;
    let replay = |workers| ["replay", "--quiet", "--force", "--jobs", workers, "-o", &model, &folder];
    punctual(&replay("2"))?;
    punctual(&["contract", "--quiet", &model, "-o", &contract])?;

    let check = |workers| ["check", "--quiet", "--json", "--jobs", workers, &contract, &folder];
    let ways: [&[&str]; 4] = [&check("1"), &check("2"), &replay("1"), &replay("2")];
    let mut runs = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS} …", round + 1);
        for (way, runs) in ways.iter().zip(&mut runs) {
            runs.push(punctual(way)?);
        }
    }
    let [check_one, check_two, one, two] = runs.map(|runs| Run {
        seconds: median(runs.iter().map(|run| run.seconds).collect()),
        processor_seconds: median(runs.iter().map(|run| run.processor_seconds).collect()),
        resident_mib: runs.iter().map(|run| run.resident_mib).fold(0.0, f64::max),
    });
    let row = |what: &str, run: &Run, replay: Option<&Run>| {
        let to_replay = replay.map_or(String::new(), |replay| {
            format!("{:.2}", run.processor_seconds / replay.processor_seconds)
        });
        [
            what.to_owned(),
            format!("{:.2} s", run.processor_seconds),
            to_replay,
            format!("{:.2} s", run.seconds),
            format!("{:.1} MiB", run.resident_mib),
            replay.map_or("", |_| "≤ 1").to_owned(),
        ]
    };
    let what = format!("{} activations, {threads} threads", recorded.activations);
    let rows = [
        row(&format!("check of {what}, one worker"), &check_one, Some(&one)),
        row("two workers", &check_two, Some(&two)),
        row("replay, one worker", &one, None),
        row("two workers", &two, None),
    ];
    let head = ["what", "processor time", "to that of replay", "elapsed", "resident memory", "goal"];
    document::publish("check", "make bench-check", &head, &rows)
}

struct Run {
    seconds: f64,
    processor_seconds: f64,
    resident_mib: f64,
}

fn punctual(arguments: &[&str]) -> Result<Run, Error> {
    let before = children()?;
    let began = Instant::now();
    let mut command = Command::new(measure::built("punctual"));
    let child = command.args(arguments).stdout(std::process::Stdio::null()).spawn()?;
    let (success, resident_kib) = measure::end_of(child)?;
    let seconds = began.elapsed().as_secs_f64();
    if !success {
        return Err(format!("punctual {} failed", arguments.join(" ")).into());
    }
    let processor_seconds = children()? - before;
    Ok(Run { seconds, processor_seconds, resident_mib: resident_kib as f64 / 1024.0 })
}

/// Processor time of this process's children that have ended, in seconds.
fn children() -> Result<f64, Error> {
    // SAFETY: all zeros are a value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) } < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
