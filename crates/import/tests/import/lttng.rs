//! The kernel's traces of LTTng. LTTng's modules cannot be loaded here: one of our own recordings is written
//! as the events that LTTng would have written, and must come back.

use punctual_import::{Import, Options};
use punctual_model::{Call, Duration, FileClass, Object, Policy};
use punctual_test_lttng::ctf::{Layout, Value, Writer, metadata, stream_path};
use punctual_test_lttng::kernel::{IDLE, account, layout, switch, waking};
use punctual_trace::{About, Activation, Record, TaskRecord, ctf};
use std::collections::BTreeMap;
use std::path::Path;

/// A thread of the recording, and its activations up to the first change of its task.
struct Recorded {
    task: TaskRecord,
    activations: Vec<Activation>,
}

fn demo() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo");
    let reader = ctf::Reader::open(&folder).unwrap();
    let mut found: BTreeMap<u32, Recorded> = BTreeMap::new();
    let mut changed = Vec::new();
    reader
        .read(0..reader.stretches(), &mut |record| match record {
            Record::Task(task) if found.contains_key(&task.tid) => changed.push(task.tid),
            Record::Task(task) if task.policy == Policy::Fifo => {
                let recorded = Recorded { task: (**task).clone(), activations: Vec::new() };
                found.insert(task.tid, recorded);
            }
            Record::Activation(it) if !changed.contains(&it.tid) => {
                if let Some(recorded) = found.get_mut(&it.tid) {
                    recorded.activations.push(*it);
                }
            }
            _ => {}
        })
        .unwrap();
    found.into_values().filter(|recorded| recorded.activations.len() > 20).collect()
}

