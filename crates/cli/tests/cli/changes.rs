//! `punctual prove`: changes to try, percentages, contracts that are written, and what else it prints.

use crate::folder::{Folder, agreed, named, task};
use serde_json::Value;
use std::process::Output;

/// Lehoczky 1990: the last one takes 18 of 18 ms.
fn lehoczky() -> String {
    let tasks = [("t1", 90, (1, 4)), ("t2", 89, (1, 5)), ("t3", 88, (3, 9)), ("t4", 87, (3, 18))];
    tasks.iter().map(|&(name, priority, times)| agreed(name, 0, priority, times, &[])).collect()
}

fn expect(output: &Output, code: i32, message: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{message}: {output:?}");
}

#[test]
fn the_least_change_counts() {
    let folder = Folder::new();
    let (code, document) = folder.prove("a.toml", &lehoczky(), &[]);
    assert_eq!((code, &task(&document, "t4")["response_ns"]), (Some(0), &18_000_000.into()));
    for change in ["t4.wcet=+0.04%", "t4.wcet=+0.001%", "t4.wcet=+20.04%", "t1.wcet=+0.001%"] {
        let (code, document) = folder.prove("a.toml", &lehoczky(), &["--what-if", change]);
        assert_eq!((code, named(&document, "not proven")), (Some(6), vec!["t4"]), "{change}");
    }
    let (_, document) = folder.prove("a.toml", &lehoczky(), &["--what-if", "t4.wcet=-0.001%"]);
    assert_eq!(task(&document, "t4")["response_ns"], 17_999_970);
    for wrong in ["t4.wcet=+0.0004%", "t4.wcet=+1e1%", "t4.period=-0.00001%"] {
        expect(&folder.run(&["prove", "a.toml", "--what-if", wrong]), 2, "three digits after the point");
    }
}

/// A deadline that is the period follows it; one that was declared does not.
#[test]
fn a_shorter_period_is_a_shorter_deadline() {
    let folder = Folder::new();
    let prove = |arguments: &[&str]| folder.prove("a.toml", &lehoczky(), arguments);
    let (code, document) = prove(&["--what-if", "t4.period=-5%"]);
    let last = task(&document, "t4");
    assert_eq!(
        (code, &last["deadline_ns"], &last["verdict"]),
        (Some(6), &17_100_000.into(), &"not proven".into())
    );
    assert_eq!(prove(&["--what-if", "t4.period=-0.05%"]).0, Some(6));
    let (code, document) = prove(&["--what-if", "t4.period=-5%", "--deadline", "t4=18ms"]);
    assert_eq!((code, &task(&document, "t4")["deadline_ns"]), (Some(0), &18_000_000.into()));
    let (_, document) = prove(&["--sensitivity"]);
    assert_eq!(task(&document, "t4")["period_permille"], 1_000);
    let (_, document) = prove(&["--sensitivity", "--deadline", "t4=18ms"]);
    assert!(task(&document, "t4")["period_permille"].as_u64().is_some_and(|it| it < 1_000));
}

