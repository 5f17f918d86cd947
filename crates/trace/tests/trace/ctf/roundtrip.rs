//! What goes in comes out.

use super::generate::*;
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::{Duration, Instant};
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{ErrorKind, Record};

proptest! {
    #[test]
    fn every_record_is_read_back_unchanged(
        records in vec(record(), 0..300),
        about in about(),
        until in any::<u64>(),
        (lost, untracked, skipped) in any::<(u64, u64, u64)>(),
        stolen_ms in 0..1_u64 << 31,
        notes in vec("[a-zµ ×]{0,600}", 0..4),
    ) {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("recording");
        let options = Options { packet_bytes: 0, ..Options::default() };
        let mut recorder = Recorder::create(&folder, &about, &options)?;
        for record in &records {
            recorder.record(record)?;
        }
        let stolen = Duration::from_ms(stolen_ms);
        let totals = punctual_trace::Totals { lost, untracked, skipped, stolen };
        let until = Instant::from_ns(until);
        notes.iter().for_each(|note| recorder.note(note.clone()));
        let recorded = recorder.finish(until, totals)?;
        let reader = Reader::open(&folder)?;
        prop_assert_eq!(without_known(&read_all(&reader)), without_known(&records));
        prop_assert_eq!(reader.about(), &about);
        prop_assert_eq!(reader.totals(), totals);
        prop_assert_eq!(reader.until(), until.max(about.from));
        let whole = |note: &String| note.len() < 1_000;
        prop_assert_eq!(reader.notes().len(), notes.len());
        for (read, note) in reader.notes().iter().zip(&notes) {
            prop_assert!(if whole(note) { read == note } else { note.starts_with(read.as_str()) }, "{note}");
        }
        prop_assert!(reader.complete());
        prop_assert_eq!(reader.damage(), []);
        let is_activation = |record: &&Record| matches!(record, Record::Activation(_));
        let activations = records.iter().filter(is_activation).count() as u64;
        prop_assert_eq!(recorded.activations, activations);
        let counted: u64 = (0..reader.stretches()).map(|index| reader.stretch(index).activations).sum();
        prop_assert_eq!(counted, activations);
        let lengths = std::fs::read_dir(&folder)?.map(|entry| entry.unwrap().metadata().unwrap().len());
        let on_disk: u64 = lengths.sum();
        prop_assert_eq!(recorded.bytes, on_disk);
    }
}

proptest! {
    // Among others few would fit the compact layouts, since timestamps do not go back.
    #[test]
    fn activations_at_layout_limits_are_read_back(activations in vec(usual_activation(), 200)) {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("recording");
        let records: Vec<Record> = activations.into_iter().map(Record::Activation).collect();
        make(&folder, &some_about(), &Options::default(), &records);
        prop_assert_eq!(read_all(&Reader::open(&folder)?), records);
    }
}

#[test]
fn bystanders_are_read_back() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let Record::Task(task) = seen(1, 5) else { unreachable!() };
    let records = [Record::Bystander(task), Record::BystanderExit { tid: 1, at: Instant::from_ns(9) }];
    make(&folder, &some_about(), &Options::default(), &records);
    assert_eq!(read_all(&Reader::open(&folder).unwrap()), records);
}

#[test]
fn known_records_are_read_back() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let Record::Task(task) = seen(1, 5) else { unreachable!() };
    make(&folder, &some_about(), &Options::default(), &[Record::Known(task.clone())]);
    assert_eq!(read_all(&Reader::open(&folder).unwrap()), [Record::Known(task)]);
}

#[test]
fn texts_lose_only_what_the_format_cannot_hold() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let long = "ü".repeat(50_000);
    let name = |name: &str| Record::Renamed { tid: 1, sequence: 0, name: name.to_owned() };
    make(
        &folder,
        &some_about(),
        &Options { packet_bytes: 0, ..Options::default() },
        &[name("a\0b\0"), name(&long)],
    );
    assert_eq!(read_all(&Reader::open(&folder).unwrap()), [name("ab"), name(&long[..65_534])]);
}

#[test]
fn an_activation_takes_at_most_48_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let recorded = make(&folder, &some_about(), &Options::default(), &periodic(4, 25_000));
    let each = recorded.bytes as f64 / recorded.activations as f64;
    assert!(each <= 48.0, "{each} bytes");
}

#[test]
fn a_folder_with_content_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("letter"), "dear").unwrap();
    let error = Recorder::create(scratch.path(), &some_about(), &Options::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let error =
        Recorder::create(&scratch.path().join("no/where"), &some_about(), &Options::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = Recorder::create(
        &scratch.path().join("new"),
        &some_about(),
        &Options { limit: Some(1000), ..Options::default() },
    )
    .err()
    .unwrap();
    assert_eq!(error.kind(), ErrorKind::Options);
}

#[test]
fn folders_that_are_not_recordings_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(Reader::open(&scratch.path().join("nothing")).err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(Reader::open(scratch.path()).err().unwrap().kind(), ErrorKind::NotATrace);
    let metadata = scratch.path().join("metadata");
    std::fs::write(scratch.path().join("perf.data"), "PERFILE2").unwrap();
    assert_eq!(Reader::open(&scratch.path().join("perf.data")).err().unwrap().kind(), ErrorKind::NotATrace);
    std::fs::remove_file(scratch.path().join("perf.data")).unwrap();
    std::fs::write(
        &metadata,
        "/* CTF 1.8 */\n\ntrace {\n\tmajor = 1;\n};\nenv {\n\ttracer_name = \"lttng-modules\";\n};\n",
    )
    .unwrap();
    let error = Reader::open(scratch.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotATrace);
    std::fs::remove_file(&metadata).unwrap();
    make(scratch.path(), &some_about(), &Options::default(), &[]);
    let text = std::fs::read_to_string(&metadata).unwrap();
    std::fs::write(&metadata, text.replace("format_version = 13;", "format_version = 14;")).unwrap();
    // The checksum says that it was changed, so the version is not believed.
    assert_eq!(Reader::open(scratch.path()).unwrap().damage().len(), 1);
    let of_version = |version: u32| {
        let body = text.replace("format_version = 13;", &format!("format_version = {version};"));
        let body = &body[..body.rfind("/* crc32").unwrap()];
        let crc = crc32fast::hash(body.as_bytes());
        std::fs::write(&metadata, format!("{body}/* crc32 0x{crc:08x}: of all before this line */\n"))
            .unwrap();
        Reader::open(scratch.path())
    };
    for version in 1..=13 {
        assert_eq!(of_version(version).unwrap().damage(), [], "version {version}");
    }
    assert_eq!(of_version(14).err().unwrap().kind(), ErrorKind::Version);
    assert_eq!(of_version(0).err().unwrap().kind(), ErrorKind::Version);
}
