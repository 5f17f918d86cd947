//! LiME's recordings, as its own program writes them.

use super::{activations, folder, import, mutations};
use punctual_import::{Import, Options};
use punctual_model::{Call, Duration, Instant, Window};
use punctual_trace::{Begin, Record, TaskRecord};
use std::fmt::Write as _;
use std::fs;

const INFOS: &str = concat!(
    r#"{"pid":40,"tgid":39,"ppid":1,"comm":"control","cmd":"./control --fast","#,
    r#""policy":{"SCHED_FIFO":{"prio":60}},"affinity_mask":3}"#
);

/// A thread of period 10 ms that sleeps 1 ms inside each job. Every fifth wake-up was not seen.
pub fn events(jobs: u64) -> String {
    let mut text = String::from("[\n");
    for job in 1..=jobs {
        let arrival = 1_000_000_000 + job * 10_000_000;
        let entry = arrival - 7_000_000;
        let mut line = |ts: u64, rest: &str| {
            let _ = writeln!(text, "{{\"ts\":{ts},{rest}}},");
        };
        let sleep = format!(
            "\"event\":\"enter_clock_nano_sleep\",\"clock_id\":\"CLOCK_MONOTONIC\",\
             \"abs_time\":true,\"required_ns\":{arrival}"
        );
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

#[test]
fn a_recording_of_lime_s() {
    let folder = folder(&[("40-0.events.json", &events(20)), ("40-0.infos.json", INFOS)]);
    let (records, imported) = import(folder.path()).expect("imported");
    let Record::Task(task) = &records[0] else { panic!("{:?}", records[0]) };
    let what = (
        task.tid,
        task.pid,
        task.name.as_str(),
        task.command.as_str(),
        task.priority,
        task.affinity.as_str(),
    );
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
        assert_eq!(
            pair[1].resumed.expect("resumed").release,
            Some(Window::at(arrival + Duration::from_us(1_500)))
        );
        // It ran from its first switch-in on; nothing is known of before.
        let ran = Duration::from_us(495 + index as u64 * (495 + 1_501));
        assert!(pair[1].cpu >= ran, "{:?} {ran:?}", pair[1].cpu);
    }
    assert_eq!(
        imported.notes.iter().filter(|note| note.contains("somebody_sneezed")).count(),
        1,
        "{:?}",
        imported.notes
    );
    assert!(matches!(records.last(), Some(Record::Last { tid: 40, .. })));
}

#[test]
fn a_recording_without_wake_ups_says_so() {
    let lacks_wakes = |text: &str| {
        let folder = folder(&[("40-0.events.json", text), ("40-0.infos.json", INFOS)]);
        let (_, imported) = import(folder.path()).expect("imported");
        imported.account.lacks.iter().any(|lack| lack.what == "sched_waking")
    };
    let text = events(3);
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("sched_wak")).collect();
    assert_eq!((lacks_wakes(&text), lacks_wakes(&without.join("\n"))), (false, true));
}

#[test]
fn versions_of_a_thread_are_task_transitions() {
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
    let begins: Vec<_> = records
        .iter()
        .filter_map(
            |record| if let Record::Task(task) = record { Some((task.tid, task.begin)) } else { None },
        )
        .collect();
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
fn a_truncated_file_is_read_as_far_as_possible() {
    let whole = events(6);
    let all = activations(
        &import(folder(&[("40-0.events.json", &whole), ("40-0.infos.json", INFOS)]).path())
            .expect("imported")
            .0,
    );
    for end in (0..whole.len()).step_by(7) {
        let folder = folder(&[("40-0.events.json", &whole[..end]), ("40-0.infos.json", INFOS)]);
        let (records, imported) = import(folder.path()).expect("imported");
        let seen: Vec<_> =
            activations(&records).into_iter().filter(|activation| activation.resumed.is_some()).collect();
        assert!(all.starts_with(&seen), "cut at {end}");
        let cut = whole[..end].rfind('{') > whole[..end].rfind('}');
        assert_eq!(
            imported.notes.iter().any(|note| note.contains("in the middle of an event")),
            cut,
            "cut at {end}: {:?}",
            imported.notes
        );
    }
}

#[test]
fn changed_events_cause_no_panic() {
    let whole = events(3);
    let folder = folder(&[("40-0.infos.json", INFOS)]);
    mutations(whole.as_bytes(), 2_000, |bytes| {
        fs::write(folder.path().join("40-0.events.json"), bytes).expect("written");
        let _ = import(folder.path());
    });
}

fn tasks(records: &[Record]) -> Vec<&TaskRecord> {
    records
        .iter()
        .filter_map(|record| if let Record::Task(task) = record { Some(task.as_ref()) } else { None })
        .collect()
}

/// The numbers of a thread's records; a gap is where one is missing.
fn numbers(records: &[Record], tid: u32) -> Vec<u32> {
    let number = |record: &Record| match record {
        Record::Task(task) => Some(task.sequence),
        Record::Activation(activation) => Some(activation.sequence),
        Record::Last { sequence, .. } | Record::Exit { sequence, .. } => Some(*sequence),
        _ => None,
    };
    records.iter().filter(|record| record.tid() == tid).filter_map(number).collect()
}

fn has_gap(records: &[Record], tid: u32) -> bool {
    !numbers(records, tid).into_iter().eq(0..numbers(records, tid).len() as u32)
}

/// Infos with all that LiME may not know, and the times that it adds.
#[test]
fn infos_may_be_incomplete() {
    let infos = r#"{"pid":40,"tgid":39,"ppid":null,"comm":null,"cmd":null,"policy":"UNKNOWN",
        "affinity_mask":{"cpu_set":[0,2]},
        "first_event_time":{"boottime_ns":1000000000,"iso8601":"1970-01-01T00:00:03.000000000Z"},
        "last_event_time":null}"#;
    let folder = folder(&[("40-0.events.json", &events(2)), ("40-0.infos.json", infos)]);
    let open = Import::open(folder.path(), &Options::default()).expect("opened");
    assert_eq!(
        (open.about().clock.as_str(), open.about().clock_zero),
        ("CLOCK_BOOTTIME", Some(2_000_000_000))
    );
    assert_eq!(open.about().from, Instant::from_ns(1_003_000_000));
    let (records, imported) = import(folder.path()).expect("imported");
    let task = tasks(&records)[0];
    assert_eq!((task.pid, task.name.as_str(), task.affinity.as_str()), (39, "(unknown)", "0,2"));
    assert_eq!(
        imported.notes.iter().filter(|note| note.contains("without a policy")).count(),
        1,
        "{:?}",
        imported.notes
    );
}

