//! What babeltrace2 makes of recordings: it is not ours, so it shows whether the metadata are true.

use super::generate::*;
use punctual_model::*;
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::*;
use std::path::Path;
use std::process::Command;

/// What it prints, one line per event; it must not warn. `None` where it is not installed, which is said.
pub fn babeltrace(folder: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let ran = Command::new("babeltrace2").args(arguments).arg(folder).output();
    let output = match ran {
        Ok(output) => output,
        Err(error) => {
            skipped!("babeltrace2 cannot be run: {error}");
            return None;
        }
    };
    let printed = String::from_utf8_lossy(&output.stderr);
    // Of lost records it is to warn, and of nothing else.
    let printed: Vec<&str> = printed.lines().filter(|line| !line.contains("Tracer discarded")).collect();
    assert!(output.status.success() && printed.is_empty(), "{printed:?}");
    Some(String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect())
}

/// As babeltrace2 prints a field.
pub fn field(name: &str, value: impl std::fmt::Display) -> String {
    format!("{name} = {value}")
}

#[test]
fn every_field_is_where_the_metadata_says() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let records = one_of_each();
    let mut recorder = Recorder::create(&folder, &some_about(), &Options::default()).unwrap();
    for record in &records {
        recorder.record(record).unwrap();
    }
    recorder.note("it has no wake-ups".to_owned());
    recorder.finish(Instant::from_ns(1_000_003_550), totals(0)).unwrap();
    let Some(lines) = babeltrace(&folder, &["--clock-cycles"]) else { return };
    let task =
        |event: &str, begin: &str, policy: &str, nice: (&str, i32), reserved: &str, reservation: [u64; 3]| {
            let fields = [
                field("tid", 7),
                field("pid", 6),
                field("sequence", 0),
                field("before_ns", 0),
                field("begin", begin),
                field("policy", policy),
                field("priority", 3),
                field("nice_known", nice.0),
                field("nice", nice.1),
                field("reserved", reserved),
                field("runtime_ns", reservation[0]),
                field("deadline_ns", reservation[1]),
                field("period_ns", reservation[2]),
                field("name", "\"näme\""),
                field("command", "\"/bin/näme \\\"-x\\\"\""),
                field("affinity", "\"0-1\""),
            ];
            (event.to_owned(), 1_000_000_100_u64, fields.join(", "))
        };
    let read = "( \"read\" : container = 10 )";
    let wait = "( \"futex_wait\" : container = 19 )";
    let sleep = "( \"clock_nanosleep\" : container = 1 )";
    let event = |name: &str, at: u64, fields: &str| (name.to_owned(), at, fields.to_owned());
    let yes = "( \"yes\" : container = 1 )";
    let no = "( \"no\" : container = 0 )";
    let expected = [
        task(
            "task",
            "( \"exec\" : container = 4 )",
            "( \"SCHED_DEADLINE\" : container = 6 )",
            (yes, -5),
            yes,
            [11, 12, 13],
        ),
        task(
            "thread_known",
            "( \"seen\" : container = 0 )",
            "( \"SCHED_IDLE\" : container = 5 )",
            (no, 0),
            no,
            [0, 0, 0],
        ),
        event(
            "separator",
            1_000_003_000,
            &format!(
                "separator = 0, call = {read}, class = ( \"character_device\" : container = 3 ), number = \
                    -3, object = 0xABC"
            ),
        ),
        event(
            "activation",
            1_000_003_000,
            &format!(
                "call = {read}, separator = 0, tid = 7, sequence = 1, before_ns = 0, \
                    release_before_start_ns = 1000, stop_before_start_ns = 2000, cpu_ns = {}",
                1_u64 << 50
            ),
        ),
        event(
            "separator",
            1_000_003_000,
            &format!(
                "separator = 1, call = {sleep}, class = ( \"clock_absolute\" : container = 33 ), number = \
                    1, object = 0x0"
            ),
        ),
        event(
            "activation_timed",
            1_000_003_000,
            &format!(
                "call = {sleep}, separator = 1, tid = 7, sequence = 2, before_ns = 0, \
                    release_before_start_ns = 1000, stop_before_start_ns = 2000, cpu_ns = {}, \
                    arrival_after_release_ns = -100",
                1_u64 << 50
            ),
        ),
        event(
            "activation_without_sleep",
            1_000_003_000,
            &format!(
                "call = {read}, separator = 0, tid = 7, sequence = 3, before_ns = 0, stop_before_start_ns = \
                    2000, cpu_ns = {}, arrival_known = {yes}, arrival_after_stop_ns = 400",
                1_u64 << 50
            ),
        ),
        event(
            "activation_wide",
            1_000_003_000,
            &format!(
                "call = {read}, separator = 0, tid = 7, sequence = 4, slept = {yes}, arrival_known = {yes}, \
                    resumed = {yes}, release_known = {yes}, stop_ns = 1000001000, cpu_ns = {}, arrival_ns = \
                    17, release_earliest_ns = 1000001500, release_latest_ns = 1000002500, start_ns = \
                    1000003000, suspended_after_ns = 5",
                1_u64 << 50
            ),
        ),
        event(
            "separator_named",
            1_000_003_000,
            &format!(
                "separator = 2, call = {wait}, class = ( \"address\" : container = 34 ), number = 0, \
                    object = 0x40, name = \"robot:lock\""
            ),
        ),
        event(
            "activation_counted",
            1_000_003_000,
            &format!(
                "call = {wait}, separator = 2, tid = 7, sequence = 5, before_ns = 0, \
                    release_before_start_ns = 1000, stop_before_start_ns = 2000, cpu_ns = {}, \
                    expirations = 3",
                1_u64 << 50
            ),
        ),
        event(
            "circumstances",
            1_000_003_000,
            &format!("tid = 7, expirations = {}, disturbance = ( \"signal\" : container = 1 )", 1_u64 << 40),
        ),
        event(
            "activation",
            1_000_003_000,
            &format!(
                "call = {read}, separator = 0, tid = 7, sequence = 6, before_ns = 0, \
                    release_before_start_ns = 1000, stop_before_start_ns = 2000, cpu_ns = {}",
                1_u64 << 50
            ),
        ),
        event(
            "separator_ready",
            1_000_003_000,
            &format!(
                "separator = 3, call = {read}, class = ( \"character_device\" : container = 3 ), number = \
                    -3, object = 0xABC, count = 2, ready = [ [0] = 5, [1] = 4294967295 ]"
            ),
        ),
        event(
            "activation",
            1_000_003_000,
            &format!(
                "call = {read}, separator = 3, tid = 7, sequence = 7, before_ns = 0, \
                    release_before_start_ns = 1000, stop_before_start_ns = 2000, cpu_ns = {}",
                1_u64 << 50
            ),
        ),
        event("renamed", 1_000_003_000, "tid = 7, sequence = 8, name = \"new\""),
        event("command", 1_000_003_000, "tid = 7, sequence = 9, command = \"/bin/new\""),
        event("switch_in", 1_000_003_500, "tid = 7, cpu = 1, before_ns = 0"),
        event(
            "switch_out",
            1_000_003_500,
            "tid = 7, cpu = 1, before_ns = 0, step = ( \"preempted\" : container = 0 )",
        ),
        event(
            "switch_out",
            1_000_003_500,
            "tid = 7, cpu = 1, before_ns = 0, step = ( \"asleep_uninterruptible\" : container = 2 )",
        ),
        event("woken", 1_000_003_500, "tid = 7, cpu = 1, before_ns = 0, by = 9"),
        event(
            "switch_out",
            1_000_003_500,
            "tid = 7, cpu = 1, before_ns = 0, step = ( \"stopped\" : container = 3 )",
        ),
        event(
            "switch_out",
            1_000_003_500,
            "tid = 7, cpu = 1, before_ns = 0, step = ( \"throttled\" : container = 4 )",
        ),
        event("moved", 1_000_003_500, "tid = 7, cpu = 1, before_ns = 0, to = 3"),
        event(
            "blocked",
            1_000_003_500,
            "tid = 7, cpu = 1, before_ns = 0, owner = 0, call = \"fsync\", object = \"robot.log\"",
        ),
        event(
            "blocked",
            1_000_003_500,
            "tid = 7, cpu = 1, before_ns = 0, owner = 9, call = \"futex\", object = \"\"",
        ),
        event("faulted", 1_000_003_500, "tid = 7, cpu = 1, before_ns = 0, minor = 3, major = 1"),
        event(
            "taken",
            1_000_003_500,
            "cpu = 1, before_ns = 0, time_ns = 900, by = ( \"device\" : container = 0 ), number = 24, \
                name = \"nvme0q1\"",
        ),
        event(
            "taken",
            1_000_003_500,
            "cpu = 1, before_ns = 0, time_ns = 900, by = ( \"softirq\" : container = 1 ), number = 7, \
                name = \"\"",
        ),
        event(
            "taken",
            1_000_003_500,
            "cpu = 1, before_ns = 0, time_ns = 900, by = ( \"hypervisor\" : container = 4 ), number = 0, \
                name = \"\"",
        ),
        event("busy", 1_000_003_500, "tid = 8, sequence = 7, cpu_ns = 3000"),
        event("clock_set", 1_000_003_500, "before_ns = 0, by_ns = -5000000000"),
        event("lost", 1_000_003_500, "since_ns = 1000003300, until_ns = 1000003450"),
        event("exit", 1_000_003_500, "tid = 7, sequence = 10, before_ns = 100"),
        event("last", 1_000_003_600, "tid = 8, sequence = 8, before_ns = 0"),
        event("note", 1_000_003_600, "text = \"it has no wake-ups\""),
        event("observation_end", 1_000_003_600, "before_ns = 50"),
    ];
    for (line, (name, at, fields)) in lines.iter().zip(&expected) {
        assert!(line.starts_with(&format!("[{at:020}]")), "{line}, and not at {at}");
        assert!(line.contains(&format!(" testbed {name}: ")), "{line}, and not {name}");
        assert!(line.ends_with(&format!("{{ {fields} }}")), "{line}\nand not {fields}");
    }
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    assert_eq!(read_all(&Reader::open(&folder).unwrap()), records);
}

