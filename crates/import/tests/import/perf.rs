//! What perf records: files with a known truth, and what it records on this machine.

use super::perf_file::{Calls, DIES, File, IDLES, IS_PREEMPTED, Packing, SLEEPS, SWITCH, WAITS_FOR_DISK};
use super::{activations, folder, import, import_with, losses, mutations};
use punctual_import::{Error, ErrorKind, Import, Imported, Options};
use punctual_model::{Call, Duration, FileClass, Instant, Object, Policy, Separator, Window};
use punctual_trace::{Begin, Record, Step, TaskRecord};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Kernel priorities: of FIFO 60, of nobody in particular, and of SCHED_DEADLINE.
pub const FIFO_60: i32 = 39;
const OTHER: i32 = 120;
const DEADLINE: i32 = -1;
pub const IDLE: (i32, i32) = (0, 120);
pub const SLEEP: i64 = 230;
const READ: i64 = 0;

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn imported(file: &File) -> Result<(Vec<Record>, Imported), Error> {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("perf.data");
    fs::write(&path, file.bytes()).expect("written");
    import(&path)
}

fn tasks(records: &[Record]) -> Vec<&TaskRecord> {
    records
        .iter()
        .filter_map(|record| if let Record::Task(task) = record { Some(task.as_ref()) } else { None })
        .collect()
}

/// Thread 40 of period 10 ms: 1 ms of work with a sleep for the disk of 200 µs in it. Its calls come before
/// the switches that they cause.
pub fn periodic(jobs: u64) -> File {
    periodic_with(Calls::All, jobs)
}

fn periodic_with(calls: Calls, jobs: u64) -> File {
    let mut file = File::with(calls);
    file.name(0, 39, 40, "control", false);
    for job in 1..=jobs {
        let arrival = job * 10_000;
        file.waking(arrival + 1, 0, 40)
            .switch(arrival + 5, (0, 120, 0), (40, FIFO_60))
            .leave(arrival + 6, 40, SLEEP, 0)
            .enter(arrival + 400, 40, READ, [3, 0, 8, 0, 0, 0])
            .switch(arrival + 405, (40, FIFO_60, WAITS_FOR_DISK), IDLE)
            .waking(arrival + 605, 0, 40)
            .switch(arrival + 610, (0, 120, 0), (40, FIFO_60))
            .leave(arrival + 611, 40, READ, 8)
            .switch(arrival + 700, (40, FIFO_60, IS_PREEMPTED), (7, 0))
            .switch(arrival + 800, (7, 0, SLEEPS), (40, FIFO_60))
            .enter(arrival + 1_305, 40, SLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0])
            .switch(arrival + 1_310, (40, FIFO_60, SLEEPS), IDLE)
            .round();
    }
    file
}

#[test]
fn a_recording_with_a_known_truth() {
    let (records, imported) = imported(&periodic(20)).expect("imported");
    let task = tasks(&records).into_iter().find(|task| task.tid == 40).expect("a task");
    assert_eq!((task.pid, task.name.as_str(), task.policy, task.priority), (39, "control", Policy::Fifo, 60));
    let seen: Vec<_> = activations(&records).into_iter().filter(|activation| activation.tid == 40).collect();
    // A sleep and a wait for the disk in each period; the first sleep began before the recording, the last
    // one did not end in it.
    assert_eq!(seen.len(), 40);
    let sleep = Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };
    for (index, pair) in seen.chunks_exact(2).enumerate() {
        let arrival = (index as u64 + 1) * 10_000;
        // What a descriptor is, is not known: waiting for a disk is no event.
        assert_eq!((pair[0].separator, pair[1].separator), (Separator::SUSPENSION, sleep));
        assert_eq!((pair[0].stop, pair[1].stop), (at(arrival + 405), at(arrival + 1_310)));
        // 400 + 90 + 510 µs in each job, preemption and suspension left out.
        assert_eq!(pair[1].cpu, Duration::from_us(1_000 * (index as u64 + 1)));
        assert_eq!(pair[0].cpu, Duration::from_us(1_000 * index as u64 + 400));
        assert_eq!(pair[0].resumed.expect("resumed").release, Some(Window::at(at(arrival + 605))));
        match pair[1].resumed {
            Some(resumed) => assert_eq!(
                (resumed.release, resumed.start),
                (Some(Window::at(at(arrival + 10_001))), at(arrival + 10_005))
            ),
            None => assert_eq!(index, 19),
        }
    }
    let steps =
        records.iter().filter(|record| matches!(record, Record::Switch(switch) if switch.tid == 40)).count();
    // The first wake-up came before it was known to be a thread to follow.
    assert_eq!(steps, 20 * 8 - 1);
    assert_eq!(imported.until, at(201_310));
    let of_clock = imported.notes.iter().filter(|note| note.contains("perf's own clock"));
    assert_eq!(of_clock.count(), 1, "{:?}", imported.notes);
    // Loans are recorded.
    let lacks: Vec<_> =
        imported.account.lacks.iter().filter(|it| it.is_recordable).map(|it| it.what).collect();
    assert_eq!(lacks, [""; 0]);
}

