//! Full disks and sudden ends.

use super::generate::*;
use punctual_model::Instant;
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{ErrorKind, Record};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A file system of a megabyte, while it lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where one may not mount, which is said.
    fn mount(at: &Path) -> Option<SmallDisk> {
        std::fs::create_dir(at).expect("a folder");
        let ran = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1M", "tmpfs"])
            .arg(at)
            .stderr(Stdio::piped())
            .output();
        match ran {
            Ok(output) if output.status.success() => Some(SmallDisk(at.to_owned())),
            Ok(output) => {
                skipped!(
                    "cannot mount a small file system: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                );
                None
            }
            Err(error) => {
                skipped!("mount cannot be run: {error}");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_leaves_a_readable_recording() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&scratch.path().join("disk")) else { return };
    let folder = disk.0.join("recording");
    // More than the file system has room for, and the writer, which may fall behind, besides.
    let records = periodic(4, 60_000);
    let mut recorder =
        Recorder::create(&folder, &some_about(), &Options { packet_bytes: 64 << 10, ..Options::default() })
            .unwrap();
    let error = records.iter().find_map(|record| recorder.record(record).err()).expect("the disk to be full");
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(error.to_string().contains("stream_0") && error.to_string().contains("can be read"), "{error}");
    // It stays so.
    assert_eq!(
        recorder.record(&records[0]).and_then(|()| recorder.tick()).err().map(|error| error.kind()),
        Some(ErrorKind::Full)
    );
    assert_eq!(recorder.finish(UNTIL, totals(0)).err(), Some(error));
    let reader = Reader::open(&folder).unwrap();
    let read = without_known(&read_all(&reader));
    assert!(read.len() > 10_000);
    assert_eq!(read, records[..read.len()]);
    assert!(!reader.complete());
    let [damage] = &reader.damage()[..] else { panic!("{:?}", reader.damage()) };
    assert!(damage.to_string().contains("not ended"), "{damage}");
}

#[test]
fn a_disk_without_space_for_metadata_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&scratch.path().join("disk")) else { return };
    let _ = std::fs::write(disk.0.join("filler"), vec![0; 2 << 20]);
    let error =
        Recorder::create(&disk.0.join("recording"), &some_about(), &Options::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    // Nothing is in the way of another try.
    assert!(!disk.0.join("recording").exists());
}

/// Not a test of its own: the process that is killed. It records, and does not end by itself.
#[test]
fn child_that_records_without_end() {
    let Some(folder) = std::env::var_os("PUNCTUAL_TEST_RECORD_INTO") else { return };
    let mut recorder = Recorder::create(
        Path::new(&folder),
        &some_about(),
        &Options { packet_bytes: 4096, ..Options::default() },
    )
    .unwrap();
    periodic(4, 100_000).iter().for_each(|record| recorder.record(record).unwrap());
    loop {
        std::thread::park();
    }
}

/// A child that ends with the test, whatever that comes to.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_recording_of_a_killed_process_is_readable() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "ctf::hardship::child_that_records_without_end"])
        .env("PUNCTUAL_TEST_RECORD_INTO", &folder);
    let mut child = Killed(command.stdout(Stdio::null()).spawn().unwrap());
    let stream = folder.join("stream_0");
    while std::fs::metadata(&stream).map_or(0, |about| about.len()) < 1 << 20 {
        assert_eq!(child.0.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    drop(child);
    let reader = Reader::open(&folder).unwrap();
    assert!(!reader.complete());
    let damage = reader.damage();
    assert!(damage.len() == 1 && damage[0].to_string().contains("cut off"), "{damage:?}");
    let read = without_known(&read_all(&reader));
    assert!(read.len() > 20_000);
    assert_eq!(read, periodic(4, 100_000)[..read.len()]);
}

#[test]
fn dropping_a_recorder_keeps_all_records() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let records = periodic(2, 100);
    let mut recorder = Recorder::create(&folder, &some_about(), &Options::default()).unwrap();
    records.iter().for_each(|record| recorder.record(record).unwrap());
    drop(recorder);
    let reader = Reader::open(&folder).unwrap();
    assert_eq!(read_all(&reader), records);
    assert!(!reader.complete());
}

#[test]
fn a_packet_is_written_after_a_second() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let mut recorder = Recorder::create(&folder, &some_about(), &Options::default()).unwrap();
    recorder.record(&seen(1, 5)).unwrap();
    let begun = std::time::Instant::now();
    while !folder.join("stream_0").exists() || Reader::open(&folder).unwrap().stretches() == 0 {
        recorder.tick().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was written");
        std::thread::yield_now();
    }
    // The rest is not lost either, and time may have jumped.
    recorder.record(&Record::Exit { tid: 1, sequence: 1, at: Instant::from_ns(1 << 50) }).unwrap();
    recorder.finish(Instant::from_ns(1 << 60), totals(0)).unwrap();
    let reader = Reader::open(&folder).unwrap();
    let new = read_all(&reader).into_iter().filter(|record| !matches!(record, Record::Known(_)));
    assert_eq!(new.count(), 2);
    assert_eq!((reader.until(), reader.complete()), (Instant::from_ns(1 << 60), true));
}
