//! `punctual prove` where something is not known: whatever may be delayed by it is not proven.

use crate::folder::{Folder, agreed, named, task};
use serde_json::Value;

/// On processor 0 four tasks by priority, on processor 1 one; something is not known of the second.
fn without(lines: &[&str]) -> String {
    agreed("one", 0, 90, (1, 10), &[])
        + &agreed("two", 0, 80, (1, 20), lines)
        + &agreed("three", 0, 70, (1, 30), &[])
        + &agreed("far", 1, 10, (1, 30), &[])
}

#[test]
fn what_may_be_delayed_by_an_unknown_task_is_not_proven() {
    let folder = Folder::new();
    let (code, document) = folder.prove("a.toml", &without(&[]), &[]);
    assert_eq!((code, &document["holds"]), (Some(0), &Value::Bool(true)));
    for (lines, met, reason) in [
        // It may be the most urgent one, but where it runs is known.
        (&["priority"][..], &["far"][..], "its priority is not agreed on"),
        (&["policy", "priority"], &["far"], "its policy is not agreed on"),
        // Where it runs is not known, but none above it is delayed.
        (&["processors"], &["one"], "its processors are not agreed on"),
        (&["wcet"], &["one", "far"], "its wcet is not agreed on"),
        (&["period", "jitter"], &["one", "far"], "neither its period nor its separation is agreed on"),
    ] {
        let (code, document) = folder.prove("a.toml", &without(lines), &[]);
        assert_eq!((code, &document["holds"]), (Some(6), &Value::Bool(false)), "{lines:?}");
        let mut expected = met.to_vec();
        expected.sort_unstable();
        let mut found = named(&document, "met");
        found.sort_unstable();
        assert_eq!(found, expected, "{lines:?}");
        assert_eq!(task(&document, "two")["reason"], reason);
        let three = task(&document, "three")["reason"].as_str().expect("a reason");
        assert_eq!(three, format!("two may delay it without a bound: {reason}"));
        let remarks = document["remarks"].to_string();
        assert!(remarks.contains("neither is any task that may be delayed"), "{remarks}");
        // Whoever knows that it never runs says so, and the output repeats it.
        let (code, document) = folder.prove("a.toml", &without(lines), &["--ignore", "two"]);
        assert_eq!((code, named(&document, "met").len()), (Some(0), 3), "{lines:?}");
        assert!(document["remarks"].to_string().contains("never to run, as --ignore says: two."));
    }
}

/// A SCHED_DEADLINE task comes before all priorities; an ordinary one delays nobody.
#[test]
fn policies_decide_who_may_be_delayed() {
    let folder = Folder::new();
    let deadline = without(&["priority"]).replacen(
        "name = \"two\"\npolicy = \"SCHED_FIFO\"",
        "name = \"two\"\npolicy = \"SCHED_DEADLINE\"",
        1,
    );
    let (code, document) = folder.prove("a.toml", &deadline, &[]);
    assert_eq!((code, named(&document, "met")), (Some(6), vec!["far"]));
    let other = deadline.replace("SCHED_DEADLINE", "SCHED_OTHER");
    let (code, document) = folder.prove("a.toml", &other, &[]);
    assert_eq!((code, named(&document, "met").len()), (Some(0), 3));
    assert!(document["remarks"].to_string().contains("two is left out: only SCHED_FIFO"), "{document:#}");
    // Unless a deadline is asked for.
    let (code, document) = folder.prove("a.toml", &other, &["--deadline", "two=1s"]);
    assert_eq!((code, named(&document, "not proven")), (Some(6), vec!["two"]));
    // A reservation is not delayed by any priority.
    let reserved = without(&["wcet"])
        + "[[task]]\nname = \"reserved\"\npolicy = \"SCHED_DEADLINE\"\nprocessors = \"0\"\n\
           period = \"10ms\"\n\
           reservation = { runtime = \"1ms\", deadline = \"10ms\", period = \"10ms\" }\njitter = \"0s\"\n\
           wcet = \"1ms\"\nsuspension = \"0s\"\n";
    let (_, document) = folder.prove("a.toml", &reserved, &[]);
    assert_eq!(task(&document, "reserved")["verdict"], "met");
    assert_eq!(task(&document, "three")["verdict"], "not proven");
}