/// As virtual machines do: the trace lacks the switches by which the thread gets the processor.
#[test]
fn a_job_without_its_first_switch_has_no_cost_of_zero() {
    let mut file = File::default();
    for job in 1..=4 {
        let release = job * 10_000;
        file.waking(release, 0, 40);
        match job {
            1 | 4 => _ = file.switch(release + 5, (0, 120, 0), (40, FIFO_60)),
            // Another thread before it, or its migration.
            2 => _ = file.switch(release + 3, (0, 120, 0), (7, 120)),
            _ => _ = file.migrate(release + 2, 40),
        }
        file.switch(release + 1_005, (40, FIFO_60, SLEEPS), IDLE).round();
    }
    let (records, imported) = imported(&file).expect("imported");
    let cpu: Vec<_> = activations(&records).iter().map(|activation| activation.cpu.ns() / 1_000).collect();
    assert_eq!(cpu, [1_000, 2_002, 3_005, 4_005]);
    let said: Vec<_> = imported.notes.iter().filter(|note| note.contains("too high")).collect();
    assert!(said.len() == 1 && said[0].starts_with("2 times a thread left"), "{said:?}");
}

/// `perf record --exclude-perf` does not see a thread get the processor from perf, nor be woken meanwhile.
/// The kernel's own account tells how long it ran.
#[test]
fn costs_are_the_kernels_account_where_switches_are_missing() {
    let imported_with = |has_accounts: bool| {
        let mut file = File::default();
        for job in 1..=20 {
            let release = job * 1_500;
            if job % 5 != 0 {
                file.waking(release, 0, 40).switch(release + 5, (0, 120, 0), (40, FIFO_60));
            }
            file.leave(release + 7, 40, SLEEP, 0).enter(release + 9, 40, SLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0]);
            if has_accounts {
                file.runtime(release + 13, 40, 12);
            }
            file.switch(release + 14, (40, FIFO_60, SLEEPS), IDLE).round();
        }
        imported(&file).expect("imported")
    };
    let jobs = |records: &[Record]| {
        let cpu: Vec<_> = activations(records).iter().map(|seen| seen.cpu.ns() / 1_000).collect();
        cpu.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    let said = |imported: &Imported, what: &str| imported.notes.iter().any(|note| note.starts_with(what));
    let (records, with) = imported_with(true);
    assert_eq!(jobs(&records), (2..=20).map(|job| if job % 5 == 0 { 13 } else { 9 }).collect::<Vec<_>>());
    assert!(said(&with, "switches that are not in the trace: 4; "), "{:?}", with.notes);
    assert!(!with.notes.iter().any(|note| note.contains("too high")), "{:?}", with.notes);
    let (records, without) = imported_with(false);
    let most = jobs(&records).into_iter().max();
    assert!(most == Some(1_500) && said(&without, "4 times a thread left, or used"), "{:?}", without.notes);
}

/// `-e 'syscalls:sys_enter_*,syscalls:sys_exit_*'` instead of `raw_syscalls:*`, or as well.
#[test]
fn the_tracepoints_of_each_call_say_the_same_as_those_of_all() {
    let (expected, _) = imported(&periodic(20)).expect("imported");
    let (one, of_one) = imported(&periodic_with(Calls::One, 20)).expect("imported");
    assert_eq!((one, super::unread(&of_one)), (expected.clone(), vec![]));
    assert!(of_one.account.lacks.iter().all(|lack| lack.what != "system calls"));
    // Both say the same twice.
    let (both, of_both) = imported(&periodic_with(Calls::Both, 20)).expect("imported");
    assert_eq!(both, expected);
    let twice = [("sys_enter_clock_nanosleep", 20), ("sys_exit_clock_nanosleep", 20)];
    assert_eq!(super::unread(&of_both), twice);
}

#[test]
fn totals_and_platform_are_imported() {
    let folder = folder(&[]);
    let path = folder.path().join("perf.data");
    fs::write(&path, periodic(2).bytes()).expect("written");
    let import = punctual_import::Import::open(&path, &Options::default()).expect("opened");
    let about = import.about();
    assert_eq!(
        (about.host.as_str(), about.source.as_str(), about.clock.as_str()),
        ("machine", "perf 6.1", "perf")
    );
    assert_eq!(
        (about.platform.kernel.as_str(), about.platform.machine.as_str(), about.platform.cpus),
        ("6.12.0-rt", "x86_64", 2)
    );
    // The header does not say; the name came at 0, long before.
    assert_eq!((about.from, about.clock_zero, about.switches), (at(10_001), None, true));
}

#[test]
fn records_of_all_processors_are_in_order_of_time() {
    // One after the other, as perf writes them: each processor's for itself.
    let mut file = File::default();
    file.switch(100, (0, 120, 0), (40, FIFO_60)).switch(300, (40, FIFO_60, SLEEPS), IDLE);
    file.waking(500, 0, 40).waking(200, 0, 41).switch(250, (0, 120, 0), (41, FIFO_60)).round();
    file.switch(600, (0, 120, 0), (40, FIFO_60)).round();
    let (records, imported) = imported(&file).expect("imported");
    let steps: Vec<_> = records
        .iter()
        .filter_map(|record| {
            if let Record::Switch(switch) = record {
                Some((switch.at.ns() / 1_000, switch.tid, switch.step))
            } else {
                None
            }
        })
        .collect();
    let asleep = Step::Asleep { interruptible: true };
    // 41 was woken before it was known.
    let expected = [
        (100, 40, Step::In),
        (250, 41, Step::In),
        (300, 40, asleep),
        (500, 40, Step::Woken { by: 0 }),
        (600, 40, Step::In),
    ];
    assert_eq!(steps, expected);
    assert!(!imported.notes.iter().any(|note| note.contains("out of order")));
}

