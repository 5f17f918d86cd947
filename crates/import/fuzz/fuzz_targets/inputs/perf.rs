//! Imports an input as a `perf.data`, or as what perf wrote to a pipe. Called by the fuzzer and by
//! `tests/fuzz.rs`.

use punctual_import::{Import, Options};
use std::path::Path;

/// Reads all of it.
pub fn read(data: &[u8]) {
    let options = Options { include_best_effort: true, ..Options::default() };
    let Ok(import) = Import::of_perf_data(Path::new("(memory)"), data.to_vec(), &options) else { return };
    if let Ok(imported) = import.run(&mut |_| true, &mut |_| {}) {
        assert!(imported.notes.len() <= 400, "{} notes", imported.notes.len());
    }
}
