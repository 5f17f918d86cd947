//! What Perfetto records: the same events as in a `perf.data` are the same records, plain and compact, as
//! they are and compressed; and traces that Perfetto itself recorded, with what the program knew of itself.

use super::perf::{FIFO_60, IDLE, SLEEP, periodic};
use super::perf_file::{File, SLEEPS};
use super::perfetto_file::{
    Event, Style, bundle, clocks, message, number, packed, packet, processes, system,
};
use super::{activations, folder, losses, mutations};
use crate::fuzz::perfetto as fuzz;
use punctual_import::{Error, ErrorKind, Import, Imported, Machine, Options};
use punctual_model::{Call, Object, Policy, Separator, Window};
use punctual_trace::{About, Record, Step};
use std::fs;
use std::path::{Path, PathBuf};

const STYLES: [Style; 2] = [Style::Plain, Style::Compact];

fn import(bytes: Vec<u8>) -> Result<(About, Vec<Record>, Imported), Error> {
    import_with(bytes, &Options::default())
}

fn import_with(bytes: Vec<u8>, options: &Options) -> Result<(About, Vec<Record>, Imported), Error> {
    let import = Import::of_perfetto(Path::new("run.pftrace"), bytes, options)?;
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

/// Bundles of so many events of one processor, each of which says when the one before ended.
fn bundles(style: Style, cpu: u32, events: &[&Event], each: usize) -> Vec<Vec<u8>> {
    let mut end = 0;
    let one = |part: &[&Event]| {
        let follows = std::mem::replace(&mut end, part.last().map_or(0, |event| event.0));
        packet(&bundle(style, cpu, part, Some(follows), &[]))
    };
    events.chunks(each).map(one).collect()
}

fn trace(style: Style, events: &[Event]) -> Vec<u8> {
    let all: Vec<&Event> = events.iter().collect();
    [system(), processes(), bundles(style, 1, &all, 20).concat()].concat()
}

fn has(imported: &Imported, note: &str) -> bool {
    imported.notes.iter().any(|it| it.contains(note))
}

/// Events of one thread with a job every 10 ms, on one processor.
fn jobs(count: u64) -> Vec<Event> {
    let mut perf = File::default();
    for job in 1..=count {
        perf.waking(job * 10_000, 0, 40)
            .switch(job * 10_000 + 5, (0, 120, 0), (40, FIFO_60))
            .leave(job * 10_000 + 6, 40, SLEEP, 0)
            .enter(job * 10_000 + 400, 40, SLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0])
            .switch(job * 10_000 + 405, (40, FIFO_60, SLEEPS), IDLE);
    }
    perf.samples()
}

/// Without what depends on how switches are told: which thread woke one, and who a thread is before its first
/// switch.
fn comparable(records: &[Record]) -> Vec<Record> {
    let same = |record: &Record| match record.clone() {
        Record::Switch(mut switch) => {
            if let Step::Woken { by } = &mut switch.step {
                *by = 0;
            }
            (switch.tid == 40).then_some(Record::Switch(switch))
        }
        Record::Activation(activation) => (activation.tid == 40).then_some(Record::Activation(activation)),
        _ => None,
    };
    records.iter().filter_map(same).collect()
}