#[test]
fn no_model_spans_a_loss() {
    for younger in [false, true] {
        let mut file = periodic(3);
        match younger {
            false => file.lost(32_000, 5),
            true => file.lost_samples(32_000, 5),
        };
        file.waking(40_001, 0, 40).switch(40_005, (0, 120, 0), (40, FIFO_60)).leave(40_006, 40, SLEEP, 0);
        let (records, imported) = imported(&file).expect("imported");
        assert_eq!(imported.totals.lost, 5);
        // Where there was no room to say so, it may have been after the last event of any processor; that of
        // another one is its first.
        let lost = if younger { (10_001, u64::MAX / 1_000) } else { (31_310, 32_000) };
        assert_eq!(losses(&records), [lost]);
        let numbers: Vec<u32> =
            activations(&records).iter().filter(|seen| seen.tid == 40).map(|seen| seen.sequence).collect();
        let Some(Record::Last { sequence, .. }) = records.iter().rev().find(|record| record.tid() == 40)
        else {
            panic!("it lives")
        };
        // One number is left out, and nothing is said of the sleep in which events were lost.
        assert_eq!((numbers.last().copied(), *sequence), (Some(5), 7));
    }
}

/// In the end perf counts, for each event, what it has lost: of that, buffers have reported all but the last.
#[test]
fn what_is_lost_is_counted_once() {
    for (reported, of_events, lost, gaps) in
        [(5, vec![5], 5, 1), (5, vec![2, 3], 5, 1), (5, vec![4, 3], 7, 2), (0, vec![2, 3], 5, 2)]
    {
        let mut file = periodic(3);
        if reported > 0 {
            file.lost(32_000, reported);
        }
        for count in &of_events {
            file.lost_samples(33_000, *count);
        }
        let (records, imported) = imported(&file).expect("imported");
        let found = (imported.totals.lost, losses(&records).len());
        assert_eq!(found, (lost, gaps), "{reported} and {of_events:?}");
    }
}

#[test]
fn threads_are_followed_from_becoming_real_time_until_their_end() {
    let mut file = File::default();
    file.name(10, 50, 50, "other", false)
        .switch(100, (0, 120, 0), (50, OTHER))
        .switch(200, (50, OTHER, SLEEPS), IDLE)
        .switch(300, (0, 120, 0), (50, FIFO_60))
        .name(310, 50, 50, "renamed", false)
        .name(320, 50, 50, "executed", true)
        .switch(400, (50, FIFO_60 - 1, SLEEPS), IDLE)
        .switch(500, (0, 120, 0), (50, OTHER))
        .switch(600, (50, OTHER, DIES), IDLE);
    let (records, _) = imported(&file).expect("imported");
    let story: Vec<String> = records
        .iter()
        .filter_map(|record| match record {
            Record::Task(task) => {
                Some(format!("{:?} {} {:?} {}", task.begin, task.name, task.policy, task.priority))
            }
            Record::Renamed { name, .. } => Some(format!("is {name}")),
            Record::Exit { .. } => Some("exit".into()),
            _ => None,
        })
        .collect();
    let expected = [
        "Seen other Fifo 60",
        "is renamed",
        "Exec executed Fifo 60",
        "Priority executed Fifo 61",
        "Policy executed Other 0",
    ];
    assert_eq!(story, expected);

    let directory = folder(&[]);
    let path = directory.path().join("perf.data");
    fs::write(&path, file.bytes()).expect("written");
    let (records, _) =
        import_with(&path, &Options { include_best_effort: true, ..Options::default() }).expect("imported");
    assert_eq!(tasks(&records)[0].at, at(100));
}

/// A priority that is lent for the time that a lock is held makes no task.
#[test]
fn an_inherited_priority_is_not_the_threads_own() {
    let mut file = File::default();
    file.switch(100, (0, 120, 0), (40, FIFO_60))
        .lend(150, 40, FIFO_60, 10)
        .switch(200, (40, 10, IS_PREEMPTED), IDLE)
        .switch(300, (0, 120, 0), (40, 10))
        .lend(350, 40, 10, FIFO_60)
        .switch(400, (40, FIFO_60, SLEEPS), (60, OTHER))
        .lend(450, 60, OTHER, 10)
        .switch(500, (60, 10, SLEEPS), IDLE);
    let (records, _) = imported(&file).expect("imported");
    // Nor does it make a thread a real-time one.
    assert_eq!(
        tasks(&records).iter().map(|task| (task.tid, task.begin)).collect::<Vec<_>>(),
        [(40, Begin::Seen)]
    );
    let others: Vec<&Record> = records.iter().filter(|record| record.tid() != 40).collect();
    // Who preempts a thread is of interest, though it has no model.
    let [Record::Bystander(first), Record::Switch(got), Record::Bystander(lent), Record::Switch(left)] =
        others[..]
    else {
        panic!("{others:?}");
    };
    assert_eq!((first.tid, first.at, first.priority), (60, at(400), 0));
    assert_eq!((lent.tid, lent.at, lent.priority), (60, at(500), 89));
    assert_eq!((got.at, got.step), (at(400), Step::In));
    assert_eq!((left.at, left.step), (at(500), Step::Asleep { interruptible: true }));
}

/// Threads of the kernel wait without being counted as load; that is a sleep like any other.
#[test]
fn idling_is_sleeping() {
    let mut file = File::default();
    file.switch(100, (0, 120, 0), (40, FIFO_60)).switch(200, (40, FIFO_60, IDLES), IDLE);
    file.waking(900, 0, 40).switch(910, (0, 120, 0), (40, FIFO_60)).switch(
        1_000,
        (40, FIFO_60, SLEEPS),
        IDLE,
    );
    let seen = activations(&imported(&file).expect("imported").0);
    assert_eq!(
        (seen[0].stop, seen[0].cpu, seen[0].resumed.expect("resumed").release),
        (at(200), Duration::from_us(100), Some(Window::at(at(900))))
    );
    assert_eq!(seen[1].cpu, Duration::from_us(190));
}

