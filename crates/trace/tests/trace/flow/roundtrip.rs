//! What was written comes back.

use super::generate::*;
use proptest::prelude::*;
use punctual_model::Instant;
use punctual_trace::ErrorKind;
use punctual_trace::flow::{About, ByteOrder, Event, Gap, Item, Kind, Reader, Writer};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

#[test]
fn everything_is_read_back_in_both_byte_orders() {
    for order in ORDERS {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("trace");
        let (about, written) = (some_about(order), rounds(20_000));
        write(&folder, &about, 4096, &written);
        let reader = Reader::open(&folder).unwrap();
        assert_eq!(reader.about(), &about);
        let (items, totals) = read(&reader);
        assert_eq!(events(&items), written);
        assert_eq!(
            (totals.events, totals.discarded, totals.missing_packets, totals.damages.len()),
            (160_000, 0, 0, 0)
        );
        // Once more, from the beginning.
        assert_eq!(read(&reader).0, items);
    }
}

#[test]
fn ticks_become_nanoseconds() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    let about = About { frequency: 12_000_000, clock: "cycles".into(), ..some_about(ByteOrder::Big) };
    let ticks = [0, 1, 12_000_000, u64::from(u32::MAX) + 7, 1 << 40];
    let written: Vec<Event> = ticks
        .iter()
        .enumerate()
        .map(|(number, tick)| event(*tick, 0, Kind::Push, 0, number as u64))
        .collect();
    write(&folder, &about, 56, &written);
    let found: Vec<u64> =
        events(&read(&Reader::open(&folder).unwrap()).0).iter().map(|event| event.at.ns()).collect();
    let expected = ticks.map(|tick| (u128::from(tick) * 1_000_000_000 / 12_000_000) as u64);
    assert_eq!(found, expected);
}

#[test]
fn long_pauses_start_new_packets() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    let pause = u64::from(u32::MAX);
    let times = [5, 5 + pause, 6 + pause, 7 + 5 * pause];
    let written: Vec<Event> =
        times.iter().enumerate().map(|(number, at)| event(*at, 0, Kind::Push, 0, number as u64)).collect();
    write(&folder, &some_about(ByteOrder::Little), 4096, &written);
    assert_eq!(events(&read(&Reader::open(&folder).unwrap()).0), written);
    assert_eq!(std::fs::metadata(folder.join("stream_0")).unwrap().len(), 3 * 4096);
}

#[test]
fn discarded_events_are_a_gap() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    let mut writer = Writer::create(&folder, &some_about(ByteOrder::Little), 1, 4096).unwrap();
    writer.event(0, 10, Kind::Push, 0, 0).unwrap();
    writer.discard(0, 17).unwrap();
    writer.event(0, 90, Kind::Push, 0, 18).unwrap();
    writer.discard(0, 3).unwrap();
    writer.finish().unwrap();
    let (items, totals) = read(&Reader::open(&folder).unwrap());
    let ns = Instant::from_ns;
    let gap = |from, until, discarded| {
        Item::Gap(Gap { producer: 0, from: ns(from), until: ns(until), discarded, packets: 0 })
    };
    let push = |at, number| Item::Event(event(at, 0, Kind::Push, 0, number));
    assert_eq!(items, [push(10, 0), gap(10, 90, 17), push(90, 18), gap(90, u64::MAX, 3)]);
    assert_eq!((totals.events, totals.discarded), (2, 20));
}

#[test]
fn a_flushed_trace_is_readable_and_continues() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    let written = rounds(40);
    let mut writer = Writer::create(&folder, &some_about(ByteOrder::Little), 3, 256).unwrap();
    for (count, event) in written.iter().enumerate() {
        writer.event(event.producer as usize, event.at.ns(), event.kind, event.object, event.number).unwrap();
        writer.flush().unwrap();
        assert_eq!(events(&read(&Reader::open(&folder).unwrap()).0), written[..=count]);
    }
}

