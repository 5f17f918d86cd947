//! What was changed in a recording is found, with its place, and all else is read.

use super::generate::*;
use proptest::prelude::*;
use punctual_model::Instant;
use punctual_trace::Record;
use punctual_trace::ctf::{Damage, Options, Reader};

/// Everything that is said about a recording, and how many records it has.
fn damages(metadata: &[u8], stream: &[u8]) -> (Vec<Damage>, usize) {
    let reader = Reader::in_memory(metadata, vec![(0, stream.to_vec())]).expect("a recording");
    let mut records = 0;
    let mut damage = reader.damage();
    damage.extend(reader.read(0..reader.stretches(), &mut |_| records += 1).expect("to be read"));
    (damage, records)
}

/// Where packets begin, and the end.
fn borders(stream: &[u8]) -> Vec<usize> {
    let mut borders = vec![0];
    let mut at = 0;
    while at < stream.len() {
        at += u64::from_le_bytes(stream[at + 52..at + 60].try_into().unwrap()) as usize / 8;
        borders.push(at);
    }
    borders
}

#[test]
fn a_changed_byte_costs_only_its_packet() {
    let (metadata, stream) = small(3, 120);
    let (damage, all) = damages(metadata.as_bytes(), &stream);
    assert_eq!(damage, []);
    let borders = borders(&stream);
    for at in 0..stream.len() {
        let mut changed = stream.clone();
        changed[at] ^= 1 << (at % 8);
        let (damage, records) = damages(metadata.as_bytes(), &changed);
        let packet = borders.iter().rfind(|border| **border <= at).expect("a packet");
        let [damage] = &damage[..] else { panic!("{at}: {damage:?}") };
        assert_eq!((damage.file(), damage.offset()), ("stream_0", *packet as u64), "{at}: {damage}");
        // The last packet has but the end of the observation.
        assert!(records <= all && records + 120 > all, "{at}: {records} of {all}");
    }
}

#[test]
fn changed_bytes_in_the_metadata_cost_no_records() {
    let (metadata, stream) = small(1, 10);
    let whole = Reader::in_memory(metadata.as_bytes(), vec![(0, stream.clone())]).unwrap();
    let all = read_all(&whole);
    let metadata = metadata.into_bytes();
    for at in 0..metadata.len() {
        let mut changed = metadata.clone();
        changed[at] ^= 1 << (at % 8);
        let reader = Reader::in_memory(&changed, vec![(0, stream.clone())])
            .unwrap_or_else(|error| panic!("{at}: {error}"));
        let [damage] = &reader.damage()[..] else { panic!("{at}: {:?}", reader.damage()) };
        assert_eq!(damage.file(), "metadata");
        assert!(
            damage.offset() <= changed.len() as u64 && damage.to_string().contains("damaged"),
            "{damage}"
        );
        // The span is that of the packets, whatever the metadata say of it.
        assert!(reader.about().from >= some_about().from && reader.until() == whole.until(), "{at}");
        assert_eq!(read_all(&reader), all, "{at}");
    }
    for garbage in [&[][..], &[0; 4096], b"trace {", b"\xff\xfe"] {
        let reader = Reader::in_memory(garbage, vec![(0, stream.clone())]).unwrap();
        assert_eq!((read_all(&reader), reader.damage().len()), (all.clone(), 1));
    }
}

