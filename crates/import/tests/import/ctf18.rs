//! Any trace in CTF 1.8: what babeltrace2 reads of it, what is cut off, and what makes no sense.

use crate::fuzz::lttng as input;
use punctual_import::ctf18::{Item, Lost, Reader, Totals};
use punctual_import::ros2::{Trace, Variables};
use punctual_test_lttng::ctf::{Layout, stream_path};
use punctual_test_lttng::ros2::Tracer;
use punctual_test_lttng::system::System;
use punctual_test_support::Mutator;
use punctual_trace::flow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Events by name, gaps, and what else was found.
pub fn read(reader: &Reader) -> (BTreeMap<String, u64>, Vec<Lost>, Totals) {
    let (mut counts, mut gaps, mut last) = (BTreeMap::new(), Vec::new(), 0);
    let mut each = |item: &Item<'_>| {
        match item {
            Item::Event(event) => {
                assert!(event.at.ns() >= last, "in order of time");
                last = event.at.ns();
                *counts.entry(reader.classes()[event.class].name.clone()).or_default() += 1;
            }
            Item::Lost(lost) => gaps.push(*lost),
        }
        true
    };
    let totals = reader.read(&mut each, &mut |_| {}).unwrap();
    (counts, gaps, totals)
}

/// The same by babeltrace2; `None`, and said, where there is none.
fn babeltrace(folder: &Path) -> Option<BTreeMap<String, u64>> {
    let output = match Command::new("babeltrace2").arg("--no-delta").arg(folder).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: babeltrace2 cannot be run: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let name = line.split_whitespace().find(|word| word.starts_with("ros2") && word.ends_with(':'));
        *counts.entry(name.expect("an event").trim_end_matches(':').to_owned()).or_default() += 1;
    }
    Some(counts)
}

pub fn simulated(layout: Layout, events: u64) -> (tempfile::TempDir, u64) {
    let place = tempfile::tempdir().unwrap();
    let books = System::new(Tracer::Jazzy, 1).write(place.path(), layout, events).unwrap();
    (place, books.events)
}

/// A folder of `shared/data` beside the repository, which is not ours to ship.
pub fn shared(name: &str) -> Option<PathBuf> {
    let of = |folder: &Path| folder.join("shared/data").join(name);
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(of).find(|path| path.is_dir());
    if found.is_none() {
        skipped!("shared/data/{name} is not beside the repository");
    }
    found
}

fn sample() -> Option<PathBuf> {
    shared("ros2/end_to_end_sample")
}

#[test]
fn babeltrace_reads_the_same_events() {
    let large = Layout { has_large_headers: true, packet_bytes: 65_536, ..Tracer::Jazzy.layout() };
    for layout in [Tracer::Jazzy.layout(), Layout { is_big: true, ..Tracer::Jazzy.layout() }, large] {
        let (place, events) = simulated(layout, 5_000);
        let (counts, gaps, totals) = read(&Reader::open(place.path()).unwrap());
        assert_eq!((totals.events, gaps.len(), totals.damages.len()), (events, 0, 0));
        let Some(expected) = babeltrace(place.path()) else { return };
        assert_eq!(counts, expected);
    }
}

#[test]
fn the_sample_of_caret_is_read_as_babeltrace_reads_it() {
    let Some(sample) = sample() else { return };
    let (counts, gaps, totals) = read(&Reader::open(&sample).unwrap());
    assert_eq!((totals.events, gaps.len(), totals.damages.len()), (2_880, 0, 0));
    let Some(expected) = babeltrace(&sample) else { return };
    assert_eq!(counts, expected);
}