#[test]
fn the_same_events_are_the_same_records_as_from_perf() {
    let perf = periodic(40);
    let folder = folder(&[]);
    let path = folder.path().join("perf.data");
    fs::write(&path, perf.bytes()).expect("written");
    let (expected, _) = super::import(&path).expect("imported");
    for style in STYLES {
        let (about, records, imported) = import(trace(style, &perf.samples())).expect("imported");
        let platform = (about.platform.kernel.as_str(), about.platform.machine.as_str(), about.platform.cpus);
        assert_eq!(platform, ("6.12.0-rt", "x86_64", 2));
        assert_eq!((about.clock.as_str(), about.source.as_str()), ("CLOCK_BOOTTIME", "Perfetto v56.0"));
        assert_eq!(about.from.ns(), 10_001_000);
        assert_eq!(activations(&records).len(), 120);
        assert_eq!(comparable(&records), comparable(&expected), "{style:?}");
        assert_eq!((imported.totals.lost, losses(&records)), (0, vec![]));
        let name = |records: &[Record]| {
            let named = records.iter().find_map(|record| match record {
                Record::Task(task) if task.tid == 40 => Some((task.pid, task.name.clone(), task.policy)),
                _ => None,
            });
            named.expect("a thread")
        };
        // The name is that of its switches, unless another one would have been told.
        assert_eq!(name(&records), (39, "thread-40".to_owned(), Policy::Fifo));
        let bytes = [config(&message(1, b"task/*")), trace(style, &perf.samples())].concat();
        let (_, records, _) = import(bytes).expect("imported");
        assert_eq!(name(&records), (39, "control".to_owned(), Policy::Fifo));
    }
}

/// What was asked for of ftrace.
fn config(fields: &[u8]) -> Vec<u8> {
    packet(&message(33, &message(2, &message(1, &message(100, fields)))))
}

#[test]
fn packets_are_read_however_they_are_packed() {
    let events = periodic(40).samples();
    let (_, plain, _) = import(trace(Style::Compact, &events)).expect("imported");
    let all: Vec<&Event> = events.iter().collect();
    let packets = [[system(), processes()].to_vec(), bundles(Style::Compact, 1, &all, 20)].concat();
    for packing in ["zlib", "zstd"] {
        for each in [1, 3, packets.len()] {
            let bytes: Vec<u8> =
                packets.chunks(each).flat_map(|part| packed(packing, &part.concat())).collect();
            let (_, records, imported) = import(bytes).expect("imported");
            assert_eq!(records, plain, "{packing} {each}");
            assert!(!has(&imported, "packet"), "{:?}", imported.notes);
        }
    }
    let mut broken = packed("zlib", &bundles(Style::Compact, 1, &all[20..40], 20).concat());
    let middle = broken.len() / 2;
    broken[middle] ^= 0x55;
    let before = bundles(Style::Compact, 1, &all[..20], 20).concat();
    let (_, _, imported) = import([system(), before, broken].concat()).expect("imported");
    assert!(has(&imported, "a compressed packet: ") && imported.totals.lost == 1, "{:?}", imported.notes);
}

/// The recorder reads one processor after the other, some milliseconds of each.
#[test]
fn bundles_of_processors_are_merged_by_time() {
    let events = periodic(40).samples();
    let (_, expected, _) = import(trace(Style::Plain, &events)).expect("imported");
    // Switches cannot be told apart by processor here, but calls can be anywhere.
    let of = |cpu: usize| events.iter().enumerate().filter(move |(at, _)| at / 7 % 2 == cpu);
    let mut cpus = [0, 1].map(|cpu| {
        let events: Vec<&Event> = of(cpu).map(|(_, event)| event).collect();
        bundles(Style::Plain, cpu as u32, &events, 50)
    });
    let (late, early) = cpus.split_at_mut(1);
    for order in [0, 1] {
        let all: Vec<u8> = match order {
            0 => early[0].iter().zip(&late[0]).flat_map(|(one, other)| [&one[..], other].concat()).collect(),
            _ => [early[0].concat(), late[0].concat()].concat(),
        };
        let (_, records, imported) = import([system(), processes(), all].concat()).expect("imported");
        assert_eq!(activations(&records), activations(&expected));
        assert!(!has(&imported, "out of order"), "{:?}", imported.notes);
    }
}

#[test]
fn events_in_a_bundle_come_in_order_of_time() {
    let mut events = jobs(20);
    let (_, expected, _) = import(trace(Style::Plain, &events)).expect("imported");
    events[..50].reverse();
    events[50..].reverse();
    let all: Vec<&Event> = events.iter().collect();
    let bytes = [system(), processes(), bundle_of(&all[..50], 0), bundle_of(&all[50..], all[0].0)].concat();
    let (_, records, _) = import(bytes).expect("imported");
    assert_eq!(records, expected);
}