/// An event to be written: time, name, fields.
type Event = (u64, &'static str, Vec<Value>);

/// What LTTng would have written of one thread, on a processor of its own; and the activations that this
/// shows. A thread was preempted for what its recording has less of processor time.
fn events(recorded: &Recorded) -> (Vec<Event>, Vec<Activation>) {
    let task = &recorded.task;
    let name = "a thread";
    let thread = (name, task.tid as i32, 99 - task.priority as i32);
    let (mut events, mut shown): (Vec<Event>, Vec<Activation>) = (Vec::new(), Vec::new());
    // Since when it runs, what the recording had of processor time then, and what the events have.
    let (mut running, mut cpu): (Option<(u64, u64)>, u64) = (None, 10);
    for it in &recorded.activations {
        let (Some(resumed), Some((call, fields))) = (it.resumed, call(it)) else { break };
        let (Some(release), true) = (resumed.release, it.slept) else { break };
        let (stop, woken, start) = (it.stop.ns(), release.latest().ns(), resumed.start.ns());
        if resumed.suspended_after.ns() > 0 || release.earliest() != release.latest() {
            break;
        }
        match running {
            None => events.push((stop - 10, "sched_switch", switch(IDLE, 0, thread))),
            Some((since, before)) => {
                // The kernel's account may have more than was between the switches.
                let preempted = (stop - since).saturating_sub(it.cpu.ns() - before);
                cpu += stop - since - preempted;
                if preempted > 0 {
                    events.push((since, "sched_switch", switch(thread, 0, IDLE)));
                    events.push((since + preempted, "sched_switch", switch(IDLE, 0, thread)));
                }
            }
        }
        events.push((stop, call.0, fields));
        events.push((stop, "sched_switch", switch(thread, 1, IDLE)));
        events.push((woken, "irq_handler_entry", vec![Value::I32(7)]));
        events.push((woken, "sched_waking", waking(thread)));
        events.push((woken, "irq_handler_exit", vec![Value::I32(7), Value::I32(1)]));
        events.push((start, "sched_switch", switch(IDLE, 0, thread)));
        events.push((start, call.1, vec![Value::I64(0)]));
        running = Some((start, it.cpu.ns()));
        shown.push(Activation { cpu: Duration::from_ns(cpu), ..*it });
    }
    (events, shown)
}

/// The events of a call's entry and exit, and the fields of the entry.
fn call(it: &Activation) -> Option<((&'static str, &'static str), Vec<Value>)> {
    match (it.separator.call, it.separator.object) {
        (Call::ClockNanosleep, Object::Clock { id, absolute }) => Some((
            ("syscall_entry_clock_nanosleep", "syscall_exit_clock_nanosleep"),
            vec![Value::I32(id), Value::I32(i32::from(absolute)), Value::U64(0x7ffc_0000)],
        )),
        (Call::Nanosleep, _) => {
            Some((("syscall_entry_nanosleep", "syscall_exit_nanosleep"), vec![Value::U64(0x7ffc_0000)]))
        }
        (Call::Read, Object::File { fd, .. }) => {
            Some((("syscall_entry_read", "syscall_exit_read"), vec![Value::I32(fd), Value::U64(8)]))
        }
        (Call::FutexWaitBitset, Object::Address { address, .. }) => Some((
            ("syscall_entry_futex", "syscall_exit_futex"),
            vec![Value::U64(address), Value::I32(393), Value::I32(0), Value::U64(0)],
        )),
        (Call::Suspension, _) => Some((("syscall_entry_getpid", "syscall_exit_getpid"), Vec::new())),
        _ => None,
    }
}

#[test]
fn our_own_recording_comes_back_through_the_events_of_lttng() {
    let place = tempfile::tempdir().unwrap();
    let (mut all, mut expected) = (Vec::new(), BTreeMap::new());
    for (cpu, recorded) in (0..).zip(demo()) {
        let (events, shown) = events(&recorded);
        if shown.len() > 20 {
            all.extend(events.into_iter().map(|event| (cpu, event)));
            expected.insert(recorded.task.tid, shown);
        }
    }
    assert!(expected.len() >= 3, "{} threads", expected.len());
    all.sort_by_key(|(_, (at, ..))| *at);
    let cpus = all.iter().map(|(cpu, _)| cpu + 1).max().unwrap();
    let mut writer = Writer::create(&place.path().join("kernel"), layout(), cpus).unwrap();
    for (cpu, (at, class, fields)) in all {
        writer.event(cpu, at, class, &[], &fields).unwrap();
    }
    writer.finish().unwrap();

    let import = Import::open(place.path(), &Options::default()).unwrap();
    let about = import.about().clone();
    assert_eq!((about.clock.as_str(), about.platform.kernel.as_str()), ("CLOCK_MONOTONIC", "6.1.0"));
    assert_eq!(about.clock_zero, Some(1_700_000_000_000_004_321));
    let (mut found, mut switches): (BTreeMap<u32, Vec<Activation>>, usize) = (BTreeMap::new(), 0);
    let mut take = |record: &Record| {
        match record {
            Record::Activation(it) => found.entry(it.tid).or_default().push(*it),
            Record::Switch(_) => switches += 1,
            Record::Task(task) => assert_eq!(task.policy, Policy::Fifo),
            _ => {}
        }
        true
    };
    let imported = import.run(&mut take, &mut |_| {}).unwrap();
    assert_eq!(imported.totals.lost, 0);
    assert!(switches > 100);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (tid, expected) in &expected {
        let found = &found[tid];
        assert_eq!(found.len(), expected.len(), "thread {tid}");
        for (one, other) in found.iter().zip(expected) {
            let same = |it: &Activation| {
                (it.separator.call, it.slept, it.stop, it.resumed.map(|it| (it.release, it.start)))
            };
            assert_eq!(same(one), same(other), "thread {tid}");
            assert_eq!(one.cpu, other.cpu, "thread {tid} at {}", one.stop.ns());
        }
    }
}

/// epoll_pwait2(2) is younger than LTTng's list of system calls; on 64-bit Arm, 288 is not accept4(2).
#[test]
fn calls_that_lttng_has_no_name_for_come_by_number() {
    let place = tempfile::tempdir().unwrap();
    let thread = ("a thread", 7, 20);
    let entered =
        |number, arguments| ("syscall_entry_unknown", vec![Value::I32(number), Value::Arguments(arguments)]);
    let left = |number| {
        let fields = vec![Value::I32(number), Value::I64(0), Value::Arguments([0; 6])];
        ("syscall_exit_unknown", fields)
    };
    let mut writer = Writer::create(&place.path().join("kernel"), layout(), 1).unwrap();
    let mut at = 1_000;
    for (number, arguments) in [(441, [5, 0x7ffc_0000, 8, 0, 0, 0]), (288, [5, 0, 0, 0, 0, 0])] {
        for (class, fields) in [
            ("sched_switch", switch(IDLE, 0, thread)),
            entered(number, arguments),
            ("sched_switch", switch(thread, 1, IDLE)),
            ("sched_waking", waking(thread)),
            ("sched_switch", switch(IDLE, 0, thread)),
            left(number),
            ("sched_switch", switch(thread, 0, IDLE)),
        ] {
            at += 1_000;
            writer.event(0, at, class, &[], &fields).unwrap();
        }
    }
    writer.finish().unwrap();

    let mut found = Vec::new();
    let mut take = |record: &Record| {
        if let Record::Activation(it) = record {
            found.push((it.separator.call, it.separator.object));
        }
        true
    };
    Import::open(place.path(), &Options::default()).unwrap().run(&mut take, &mut |_| {}).unwrap();
    let epoll = Object::File { class: FileClass::Epoll, fd: 5, identity: 0 };
    assert_eq!(found, [(Call::EpollPwait2, epoll), (Call::Suspension, Object::None)]);
}

#[test]
fn a_job_without_its_first_switch_has_no_cost_of_zero() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&place.path().join("kernel"), layout(), 1).unwrap();
    let (thread, other) = (("control", 40, 39), ("other", 7, 120));
    for job in 1..=3 {
        let release = job * 10_000_000;
        writer.event(0, release, "sched_waking", &[], &waking(thread)).unwrap();
        // In the second job, the switch from the other thread is missing.
        let first = if job == 2 { other } else { thread };
        writer.event(0, release + 5_000, "sched_switch", &[], &switch(IDLE, 0, first)).unwrap();
        writer.event(0, release + 1_005_000, "sched_switch", &[], &switch(thread, 1, IDLE)).unwrap();
    }
    writer.finish().unwrap();
    let import = Import::open(place.path(), &Options::default()).unwrap();
    let mut cpu = Vec::new();
    let mut take = |record: &Record| {
        if let Record::Activation(it) = record {
            cpu.push(it.cpu.ns() / 1_000);
        }
        true
    };
    let imported = import.run(&mut take, &mut |_| {}).unwrap();
    assert_eq!(cpu, [1_000, 2_000, 3_000]);
    assert!(imported.notes.iter().any(|note| note.starts_with("once a thread left")));
}

