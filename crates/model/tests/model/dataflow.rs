//! Dataflow programs in the file: what does not make sense is refused at its place; and how curves go on.

use crate::generate::{curve_of, exactly, model, spans};
use proptest::prelude::*;
use punctual_model::*;
use serde_json::{Value, json};

/// A file with one chain of two tasks: 5 ns queued, 40 executed, 10 waited, 5 queued, 40 executed.
fn file() -> Value {
    let times = json!({
        "count": 2, "min_ns": 1, "quartile_1_ns": 1, "median_ns": 1, "quartile_3_ns": 2, "max_ns": 2,
        "mean_ns": 1, "p99_ns": 2, "worst": {"instance": 1, "at_ns": 7},
    });
    let task = |name: &str, id: u32| {
        json!({
            "name": name, "id": id, "activations": 3, "executions": 2, "in_flight": 1,
            "execution": times, "queuing": times,
            "arrival": {"curve": {"delta_min_ns": [10, 30], "delta_max_ns": [20, 30]}},
            "distances": [
                {"n": 2, "min_ns": 10, "max_ns": 20, "extrapolated": false},
                {"n": 5, "min_ns": 50, "extrapolated": true},
            ],
            "counts": [
                {"span_ns": 10, "min": 0, "max": 1, "extrapolated": false},
                {"span_ns": 100, "max": 9, "extrapolated": true},
            ],
        })
    };
    let path = json!([
        {"task": "cam", "instance": 0, "activation_ns": 100, "start_ns": 105, "until_ns": 145,
            "channel": "image"},
        {"task": "navi", "instance": 0, "activation_ns": 155, "start_ns": 160, "until_ns": 200},
    ]);
    let worst = json!({
        "source_instance": 0, "from_ns": 100, "until_ns": 200,
        "queuing_ns": 10, "execution_ns": 80, "waiting_ns": 10, "path": path,
    });
    let latency = json!({
        "count": 2, "min_ns": 90, "quartile_1_ns": 90, "median_ns": 90, "quartile_3_ns": 100, "max_ns": 100,
        "worst": worst,
    });
    json!({
        "format": "punctual.timing-model", "version": 2, "clock": "CLOCK_MONOTONIC",
        "dataflow": {
            "from_ns": 0, "until_ns": 9, "events": 20, "discarded_events": 0,
            "channels": [{
                "name": "image", "id": 0, "pushes": 2, "pushed_by": [{"task": "cam", "pushes": 2}],
                "activates": [{"task": "navi", "activations": 2, "declared": true}],
            }],
            "tasks": [task("cam", 0), task("navi", 1)],
            "chains": [{
                "tasks": ["cam", "navi"], "sources": 3, "in_flight": 1, "sinks": 2,
                "reaction": latency, "age": latency,
            }],
        },
    })
}

#[test]
fn a_dataflow_program_is_read_and_written() {
    let model = TimingModel::from_json(&file().to_string()).expect("valid");
    assert_eq!(serde_json::from_str::<Value>(&model.to_json()).expect("JSON"), file());
}