/// Infos are written last: who kills LiME may find half of them.
#[test]
fn infos_may_be_truncated() {
    for end in 0..INFOS.len() {
        let folder = folder(&[("40-0.events.json", &events(1)), ("40-0.infos.json", &INFOS[..end])]);
        let (_, imported) = import(folder.path()).expect("imported");
        assert!(
            imported.notes.iter().any(|note| note.contains("40-0.infos.json ends too early")),
            "{end}: {:?}",
            imported.notes
        );
    }
}

#[test]
fn an_invalid_line_is_reported_as_a_gap() {
    let whole = events(6);
    let third = whole.match_indices("sched_switched_in").nth(4).expect("it switches").0;
    let from = whole[..third].rfind('{').expect("an event");
    let broken = [&whole[..from], &whole[from..].replacen("\"ts\":", "\"ts\":-", 1)].concat();
    let (records, imported) =
        import(folder(&[("40-0.events.json", &broken), ("40-0.infos.json", INFOS)]).path())
            .expect("imported");
    assert!(has_gap(&records, 40));
    assert_eq!(imported.totals.lost, 1);
    let place = format!("40-0.events.json, byte {from}: this event cannot be read");
    assert!(imported.notes.iter().any(|note| note.contains(&place)), "{:?}", imported.notes);
    // What comes after is imported all the same.
    assert!(activations(&records).last().is_some_and(|last| last.stop > Instant::from_ns(1_060_000_000)));

    let garbled = [&whole[..from], "rubbish\n", &whole[from..]].concat();
    let (records, imported) =
        import(folder(&[("40-0.events.json", &garbled), ("40-0.infos.json", INFOS)]).path())
            .expect("imported");
    assert!(has_gap(&records, 40) && imported.totals.lost == 1);
    let place = format!("40-0.events.json, byte {from}: there should be an event");
    assert!(imported.notes.iter().any(|note| note.contains(&place)), "{:?}", imported.notes);
}

/// LiME leaves a thread out that does too much; what it does then is not known, though its parameters stay
/// the same.
#[test]
fn a_throttled_thread_has_a_gap() {
    let first =
        events(3).replace("{\"ts\":0,", "{\"ts\":1040000000,\"event\":\"lime_throttle\"},\n{\"ts\":0,");
    let later = events(3).replace("\"ts\":1", "\"ts\":2").replace("\"required_ns\":1", "\"required_ns\":2");
    let folder = folder(&[
        ("40-0.events.json", &first),
        ("40-0.infos.json", INFOS),
        ("40-1.events.json", &later),
        ("40-1.infos.json", INFOS),
    ]);
    let (records, imported) = import(folder.path()).expect("imported");
    let begins: Vec<_> = tasks(&records).iter().map(|task| task.begin).collect();
    assert_eq!(begins, [Begin::Seen, Begin::Seen]);
    assert!(has_gap(&records, 40), "{:?}", numbers(&records, 40));
    assert!(
        imported.notes.iter().any(|note| note.starts_with("1 ×") && note.contains("did too much")),
        "{:?}",
        imported.notes
    );
    // No sleep lasts from one version into the other.
    let releases = activations(&records)
        .into_iter()
        .filter_map(|activation| Some((activation.stop, activation.resumed?.start)));
    assert!(releases.into_iter().all(|(stop, start)| start.since(stop) < Duration::from_ms(10)));
}