#[test]
fn a_deadline_thread_yields() {
    let mut file = File::default();
    for job in 1..=3 {
        let begin = job * 12_000;
        file.switch(begin, (0, 120, 0), (40, DEADLINE));
        file.leave(begin + 1, 40, 24, 0).enter(begin + 300, 40, 24, [0; 6]).switch(
            begin + 302,
            (40, DEADLINE, 0),
            IDLE,
        );
    }
    let (records, _) = imported(&file).expect("imported");
    assert_eq!(tasks(&records)[0].policy, Policy::Deadline);
    let seen = activations(&records);
    assert_eq!((seen.len(), seen[0].separator.call), (3, Call::SchedYield));
    // No wake-up is seen: its budget came back some time before it ran.
    assert_eq!(seen[0].resumed.expect("resumed").release, Window::new(at(12_302), at(24_000)));
}

#[test]
fn a_read_that_waits_is_named_by_its_descriptor() {
    let mut file = File::default();
    file.switch(100, (0, 120, 0), (40, FIFO_60));
    for (begin, call) in [(200, READ), (400, 45)] {
        file.enter(begin, 40, call, [5, 0, 8, 0, 0, 0])
            .switch(begin + 5, (40, FIFO_60, SLEEPS), IDLE)
            .waking(begin + 100, 9, 40)
            .switch(begin + 105, (0, 120, 0), (40, FIFO_60))
            .leave(begin + 106, 40, call, 8);
    }
    // Nothing had to be waited for: whether it could have, nobody knows.
    file.enter(600, 40, READ, [5, 0, 8, 0, 0, 0]).leave(601, 40, READ, 8);
    let seen = activations(&imported(&file).expect("imported").0);
    let separators: Vec<_> = seen.iter().map(|activation| activation.separator).collect();
    let file = |class| Object::File { class, fd: 5, identity: 0 };
    let read = Separator { call: Call::Read, object: file(FileClass::Other) };
    let receive = Separator { call: Call::Recvfrom, object: file(FileClass::Socket) };
    assert_eq!(separators, [read, receive]);
}

#[test]
fn damage_is_reported_with_its_place() {
    // A header that says less than a header's length.
    let whole = periodic(8);
    let mut bytes = whole.bytes();
    let record = bytes.windows(8).position(|bytes| bytes == [68, 0, 0, 0, 0, 0, 8, 0]).expect("a round");
    let at_end = bytes.len() / 2;
    let broken =
        bytes[at_end..].windows(8).position(|bytes| bytes == [68, 0, 0, 0, 0, 0, 8, 0]).expect("a round")
            + at_end;
    assert!(broken > record);
    bytes[broken + 6] = 1;
    let directory = folder(&[]);
    let path = directory.path().join("perf.data");
    fs::write(&path, &bytes).expect("written");
    let (records, imported) = import(&path).expect("imported");
    let place = format!("perf.data, byte {broken} or so");
    assert!(imported.notes.iter().any(|note| note.contains(&place)), "{:?}", imported.notes);
    assert!(imported.totals.lost == 1 && !activations(&records).is_empty());

    let refused = |bytes: &[u8], why: &str| {
        fs::write(&path, bytes).expect("written");
        let error = import(&path).expect_err("refused");
        assert!(error.kind() == ErrorKind::Malformed && error.to_string().contains(why), "{error}");
    };
    let bytes = whole.bytes();
    refused(
        &bytes[..bytes.len() - 1],
        "does not lie within the file: it was cut short, or perf was killed before it finished; copy all",
    );
    refused(&bytes[..20], "cut off in its header; copy all of it, or run perf record to its end");
    let patched = |at: usize, with: &[u8]| [&bytes[..at], with, &bytes[at + with.len()..]].concat();
    refused(&patched(48, &[0; 8]), "killed while it recorded");
    refused(&patched(8, &16_u64.to_le_bytes()), "no event follows what perf writes to a pipe");
    let piped = whole.piped();
    refused(&piped[..200], "cut off before the first event");
    let place = piped.windows(4).position(|bytes| bytes == [66, 0, 0, 0]).expect("descriptions") + 8;
    let large = [&piped[..place], &[0xff; 4], &piped[place + 4..]].concat();
    refused(&large, "descriptions of events cannot be 4294967295 bytes long");
    refused(&patched(0, b"2ELIFREP"), "big-endian");
    let name = bytes.windows(12).position(|bytes| bytes == b"sched_switch").expect("its name");
    refused(&patched(name, b"sched_sweets"), "no tracepoint sched:sched_switch");
}

/// With `-F` or `-c`, perf records only some events of a tracepoint.
#[test]
fn a_sample_of_the_events_is_refused() {
    let (whole, directory) = (periodic(8).bytes(), folder(&[]));
    let path = directory.path().join("perf.data");
    // The only event: a tracepoint, its number, and how many events there are for one record.
    let described = |number: u16, period: u64| {
        let numbers = [u64::from(number), period].map(u64::to_le_bytes).concat();
        [&[2, 0, 0, 0, 64, 0, 0, 0], &numbers[..]].concat()
    };
    let place = whole.windows(24).position(|bytes| bytes == described(SWITCH, 1)).expect("described");
    let imported = |number: u16, period: u64, is_frequency: bool| {
        let mut bytes = whole.clone();
        bytes[place..place + 24].copy_from_slice(&described(number, period));
        bytes[place + 41] |= u8::from(is_frequency) << 2;
        fs::write(&path, bytes).expect("written");
        import(&path)
    };
    for (period, is_frequency) in [(2, false), (200, true), (1, true)] {
        let error = imported(SWITCH, period, is_frequency).expect_err("refused").to_string();
        assert!(error.contains("perf recorded only some of its events, those of sched_switch"), "{error}");
    }
    // Of what is not described, nobody knows whether it is read.
    let (_, imported) = imported(999, 2, false).expect("imported");
    assert!(imported.notes.iter().any(|note| note.starts_with("PERF RECORDED ONLY SOME EVENTS")));
}

