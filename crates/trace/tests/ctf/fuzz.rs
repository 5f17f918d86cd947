//! The fuzzer's inputs, changed at random but always in the same way: what `cargo fuzz` does, as far as it
//! goes on any machine in a moment. Also makes the corpus it begins with.

use crate::generate::*;
use punctual_trace::ctf::{Options, Reader};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../fuzz/fuzz_targets/input.rs"]
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

/// SplitMix64: numbers that are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    /// A place in the input; mostly among its first bytes, where its headers are.
    fn place(&mut self, length: usize) -> usize {
        if self.below(3) == 0 { self.below(length.min(140)) } else { self.below(length) }
    }

    /// Flips, overwrites, cuts, repeats and splices.
    fn change(&mut self, input: &mut Vec<u8>, others: &[Vec<u8>]) {
        let at = self.place(input.len());
        let to = (at + self.below(300)).min(input.len());
        match self.below(7) {
            _ if input.is_empty() => input.push(self.below(256) as u8),
            0 | 1 => input[at] ^= 1 << self.below(8),
            2 => input[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => input[at..to].fill(if self.below(2) == 0 { 0 } else { 0xff }),
            4 => drop(input.drain(at..to)),
            5 => input.truncate(at),
            _ => {
                let other = &others[self.below(others.len())];
                let from = self.below(other.len());
                let to = (from + self.below(600)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}

#[test]
fn inputs_of_the_corpus_are_read() {
    let inputs = inputs();
    assert!(inputs.len() >= 4);
    inputs.iter().for_each(|input| input::read(input));
    // They are what they are meant to be: one that is whole has no damage.
    let metadata = include_bytes!("../../fuzz/metadata");
    let whole = inputs.iter().find(|input| input[0] == 0).expect("a stream");
    let reader = Reader::in_memory(metadata, vec![(0, whole[1..].to_vec())]).expect("a recording");
    assert_eq!(reader.damage(), [], "recordings of version 1 are not read any more");
    assert!(reader.complete() && read_all(&reader).len() > 50);
}

#[test]
fn changed_inputs_neither_panic_nor_run_away() {
    let inputs = inputs();
    let mut numbers = Numbers(3);
    for round in 0..ROUNDS {
        let mut input = inputs[round % inputs.len()].clone();
        for _ in 0..=numbers.below(4) {
            numbers.change(&mut input, &inputs);
        }
        input::read(&input);
    }
}

#[test]
#[ignore = "writes an input with every event: to be run when there are more; the others are of version 1, which is read as well"]
fn make_an_input_with_every_event() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let mut records = periodic(2, 30);
    records.extend(one_of_each());
    make(&folder, &some_about(), &Options { packet_bytes: 0, ..Options::default() }, &records);
    let metadata = fs::read(folder.join("metadata")).unwrap();
    let stream = fs::read(folder.join("stream_0")).unwrap();
    let length = (metadata.len() as u16).to_le_bytes();
    fs::write(corpus().join("events"), [&[3], &length[..], &metadata, &stream].concat()).unwrap();
}
