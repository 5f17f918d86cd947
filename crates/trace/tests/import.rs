//! Other tools' traces: LiME's, as the description of its format has it, and perf's, as it records here. Bad ones never panic.

use punctual_model::{Call, Duration, Instant, Window};
use punctual_trace::import::{ErrorKind, Import, Imported, Options};
use punctual_trace::{Activation, Begin, Record};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Says that a test cannot run here: past the harness, which hides what passing tests print. `scripts/test` counts these lines.
macro_rules! skipped {
    ($($said:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {}", format_args!($($said)*));
    }};
}

fn import(path: &Path) -> Result<(Vec<Record>, Imported), punctual_trace::import::Error> {
    let mut records = Vec::new();
    let import = Import::open(path, &Options::default())?;
    let imported = import.run(
        &mut |record| {
            records.push(record.clone());
            true
        },
        &mut |_| {},
    )?;
    Ok((records, imported))
}

fn activations(records: &[Record]) -> Vec<Activation> {
    records.iter().filter_map(|record| if let Record::Activation(activation) = record { Some(*activation) } else { None }).collect()
}

const INFOS: &str =
    r#"{"pid":40,"tgid":39,"ppid":1,"comm":"control","cmd":"./control --fast","policy":{"SCHED_FIFO":{"prio":60}},"affinity_mask":3}"#;