/// The library would take that much memory.
#[test]
fn sizes_in_the_file_are_checked() {
    let mut file = periodic(3);
    file.traced_by_the_processor(u64::MAX / 4);
    let (_, imported) = imported(&file).expect("imported");
    assert!(
        imported.notes.iter().any(|note| note.contains("traces of the processor")),
        "{:?}",
        imported.notes
    );
}

/// `perf record -o - > FILE`: what is in the header of a file is in records in front.
#[test]
fn what_perf_wrote_to_a_pipe_is_read() {
    let mut file = periodic(20);
    let of = |bytes: &[u8]| {
        let directory = folder(&[]);
        let path = directory.path().join("perf.data");
        fs::write(&path, bytes).expect("written");
        let about = Import::open(&path, &Options::default()).expect("opened").about().clone();
        let (records, imported) = import(&path).expect("imported");
        (about, records, imported.until)
    };
    let whole = of(&file.bytes());
    assert_eq!(of(&file.piped()), whole);
    file.function();
    assert_eq!((of(&file.piped()), of(&file.bytes())), (whole.clone(), whole));
    file.lost(900_000, 5);
    assert_eq!(of(&file.piped()), of(&file.bytes()));
    let directory = folder(&[]);
    let path = directory.path().join("changed.data");
    mutations(&periodic(3).piped(), 500, |bytes| {
        fs::write(&path, bytes).expect("written");
        let _ = super::import(&path);
    });
}

/// A pipe says nowhere how long it is: what was cut off is known by the record that it was cut in, or by the
/// round that has no end.
#[test]
fn a_pipe_that_is_cut_off_is_noted() {
    let directory = folder(&[]);
    let path = directory.path().join("perf.data");
    let imported = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        import(&path).expect("imported")
    };
    let mut file = migrating(50);
    file.round();
    for bytes in [file.piped(), file.packed(Packing::Plain(60_000)).piped()] {
        let (whole, of_whole) = imported(&bytes);
        let is_noted = |notes: &[String], what: &str| notes.iter().any(|note| note.contains(what));
        assert!(of_whole.totals.lost == 0 && !is_noted(&of_whole.notes, "cannot be read"));
        let is_round = |place: &usize| bytes[*place..].starts_with(&[68, 0, 0, 0, 0, 0, 8, 0]);
        let rounds: Vec<usize> = (0..bytes.len()).filter(is_round).collect();
        let round = rounds[rounds.len() / 2];
        let cuts = [
            (
                round,
                format!("byte {round} or so: it cannot be read any further (it was cut off within a round"),
            ),
            (
                round + 4,
                format!("byte {round} or so: it cannot be read any further (it is cut off within a rec"),
            ),
            (round - 3, "cut off within a record".to_owned()),
        ];
        for (cut, note) in cuts {
            let (records, of_part) = imported(&bytes[..cut]);
            assert!(is_noted(&of_part.notes, &note), "{:?}", of_part.notes);
            assert_eq!((of_part.totals.lost, losses(&records).len()), (1, 1));
            let (seen, all) = (activations(&records), activations(&whole));
            assert!(seen.len() > 15 && seen.len() < 25 && all.starts_with(&seen), "{}", seen.len());
        }
    }
}

/// What `cat` makes of two recordings: the first one is read.
#[test]
fn a_second_recording_behind_the_first_is_noted() {
    let directory = folder(&[]);
    let path = directory.path().join("perf.data");
    let imported = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        let (records, imported) = import(&path).expect("imported");
        (activations(&records), imported.notes)
    };
    let file = periodic(20);
    let (one, pipe) = (file.bytes(), file.piped());
    let (alone, _) = imported(&one);
    let (seen, notes) = imported(&[&one[..], &one].concat());
    let note = format!("another perf.data follows at byte {}, which is not read: import it alone", one.len());
    assert!(seen == alone && notes.iter().any(|it| it.starts_with(&note)), "{notes:?}");
    let (seen, notes) = imported(&[&pipe[..], &pipe].concat());
    let note = format!("byte {} or so: it cannot be read any further (another perf.data begins", pipe.len());
    assert!(alone.starts_with(&seen) && notes.iter().any(|it| it.contains(&note)), "{notes:?}");
}

/// `perf record -z`: the same records, packed.
#[test]
fn what_perf_packed_is_read() {
    let of = |bytes: &[u8]| {
        let directory = folder(&[]);
        let path = directory.path().join("perf.data");
        fs::write(&path, bytes).expect("written");
        let (records, imported) = import(&path).expect("imported");
        let (of_pipe, notes): (Vec<String>, Vec<String>) =
            imported.notes.into_iter().partition(|note| note.starts_with("what perf writes to a pipe"));
        assert_eq!(of_pipe.len(), usize::from(bytes[8] == 16), "the header of a pipe has 16 bytes");
        (records, imported.until, imported.totals, notes)
    };
    let mut file = periodic(100);
    file.lost(1_100_000, 5);
    let plain = of(&file.bytes());
    // Records may begin in one piece and end in the next.
    for packing in [Packing::Plain(60_000), Packing::Plain(100), Packing::Sized(60_000), Packing::Sized(104)]
    {
        let packed = file.packed(packing);
        assert!(packed.bytes().len() < file.bytes().len(), "{packing:?}");
        assert_eq!(of(&packed.bytes()), plain, "{packing:?}");
        assert_eq!(of(&packed.piped()), plain, "{packing:?} in a pipe");
    }
}

