//! Traces that were cut off or damaged.

use super::generate::*;
use crate::fuzz::flow as input;
use punctual_test_support::Mutator;
use punctual_trace::flow::{ByteOrder, Event, Item, Reader};
use std::collections::HashSet;

const PACKET: usize = 256;
const EVENTS_IN_PACKET: usize = (PACKET - 48) / 8;

/// Streams by number.
type Streams = Vec<(u64, Vec<u8>)>;

fn trace(order: ByteOrder, number: u64) -> (Vec<u8>, Streams, Vec<Event>) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("trace");
    let written = rounds(number);
    write(&folder, &some_about(order), PACKET, &written);
    let (metadata, streams) = files(&folder);
    (metadata, streams, written)
}

/// Whatever is cut off, what is whole of a stream before is there, and that more was there is said.
#[test]
fn a_truncated_stream_is_read_up_to_its_last_whole_packet() {
    let (metadata, streams, written) = trace(ByteOrder::Little, 100);
    let events_of = |events: &[Event], producer| {
        events.iter().filter(|event| event.producer == producer).copied().collect::<Vec<_>>()
    };
    for length in 0..=streams[0].1.len() {
        let mut cut = streams.clone();
        cut[0].1.truncate(length);
        let reader = Reader::in_memory(&metadata, cut).unwrap();
        let (items, totals) = read(&reader);
        let found = events(&items);
        for producer in [1, 2] {
            assert_eq!(events_of(&found, producer), events_of(&written, producer));
        }
        let whole = (length / PACKET * EVENTS_IN_PACKET).min(events_of(&written, 0).len());
        assert_eq!(events_of(&found, 0), events_of(&written, 0)[..whole], "{length}");
        assert_eq!(totals.damages.is_empty(), length % PACKET == 0, "{length}: {:?}", totals.damages);
        assert_eq!(items.iter().any(|item| matches!(item, Item::Gap(_))), length % PACKET != 0, "{length}");
    }
}

#[test]
fn truncated_metadata_loses_only_names() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let (metadata, streams, written) = trace(order, 10);
        for length in 0..metadata.len() - 1 {
            // At a tick, order does not depend on names either.
            match Reader::in_memory(&metadata[..length], streams.clone()) {
                Ok(reader) => assert_eq!(events(&read(&reader).0), written, "{length}"),
                Err(error) => assert!(error.to_string().contains("do not say domain"), "{length}: {error}"),
            }
        }
    }
}

/// A damaged packet costs its own events alone.
#[test]
fn a_damaged_header_costs_only_its_packet() {
    let (metadata, streams, written) = trace(ByteOrder::Little, 100);
    let packets = streams[0].1.len() / PACKET;
    let all: HashSet<String> = written.iter().map(|event| format!("{event:?}")).collect();
    for packet in 0..packets {
        for (at, bits) in [
            (0, 1),
            (4, 8),
            (8, 16),
            (15, 128),
            (16, 64),
            (23, 128),
            (24, 4),
            (27, 1),
            (28, 16),
            (35, 64),
            (39, 128),
            (40, 1),
            (44, 2),
        ] {
            let mut damaged = streams.clone();
            damaged[0].1[packet * PACKET + at] ^= bits;
            let (items, totals) = read(&Reader::in_memory(&metadata, damaged).unwrap());
            let found = events(&items);
            assert!(
                written.len() - found.len() <= EVENTS_IN_PACKET,
                "packet {packet}, byte {at}: {} left out",
                written.len() - found.len()
            );
            // What is there was written, whatever is missing.
            if (8..16).contains(&at) && found.len() == written.len() {
                continue;
            }
            assert!(
                found.iter().all(|event| all.contains(&format!("{event:?}"))),
                "packet {packet}, byte {at}"
            );
            assert!(found.len() == written.len() || !totals.damages.is_empty(), "packet {packet}, byte {at}");
        }
    }
}

#[test]
fn mutations_cause_no_panic_and_no_endless_loop() {
    let mut mutator = Mutator::new(6);
    let traces = [ByteOrder::Little, ByteOrder::Big].map(|order| trace(order, 12));
    for round in 0..5_000 {
        let (metadata, streams, _) = &traces[round % 2];
        let (mut metadata, mut streams) = (metadata.clone(), streams.clone());
        for _ in 0..=mutator.below(4) {
            match mutator.below(5) {
                0 => mutator.change(&mut metadata),
                _ => {
                    let stream = mutator.below(streams.len());
                    mutator.change(&mut streams[stream].1);
                }
            }
        }
        input::open(&metadata, streams);
    }
}
