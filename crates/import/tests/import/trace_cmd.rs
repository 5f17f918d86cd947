//! What trace-cmd records: the same events as in a `perf.data` are the same records, in every kind of file.

use super::perf::{FIFO_60, IDLE, SLEEP, periodic};
use super::perf_file::{File, SLEEPS};
use super::trace_dat::{
    Event, Kind, PAGE, executed, file, option, pages, renamed, with_instance, with_option_in_6, with_options,
};
use super::{activations, losses, mutations};
use crate::fuzz::trace_dat;
use punctual_import::{ErrorKind, Import, Imported, Options};
use punctual_trace::{About, Record};
use std::fs;
use std::path::Path;

const KINDS: [Kind; 4] = [Kind::Six, Kind::Seven("none"), Kind::Seven("zlib"), Kind::Seven("zstd")];

/// The events, spread over two processors' data.
fn cpus(events: &[Event]) -> Vec<Vec<u8>> {
    let of = |cpu: usize| events.iter().enumerate().filter(move |(at, _)| at / 3 % 2 == cpu);
    // The processor of an event is the one whose data it is in.
    [0, 1].map(|cpu| pages(&of(cpu).map(|(_, event)| event).collect::<Vec<_>>(), &[])).to_vec()
}

fn import(bytes: Vec<u8>) -> Result<(About, Vec<Record>, Imported), punctual_import::Error> {
    let import = Import::of_trace_dat(Path::new("trace.dat"), bytes, &Options::default())?;
    let (about, mut records) = (import.about().clone(), Vec::new());
    let imported = import.run(
        &mut |record| {
            records.push(record.clone());
            true
        },
        &mut |_| {},
    )?;
    Ok((about, records, imported))
}

/// Without what the two tools tell differently: names and processes of threads, and on which processor.
fn comparable(records: &[Record]) -> Vec<Record> {
    let same = |record: &Record| match record.clone() {
        Record::Task(mut task) => {
            (task.pid, task.name) = (task.tid, String::new());
            Some(Record::Task(task))
        }
        Record::Switch(mut switch) => {
            switch.cpu = 0;
            Some(Record::Switch(switch))
        }
        Record::Renamed { .. } => None,
        other => Some(other),
    };
    records.iter().filter_map(same).collect()
}

#[test]
fn the_same_events_are_the_same_records_as_from_perf() {
    let perf = periodic(40);
    let folder = super::folder(&[]);
    let path = folder.path().join("perf.data");
    fs::write(&path, perf.bytes()).expect("written");
    let (expected, _) = super::import(&path).expect("imported");
    assert_eq!(activations(&expected).len(), 120);
    let data = cpus(&perf.samples());
    for kind in KINDS {
        let (about, records, imported) = import(file(kind, "mono", &data)).expect("imported");
        let machine = (about.host.as_str(), about.platform.kernel.as_str(), about.platform.machine.as_str());
        assert_eq!(machine, ("machine", "6.12.0-rt", "x86_64"));
        assert_eq!((about.clock.as_str(), about.platform.cpus), ("CLOCK_MONOTONIC", 2));
        assert_eq!(about.from.ns(), 10_001_000);
        assert_eq!(activations(&records), activations(&expected), "{kind:?}");
        assert_eq!(comparable(&records), comparable(&expected), "{kind:?}");
        assert_eq!(imported.totals.lost, 0);
    }
}

#[test]
fn a_second_file_behind_the_first_is_noted() {
    let data = cpus(&periodic(20).samples());
    for kind in KINDS {
        let one = file(kind, "mono", &data);
        let (_, alone, _) = import(one.clone()).expect("imported");
        let (_, records, imported) = import([&one[..], &one].concat()).expect("imported");
        let note = format!("another trace.dat follows at byte {}, which is not read", one.len());
        let is_said = imported.notes.iter().any(|it| it.starts_with(&note));
        assert!(records == alone && is_said, "{kind:?} {}: {:?}", one.len(), imported.notes);
    }
}

