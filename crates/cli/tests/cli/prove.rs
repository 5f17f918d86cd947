//! `punctual prove`: the recording that comes with the project, bounds, verdicts, exit codes.

use punctual_model::latency::{Preemption, Processor, SchedulingLatency, Variable, Variables};
use punctual_model::{Duration, Instant, Platform, TimingModel};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Folder(tempfile::TempDir);

impl Folder {
    /// Holds the timing model of the recorded demonstration.
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a directory"));
        let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo");
        let recording = recording.display().to_string();
        expect(&folder.run(&["replay", "-q", &recording, "-o", "demo.timing.json"]), 0, "");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.current_dir(&self.0).env("COLUMNS", "200").args(arguments).output().expect("it runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["prove", "demo.timing.json", "--json"][..], arguments].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn expect(output: &Output, code: i32, message: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(text(&output.stderr).contains(message), "{output:?}");
}

fn task<'a>(document: &'a Value, name: &str) -> &'a Value {
    let tasks = document["tasks"].as_array().expect("tasks");
    tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn bounds_are_what_their_parts_make() {
    let document = Folder::new().json(&[]);
    let tasks = document["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 17);
    let mut bounded = 0;
    for task in tasks.iter().filter(|task| task["response_ns"].is_u64()) {
        let parts = task["parts"].as_array().expect("parts");
        let sum: u64 = parts.iter().filter_map(|part| part["duration_ns"].as_u64()).sum();
        let earlier = task["earlier_ns"].as_u64().expect("a number");
        assert_eq!(task["response_ns"].as_u64(), Some(sum - earlier), "{task:#}");
        bounded += 1;
    }
    assert_eq!(bounded, 15);
    // The most urgent one on two processors, beside one reservation: it never waits.
    let first = task(&document, "sleep-abs");
    let (own, jitter) = (277_686, 498_074);
    assert_eq!((&first["response_ns"], &first["verdict"]), (&Value::from(own + jitter), &"met".into()));
    assert_eq!(document["holds"], false);
}

/// Nothing that was observed takes longer than its bound.
#[test]
fn bounds_cover_what_was_observed() {
    let folder = Folder::new();
    let document = folder.json(&[]);
    let model = std::fs::read_to_string(folder.path("demo.timing.json")).expect("written");
    let model = TimingModel::from_json(&model).expect("a model");
    let mut compared = 0;
    for observed in model.tasks().iter().filter(|task| task.policy.is_real_time()) {
        let stream = observed.primary.and_then(|primary| observed.streams.get(primary));
        let Some(response) = stream.and_then(|stream| stream.response.as_ref()) else { continue };
        let tasks = document["tasks"].as_array().expect("tasks");
        let Some(bound) = tasks.iter().find(|task| task["tid"] == observed.tid) else { continue };
        let Some(bound) = bound["response_ns"].as_u64() else { continue };
        assert!(response.max_ns.ns() <= bound, "{} took {}, bound {bound}", observed.name, response.max_ns);
        compared += 1;
    }
    assert!(compared >= 15, "{compared}");
}

#[test]
fn deadlines_and_changes_decide() {
    let folder = Folder::new();
    let only = |extra: &[&str]| {
        let arguments = [&["prove", "demo.timing.json", "--thread", "sleep-*"][..], extra].concat();
        folder.run(&arguments)
    };
    let output = only(&[]);
    expect(&output, 0, "");
    let shown = text(&output.stdout);
    assert!(shown.starts_with("2 deadlines asked for; all are met."), "{shown}");
    assert!(shown.contains("The kernel is assumed to take no time"), "{shown}");
    let output = only(&["--deadline", "sleep-*=4ms", "--deadline", "sleep-abs=700us"]);
    expect(&output, 6, "1 deadline not proven");
    assert!(text(&output.stdout).contains("1 NOT PROVEN: sleep-abs."), "{output:?}");
    expect(&only(&["--what-if", "sleep-abs.wcet=+2000%"]), 6, "not proven");
    expect(&only(&["--margin", "50%", "--what-if", "sleep-abs.period=-10%"]), 0, "");
}

/// On one processor, with the same threads pinned there, a schedule is shown that takes as long as the bound.
#[test]
fn a_schedule_reaches_the_bound() {
    let folder = Folder::new();
    let model = std::fs::read_to_string(folder.path("demo.timing.json")).expect("written");
    let mut model: Value = serde_json::from_str(&model).expect("JSON");
    let tasks = model["threads"]["tasks"].as_array_mut().expect("tasks");
    tasks.retain(|task| task["policy"] != "SCHED_DEADLINE");
    tasks.iter_mut().for_each(|task| task["affinity"] = "1".into());
    std::fs::write(folder.path("pinned.json"), model.to_string()).expect("written");
    let output = folder.run(&["prove", "pinned.json", "--task", "odd-period", "--thread", "odd-period"]);
    expect(&output, 0, "");
    let shown = text(&output.stdout);
    assert!(shown.starts_with("odd-period takes at most ") && shown.contains("(fixed priority)"), "{shown}");
    // sleep-abs, with 277.686 µs, is the only more urgent one: 277.686 + 134.513 µs.
    assert!(shown.contains("its job, released at 0 ns, ends at 412.199 µs."), "{shown}");
    let output = folder.run(&["prove", "pinned.json", "--task", "nobody"]);
    expect(&output, 4, "no real-time thread of the model is named nobody");
}

#[test]
fn room_and_priorities() {
    let folder = Folder::new();
    let document = folder.json(&["--sensitivity", "--assign", "--thread", "sleep-*"]);
    let room = |name: &str| task(&document, name)["wcet_permille"].as_u64().expect("room");
    assert!(room("sleep-abs") > 1_000 && room("sleep-rel") > 1_000, "{document:#}");
    let scaled = format!("sleep-rel.wcet=+{}%", (room("sleep-rel") as f64 - 1_000.0) / 10.0);
    assert_eq!(folder.json(&["--what-if", &scaled, "--thread", "sleep-*"])["holds"], true);
    assert_eq!(document["assigned"], true);
    assert!(task(&document, "sleep-abs")["assigned_priority"].as_u64().is_some_and(|it| it <= 90));
}

/// Lehoczky 1990: (C, T) = (52, 100), (52, 140) has R₂ = 156.
#[test]
fn contracts_are_proven_as_they_are() {
    let folder = Folder(tempfile::tempdir().expect("a directory"));
    let task = |name: &str, period: &str, priority: u32, more: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nwcet = \"52ms\"\npolicy = \"SCHED_FIFO\"\n\
             priority = {priority}\nprocessors = \"1\"\n{more}\n"
        )
    };
    let prove = |text: &str, arguments: &[&str]| {
        std::fs::write(folder.path("a.toml"), text).expect("written");
        folder.run(&[&["prove", "a.toml"][..], arguments].concat())
    };
    let text = task("one", "100ms", 9, "") + &task("two", "140ms", 8, "deadline = \"156ms\"");
    let output = prove(&text, &[]);
    expect(&output, 0, "");
    assert!(text_of(&output).starts_with("2 deadlines asked for; all are met."), "{output:?}");
    let output = prove(&text, &["--json", "--deadline", "two=155ms"]);
    expect(&output, 6, "1 deadline not proven");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(task_of(&document, "two"), 156_000_000);
    let latency = format!("{text}[[processor]]\ncpu = 1\nlatency = \"1ms\"\n");
    let output = prove(&latency, &["--json"]);
    expect(&output, 6, "1 deadline not proven");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(task_of(&document, "one"), 53_000_000);
    assert!(text_of(&prove(&text, &[])).contains("but: how threads are scheduled"), "{output:?}");
    // What says too little is named.
    let output = prove(&format!("{text}[[task]]\nname = \"other\"\n"), &[]);
    assert!(text_of(&output).contains("other (its policy is not agreed on)."), "{output:?}");
    let bursty = text.replacen(
        "[[task]]",
        "[[task]]\nname = \"burst\"\npolicy = \"SCHED_FIFO\"\npriority = 90\n\
        processors = \"1\"\nwcet = [\"100us\", \"120us\"]\nseparation = [\"0s\", \"500ms\"]\n\
        deadline = \"1s\"\n\n[[task]]",
        1,
    );
    let output = prove(&bursty, &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("burst"), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("burst ("), "{output:?}");
    expect(&prove("[[task]]\nname = \"other\"\n", &[]), 4, "a.toml has no task that can be proven");
    expect(&prove(&text, &["--margin", "5%"]), 2, "what a contract says is taken as it is");
}