#[test]
fn a_thread_ends_and_its_number_is_used_again() {
    let ends = events(2).replace(
        "{\"ts\":0,",
        "{\"ts\":1030000000,\"event\":\"sched_process_exit\"},\n\
            {\"ts\":1030000100,\"event\":\"sched_switched_out\",\"cpu\":1,\"prio\":60,\"state\":128},\n\
            {\"ts\":0,",
    );
    let later = events(2).replace("\"ts\":1", "\"ts\":2").replace("\"required_ns\":1", "\"required_ns\":2");
    let other = INFOS.replace("\"tgid\":39", "\"tgid\":77");
    let folder = folder(&[
        ("40-0.events.json", &ends),
        ("40-0.infos.json", INFOS),
        ("40-1.events.json", &later),
        ("40-1.infos.json", &other),
    ]);
    let (records, _) = import(folder.path()).expect("imported");
    let life: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Task(task) => Some((task.begin, task.pid, task.sequence)),
            Record::Exit { at, .. } => Some((Begin::Seen, 0, (at.ns() / 1_000_000) as u32)),
            _ => None,
        })
        .collect();
    assert_eq!(life, [(Begin::Seen, 39, 0), (Begin::Seen, 0, 1_030), (Begin::Seen, 77, 0)]);
    assert_eq!(records.iter().filter(|record| matches!(record, Record::Exit { .. })).count(), 1);
}

/// Where nothing says why a version ended, the thread was out of sight; or it is another one, whose number
/// was used again.
#[test]
fn the_state_of_a_thread_out_of_sight_is_unknown() {
    let whole = events(3);
    let asleep = whole.match_indices("sched_switched_out").nth(4).expect("it sleeps").0;
    let first = &whole[..whole[asleep..].find('\n').expect("a line") + asleep];
    let later = events(3).replace("\"ts\":1", "\"ts\":2").replace("\"required_ns\":1", "\"required_ns\":2");
    for infos in
        [INFOS.to_owned(), INFOS.replace("\"tgid\":39", "\"tgid\":77").replace("SCHED_FIFO", "SCHED_RR")]
    {
        let folder = folder(&[
            ("40-0.events.json", first),
            ("40-0.infos.json", INFOS),
            ("40-1.events.json", &later),
            ("40-1.infos.json", &infos),
        ]);
        let (records, _) = import(folder.path()).expect("imported");
        assert_eq!(
            tasks(&records).iter().map(|task| task.begin).collect::<Vec<_>>(),
            [Begin::Seen, Begin::Seen]
        );
        let seen = activations(&records);
        // The last job of the first version ended; when the next was released is not known.
        assert_eq!(seen.iter().position(|activation| activation.resumed.is_none()), Some(4));
        assert!(
            seen.iter().filter_map(|activation| activation.resumed).all(|resumed| resumed
                .release
                .is_some_and(|release| release.width() < Duration::from_ms(10)))
        );
        assert_eq!(seen.len(), 5 + 6);
    }
}

#[test]
fn another_program_is_another_task() {
    let text = events(4).replacen(
        "\n{\"ts\":1023",
        "\n{\"ts\":1022999999,\"event\":\"sched_process_exec\"},\n{\"ts\":1023",
        1,
    );
    let (records, _) =
        import(folder(&[("40-0.events.json", &text), ("40-0.infos.json", INFOS)]).path()).expect("imported");
    let begins: Vec<_> = tasks(&records).iter().map(|task| (task.begin, task.at.ns())).collect();
    assert_eq!(begins, [(Begin::Seen, 1_003_000_000), (Begin::Exec, 1_022_999_999)]);
    assert!(!has_gap(&records, 40));
}

/// Whoever writes the records may be out of room.
#[test]
fn import_stops_on_request() {
    // If it read on, it would find what is no event.
    let events = events(50) + "rubbish";
    let folder = folder(&[("40-0.events.json", &events), ("40-0.infos.json", INFOS)]);
    let mut seen = 0;
    let mut each = |_: &Record| {
        seen += 1;
        seen < 10
    };
    let import = Import::open(folder.path(), &Options::default()).expect("opened");
    let imported = import.run(&mut each, &mut |_| {}).expect("stopped");
    assert_eq!((seen, imported.totals.lost), (10, 0));
}

/// Threads are merged by time, though each has its file.
#[test]
fn records_are_in_order_of_time() {
    let other = events(30).replace("000,\"event", "500,\"event");
    let folder = folder(&[
        ("40-0.events.json", &events(30)),
        ("40-0.infos.json", INFOS),
        ("41-0.events.json", &other),
        ("41-0.infos.json", &INFOS.replace("\"pid\":40", "\"pid\":41")),
    ]);
    let (records, _) = import(folder.path()).expect("imported");
    let steps: Vec<_> = records
        .iter()
        .filter_map(
            |record| if let Record::Switch(switch) = record { Some((switch.at, switch.tid)) } else { None },
        )
        .collect();
    assert!(steps.len() > 200 && steps.is_sorted_by_key(|(at, _)| *at));
    assert!(steps.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() > 100, "both threads, in turn");
}
