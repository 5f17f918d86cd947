//! What babeltrace2 reads of a flow trace.

use super::generate::*;
use punctual_trace::flow::{ByteOrder, Kind, Writer};
use std::path::Path;
use std::process::Command;

/// What it prints; `None`, and said, where there is no babeltrace2.
fn babeltrace(folder: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let output = match Command::new("babeltrace2").args(arguments).arg(folder).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: babeltrace2 cannot be run: {error}");
            return None;
        }
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    Some(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .chain(complaints.lines().map(str::to_owned))
            .collect(),
    )
}

#[test]
fn babeltrace_reads_every_event_in_both_byte_orders() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("trace");
        let about = some_about(order);
        let written = rounds(300);
        write(&folder, &about, 1024, &written);
        let Some(lines) = babeltrace(&folder, &["--clock-cycles"]) else { return };
        assert_eq!(lines.len(), written.len(), "{lines:#?}");
        // At the same tick babeltrace2 has an order of its own.
        let mut expected: Vec<String> = written
            .iter()
            .map(|event| {
                let name = if event.kind == Kind::Push {
                    about.channel(event.object)
                } else {
                    about.task(event.object)
                };
                let name = name.replace('\\', "\\\\").replace('"', "\\\"");
                let what = if event.kind == Kind::Push { "channel" } else { "task" };
                format!(
                    "[{:020}] {} {} {what} \"{name}\" {}",
                    event.at.ns(),
                    event.kind.name(),
                    event.number,
                    event.object
                )
            })
            .collect();
        let of_line = |line: &String| {
            let (time, rest) = line.split_once(']').unwrap();
            let kind = Kind::ALL.iter().find(|kind| rest.contains(&format!(" {}: ", kind.name()))).unwrap();
            let (_, rest) = rest.split_once("{ number = ").unwrap();
            let (number, fields) = rest.split_once(" }, { ").unwrap();
            let (what, rest) = fields.split_once(" = ( ").unwrap();
            let (label, value) = rest.rsplit_once(" : container = ").unwrap();
            format!(
                "{time}] {} {number} {what} {label} {}",
                kind.name(),
                value.trim_end_matches([' ', ')', '}'])
            )
        };
        let mut found: Vec<String> = lines.iter().map(of_line).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn babeltrace_reports_discarded_events() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    let mut writer = Writer::create(&folder, &some_about(ByteOrder::Little), 1, 128).unwrap();
    for number in 0..100 {
        if number == 50 {
            writer.discard(0, 17).unwrap();
        }
        writer.event(0, 10 * number, Kind::Push, 0, number).unwrap();
    }
    writer.discard(0, 3).unwrap();
    writer.finish().unwrap();
    let Some(lines) = babeltrace(&folder, &["--component", "sink.text.details"]) else { return };
    let discarded: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("Discarded events (")).collect();
    assert_eq!(discarded, ["17 events)", "3 events)"]);
}