/// Lehoczky 1990: (26, 70), (62, 100) has R₂ = 118; the other way round the first one misses its deadline.
#[test]
fn priorities_that_are_found_become_a_contract() {
    let folder = Folder(tempfile::tempdir().expect("a directory"));
    let task = |name: &str, period: &str, wcet: &str, priority: u32, more: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nwcet = \"{wcet}\"\n\
             policy = \"SCHED_FIFO\"\npriority = {priority}\nprocessors = \"1\"\n{more}\n"
        )
    };
    let text = task("one", "70ms", "26ms", 8, "") + &task("two", "100ms", "62ms", 9, "response = \"1s\"");
    std::fs::write(folder.path("a.toml"), text).expect("written");
    let assign = |deadline: &str| {
        let deadline = format!("two={deadline}");
        folder.run(&["prove", "a.toml", "--assign", "--deadline", &deadline, "--force", "-o", "b.toml"])
    };
    expect(&folder.run(&["prove", "a.toml", "--deadline", "two=118ms"]), 6, "1 deadline not proven");
    expect(&assign("118ms"), 0, "punctual ctl run --keep-priorities --model b.toml");
    let output = folder.run(&["prove", "b.toml", "--json"]);
    expect(&output, 0, "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((task_of(&document, "one"), task_of(&document, "two")), (26_000_000, 118_000_000));
    let written = std::fs::read_to_string(folder.path("b.toml")).expect("written");
    assert!(written.contains("deadline = \"118ms\"") && written.contains("response = \"1s\""), "{written}");
    std::fs::remove_file(folder.path("b.toml")).expect("removed");
    // There are none for less.
    expect(&assign("117ms"), 6, "no priorities were found");
    assert!(!folder.path("b.toml").exists());
    expect(&folder.run(&["prove", "a.toml", "-o", "b.toml"]), 2, "--assign finds, which is missing");
    let changed = ["prove", "a.toml", "--assign", "--what-if", "one.wcet=+1%", "-o", "b.toml"];
    expect(&folder.run(&changed), 2, "--what-if changes nothing of the threads");
}

