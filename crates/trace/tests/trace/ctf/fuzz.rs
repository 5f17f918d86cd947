//! The fuzz target on its corpus and on seeded mutations of it: what `cargo fuzz` does, in short and without
//! a fuzzer. Also writes the corpus.

use super::dispatch::one_of_each_dispatch;
use super::generate::*;
use super::latency::one_of_each_latency;
use crate::mutate::Mutator;
use punctual_trace::ctf::{Options, Reader};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/fuzz_targets/input.rs"]
mod input;

const ROUNDS: usize = 20_000;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/reader")
}

fn inputs() -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpus()).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("an input")).collect()
}

/// A place to change; often among the first bytes, where the headers are.
fn place(mutator: &mut Mutator, length: usize) -> usize {
    let end = if mutator.below(3) == 0 { length.min(140) } else { length };
    mutator.below(end)
}

#[test]
fn reads_the_corpus() {
    let inputs = inputs();
    assert!(inputs.len() >= 4);
    inputs.iter().for_each(|input| input::read(input));
    // The corpus is what it should be: the whole stream has no damage.
    let metadata = include_bytes!("../../../fuzz/metadata");
    let whole = inputs.iter().find(|input| input[0] == 0).expect("a stream");
    let reader = Reader::in_memory(metadata, vec![(0, whole[1..].to_vec())]).expect("a recording");
    assert_eq!(reader.damage(), [], "version 1 is no longer read");
    assert!(reader.complete() && read_all(&reader).len() > 50);
}

#[test]
fn mutations_cause_no_panic_and_no_endless_loop() {
    let inputs = inputs();
    let mut mutator = Mutator(3);
    for round in 0..ROUNDS {
        let mut input = inputs[round % inputs.len()].clone();
        for _ in 0..=mutator.below(4) {
            let at = place(&mut mutator, input.len());
            mutator.change(&mut input, at, &inputs);
        }
        input::read(&input);
    }
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
