//! `punctual compare --fail-on-worse`.

use crate::folder::Folder;
use serde_json::Value;

const MODEL: &str = include_str!("../data/figure-24.timing.json");

/// Runs whose scheduling latency is the published one, made longer by so many nanoseconds.
fn runs(folder: &Folder, name: &str, number: u64, more: u64) -> Vec<String> {
    std::fs::create_dir(folder.path().join(name)).expect("a directory");
    let write = |run: u64| {
        let mut model: Value = serde_json::from_str(MODEL).expect("a model");
        let poid = &mut model["latency"]["processors"][0]["variables"]["poid"]["max_ns"];
        *poid = (poid.as_u64().expect("a time") + run + more).into();
        let file = format!("{name}/{run}.timing.json");
        folder.write(&file, &model.to_string());
        file
    };
    (0..number).map(write).collect()
}

/// The same runs, in which another processor was observed, too.
fn with_processor(folder: &Folder, runs: &[String]) -> Vec<String> {
    std::fs::create_dir(folder.path().join("more")).expect("a directory");
    let write = |(run, file): (usize, &String)| {
        let mut model: Value = serde_json::from_str(&folder.read(file)).expect("a model");
        let processors = model["latency"]["processors"].as_array_mut().expect("processors");
        let mut other = processors[0].clone();
        other["cpu"] = 7.into();
        processors.push(other);
        let file = format!("more/{run}.timing.json");
        folder.write(&file, &model.to_string());
        file
    };
    runs.iter().enumerate().map(write).collect()
}

#[test]
fn worse_runs_fail_if_asked_for() {
    let folder = Folder::new();
    let before = runs(&folder, "before", 5, 0);
    let after = runs(&folder, "after", 5, 50_000);
    let compare = |options: &[&str], runs: [&[String]; 2]| {
        let runs: Vec<&str> = runs.into_iter().flatten().map(String::as_str).collect();
        folder.run(&[&["compare", "--by", "folder"], options, &runs].concat())
    };
    let code = |options: &[&str], runs: [&[String]; 2]| compare(options, runs).status.code();
    assert_eq!(code(&[], [&before, &after]), Some(0));
    assert_eq!(code(&["--fail-on-worse"], [&after, &before]), Some(0), "better");
    let different = compare(&["--fail-on-worse"], [&before, &with_processor(&folder, &before)]);
    assert_eq!(different.status.code(), Some(0), "{different:?}");
    let text = String::from_utf8_lossy(&different.stdout);
    assert!(text.contains("but different: only more has processor CPU 7."), "{text}");
    let worse = compare(&["--fail-on-worse", "--json"], [&before, &after]);
    assert_eq!(worse.status.code(), Some(8), "{worse:?}");
    let message = String::from_utf8_lossy(&worse.stderr);
    assert!(message.contains("after is worse than before in"), "{message}");
    let document: Value = serde_json::from_slice(&worse.stdout).expect("JSON");
    assert_eq!(document["verdicts"][0]["outcome"], "worse");
    let few = compare(&["--fail-on-worse"], [&before, &after[..4]]);
    assert_eq!(few.status.code(), Some(2), "{few:?}");
    assert!(String::from_utf8_lossy(&few.stderr).contains("Too few runs to tell"), "{few:?}");
    let one = compare(&["--fail-on-worse"], [&before, &[]]);
    assert_eq!(one.status.code(), Some(2), "{one:?}");
}
