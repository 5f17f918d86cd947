//! Strict reading: what is written reads back, nonsense is refused with its place, and no text makes it
//! panic.

use crate::generate::model;
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::{ReadError, TimingModel};
use serde_json::{Value, json};

/// The example by which the format was agreed, with fields that only some tools write left out.
pub const EXAMPLE: &str = r#"{"format": "punctual.timing-model", "version": 2, "clock": "CLOCK_MONOTONIC",
 "platform": {"kernel": "6.18.44", "machine": "x86_64", "cpus": 2},
 "threads": {"from_ns": 0, "until_ns": 0, "records": 0, "lost_records": 0,
 "tasks": [{
   "name": "ctl", "pid": 1, "tid": 1, "phase": 0, "command": "/usr/bin/ctl", "policy": "SCHED_FIFO",
   "priority": 80, "affinity": "0-1", "from_ns": 0, "until_ns": 0, "ended_by": "observation_end",
   "primary": 0,
   "streams": [{
     "separator": {"call": "clock_nanosleep", "clock": "CLOCK_MONOTONIC", "absolute": true},
     "jobs": 2000, "uncertain_releases": 3,
     "arrival": {
       "periodic": {"on": "arrival", "period_ns": 5000000, "offset_ns": 0, "jitter_ns": 41000,
         "least_jitter_ns": 40500, "choice": "rounded"},
       "sporadic": {"min_separation_ns": 4960000},
       "curve": {"delta_min_ns": [4960000], "delta_max_ns": [5040000]}},
     "execution": {"wcet_ns": [800000]},
     "suspension": {"dynamic_ns": 0, "segmented": [[{"suspended_ns": 0, "cost_ns": 800000}]]},
     "response": {"max_ns": 900000}
   }]}]}}"#;

/// The example with the value at this place set, or taken away.
fn example_with(pointer: &str, value: Option<Value>) -> String {
    let mut document: Value = serde_json::from_str(EXAMPLE).expect("JSON");
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = document.pointer_mut(parent).expect("a place");
    match (parent, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(name.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(name).expect("a field")),
        (parent, value) => parent[name.parse::<usize>().expect("an index")] = value.expect("a value"),
    }
    document.to_string()
}

fn refusal(text: &str) -> ReadError {
    TimingModel::from_json(text).expect_err(text)
}

#[test]
fn the_example_of_the_format_is_read() {
    let model = TimingModel::from_json(EXAMPLE).expect("valid");
    let stream = &model.tasks()[0].streams[0];
    assert_eq!((stream.jobs, stream.releases, stream.back_to_back), (2000, 2000, 0));
    assert_eq!(stream.separator.to_string(), "clock_nanosleep CLOCK_MONOTONIC absolute");
}

#[test]
fn unknown_fields_are_ignored() {
    for place in [
        "/x",
        "/platform/x",
        "/threads/tasks/0/x",
        "/threads/tasks/0/streams/0/arrival/x",
        "/threads/tasks/0/streams/0/separator/x",
    ] {
        assert!(
            TimingModel::from_json(&example_with(place, Some(json!([null, {"y": 1}])))).is_ok(),
            "{place}"
        );
    }
}

