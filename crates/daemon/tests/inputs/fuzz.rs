//! The fuzz targets in ordinary tests, on the same inputs every time: as many mutations as take some two
//! seconds. `make fuzz` looks for new findings.

use punctual_test_support::FuzzTarget;

#[path = "../../fuzz/fuzz_targets/inputs/configuration.rs"]
mod configuration;
#[path = "../../fuzz/fuzz_targets/inputs/protocol.rs"]
mod protocol;
#[path = "../../fuzz/fuzz_targets/inputs/rules.rs"]
mod rules;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");
const PROTOCOL: FuzzTarget = FuzzTarget { name: "protocol", folder: FOLDER, read: protocol::read };
const CONFIGURATION: FuzzTarget =
    FuzzTarget { name: "configuration", folder: FOLDER, read: configuration::read };
const RULES: FuzzTarget = FuzzTarget { name: "rules", folder: FOLDER, read: rules::read };

#[test]
fn messages_of_the_corpus_are_answered() {
    PROTOCOL.reads_corpus();
}

#[test]
fn mutated_messages_are_answered() {
    PROTOCOL.reads_mutations(600);
}

#[test]
fn configurations_of_the_corpus_are_read() {
    CONFIGURATION.reads_corpus();
}

#[test]
fn mutated_configurations_are_read() {
    CONFIGURATION.reads_mutations(40_000);
}

#[test]
fn rules_of_the_corpus_are_read() {
    RULES.reads_corpus();
}

#[test]
fn mutated_rules_are_read() {
    RULES.reads_mutations(10_000);
}
