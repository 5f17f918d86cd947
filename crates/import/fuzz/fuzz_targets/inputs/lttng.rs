//! Reads an input as a trace in CTF 1.8 or CTF 2, and as one of ROS 2 or the kernel. Called by the fuzzer and
//! by `tests/fuzz.rs`; `tests/ctf18` and `tests/ctf2` open changed traces with it.

use punctual_import::ctf18::{Item, Reader};
use punctual_import::ros2::{Trace, is_ros};
use punctual_import::{Import, Machine, Options, has_kernel};
use std::path::Path;

/// The first two bytes say how long the metadata are; a stream follows.
#[allow(dead_code)]
pub fn read(data: &[u8]) {
    let Some((length, data)) = data.split_first_chunk() else { return };
    let (metadata, stream) = data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()));
    open(metadata, vec![stream.to_vec()]);
}

/// Reads all of it. There is not more in it than its bits can hold.
pub fn open(metadata: &[u8], streams: Vec<Vec<u8>>) {
    let bytes: usize = streams.iter().map(Vec::len).sum();
    let Ok(reader) = Reader::in_memory(metadata, streams) else { return };
    let (mut events, mut last) = (0, 0);
    let mut each = |item: &Item<'_>| {
        if let Item::Event(event) = item {
            assert!(event.at.ns() >= last);
            last = event.at.ns();
            events += 1;
        }
        true
    };
    let totals = reader.read(&mut each, &mut |_| {}).expect("memory can be read");
    assert!(events <= 8 * bytes, "{events} events from {bytes} bytes");
    assert_eq!(totals.events, events as u64);
    assert!(totals.damages.len() <= 400);
    if has_kernel(&reader) {
        let options = Options { include_best_effort: true, machine: Some(Machine::X86) };
        let Ok(import) = Import::of_session(Path::new("(memory)"), reader, &options) else { return };
        if let Ok(imported) = import.run(&mut |_| true, &mut |_| {}) {
            assert!(imported.notes.len() <= 400, "{} notes", imported.notes.len());
        }
    } else if is_ros(&reader) {
        if let Ok(trace) = Trace::new(Path::new("(memory)"), reader) {
            // An error is as good as a note.
            let _ = trace.lacks();
        }
    }
}