#[test]
fn version_and_format_are_checked_first() {
    let nothing_else = r#"{"format": "punctual.timing-model", "version": 7, "tasks": "of another shape"}"#;
    assert_eq!(
        refusal(nothing_else).to_string(),
        "version 7 is not supported by this Punctual (it reads versions 1 to 2)"
    );
    for (text, message) in [
        (
            r#"{"format": "punctual.timing-model", "version": 1.5}"#,
            "version 1.5 is not supported by this Punctual (it reads versions 1 to 2)",
        ),
        (
            r#"{"format": "punctual.timing-model", "version": "2"}"#,
            r#"version: expected the number 2, found "2""#,
        ),
        (r#"{"format": "punctual.timing-model"}"#, "version: expected the number 2, found nothing"),
        (r#"{"format": "other"}"#, r#"format: expected "punctual.timing-model", found "other""#),
        ("{}", r#"format: expected "punctual.timing-model", found nothing"#),
        ("[]", "expected a timing model (an object), found an array"),
        ("3", "expected a timing model (an object), found 3"),
    ] {
        assert_eq!(refusal(text).to_string(), message, "{text}");
    }
}

#[test]
fn text_that_is_not_json_is_refused_with_line_and_column() {
    let cut = EXAMPLE.find("\"sporadic\"").expect("there");
    assert_eq!(
        refusal(&EXAMPLE[..cut]).to_string(),
        "line 14, column 7: the text ends in the middle of the model; is the file truncated?"
    );
    assert_eq!(
        refusal("").to_string(),
        "line 1, column 0: the text ends in the middle of the model; is the file truncated?"
    );
    assert_eq!(refusal("{\n  \"format\": NaN}").to_string(), "line 2, column 13: not JSON: expected value");
    assert!(refusal(&format!("{EXAMPLE} {{}}")).to_string().contains("not JSON: trailing characters"));
    assert!(
        refusal(&EXAMPLE.replace("41000", "1e999")).to_string().contains("not JSON: number out of range")
    );
    assert!(refusal(&"[".repeat(100_000)).to_string().contains("not JSON: recursion limit exceeded"));
}

#[test]
fn shape_errors_name_the_place_and_the_line() {
    let text = EXAMPLE.replace("\"period_ns\": 5000000", "\"period_ns\": -5");
    assert_eq!(
        refusal(&text).to_string(),
        "threads.tasks[0].streams[0].arrival.periodic.period_ns: expected a whole number, zero or greater, \
         found integer `-5` (line 12, column 52)"
    );
    let text = EXAMPLE.replace("\"tid\": 1, ", "");
    assert!(
        refusal(&text).to_string().starts_with(
            "threads.tasks[0].tid: expected a value, found nothing (the field is missing) (line "
        )
    );
    let text = EXAMPLE.replace("\"tid\": 1, ", "\"tid\": 1, \"tid\": 2, ");
    assert!(refusal(&text).to_string().contains("duplicate field `tid`"));
}

#[test]
fn invalid_values_are_refused_with_their_place() {
    let stream = "/threads/tasks/0/streams/0";
    let periodic = "/threads/tasks/0/streams/0/arrival/periodic";
    let curve = "/threads/tasks/0/streams/0/arrival/curve";
    let fraction =
        |numerator: u64, denominator: u64| json!({"numerator": numerator, "denominator": denominator});
    for (place, value, problem) in [
        // Of the wrong kind.
        ("/platform/cpus", json!(-1), "expected a whole number from 0 to 4294967295, found integer `-1`"),
        (
            "/platform/cpus",
            json!(1_u64 << 32),
            "expected a whole number from 0 to 4294967295, found integer `4294967296`",
        ),
        ("/platform", json!(["6.18", "x86_64", 2]), "expected an object, found an array"),
        ("/threads/tasks", json!({}), "expected an array, found an object"),
        ("/threads/tasks/0/policy", json!("SCHED_FOO"), "found \"SCHED_FOO\""),
        ("/threads/tasks/0/primary", json!(null), "expected a whole number, zero or greater, found null"),
        (
            &format!("{periodic}/jitter_ns"),
            json!(1.5),
            "expected a whole number, zero or greater, found floating point `1.5`",
        ),
        (
            &format!("{periodic}/jitter_ns"),
            json!("41 µs"),
            "expected a whole number, zero or greater, found string \"41 µs\"",
        ),
        (
            &format!("{periodic}/offset_ns"),
            json!(1_u64 << 63),
            "expected a whole number, found integer `9223372036854775808`",
        ),
        (
            &format!("{stream}/separator/call"),
            json!("getpid"),
            "expected the name of a call that separates jobs, found \"getpid\"",
        ),
        (
            &format!("{stream}/separator"),
            json!({"call": "read", "object": "pipe:[7]"}),
            "expected `fd` beside `object`, found none",
        ),
        // Of the right kind, but impossible.
        ("/threads/from_ns", json!(1), "until_ns: expected no less than `from_ns` (1), found 0"),
        ("/threads/tasks/0/from_ns", json!(1), "until_ns: expected no less than `from_ns` (1), found 0"),
        ("/threads/tasks/0/priority", json!(100), "expected a real-time priority up to 99, or 0, found 100"),
        ("/threads/tasks/0/primary", json!(1), "expected the index of a stream, up to 0, found 1"),
        (
            "/threads/tasks/0/streams",
            json!([]),
            "primary: expected nothing, as there are no streams, found 0",
        ),
        (
            "/threads/tasks/0/reservation",
            json!({"runtime_ns": 1, "deadline_ns": 2, "period_ns": 0}),
            "reservation.period_ns: expected a number greater than zero, found 0",
        ),
        (
            &format!("{stream}/releases"),
            json!(1999),
            "jobs: expected no more than `releases` (1999), found 2000",
        ),
        (
            &format!("{stream}/uncertain_releases"),
            json!(2001),
            "expected no more than `releases` (2000), found 2001",
        ),
        (
            &format!("{stream}/back_to_back"),
            json!(4),
            "expected no more than `uncertain_releases` (3), found 4",
        ),
        (&format!("{stream}/late"), json!(2001), "expected no more than `jobs` (2000), found 2001"),
        (&format!("{periodic}/period_ns"), json!(0), "expected a number greater than zero, found 0"),
        (
            &format!("{periodic}/period_exact"),
            fraction(5, 0),
            "period_exact.denominator: expected a number greater than zero, found 0",
        ),
        (
            &format!("{periodic}/period_exact"),
            fraction(0, 5),
            "period_exact.numerator: expected a number greater than zero, found 0",
        ),
        (
            &format!("{periodic}/period_exact"),
            fraction(15_000_004, 3),
            "expected a fraction within 1 ns of `period_ns` (5000000), found 15000004/3",
        ),
        (
            &format!("{curve}/delta_max_ns"),
            json!([5, 6]),
            "expected as many values as `delta_min_ns` has (1), found 2",
        ),
        (
            &format!("{curve}/delta_min_ns/0"),
            json!(5_040_001),
            "expected no more than `delta_max_ns[0]` (5040000), found 5040001",
        ),
        (
            &format!("{stream}/execution/wcet_ns"),
            json!([]),
            "expected at least the WCET of one job, found an empty array",
        ),
        (
            &format!("{stream}/execution/wcet_ns"),
            json!([7, 8, 6]),
            "wcet_ns[2]: expected no less than the previous value (8), found 6",
        ),
        (
            &format!("{stream}/suspension/segmented/0"),
            json!([]),
            "expected at least one segment, found an empty array",
        ),
    ] {
        let message = refusal(&example_with(place, Some(value.clone()))).to_string();
        assert!(message.contains(problem), "{place} = {value}\n{message}");
        let parent = place
            .rsplit_once('/')
            .expect("a pointer")
            .0
            .trim_start_matches('/')
            .replace("/0", "[0]")
            .replace('/', ".");
        assert!(message.starts_with(&parent) || parent.is_empty(), "{place} = {value}\n{message}");
    }
    for name in ["delta_min_ns", "delta_max_ns"] {
        let falling = json!({"delta_min_ns": [1, 2, 2], "delta_max_ns": [3, 3, 4]});
        let mut falling = falling.as_object().cloned().expect("an object");
        falling[name][1] = json!(5);
        let message = refusal(&example_with(curve, Some(falling.into()))).to_string();
        assert!(
            message.contains(&format!("curve.{name}[2]: expected no less than the previous value (5)")),
            "{message}"
        );
    }
    // Late is what took longer than the period.
    let mut document: Value = serde_json::from_str(EXAMPLE).expect("JSON");
    let fields = document.pointer_mut(stream).and_then(Value::as_object_mut).expect("a stream");
    fields.insert("late".into(), json!(2000));
    fields.insert("arrival".into(), json!({}));
    let message = refusal(&document.to_string()).to_string();
    assert!(message.contains("late: expected nothing, as there is no period, found 2000"), "{message}");
    // A fraction 1 ns away is as far as rounding goes.
    assert!(
        TimingModel::from_json(&example_with(
            &format!("{periodic}/period_exact"),
            Some(fraction(15_000_003, 3))
        ))
        .is_ok()
    );
}

#[test]
fn slips_typical_models_and_percentiles_are_read_strictly() {
    let stream = "/threads/tasks/0/streams/0";
    let with = |fields: Value| {
        let mut document: Value = serde_json::from_str(EXAMPLE).expect("JSON");
        let periodic = document
            .pointer_mut(&format!("{stream}/arrival/periodic"))
            .and_then(Value::as_object_mut)
            .expect("there");
        periodic.extend(fields.as_object().cloned().expect("an object"));
        document.to_string()
    };
    let slips = |slips: &[(u64, i64)]| -> Value {
        slips.iter().map(|(at, activations)| json!({"at_ns": at, "activations": activations})).collect()
    };
    let left_out = |off: &[i64]| -> Value {
        let left_out: Vec<Value> = off.iter().map(|off| json!({"at_ns": 9, "off_ns": off})).collect();
        json!({"offset_ns": -5, "jitter_ns": 7, "left_out": left_out})
    };
    let eleven: Vec<(u64, i64)> = (0..11).map(|at| (at, 1)).collect();
    for valid in [
        json!({"skipped": 3, "extra": 1, "slips": slips(&[(5, 1), (5, -1), (8, 2)]),
            "typical": {"offset_ns": -5, "jitter_ns": 7}}),
        json!({"skipped": 12, "slips": slips(&eleven[..10]), "typical": left_out(&[-1, 1])}),
        json!({"typical": {"offset_ns": 1, "jitter_ns": 0,
            "left_out": [{"at_ns": 3, "off_ns": -7, "reason": "stall"}]}}),
        // A wake-up at the end of a thread is none of the four early releases.
        json!({"typical": {"offset_ns": 1, "jitter_ns": 0, "left_out": [
            {"at_ns": 3, "off_ns": -7}, {"at_ns": 4, "off_ns": -7}, {"at_ns": 5, "off_ns": -7},
            {"at_ns": 6, "off_ns": -7}, {"at_ns": 7, "off_ns": -7, "reason": "ending"}]}}),
    ] {
        assert!(TimingModel::from_json(&with(valid.clone())).is_ok(), "{valid}");
    }
    for (fields, problem) in [
        (json!({"skipped": 3}), "skipped: expected the sum in `slips` (0), found 3"),
        (json!({"extra": 1, "slips": slips(&[(1, -2)])}), "extra: expected the sum in `slips` (2), found 1"),
        (
            json!({"skipped": 9, "slips": slips(&eleven[..10])}),
            "skipped: expected at least the sum in `slips` (10), found 9",
        ),
        (
            json!({"skipped": 11, "slips": slips(&eleven)}),
            "slips: expected no more than 10 entries of a kind, found 11",
        ),
        (
            json!({"skipped": 2, "slips": slips(&[(8, 1), (5, 1)])}),
            "slips[1].at_ns: expected no less than that of the previous entry",
        ),
        (
            json!({"slips": slips(&[(8, 0)])}),
            "slips[0].activations: expected a number other than zero, found 0",
        ),
        (json!({"skipped": -1}), "skipped: expected a whole number, zero or greater"),
        (json!({"typical": null}), "typical: expected an object, found null"),
        (json!({"typical": {"offset_ns": 1}}), "typical.jitter_ns: expected a value, found nothing"),
        (
            json!({"jitter_ns": 6, "typical": left_out(&[])}),
            "typical.jitter_ns: expected no more than `jitter_ns` (6), found 7",
        ),
        (
            json!({"typical": left_out(&[1, 0])}),
            "typical.left_out[1].off_ns: expected a number other than zero, found 0",
        ),
        (
            json!({"typical": left_out(&[-1; 5])}),
            "typical.left_out, early: expected no more than 4 entries of a kind, found 5",
        ),
        (
            json!({"typical": left_out(&[1; 517])}),
            "typical.left_out, late: expected no more than 516 entries of a kind, found 517",
        ),
    ] {
        let message = refusal(&with(fields.clone())).to_string();
        assert!(message.contains(problem), "{fields}\n{message}");
    }
    let unknown = json!({"offset_ns": 1, "jitter_ns": 0,
        "left_out": [{"at_ns": 3, "off_ns": -7, "reason": "weather"}]});
    assert!(
        refusal(&with(json!({"typical": unknown})))
            .to_string()
            .contains("left_out[0].reason: expected one of `signal`, ")
    );

    let quantiles = |p99: u64| json!({"cost": {"p50_ns": 1, "p90_ns": 2, "p99_ns": p99, "p999_ns": 4}});
    let percentiles = format!("{stream}/percentiles");
    assert!(TimingModel::from_json(&example_with(&percentiles, Some(quantiles(3)))).is_ok());
    let message = refusal(&example_with(&percentiles, Some(quantiles(1)))).to_string();
    assert!(
        message.ends_with("percentiles.cost.p99_ns: expected no less than `p90_ns` (2), found 1"),
        "{message}"
    );
    let message = refusal(&example_with(&percentiles, Some(quantiles(5)))).to_string();
    assert!(
        message.ends_with("percentiles.cost.p999_ns: expected no less than `p99_ns` (5), found 4"),
        "{message}"
    );
}

#[test]
fn a_missing_required_field_is_an_error() {
    let optional =
        ["platform", "primary", "periodic", "sporadic", "curve", "execution", "suspension", "response"];
    fn places(path: &str, value: &Value, found: &mut Vec<String>) {
        let fields: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
            }
            _ => vec![],
        };
        for (name, field) in fields {
            let place = format!("{path}/{name}");
            places(&place, field, found);
            if value.is_object() {
                found.push(place);
            }
        }
    }
    let mut found = Vec::new();
    places("", &serde_json::from_str(EXAMPLE).expect("JSON"), &mut found);
    assert!(found.len() > 40);
    for place in found {
        let name = place.rsplit_once('/').expect("a pointer").1;
        let read = TimingModel::from_json(&example_with(&place, None));
        match read {
            Ok(_) => assert!(
                optional.contains(&name)
                    || ["/separator/absolute", "/separator/clock"].iter().any(|end| place.ends_with(end)),
                "{place}"
            ),
            Err(error) => assert!(error.to_string().contains(name), "{place}: {error}"),
        }
    }
}

#[test]
fn numbers_are_written_in_rows() {
    let mut model = TimingModel::from_json(EXAMPLE).expect("valid");
    let threads = model.threads.as_mut().expect("there");
    let stream = &mut threads.tasks[0].streams[0];
    stream.execution.as_mut().expect("there").wcet_ns =
        (0..1000).map(punctual_model::Duration::from_ns).collect();
    let text = model.to_json();
    assert!(
        text.contains(
            "\n              \"wcet_ns\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,\n\
             \x20               16, 17, "
        ),
        "{text}"
    );
    assert!(text.contains(" 999\n              ]\n"), "{text}");
    assert!(text.contains("\"delta_min_ns\": [4960000],\n"), "{text}");
    assert!(
        text.starts_with("{\n  \"format\": \"punctual.timing-model\",\n  \"version\": 2,\n")
            && text.ends_with("    ]\n  }\n}\n"),
        "{text}"
    );
    assert!(text.lines().count() < 150, "{text}");
    model.threads.as_mut().expect("there").tasks.clear();
    assert!(model.to_json().ends_with("\"tasks\": []\n  }\n}\n"));
}

/// Replaces what stands at some place of a document by something else that is JSON.
pub fn changed(document: &mut Value, place: u16, change: u8) {
    let mut here = document;
    let mut place = usize::from(place);
    loop {
        let length = match here {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        if length == 0 || place % 7 == 0 {
            break;
        }
        let index = place % length;
        place = place / length + 1;
        here = match here {
            Value::Array(items) => &mut items[index],
            Value::Object(fields) => fields.values_mut().nth(index).expect("fewer than length"),
            _ => return,
        };
    }
    match (change % 12, &mut *here) {
        (0, Value::Array(items)) => drop(items.pop()),
        (1, Value::Array(items)) => items.reverse(),
        (2, Value::Array(items)) => items.extend(items.first().cloned()),
        (3, Value::Object(fields)) => {
            drop(fields.keys().next().cloned().and_then(|name| fields.remove(&name)))
        }
        (4, Value::Object(fields)) => *here = fields.values().cloned().collect(),
        (5, Value::Number(number)) => *here = json!(number.as_u64().map(|number| number / 2)),
        (6, _) => *here = json!(0),
        (7, _) => *here = json!(-1),
        (8, _) => *here = json!("x"),
        (9, _) => *here = json!({}),
        (10, _) => *here = json!(null),
        (11, _) => *here = json!(1e300),
        _ => *here = json!([]),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "format|version|clock|tasks|platform|threads|dataflow|latency|streams|separator|arrival",
        ".{0,4}"
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let fields = vec((name.clone(), inner.clone()), 0..6);
        prop_oneof![
            vec(inner, 0..6).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))
        ]
    })
}

