//! The fuzz targets in ordinary tests, on the same inputs every time: as many mutations as take some two
//! seconds. `make fuzz` looks for new findings.

use punctual_test_support::FuzzTarget;

#[path = "../../fuzz/fuzz_targets/inputs/flow.rs"]
pub mod flow;
#[path = "../../fuzz/fuzz_targets/inputs/reader.rs"]
pub mod reader;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");
const READER: FuzzTarget = FuzzTarget { name: "reader", folder: FOLDER, read: reader::read };
const FLOW: FuzzTarget = FuzzTarget { name: "flow", folder: FOLDER, read: flow::read };

#[test]
fn reader_reads_its_corpus() {
    READER.reads_corpus();
}

#[test]
fn reader_survives_mutations() {
    READER.reads_mutations(20_000);
}

#[test]
fn flow_reads_its_corpus() {
    FLOW.reads_corpus();
}

#[test]
fn flow_survives_mutations() {
    FLOW.reads_mutations(25_000);
}
