//! Contracts that name what threads wait on: where a program lies in memory changes from run to run.

use crate::run::{directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, fail, timing};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub const ALL: &[(&str, Test)] = &[
    ("names::of_semaphores", || semaphores("gate", "gate")),
    ("names::of_semaphores_in_libraries", || semaphores("gate_in_library", "libgate.so")),
];

/// The semaphores of tests/workloads/gate.c, and who waits for them.
const WAITS: [(&str, &str); 3] = [("loop", "next"), ("loop", "answered"), ("helper", "asked")];

/// The contract of one run is applied to a second one: recorded, replayed and watched. The semaphores lie in
/// `module`.
fn semaphores(program: &str, module: &str) -> Result<Outcome> {
    let folder = directory()?;
    let file = |name: &str| folder.path().join(name);
    let gate = workload(program);
    let named = |symbol: &str| format!("{module}:{symbol}");
    for number in ["1", "2"] {
        let (model, replayed) = (format!("{number}.timing.json"), format!("{number}.replayed.timing.json"));
        let mut extract = punctual(["extract", "-q", "-o"]);
        extract.arg(file(&model)).arg("--record").arg(file(number));
        extract.args(["--", &gate, "semaphores", "--jobs", "100"]);
        run(extract)?.expect_code(0)?;
        let mut replay = punctual(["replay", "-q", "-o"]);
        replay.arg(file(&replayed)).arg(file(number));
        run(replay)?.expect_code(0)?;
        for name in [model, replayed] {
            let waits = waits(&file(&name))?;
            for (thread, symbol) in WAITS {
                let jobs = waits.get(&(thread.to_owned(), named(symbol)));
                ensure!(jobs > Some(&0), "{name}: {waits:?}");
            }
        }
    }
    let mut contract = punctual(["contract", "-o"]);
    contract.arg(file("whole.toml")).arg(file("1.timing.json"));
    run(contract)?.expect_code(0)?;
    let whole = fs::read_to_string(file("whole.toml"))?;
    timing(is_named(&whole, module))?;

    // Of the names alone, since times differ from run to run.
    let separators = |lock: &str| {
        let tasks = [("loop", lock), ("helper", "asked")].map(|(name, lock)| {
            let lock = named(lock);
            format!(
                "[[task]]\nname = {name:?}\nseparator = \"futex_wait_bitset {lock}\"\nresponse = \"1h\"\n"
            )
        });
        format!("tasks_without_jobs = \"violation\"\n{}", tasks.concat())
    };
    for (lock, code) in [("next", 0), ("answered", 0), ("asked", 8), ("other", 8)] {
        let contract = file("names.toml");
        fs::write(&contract, separators(lock))?;
        for input in ["2", "2.timing.json"] {
            let mut check = punctual(["check", "--json"]);
            check.arg(&contract).arg(file(input));
            let checked = run(check)?;
            checked.expect_code(code)?;
            let all: Value = serde_json::from_str(&checked.stdout)?;
            judged(&all["inputs"][0], lock, code)?;
        }
    }
    fs::write(file("names.toml"), separators("answered"))?;
    let mut watch = punctual(["watch", "--json", "--no-journal"]);
    watch.arg(file("names.toml")).args(["--", &gate, "semaphores", "--jobs", "100"]);
    let watched = run(watch)?;
    watched.expect_code(0)?;
    let end = watched.stdout.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let Some(end) = end.filter(|end| end["event"] == "end") else { return fail(watched.all()) };
    judged(&end["outcome"]["inputs"][0], "answered", 0)?;
    Ok(Outcome::Completed)
}

/// Jobs by thread and name of what they waited on.
fn waits(model: &Path) -> Result<BTreeMap<(String, String), u64>> {
    let model = crate::model::read(model)?;
    let streams = model.tasks().iter().flat_map(|task| task.streams.iter().map(|it| (&task.name, it)));
    let named = streams.filter_map(|(thread, stream)| {
        let name = stream.separator.object.name()?;
        Some(((thread.clone(), name.to_string()), stream.jobs))
    });
    Ok(named.collect())
}

/// Of a contract that is kept, jobs were judged at the lock; else none.
fn judged(input: &Value, lock: &str, code: i32) -> Result {
    let tasks = input["tasks"].as_array().into_iter().flatten();
    let jobs: BTreeMap<&str, u64> =
        tasks.filter_map(|task| Some((task["name"].as_str()?, task["jobs"].as_u64()?))).collect();
    let has_jobs = jobs.get("loop").is_some_and(|jobs| *jobs > 0);
    ensure!(has_jobs == (code == 0) && jobs.get("helper") > Some(&0), "{lock}: {input:#}");
    Ok(())
}

/// Whether each thread has a separator with a name, as far as jobs came in time.
fn is_named(contract: &str, module: &str) -> Result {
    let named = contract.matches(&format!("separator = \"futex_wait_bitset {module}:")).count();
    ensure!(named == 2 && !contract.contains("futex_wait_bitset *"), "{contract}");
    Ok(())
}