#[test]
fn room_changes_and_priorities_follow_the_same_rule() {
    let folder = Folder::new();
    let (code, document) = folder.prove("a.toml", &without(&["wcet"]), &["--sensitivity", "--assign"]);
    assert_eq!((code, &document["assigned"]), (Some(6), &Value::Bool(false)));
    assert!(task(&document, "one")["wcet_permille"].is_null(), "{document:#}");
    assert!(task(&document, "far")["wcet_permille"].is_u64(), "{document:#}");
    let (code, _) = folder.prove("a.toml", &without(&["wcet"]), &["--what-if", "two.wcet=-50%"]);
    assert_eq!(code, Some(6));
    // Without a deadline of its own, it may come last.
    let selected = ["--assign", "--thread", "one", "--thread", "three", "--thread", "far"];
    let (_, document) = folder.prove("a.toml", &without(&["wcet"]), &selected);
    assert_eq!(document["assigned"], true, "{document:#}");
    let priority = |name: &str| task(&document, name)["assigned_priority"].as_u64().expect("one");
    assert!(priority("two") < priority("one") && priority("two") < priority("three"), "{document:#}");
    // A missing priority is what an assignment gives.
    folder.write("a.toml", &without(&["priority"]));
    let output = folder.run(&["prove", "a.toml", "--assign", "-o", "b.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (code, document) = folder.prove("c.toml", &folder.read("b.toml"), &[]);
    assert_eq!((code, named(&document, "met").len()), (Some(0), 4), "{document:#}");
}

/// A change of a task of a timing model.
type Change<'a> = &'a dyn Fn(&mut Value);

/// The timing model of the recorded demonstration, all on processor 1, in which something is changed of the
/// most urgent thread.
fn observed(folder: &Folder, change: Change<'_>) -> String {
    let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo");
    let recording = recording.display().to_string();
    folder.run(&["replay", "-q", &recording, "--force", "-o", "demo.timing.json"]);
    let mut model: Value = serde_json::from_str(&folder.read("demo.timing.json")).expect("JSON");
    let tasks = model["threads"]["tasks"].as_array_mut().expect("tasks");
    tasks.retain(|task| ["sleep-abs", "odd-period"].contains(&task["name"].as_str().unwrap_or_default()));
    tasks.iter_mut().for_each(|task| task["affinity"] = "1".into());
    tasks.iter_mut().filter(|task| task["name"] == "sleep-abs").for_each(change);
    model.to_string()
}

fn stream(task: &mut Value) -> &mut Value {
    let primary = task["primary"].as_u64().expect("a stream") as usize;
    &mut task["streams"][primary]
}

/// Without a period no job is late.
fn set_arrival(stream: &mut Value, arrival: Value) {
    stream["arrival"] = arrival;
    stream.as_object_mut().expect("a stream").remove("late");
}

#[test]
fn threads_of_which_too_little_is_known_delay_others() {
    let folder = Folder::new();
    let cases: [(Change<'_>, &str); 6] = [
        (&|task| task["open_ns"] = 3_498_000_000_u64.into(), "its last job had been open for 3.498 s"),
        (&|task| task["merged_transitions"] = 1.into(), "its policy, priority or processors changed"),
        (&|task| set_arrival(stream(task), serde_json::json!({})), "its releases have no bound"),
        (&|task| task["affinity"] = "all".into(), "its processors are unknown"),
        (&|task| task["policy"] = "SCHED_DEADLINE".into(), "its reservation is unknown"),
        (&|task| drop(stream(task).as_object_mut().map(|it| it.remove("execution"))), "its cost is unknown"),
    ];
    for (change, reason) in cases {
        let (code, document) = folder.prove("a.json", &observed(&folder, change), &[]);
        assert_eq!((code, &document["holds"]), (Some(6), &Value::Bool(false)), "{reason}");
        let said = task(&document, "odd-period")["reason"].as_str().expect("a reason");
        assert!(
            said.starts_with("sleep-abs may delay it without a bound: ") && said.contains(reason),
            "{said}"
        );
        let (code, _) = folder.prove("a.json", &observed(&folder, change), &["--ignore", "sleep-abs"]);
        assert_eq!(code, Some(0), "{reason}");
    }
}

/// A thread that was late when it was observed is not proven, whatever its bound; the others are.
#[test]
fn what_was_seen_refutes_a_proof() {
    let folder = Folder::new();
    let took = |response: u64| move |task: &mut Value| stream(task)["response"]["max_ns"] = response.into();
    for (response, code, verdict, remark) in [
        (4_000_000, 0, "met", "Longer than the bound when it was observed"),
        (9_000_000, 6, "not proven", "Longer than the deadline when it was observed"),
    ] {
        let (found, document) = folder.prove("a.json", &observed(&folder, &took(response)), &[]);
        assert_eq!((found, &task(&document, "sleep-abs")["verdict"]), (Some(code), &verdict.into()));
        assert_eq!(task(&document, "odd-period")["verdict"], "met");
        let remarks = document["remarks"].to_string();
        assert!(remarks.contains(remark) && remarks.contains("sleep-abs ("), "{remarks}");
    }
    let (_, document) = folder.prove("a.json", &observed(&folder, &took(9_000_000)), &[]);
    let reason = task(&document, "sleep-abs")["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("it took 9 ms once, more than its deadline"), "{reason}");
}

/// A suspension that is longer than the period: a limit of the analysis, unless the deadline was missed.
#[test]
fn a_missed_deadline_is_no_limit_of_the_analysis() {
    let folder = Folder::new();
    for (response, processors, expected) in [
        (1_000_000, "1", "not an overload"),
        (1_000_000, "0-1", "not an overload"),
        (9_000_000, "1", "it took 9 ms once, more than its deadline of "),
        (9_000_000, "0-1", "it took 9 ms once, more than its deadline of "),
    ] {
        let change = |task: &mut Value| {
            task["affinity"] = processors.into();
            let stream = stream(task);
            (stream["uncertain_releases"], stream["back_to_back"]) = (0.into(), 0.into());
            stream["response"]["max_ns"] = response.into();
            stream["suspension"] = serde_json::json!({"dynamic_ns": 900_000_000, "segmented": []});
        };
        let (code, document) = folder.prove("a.json", &observed(&folder, &change), &[]);
        assert_eq!(code, Some(6), "{document:#}");
        let reason = task(&document, "sleep-abs")["reason"].as_str().expect("a reason");
        assert!(reason.contains(expected) && reason.contains("900 ms"), "{reason}");
        assert_eq!(reason.contains("overload"), expected.contains("overload"), "{reason}");
        // What was seen is not what would be with other periods.
        let (_, document) =
            folder.prove("a.json", &observed(&folder, &change), &["--what-if", "sleep-abs.period=+1%"]);
        let reason = task(&document, "sleep-abs")["reason"].as_str().expect("a reason");
        assert!(reason.contains("not an overload"), "{reason}");
    }
}

/// DEADLINE has no priority to ask for.
#[test]
fn only_what_is_missing_is_asked_for() {
    let folder = Folder::new();
    let advice = |text: &str| {
        folder.write("a.toml", text);
        let output = folder.run(&["prove", "a.toml"]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let reserved = "[[task]]\nname = \"x\"\npolicy = \"DEADLINE\"\ndeadline = \"10ms\"\n\
                    reservation = { runtime = \"2ms\", deadline = \"10ms\", period = \"10ms\" }\n";
    let rest = "wcet = \"1ms\"\nperiod = \"10ms\"\n";
    let said = advice(&[reserved, rest].concat());
    assert!(said.contains("x needs processors\n") && !said.contains("priority"), "{said}");
    let said = advice(reserved);
    assert!(said.contains("x needs processors, a period or a separation, and wcet"), "{said}");
    let said = advice("[[task]]\nname = \"x\"\npolicy = \"FIFO\"\nprocessors = \"0\"\n");
    assert!(said.contains("x needs priority, a period or a separation, and wcet"), "{said}");
    let said = advice("[[task]]\nname = \"x\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n");
    assert!(said.contains("x needs policy, priority (or reservation), and processors"), "{said}");
}

/// Each is outside of the analysis, and told.
#[test]
fn what_bounds_do_not_contain_is_told() {
    let folder = Folder::new();
    let remarks = |text: &str| {
        let (_, document) = folder.prove("a.toml", text, &[]);
        document["remarks"].to_string()
    };
    let crowded = "may take more than 950 ms of a second on processor 0";
    let stops = "before SCHED_DEADLINE, whatever its priority says";
    let quick = "On processor 1 the kernel is assumed to take no time";
    let text = without(&[]);
    let said = remarks(&text);
    assert!(![crowded, stops, quick].iter().any(|remark| said.contains(remark)), "{said}");
    let long = text.clone() + &agreed("long", 0, 60, (990, 1_000), &[]);
    assert!(remarks(&long).contains(crowded), "{}", remarks(&long));
    let latency = text.clone() + "[[processor]]\ncpu = 0\nlatency = \"100us\"\n";
    assert!(remarks(&latency).contains(quick), "{}", remarks(&latency));
    let stop = agreed("migration/0", 0, 99, (1, 10), &[])
        + "[[task]]\nname = \"reserved\"\npolicy = \"SCHED_DEADLINE\"\nprocessors = \"0\"\n\
           period = \"10ms\"\n\
           reservation = { runtime = \"2ms\", deadline = \"10ms\", period = \"10ms\" }\njitter = \"0s\"\n\
           wcet = \"1ms\"\nsuspension = \"0s\"\n";
    assert!(remarks(&stop).contains(stops), "{}", remarks(&stop));
}

/// A thread with few jobs delays others as it was observed to, but no deadline of its own is proven.
#[test]
fn few_jobs_delay_others_as_observed() {
    let folder = Folder::new();
    let response = |document: &Value| task(document, "odd-period")["response_ns"].as_u64();
    let (_, all) = folder.prove("a.json", &observed(&folder, &|_| ()), &[]);
    let few = |task: &mut Value| {
        let stream = stream(task);
        (stream["jobs"], stream["releases"]) = (2.into(), 2.into());
        (stream["uncertain_releases"], stream["back_to_back"]) = (0.into(), 0.into());
        let first = stream["arrival"]["curve"]["delta_min_ns"][0].clone();
        let curve = serde_json::json!({"delta_min_ns": [first], "delta_max_ns": [first]});
        set_arrival(stream, serde_json::json!({"curve": curve}));
    };
    let (code, document) = folder.prove("a.json", &observed(&folder, &few), &[]);
    assert_eq!(code, Some(0), "{document:#}");
    assert_eq!(response(&document), response(&all), "one job of it comes between in both");
    assert_eq!(task(&document, "sleep-abs")["verdict"], "not asked for");
    let remarks = document["remarks"].to_string();
    assert!(remarks.contains("for a verdict on sleep-abs (2 jobs of at least 10)"), "{remarks}");
    let (code, document) = folder.prove("a.json", &observed(&folder, &few), &["--deadline", "*=1s"]);
    assert_eq!((code, named(&document, "not proven")), (Some(6), vec!["sleep-abs"]));
    let (_, ignored) = folder.prove("a.json", &observed(&folder, &few), &["--ignore", "sleep-abs"]);
    assert!(response(&ignored) < response(&document), "{ignored:#}");
}

/// Importers of other tools' traces do not learn on which processors threads may run; a contract says it.
#[test]
fn a_model_without_processors_is_proven_through_a_contract() {
    let folder = Folder::new();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/recordings/demo");
    let made = folder.run(&["replay", "-q", recording, "--thread", "sleep-*", "-o", "a.timing.json"]);
    assert!(made.status.success(), "{made:?}");
    let mut model: Value = serde_json::from_str(&folder.read("a.timing.json")).expect("JSON");
    let tasks = model["threads"]["tasks"].as_array_mut().expect("tasks");
    tasks.iter_mut().for_each(|task| task["affinity"] = "".into());
    folder.write("b.timing.json", &model.to_string());
    let refused = folder.run(&["prove", "b.timing.json"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{why}");
    assert!(why.contains("has a bound: sleep-abs (its processors are unknown), sleep-rel ("), "{why}");
    assert!(why.contains("`punctual contract MODEL -o FILE.toml`"), "{why}");
    let made = folder.run(&["contract", "b.timing.json", "-o", "b.toml"]);
    assert!(made.status.success(), "{made:?}");
    let contract = folder.read("b.toml");
    assert!(!contract.contains("processors ="), "{contract}");
    let contract = contract.replace("policy =", "processors = \"0\"\npolicy =");
    let (code, document) = folder.prove("b.toml", &contract, &[]);
    assert_eq!((code, named(&document, "met").len()), (Some(0), 2), "{document:#}");
}