#[test]
fn the_sample_of_caret_is_imported() {
    let Some(sample) = sample() else { return };
    let place = tempfile::tempdir().unwrap();
    let trace = Trace::new(&sample, Reader::open(&sample).unwrap()).unwrap();
    let written = trace.write(place.path(), &Variables::Assumed, &mut |_| {}).unwrap();
    assert_eq!((written.nodes, written.executors), (6, 12));
    let reader = flow::Reader::open(place.path()).unwrap();
    let (mut starts, mut stops, mut takes) = (0, 0, 0);
    let mut pushes: BTreeMap<String, u64> = BTreeMap::new();
    let mut each = |item: flow::Item| match item {
        flow::Item::Event(event) if event.kind == flow::Kind::Start => starts += 1,
        flow::Item::Event(event) if event.kind == flow::Kind::Stop => stops += 1,
        flow::Item::Event(event) if event.kind == flow::Kind::Push => {
            *pushes.entry(reader.about().channel(event.object)).or_default() += 1;
        }
        flow::Item::Take(take) => takes += u64::from(take.number.is_some()),
        _ => {}
    };
    reader.read(&mut each, &mut |_| {}).unwrap();
    // babeltrace2 counts as many callbacks, and as many messages that were dispatched.
    assert_eq!((starts, stops), (480, 480));
    assert_eq!(takes, 333, "{:?}", written.notes);
    let published: u64 =
        pushes.iter().filter(|(name, _)| name.starts_with('/')).map(|(_, count)| *count).sum();
    assert_eq!(published, 265, "{pushes:?}");
    assert!(written.notes.iter().all(|note| note.contains("variables")), "{:?}", written.notes);
    let tasks: Vec<&str> = reader.about().tasks.values().map(String::as_str).collect();
    for task in ["/sensor_dummy_node:timer-100ms", "/filter_node:/topic1", "/actuator_dummy_node:/topic4"] {
        assert!(tasks.contains(&task), "{tasks:?}");
    }
}

/// The streams and the metadata, to be changed.
pub fn bytes(folder: &Path) -> (Vec<u8>, Vec<Vec<u8>>) {
    let streams = (0..4).map(|cpu| fs::read(stream_path(folder, cpu)).unwrap()).collect();
    (fs::read(folder.join("metadata")).unwrap(), streams)
}

#[test]
fn a_stream_that_is_cut_off_is_read_up_to_there() {
    let (place, events) = simulated(Tracer::Jazzy.layout(), 1_000);
    let (metadata, streams) = bytes(place.path());
    let mut before = 0;
    for length in (0..=streams[0].len()).step_by(61) {
        let mut cut = streams.clone();
        cut[0].truncate(length);
        let (_, _, totals) = read(&Reader::in_memory(&metadata, cut).unwrap());
        assert!(totals.events >= before && totals.events <= events, "{length}: {totals:?}");
        let is_whole = length % 4096 == 0;
        assert_eq!(totals.damages.is_empty(), is_whole, "{length}: {:?}", totals.damages);
        before = totals.events;
    }
    assert_eq!(read(&Reader::in_memory(&metadata, streams).unwrap()).2.events, events);
}

#[test]
fn a_damaged_packet_costs_itself_and_is_a_gap() {
    let (place, events) = simulated(Tracer::Jazzy.layout(), 1_000);
    let (metadata, streams) = bytes(place.path());
    for (at, what) in [(0, "there should be a packet"), (51, "impossible size"), (20, "no declared stream")] {
        let mut damaged = streams.clone();
        damaged[1][4096 + at] ^= 0xff;
        let (_, gaps, totals) = read(&Reader::in_memory(&metadata, damaged).unwrap());
        assert!((events - 150..events - 20).contains(&totals.events), "{what}: {totals:?}");
        assert_eq!((gaps.len(), totals.packets), (1, 1), "{what}: {gaps:?}");
        assert!(totals.damages[0].to_string().contains(what), "{}", totals.damages[0]);
    }
    // A packet that is missing altogether shows by the numbers.
    let mut missing = streams;
    missing[1].drain(4096..8192);
    let (_, gaps, totals) = read(&Reader::in_memory(&metadata, missing).unwrap());
    assert_eq!((gaps.len(), gaps[0].packets, totals.packets), (1, 1, 1));
}