/// A thread of period 10 ms that sleeps 1 ms inside each job. Every fifth wake-up was not seen.
fn events(jobs: u64) -> String {
    let mut text = String::from("[\n");
    for job in 1..=jobs {
        let arrival = 1_000_000_000 + job * 10_000_000;
        let entry = arrival - 7_000_000;
        let mut line = |ts: u64, rest: &str| {
            let _ = writeln!(text, "{{\"ts\":{ts},{rest}}},");
        };
        let sleep = format!(r#""event":"enter_clock_nano_sleep","clock_id":"CLOCK_MONOTONIC","abs_time":true,"required_ns":{arrival}"#);
        line(entry, &sleep);
        line(entry + 2_000, r#""event":"sched_switched_out","cpu":1,"prio":60,"state":1"#);
        if job % 5 != 0 {
            line(arrival + 1_000, r#""event":"sched_waking","cpu":0"#);
            line(arrival + 2_000, r#""event":"sched_wake_up","cpu":0"#);
        }
        line(arrival + 5_000, r#""event":"sched_switched_in","cpu":1,"prio":60,"preempt":false"#);
        line(arrival + 6_000, r#""event":"exit_arrival_site","ret":0"#);
        line(arrival + 500_000, r#""event":"sched_switched_out","cpu":1,"prio":60,"state":2"#);
        line(arrival + 1_500_000, r#""event":"sched_waking","cpu":0"#);
        line(arrival + 1_501_000, r#""event":"sched_switched_in","cpu":1,"prio":60,"preempt":false"#);
    }
    text + "{\"ts\":0,\"event\":\"somebody_sneezed\"}\n]\n"
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

#[test]
fn a_recording_of_lime_s() {
    let folder = folder(&[("40-0.events.json", &events(20)), ("40-0.infos.json", INFOS)]);
    let (records, imported) = import(folder.path()).expect("imported");
    let Record::Task(task) = &records[0] else { panic!("{:?}", records[0]) };
    let what = (task.tid, task.pid, task.name.as_str(), task.command.as_str(), task.priority, task.affinity.as_str());
    assert_eq!(what, (40, 39, "control", "./control --fast", 60, "0-1"));
    let seen = activations(&records);
    // Each job is a sleep until its arrival and one inside, outside of all calls.
    assert_eq!(seen.len(), 40);
    for (index, pair) in seen.chunks_exact(2).enumerate() {
        let arrival = Instant::from_ns(1_000_000_000 + (index as u64 + 1) * 10_000_000);
        assert_eq!(
            (pair[0].separator.call, pair[0].arrival, pair[1].separator.call),
            (Call::ClockNanosleep, Some(arrival), Call::Suspension)
        );
        let release = pair[0].resumed.expect("resumed").release.expect("it slept");
        let expected = match (index + 1) % 5 {
            0 => Window::new(arrival, arrival + Duration::from_us(5)).expect("a window"),
            _ => Window::at(arrival + Duration::from_us(1)),
        };
        assert_eq!(release, expected, "job {index}");
        assert_eq!(pair[1].resumed.expect("resumed").release, Some(Window::at(arrival + Duration::from_us(1_500))));
        // It ran from its first switch-in on; nothing is known of before.
        let ran = Duration::from_us(495 + index as u64 * (495 + 1_501));
        assert!(pair[1].cpu >= ran, "{:?} {ran:?}", pair[1].cpu);
    }
    assert_eq!(imported.notes.iter().filter(|note| note.contains("somebody_sneezed")).count(), 1, "{:?}", imported.notes);
    assert!(matches!(records.last(), Some(Record::Last { tid: 40, .. })));
}

#[test]
fn versions_are_transitions() {
    let second = INFOS.replace("\"prio\":60", "\"prio\":61");
    let third = second.replace("\"affinity_mask\":3", "\"affinity_mask\":1");
    let later = events(3).replace("\"ts\":1", "\"ts\":2").replace("\"required_ns\":1", "\"required_ns\":2");
    let latest = later.replace("\"ts\":2", "\"ts\":3").replace("\"required_ns\":2", "\"required_ns\":3");
    let folder = folder(&[
        ("40-0.events.json", &events(3)),
        ("40-0.infos.json", INFOS),
        ("40-1.events.json", &later),
        ("40-1.infos.json", &second),
        ("40-2.events.json", &latest),
        ("40-2.infos.json", &third),
        ("41-0.events.json", &events(5)),
    ]);
    let (records, imported) = import(folder.path()).expect("imported");
    let begins: Vec<_> =
        records.iter().filter_map(|record| if let Record::Task(task) = record { Some((task.tid, task.begin)) } else { None }).collect();
    let expected = [(40, Begin::Seen), (41, Begin::Seen), (40, Begin::Priority), (40, Begin::Affinity)];
    assert_eq!(begins, expected);
    assert!(imported.notes.iter().any(|note| note.contains("without infos")), "{:?}", imported.notes);
    for tid in [40, 41] {
        let numbers: Vec<u32> = records
            .iter()
            .filter(|record| record.tid() == tid)
            .filter_map(|record| match record {
                Record::Task(task) => Some(task.sequence),
                Record::Activation(activation) => Some(activation.sequence),
                Record::Last { sequence, .. } => Some(*sequence),
                _ => None,
            })
            .collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u32), "{numbers:?}");
    }
}

#[test]
fn a_file_that_was_cut_off_is_read_as_far_as_it_goes() {
    let whole = events(6);
    let all = activations(&import(folder(&[("40-0.events.json", &whole), ("40-0.infos.json", INFOS)]).path()).expect("imported").0);
    for end in (0..whole.len()).step_by(7) {
        let folder = folder(&[("40-0.events.json", &whole[..end]), ("40-0.infos.json", INFOS)]);
        let (records, imported) = import(folder.path()).expect("imported");
        let seen: Vec<_> = activations(&records).into_iter().filter(|activation| activation.resumed.is_some()).collect();
        assert!(all.starts_with(&seen), "cut at {end}");
        let cut = whole[..end].rfind('{') > whole[..end].rfind('}');
        assert_eq!(imported.notes.iter().any(|note| note.contains("in the middle of an event")), cut, "cut at {end}: {:?}", imported.notes);
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let kind = |path: &Path| import(path).expect_err("no trace").kind();
    let empty = folder(&[("notes.txt", "nothing"), ("x-y.events.json", "[]")]);
    assert_eq!(kind(empty.path()), ErrorKind::NotATrace);
    assert_eq!(kind(&empty.path().join("notes.txt")), ErrorKind::NotATrace);
    assert_eq!(kind(&empty.path().join("missing")), ErrorKind::NotFound);
    let broken = folder(&[("40-0.events.json", &events(1)), ("40-0.infos.json", "{\"comm\": 7")]);
    let error = import(broken.path()).expect_err("broken");
    assert!(error.kind() == ErrorKind::Malformed && error.to_string().contains("40-0.infos.json"), "{error}");
    let short = folder(&[("perf.data", "PERFILE2 and nothing else")]);
    assert_eq!(kind(&short.path().join("perf.data")), ErrorKind::Malformed);
}

/// Seeded changes of a file: whatever comes of it, it is no panic.
fn mutations(original: &[u8], rounds: u32, mut check: impl FnMut(&[u8])) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for _ in 0..rounds {
        let mut bytes = original.to_vec();
        for _ in 0..=random(4) {
            match random(4) {
                0 if !bytes.is_empty() => {
                    let place = random(bytes.len());
                    bytes[place] ^= 1 << random(8);
                }
                1 if !bytes.is_empty() => {
                    let place = random(bytes.len());
                    bytes[place] = random(256) as u8;
                }
                2 => bytes.truncate(random(bytes.len() + 1)),
                _ => {
                    let (from, to) = (random(bytes.len() + 1), random(bytes.len() + 1));
                    let piece = bytes[from.min(to)..from.max(to).min(from.min(to) + 64)].to_vec();
                    let place = random(bytes.len() + 1);
                    bytes.splice(place..place, piece);
                }
            }
        }
        check(&bytes);
    }
}

#[test]
fn changed_events_never_panic() {
    let whole = events(3);
    let folder = folder(&[("40-0.infos.json", INFOS)]);
    mutations(whole.as_bytes(), 2_000, |bytes| {
        fs::write(folder.path().join("40-0.events.json"), bytes).expect("written");
        let _ = import(folder.path());
    });
}

/// Records half a second of what goes on here; `None`, with a line that says so, where perf cannot.
fn recorded_by_perf(folder: &Path) -> Option<Vec<u8>> {
    let path = folder.join("perf.data");
    let recorded = Command::new("perf")
        .args(["record", "-q", "-a", "-e", "sched:sched_switch,sched:sched_waking,raw_syscalls:*", "--exclude-perf", "-o"])
        .arg(&path)
        .args(["--", "sleep", "0.05"])
        .output();
    match recorded {
        Ok(output) if output.status.success() => fs::read(&path).ok(),
        _ => {
            skipped!("perf cannot record here");
            None
        }
    }
}

#[test]
fn changed_perf_data_never_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(original) = recorded_by_perf(folder.path()) else { return };
    let path = folder.path().join("changed.data");
    // The headers are at both ends; what is between is many times the same.
    mutations(&original, 60, |bytes| {
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
    let head = original.len().min(4_096);
    mutations(&original[..head], 300, |changed| {
        let bytes = [changed, &original[head..]].concat();
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
    let tail = original.len() - original.len().min(4_096);
    mutations(&original[tail..], 300, |changed| {
        let bytes = [&original[..tail], changed].concat();
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
}