/// Where the switch to a thread is missing, the kernel's account counts, as with perf and trace-cmd.
#[test]
fn costs_are_the_kernels_account_where_switches_are_missing() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&place.path().join("kernel"), layout(), 1).unwrap();
    let (thread, other) = (("control", 40, 39), ("other", 7, 120));
    for job in 1..=3 {
        let release = job * 10_000_000;
        writer.event(0, release, "sched_waking", &[], &waking(thread)).unwrap();
        let first = if job == 2 { other } else { thread };
        writer.event(0, release + 5_000, "sched_switch", &[], &switch(IDLE, 0, first)).unwrap();
        let ran = if job == 2 { 600_000 } else { 1_000_000 };
        let account = account("control", 40, ran);
        writer.event(0, release + 1_004_000, "sched_stat_runtime", &[], &account).unwrap();
        writer.event(0, release + 1_005_000, "sched_switch", &[], &switch(thread, 1, IDLE)).unwrap();
    }
    writer.finish().unwrap();
    let mut cpu = Vec::new();
    let mut take = |record: &Record| {
        if let Record::Activation(it) = record {
            cpu.push(it.cpu.ns() / 1_000);
        }
        true
    };
    let import = Import::open(place.path(), &Options::default()).unwrap();
    let notes = import.run(&mut take, &mut |_| {}).unwrap().notes;
    // The account, and from there to the switch.
    assert_eq!(cpu, [1_000, 1_601, 2_601]);
    assert!(notes.iter().any(|note| note.contains("figure counts (sched_stat_runtime)")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("are not read")), "{notes:?}");
}