/// A file that is no stream has lost nothing.
#[test]
fn a_stray_file_is_told_and_is_no_gap() {
    let (place, events) = simulated(Tracer::Jazzy.layout(), 1_000);
    let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(place.path().join("notes.bin"), &bytes).unwrap();
    let (_, gaps, totals) = read(&Reader::open(place.path()).unwrap());
    assert_eq!((gaps.len(), totals.packets, totals.events, totals.damages.len()), (0, 0, events, 1));
    // With the name of a stream, it may have been one.
    fs::rename(place.path().join("notes.bin"), place.path().join("ros2_9")).unwrap();
    let (_, gaps, totals) = read(&Reader::open(place.path()).unwrap());
    assert_eq!((gaps.len(), totals.packets, totals.damages.len()), (1, 1, 1));
}

/// Damage is told as damage: nobody discarded anything, and what was made may be in what is missing.
#[test]
fn damage_is_not_told_as_something_else() {
    for (length, changed) in [(Some(3 * 4096 + 100), None), (None, Some(0))] {
        let (place, _) = simulated(Tracer::Jazzy.layout(), 5_000);
        let path = stream_path(place.path(), 0);
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(length.unwrap_or(bytes.len()));
        changed.into_iter().for_each(|at: usize| bytes[at] ^= 0xff);
        fs::write(&path, bytes).unwrap();
        let out = tempfile::tempdir().unwrap();
        let trace = Trace::new(place.path(), Reader::open(place.path()).unwrap()).unwrap();
        let written = trace.write(out.path(), &Variables::Assumed, &mut |_| {}).unwrap();
        let before = written.notes.iter().find(|note| note.contains("before the trace began"));
        assert_eq!(before, None, "{:?}", written.notes);
        assert!(written.notes.iter().any(|note| note.contains("missing or damaged")), "{:?}", written.notes);
        let reader = flow::Reader::open(out.path()).unwrap();
        let totals = reader.read(&mut |_| {}, &mut |_| {}).unwrap();
        assert_eq!((totals.discarded, totals.damages.len(), totals.damaged_packets), (0, 0, 0));
        assert!(totals.missing_packets > 0, "{totals:?}");
    }
}

#[test]
fn metadata_that_are_cut_off_are_an_error() {
    let (place, _) = simulated(Tracer::Jazzy.layout(), 100);
    let (metadata, streams) = bytes(place.path());
    for length in (1..metadata.len() - 4096).step_by(509) {
        let result = Reader::in_memory(&metadata[..length], streams.clone());
        let Err(error) = result else {
            // At the end of a packet, between two blocks, nothing is missing that could be seen.
            assert_eq!(length % 4096, 0);
            continue;
        };
        assert!(error.to_string().starts_with("(memory): "), "{error}");
    }
}

#[test]
fn changed_traces_give_errors_or_less() {
    let (place, _) = simulated(Tracer::Jazzy.layout(), 400);
    let (metadata, streams) = bytes(place.path());
    let mut mutator = Mutator::new(5);
    for round in 0..600 {
        let (mut metadata, mut streams) = (metadata.clone(), streams.clone());
        for _ in 0..=mutator.below(3) {
            let stream = mutator.below(4);
            mutator.change(if round % 3 == 0 { &mut metadata } else { &mut streams[stream] });
        }
        input::open(&metadata, streams);
    }
}

#[test]
fn types_that_would_take_all_memory_or_time_are_refused() {
    let mut text = String::from("typealias integer { size = 8; } := t0;");
    for level in 1..40 {
        text.push_str(&format!("typealias struct {{ t{} a; t{} b; }} := t{level};", level - 1, level - 1));
    }
    text.push_str("event { name = e; fields := struct { t39 x; }; };");
    let error = Reader::in_memory(text.as_bytes(), Vec::new()).err().expect("too large");
    assert!(error.to_string().contains("too large"), "{error}");
    let text =
        "trace { byte_order = le; }; event { name = e; fields := struct { struct {} x[4000000000]; }; };";
    let (counts, _, totals) = read(&Reader::in_memory(text.as_bytes(), vec![vec![0; 64]]).unwrap());
    assert!(counts.is_empty() && totals.damages.len() == 1, "{:?}", totals.damages);
}