#[test]
fn many_bytes_between_packets_are_skipped() {
    let (metadata, stream) = small(1, 120);
    let (_, all) = damages(metadata.as_bytes(), &stream);
    let (before, behind) = stream.split_at(borders(&stream)[1]);
    // The next packet's mark is then across the border of what is looked through at once, or near it.
    for length in (256 << 10) - 25..(256 << 10) + 5 {
        let (damage, records) = damages(metadata.as_bytes(), &[before, &vec![7; length], behind].concat());
        assert_eq!((damage.len(), records), (1, all), "{length}: {damage:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bytes_between_packets_are_skipped(
        trash in prop::collection::vec(any::<u8>(), 1..2000), place in any::<prop::sample::Index>(),
    ) {
        let (metadata, stream) = small(3, 120);
        let (_, all) = damages(metadata.as_bytes(), &stream);
        let ends = borders(&stream);
        let at = ends[place.index(ends.len())];
        let with = [&stream[..at], &trash, &stream[at..]].concat();
        let (damage, records) = damages(metadata.as_bytes(), &with);
        prop_assert_eq!(records, all);
        prop_assert_eq!(damage.len(), 1, "{:?}", damage);
        prop_assert_eq!(damage[0].offset(), at as u64);
    }

    #[test]
    fn the_rest_is_read_whatever_is_missing(from in any::<prop::sample::Index>(), length in 1..9000_usize) {
        let (metadata, stream) = small(3, 120);
        let from = from.index(stream.len());
        let to = (from + length).min(stream.len());
        let (damage, _) = damages(metadata.as_bytes(), &[&stream[..from], &stream[to..]].concat());
        prop_assert!(!damage.is_empty());
    }
}

#[test]
fn missing_packets_and_files_are_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    // With a limit there are several files; this one is not reached.
    let options = Options { limit: Some(4 << 20), ..Options::default() };
    let recorded = make(&folder, &some_about(), &options, &periodic(4, 20_000));
    assert_eq!(recorded.dropped.packets, 0);
    let whole = Reader::open(&folder).unwrap();
    let all = without_known(&read_all(&whole));
    assert_eq!(whole.damage(), []);
    std::fs::remove_file(folder.join("stream_2")).unwrap();
    let reader = Reader::open(&folder).unwrap();
    let (lost, left): (Vec<Record>, Vec<Record>) = without_known(&read_all(&reader))
        .into_iter()
        .partition(|record| matches!(record, Record::Lost { .. }));
    let [damage] = &reader.damage()[..] else { panic!("{:?}", reader.damage()) };
    assert_eq!((damage.file(), damage.offset()), ("stream_3", 0));
    let printed = damage.to_string();
    assert!(
        printed.contains(&format!("with {} activations", all.len() - left.len()))
            && printed.contains("no stream_2"),
        "{printed}"
    );
    assert_eq!(reader.dropped().packets, 0);
    // Where they are missing, a record says so.
    let [Record::Lost { since, until }] = &lost[..] else { panic!("{lost:?}") };
    let first = all.iter().zip(&left).position(|(one, other)| one != other).unwrap();
    let time = |record: &Record| match record {
        Record::Activation(it) => it.resumed.map_or(it.stop, |resumed| resumed.start),
        other => panic!("{other:?}"),
    };
    let missing = first..first + all.len() - left.len();
    assert!(all[missing.clone()].iter().all(|record| (*since..=*until).contains(&time(record))));
    let rest = [time(&all[first - 1]) <= *since, time(&all[missing.end]) >= *until];
    assert_eq!(rest, [true, true], "{lost:?}");
}

#[test]
fn a_damaged_packet_is_a_loss() {
    let (metadata, mut stream) = small(3, 120);
    let losses = |stream: &[u8]| -> Vec<(Instant, Instant)> {
        let reader = Reader::in_memory(metadata.as_bytes(), vec![(0, stream.to_vec())]).unwrap();
        let mut losses = Vec::new();
        let mut each = |record: &Record| {
            if let Record::Lost { since, until } = record {
                losses.push((*since, *until));
            }
        };
        reader.read(0..reader.stretches(), &mut each).unwrap();
        losses
    };
    assert_eq!(losses(&stream), []);
    let ends = borders(&stream);
    // Without the last packet, the recording just ends earlier.
    for end in &ends[1..ends.len() - 1] {
        stream[end - 1] ^= 1;
        let lost = losses(&stream);
        assert!(lost.len() == 1 && lost[0].0 < lost[0].1, "{end} of {ends:?}: {lost:?}");
        stream[end - 1] ^= 1;
    }
}