fn bundle_of(events: &[&Event], follows: u64) -> Vec<u8> {
    packet(&bundle(Style::Plain, 1, events, Some(follows), &[]))
}

#[test]
fn lost_events_end_tasks() {
    let events = jobs(20);
    let all: Vec<&Event> = events.iter().collect();
    for style in STYLES {
        let with = |follows: Option<u64>, more: &[u8], before: &[u8]| {
            let first = packet(&bundle(style, 1, &all[..52], Some(0), &[]));
            let second = packet(&[&bundle(style, 1, &all[52..], follows, more), before].concat());
            import([system(), first, second].concat()).expect("imported")
        };
        let end = all[51].0;
        let (_, records, imported) = with(Some(end), &[], &[]);
        assert_eq!((imported.totals.lost, losses(&records)), (0, vec![]), "{style:?}");
        let lost = [
            // The kernel overwrote events; a bundle is missing; a packet is, and bundles say no more.
            with(Some(end), &number(3, 1), &[]),
            with(Some(end + 1), &[], &[]),
            with(None, &[], &number(42, 1)),
        ];
        for (_, records, imported) in lost {
            assert_eq!((imported.totals.lost, losses(&records)), (1, vec![(110_005, 110_006)]), "{style:?}");
            assert!(has(&imported, "events lost: at least 1; tasks end there"), "{:?}", imported.notes);
        }
        // A packet is missing, but not one of this processor.
        let (_, records, imported) = with(Some(end), &[], &number(42, 1));
        assert_eq!((imported.totals.lost, losses(&records)), (0, vec![]), "{style:?}");
        // What the recorder could not read is left out, to the next bundle.
        let (_, records, imported) = with(Some(end), &message(8, &number(2, 15)), &[]);
        assert_eq!(losses(&records), [(110_005, u64::MAX / 1_000)]);
        assert!(has(&imported, "that the recorder could not read"), "{:?}", imported.notes);
    }
}

/// The kernel counts what it overwrote, from before the recording on.
#[test]
fn the_kernels_count_of_losses_is_taken() {
    let events = jobs(20);
    let all: Vec<&Event> = events.iter().collect();
    let statistics = |phase, overrun, dropped| {
        let cpu = [number(1, 1), number(3, overrun), number(8, dropped)].concat();
        packet(&message(34, &[number(1, phase), message(2, &cpu)].concat()))
    };
    let first = packet(&bundle(Style::Plain, 1, &all[..52], Some(0), &[]));
    let second = packet(&bundle(Style::Plain, 1, &all[52..], Some(all[51].0), &number(3, 1)));
    let bytes = [system(), statistics(1, 100, 7), first, second, statistics(2, 142, 10)].concat();
    let (_, _, imported) = import(bytes).expect("imported");
    assert_eq!(imported.totals.lost, 42);
    assert!(has(&imported, "events of processor 1 for which there was no room: 3;"), "{:?}", imported.notes);
}

/// Perfetto's own ring buffer loses the oldest bundles.
#[test]
fn what_is_read_begins_where_no_processor_was_written_over_any_more() {
    let events = periodic(20).samples();
    let own: Vec<&Event> = events.iter().filter(|event| event.0 >= 110_000_000).collect();
    let quiet: Vec<&Event> = events.iter().take(3).collect();
    for (style, follows, more, from) in [
        (Style::Plain, Some(0), &[][..], 10_001_000),
        (Style::Plain, Some(109_000_000), &[], 109_000_000),
        (Style::Compact, Some(0), &number(3, 1), 110_001_000),
    ] {
        let data =
            [packet(&bundle(style, 0, &own, follows, more)), packet(&bundle(style, 1, &quiet, Some(0), &[]))];
        let (about, records, imported) = import([system(), data.concat()].concat()).expect("imported");
        assert_eq!((about.from.ns(), imported.totals.lost, losses(&records)), (from, 0, vec![]));
        let said = format!(
            "the beginning of processor 0 was written over: what is read begins at 0.{:09} s, from where on \
             all is there; events before that, which are not read: 3",
            from
        );
        assert_eq!(imported.notes.contains(&said), from > 11_000_000, "{:?}", imported.notes);
    }
}