#[test]
fn events_that_are_not_read_are_counted() {
    let mut perf = periodic(2);
    perf.free(40_000, 40).free(40_001, 40).undescribed(40_002);
    let folder = super::folder(&[]);
    let path = folder.path().join("perf.data");
    fs::write(&path, perf.bytes()).expect("written");
    let (_, imported) = super::import(&path).expect("imported");
    assert_eq!(super::unread(&imported), [("sched_process_free", 2), ("samples of other events", 1)]);
    let (_, _, imported) = import(file(Kind::Six, "mono", &cpus(&perf.samples()))).expect("imported");
    assert_eq!(super::unread(&imported), [("sched_process_free", 2), ("events without a description", 1)]);
    let (_, _, imported) = import(file(Kind::Six, "mono", &cpus(&periodic(2).samples()))).expect("imported");
    assert_eq!(super::unread(&imported), []);
}

#[test]
fn lost_events_end_tasks() {
    let mut perf = File::default();
    for job in 1..=20_u64 {
        perf.waking(job * 10_000, 0, 40)
            .switch(job * 10_000 + 5, (0, 120, 0), (40, FIFO_60))
            .leave(job * 10_000 + 6, 40, SLEEP, 0)
            .enter(job * 10_000 + 400, 40, SLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0])
            .switch(job * 10_000 + 405, (40, FIFO_60, SLEEPS), IDLE);
    }
    let events = perf.samples();
    let all: Vec<&Event> = events.iter().collect();
    let whole = import(file(Kind::Six, "mono", &[pages(&all, &[])])).expect("imported");
    let cut = import(file(Kind::Six, "mono", &[pages(&all, &[52])])).expect("imported");
    assert_eq!((whole.2.totals.lost, cut.2.totals.lost), (0, 1));
    let sequences = |records: &[Record]| -> Vec<u32> {
        activations(records).iter().map(|activation| activation.sequence).collect()
    };
    let is_gapless = |sequences: &[u32]| sequences.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert_eq!((losses(&whole.1), losses(&cut.1)), (vec![], vec![(110_005, 110_006)]));
    assert!(is_gapless(&sequences(&whole.1)) && !is_gapless(&sequences(&cut.1)));
    assert!(cut.2.notes.iter().any(|note| note.contains("events lost: at least 1")), "{:?}", cut.2.notes);
}

/// What the kernel says of a processor's ring buffer.
fn statistics(cpu: u32, overrun: u64, dropped: u64) -> Vec<u8> {
    let text = format!(
        "CPU: {cpu}\nentries: 9\noverrun: {overrun}\ncommit overrun: 0\nbytes: 360\noldest event ts: 9.1\n\
         now ts:   10.000000\ndropped events: {dropped}\nread events: 0\n\0"
    );
    option(2, text.as_bytes())
}

/// The first phase of a flight recorder's trace has events of the quiet processors only.
#[test]
fn what_is_read_begins_where_no_processor_was_written_over_any_more() {
    let events = periodic(20).samples();
    // The thread's own processor begins at the 11th job; the other has a timer's events of before.
    let (own, quiet): (Vec<&Event>, Vec<&Event>) =
        (events.iter().filter(|event| event.0 >= 110_000_000).collect(), events.iter().take(3).collect());
    let data = [pages(&own, &[]), pages(&quiet, &[])];
    let plain = || file(Kind::Six, "mono", &data);
    let has_begin = |(about, _, imported): &(About, Vec<Record>, Imported)| {
        let said = imported.notes.iter().find(|note| note.contains("was written over")).cloned();
        (about.from.ns() / 1_000, said)
    };
    // Without statistics it is not known, and a processor that was idle is no reason.
    assert_eq!(has_begin(&import(plain()).expect("imported")), (10_001, None));
    let with = |option: &[u8]| import(with_option_in_6(plain(), option)).expect("imported");
    assert_eq!(has_begin(&with(&statistics(0, 0, 0))), (10_001, None));
    let said = "the beginning of processor 0 was written over: what is read begins at 0.110001000 s, from \
                where on all is there; events before that, which are not read: 3";
    let cut = with(&statistics(0, 7, 0));
    assert_eq!(has_begin(&cut), (110_001, Some(said.to_owned())));
    assert!(cut.1.iter().all(|record| !matches!(record, Record::Task(task) if task.at.ns() < 110_001_000)));
    assert_eq!(cut.2.totals.lost, 0);
    // So it is in version 7, and where the first page says that events are missing before it.
    let seven = file(Kind::Seven("zstd"), "mono", &data);
    let options = [statistics(0, 7, 0), option(2, b"\nBuffer: other\n\n\0"), statistics(1, 9, 0)].concat();
    let size = options.len() as u64 + 14;
    assert_eq!(has_begin(&import(with_options(seven, &options, size)).expect("imported")), has_begin(&cut));
    let flagged = file(Kind::Six, "mono", &[pages(&own, &[0]), pages(&quiet, &[])]);
    assert_eq!(has_begin(&import(flagged).expect("imported")), has_begin(&cut));
    let dropped = with(&statistics(1, 0, 5)).2.notes;
    assert!(
        dropped.iter().any(|note| note.starts_with("events of processor 1 for which there was no room: 5"))
    );
}

