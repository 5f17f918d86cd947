//! Imports an input as a recording of LiME. Called by the fuzzer and by `tests/fuzz.rs`.

use super::place::Place;
use punctual_import::{Import, Options};
use std::fs;

/// What a thread is, and the events of two versions. Two bytes in front of the first two say how long they
/// are.
pub fn read(data: &[u8]) {
    let (infos, data) = split(data);
    let (first, second) = split(data);
    let place = Place::new("lime");
    for (name, bytes) in [
        ("40-0.infos.json", infos),
        ("40-1.infos.json", infos),
        ("40-0.events.json", first),
        ("40-1.events.json", second),
    ] {
        fs::write(place.path().join(name), bytes).expect("written");
    }
    let options = Options { include_best_effort: true, ..Options::default() };
    let Ok(import) = Import::open(place.path(), &options) else { return };
    let from = import.about().from;
    if let Ok(imported) = import.run(&mut |_| true, &mut |_| {}) {
        assert!(imported.until >= from);
        assert!(imported.notes.len() <= 400, "{} notes", imported.notes.len());
    }
}

fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, data)) = data.split_first_chunk() else { return (data, &[]) };
    data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()))
}
