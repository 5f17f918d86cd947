//! Other tools' traces, in one program so that it is linked once: LiME's, as the description of its format
//! has it; those of perf, Perfetto and trace-cmd, as they record here. Bad ones never panic.

/// Says that a test cannot run here: past the harness, which hides what passing tests print. `scripts/test`
/// counts these lines.
macro_rules! skipped {
    ($($message:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {}", format_args!($($message)*));
    }};
}

mod ctf18;
mod ctf2;
mod fuzz;
mod lime;
mod lttng;
mod perf;
mod perf_file;
mod perfetto;
mod perfetto_file;
mod text;
mod trace_cmd;
mod trace_dat;
use punctual_import::{ErrorKind, Import, Imported, Options};
use punctual_test_support::Mutator;
use punctual_trace::{Activation, Record};
use std::fs;
use std::path::Path;

fn import(path: &Path) -> Result<(Vec<Record>, Imported), punctual_import::Error> {
    import_with(path, &Options::default())
}

fn import_with(path: &Path, options: &Options) -> Result<(Vec<Record>, Imported), punctual_import::Error> {
    let mut records = Vec::new();
    let import = Import::open(path, options)?;
    let imported = import.run(
        &mut |record| {
            records.push(record.clone());
            true
        },
        &mut |_| {},
    )?;
    Ok((records, imported))
}

fn activations(records: &[Record]) -> Vec<Activation> {
    records
        .iter()
        .filter_map(
            |record| if let Record::Activation(activation) = record { Some(*activation) } else { None },
        )
        .collect()
}

/// Events that were not read, by kind.
fn unread(imported: &Imported) -> Vec<(&str, u64)> {
    let unread = imported.account.events.iter().filter(|events| events.used_for.is_none());
    unread.map(|events| (events.name.as_str(), events.count)).collect()
}

/// From when to when records are missing, in microseconds.
fn losses(records: &[Record]) -> Vec<(u64, u64)> {
    let lost = |record: &Record| match record {
        Record::Lost { since, until } => Some((since.ns() / 1_000, until.ns() / 1_000)),
        _ => None,
    };
    records.iter().filter_map(lost).collect()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

#[test]
fn files_that_are_not_traces_are_refused() {
    let kind = |path: &Path| import(path).expect_err("no trace").kind();
    let empty = folder(&[("notes.txt", "nothing"), ("x-y.events.json", "[]")]);
    assert_eq!(kind(empty.path()), ErrorKind::NotATrace);
    assert_eq!(kind(&empty.path().join("notes.txt")), ErrorKind::NotATrace);
    assert_eq!(kind(&empty.path().join("missing")), ErrorKind::NotFound);
    let broken = folder(&[("40-0.events.json", &lime::events(1)), ("40-0.infos.json", "{\"comm\": 7")]);
    let error = import(broken.path()).expect_err("broken");
    assert!(error.kind() == ErrorKind::Malformed && error.to_string().contains("40-0.infos.json"), "{error}");
    let protobuf = folder(&[("40-0.events.pb", ""), ("40-0.infos.json", "{}")]);
    let error = import(protobuf.path()).expect_err("protobuf");
    assert!(error.kind() == ErrorKind::NotATrace && error.to_string().contains("protobuf"), "{error}");
    let why = |path: &Path| import(path).expect_err("no trace").to_string();
    let others =
        folder(&[("empty", ""), ("latency.txt", "# tracer: nop\n#\n# latency trace v1.1.5 on 6.1\n")]);
    assert!(why(&others.path().join("empty")).contains("is empty"));
    assert!(why(&others.path().join("latency.txt")).contains("latency format"));
    assert!(why(empty.path()).contains("has neither LTTng's metadata"));
    // A session of LTTng, or of ROS 2, without its metadata.
    let streams = folder(&[]);
    let below = streams.path().join("ust/uid/0/64-bit");
    fs::create_dir_all(&below).expect("made");
    fs::write(below.join("ros2_0"), [0xc1, 0x1f, 0xfc, 0xc1, 0, 0]).expect("written");
    let why_not = why(streams.path());
    assert!(why_not.contains("(ust/uid/0/64-bit/ros2_0), but no file named metadata"), "{why_not}");
    assert_eq!(kind(streams.path()), ErrorKind::NotATrace);
    let short = folder(&[("perf.data", "PERFILE2 and nothing else")]);
    assert_eq!(kind(&short.path().join("perf.data")), ErrorKind::Malformed);
}

/// Seeded changes of a file: whatever comes of it, it is no panic.
fn mutations(original: &[u8], rounds: u32, mut check: impl FnMut(&[u8])) {
    let mut mutator = Mutator::new(7).inserting(Vec::new(), vec![original.to_vec()]);
    for _ in 0..rounds {
        let mut bytes = original.to_vec();
        mutator.mutate(&mut bytes);
        check(&bytes);
    }
}