/// `trace-cmd record -m` keeps the newest events of each processor, and there are fewer than the kernel gave.
#[test]
fn a_file_of_the_newest_events_begins_where_no_processor_lacks_any() {
    let events = periodic(20).samples();
    let (own, quiet): (Vec<&Event>, Vec<&Event>) =
        (events.iter().filter(|event| event.0 >= 110_000_000).collect(), events.iter().take(3).collect());
    let data = [pages(&own, &[]), pages(&quiet, &[])];
    let begin = |entries: usize, read: usize| {
        let text = format!("CPU: 0\nentries: {entries}\noverrun: 0\nread events: {read}\n\0");
        let file = with_option_in_6(file(Kind::Six, "mono", &data), &option(2, text.as_bytes()));
        let (about, _, imported) = import(file).expect("imported");
        let is_said = imported.notes.iter().any(|note| {
            note.starts_with("the beginning of processor 0 was written over: what is read begins at 0.110001")
        });
        (about.from.ns() / 1_000, is_said)
    };
    let count = own.len();
    // What was in the buffer when the kernel was asked is in the file, or is not.
    for (entries, read) in [(0, count), (3, count - 3), (3, count), (0, 0)] {
        assert_eq!(begin(entries, read), (10_001, false), "{entries} and {read} of {count}");
    }
    for (entries, read) in [(0, count + 1), (3, count - 2), (count, count + 9)] {
        assert_eq!(begin(entries, read), (110_001, true), "{entries} and {read} of {count}");
    }
}

#[test]
fn the_buffers_of_instances_are_read() {
    let data = cpus(&periodic(8).samples());
    let none = [vec![], vec![]];
    for kind in [Kind::Six, Kind::Seven("none")] {
        let whole = import(file(kind, "mono", &data)).expect("imported");
        let with = |main: &[Vec<u8>], clocks: (&str, &str)| {
            import(with_instance(kind, file(kind, clocks.0, main), "foo", clocks.1, &data)).expect("imported")
        };
        let same = |(about, records, _): &(About, Vec<Record>, Imported)| {
            assert_eq!((about, records), (&whole.0, &whole.1), "{kind:?}");
        };
        same(&with(&none, ("mono", "mono")));
        // The main one is empty, so its clock does not matter.
        same(&with(&none, ("local", "mono")));
        // Each event is in both.
        same(&with(&data, ("mono", "mono")));
        // Another clock cannot be read together with it: the one that has the switches is.
        let other = with(&data, ("mono", "boot"));
        same(&other);
        let said = "it has events of the buffer foo, by another clock (boot), which are left out";
        assert!(other.2.notes.iter().any(|note| note == said), "{:?}", other.2.notes);
        let calls: Vec<Event> = periodic(8).samples().into_iter().filter(|event| event.3[0] != 44).collect();
        let main = cpus(&calls);
        let other = with(&main, ("local", "mono"));
        same(&other);
        let said = "it has events of the main buffer, by another clock (local), which are left out";
        assert!(other.2.notes.iter().any(|note| note == said), "{:?}", other.2.notes);
    }
}