/// (1, 4) until 2, (2, 4) until 3: their densities exceed 1, and yet EDF meets both deadlines.
#[test]
fn reservations_that_are_found_become_a_contract() {
    let folder = Folder(tempfile::tempdir().expect("a directory"));
    let task = |name: &str, wcet: &str, deadline: &str, more: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nseparation = \"4ms\"\nwcet = \"{wcet}\"\n\
             policy = \"SCHED_DEADLINE\"\nprocessors = \"1\"\ndeadline = \"{deadline}\"\n{more}\n"
        )
    };
    let reserved = "reservation = { runtime = \"1ms\", deadline = \"4ms\", period = \"4ms\" }";
    let text = task("one", "1ms", "2ms", reserved) + &task("two", "2ms", "3ms", "");
    std::fs::write(folder.path("a.toml"), text).expect("written");
    let output = folder.run(&["prove", "a.toml"]);
    expect(&output, 6, "2 deadlines not proven");
    assert!(text_of(&output).contains("--assign -o FILE.toml chooses one"), "{output:?}");
    let assign = |deadline: &str| {
        let deadline = format!("two={deadline}");
        folder.run(&["prove", "a.toml", "--assign", "--deadline", &deadline, "--force", "-o", "b.toml"])
    };
    expect(&assign("3ms"), 0, "Wrote b.toml");
    let written = std::fs::read_to_string(folder.path("b.toml")).expect("written");
    assert!(written.contains("deadline = \"3ms\"") && written.contains("runtime = \"2ms\""), "{written}");
    let document = folder.run(&["prove", "b.toml", "--json", "--assign"]);
    expect(&document, 0, "");
    let document: Value = serde_json::from_slice(&document.stdout).expect("JSON");
    assert_eq!((task_of(&document, "one"), task_of(&document, "two")), (2_000_000, 3_000_000));
    assert_eq!(task(&document, "two")["assigned_deadline_ns"], 3_000_000);
    let shown = text_of(&folder.run(&["prove", "b.toml", "--assign"]));
    let assigned = "of the reservations, all tasks in one meet theirs: one 2 ms, two 3 ms.";
    assert!(shown.contains(assigned), "{shown}");
    std::fs::remove_file(folder.path("b.toml")).expect("removed");
    expect(&assign("2.9ms"), 6, "no deadlines of the reservations were found with which one meets its own");
    expect(&assign("1.9ms"), 6, "");
    assert!(!folder.path("b.toml").exists());
}

