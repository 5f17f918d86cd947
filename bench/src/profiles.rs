//! How much slower the programs are that `make demo` and `make test` build (profile `dev`) than those that
//! are installed (profile `dist`): extraction, replay, admission. Both take turns.

use punctual_bench::{Error, document, measure, requests, trace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const ROUNDS: usize = 5;
const ACTIVATIONS: u64 = 1_000_000;
/// Folders of the two profiles.
const PROFILES: [&str; 2] = ["debug", "dist"];

/// Seconds, in one profile.
type Measurement<'a> = &'a dyn Fn(&Path) -> Result<f64, Error>;

fn main() -> Result<(), Error> {
    let scratch = tempfile::tempdir()?;
    let recording = scratch.path().join("recording");
    trace::write(&recording, ACTIVATIONS, 20)?;
    let model = scratch.path().join("model.timing.json");
    let rows: [(&str, Measurement); 3] = [
        ("extraction of 500,000 jobs at a horizon of 32", &extraction),
        ("replay of 1,000,000 activations, one worker", &|built| replay(built, &recording, &model)),
        ("admission of a spec (EDF, utilization), no others", &admission),
    ];
    let mut table = Vec::new();
    for (what, seconds) in rows {
        let [dev, dist] = medians(seconds)?;
        table.push([what.to_owned(), time(dev), time(dist), format!("{:.1}", dev / dist)]);
    }
    let head = ["what", "dev", "dist", "dev to dist"];
    document::publish("profiles", "make bench-profiles", &head, &table)
}

/// The median of each profile.
fn medians(seconds: Measurement) -> Result<[f64; 2], Error> {
    let mut runs: [Vec<f64>; 2] = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for (profile, runs) in PROFILES.iter().zip(&mut runs) {
            runs.push(seconds(&measure::target().join(profile))?);
        }
    }
    Ok(runs.map(|mut runs| {
        runs.sort_by(f64::total_cmp);
        runs[ROUNDS / 2]
    }))
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.1} µs", seconds * 1e6) } else { format!("{seconds:.2} s") }
}

/// The example prints a table whose third column is in million jobs per second.
fn extraction(built: &Path) -> Result<f64, Error> {
    let output =
        Command::new(built.join("examples/bench_extract")).args(["periodic, exact", "32", "1"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let row =
        text.lines().find(|line| line.starts_with("| periodic")).ok_or("bench_extract prints no row")?;
    let rate: f64 = row.split('|').nth(3).ok_or("bench_extract prints no rate")?.trim().parse()?;
    Ok(0.5 / rate)
}

fn replay(built: &Path, recording: &Path, model: &Path) -> Result<f64, Error> {
    let began = Instant::now();
    let status = Command::new(built.join("punctual"))
        .args(["replay", "--quiet", "--force", "--jobs", "1", "-o"])
        .args([model, recording])
        .status()?;
    if status.success() {
        Ok(began.elapsed().as_secs_f64())
    } else {
        Err("the replay failed: see above".into())
    }
}

fn admission(built: &Path) -> Result<f64, Error> {
    let daemon: PathBuf = built.join("punctuald");
    let medians = requests::medians(&daemon, "EDF", "utilization", "1")?;
    Ok(medians.get(&(0, "create".to_owned())).ok_or("no create was measured")? / 1e9)
}