/// `trace-cmd split` leaves out what uname(1) says.
#[test]
fn the_machine_is_known_by_the_kernels_symbols() {
    let data = cpus(&periodic(8).samples());
    let named = file(Kind::Six, "mono", &data);
    let place = named.windows(7).position(|bytes| bytes == b"Linux m").expect("its name") - 6;
    let (about, ..) = import(named.clone()).expect("imported");
    let without = |symbols: &[u8]| {
        let mut bytes = named.clone();
        // Another kind of option.
        bytes[place] = 99;
        let at = bytes.windows(9).position(|bytes| bytes == b"options  ").expect("options") - 20;
        bytes[at..at + 4].copy_from_slice(&(symbols.len() as u32).to_le_bytes());
        bytes.splice(at + 4..at + 4, symbols.iter().copied());
        let data = bytes.windows(10).position(|bytes| bytes == b"flyrecord\0").expect("data") + 10;
        let first = u64::from_le_bytes(bytes[data..data + 8].try_into().expect("8 bytes")) as usize;
        bytes.drain(first..first + symbols.len());
        import(bytes).expect("imported").0.platform.machine
    };
    let symbols = |name: &str| format!("ffff0000 T _text\nffff0001 T {name}\n").into_bytes();
    assert_eq!(without(&symbols("__x64_sys_read")), about.platform.machine);
    assert_eq!(without(&symbols("__arm64_sys_read")), "aarch64");
    assert_eq!((without(&symbols("sys_read")), without(&[])), (String::new(), String::new()));
}

fn refused(bytes: Vec<u8>, why: &str) {
    let error = import(bytes).map(|_| ()).expect_err(why);
    assert!(error.kind() == ErrorKind::Malformed && error.to_string().contains(why), "{error}");
}

#[test]
fn processors_have_data_of_their_own() {
    let data = cpus(&periodic(3).samples());
    let whole = file(Kind::Six, "mono", &data);
    let table = whole.windows(10).position(|word| word == b"flyrecord\0").expect("a table") + 10;
    let mut shared = whole.clone();
    shared.copy_within(table..table + 16, table + 16);
    refused(shared, "the data of processors 0 and 1 overlap");
    // The number, offset and size of the last processor are in front of the last option.
    let mut twice = file(Kind::Seven("none"), "mono", &data);
    let last = twice.len() - 14 - 20;
    twice[last..last + 4].fill(0);
    refused(twice, "processor 0 is listed twice");
}

#[test]
fn sections_are_read_once() {
    let whole = file(Kind::Seven("none"), "mono", &cpus(&periodic(3).samples()));
    let again = |option: Vec<u8>| with_options(whole.clone(), &option, option.len() as u64 + 14);
    assert!(import(again(option(99, &[1, 2]))).is_ok());
    let buffer = [&[0; 8][..], b"\0mono\0", &(PAGE as u32).to_le_bytes(), &[0; 4]].concat();
    refused(again(option(3, &buffer)), "the main buffer is listed twice");
    let place = |magic: &[u8]| whole.windows(magic.len()).position(|bytes| bytes == magic).expect("there");
    let header = place(b"header_page\0") as u64 - 16;
    refused(again(option(16, &header.to_le_bytes())), "the description of pages is listed twice");
    let formats = place(b"all\0") as u64 - 4 - 16;
    refused(again(option(18, &formats.to_le_bytes())), "the section of event formats is listed twice");
    // Sections that share the end of the file.
    let size = 16 << 20;
    let mut many = (0..17).fold(whole.clone(), |bytes, _| with_options(bytes, &[], size));
    many.resize(many.len() + size as usize, 0);
    refused(many, "its headers have more than 256 MiB");
}

