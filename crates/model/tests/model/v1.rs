//! Files of version 1, as Punctual wrote them: read with everything that they say, written as version 2.

use punctual_model::*;
use serde_json::{Value, json};

const THREADS: &str = include_str!("../data/v1/threads.timing.json");
const DATAFLOW: &str = include_str!("../data/v1/dataflow.timing.json");
const BOTH: &str = include_str!("../data/v1/both.timing.json");

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn read(text: &str) -> TimingModel {
    TimingModel::from_json(text).expect("valid")
}

/// What the file of version 1 becomes, by hand.
fn converted(v1: &Value) -> Value {
    let mut v2 = json!({"format": FORMAT, "version": VERSION, "clock": v1["observation"]["clock"]});
    if v1["platform"]["kernel"] != "" {
        v2["platform"] = v1["platform"].clone();
    }
    let mut observation = v1["observation"].clone();
    let observation_fields = observation.as_object_mut().expect("an object");
    observation_fields.remove("clock");
    let traced = observation_fields.remove("dataflow");
    if let Some(program) = v1.get("dataflow") {
        let span = traced.as_ref().unwrap_or(&observation);
        v2["dataflow"] = program.clone();
        (v2["dataflow"]["from_ns"], v2["dataflow"]["until_ns"]) =
            (span["from_ns"].clone(), span["until_ns"].clone());
    }
    if v1["tasks"] != json!([]) {
        v2["threads"] = observation;
        v2["threads"]["tasks"] = v1["tasks"].clone();
    }
    v2
}

#[test]
fn version_1_is_converted_to_version_2_completely() {
    for (text, sections) in [(THREADS, "threads"), (DATAFLOW, "dataflow"), (BOTH, "threads dataflow")] {
        let model = read(text);
        assert_eq!(model.sections().join(" "), sections);
        assert_eq!(parsed(&model.to_json()), converted(&parsed(text)), "{sections}");
        assert_eq!(read(&model.to_json()), model, "{sections}");
    }
}

#[test]
fn each_section_has_its_own_span_and_losses() {
    let both = read(BOTH);
    assert_eq!(both.threads, read(THREADS).threads);
    let [(_, threads), (_, dataflow)] = both.spans()[..] else { panic!("two sections") };
    assert!(!threads.overlaps(dataflow));
    assert_eq!(dataflow.from_ns, Instant::from_ns(1_000_000_000));
    assert_eq!(both.losses(), []);
    let mut lossy = parsed(BOTH);
    lossy["observation"]["lost_records"] = json!(2);
    lossy["dataflow"]["discarded_events"] = json!(3);
    let lost = Loss { counter: "lost_records", count: 2 };
    let discarded = Loss { counter: "discarded_events", count: 3 };
    assert_eq!(read(&lossy.to_string()).losses(), [("threads", lost), ("dataflow", discarded)]);
}

#[test]
fn a_file_without_threads_or_a_program_becomes_a_threads_section() {
    let mut v1 = parsed(THREADS);
    v1["tasks"] = json!([]);
    let model = read(&v1.to_string());
    assert_eq!(model.threads.map(|threads| threads.tasks.len()), Some(0));
    assert_eq!(model.dataflow, None);
}

#[test]
fn errors_name_the_place_in_the_version_1_file() {
    for (text, place, value, message) in [
        (THREADS, "/tasks/1/priority", json!(100), "tasks[1].priority: expected a real-time priority"),
        (THREADS, "/tasks/0/tid", json!(-1), "tasks[0].tid: expected a whole number from 0 to 4294967295"),
        (THREADS, "/tasks/0/tid", json!(null), "tasks[0].tid: expected a whole number"),
        (THREADS, "/observation", json!([]), "observation: expected an object, found an array"),
        (THREADS, "/observation/until_ns", json!(1), "observation.until_ns: expected no less than"),
        (THREADS, "/observation/stolen_ns", json!(null), "observation.stolen_ns: expected a whole number"),
        (THREADS, "/platform/cpus", json!("2"), "platform.cpus: expected a whole number"),
        (DATAFLOW, "/observation/until_ns", json!(1), "observation.until_ns: expected no less than"),
        (DATAFLOW, "/dataflow/tasks/1/name", json!("cam"), "dataflow.tasks[1].name: expected a unique name"),
        (DATAFLOW, "/dataflow", json!(null), "dataflow: expected an object, found null"),
        (BOTH, "/observation/dataflow/until_ns", json!(1), "observation.dataflow.until_ns: expected no less"),
        (BOTH, "/observation/dataflow", json!([1, 2]), "observation.dataflow: expected an object"),
    ] {
        let mut v1 = parsed(text);
        let (parent, name) = place.rsplit_once('/').expect("a pointer");
        v1.pointer_mut(parent).expect(place)[name] = value;
        let error = TimingModel::from_json(&v1.to_string()).expect_err(place).to_string();
        assert!(error.starts_with(message), "{place}: {error}");
    }
    let mut v1 = parsed(BOTH);
    v1.as_object_mut().expect("an object").remove("dataflow");
    let error = TimingModel::from_json(&v1.to_string()).expect_err("no program").to_string();
    assert!(
        error.starts_with("observation.dataflow: expected nothing (there is no dataflow program)"),
        "{error}"
    );
}

#[test]
fn missing_release_counts_equal_the_jobs() {
    let mut v1 = parsed(THREADS);
    let stream = v1.pointer_mut("/tasks/0/streams/0").and_then(Value::as_object_mut).expect("a stream");
    let jobs = stream["jobs"].as_u64().expect("a number");
    stream.remove("releases");
    let model = read(&v1.to_string());
    assert_eq!(model.tasks()[0].streams[0].releases, jobs);
}
