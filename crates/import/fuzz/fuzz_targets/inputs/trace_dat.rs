//! Imports an input as a `trace.dat`. Called by the fuzzer and by `tests/fuzz.rs`; `tests/import` imports
//! changed files with it.

use punctual_import::{Import, Options};
use std::path::Path;

/// Reads all of it.
pub fn read(data: &[u8]) {
    let options = Options { include_best_effort: true, ..Options::default() };
    let Ok(import) = Import::of_trace_dat(Path::new("(memory)"), data.to_vec(), &options) else { return };
    let from = import.about().from;
    let imported = import.run(&mut |_| true, &mut |_| {});
    if let Ok(imported) = imported {
        assert!(imported.until >= from);
        assert!(imported.notes.len() <= 400, "{} notes", imported.notes.len());
    }
}