#[test]
fn threads_belong_to_the_process_of_their_creator() {
    const CLONE_THREAD: u64 = 0x1_0000;
    let processes =
        |flags: u64| -> Vec<(u32, u32)> {
            let born = [&[49, 1, 0, 0, 0, 0, 0, 0][..], &41_i32.to_le_bytes(), &[0; 4], &flags.to_le_bytes()];
            let mut events = vec![(1_000, 0, 40, born.concat())];
            let mut perf = File::default();
            perf.switch(10, (0, 120, 0), (40, FIFO_60))
                .switch(20, (40, FIFO_60, SLEEPS), (41, FIFO_60))
                .switch(30, (41, FIFO_60, SLEEPS), IDLE);
            events.extend(perf.samples());
            let all: Vec<&Event> = events.iter().collect();
            let (_, records, _) = import(file(Kind::Six, "mono", &[pages(&all, &[])])).expect("imported");
            let process = |record: &Record| match record {
                Record::Task(task) => Some((task.tid, task.pid)),
                _ => None,
            };
            records.iter().filter_map(process).collect()
        };
    // Nothing says that the creator is not the first thread of its process.
    assert_eq!(processes(CLONE_THREAD), [(40, 40), (41, 40)]);
    assert_eq!(processes(0), [(40, 40), (41, 41)]);
}

/// What becomes of threads 40 and 41, of FIFO 60: their tasks and other names.
fn stories(more: Vec<Event>) -> Vec<String> {
    let mut perf = File::default();
    for job in 0..3 {
        perf.switch(job * 1_000 + 10, (0, 120, 0), (40, FIFO_60))
            .switch(job * 1_000 + 20, (40, FIFO_60, SLEEPS), (41, FIFO_60))
            .switch(job * 1_000 + 30, (41, FIFO_60, SLEEPS), IDLE);
    }
    let mut events = [perf.samples(), more].concat();
    events.sort_by_key(|(ns, ..)| *ns);
    let all: Vec<&Event> = events.iter().collect();
    let (_, records, _) = import(file(Kind::Six, "mono", &[pages(&all, &[])])).expect("imported");
    let story = |record: &Record| match record {
        Record::Task(task) => Some(format!("{} {:?} {}", task.tid, task.begin, task.name)),
        Record::Renamed { tid, name, .. } => Some(format!("{tid} is {name}")),
        Record::Exit { tid, .. } => Some(format!("{tid} ends")),
        _ => None,
    };
    records.iter().filter_map(story).collect()
}

#[test]
fn a_program_that_is_executed_begins_a_task() {
    let begin = ["40 Seen thread-40", "41 Seen thread-41"];
    let with = |rest: &[&'static str]| [&begin[..], rest].concat();
    assert_eq!(stories(vec![]), begin);
    // The name is that of the file, as the kernel cuts it.
    let file = "/tmp/with a name that is long";
    assert_eq!(stories(vec![executed(1_015, (40, 40), file)]), with(&["40 Exec with a name tha"]));
    // Its new name, which comes first, is not that of the task before.
    let both = |between: u64| vec![renamed(between, 40, 40, "second"), executed(1_015, (40, 40), "/fd/5")];
    assert_eq!(stories(both(1_012)), with(&["40 Exec second"]));
    // Names that it has otherwise are, whoever gave them.
    assert_eq!(stories(both(15)), [begin[0], "40 is second", begin[1], "40 Exec 5"]);
    assert_eq!(stories(vec![renamed(1_025, 41, 40, "other")]), with(&["40 is other"]));
    // Executed by another thread than the first: that one's number is gone.
    let by_other = stories(vec![executed(1_025, (40, 41), "/bin/last")]);
    assert_eq!(by_other, with(&["40 Exec last", "41 ends"]));
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let data = cpus(&periodic(3).samples());
    refused(file(Kind::Six, "x86-tsc", &data), "does not count nanoseconds");
    refused(file(Kind::Seven("lz9"), "mono", &data), "packed with lz9");
    let whole = file(Kind::Six, "mono", &data);
    refused(whole[..whole.len() - PAGE].to_vec(), "is truncated");
    // Within the headers.
    refused(whole[..300].to_vec(), "the file is truncated: ");
    let mut big = whole.clone();
    big[12] = 1;
    refused(big, "big-endian");
    let mut newer = whole.clone();
    newer[10] = b'8';
    refused(newer, "version 8");
    for cut in 10..300.min(whole.len()) {
        assert!(import(whole[..cut].to_vec()).is_err(), "{cut}");
    }
}

#[test]
fn changed_files_never_panic() {
    let data = cpus(&periodic(12).samples());
    for kind in KINDS {
        let whole = file(kind, "mono", &data);
        trace_dat::read(&whole);
        mutations(&whole, 400, trace_dat::read);
    }
}