/// At one tick, causes come first, whatever streams they are in.
#[test]
fn causes_come_before_what_they_cause() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    // Executor 1 runs an instance that executor 0 activates, after an instance of its own, all at once.
    let causes = [
        event(5, 0, Kind::Push, 0, 0),
        event(5, 0, Kind::Activation, 0, 0),
        event(5, 0, Kind::Start, 0, 0),
        event(5, 0, Kind::Push, 1, 0),
        event(5, 0, Kind::Activation, 1, 0),
        event(5, 1, Kind::Start, 1, 0),
        event(5, 1, Kind::Stop, 1, 0),
        event(5, 0, Kind::Stop, 0, 0),
    ];
    for swapped in [false, true] {
        let folder = folder.with_extension(swapped.to_string());
        let producer = |event: &Event| Event {
            producer: if swapped { 1 - event.producer } else { event.producer },
            ..*event
        };
        let written: Vec<Event> = causes.iter().map(producer).collect();
        write(&folder, &some_about(ByteOrder::Little), 4096, &written);
        let found = events(&read(&Reader::open(&folder).unwrap()).0);
        let place =
            |kind, task| found.iter().position(|event| (event.kind, event.object) == (kind, task)).unwrap();
        assert!(place(Kind::Activation, 1) < place(Kind::Start, 1), "{found:#?}");
        assert_eq!(found.len(), causes.len());
    }
}

#[test]
fn folders_that_are_not_traces_are_identified() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |path: &std::path::Path, expected: &str| {
        let error = Reader::open(path).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        error.kind()
    };
    assert_eq!(refused(&scratch.path().join("none"), "no such file"), ErrorKind::NotFound);
    assert_eq!(refused(scratch.path(), "no file named metadata"), ErrorKind::NotATrace);
    let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let recording = std::fs::read_dir(recording)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("metadata").is_file());
    assert_eq!(refused(&recording.unwrap(), "it is a recording of threads"), ErrorKind::NotATrace);
    let file = scratch.path().join("file");
    for (text, expected) in [("{\n}", "a file of JSON"), ("abc", "a file, and a trace is a folder")] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(refused(&file, expected), ErrorKind::NotATrace);
    }
    let folder = scratch.path().join("lttng");
    std::fs::create_dir(&folder).unwrap();
    let text = "/* CTF 1.8 */ env { domain = \"kernel\"; tracer_name = \"lttng-modules\"; };";
    std::fs::write(folder.join("metadata"), text).unwrap();
    assert_eq!(refused(&folder, "a trace by lttng-modules of domain \"kernel\""), ErrorKind::NotATrace);
    std::fs::write(folder.join("metadata"), "env { domain = \"dataflow\"; tracer_major = 2; };").unwrap();
    assert_eq!(refused(&folder, "version 2"), ErrorKind::Version);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each producer's events come in its own order, and all in the order of time.
    #[test]
    fn streams_are_merged_by_time(
        steps in prop::collection::vec(
            (0..3_u32, prop_oneof![Just(0), 0..5_u64, Just(1_u64 << 33)], 0..4_usize, 0..3_u16), 0..300,
        ),
        packet in 7..40_usize,
        big in any::<bool>(),
    ) {
        let mut at = 7;
        let mut counts = std::collections::BTreeMap::new();
        let written: Vec<Event> = steps.iter().map(|(producer, step, kind, object)| {
            at += step;
            let kind = Kind::ALL[*kind];
            let number = counts.entry((kind as u8, *object)).or_insert(0);
            *number += 1;
            event(at, *producer, kind, *object, *number - 1)
        }).collect();
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("trace");
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        write(&folder, &some_about(order), packet * 8, &written);
        let (items, totals) = read(&Reader::open(&folder).unwrap());
        let found = events(&items);
        prop_assert_eq!(items.len(), written.len());
        prop_assert_eq!(totals.events, written.len() as u64);
        prop_assert!(found.windows(2).all(|pair| pair[0].at <= pair[1].at));
        for producer in 0..3 {
            let events_of = |events: &[Event]| {
                events.iter().filter(|event| event.producer == producer).copied().collect::<Vec<_>>()
            };
            prop_assert_eq!(events_of(&found), events_of(&written));
        }
    }
}