/// What is packed cannot be read behind a damage; nor does it take more memory than it should.
#[test]
fn damage_of_what_perf_packed_is_reported() {
    let directory = folder(&[]);
    let path = directory.path().join("perf.data");
    let file = periodic(100).packed(Packing::Plain(60_000));
    let bytes = file.bytes();
    let damaged = |place: usize| {
        let mut bytes = bytes.clone();
        bytes[place..place + 8].fill(0xff);
        fs::write(&path, bytes).expect("written");
        import(&path).expect("imported")
    };
    let piece = |number: usize| {
        let pieces = bytes.windows(6).enumerate().filter(|(_, bytes)| *bytes == [81, 0, 0, 0, 0, 0]);
        pieces.map(|(place, _)| place).nth(number).expect("a piece")
    };
    let (records, imported) = damaged(piece(60) + 8);
    let note = imported.notes.iter().find(|note| note.contains("what is compressed is damaged"));
    assert!(note.is_some_and(|note| note.contains("what follows is left out")), "{:?}", imported.notes);
    assert_eq!((imported.totals.lost, losses(&records).len()), (1, 1));
    let seen = activations(&records).len();
    assert!((150..300).contains(&seen), "what came before is there: {seen}");
    mutations(&bytes, 300, |bytes| {
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
}

/// Writes the corpus of the fuzzer anew.
#[test]
#[ignore = "rewrites the inputs of the fuzz target perf: run it when the reader learns a new form"]
fn write_inputs_of_the_fuzzer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/perf");
    fs::create_dir_all(&folder).expect("made");
    let mut file = periodic(3);
    file.lost(90_000, 1).name(90_001, 39, 40, "executed", true).lend(90_002, 40, FIFO_60, 10);
    let (packed, sized) = (file.packed(Packing::Plain(300)), file.packed(Packing::Sized(304)));
    let inputs = [("file", file.bytes()), ("pipe", file.piped()), ("packed", packed.bytes())];
    for (name, bytes) in inputs.into_iter().chain([("packed_pipe", sized.piped())]) {
        fs::write(folder.join(name), bytes).expect("written");
    }
}

/// Thread 40 of [`periodic`] wakes up on one processor and then moves to the other.
fn migrating(jobs: u64) -> File {
    let mut file = File::default();
    file.name(0, 39, 40, "control", false);
    for job in 1..=jobs {
        let arrival = job * 10_000;
        let cpu = (job % 2) as u32;
        file.on(cpu)
            .waking(arrival + 1, 0, 40)
            .switch(arrival + 5, (0, 120, 0), (40, FIFO_60))
            .leave(arrival + 6, 40, SLEEP, 0)
            .switch(arrival + 400, (40, FIFO_60, IS_PREEMPTED), IDLE)
            .on(1 - cpu)
            .switch(arrival + 500, (0, 120, 0), (40, FIFO_60))
            .enter(arrival + 1_095, 40, SLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0])
            .switch(arrival + 1_100, (40, FIFO_60, SLEEPS), IDLE)
            .round();
    }
    file
}

fn write_all(folder: &Path, files: &[(String, Vec<u8>)]) {
    files.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).expect("written"));
}

/// `perf record --threads`, which writes a file for each processor: with -z, too.
#[test]
fn folders_of_perf_are_merged() {
    let mut file = migrating(500);
    file.lost(5_100_000, 5);
    let whole = imported(&file).expect("imported");
    for packing in [None, Some(Packing::Plain(60_000)), Some(Packing::Sized(1_000))] {
        let folder = folder(&[]);
        write_all(folder.path(), &file.split(2, packing));
        for path in [folder.path().to_owned(), folder.path().join("data")] {
            let (records, imported) = import(&path).expect("imported");
            assert_eq!(records, whole.0, "{packing:?}");
            assert_eq!(imported.notes, whole.1.notes, "{packing:?}");
        }
    }
}

/// What perf did not record is noted: by its list of what it did, or else by what came.
#[test]
fn processors_without_events_are_noted() {
    let notes = |files: &[(String, Vec<u8>)]| {
        let folder = folder(&[]);
        write_all(folder.path(), files);
        import(folder.path()).expect("imported").1.notes
    };
    let recorded = "perf recorded 1 of 2 processors (0)";
    let seen = "only 1 of 2 processors had events (1)";
    let has = |notes: &[String], what: &str| notes.iter().any(|note| note.starts_with(what));
    let mut of_first = File::default();
    of_first.on(0).switch(100, (0, 120, 0), (40, FIFO_60)).switch(200, (40, FIFO_60, SLEEPS), IDLE);
    let of_one = notes(&of_first.split(1, None));
    assert!(has(&of_one, recorded) && !has(&of_one, seen), "{of_one:?}");
    let idle = notes(&of_first.split(2, None));
    assert!(!has(&idle, "perf recorded") && !has(&idle, "only"), "{idle:?}");
    let unlisted = notes(&[("data".to_owned(), periodic(3).bytes())]);
    assert!(!has(&unlisted, recorded) && !has(&unlisted, seen), "names are on another one: {unlisted:?}");
    let mut of_second = File::default();
    of_second.switch(100, (0, 120, 0), (40, FIFO_60)).switch(200, (40, FIFO_60, SLEEPS), IDLE);
    let unlisted = notes(&[("data".to_owned(), of_second.bytes())]);
    assert!(has(&unlisted, seen) && !has(&unlisted, recorded), "{unlisted:?}");
}

