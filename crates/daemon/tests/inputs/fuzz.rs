//! The fuzzer's corpora, as they are: what `cargo fuzz` begins with, and whatever it found once. Goes on any
//! machine in a moment.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/fuzz_targets/inputs/configuration.rs"]
mod configuration;
#[path = "../../fuzz/fuzz_targets/inputs/protocol.rs"]
mod protocol;
#[path = "../../fuzz/fuzz_targets/inputs/rules.rs"]
mod rules;

fn each(target: &str, read: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files: Vec<_> =
        fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    assert!(files.len() >= 4);
    for file in files {
        eprintln!("{}", file.display());
        read(&fs::read(file).expect("an input"));
    }
}

#[test]
fn messages_of_the_corpus_are_answered() {
    each("protocol", protocol::read);
}

#[test]
fn configurations_of_the_corpus_are_read() {
    each("configuration", configuration::read);
}

#[test]
fn rules_of_the_corpus_are_read() {
    each("rules", rules::read);
}
