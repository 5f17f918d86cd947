//! What recording costs beside extraction, and how much it takes in: the same workloads under both, in turn,
//! in one run.
//!
//! Not for: how fast recordings are replayed (`make bench-replay`).

use punctual_bench::measure::{Programs, built, target};
use punctual_bench::{Error, document};
use punctual_trace::ctf::Reader;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rounds of each measurement; medians are printed.
const ROUNDS: usize = 5;

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

/// How the threads are watched.
const WAYS: [&[&str]; 3] = [&["extract"], &["record"], &["record", "--detail", "switches"]];

fn run() -> Result<(), Error> {
    let mut rows = Vec::new();
    eprintln!("20 tasks with about 6,000 activations per second, {ROUNDS} × 5 s each …");
    rows.push(time_in_kernel()?);
    eprintln!("latency of a 1 kHz absolute sleep, {ROUNDS} × 5 s each …");
    rows.extend(latency()?);
    eprintln!("two threads that wake each other as fast as they can, {ROUNDS} × 5 s …");
    rows.extend(throughput()?);
    document::publish(
        "record",
        "make bench-record",
        &["what", "extract", "record", "record --detail switches"],
        &rows,
    )
}

/// A watched run of a workload: what the workload said, what Punctual said on standard error.
struct Watched {
    printed: Value,
    stderr: String,
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("punctual-bench-record-{}", std::process::id()))
}

fn watch(way: &[&str], arguments: &[&str]) -> Result<Watched, Error> {
    let output = Command::new(built("punctual"))
        .args(way)
        .args(["--force", "-o"])
        .arg(folder())
        .arg("--")
        .arg(target().join("workloads").join(arguments[0]))
        .args(&arguments[1..])
        .stdin(Stdio::null())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(stderr.into());
    }
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let printed =
        stdout.lines().find(|line| line.starts_with('{')).map_or(Ok(Value::Null), serde_json::from_str)?;
    Ok(Watched { printed, stderr })
}

fn clear(way: &[&str]) -> Result<(), Error> {
    match way[0] {
        "extract" => std::fs::remove_file(folder())?,
        _ => std::fs::remove_dir_all(folder())?,
    }
    Ok(())
}

/// Nanoseconds in the eBPF programs for each wake-up.
fn time_in_kernel() -> Result<[String; 4], Error> {
    let statistics = Programs::count()?;
    let mut row = vec!["BPF programs, per wake-up".to_owned()];
    let mut costs = [const { Vec::new() }; WAYS.len()];
    for _ in 0..ROUNDS {
        for (way, costs) in WAYS.iter().zip(&mut costs) {
            let watched = std::thread::scope(|scope| -> Result<f64, Error> {
                let run = scope
                    .spawn(|| watch(way, &["periodic", "--for", "5"]).map_err(|error| error.to_string()));
                // The programs are gone with the observation: they are asked while it goes on.
                std::thread::sleep(std::time::Duration::from_millis(4500));
                let wakeups = statistics.wakeups()?;
                let spent = statistics.spent()?;
                run.join().map_err(|_| "the observation failed")??;
                Ok(spent as f64 / wakeups as f64)
            })?;
            costs.push(watched);
            clear(way)?;
        }
    }
    row.extend(costs.into_iter().map(|costs| format!("{:.2} µs", median(costs) / 1e3)));
    row.try_into().map_err(|_| "three ways".into())
}

/// Wake-up latency as the thread itself measures it.
fn latency() -> Result<Vec<[String; 4]>, Error> {
    let mut printed = [const { Vec::new() }; WAYS.len()];
    for _ in 0..ROUNDS {
        for (way, printed) in WAYS.iter().zip(&mut printed) {
            printed.push(watch(way, &["latency", "--for", "5"])?.printed);
            clear(way)?;
        }
    }
    let row = |field: &str| {
        let middle = |printed: &Vec<Value>| {
            median(printed.iter().filter_map(|printed| printed[field].as_f64()).collect())
        };
        let name = field.trim_end_matches("_ns").replace('_', ".");
        let [extract, record, switches] = [middle(&printed[0]), middle(&printed[1]), middle(&printed[2])];
        let beside = |figure: f64| format!("{:.1} µs ({:.2})", figure / 1e3, figure / extract);
        [
            format!("wake-up latency of a 1 kHz thread, {name}"),
            format!("{:.1} µs", extract / 1e3),
            beside(record),
            beside(switches),
        ]
    };
    Ok(["mean_ns", "p50_ns", "p99_ns"].map(row).to_vec())
}

/// How many activations a second two threads made, how many records were lost, how many bytes each took.
fn throughput() -> Result<Vec<[String; 4]>, Error> {
    let mut rates = [const { Vec::new() }; WAYS.len()];
    let mut lost = [const { Vec::new() }; WAYS.len()];
    let mut bytes = [const { Vec::new() }; WAYS.len()];
    for _ in 0..ROUNDS {
        for (place, way) in WAYS.iter().enumerate() {
            let watched = watch(way, &["pingpong", "--for", "5"])?;
            let rounds = watched.printed["rounds"].as_f64().ok_or(watched.stderr)?;
            let seconds = (watched.printed["ended_ns"].as_f64().unwrap_or(0.0)
                - watched.printed["began_ns"].as_f64().unwrap_or(0.0))
                / 1e9;
            rates[place].push(2.0 * rounds / seconds);
            if place > 0 {
                let reader = Reader::open(&folder())?;
                let activations: u64 =
                    (0..reader.stretches()).map(|stretch| reader.stretch(stretch).activations).sum();
                lost[place].push(reader.totals().lost as f64);
                bytes[place].push(size(&folder())? as f64 / activations as f64);
            } else {
                let model: Value = serde_json::from_str(&std::fs::read_to_string(folder())?)?;
                lost[place].push(model["threads"]["lost_records"].as_f64().unwrap_or(0.0));
            }
            clear(way)?;
        }
    }
    let row = |what: &str, samples: [Vec<f64>; 3], digits: usize| {
        let mut row = vec![what.to_owned()];
        row.extend(samples.into_iter().map(|values| {
            if values.is_empty() { String::new() } else { format!("{:.digits$}", median(values)) }
        }));
        <[String; 4]>::try_from(row).map_err(|_| "three ways")
    };
    Ok(vec![
        row("activations per second, two threads that wake each other", rates, 0)?,
        row("records lost in five seconds of it", lost, 0)?,
        row("bytes on disk per activation, everything included", bytes, 1)?,
    ])
}

fn size(folder: &Path) -> Result<u64, Error> {
    let mut size = 0;
    for entry in std::fs::read_dir(folder)? {
        size += entry?.metadata()?.len();
    }
    Ok(size)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