/// How many events of this name were printed.
fn count(lines: &[String], event: &str) -> u64 {
    let name = format!(" {event}: ");
    lines.iter().filter(|line| line.contains(&name)).count() as u64
}

/// All that it knows, on several lines.
fn details(folder: &Path) -> Option<Vec<String>> {
    babeltrace(folder, &["--component", "sink.text.details"])
}

#[test]
fn several_files_are_one_stream() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let recorded = make(
        &folder,
        &some_about(),
        &Options { limit: Some(1 << 20), ..Options::default() },
        &periodic(8, 8_000),
    );
    assert!(recorded.dropped.packets > 0, "{recorded:?}");
    assert!(std::fs::read_dir(&folder).unwrap().count() > 3);
    let Some(lines) = babeltrace(&folder, &[]) else { return };
    let activations = count(&lines, "activation_timed");
    assert_eq!(activations, recorded.activations);
    let known = count(&lines, "thread_known");
    let known_by_us = read_all(&Reader::open(&folder).unwrap())
        .iter()
        .filter(|record| matches!(record, Record::Known(_)))
        .count();
    assert_eq!(known, known_by_us as u64);
}

#[test]
fn lost_records_are_discarded_events() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let mut recorder =
        Recorder::create(&folder, &some_about(), &Options { packet_bytes: 4096, ..Options::default() })
            .unwrap();
    for (index, record) in periodic(1, 300).iter().enumerate() {
        recorder.totals(totals(if index < 200 { 0 } else { 17 }));
        recorder.record(record).unwrap();
    }
    recorder.finish(UNTIL, totals(20)).unwrap();
    let Some(lines) = details(&folder) else { return };
    let discarded: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("Discarded events (")).collect();
    assert_eq!(discarded, ["17 events)", "3 events)"]);
}

#[test]
fn metadata_is_readable_whatever_the_texts() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let odd = "a \"quoted\" \\ /* no comment */ // none either\n\ttab; }; ümläut \u{1F980} \u{7f} @CALLS@";
    let mut about = About {
        host: odd.to_owned(),
        source: odd.to_owned(),
        clock: odd.to_owned(),
        clock_zero: None,
        ..some_about()
    };
    about.platform.kernel = odd.to_owned();
    make(&folder, &about, &Options::default(), &periodic(1, 3));
    assert_eq!(Reader::open(&folder).unwrap().about(), &about);
    let Some(lines) = babeltrace(&folder, &[]) else { return };
    assert_eq!(count(&lines, "activation_timed"), 3);
}
