//! Records of a time-triggered dispatcher survive the disk, and other readers find their fields.

use super::babeltrace::babeltrace;
use super::generate::*;
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::{Duration, Instant};
use punctual_trace::Record;
use punctual_trace::ctf::{Options, Reader};
use punctual_trace::dispatch::{Dispatch, Guest, Table, Task, Turn};

fn duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_ns)
}

fn turn() -> impl Strategy<Value = Turn> {
    let place = (any::<u32>(), any::<u64>(), any::<u32>());
    // 4294967295 stands for none.
    let owner = (prop::option::of(0..u32::MAX), any::<u32>(), any::<u32>());
    let times = (duration(), duration(), duration(), instant());
    (place, owner, times, any::<[bool; 3]>()).prop_map(|(place, owner, times, flags)| Turn {
        cpu: place.0,
        slot: place.1,
        slots: place.2,
        task: owner.0,
        job: owner.1,
        tid: owner.2,
        error: times.0,
        ran: times.1,
        outside: times.2,
        at: times.3,
        is_overrun: flags[0],
        is_missed: flags[1],
        is_skipped: flags[2],
    })
}

fn guest() -> impl Strategy<Value = Guest> {
    (any::<(u32, u32, u64)>(), any::<(u64, u32, u64)>(), "[a-zü]{0,20}").prop_map(|(who, what, name)| Guest {
        number: who.0,
        cpu: who.1,
        slot: who.2,
        deadline: what.0,
        slots: what.1,
        period: what.2,
        name,
    })
}

fn any_dispatch() -> impl Strategy<Value = Dispatch> {
    let table = (instant(), duration(), any::<u32>(), any::<bool>(), any::<bool>()).prop_map(
        |(start, slot, slots, is_tai, is_sched_ext)| Table { start, slot, slots, is_tai, is_sched_ext },
    );
    let task = (any::<u32>(), "[a-zü]{0,20}", any::<u32>());
    prop_oneof![
        table.prop_map(Dispatch::Table),
        task.prop_map(|(number, name, tid)| Dispatch::Task(Box::new(Task { number, name, tid }))),
        turn().prop_map(Dispatch::Turn),
        any::<(u32, u64)>().prop_map(|(cpu, count)| Dispatch::Lost { cpu, count }),
        guest().prop_map(|guest| Dispatch::Guest(Box::new(guest))),
        any::<(u32, u64)>().prop_map(|(number, slot)| Dispatch::GuestOver { number, slot }),
    ]
}

proptest! {
    #[test]
    fn what_a_dispatcher_did_is_read_back_unchanged(all in vec(any_dispatch(), 0..200)) {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("recording");
        let records: Vec<Record> = all.into_iter().map(Record::Dispatch).collect();
        make(&folder, &some_about(), &Options { packet_bytes: 0, ..Options::default() }, &records);
        let reader = Reader::open(&folder)?;
        prop_assert!(reader.complete());
        prop_assert_eq!(read_all(&reader), records);
    }
}

/// One of each kind.
pub fn one_of_each_dispatch() -> Vec<Record> {
    let turn = Turn {
        cpu: 3,
        slot: 12_345,
        slots: 2,
        task: Some(1),
        job: 17,
        tid: 25_708,
        error: Duration::from_us(9),
        ran: Duration::from_us(5_990),
        outside: Duration::from_us(1),
        is_overrun: true,
        is_missed: false,
        is_skipped: false,
        at: Instant::from_ns(1_000_000_900),
    };
    let all = [
        Dispatch::Table(Table {
            start: Instant::from_ns(1_000_000_000),
            slot: Duration::from_ms(3),
            slots: 500,
            is_tai: true,
            is_sched_ext: false,
        }),
        Dispatch::Task(Box::new(Task { number: 1, name: "control".into(), tid: 25_708 })),
        Dispatch::Turn(turn),
        Dispatch::Turn(Turn { task: None, job: 0, tid: 0, is_missed: true, ..turn }),
        Dispatch::Lost { cpu: 3, count: 4 },
        Dispatch::Guest(Box::new(Guest {
            number: 2,
            cpu: 3,
            slot: 12_350,
            deadline: 40,
            slots: 7,
            period: 0,
            name: "backup".into(),
        })),
        Dispatch::GuestOver { number: 2, slot: 12_355 },
    ];
    all.into_iter().map(Record::Dispatch).collect()
}

#[test]
fn babeltrace_finds_every_field_of_a_turn() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    make(&folder, &some_about(), &Options::default(), &one_of_each_dispatch());
    let Some(lines) = babeltrace(&folder, &["--clock-cycles"]) else { return };
    let line = |name: &str| lines.iter().find(|line| line.contains(name)).expect(name);
    for field in ["slot = 12345", "task = 1,", "tid = 25708", "error_ns = 9000", "flags = 1"] {
        assert!(line(" turn: ").contains(field), "{field}: {}", line(" turn: "));
    }
    assert!(line(" table: ").contains("slots = 500"), "{}", line(" table: "));
    assert!(line(" table_task: ").contains("control"), "{}", line(" table_task: "));
    assert!(line(" turns_lost: ").contains("count = 4"), "{}", line(" turns_lost: "));
    assert!(line(" guest: ").contains("deadline = 40"), "{}", line(" guest: "));
    assert!(line(" guest_over: ").contains("slot = 12355"), "{}", line(" guest_over: "));
}