/// A thread that was more urgent for a while may be so again: both phases are proven, and delay others.
#[test]
fn phases_of_a_thread_are_tasks_of_their_own() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(folder.path("demo.timing.json")).expect("a model");
    let mut model: Value = serde_json::from_str(&text).expect("JSON");
    let tasks = model["threads"]["tasks"].as_array_mut().expect("tasks");
    let mut urgent = tasks.iter().find(|task| task["name"] == "odd-period").expect("a task").clone();
    urgent["phase"] = 1.into();
    urgent["priority"] = 98.into();
    tasks.push(urgent);
    std::fs::write(folder.path("phases.json"), model.to_string()).expect("written");
    let output = folder.run(&["prove", "phases.json", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut priorities: Vec<u64> = document["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .filter(|task| task["name"] == "odd-period")
        .filter_map(|task| task["priority"].as_u64())
        .collect();
    priorities.sort_unstable();
    assert!(priorities.len() == 2 && priorities[1] == 98, "{priorities:?}");
    assert!(document["remarks"].to_string().contains("so each is several tasks"), "{document:#}");
}

/// What no reservation fits is named, and what the kernel would not take is not proven.
#[test]
fn reservations_that_do_not_exist_are_named() {
    let folder = Folder(tempfile::tempdir().expect("a directory"));
    let task = |name: &str, wcet: &str, separation: &str, more: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nseparation = \"{separation}\"\nwcet = \"{wcet}\"\n\
             policy = \"SCHED_DEADLINE\"\nprocessors = \"1\"\n{more}\n"
        )
    };
    let assign = |text: &str| {
        std::fs::write(folder.path("a.toml"), text).expect("written");
        let output = folder.run(&["prove", "a.toml", "--assign", "--force", "-o", "b.toml"]);
        (output, std::fs::read_to_string(folder.path("b.toml")).unwrap_or_default())
    };
    let expect_none = |text: &str| {
        let (output, _) = assign(text);
        expect(&output, 6, "no reservation was found for one");
    };
    expect_none(&(task("one", "40us", "50us", "") + &task("two", "1ms", "10ms", "")));
    expect_none(&task("one", "1ms", "10ms", "jitter = \"9.5ms\"").replace("separation", "period"));
    // The kernel takes no runtime below 1.024 µs, and no period above 4.19 s.
    let (output, written) = assign(&task("one", "500ns", "10s", ""));
    expect(&output, 0, "Wrote b.toml");
    assert!(written.contains("1.024us") && written.contains("4194.304ms"), "{written}");
    let longer = "reservation = { runtime = \"1ms\", deadline = \"4ms\", period = \"3ms\" }";
    std::fs::write(folder.path("c.toml"), task("one", "1ms", "4ms", longer)).expect("written");
    expect(&folder.run(&["prove", "c.toml"]), 4, "no task that can be proven");
    // 1 ms until 2 ms of every 4 ms: a job may be held for 2 ms before.
    let held = "reservation = { runtime = \"1.1ms\", deadline = \"2ms\", period = \"4ms\" }";
    std::fs::write(folder.path("d.toml"), task("one", "1ms", "4ms", held)).expect("written");
    let output = folder.run(&["prove", "d.toml", "--json"]);
    expect(&output, 6, "1 deadline not proven");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(task_of(&document, "one"), 3_000_000);
}

fn text_of(output: &Output) -> String {
    text(&output.stdout)
}

fn task_of(document: &Value, name: &str) -> u64 {
    task(document, name)["response_ns"].as_u64().expect("a bound")
}

fn takes_40_us(cpu: u32) -> Processor {
    let poid = Variable { max_ns: Duration::from_us(40), ..Variable::default() };
    Processor { cpu, variables: Some(Variables { poid, ..Variables::default() }), ..Processor::default() }
}

