//! Imports an input as a text of ftrace or perf script. Called by the fuzzer and by `tests/fuzz.rs`.

use punctual_import::{Import, Machine, Options};
use std::path::Path;

/// Reads all of it.
pub fn read(data: &[u8]) {
    let options = Options { include_best_effort: true, machine: Some(Machine::X86) };
    let Ok(import) = Import::of_text(Path::new("(memory)"), data.to_vec(), &options) else { return };
    let from = import.about().from;
    if let Ok(imported) = import.run(&mut |_| true, &mut |_| {}) {
        assert!(imported.until >= from);
        assert!(imported.notes.len() <= 400, "{} notes", imported.notes.len());
    }
}