/// A backup beside the trace, or an earlier snapshot of the same session: their events come once.
#[test]
fn copies_of_a_trace_are_not_read() {
    let place = tempfile::tempdir().unwrap();
    let session = place.path().join("session");
    let mut writer = Writer::create(&session.join("kernel"), layout(), 2).unwrap();
    let thread = ("control", 40, 39);
    for job in 1..=4_000 {
        let cpu = job % 2;
        let at = u64::from(job) * 10_000_000;
        writer.event(cpu, at, "sched_switch", &[], &switch(IDLE, 0, thread)).unwrap();
        writer.event(cpu, at + 1_000, "sched_switch", &[], &switch(thread, 1, IDLE)).unwrap();
    }
    writer.finish().unwrap();
    let read = || {
        let mut records = Vec::new();
        let mut take = |record: &Record| {
            records.push(record.clone());
            true
        };
        let import = Import::open(&session, &Options::default()).unwrap();
        let notes = import.run(&mut take, &mut |_| {}).unwrap().notes;
        (records, notes)
    };
    let (records, notes) = read();
    assert!(!notes.iter().any(|note| note.contains("is a copy")), "{notes:?}");
    let (kernel, backup) = (session.join("kernel"), session.join("backup"));
    std::fs::create_dir(&backup).unwrap();
    for name in ["metadata", "channel0_0", "channel0_1"] {
        std::fs::copy(kernel.join(name), backup.join(name)).unwrap();
    }
    let is_said = |notes: &[String], what: &str, [copy, of]: [&Path; 2]| {
        let note = format!("{} is a {what} of {} and is not read", copy.display(), of.display());
        let said: Vec<&String> = notes.iter().filter(|note| note.contains("copy of")).collect();
        assert_eq!(said, [&note]);
    };
    let (of_both, notes) = read();
    assert_eq!(of_both, records);
    is_said(&notes, "copy", [&kernel, &backup]);
    // A later snapshot has some packets of the one before.
    for name in ["channel0_0", "channel0_1"] {
        let bytes = std::fs::read(kernel.join(name)).unwrap();
        let packet = u64::from_le_bytes(bytes[56..64].try_into().unwrap()) as usize / 8;
        std::fs::write(backup.join(name), &bytes[packet..]).unwrap();
    }
    let (_, notes) = read();
    assert_eq!(notes.iter().filter(|note| note.contains("overlap in time")).count(), 2, "{notes:?}");
    for name in ["channel0_0", "channel0_1"] {
        std::fs::copy(kernel.join(name), backup.join(name)).unwrap();
    }
    // The one that has more is read, also of the streams that are whole in both.
    let path = backup.join("channel0_0");
    let bytes = std::fs::read(&path).unwrap();
    for length in [bytes.len() - 100, 4_096, 1_000, 20] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let (of_both, notes) = read();
        assert_eq!(of_both, records, "{length}");
        is_said(&notes, "shorter copy", [&backup, &kernel]);
    }
    // Each of them lacks something: what each has is read.
    std::fs::write(&path, &bytes[..4_096]).unwrap();
    let other = std::fs::read(kernel.join("channel0_1")).unwrap();
    std::fs::write(kernel.join("channel0_1"), &other[..4_096]).unwrap();
    let (of_both, notes) = read();
    assert_eq!(of_both, records);
    let said: Vec<&String> = notes.iter().filter(|note| note.contains("is a shorter copy of")).collect();
    assert!(said.len() == 2 && said.iter().all(|note| note.contains("/channel0_")), "{notes:?}");
}

/// Writes the input of the fuzzer anew.
#[test]
#[ignore = "rewrites an input of the fuzz target lttng: run it when the reader learns a new form"]
fn write_an_input_of_the_fuzzer() {
    let place = tempfile::tempdir().unwrap();
    let small = Layout { packet_bytes: 4_096, ..layout() };
    let mut writer = Writer::create(&place.path().join("kernel"), small, 1).unwrap();
    let thread = ("control", 40, 39);
    for job in 1..=30 {
        let at = job * 10_000_000;
        writer.event(0, at, "sched_waking", &[], &waking(thread)).unwrap();
        writer.event(0, at + 1_000, "sched_switch", &[], &switch(IDLE, 0, thread)).unwrap();
        writer.event(0, at + 9_000, "sched_stat_runtime", &[], &account("control", 40, 8_000)).unwrap();
        writer.event(0, at + 9_500, "sched_switch", &[], &switch(thread, 1, IDLE)).unwrap();
    }
    writer.finish().unwrap();
    let of = |name: &str| std::fs::read(place.path().join("kernel").join(name)).unwrap();
    let (metadata, stream) = (of("metadata"), of("channel0_0"));
    let length = (metadata.len() as u16).to_le_bytes();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/lttng");
    let cut = &stream[..stream.len() * 5 / 8];
    std::fs::write(corpus.join("kernel"), [&length[..], &metadata, &stream].concat()).unwrap();
    std::fs::write(corpus.join("kernel_cut"), [&length[..], &metadata, cut].concat()).unwrap();
}

/// Jobs of a thread on processor 0, from 10 to 1,000 ms; processor 1 has one event at 5 ms, and ends with it.
fn two_processors(prepare: impl FnOnce(&mut Writer)) -> (About, Vec<Record>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&place.path().join("kernel"), layout(), 2).unwrap();
    prepare(&mut writer);
    let thread = ("control", 40, 39);
    writer.event(1, 5_000_000, "sched_switch", &[], &switch(IDLE, 0, ("other", 7, 120))).unwrap();
    for job in 1..=100 {
        writer.event(0, job * 10_000_000, "sched_switch", &[], &switch(IDLE, 0, thread)).unwrap();
        writer.event(0, job * 10_000_000 + 1_000, "sched_switch", &[], &switch(thread, 1, IDLE)).unwrap();
    }
    writer.finish().unwrap();
    let import = Import::open(place.path(), &Options::default()).unwrap();
    let (about, mut records) = (import.about().clone(), Vec::new());
    let mut take = |record: &Record| {
        records.push(record.clone());
        true
    };
    let imported = import.run(&mut take, &mut |_| {}).unwrap();
    (about, records, imported.notes)
}