/// As `cat` makes them: the same events twice, or the clock goes back; or another recording of one writer.
#[test]
fn traces_one_behind_the_other_are_refused() {
    let one = trace(Style::Compact, &jobs(20));
    let (first, later) = (jobs(10), jobs(20));
    let later: Vec<&Event> = later.iter().skip(first.len()).collect();
    let begins = packet(&[bundle(Style::Plain, 1, &later, Some(0), &[]), number(87, 1)].concat());
    let uuid = || packet(&message(89, &[7; 16]));
    let [compact, plain] =
        ["compact.pftrace", "plain.pftrace"].map(|name| fs::read(recorded(name)).expect("a trace"));
    for parts in [
        [&one[..], &one[..]],
        [&trace(Style::Plain, &first), &begins],
        [&[uuid(), one.clone()].concat(), &uuid()],
        [&plain, &plain],
        [&compact, &plain],
        [&plain, &compact],
    ] {
        let error = import(parts.concat()).expect_err("two traces").to_string();
        let said = "it has several traces, one behind the other: another one begins near byte ";
        let (_, byte) = error.split_once(said).unwrap_or_else(|| panic!("{error}"));
        let byte: usize = byte.split(';').next().and_then(|byte| byte.parse().ok()).expect("a number");
        assert!(byte >= parts[0].len() && byte < parts[0].len() + 500, "{byte} of {}", parts[0].len());
        assert!(import(parts[0].to_vec()).is_ok());
    }
}

#[test]
fn a_beginning_that_is_damaged_was_not_written_over() {
    let mut bytes = fs::read(recorded("plain.pftrace")).expect("a trace");
    bytes[5_000..5_100].fill(0);
    let (_, _, imported) = import(bytes).expect("imported");
    assert!(has(&imported, "the beginning of processors 0, 1 cannot be read: what is read begins at "));
    assert!(!has(&imported, "written over"), "{:?}", imported.notes);
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_there() {
    let bytes = trace(Style::Compact, &jobs(40));
    let (_, whole, _) = import(bytes.clone()).expect("imported");
    let (_, records, imported) = import(bytes[..bytes.len() - 5].to_vec()).expect("imported");
    assert!(has(&imported, "the file is truncated: its last packet, at byte "), "{:?}", imported.notes);
    let (all, cut) = (activations(&whole).len(), activations(&records).len());
    assert!(cut < all && cut + 6 > all, "{cut} of {all}");
    assert_eq!(losses(&records).len(), 1);
    let followed = [&bytes[..], b"and something else that is no packet"].concat();
    let (_, _, imported) = import(followed).expect("imported");
    assert!(has(&imported, "no packet begins here, and what follows is not read"), "{:?}", imported.notes);
}

#[test]
fn a_lock_lends_a_priority_in_compact_switches_too() {
    let mut perf = File::default();
    for job in 1..=10_u64 {
        let at = job * 10_000;
        perf.waking(at, 0, 40)
            .lend(at + 2, 40, FIFO_60, 10)
            .switch(at + 5, (0, 120, 0), (40, 10))
            .leave(at + 6, 40, SLEEP, 0)
            .lend(at + 100, 40, 10, FIFO_60)
            .enter(at + 400, 40, SLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0])
            .switch(at + 405, (40, FIFO_60, SLEEPS), IDLE);
    }
    let mut events = jobs(2);
    events
        .extend(perf.samples().into_iter().map(|(ns, cpu, tid, bytes)| (ns + 100_000_000, cpu, tid, bytes)));
    for style in STYLES {
        let (_, records, imported) = import(trace(style, &events)).expect("imported");
        let tasks = records.iter().filter(|it| matches!(it, Record::Task(task) if task.tid == 40)).count();
        assert_eq!((tasks, activations(&records).len()), (1, 12), "{style:?}");
        assert!(!lacks(&imported, "sched_pi_setprio"), "{:?}", imported.account);
    }
}