/// The file with the header lists the others: one that is gone is no processor that was idle.
#[test]
fn missing_and_broken_files_of_a_folder_are_reported() {
    let files = migrating(500).split(2, None);
    let import_of = |change: &dyn Fn(&Path)| {
        let folder = folder(&[]);
        write_all(folder.path(), &files);
        change(folder.path());
        import(folder.path()).expect("imported")
    };
    for number in ["0", "1"] {
        let name = format!("data.{number}");
        let (records, imported) = import_of(&|folder| fs::remove_file(folder.join(&name)).expect("removed"));
        let note = format!("{name}, with the events of processor {number}, is missing");
        assert!(imported.notes.iter().any(|it| it.starts_with(&note)), "{:?}", imported.notes);
        assert_eq!(imported.totals.lost, 1);
        assert_eq!(losses(&records).len(), 1);
    }
    let (_, whole) = import_of(&|_| {});
    assert_eq!(whole.totals.lost, 0);
    let (records, imported) = import_of(&|folder| {
        let bytes = &files[2].1;
        fs::write(folder.join("data.1"), &bytes[..bytes.len() / 2 + 1]).expect("written");
    });
    let is_said = |note: &&String| note.contains("data.1, byte") && note.contains("cut off within a record");
    assert!(imported.notes.iter().any(|note| is_said(&note)), "{:?}", imported.notes);
    assert_eq!(imported.totals.lost, 1);
    // What the other file has beyond it is of no use.
    let last = activations(&records).iter().map(|seen| seen.stop).max().expect("some");
    assert!(last < at(3_000_000), "{last:?}");
    let (records, imported) = import_of(&|folder| {
        fs::write(folder.join("data.1"), []).expect("written");
        fs::write(folder.join("data.old"), "else").expect("written");
    });
    let note = "data.1, with the events of processor 1, is empty: what threads did there is not in it, or";
    assert!(imported.notes.iter().any(|it| it.starts_with(note)), "{:?}", imported.notes);
    assert_eq!((imported.totals.lost, losses(&records).len()), (1, 1));
    // It ends with a record, three seconds early.
    let shorter = migrating(200).split(2, None);
    let (_, imported) =
        import_of(&|folder| fs::write(folder.join("data.1"), &shorter[2].1).expect("written"));
    let ends: Vec<_> = imported.notes.iter().filter(|note| note.contains("before the others")).collect();
    assert!(ends.len() == 1 && ends[0].starts_with("data.1 ends 2.9 s before"), "{:?}", imported.notes);
    assert!(!whole.notes.iter().any(|note| note.contains("before the others")), "{:?}", whole.notes);
}

/// What only looks as if it belonged to the recording is not even opened.
#[test]
fn other_files_in_a_folder_are_left_out() {
    let files = migrating(50).split(2, None);
    let import_of = |change: &dyn Fn(&Path)| {
        let folder = folder(&[]);
        write_all(folder.path(), &files);
        change(folder.path());
        import(folder.path()).expect("imported")
    };
    let has = |imported: &Imported, what: &str| imported.notes.iter().any(|note| note.starts_with(what));
    let whole = import_of(&|_| {});
    let stale = import_of(&|folder| fs::write(folder.join("data.2"), &files[2].1).expect("written"));
    assert_eq!(stale.0, whole.0);
    assert!(has(&stale.1, "data.2 is not one of the files that perf listed"), "{:?}", stale.1.notes);
    let put = |make: &dyn Fn(&Path)| {
        import_of(&|folder| {
            fs::remove_file(folder.join("data.1")).expect("removed");
            make(&folder.join("data.1"));
        })
    };
    let (_, of_folder) = put(&|path| fs::create_dir(path).expect("made"));
    let (_, of_pipe) = put(&|path| {
        assert!(Command::new("mkfifo").arg(path).status().is_ok_and(|status| status.success()));
    });
    for (imported, what) in [(of_folder, "a folder, not a file"), (of_pipe, "no regular file")] {
        assert!(has(&imported, &format!("data.1 is {what}: it is left out")), "{:?}", imported.notes);
        assert!(has(&imported, "data.1, with the events of processor 1, is missing"));
    }
}