#[test]
fn discarded_events_are_counted_and_nothing_is_followed_across() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("trace");
    System::new(Tracer::Jazzy, 2).with_losses(500).write(&folder, Tracer::Jazzy.layout(), 20_000).unwrap();
    let reader = Reader::open(&folder).unwrap();
    let (_, gaps, totals) = read(&reader);
    assert!(totals.discarded > 300 && gaps.iter().all(|gap| gap.events > 0), "{totals:?}");
    let trace = Trace::new(&folder, reader).unwrap();
    let written = trace.write(&place.path().join("flow"), &Variables::Assumed, &mut |_| {}).unwrap();
    let note = format!("{} × events that the tracer discarded", totals.discarded);
    assert!(written.notes.iter().any(|it| it.starts_with(&note)), "{:?}", written.notes);
    let reader = flow::Reader::open(&place.path().join("flow")).unwrap();
    let mut gaps = 0;
    let found = reader.read(&mut |item| gaps += usize::from(matches!(item, flow::Item::Gap(_))), &mut |_| {});
    assert!(gaps > 0 && found.unwrap().discarded >= totals.discarded / 2);
}

/// Of a stream whose first packets are not there, nothing is known up to where it begins.
#[test]
fn missing_packets_at_the_beginning_are_noted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("trace");
    System::new(Tracer::Jazzy, 2).write(&folder, Tracer::Jazzy.layout(), 20_000).unwrap();
    let notes = |flow: &str| {
        let trace = Trace::new(&folder, Reader::open(&folder).unwrap()).unwrap();
        let flow = place.path().join(flow);
        let written = trace.write(&flow, &Variables::Assumed, &mut |_| {}).unwrap();
        let totals = flow::Reader::open(&flow).unwrap().read(&mut |_| {}, &mut |_| {}).unwrap();
        (written.notes, totals.missing_packets)
    };
    let is_said = |notes: &[String]| notes.iter().any(|note| note.contains("its first packets are missing"));
    let (whole, missing) = notes("whole");
    assert!(!is_said(&whole) && missing == 0, "{whole:?}");
    let path = stream_path(&folder, 0);
    let bytes = std::fs::read(&path).unwrap();
    let bits = u64::from_le_bytes(bytes[56..64].try_into().unwrap());
    std::fs::write(&path, &bytes[bits as usize / 8..]).unwrap();
    let (beheaded, missing) = notes("beheaded");
    assert!(is_said(&beheaded) && missing > 0, "{missing} {beheaded:?}");
}

/// Events that the kernel's tracer discarded are none of the program's.
#[test]
fn losses_of_the_kernels_trace_are_not_the_programs() {
    use punctual_test_lttng::ctf::Writer;
    use punctual_test_lttng::kernel;
    let place = tempfile::tempdir().unwrap();
    let session = place.path().join("session");
    System::new(Tracer::Jazzy, 2).write(&session.join("ust"), Tracer::Jazzy.layout(), 2_000).unwrap();
    let mut writer = Writer::create(&session.join("kernel"), kernel::layout(), 1).unwrap();
    let fields = kernel::switch(kernel::IDLE, 0, ("control", 40, 39));
    for at in [1_000, 2_000] {
        writer.event(0, at, "sched_switch", &[], &fields).unwrap();
        writer.discard(0, 77).unwrap();
    }
    writer.finish().unwrap();
    let trace = Trace::new(&session, Reader::open(&session).unwrap()).unwrap();
    let written = trace.write(&place.path().join("flow"), &Variables::Assumed, &mut |_| {}).unwrap();
    assert!(!written.notes.iter().any(|note| note.contains("discarded")), "{:?}", written.notes);
    let reader = flow::Reader::open(&place.path().join("flow")).unwrap();
    assert_eq!(reader.read(&mut |_| {}, &mut |_| {}).unwrap().discarded, 0);
}