/// An event in the buffers of two data sources counts once.
#[test]
fn events_of_two_writers_count_once() {
    let events = jobs(20);
    let all: Vec<&Event> = events.iter().collect();
    let (_, expected, _) = import(trace(Style::Plain, &events)).expect("imported");
    let other = |style| {
        let content = bundle(style, 1, &all, Some(0), &[]);
        message(1, &[content, number(10, 3)].concat())
    };
    for style in STYLES {
        let bytes = [trace(Style::Plain, &events), other(style)].concat();
        let (_, records, imported) = import(bytes).expect("imported");
        assert_eq!(records, expected, "{style:?}: {:?}", imported.notes);
    }
}

#[test]
fn other_machines_are_left_out() {
    let events = jobs(20);
    let (_, expected, _) = import(trace(Style::Plain, &events)).expect("imported");
    let all: Vec<&Event> = events.iter().skip(3).collect();
    let content = bundle(Style::Plain, 1, &all, Some(0), &[]);
    let foreign = message(1, &[content, number(10, 9), number(98, 7)].concat());
    let (_, records, imported) = import([trace(Style::Plain, &events), foreign].concat()).expect("imported");
    assert_eq!(records, expected);
    assert!(has(&imported, "packets of other machines, which are left out: 1"), "{:?}", imported.notes);
}

fn lacks(imported: &Imported, event: &str) -> bool {
    imported.account.lacks.iter().any(|lack| lack.what == event)
}

#[test]
fn what_was_not_recorded_is_said() {
    let events = jobs(20);
    let said = |fields: &[u8]| {
        let bytes = [config(fields), trace(Style::Compact, &events)].concat();
        import(bytes).expect("imported")
    };
    let (_, _, imported) = said(&[]);
    assert!(lacks(&imported, "sched_pi_setprio"), "{:?}", imported.account);
    assert!(has(&imported, "its switches are compact"), "{:?}", imported.notes);
    let (_, _, imported) = said(&message(1, b"sched/*"));
    assert!(!lacks(&imported, "sched_pi_setprio"), "{:?}", imported.account);
    let (_, records, imported) = said(&message(18, b"sys_clock_nanosleep"));
    assert!(has(&imported, "only some system calls were recorded"), "{:?}", imported.notes);
    let separators = activations(&records).into_iter().map(|it| it.separator);
    assert!(separators.into_iter().all(|it| it == Separator::SUSPENSION));
    let (_, _, imported) = said(&[number(35, 40), message(37, b"1")].concat());
    assert!(has(&imported, "only some threads were recorded"), "{:?}", imported.notes);
    assert!(has(&imported, "only some processors were recorded"), "{:?}", imported.notes);
    // Without the machine's name, calls have no meaning, unless it is given.
    let all: Vec<&Event> = events.iter().collect();
    let nameless = || bundles(Style::Plain, 1, &all, 20).concat();
    let (_, _, imported) = import(nameless()).expect("imported");
    assert!(has(&imported, "import --machine x86_64"), "{:?}", imported.notes);
    let given = Options { machine: Some(Machine::X86), ..Options::default() };
    let (about, records, _) = import_with(nameless(), &given).expect("imported");
    let sleep = Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };
    assert_eq!(about.platform.machine, "x86_64");
    assert!(activations(&records).iter().any(|it| it.separator == sleep));
}

