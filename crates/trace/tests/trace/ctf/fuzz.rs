//! The fuzzer's corpus of recordings: version 1 is still read. Also writes the input with every event.

use super::dispatch::one_of_each_dispatch;
use super::generate::*;
use super::latency::one_of_each_latency;
use punctual_trace::ctf::{Options, Reader};
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/reader")
}

#[test]
fn version_1_is_read_without_damage() {
    let metadata = include_bytes!("../../../fuzz/metadata");
    let stream = fs::read(corpus().join("stream")).expect("an input");
    assert_eq!(stream[0], 0, "the kind of an input that is a stream");
    let reader = Reader::in_memory(metadata, vec![(0, stream[1..].to_vec())]).expect("a recording");
    assert_eq!(reader.damage(), []);
    assert!(reader.complete() && read_all(&reader).len() > 50);
}

#[test]
#[ignore = "rewrites the input `events`: run it when an event is added; the other inputs keep version 1"]
fn write_input_with_every_event() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let mut records = periodic(2, 30);
    records.extend(one_of_each());
    records.extend(one_of_each_latency());
    records.extend(one_of_each_dispatch());
    make(&folder, &some_about(), &Options { packet_bytes: 0, ..Options::default() }, &records);
    let metadata = fs::read(folder.join("metadata")).unwrap();
    let stream = fs::read(folder.join("stream_0")).unwrap();
    let length = (metadata.len() as u16).to_le_bytes();
    fs::write(corpus().join("events"), [&[3], &length[..], &metadata, &stream].concat()).unwrap();
}
