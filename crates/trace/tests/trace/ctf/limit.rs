//! Recordings that may only take so much of the disk.

use super::generate::*;
use punctual_trace::Record;
use punctual_trace::ctf::{Dropped, MIN_LIMIT, Options, Reader, Recorder};
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::Path;

/// Of the files that are there: the recorder may remove one while they are counted.
fn bytes(folder: &Path) -> u64 {
    let length = |entry: DirEntry| match entry.metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => panic!("{}: {error}", entry.path().display()),
    };
    std::fs::read_dir(folder).unwrap().map(|entry| length(entry.unwrap())).sum()
}

#[test]
fn the_oldest_part_is_dropped_and_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let records = periodic(8, 10_000);
    let options = Options { limit: Some(MIN_LIMIT), ..Options::default() };
    let mut recorder = Recorder::create(&folder, &some_about(), &options).unwrap();
    for (index, record) in records.iter().enumerate() {
        recorder.record(record).unwrap();
        if index % 200 == 0 {
            assert!(bytes(&folder) <= MIN_LIMIT);
        }
    }
    let recorded = recorder.finish(UNTIL, totals(3)).unwrap();
    assert!(recorded.bytes <= MIN_LIMIT && recorded.bytes > MIN_LIMIT / 2, "{recorded:?}");
    assert_eq!(recorded.bytes, bytes(&folder));
    let reader = Reader::open(&folder).unwrap();
    assert_eq!(reader.damage(), []);
    assert_eq!(reader.dropped(), recorded.dropped);
    assert_eq!(recorded.activations + recorded.dropped.activations, 80_000);
    assert!(recorded.dropped.packets > 0);
    assert_eq!(reader.totals(), totals(3));
    assert!(reader.about().from > some_about().from);
    // What is left is the end of it, and begins with all threads, whose next records follow without a gap.
    let read = read_all(&reader);
    let left = without_known(&read);
    assert_eq!(left, records[records.len() - left.len()..]);
    assert!(read[..8].iter().all(|record| matches!(record, Record::Known(_))));
    // The first threads had done all their jobs before.
    for tid in 5..=8 {
        let of_thread: Vec<&Record> = read.iter().filter(|record| record.tid() == tid).collect();
        let (Record::Known(known), Record::Activation(first)) = (of_thread[0], of_thread[1]) else {
            panic!("{of_thread:?}")
        };
        assert_eq!((known.sequence, known.at), (first.sequence, reader.about().from));
    }
}

#[test]
fn without_a_limit_nothing_is_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let recorded = make(&folder, &some_about(), &Options::default(), &periodic(2, 20_000));
    assert_eq!(recorded.dropped, Dropped::default());
    assert_eq!(Reader::open(&folder).unwrap().dropped(), Dropped::default());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}
