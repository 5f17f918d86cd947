//! A part of a recording is as a recording of that part.

use super::generate::*;
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::Instant;
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{Record, Roster};
use std::collections::HashMap;

fn ran(record: &Record) -> u64 {
    match record {
        Record::Activation(activation) => activation.resumed.unwrap().start.ns(),
        Record::Task(task) | Record::Known(task) => task.at.ns(),
        _ => unreachable!(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_stretch_begins_with_the_known_state_and_has_no_gap(
        from in 999_000_000..1_200_000_000_u64, length in 0..200_000_000_u64,
    ) {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("recording");
        let records = periodic(5, 400);
        make(&folder, &some_about(), &Options { packet_bytes: 4096, ..Options::default() }, &records);
        let (from, until) = (Instant::from_ns(from), Instant::from_ns(from + length));
        let mut reader = Reader::open(&folder)?;
        reader.select(Some(from), Some(until))?;
        prop_assert_eq!(reader.about().from, from.max(some_about().from));
        prop_assert_eq!(reader.until(), until.max(some_about().from));
        let read = read_all(&reader);
        let (before, rest): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| ran(record) < from.ns());
        let within: Vec<_> = rest.into_iter().filter(|record| ran(record) <= until.ns()).collect();
        let mut roster = Roster::new();
        before.iter().for_each(|record| roster.record(record));
        if reader.stretches() > 0 {
            prop_assert_eq!(&read[..roster.len()], &roster.known(from)[..]);
        }
        prop_assert_eq!(without_known(&read), within);
        let mut next = HashMap::new();
        for record in &read {
            match record {
                Record::Task(task) => prop_assert!(next.insert(task.tid, task.sequence + 1).is_none()),
                Record::Known(task) => {
                    prop_assert_eq!(task.sequence, *next.entry(task.tid).or_insert(task.sequence));
                }
                Record::Activation(activation) => {
                    let expected = next.insert(activation.tid, activation.sequence + 1);
                    prop_assert_eq!(expected, Some(activation.sequence));
                }
                _ => {}
            }
        }
    }
}

/// When a record happened, where it says so.
fn own_ns(record: &Record) -> u64 {
    match record {
        Record::Activation(activation) => {
            activation.resumed.map_or(activation.stop, |resumed| resumed.start).ns()
        }
        Record::Task(task) | Record::Known(task) | Record::Bystander(task) => task.at.ns(),
        Record::ClockSet { at, .. }
        | Record::Exit { at, .. }
        | Record::Last { at, .. }
        | Record::BystanderExit { at, .. } => at.ns(),
        Record::Switch(switch) => switch.at.ns(),
        Record::Busy { .. }
        | Record::Lost { .. }
        | Record::Renamed { .. }
        | Record::Command { .. }
        | Record::Latency(_)
        | Record::Dispatch(_) => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // In whatever order they come: the border is one place in the recording, so no thread has a gap there.
    #[test]
    fn a_stretch_is_one_piece_of_the_recording(
        records in vec(record(), 1..300), from in instant(), until in instant(),
    ) {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("recording");
        make(&folder, &some_about(), &Options { packet_bytes: 0, ..Options::default() }, &records);
        let mut reader = Reader::open(&folder)?;
        reader.select(Some(from), Some(until))?;
        let mut stamp = some_about().from.ns();
        let stamped: Vec<(u64, &Record)> = records
            .iter()
            .map(|record| {
                stamp = stamp.max(own_ns(record));
                (stamp, record)
            })
            .collect();
        let within = stamped.iter().filter(|(at, _)| (from.ns()..=until.ns()).contains(at));
        let within: Vec<Record> = within.map(|(_, record)| (*record).clone()).collect();
        let read = read_all(&reader);
        prop_assert_eq!(without_known(&read), without_known(&within));
        let mut roster = Roster::new();
        stamped.iter().filter(|(at, _)| *at < from.ns()).for_each(|(_, record)| roster.record(record));
        if reader.stretches() > 0 {
            prop_assert_eq!(&read[..roster.len()], &roster.known(from)[..]);
        }
    }
}

#[test]
fn losses_are_those_within_the_stretch() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let mut recorder =
        Recorder::create(&folder, &some_about(), &Options { packet_bytes: 4096, ..Options::default() })
            .unwrap();
    // Runs of packets are 256 KiB.
    for (index, record) in periodic(1, 30_000).iter().enumerate() {
        recorder.totals(totals(index as u64 / 10_000));
        recorder.record(record).unwrap();
    }
    recorder.finish(UNTIL, totals(7)).unwrap();
    let mut reader = Reader::open(&folder).unwrap();
    assert_eq!(reader.totals(), totals(7));
    reader.select(Some(Instant::from_ns(29_000_000_000)), None).unwrap();
    assert_eq!(reader.totals(), totals(5));
    let mut reader = Reader::open(&folder).unwrap();
    reader.select(None, Some(Instant::from_ns(4_000_000_000))).unwrap();
    assert_eq!(reader.totals(), totals(0));
    assert_eq!(reader.until(), Instant::from_ns(4_000_000_000));
    reader.select(Some(UNTIL + punctual_model::Duration::from_ns(1)), None).unwrap();
    assert_eq!((reader.stretches(), read_all(&reader).len()), (0, 0));
    reader.select(None, None).unwrap();
    assert_eq!(without_known(&read_all(&reader)), periodic(1, 30_000));
    assert_eq!((reader.totals(), reader.about().from, reader.until()), (totals(7), some_about().from, UNTIL));
}
