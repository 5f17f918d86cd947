//! Chains of a dataflow program that is probed, watched: the same is said as of its trace.

use crate::metrics::{text, value};
use crate::run::{Running, directory, punctual, run, wait_until, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

pub const ALL: &[(&str, Test)] = &[
    ("watch::chains_are_judged_as_in_a_trace", judged),
    ("watch::chains_of_a_program_that_runs", running),
    ("watch::chains_need_probes_that_fit", refused),
];

const ROUNDS: u64 = 200;
const CHAINS: [&str; 4] = [
    "cam1 craT navi ter1 log",
    "cam1 craT navi ter2 log",
    "cam2 feaT navi ter1 log",
    "cam2 feaT navi ter2 log",
];

/// The stand-in for the Tasking Framework; `None` where there is no compiler.
fn program() -> Option<String> {
    Some(workload("tasking")).filter(|path| Path::new(path).exists())
}

fn no_compiler() -> Result<Outcome> {
    skip("there was no compiler for C++ for this machine")
}

fn contract(folder: &Path, time: &str) -> Result<String> {
    let chain = |chain: &&str| {
        let tasks: Vec<String> = chain.split(' ').map(|task| format!("\"{task}\"")).collect();
        let tasks = tasks.join(", ");
        format!("[[chain]]\ntasks = [{tasks}]\nreaction_time = \"{time}\"\ndata_age = \"{time}\"\n")
    };
    let path = folder.join("run.toml");
    fs::write(&path, CHAINS.iter().map(chain).collect::<String>())?;
    Ok(path.display().to_string())
}

/// What is said of each chain: its name, latencies, and violations of each term.
fn said(outcome: &Value) -> Vec<(String, u64, Vec<u64>)> {
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let chains = outcome["inputs"][0]["tasks"].as_array().cloned().unwrap_or_default();
    let chain = |it: &Value| {
        let terms = it["terms"].as_array().cloned().unwrap_or_default();
        let violations = terms.iter().map(|term| number(&term["violations"])).collect();
        (it["name"].as_str().unwrap_or_default().to_owned(), number(&it["jobs"]), violations)
    };
    chains.iter().map(chain).collect()
}

/// Of a program that does the same each time, everything is late, live and afterwards.
fn judged() -> Result<Outcome> {
    let Some(program) = program() else { return no_compiler() };
    let directory = directory()?;
    let rounds = ROUNDS.to_string();
    let command = ["--", &program, &rounds, "graph"];
    let probes = ["--flow-probes", "tasking-framework-1.2"];
    let contract = contract(directory.path(), "1ns")?;
    let trace = directory.path().join("trace");
    let mut record = punctual(["record", "-q", "-o"]);
    record.arg(&trace).args(probes).args(command);
    run(record)?.expect_code(0)?;
    let mut check = punctual(["check", "--json", &contract]);
    check.arg(&trace);
    let replayed = run(check)?;
    replayed.expect_code(8)?;
    let kept = directory.path().join("kept");
    let mut watch = punctual(["watch", "--json", "--no-journal", &contract, "--keep"]);
    watch.arg(kept).args(probes).args(command);
    let live = run(watch)?;
    live.expect_code(8)?;
    let lines: Vec<Value> = live.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let Some((end, alarms)) = lines.split_last() else { return fail(live.all()) };
    let (replayed, outcome) = (said(&replayed.json()?), said(&end["outcome"]));
    ensure!(outcome == replayed, "{outcome:?}, and afterwards {replayed:?}");
    ensure!(outcome.iter().all(|(_, data, _)| *data == ROUNDS), "{outcome:?}");
    ensure!(outcome.iter().all(|(.., broken)| *broken == [ROUNDS; 2]), "{outcome:?}");
    // Each was told, one by one or in sum.
    let told = alarms.iter().filter(|it| it["event"] == "violation");
    let told: Vec<&Value> = told.map(|it| &it["violation"]).collect();
    ensure!(told.len() >= 10 && told.iter().all(|it| it["thread"].is_null()), "{}", live.all());
    let more = alarms.iter().filter_map(|it| it["violations"].as_u64()).sum::<u64>();
    ensure!(told.len() as u64 + more == 8 * ROUNDS, "{}", live.all());
    Ok(Outcome::Completed)
}

/// Whoever comes late sees what begins from then on, tells it at once, and counts it.
fn running() -> Result<Outcome> {
    let program = workload("navigation");
    if !Path::new(&program).exists() {
        return no_compiler();
    }
    let directory = directory()?;
    let contract = directory.path().join("run.toml");
    let chain = "[[chain]]\ntasks = [\"navi\", \"ter1\"]\ndata_age = \"1ns\"\n";
    fs::write(&contract, chain)?;
    let mut command = Command::new(&program);
    command.args(["--seconds", "60", "--executors", "2"]).stdout(Stdio::null());
    let program = Running::start(command)?;
    let told = directory.path().join("told");
    // Free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut watch = punctual(["watch", "--no-journal", "--for", "5", "--flow-probes", "punctual-flow"]);
    watch.args(["--metrics", &address.to_string(), "--pid", &program.pid().to_string(), "--on-violation"]);
    watch.arg(format!("cat > '{}'", told.display())).arg(&contract);
    let watcher = Running::start(watch)?;
    wait_until("a violation", || fs::read_to_string(&told).is_ok_and(|text| text.ends_with("}\n")))?;
    let scraped = |name: &str| text(address).and_then(|text| value(&text, name)).unwrap_or(0.0);
    let broken = "punctual_violations_total{task=\"navi → ter1\",term=\"data_age\"}";
    wait_until("metrics", || scraped(broken) > 0.0 && scraped("punctual_flow_events_total") > 0.0)?;
    ensure!(scraped("punctual_lost_flow_events_total") == 0.0, "events were lost");
    let ended = watcher.end()?;
    ended.expect_code(8)?;
    ensure!(ended.stdout.contains("navi → ter1: data_age "), "{}", ended.all());
    ensure!(ended.stdout.contains("(instance "), "{}", ended.all());
    Ok(Outcome::Completed)
}

fn refused() -> Result<Outcome> {
    let Some(program) = program() else { return no_compiler() };
    let directory = directory()?;
    let contract = contract(directory.path(), "1h")?;
    for (options, says) in [
        (&["--", "true"][..], "--flow-probes watches its chains"),
        (&["--flow-probes", "tasking-framework-1.2"], "--flow-probes needs one program"),
        (&["--flow-probes", "tasking-framework-1.2", "--", "true"], "has no function for"),
    ] {
        let mut watch = punctual(["watch", "--no-journal", &contract]);
        watch.args(options);
        let ended = run(watch)?;
        ensure!(ended.code != Some(0) && ended.stderr.contains(says), "{options:?}: {}", ended.all());
    }
    // An offset that reads nothing is no contract that was kept.
    let file = format!("{}/../../dist/flow-probes/tasking-framework-1.2.toml", env!("CARGO_MANIFEST_DIR"));
    let wrong = directory.path().join("wrong.toml");
    fs::write(&wrong, fs::read_to_string(file)?.replace("\"u32 at arg0+8\"", "\"u32 at [arg0+8]+8\""))?;
    let mut watch = punctual(["watch", "--no-journal", &contract, "--flow-probes"]);
    watch.arg(&wrong).args(["--", &program, "200", "graph"]);
    let ended = run(watch)?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("does not fit"), "{}", ended.all());
    Ok(Outcome::Completed)
}
