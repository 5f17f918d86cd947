//! Imports an input as a trace of ROS 2. Called by the fuzzer and by `tests/fuzz.rs`.

use super::place::Place;
use punctual_import::ctf18::Reader;
use punctual_import::ros2::{Trace, Variables, is_ros};
use std::path::Path;

/// The first two bytes say how long the metadata are; a stream follows.
pub fn read(data: &[u8]) {
    let Some((length, data)) = data.split_first_chunk() else { return };
    let (metadata, stream) = data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()));
    let Ok(reader) = Reader::in_memory(metadata, vec![stream.to_vec()]) else { return };
    if !is_ros(&reader) {
        return;
    }
    let Ok(trace) = Trace::new(Path::new("(memory)"), reader) else { return };
    let place = Place::new("ros2");
    if let Ok(written) = trace.write(place.path(), &Variables::Assumed, &mut |_| {}) {
        assert!(written.notes.len() <= 400, "{} notes", written.notes.len());
    }
}
