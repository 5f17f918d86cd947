//! The fuzz targets in ordinary tests, on the same inputs every time: as many mutations as take some two
//! seconds. `make fuzz` looks for new findings.

use punctual_test_support::FuzzTarget;

#[path = "../../fuzz/fuzz_targets/inputs/lime.rs"]
pub mod lime;
#[path = "../../fuzz/fuzz_targets/inputs/lttng.rs"]
pub mod lttng;
#[path = "../../fuzz/fuzz_targets/inputs/perf.rs"]
pub mod perf;
#[path = "../../fuzz/fuzz_targets/inputs/perfetto.rs"]
pub mod perfetto;
#[path = "../../fuzz/fuzz_targets/inputs/place.rs"]
mod place;
#[path = "../../fuzz/fuzz_targets/inputs/ros2.rs"]
pub mod ros2;
#[path = "../../fuzz/fuzz_targets/inputs/text.rs"]
pub mod text;
#[path = "../../fuzz/fuzz_targets/inputs/trace_dat.rs"]
pub mod trace_dat;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");
const LIME: FuzzTarget = FuzzTarget { name: "lime", folder: FOLDER, read: lime::read };
const LTTNG: FuzzTarget = FuzzTarget { name: "lttng", folder: FOLDER, read: lttng::read };
const PERF: FuzzTarget = FuzzTarget { name: "perf", folder: FOLDER, read: perf::read };
const PERFETTO: FuzzTarget = FuzzTarget { name: "perfetto", folder: FOLDER, read: perfetto::read };
const ROS2: FuzzTarget = FuzzTarget { name: "ros2", folder: FOLDER, read: ros2::read };
const TEXT: FuzzTarget = FuzzTarget { name: "text", folder: FOLDER, read: text::read };
const TRACE_DAT: FuzzTarget = FuzzTarget { name: "trace_dat", folder: FOLDER, read: trace_dat::read };

#[test]
fn lime_reads_its_corpus() {
    LIME.reads_corpus();
}

#[test]
fn lime_survives_mutations() {
    LIME.reads_mutations(5_000);
}

#[test]
fn lttng_reads_its_corpus() {
    LTTNG.reads_corpus();
}

#[test]
fn lttng_survives_mutations() {
    LTTNG.reads_mutations(20_000);
}

#[test]
fn perf_reads_its_corpus() {
    PERF.reads_corpus();
}

#[test]
fn perf_survives_mutations() {
    PERF.reads_mutations(20_000);
}

#[test]
fn perfetto_reads_its_corpus() {
    PERFETTO.reads_corpus();
}

#[test]
fn perfetto_survives_mutations() {
    PERFETTO.reads_mutations(20_000);
}

#[test]
fn ros2_reads_its_corpus() {
    ROS2.reads_corpus();
}

#[test]
fn ros2_survives_mutations() {
    ROS2.reads_mutations(3_000);
}

#[test]
fn text_reads_its_corpus() {
    TEXT.reads_corpus();
}

#[test]
fn text_survives_mutations() {
    TEXT.reads_mutations(10_000);
}

#[test]
fn trace_dat_reads_its_corpus() {
    TRACE_DAT.reads_corpus();
}

#[test]
fn trace_dat_survives_mutations() {
    TRACE_DAT.reads_mutations(50_000);
}