/// What the kernel takes, on the threads' own platform and on another. It counts all the same, but the proof
/// says so, and so does whoever compares other threads with its bounds.
#[test]
fn latencies_of_another_kernel_or_machine_are_named() {
    let folder = Folder::new();
    let model = std::fs::read_to_string(folder.path("demo.timing.json")).expect("written");
    let own = TimingModel::from_json(&model).expect("a model").platform.expect("a platform");
    let kernel = |platform: &Platform| {
        let latency = SchedulingLatency {
            from_ns: Instant::from_ns(0),
            until_ns: Instant::from_ns(9),
            kernel: platform.kernel.clone(),
            preemption: Preemption::Rt,
            no_variables: None,
            damaged_recordings: 0,
            horizon_ns: Duration::from_ms(50),
            processors: [0, 1].map(takes_40_us).to_vec(),
            monitors: Vec::new(),
        };
        let platform = Some(platform.clone());
        let model = TimingModel { latency: Some(latency), platform, ..TimingModel::new("CLOCK_MONOTONIC") };
        std::fs::write(folder.path("kernel.json"), model.to_json()).expect("written");
    };
    let said = |document: &Value| {
        let remarks = document["remarks"].as_array().expect("remarks").iter();
        let remarks = remarks.filter_map(Value::as_str);
        remarks.filter(|it| it.contains("measured elsewhere")).map(str::to_owned).collect::<Vec<_>>()
    };
    kernel(&own);
    let document = folder.json(&["--platform", "kernel.json"]);
    assert_eq!((said(&document), &document["observed_on"]), (vec![], &json!([own])));
    let other = Platform { kernel: "6.1.0-rt".into(), machine: "aarch64".into(), cpus: 4 };
    kernel(&other);
    let document = folder.json(&["--platform", "kernel.json"]);
    assert_eq!(document["observed_on"], json!([own, other]));
    let [remark] = &said(&document)[..] else { panic!("{document:#}") };
    let release = &own.kernel;
    let difference = format!("kernel 6.1.0-rt, not {release}; aarch64, not x86_64; 4 processors online");
    assert!(remark.contains(&difference), "{remark}");
    // The recording is of one of both.
    std::fs::write(folder.path("proof.json"), document.to_string()).expect("written");
    let check = ["check", "demo.timing.json", "demo.timing.json", "--bounds", "proof.json"];
    let output = folder.run(&check);
    let warning = format!("rest on observations that were made elsewhere ({difference}");
    assert!(text(&output.stderr).contains(&warning), "{output:?}");
}

/// What was observed, as a contract. Bounds need not be those of the model: a contract has shorter curves.
/// The most urgent task, which never waits, has the same one.
#[test]
fn a_contract_of_a_model_is_proven_too() {
    let folder = Folder::new();
    expect(&folder.run(&["contract", "demo.timing.json", "--margin", "0%", "-o", "demo.toml"]), 0, "");
    let output = folder.run(&["prove", "demo.toml", "--json"]);
    let agreed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(task_of(&agreed, "sleep-abs"), task_of(&folder.json(&[]), "sleep-abs"));
    let remarks = agreed["remarks"].as_array().expect("remarks");
    assert!(!remarks.iter().any(|it| it.as_str().is_some_and(|it| it.contains("Not proven"))), "{remarks:?}");
    // Bursts have a curve, and so a bound where they are pinned.
    let text = std::fs::read_to_string(folder.path("demo.toml")).expect("written");
    let pinned = text.replace("processors = \"0-1\"", "processors = \"1\"");
    std::fs::write(folder.path("pinned.toml"), pinned).expect("written");
    let output = folder.run(&["prove", "pinned.toml", "--json"]);
    let pinned: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(task_of(&pinned, "burst-rx") > 3 * 100_000, "three in a row");
}

#[test]
fn every_fault_says_what_to_do() {
    let folder = Folder::new();
    std::fs::write(folder.path("none.json"), "{}").expect("written");
    for (arguments, code, message) in [
        (&["none.json"][..], 5, "none.json is not a usable timing model"),
        (
            &["demo.timing.json", "--deadline", "nobody=1ms"],
            4,
            "no real-time thread of the model matches 'nobody'",
        ),
        (&["demo.timing.json", "--deadline", "soon"], 2, "expected THREAD=TIME"),
        (&["demo.timing.json", "--what-if", "a.cost=+1%"], 2, "expected THREAD.wcet=+20%"),
        (&["demo.timing.json", "--what-if", "a.wcet=-100%"], 2, "expected more than -100%"),
        (&["demo.timing.json", "--platform", "missing.json"], 5, "cannot read missing.json"),
        (
            &["demo.timing.json", "--platform", "demo.timing.json"],
            5,
            "demo.timing.json has no section `latency`",
        ),
        (&[], 2, "the following required arguments were not provided"),
    ] {
        expect(&folder.run(&[&["prove"][..], arguments].concat()), code, message);
    }
}