#[test]
fn what_is_read_begins_where_no_stream_was_written_over_any_more() {
    let said = |notes: &[String]| notes.iter().find(|note| note.contains("written over")).cloned();
    // A processor whose first event comes late has not lost any.
    let (about, _, notes) = two_processors(|_| ());
    assert_eq!((about.from.ns(), said(&notes)), (5_000_000, None));
    let (about, records, notes) = two_processors(|writer| writer.write_over(0, 3));
    let expected = "the beginning of channel0_0 was written over: what is read begins at 0.010000000 s, from \
                    where on all is there; events before that, which are not read: 1";
    assert_eq!((about.from.ns(), said(&notes).as_deref()), (10_000_000, Some(expected)));
    assert!(records.iter().any(|record| matches!(record, Record::Task(task) if task.at.ns() == 10_000_000)));
}

#[test]
fn a_stream_that_ends_long_before_the_others_is_told() {
    let (.., notes) = two_processors(|_| ());
    let said: Vec<_> = notes.iter().filter(|note| note.contains("before the others")).collect();
    assert!(said.len() == 1 && said[0].starts_with("channel0_1 ends 995 ms before the others"), "{said:?}");
}

/// A trace with these metadata, and why it is refused.
fn refused(layout: Layout, change: impl FnOnce(String) -> String) -> String {
    let place = tempfile::tempdir().unwrap();
    let text = change(metadata(&layout));
    Writer::create(place.path(), layout, 1).unwrap().finish().unwrap();
    std::fs::write(place.path().join("metadata"), text).unwrap();
    Import::open(place.path(), &Options::default()).map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn metadata_that_lack_what_is_needed_are_refused_with_the_reason() {
    let why = refused(layout(), |text| text.replace("_prev_state", "_state"));
    assert!(why.contains("sched_switch have no field prev_state"), "{why}");
    let why = refused(layout(), |text| text.replace("map = clock.monotonic.value;", ""));
    assert!(why.contains("its events have no times"), "{why}");
}

/// Half as many ticks as nanoseconds.
#[test]
fn a_clock_of_another_frequency_is_scaled() {
    let place = tempfile::tempdir().unwrap();
    let layout = Layout { clock: ("monotonic", 500_000_000), ..layout() };
    let mut writer = Writer::create(place.path(), layout, 1).unwrap();
    writer.event(0, 1_000, "sched_switch", &[], &switch(IDLE, 0, ("control", 40, 39))).unwrap();
    writer.finish().unwrap();
    let import = Import::open(place.path(), &Options::default()).unwrap();
    assert_eq!(import.about().from.ns(), 2_000);
}

#[test]
fn damage_is_told_with_the_file_once() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&place.path().join("kernel"), layout(), 1).unwrap();
    writer.event(0, 1_000, "sched_switch", &[], &switch(IDLE, 0, ("control", 40, 39))).unwrap();
    writer.finish().unwrap();
    let path = stream_path(&place.path().join("kernel"), 0);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, [bytes, vec![7; 4_096]].concat()).unwrap();
    let import = Import::open(place.path(), &Options::default()).unwrap();
    let notes = import.run(&mut |_| true, &mut |_| {}).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("kernel/channel0_0, byte 4096: ")), "{notes:?}");
}

#[test]
fn events_that_are_not_read_are_counted() {
    const TIMER: &str = "timer_start";
    let place = tempfile::tempdir().unwrap();
    let classes = [layout().classes, &[(TIMER, &[])]].concat().leak();
    let mut writer = Writer::create(&place.path().join("kernel"), Layout { classes, ..layout() }, 1).unwrap();
    let thread = ("a thread", 7, 20);
    writer.event(0, 1_000, "sched_switch", &[], &switch(IDLE, 0, thread)).unwrap();
    for at in [2_000, 3_000] {
        writer.event(0, at, TIMER, &[], &[]).unwrap();
    }
    writer.event(0, 4_000, "sched_switch", &[], &switch(thread, 1, IDLE)).unwrap();
    writer.finish().unwrap();
    let import = Import::open(place.path(), &Options::default()).unwrap();
    let imported = import.run(&mut |_| true, &mut |_| {}).unwrap();
    assert_eq!(super::unread(&imported), [("timer_start", 2)]);
}