/// Every error is one line that says something, and names a place where it can.
fn says_something(read: Result<TimingModel, ReadError>) -> Result<(), TestCaseError> {
    if let Err(error) = read {
        let message = error.to_string();
        prop_assert!(message.len() > 10 && message.lines().count() == 1, "{message:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn written_files_are_read_back(model in model()) {
        let text = model.to_json();
        prop_assert_eq!(TimingModel::from_json(&text), Ok(model.clone()), "{}", text);
        prop_assert_eq!(serde_json::from_str::<Value>(&text).ok(), serde_json::to_value(&model).ok());
    }

    #[test]
    fn whatever_is_read_is_valid(model in model(), changes in vec(any::<(u16, u8)>(), 1..4)) {
        let mut document = serde_json::to_value(&model).expect("serializes");
        changes.iter().for_each(|(place, change)| changed(&mut document, *place, *change));
        let read = TimingModel::from_json(&document.to_string());
        if let Ok(model) = &read {
            prop_assert_eq!(TimingModel::from_json(&model.to_json()), Ok(model.clone()));
        }
        says_something(read)?;
    }

    #[test]
    fn a_truncated_file_is_refused_as_such(model in model(), at in any::<prop::sample::Index>()) {
        let text = model.to_json();
        let text = text.trim_end();
        let ends: Vec<usize> = text.char_indices().map(|(end, _)| end).collect();
        let error = TimingModel::from_json(&text[..*at.get(&ends)]);
        prop_assert!(matches!(error, Err(ReadError::Truncated { .. })), "{error:?}");
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(model in model(),
        changes in vec(any::<(prop::sample::Index, u8)>(), 1..4)) {
        let mut bytes = model.to_json().into_bytes();
        for (index, byte) in changes {
            *index.get_mut(&mut bytes) = byte;
        }
        says_something(TimingModel::from_json(&String::from_utf8_lossy(&bytes)))?;
    }

    #[test]
    fn arbitrary_json_causes_no_panic(document in any_json()) {
        says_something(TimingModel::from_json(&document.to_string()))?;
        let mut beside = json!({"format": "punctual.timing-model", "version": 2});
        if let (Some(fields), Value::Object(more)) = (beside.as_object_mut(), document) {
            fields.extend(more.into_iter().filter(|(name, _)| name != "format" && name != "version"));
        }
        says_something(TimingModel::from_json(&beside.to_string()))?;
    }
}
