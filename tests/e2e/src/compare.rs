//! `punctual compare`: synthetic traces of a program under two policies, side by side.

use crate::run::{Ended, directory, punctual, run};
use crate::{Outcome, Result, Test, ensure, fail};
use punctual_trace::flow::{About, Connection, Kind, Writer};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

pub const ALL: &[(&str, Test)] = &[
    ("compare::two_policies", two_policies),
    ("compare::traces_and_models", traces_and_models),
    ("compare::the_page", page),
    ("compare::invalid_arguments", refused),
];

const ROUNDS: u64 = 20;

/// Each millisecond cam is activated, waits for `queuing_us`, is executed for 100 µs and pushes an image;
/// navi begins at once and needs 50 µs.
fn make(folder: &Path, policy: &str, queuing_us: u64) -> Result {
    use Kind::{Activation, Push, Start, Stop};
    let names = |names: &[&str]| {
        names.iter().enumerate().map(|(number, name)| (number as u16, (*name).to_owned())).collect()
    };
    let about = About {
        tasks: names(&["cam", "navi"]),
        channels: names(&["tick", "image"]),
        inputs: [(0, 0), (1, 1)].map(|(channel, task)| Connection { channel, task }.into()).to_vec(),
        program: Some("rover".into()),
        platform: Some("Linux".into()),
        policy: Some(policy.into()),
        executors: Some(1),
        ..About::default()
    };
    let start = queuing_us;
    let round = [
        (0, 1, Push, 0),
        (0, 1, Activation, 0),
        (start, 0, Start, 0),
        (start + 100, 0, Push, 1),
        (start + 100, 0, Activation, 1),
        (start + 100, 0, Stop, 0),
        (start + 100, 0, Start, 1),
        (start + 150, 0, Stop, 1),
    ];
    let mut writer = Writer::create(folder, &about, 2, 512)?;
    for number in 0..ROUNDS {
        for (us, producer, kind, object) in round {
            writer.event(producer, 1_000_000_000 + (number * 1_000 + us) * 1_000, kind, object, number)?;
        }
    }
    Ok(writer.finish()?)
}

/// How long cam waits in each of five runs, under FIFO and by priority.
const WAITS_US: [(u64, u64); 5] = [(40, 10), (50, 12), (45, 10), (40, 10), (40, 10)];

/// Five runs under FIFO, then five by priority.
fn make_traces(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for policy in ["fifo", "priority"] {
        for (run, (fifo_us, priority_us)) in WAITS_US.into_iter().enumerate() {
            let folder = directory.join(format!("{policy}-{}", run + 1));
            make(&folder, policy, if policy == "fifo" { fifo_us } else { priority_us })?;
            folders.push(folder);
        }
    }
    Ok(folders)
}

fn compare<P: AsRef<Path>>(runs: &[P], options: &[&str]) -> Result<Ended> {
    let mut compare = punctual(["compare"]);
    compare.args(options).args(runs.iter().map(AsRef::as_ref));
    run(compare)
}

fn two_policies() -> Result<Outcome> {
    let directory = directory()?;
    let folders = make_traces(directory.path())?;
    let ended = compare(&folders, &[])?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.is_empty(), "it complains: {}", ended.all());
    let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = [
        "10 runs in 2 configurations. The same in all: rover, Linux, 1 executor.",
        "cam fifo 100 µs 100 µs – 100 µs 100 µs 100 µs – 100 µs priority 100 µs 100 µs – 100 µs = 100 µs 100 \
         µs – 100 µs =",
        "cam fifo 40 µs 40 µs – 50 µs 50 µs 40 µs – 50 µs priority 10 µs 10 µs – 12 µs ▼ −75.0 % 12 µs 10 µs \
         – 12 µs ▼ −76.0 %",
        // 190 µs and 200 µs against 160 µs and 162 µs.
        "Lowest worst-case reaction time of the chain: priority (162 µs); then fifo (200 µs, ▲ +23.5 %).",
    ];
    for expected in expected {
        ensure!(flat.contains(expected), "it does not say {expected:?}: {}", ended.all());
    }
    Ok(Outcome::Completed)
}

