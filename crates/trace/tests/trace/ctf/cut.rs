//! A recording that was cut off anywhere is read up to its last whole packet, and that is said.

use super::generate::*;
use punctual_trace::Record;
use punctual_trace::ctf::Reader;

/// Where each packet ends, and how many activations there are until then.
fn ends(stream: &[u8]) -> Vec<(usize, usize)> {
    let word = |at: usize| u64::from_le_bytes(stream[at..at + 8].try_into().unwrap()) as usize;
    let (mut at, mut activations) = (0, 0);
    let mut ends = Vec::new();
    while at < stream.len() {
        activations += word(at + 92);
        at += word(at + 52) / 8;
        ends.push((at, activations));
    }
    ends
}

#[test]
fn a_stream_cut_at_any_byte_is_read_to_its_last_whole_packet() {
    let (metadata, stream) = small(3, 120);
    let ends = ends(&stream);
    assert!(ends.len() > 3);
    let is_activation = |record: &Record| matches!(record, Record::Activation(_));
    let all: Vec<Record> = periodic(3, 120).into_iter().filter(is_activation).collect();
    for length in 0..=stream.len() {
        let reader = Reader::in_memory(metadata.as_bytes(), vec![(0, stream[..length].to_vec())]).unwrap();
        let expected =
            ends.iter().rfind(|(end, _)| *end <= length).map_or(0, |(_, activations)| *activations);
        let read: Vec<Record> = read_all(&reader).into_iter().filter(is_activation).collect();
        assert_eq!(read, all[..expected], "cut at {length}");
        assert_eq!(reader.complete(), length == stream.len());
        let damage = reader.damage();
        if length < stream.len() {
            assert_eq!(damage.len(), 1, "cut at {length}: {damage:?}");
            assert_eq!((damage[0].file(), damage[0].offset()), ("stream_0", length as u64), "{}", damage[0]);
            assert!(damage[0].to_string().contains("cut off"), "{}", damage[0]);
        } else {
            assert_eq!(damage, []);
        }
    }
}

#[test]
fn cut_metadata_leaves_the_packets_readable() {
    let (metadata, stream) = small(1, 40);
    let whole = Reader::in_memory(metadata.as_bytes(), vec![(0, stream.clone())]).unwrap();
    let all = read_all(&whole);
    for length in 0..metadata.len() {
        let reader = Reader::in_memory(&metadata.as_bytes()[..length], vec![(0, stream.clone())]).unwrap();
        assert_eq!(read_all(&reader), all, "cut at {length}");
        let damage = reader.damage();
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!((damage[0].file(), damage[0].offset()), ("metadata", length as u64), "{}", damage[0]);
        let about = reader.about();
        assert!(
            about.host.is_empty() || *about == some_about() || about.host == some_about().host,
            "{about:?}"
        );
        if length > metadata.find("};\n\nclock").unwrap() {
            assert_eq!(about, &some_about());
        }
    }
}

#[test]
fn zeros_at_the_end_count_as_a_cut() {
    let (metadata, stream) = small(1, 120);
    let (end, activations) = ends(&stream)[0];
    for zeros in [1, 19, 20, 21, 4096] {
        let reader =
            Reader::in_memory(metadata.as_bytes(), vec![(0, [&stream[..end], &vec![0; zeros]].concat())])
                .unwrap();
        let damage = reader.damage();
        assert!(damage.len() == 1 && damage[0].to_string().contains("cut off here"), "{damage:?}");
        assert_eq!((damage[0].offset(), read_all(&reader).len()), (end as u64, activations + 1));
    }
}

#[test]
fn a_recording_without_packets_is_valid() {
    let (metadata, _) = small(1, 1);
    for streams in [vec![], vec![(0, Vec::new())]] {
        let reader = Reader::in_memory(metadata.as_bytes(), streams).unwrap();
        assert_eq!((reader.stretches(), reader.until(), reader.complete()), (0, some_about().from, false));
        assert!(reader.damage()[0].to_string().contains("cut off"));
    }
}