#[test]
fn margins_have_decimals() {
    let folder = Folder::new();
    let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo");
    folder.run(&["replay", "-q", &recording.display().to_string(), "-o", "demo.timing.json"]);
    let response = |margin: &str| {
        let output = folder.run(&["prove", "demo.timing.json", "--json", "--margin", margin]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        task(&document, "sleep-abs")["response_ns"].as_u64().expect("a bound")
    };
    // Of 277,686 ns.
    assert_eq!((response("0.5%") - response("0"), response("12.34%") - response("0")), (1_389, 34_267));
    for command in ["prove", "contract"] {
        let output = folder.run(&[command, "demo.timing.json", "--margin", "0.0001%"]);
        expect(&output, 2, "expected 0% to 1000%, with at most three digits after the point");
    }
    expect(&folder.run(&["contract", "demo.timing.json", "--margin", "12.5%"]), 0, "");
}

/// What is written holds by itself, with the margin on everything that a contract says.
#[test]
fn a_contract_that_is_written_is_proven() {
    let folder = Folder::new();
    let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo");
    folder.run(&["replay", "-q", &recording.display().to_string(), "-o", "demo.timing.json"]);
    let mut model: Value = serde_json::from_str(&folder.read("demo.timing.json")).expect("JSON");
    let tasks = model["threads"]["tasks"].as_array_mut().expect("tasks");
    tasks.retain(|task| ["sleep-abs", "odd-period"].contains(&task["name"].as_str().unwrap_or_default()));
    tasks.iter_mut().for_each(|task| task["affinity"] = "1".into());
    folder.write("a.json", &model.to_string());
    // The jitter that is part of the bound becomes longer, too.
    let (mut written, mut refused) = (0, 0);
    for us in (760..1_200).step_by(20) {
        let deadline = format!("sleep-abs={us}us");
        let assign = ["prove", "a.json", "--assign", "--margin", "20%", "--force", "-o", "b.toml"];
        let output = folder.run(&[&assign[..], &["--deadline", &deadline]].concat());
        match output.status.code() {
            Some(0) => {
                expect(&folder.run(&["prove", "b.toml"]), 0, "");
                written += 1;
            }
            code => {
                assert_eq!(code, Some(6), "{output:?}");
                refused += 1;
            }
        }
    }
    assert!(written > 3 && refused > 3, "{written} written, {refused} refused");
}

#[test]
fn an_impossible_deadline_of_a_reservation_is_named() {
    let folder = Folder::new();
    let reserved = "[[task]]\nname = \"resv\"\npolicy = \"SCHED_DEADLINE\"\nprocessors = \"0\"\n\
        reservation = { runtime = \"2ms\", deadline = \"10ms\", period = \"20ms\" }\nperiod = \"20ms\"\n\
        jitter = \"0s\"\nwcet = \"1ms\"\nsuspension = \"0s\"\n";
    folder.write("a.toml", &(agreed("slow", 0, 90, (20, 100), &[]) + reserved));
    let assign =
        |deadline: &str| folder.run(&["prove", "a.toml", "--assign", "-o", "b.toml", "--deadline", deadline]);
    let message = "the deadline of resv, 1.5 ms, is shorter than the runtime of its reservation: the kernel \
                   takes no reservation of 2 ms until 1.5 ms";
    expect(&assign("resv=1.5ms"), 6, message);
    expect(&assign("resv=3ms"), 0, "");
    assert!(folder.read("b.toml").contains("deadline = \"3ms\""), "{}", folder.read("b.toml"));
}

#[test]
fn too_many_threads_and_empty_chains_are_refused() {
    let folder = Folder::new();
    let threads = |number: &str| lehoczky() + "threads = " + number + "\n";
    for number in ["0", "10001", "1000000000000"] {
        folder.write("a.toml", &threads(number));
        expect(&folder.run(&["prove", "a.toml"]), 5, "line 37: expected 1 to 10000 threads");
    }
    folder.write("a.toml", &threads("2000"));
    expect(&folder.run(&["prove", "a.toml"]), 5, "a.toml has more than 2000 threads, too many to prove");
    folder.write("a.toml", &(lehoczky() + "[[chain]]\ntasks = []\n"));
    expect(&folder.run(&["prove", "a.toml"]), 5, "line 38: expected the names of tasks");
}

#[test]
fn files_are_of_the_kind_that_their_names_say() {
    let folder = Folder::new();
    folder.write("a.toml", &lehoczky());
    expect(&folder.run(&["prove", "a.toml", "--assign", "-o", "x.json"]), 0, "Wrote x.json");
    let document: Value = serde_json::from_str(&folder.read("x.json")).expect("JSON");
    assert_eq!((&document["holds"], &document["assigned"]), (&true.into(), &true.into()));
    expect(&folder.run(&["prove", "a.toml", "-o", "x.pdf"]), 2, "-o writes *.html, *.json or");
    expect(&folder.run(&["prove", "a.toml", "-o", "x.html"]), 0, "open it in a browser");
}

#[test]
fn a_schedule_is_json_too() {
    let folder = Folder::new();
    let (code, document) = folder.prove("a.toml", &lehoczky(), &["--task", "t4"]);
    let tasks = document["tasks"].as_array().expect("tasks");
    assert_eq!((code, tasks.len()), (Some(0), 1));
    let schedule = &tasks[0]["schedule"];
    assert_eq!((&schedule["release_ns"], &schedule["end_ns"]), (&0.into(), &18_000_000.into()));
    let stretches = schedule["stretches"].as_array().expect("stretches");
    assert_eq!(stretches[0], serde_json::json!({"cause": "t1", "from_ns": 0, "to_ns": 1_000_000}));
    assert_eq!(stretches.last().expect("one")["cause"], "own");
}