#[test]
fn inconsistent_values_are_refused_with_their_place() {
    let worst = "/dataflow/chains/0/age/worst";
    let rows: [(&str, Value, &str); 23] = [
        ("/dataflow/from_ns", json!(10), "dataflow.until_ns: expected no less than `from_ns` (10), found 9"),
        ("/dataflow/tasks/1/name", json!("cam"), "dataflow.tasks[1].name: expected a unique name"),
        (
            "/dataflow/channels/0/pushed_by/0/task",
            json!("x"),
            "dataflow.channels[0].pushed_by[0].task: expected the name of a task",
        ),
        (
            "/dataflow/channels/0/activates/0/task",
            json!("x"),
            "dataflow.channels[0].activates[0].task: expected the name of a task",
        ),
        (
            "/dataflow/tasks/0/execution/count",
            json!(3),
            "dataflow.tasks[0].execution.count: expected as many as",
        ),
        (
            "/dataflow/tasks/0/queuing/min_ns",
            json!(3),
            "dataflow.tasks[0].queuing.quartile_1_ns: expected no less than `min_ns` (3)",
        ),
        (
            "/dataflow/tasks/0/execution/p99_ns",
            json!(1),
            "dataflow.tasks[0].execution.p99_ns: expected no less than `quartile_3_ns` (2), found 1",
        ),
        (
            "/dataflow/tasks/0/execution/mean_ns",
            json!(3),
            "dataflow.tasks[0].execution.max_ns: expected no less than `mean_ns` (3), found 2",
        ),
        (
            "/dataflow/tasks/0/arrival/curve/delta_min_ns/1",
            json!(9),
            "dataflow.tasks[0].arrival.curve.delta_min_ns[1]: expected no less",
        ),
        (
            "/dataflow/tasks/0/distances/1/min_ns",
            json!(60),
            "dataflow.tasks[0].distances[1]: expected the value of `arrival.curve`",
        ),
        (
            "/dataflow/tasks/0/counts/1/extrapolated",
            json!(false),
            "dataflow.tasks[0].counts[1]: expected the value of `arrival.curve`",
        ),
        ("/dataflow/chains/0/tasks", json!(["cam"]), "dataflow.chains[0].tasks: expected at least two tasks"),
        (
            "/dataflow/chains/0/tasks/1",
            json!("x"),
            "dataflow.chains[0].tasks[1]: expected the name of a task",
        ),
        (
            "/dataflow/chains/0/sources",
            json!(4),
            "dataflow.chains[0].sources: expected the sum of its parts (3), found 4",
        ),
        (
            "/dataflow/chains/0/sinks",
            json!(1),
            "dataflow.chains[0].sinks: expected the sum of its parts (2), found 1",
        ),
        (
            "/dataflow/chains/0/age/max_ns",
            json!(101),
            "dataflow.chains[0].age.worst.until_ns: expected `from_ns` plus `max_ns`",
        ),
        (
            "/dataflow/chains/0/age/worst/waiting_ns",
            json!(11),
            "age.worst.waiting_ns: expected the sum over the path (10), found 11",
        ),
        (
            "/dataflow/chains/0/age/worst/path/1/start_ns",
            json!(150),
            "age.worst.path[1].activation_ns: expected no more than `start_ns` (150)",
        ),
        (
            "/dataflow/chains/0/age/worst/path/1/until_ns",
            json!(1),
            "age.worst.path[1].until_ns: expected no less than the instant before it",
        ),
        (
            "/dataflow/chains/0/age/worst/path/1/busy_ns",
            json!(11),
            "age.worst.path[1].busy_ns: expected no more than from the arrival of the datum",
        ),
        (
            "/dataflow/chains/0/age/worst/path/0/channel",
            json!("x"),
            "age.worst.path[0].channel: expected the name of a channel",
        ),
        (
            "/dataflow/chains/0/age/worst/path/0/task",
            json!("navi"),
            "age.worst.path[0].task: expected the chain's task",
        ),
        ("/dataflow/chains/0/age/worst/from_ns", json!(99), "age.worst"),
    ];
    assert!(file().pointer(worst).is_some());
    for (place, value, expected) in rows {
        let mut file = file();
        let (parent, name) = place.rsplit_once('/').expect(place);
        match file.pointer_mut(parent).expect(place) {
            Value::Object(object) => drop(object.insert(name.to_owned(), value)),
            list => list[name.parse::<usize>().expect(place)] = value,
        }
        let error = TimingModel::from_json(&file.to_string()).expect_err(place).to_string();
        assert!(error.contains(expected), "{place}: {error}");
    }
}

#[test]
fn curves_extend_by_the_least_separation() {
    let curve = Curve { delta_min_ns: spans(&[10, 30]), delta_max_ns: spans(&[20, 30]) };
    let least: Vec<(u64, bool)> =
        (0..6).map(|n| curve.safe_delta_min(n)).map(|found| (found.value.ns(), found.extrapolated)).collect();
    assert_eq!(least, [(0, false), (0, false), (10, false), (30, false), (40, true), (50, true)]);
    let most =
        |span| curve.safe_eta_max(Duration::from_ns(span)).map(|found| (found.value, found.extrapolated));
    let found = [0, 1, 10, 11, 30, 31, 40, 41, 51].map(most);
    let expected = [
        (0, false),
        (1, false),
        (1, false),
        (2, false),
        (2, false),
        (3, true),
        (3, true),
        (4, true),
        (5, true),
    ];
    assert_eq!(found, expected.map(Some));
    let coincide = Curve { delta_min_ns: spans(&[0]), delta_max_ns: spans(&[5]) };
    assert_eq!(coincide.safe_eta_max(Duration::from_ns(3)), None);
}

proptest! {
    /// Whatever comes later, if only no two are closer than the closest that the curve knows.
    #[test]
    fn extrapolation_is_safe(gaps in prop::collection::vec(3..50_u64, 2..40), horizon in 1..10_usize,
        more in prop::collection::vec(0..60_u64, 0..60)) {
        let least = *gaps.iter().min().expect("some");
        let instants = |gaps: &[u64]| gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) })
            .collect::<Vec<u64>>();
        let curve = curve_of(&exactly(&instants(&gaps)), horizon);
        let least = curve.delta_min_ns.first().map_or(least, |least| least.ns());
        let later: Vec<u64> = more.iter().map(|gap| gap + least).collect();
        let later = instants(&later);
        for (first, from) in later.iter().enumerate() {
            for (last, until) in later.iter().enumerate().skip(first) {
                let n = (last - first + 1) as u64;
                let bound = curve.safe_delta_min(n);
                prop_assert!(!bound.extrapolated || bound.value.ns() >= (n - 1) * least);
                // Within the curve the observed holds, beyond it what only the least separation promises.
                let promised = (n - 1) * least;
                prop_assert!(until - from >= promised);
                let most = curve.safe_eta_max(Duration::from_ns(until - from + 1)).expect("none coincide");
                prop_assert!(curve.safe_delta_min(most.value).value.ns() <= until - from);
                prop_assert!(curve.safe_delta_min(most.value + 1).value.ns() > until - from);
            }
        }
    }

    #[test]
    fn written_models_are_read_back(model in model()) {
        prop_assert_eq!(TimingModel::from_json(&model.to_json()).expect("valid"), model);
    }
}