#[test]
fn events_that_are_not_read_are_counted() {
    let mut perf = periodic(2);
    perf.free(40_000, 40).free(40_001, 40).undescribed(40_002).runtime(40_003, 40, 5);
    let (_, _, imported) = import(trace(Style::Plain, &perf.samples())).expect("imported");
    assert_eq!(super::unread(&imported), [("sched_process_free", 2), ("event 600", 1)]);
    // Kinds that the trace itself describes, and probes.
    let event = |ns: u64, kind: u32, content: &[u8]| {
        message(2, &[number(1, ns), number(2, 1), message(kind, content)].concat())
    };
    let description = [number(1, 65_536), message(2, &message(1, b"my_event")), message(3, b"mine")].concat();
    let events = [
        event(50_000_000, 65_536, &number(1, 7)),
        event(50_000_001, 65_537, &number(1, 7)),
        event(50_000_002, 542, &message(1, b"do_sys_open")),
        message(11, &description),
    ];
    let more = packet(&message(1, &[number(1, 1), events.concat()].concat()));
    let (_, _, imported) = import([trace(Style::Plain, &jobs(2)), more].concat()).expect("imported");
    let expected = [("event 65537", 1), ("kprobe do_sys_open", 1), ("my_event", 1)];
    assert_eq!(super::unread(&imported), expected);
    // A switch without the next thread's priority, and an event without a time.
    let short = message(4, &[number(2, 1), number(3, 1), number(4, 1), number(6, 2)].concat());
    let events =
        [message(2, &[number(1, 50_000_000), number(2, 1), short].concat()), message(2, &message(4, &[]))];
    let more = packet(&message(1, &[number(1, 1), events.concat()].concat()));
    let (_, _, imported) = import([trace(Style::Plain, &perf.samples()), more].concat()).expect("imported");
    assert!(
        has(&imported, "events sched_switch that lack a field and are left out: 1"),
        "{:?}",
        imported.notes
    );
    assert!(has(&imported, "events without a time, which are left out: 1"), "{:?}", imported.notes);
}

#[test]
fn the_clock_of_events_is_named() {
    let events = jobs(3);
    let all: Vec<&Event> = events.iter().collect();
    let of = |clock: u64| {
        let events = packet(&bundle(Style::Plain, 1, &all, Some(0), &number(5, clock)));
        import([system(), clocks(1_700_000_000_000_000_123, 23), events].concat())
    };
    let (about, ..) = of(0).expect("imported");
    assert_eq!((about.clock.as_str(), about.clock_zero), ("CLOCK_BOOTTIME", Some(1_700_000_000_000_000_100)));
    for (clock, name) in [(2, "ftrace global"), (3, "ftrace local"), (4, "CLOCK_MONOTONIC_RAW")] {
        let (about, ..) = of(clock).expect("imported");
        assert_eq!((about.clock.as_str(), about.clock_zero), (name, None));
    }
    assert_eq!(of(1).expect_err("unknown").kind(), ErrorKind::Malformed);
}

#[test]
fn traces_without_switches_are_refused() {
    let error = import([system(), processes()].concat()).expect_err("no events");
    let said = "run.pftrace: a Perfetto trace without events of ftrace; record with perfetto -t 10s ";
    assert!(error.to_string().starts_with(said), "{error}");
    // What punctual timeline writes: tracks and events by one writer.
    let timeline = [trace(Style::Plain, &jobs(3)), packet(&message(60, &number(1, 7)))].concat();
    let error = import(timeline).expect_err("a timeline");
    assert!(error.to_string().contains("it was made of another trace, as punctual timeline does"), "{error}");
    let mut perf = File::default();
    perf.enter(1_000, 40, SLEEP, [0; 6]);
    let error = import(trace(Style::Plain, &perf.samples())).expect_err("no switches");
    assert!(error.to_string().contains("it has no event sched_switch"), "{error}");
}