/// Models give the same comparison as their traces; JSON has the figures as numbers.
fn traces_and_models() -> Result<Outcome> {
    let directory = directory()?;
    let folders = make_traces(directory.path())?;
    let mut mixed = folders.clone();
    for folder in mixed.iter_mut().skip(1).step_by(2) {
        let file = folder.with_extension("timing.json");
        let mut chains = punctual(["chains", "-q", "-o"]);
        chains.arg(&file).arg(&*folder);
        run(chains)?.expect_code(0)?;
        *folder = file;
    }
    let traces = compare(&folders, &["--json"])?;
    let mixed = compare(&mixed, &["--json"])?;
    let found: Value =
        serde_json::from_str(&mixed.stdout).map_err(|error| format!("{error}: {}", mixed.all()))?;
    ensure!(
        mixed.stdout == traces.stdout,
        "a model says something else than its trace\n{}\n{}",
        traces.all(),
        mixed.all()
    );
    let reaction = found["figures"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|it| it["of"] == "reaction" && it["figure"] == "max_ns");
    let Some(reaction) = reaction else { return fail(format!("no reaction time: {}", mixed.all())) };
    ensure!(
        reaction["configurations"][0]
            == json!({"value_ns": 200_000, "least_ns": 190_000, "greatest_ns": 200_000, "runs": 5}),
        "{reaction}"
    );
    ensure!(
        reaction["configurations"][1]["difference"]
            == json!({"amount_ns": -38_000, "ratio": -0.19, "exceeds_spread": true}),
        "{reaction}"
    );
    Ok(Outcome::Completed)
}

fn page() -> Result<Outcome> {
    let directory = directory()?;
    let folders = make_traces(directory.path())?;
    let html = directory.path().join("compare.html");
    let mut compare = punctual(["compare", "--by", "file", "-o"]);
    compare.arg(&html).args(&folders[..3]);
    let ended = run(compare)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("open it in a browser"), "{}", ended.all());
    ensure!(ended.stdout.contains("Differences are not marked"), "single runs: {}", ended.all());
    let text = fs::read_to_string(&html)?;
    // Execution and queuing of two tasks, reaction and age of a chain, in three runs each.
    let boxes = text.matches("<rect").count();
    ensure!(text.contains("<html") && boxes == 18, "{boxes} boxes");
    Ok(Outcome::Completed)
}

fn refused() -> Result<Outcome> {
    let directory = directory()?;
    let folders = make_traces(directory.path())?;
    let [first, second] = [&folders[0], &folders[1]];
    let missing = directory.path().join("missing");
    let html = directory.path().join("there.html");
    fs::write(&html, "")?;
    let there = html.display().to_string();
    let empty = directory.path().join("none.timing.json");
    fs::write(
        &empty,
        json!({"format": "punctual.timing-model", "version": 2, "clock": "CLOCK_MONOTONIC",
               "threads": {"from_ns": 0, "until_ns": 0, "records": 0, "lost_records": 0, "tasks": []}})
        .to_string(),
    )?;
    let rows: [(&[&Path], &[&str], i32, &str); 7] = [
        (&[first], &[], 2, "2 values required"),
        (&[first, first], &[], 2, "is given twice"),
        (&[first, &missing], &[], 5, "no such file"),
        (&[first, second], &["--chain", "cam,nobody"], 4, "no task nobody"),
        (&[first, second], &["-o", &there], 5, "--force replaces it"),
        (&[first, second], &["-o", "-", "--json"], 2, "both write to standard output"),
        (&[first, &empty], &[], 2, "has a dataflow program, and others have none"),
    ];
    for (runs, options, code, expected) in rows {
        let ended = compare(runs, options)?;
        ended.expect_code(code)?;
        ensure!(
            ended.stdout.is_empty() && ended.stderr.lines().count() == 1,
            "more than a line: {}",
            ended.all()
        );
        ensure!(ended.stderr.contains(expected), "it does not say {expected:?}: {}", ended.all());
    }
    Ok(Outcome::Completed)
}