#[test]
fn changed_files_cause_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changed.data");
    let mut file = periodic(3);
    file.lost(90_000, 1).name(90_001, 39, 40, "executed", true).lend(90_002, 40, FIFO_60, 10);
    let original = file.bytes();
    mutations(&original, 500, |bytes| {
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
    // Every byte of the header, and of what describes the events.
    for place in (0..104).chain(original.len() - 500..original.len()) {
        let mut bytes = original.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    }
}

/// Records what goes on here for a moment; `None`, with a line that says so, where perf cannot.
fn recorded_by_perf(folder: &Path) -> Option<Vec<u8>> {
    let path = folder.join("perf.data");
    let recorded = Command::new("perf")
        .args([
            "record",
            "-q",
            "-a",
            "-e",
            "sched:sched_switch,sched:sched_waking,raw_syscalls:*",
            "--exclude-perf",
            "-o",
        ])
        .arg(&path)
        .args(["--", "sleep", "0.05"])
        .output();
    match recorded {
        Ok(output) if output.status.success() => fs::read(&path).ok(),
        _ => {
            skipped!("perf cannot record here");
            None
        }
    }
}

/// Not every wake-up and not every switch is in a trace.
const TEN_SLEEPS: &str = "for turn in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done";

/// What this machine's perf writes to a pipe, with a tracepoint for each call.
#[test]
fn a_pipe_of_this_machine_is_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_stat_runtime,\
                  syscalls:sys_enter_clock_nanosleep,syscalls:sys_exit_clock_nanosleep";
    let recorded = Command::new("perf")
        .args(["record", "-q", "-a", "-e", events, "--exclude-perf", "-o", "-", "--", "sh", "-c", TEN_SLEEPS])
        .output();
    let Some(output) = recorded.ok().filter(|output| output.status.success()) else {
        skipped!("perf cannot record here");
        return;
    };
    let path = folder.path().join("perf.pipe");
    fs::write(&path, &output.stdout).expect("written");
    let (records, imported) =
        import_with(&path, &Options { include_best_effort: true, ..Options::default() }).expect("imported");
    assert!(!imported.notes.iter().any(|note| note.contains("cannot be read")), "{:?}", imported.notes);
    assert!(tasks(&records).iter().any(|task| task.name == "sleep"), "the command is among the threads");
    let calls = activations(&records).into_iter().filter(|seen| seen.separator.call == Call::ClockNanosleep);
    assert!(calls.count() > 0, "its call is known");
}

/// What others did is missing where perf was told whom to follow.
#[test]
fn a_recording_of_chosen_threads_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    for (whom, is_noted) in [(&["-p", "1"][..], true), (&["--tid=1"], true), (&["-a"], false)] {
        let recorded = Command::new("perf")
            .args(["record", "-q", "-e", "sched:sched_switch", "-o"])
            .arg(&path)
            .args(whom)
            .args(["--", "sleep", "0.1"])
            .output();
        if !recorded.is_ok_and(|output| output.status.success()) {
            skipped!("perf cannot record with {whom:?} here");
            continue;
        }
        let options = Options { include_best_effort: true, ..Options::default() };
        let (_, imported) = import_with(&path, &options).expect("imported");
        let is_it = imported.notes.iter().any(|note| note.contains("perf followed some threads"));
        assert_eq!(is_it, is_noted, "{whom:?}: {:?}", imported.notes);
    }
}

/// What perf packs, splits into files of processors, or both: it unpacks and merges them to the same events.
#[test]
fn perf_reads_its_packed_and_split_recordings_as_we_do() {
    for way in [&["-z"][..], &["--threads=cpu"], &["--threads=cpu", "-z"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.data");
        let events = "sched:sched_switch,sched:sched_waking,raw_syscalls:*";
        let recorded = Command::new("perf")
            .args(["record", "-q", "-a", "-m", "1M", "-e", events, "--exclude-perf", "-o"])
            .arg(&path)
            .args(way)
            .args(["--", "sh", "-c", TEN_SLEEPS])
            .output();
        let fields = ["--ns", "--show-lost-events", "-F", "comm,pid,tid,cpu,time,event,trace", "-i"];
        let printed = Command::new("perf").arg("script").args(fields).arg(&path).output();
        let is_made = recorded.is_ok_and(|output| output.status.success());
        let Some(printed) = printed.ok().filter(|output| is_made && output.status.success()) else {
            skipped!("perf cannot record with {way:?} here");
            continue;
        };
        let text = folder.path().join("perf.txt");
        fs::write(&text, &printed.stdout).expect("written");
        let machine = punctual_import::Machine::from_name(std::env::consts::ARCH);
        let options = Options { include_best_effort: true, machine };
        let (records, imported) = import_with(&path, &options).expect("imported");
        let (of_text, _) = import_with(&text, &options).expect("imported");
        if imported.totals.lost > 0 {
            skipped!("perf lost events with {way:?}");
            continue;
        }
        let story = |records: &[Record]| {
            let seen = activations(records).into_iter();
            let mut story: Vec<_> = seen.map(|it| (it.stop, it.tid, it.cpu, it.separator)).collect();
            // Events of two processors may have the same time.
            story.sort_by_key(|it| (it.0, it.1));
            story
        };
        let (ours, perfs) = (story(&records), story(&of_text));
        assert!(ours.len() >= 10, "{way:?}: {} activations", ours.len());
        let differs = ours.iter().zip(&perfs).position(|(one, other)| one != other);
        let place = differs.unwrap_or(ours.len().min(perfs.len()));
        let near = |all: &[_]| format!("{:#?}", &all[place.saturating_sub(2)..all.len().min(place + 4)]);
        assert!(
            ours == perfs,
            "{way:?}, at {place}: {}, not {}; {:?}",
            near(&ours),
            near(&perfs),
            imported.notes
        );
    }
}

/// What this machine's perf writes is read to its end, and changes of it do not hurt.
#[test]
fn a_recording_made_on_this_machine_is_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(original) = recorded_by_perf(folder.path()) else { return };
    let path = folder.path().join("perf.data");
    let (records, imported) =
        import_with(&path, &Options { include_best_effort: true, ..Options::default() }).expect("imported");
    assert!(!imported.notes.iter().any(|note| note.contains("cannot be read")), "{:?}", imported.notes);
    assert!(
        tasks(&records).iter().any(|task| task.name == "sleep" && task.pid != 0),
        "the command is among the threads"
    );
    let path = folder.path().join("changed.data");
    let tail = original.len() - original.len().min(4_096);
    mutations(&original[tail..], 20, |changed| {
        fs::write(&path, [&original[..tail], changed].concat()).expect("written");
        let _ = import(&path);
    });
}