#[test]
fn formats_are_told_apart() {
    let bytes = trace(Style::Compact, &jobs(3));
    let folder = folder(&[("blank.txt", "\n# tracer: nop\n#\n"), ("empty", ""), ("newline", "\n")]);
    let path = folder.path().join("run.pftrace");
    fs::write(&path, &bytes).expect("written");
    assert_eq!(super::import(&path).map(|(records, _)| activations(&records).len()).expect("imported"), 3);
    for (name, magic, how) in
        [("a.gz", &b"\x1f\x8b\x08"[..], "gunzip"), ("a.zst", b"\x28\xb5\x2f\xfd", "unzstd")]
    {
        let packed = folder.path().join(name);
        fs::write(&packed, [magic, &bytes].concat()).expect("written");
        let error = super::import(&packed).expect_err("compressed");
        assert!(error.to_string().ends_with(&format!(": unpack it first ({how})")), "{error}");
    }
    let cut_off = folder.path().join("cut.pftrace");
    let recorded = fs::read(recorded("plain.pftrace")).expect("a trace");
    for length in [10, 4_000, 9_000] {
        fs::write(&cut_off, &recorded[..length]).expect("written");
        let error = super::import(&cut_off).expect_err("cut off").to_string();
        assert!(error.contains("is a trace of Perfetto that is cut off in its first packet"), "{error}");
    }
    for text in ["blank.txt", "empty", "newline"] {
        let error = super::import(&folder.path().join(text)).expect_err("no trace");
        assert_eq!(error.kind(), ErrorKind::NotATrace, "{error}");
    }
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perfetto").join(name)
}

/// Three threads of periods 2, 5 and 10 ms, recorded by Perfetto: `tests/data/perfetto/README.md`.
#[test]
fn what_perfetto_recorded_has_the_programs_own_figures() {
    for (name, jobs) in [("compact.pftrace", 123), ("plain.pftrace", 126)] {
        let path = recorded(name);
        let about = Import::open(&path, &Options::default()).expect("opened").about().clone();
        assert_eq!((about.source.as_str(), about.platform.cpus), ("Perfetto v56.0", 2));
        assert_eq!((about.clock.as_str(), about.platform.machine.as_str()), ("CLOCK_BOOTTIME", "x86_64"));
        let (records, imported) = super::import(&path).expect("imported");
        assert_eq!((imported.totals.lost, losses(&records)), (0, vec![]), "{:?}", imported.notes);
        let mut all = 0;
        for (task, period_ns) in [("task-0", 2_000_000), ("task-1", 5_000_000), ("task-2", 10_000_000)] {
            let tid = tid_of(&records, task);
            let releases = releases(&records, tid);
            all += releases.len();
            let first = releases[0];
            for (number, release) in releases.iter().enumerate() {
                let late = release.abs_diff(first).abs_diff(number as u64 * period_ns);
                assert!(late < 500_000, "{name}: job {number} of {task} is {late} ns from its period");
            }
        }
        // The program knew of 126 jobs; the last of each thread ends the recording, and in compact switches
        // the first sleep is one of a thread that is not known to be urgent.
        assert_eq!(all, jobs, "{name}");
    }
}

fn tid_of(records: &[Record], name: &str) -> u32 {
    let tid = records.iter().find_map(|record| match record {
        Record::Task(task) if task.name == name && task.policy == Policy::Fifo => Some(task.tid),
        _ => None,
    });
    tid.expect("a thread")
}

fn releases(records: &[Record], tid: u32) -> Vec<u64> {
    let own = activations(records).into_iter().filter(|it| it.tid == tid);
    let release = |window: Window| window.earliest().ns();
    own.filter_map(|it| it.resumed?.release.map(release)).collect()
}

#[test]
fn bad_traces_never_panic() {
    mutations(&trace(Style::Plain, &jobs(10)), 2_000, fuzz::read);
    let compact = trace(Style::Compact, &jobs(10));
    mutations(&compact, 2_000, fuzz::read);
    for length in 0..compact.len() {
        fuzz::read(&compact[..length]);
    }
}
