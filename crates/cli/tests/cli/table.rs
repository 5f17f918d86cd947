//! `punctual table`: from contracts and models to a table, its check and its pictures.

use punctual_model::{TimingModel, check};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(contract: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a directory"));
        fs::write(folder.path("robot.toml"), contract).expect("written");
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Runs in the folder.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.output().expect("it runs")
    }

    fn table(&self, name: &str) -> TimingModel {
        TimingModel::from_json(&fs::read_to_string(self.path(name)).expect("written")).expect("a model")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn expect(output: &Output, code: i32, message: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
}

const ROBOT: &str = r#"
slot = "1ms"
processors = "1-2"

[[task]]
name = "sense"
period = "10ms"
wcet = "2ms"

[[task]]
name = "act"
period = "10ms"
wcet = "1500us"
deadline = "8ms"
after = ["sense"]
thread = { cgroup = "/robot" }

[[task]]
name = "log"
period = "20ms"
wcet = "12ms"
on_overrun = "skip"
"#;

/// The offset rounds up to the whole period: an order would be kept with the activation before.
#[test]
fn an_order_across_periods_is_refused() {
    let task = |name: &str, more: &str| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"12ms\"\nwcet = \"3ms\"\n{more}")
    };
    let robot = |offset: &str| {
        let sense = task("sense", &format!("offset = \"{offset}\"\n"));
        let act = task("act", "after = [\"sense\"]\n");
        format!("slot = \"3ms\"\nprocessors = \"1\"\n{sense}{act}")
    };
    let run = |offset: &str| Folder::new(&robot(offset)).run(&["table", "robot.toml"]);
    expect(&run("3ms"), 0, "");
    for offset in ["9.5ms", "12ms"] {
        let why = "act cannot run after sense: in slots of 3 ms, sense first begins in period 2, and act in \
                   period 1";
        expect(&run(offset), 2, why);
    }
}

#[test]
fn tasks_that_wait_for_each_other_or_have_no_processor_are_named() {
    let task = |name: &str, more: &str| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"12ms\"\nwcet = \"3ms\"\n{more}\n")
    };
    let run = |tasks: &[String]| {
        let contract = format!("slot = \"3ms\"\nprocessors = \"1-2\"\n{}", tasks.concat());
        Folder::new(&contract).run(&["table", "robot.toml"])
    };
    let after = |name, before: &str| task(name, &format!("after = [\"{before}\"]"));
    let circle = run(&[after("d", "c"), after("a", "c"), after("b", "a"), after("c", "b")]);
    expect(&circle, 2, "tasks would wait for each other: c runs after b, b runs after a, a runs after c");
    expect(&run(&[after("a", "a")]), 2, "tasks would wait for each other: a runs after a");
    let elsewhere = run(&[task("a", "processors = \"2-3\"")]);
    expect(&elsewhere, 2, "a may run on processor 3, which is not one of the table's: those are 1,2");
}

#[test]
fn a_contract_becomes_a_table_and_pictures() {
    let folder = Folder::new(ROBOT);
    let output = folder.run(&["table", "robot.toml", "-o", "robot.table.json"]);
    expect(&output, 0, "Wrote robot.table.json; punctual table --from robot.table.json checks and shows it.");
    let shown = text(&output.stdout);
    assert!(shown.starts_with("Time-triggered table: 20 slots of 1 ms on CLOCK_MONOTONIC"), "{shown}");
    let model = folder.table("robot.table.json");
    let table = model.table.as_ref().expect("a table");
    assert_eq!(check::table(table), []);
    assert_eq!(table.tasks.iter().map(|task| task.wcet).collect::<Vec<_>>(), [2, 2, 12]);
    let thread = table.tasks[1].thread.as_ref().expect("a pattern");
    assert_eq!(thread.cgroup.as_deref(), Some("/robot"));

    expect(
        &folder.run(&["table", "robot.toml", "-o", "robot.table.json"]),
        5,
        "it exists; --force replaces it",
    );
    let again = folder.run(&["table", "robot.toml", "-q", "-o", "-"]);
    assert_eq!(text(&again.stdout), fs::read_to_string(folder.path("robot.table.json")).expect("read"));

    let checked = folder.run(&["table", "--from", "robot.table.json"]);
    assert_eq!((checked.status.code(), text(&checked.stdout)), (Some(0), shown));
    let json: Value =
        serde_json::from_slice(&folder.run(&["table", "--from", "robot.table.json", "--json"]).stdout)
            .expect("JSON");
    assert_eq!((&json["slots"], &json["violations"]), (&20.into(), &Value::Array(vec![])));
    assert_eq!(json["tasks"][1]["response_slots"], 4);

    expect(&folder.run(&["report", "robot.table.json"]), 0, "Wrote robot.table.html");
    let page = fs::read_to_string(folder.path("robot.table.html")).expect("a page");
    assert!(page.contains("id=\"time-table\"") && page.contains("<title>sense: slots 0 to 1</title>"));
    expect(
        &folder.run(&["timeline", "robot.table.json"]),
        0,
        "Wrote robot.table.perfetto-trace: one repetition",
    );
    assert!(Path::new(&folder.path("robot.table.perfetto-trace")).exists());
    assert!(text(&folder.run(&["show", "robot.table.json"]).stdout).starts_with("Time-triggered table"));
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_the_reason() {
    let folder = Folder::new(ROBOT);
    let more = "[[task]]\nname = \"more\"\nperiod = \"20ms\"\nwcet = \"1ms\"\n";
    fs::write(folder.path("more.toml"), more).expect("written");
    let output = folder.run(&["table", "robot.toml", "more.toml", "--cpus", "3"]);
    expect(&output, 6, "no table found for these tasks: ");
    expect(&output, 6, "the tasks need 1.050 processors, and there is 1: 21 slots in 20");
}

#[test]
fn times_that_a_table_was_not_made_for_are_told() {
    let chain = "\n[[chain]]\ntasks = [\"sense\", \"act\"]\nreaction_time = \"9ms\"\n";
    let folder =
        Folder::new(&(ROBOT.replacen("wcet = \"2ms\"", "wcet = \"2ms\"\nresponse = \"1ms\"", 1) + chain));
    let made = folder.run(&["table", "robot.toml"]);
    expect(&made, 0, "sense: the table has a response time of 2 ms, more than the 1 ms in its contract");
    expect(&made, 0, "sense -> act: the table keeps this order, but the times of the chain were not checked");
    let folder = Folder::new(&ROBOT.replacen("wcet = \"2ms\"", "wcet = \"2ms\"\nresponse = \"2ms\"", 1));
    let made = folder.run(&["table", "robot.toml"]);
    assert_eq!(text(&made.stderr), "", "{made:?}");
}

#[test]
fn every_fault_says_what_to_do() {
    let folder = Folder::new(ROBOT);
    fs::write(folder.path("bad.toml"), "[[task]]\nname = \"a\"\nperiod = \"soon\"\n").expect("written");
    fs::write(folder.path("half.toml"), "[[task]]\nname = \"a\"\nperiod = \"3500us\"\n").expect("written");
    fs::write(folder.path("odd.toml"), "[[task]]\nname = \"a\"\nperiod = \"3500us\"\nwcet = \"1ms\"\n")
        .expect("written");
    fs::write(folder.path("lost.toml"), "[[chain]]\ntasks = [\"sense\", \"nobody\"]\n").expect("written");
    for (arguments, code, message) in [
        (&["bad.toml"][..], 5, "bad.toml is not a valid contract: line 3: expected a time such as"),
        (&["half.toml"], 2, "the length of a slot is unknown; --slot 3ms, or slot = \"3ms\" in a contract"),
        (&["half.toml", "--slot", "1ms"], 2, "the processors of the table are unknown; --cpus 1-3"),
        (&["half.toml", "--slot", "1ms", "--cpus", "0"], 2, "the wcet of a is unknown; write wcet = \"…\""),
        (
            &["odd.toml", "--slot", "1ms", "--cpus", "0"],
            2,
            "its period of 3.5 ms is not a whole number of slots",
        ),
        (
            &["robot.toml", "robot.toml"],
            2,
            "robot.toml declares sense, which an earlier contract declares, too",
        ),
        (&["robot.toml", "lost.toml"], 2, "no task is named nobody"),
        (&["nothing.json"], 5, "cannot read nothing.json"),
        (&[], 2, "the following required arguments were not provided"),
        (&["--from", "robot.toml"], 5, "robot.toml is not a usable timing model"),
    ] {
        let output = folder.run(&[&["table"][..], arguments].concat());
        expect(&output, code, message);
    }
    let output = folder.run(&["table", "odd.toml", "--slot", "1ms", "--cpus", "0", "--shorten-periods"]);
    expect(&output, 0, "a: the table has a period of 3 ms instead of 3.5 ms");
}

#[test]
fn a_table_made_elsewhere_is_checked() {
    let folder = Folder::new(ROBOT);
    expect(&folder.run(&["table", "robot.toml", "-q", "-o", "a.table.json"]), 0, "");
    let mut document: Value =
        serde_json::from_str(&fs::read_to_string(folder.path("a.table.json")).expect("read")).expect("JSON");
    document["table"]["method"] = "other".into();
    document["table"]["runs"].as_array_mut().expect("runs").remove(0);
    fs::write(folder.path("b.table.json"), document.to_string()).expect("written");
    let output = folder.run(&["table", "--from", "b.table.json"]);
    expect(&output, 6, "the table breaks requirements of its tasks: 1 violation");
    assert!(text(&output.stdout).contains("slots and gets 0"), "{output:?}");
    let json: Value =
        serde_json::from_slice(&folder.run(&["table", "--from", "b.table.json", "--json"]).stdout)
            .expect("JSON");
    assert_eq!(json["violations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_table_that_contradicts_itself_is_not_dispatched() {
    let folder = Folder::new(ROBOT);
    expect(&folder.run(&["table", "robot.toml", "-q", "-o", "a.table.json"]), 0, "");
    let mut document: Value =
        serde_json::from_str(&fs::read_to_string(folder.path("a.table.json")).expect("read")).expect("JSON");
    let run = &document["table"]["runs"][0];
    let (job, from, to) = (run["job"].clone(), run["from"].clone(), run["to"].clone());
    let twice = |processor| serde_json::json!({"processor": processor, "from": from, "to": to, "job": job});
    document["table"]["runs"] = vec![twice(1), twice(2)].into();
    fs::write(folder.path("b.table.json"), document.to_string()).expect("written");
    let output = folder.run(&["tt", "run", "b.table.json", "--for", "1"]);
    expect(&output, 5, "b.table.json cannot be dispatched: ");
    expect(&output, 5, "on processors 1 and 2");
    let output = folder.run(&["tt", "check", "nothing", "b.table.json"]);
    expect(&output, 5, "violations; punctual table --from b.table.json lists them");
}

/// The recording that comes with the project: what was observed, with a margin, and an order on top.
#[test]
fn a_timing_model_becomes_a_table() {
    let folder = Folder::new("[[chain]]\ntasks = [\"pipe-tx\", \"pipe-rx\"]\n");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo");
    let recording = recording.display().to_string();
    expect(&folder.run(&["replay", "-q", &recording, "-o", "demo.timing.json"]), 0, "");
    let arguments =
        ["table", "demo.timing.json", "robot.toml", "--slot", "500us", "--cpus", "1", "--margin", "20%"];
    let threads = ["--thread", "pipe-*", "--thread", "sleep-abs", "-o", "demo.table.json"];
    let output = folder.run(&[&arguments[..], &threads].concat());
    expect(&output, 0, "Wrote demo.table.json");
    let (observed, model) = (folder.table("demo.timing.json"), folder.table("demo.table.json"));
    let table = model.table.as_ref().expect("a table");
    assert_eq!(check::table(table), []);
    assert_eq!(model.platform, observed.platform);
    let names: Vec<&str> = table.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for task in &table.tasks {
        let seen = observed.tasks().iter().find(|seen| seen.name == task.name).expect("it was observed");
        let stream = &seen.streams[seen.primary.expect("a stream")];
        let wcet = stream.execution.as_ref().expect("costs").wcet_ns[0].ns();
        assert!(task.wcet * table.slot_ns.ns() * 10 >= wcet * 12, "{}: {} for {wcet}", task.name, task.wcet);
    }
    let after = table.tasks.iter().find(|task| task.name == "pipe-rx").expect("it").after[0];
    assert_eq!(table.tasks[after].name, "pipe-tx");
    let output =
        folder.run(&["table", "demo.timing.json", "--slot", "1ms", "--cpus", "1", "--thread", "nobody"]);
    expect(&output, 4, "no thread of the timing models matches 'nobody'");
}
