//! Records and recordings to test with.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::*;
use punctual_trace::ctf::{Options, Reader, Recorded, Recorder};
use punctual_trace::*;
use std::path::Path;

/// Whatever the type can hold.
pub fn record() -> impl Strategy<Value = Record> {
    let tid = prop_oneof![1..6_u32, any::<u32>()];
    prop_oneof![
        6 => activation().prop_map(Record::Activation),
        1 => task().prop_map(|task| Record::Task(Box::new(task))),
        1 => task().prop_map(|task| Record::Known(Box::new(task))),
        1 => (tid.clone(), any::<u32>(), text()).prop_map(|(tid, sequence, name)| Record::Renamed { tid,
            sequence, name }),
        1 => (tid.clone(), any::<u32>(), text()).prop_map(|(tid, sequence, command)| Record::Command { tid,
            sequence, command }),
        1 => (tid.clone(), any::<u32>(), instant())
            .prop_map(|(tid, sequence, at)| Record::Exit { tid, sequence, at }),
        1 => (tid.clone(), any::<u32>(), instant())
            .prop_map(|(tid, sequence, at)| Record::Last { tid, sequence, at }),
        1 => (tid.clone(), any::<u32>(), duration())
            .prop_map(|(tid, sequence, cpu)| Record::Busy { tid, sequence, cpu }),
        1 => (instant(), any::<i64>()).prop_map(|(at, by_ns)| Record::ClockSet { at, by_ns }),
        1 => (instant(), instant()).prop_map(|(since, until)| Record::Lost { since, until }),
        1 => task().prop_map(|task| Record::Bystander(Box::new(task))),
        1 => (tid.clone(), instant()).prop_map(|(tid, at)| Record::BystanderExit { tid, at }),
        2 => (tid, instant(), any::<u32>(), step())
            .prop_map(|(tid, at, cpu, step)| Record::Switch(Switch { tid, at, cpu, step })),
        1 => (instant(), any::<u32>(), taker(), duration()).prop_map(|(at, cpu, by, time)| {
            Record::Switch(Switch { tid: 0, at, cpu, step: Step::Taken { by, time } })
        }),
    ]
}

fn taker() -> impl Strategy<Value = Taker> {
    prop_oneof![
        any::<u32>().prop_map(|number| Taker::Device { number, name: "nvme0q1" }),
        any::<u32>().prop_map(Taker::Softirq),
        Just(Taker::Timer),
        Just(Taker::Processor),
        Just(Taker::Hypervisor),
    ]
}

/// Mostly within some seconds, where the compact layouts fit; now and then anywhere.
pub fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![12 => 5_000_000_000..5_010_000_000_u64, 4 => 0..1_u64 << 43, 1 => any::<u64>()]
        .prop_map(Instant::from_ns)
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![4 => Just(0), 4 => 0..1_u64 << 34, 1 => any::<u64>()].prop_map(Duration::from_ns)
}

fn text() -> impl Strategy<Value = String> {
    // Without NULs, which have no place in a recording.
    prop_oneof!["[a-z/0-9 -]{0,15}", "\\PC{0,40}", "[^\u{0}]{0,20}"]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::In),
        Just(Step::Preempted),
        Just(Step::Throttled),
        any::<bool>().prop_map(|interruptible| Step::Asleep { interruptible }),
        Just(Step::Stopped),
        any::<u32>().prop_map(|by| Step::Woken { by }),
        any::<u32>().prop_map(|to| Step::Moved { to }),
        (any::<u32>(), any::<u32>()).prop_map(|(minor, major)| Step::Faulted { minor, major }),
        (0..5_u32, any::<bool>()).prop_map(|(owner, is_known)| Step::Blocked(Blocked {
            call: "futex",
            object: is_known.then_some("robot:lock"),
            owner,
        })),
    ]
}

fn separator() -> impl Strategy<Value = Separator> {
    let identity = prop_oneof![Just(0), any::<u64>()];
    let object = prop_oneof![
        Just(Object::None),
        (any::<i32>(), any::<bool>()).prop_map(|(id, absolute)| Object::Clock { id, absolute }),
        (select(FileClass::ALL), any::<i32>(), identity).prop_map(|(class, fd, identity)| Object::File {
            class,
            fd,
            identity
        }),
        (any::<u64>(), option::of("[ab]:[cd]{1,9}")).prop_map(|(address, name)| Object::Address {
            address,
            name: name.and_then(|name| ObjectName::new(&name)),
        }),
        any::<i32>().prop_map(Object::Id),
        Just(Object::Others),
    ];
    let any = (select(Call::ALL), object).prop_map(|(call, object)| Separator { call, object });
    let usual = Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };
    prop_oneof![3 => Just(usual), 1 => Just(Separator::SUSPENSION), 2 => any]
}

/// A separator, and what was ready there. What has a name is waited for alone.
fn separation() -> impl Strategy<Value = (Separator, Ready)> {
    let key = prop_oneof![4 => 3..7_u32, 1 => any::<u32>(), 1 => Just(Ready::TIMEOUT)];
    let ready = prop::collection::vec(key, 1..=Ready::MOST).prop_map(|keys| Ready::new(&keys));
    (separator(), prop::option::weighted(0.3, ready)).prop_map(|(separator, ready)| {
        let is_named = separator.object.name().is_some();
        (separator, ready.flatten().filter(|_| !is_named).unwrap_or_default())
    })
}

fn activation() -> BoxedStrategy<Activation> {
    prop_oneof![3 => usual_activation(), 1 => odd_activation()].boxed()
}

/// Around the sizes of the fields of the compact layouts.
fn length() -> impl Strategy<Value = u64> {
    let border = (select(&[0_u32, 16, 31, 32, 39, 40, 41, 55, 56, 57]), -1..=1_i64);
    let border = border.prop_map(|(bits, more)| (1_u64 << bits).saturating_add_signed(more));
    prop_oneof![6 => 0..1_u64 << 31, 1 => border]
}

/// What the kernel side sends: released after the stop, started after the release.
pub fn usual_activation() -> BoxedStrategy<Activation> {
    let times =
        ((1_u64 << 58)..(1 << 58) + (1 << 33), length(), length(), option::of((length(), any::<bool>())));
    let kinds =
        (any::<bool>(), prop::bool::weighted(0.1), prop_oneof![4 => Just(Duration::ZERO), 1 => duration()]);
    let more = (expirations(), disturbance());
    ((1..6_u32, any::<u32>(), separation()), times, length(), kinds, more)
        .prop_map(
            |(
                subject,
                (start, slept, latency, arrival),
                cpu,
                (is_asleep, is_window, suspended_after),
                (expirations, disturbance),
            )| {
                let (tid, sequence, (separator, ready)) = subject;
                let (stop, release) = (start - slept, start - latency);
                let window =
                    Window::new(Instant::from_ns(release - u64::from(is_window)), Instant::from_ns(release))
                        .expect("in order");
                let since = if is_asleep { release } else { stop };
                let arrival = arrival
                    .map(|(distance, is_late)| if is_late { since + distance } else { since - distance });
                Activation {
                    tid,
                    sequence,
                    separator,
                    slept: is_asleep,
                    stop: Instant::from_ns(stop),
                    cpu: Duration::from_ns(cpu),
                    arrival: arrival.map(Instant::from_ns),
                    resumed: Some(Resumed {
                        suspended_after,
                        expirations,
                        disturbance,
                        ready,
                        ..Resumed::new(is_asleep.then_some(window), Instant::from_ns(start))
                    }),
                }
            },
        )
        .boxed()
}

/// Mostly nothing is known, or that there was one.
fn expirations() -> impl Strategy<Value = u64> {
    let border = (-1..=1_i64).prop_map(|more| (1_u64 << 32).saturating_add_signed(more));
    prop_oneof![6 => Just(0_u64), 3 => Just(1), 1 => any::<u64>(), 1 => border]
}

fn disturbance() -> impl Strategy<Value = Option<Disturbance>> {
    let kinds = &[Disturbance::Signal, Disturbance::Ending, Disturbance::Stall][..];
    prop_oneof![6 => Just(None), 1 => select(kinds).prop_map(Some)]
}

fn odd_activation() -> BoxedStrategy<Activation> {
    let release = option::of((instant(), option::of(instant()))).prop_map(|given| {
        given.map(|(one, other)| {
            let other = other.unwrap_or(one);
            Window::new(one.min(other), one.max(other)).expect("in order")
        })
    });
    let after = prop_oneof![3 => Just(Duration::ZERO), 1 => duration()];
    let resumed = (release, instant(), after, expirations(), disturbance());
    let resumed = resumed.prop_map(|(release, start, suspended_after, expirations, disturbance)| Resumed {
        release,
        start,
        suspended_after,
        expirations,
        disturbance,
        ready: Ready::default(),
    });
    let resumed = prop::option::weighted(0.9, resumed);
    (
        1..6_u32,
        any::<u32>(),
        separation(),
        any::<bool>(),
        instant(),
        duration(),
        option::of(instant()),
        resumed,
    )
        .prop_map(|(tid, sequence, (separator, ready), slept, stop, cpu, arrival, resumed)| Activation {
            tid,
            sequence,
            separator,
            slept,
            stop,
            cpu,
            arrival,
            resumed: resumed.map(|resumed| Resumed { ready, ..resumed }),
        })
        .boxed()
}

fn task() -> BoxedStrategy<TaskRecord> {
    let begin = select(&[Begin::Seen, Begin::Policy, Begin::Priority, Begin::Affinity, Begin::Exec]);
    let policy = select(&[
        Policy::Other,
        Policy::Fifo,
        Policy::Rr,
        Policy::Batch,
        Policy::Idle,
        Policy::Deadline,
        Policy::Ext,
    ]);
    let reservation = option::of((any::<u64>(), any::<u64>(), any::<u64>()));
    let scheduling = (begin, policy, any::<u32>(), option::of(any::<i32>()), reservation);
    (1..6_u32, any::<(u32, u32)>(), instant(), scheduling, (text(), text(), text()))
        .prop_map(
            |(
                tid,
                (pid, sequence),
                at,
                (begin, policy, priority, nice, reservation),
                (name, command, affinity),
            )| TaskRecord {
                tid,
                pid,
                sequence,
                at,
                begin,
                name,
                command,
                policy,
                priority,
                nice,
                reservation: reservation.map(|(runtime, deadline, period)| Reservation {
                    runtime_ns: Duration::from_ns(runtime),
                    deadline_ns: Duration::from_ns(deadline),
                    period_ns: Duration::from_ns(period),
                }),
                affinity,
            },
        )
        .boxed()
}

/// Whatever can be true of a recording.
pub fn about() -> impl Strategy<Value = About> {
    let texts = (text(), text(), text(), text(), text());
    (texts, any::<u32>(), option::of(any::<i64>()), 1..u64::MAX, any::<bool>()).prop_map(
        |((kernel, machine, host, source, clock), cpus, clock_zero, from, switches)| About {
            platform: Platform { kernel, machine, cpus },
            host,
            source,
            clock,
            clock_zero,
            from: Instant::from_ns(from),
            switches,
            latency: false,
        },
    )
}

/// Something usual.
pub fn some_about() -> About {
    About {
        platform: Platform { kernel: "6.18.44".to_owned(), machine: "x86_64".to_owned(), cpus: 2 },
        host: "testbed".to_owned(),
        source: "punctual 0.1.0".to_owned(),
        clock: "CLOCK_MONOTONIC".to_owned(),
        clock_zero: Some(1_700_000_000_123_456_789),
        from: Instant::from_ns(1_000_000_000),
        switches: false,
        latency: false,
    }
}

pub fn totals(lost: u64) -> Totals {
    Totals { lost, ..Totals::default() }
}

/// A thread that comes into view.
pub fn seen(tid: u32, at_ns: u64) -> Record {
    Record::Task(Box::new(TaskRecord {
        tid,
        pid: 100,
        sequence: 0,
        at: Instant::from_ns(at_ns),
        begin: Begin::Seen,
        name: format!("thread {tid}"),
        command: "/usr/bin/threads --all".to_owned(),
        policy: Policy::Fifo,
        priority: 50,
        nice: None,
        reservation: None,
        affinity: "0-1".to_owned(),
    }))
}

/// What some threads of periods 1 ms, 2 ms, … do: `tids` of them, `jobs` of each.
pub fn periodic(tids: u32, jobs: u32) -> Vec<Record> {
    let mut all: Vec<(u64, Record)> =
        (1..=tids).map(|tid| (1_000_000_000, seen(tid, 1_000_000_000))).collect();
    for tid in 1..=tids {
        for job in 0..jobs {
            let arrival = 1_001_000_000 + u64::from(job) * u64::from(tid) * 1_000_000;
            let release = arrival + 1_000 + u64::from(job % 7);
            let start = release + 5_000;
            let activation = Activation {
                tid,
                sequence: job + 1,
                separator: Separator {
                    call: Call::ClockNanosleep,
                    object: Object::Clock { id: 1, absolute: true },
                },
                slept: true,
                stop: Instant::from_ns(arrival - 500_000),
                cpu: Duration::from_ns(u64::from(job) * 200_000),
                arrival: Some(Instant::from_ns(arrival)),
                resumed: Some(Resumed::new(
                    Some(Window::at(Instant::from_ns(release))),
                    Instant::from_ns(start),
                )),
            };
            all.push((start, Record::Activation(activation)));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, record)| record).collect()
}

pub const UNTIL: Instant = Instant::from_ns(3_000_000_000_000);

/// Records all of these.
pub fn make(folder: &Path, about: &About, options: &Options, records: &[Record]) -> Recorded {
    let mut recorder = Recorder::create(folder, about, options).expect("a recording");
    for record in records {
        recorder.record(record).expect("to be recorded");
    }
    recorder.finish(UNTIL, totals(0)).expect("to finish")
}

/// All records of a recording but those that the recorder itself put in, and how many of these there are.
pub fn read_all(reader: &Reader) -> Vec<Record> {
    let mut records = Vec::new();
    let damage =
        reader.read(0..reader.stretches(), &mut |record| records.push(record.clone())).expect("to be read");
    assert_eq!(damage, []);
    records
}

/// Without what a recorder repeats by itself.
pub fn without_known(records: &[Record]) -> Vec<Record> {
    let is_repeated = |record: &Record| matches!(record, Record::Known(_) | Record::Bystander(_));
    records.iter().filter(|record| !is_repeated(record)).cloned().collect()
}

/// A recording of some packets, in memory: metadata, and the only stream file.
pub fn small(tids: u32, jobs: u32) -> (String, Vec<u8>) {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("recording");
    make(&folder, &some_about(), &Options { packet_bytes: 0, ..Options::default() }, &periodic(tids, jobs));
    let metadata = std::fs::read_to_string(folder.join("metadata")).expect("metadata");
    (metadata, std::fs::read(folder.join("stream_0")).expect("a stream"))
}

/// One record of each kind and, where there are several, of each layout.
pub fn one_of_each() -> Vec<Record> {
    let ns = Instant::from_ns;
    let task = TaskRecord {
        tid: 7,
        pid: 6,
        sequence: 0,
        at: ns(1_000_000_100),
        begin: Begin::Exec,
        name: "näme".to_owned(),
        command: "/bin/näme \"-x\"".to_owned(),
        policy: Policy::Deadline,
        priority: 3,
        nice: Some(-5),
        reservation: Some(Reservation {
            runtime_ns: Duration::from_ns(11),
            deadline_ns: Duration::from_ns(12),
            period_ns: Duration::from_ns(13),
        }),
        affinity: "0-1".to_owned(),
    };
    let resumed = Resumed::new(Some(Window::at(ns(1_000_002_000))), ns(1_000_003_000));
    let activation = Activation {
        tid: 7,
        sequence: 1,
        separator: Separator {
            call: Call::Read,
            object: Object::File { class: FileClass::CharacterDevice, fd: -3, identity: 0xabc },
        },
        slept: true,
        stop: ns(1_000_001_000),
        cpu: Duration::from_ns(1 << 50),
        arrival: None,
        resumed: Some(resumed),
    };
    let clock = Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };
    let timed = Activation { sequence: 2, arrival: Some(ns(1_000_001_900)), separator: clock, ..activation };
    let without_sleep = Activation {
        sequence: 3,
        slept: false,
        arrival: Some(ns(1_000_001_400)),
        resumed: Some(Resumed { release: None, ..resumed }),
        ..activation
    };
    let window = Window::new(ns(1_000_001_500), ns(1_000_002_500));
    let wide = Activation {
        sequence: 4,
        arrival: Some(ns(17)),
        resumed: Some(Resumed { release: window, suspended_after: Duration::from_ns(5), ..resumed }),
        ..activation
    };
    let lock = Object::Address { address: 0x40, name: ObjectName::new("robot:lock") };
    let counted = Activation {
        sequence: 5,
        separator: Separator { call: Call::FutexWait, object: lock },
        resumed: Some(Resumed { expirations: 3, ..resumed }),
        ..activation
    };
    let disturbed = Resumed { expirations: 1 << 40, disturbance: Some(Disturbance::Signal), ..resumed };
    let disturbed = Activation { sequence: 6, resumed: Some(disturbed), ..activation };
    let ready = Ready::new(&[5, Ready::TIMEOUT]).expect("two keys");
    let ready = Activation { sequence: 7, resumed: Some(Resumed { ready, ..resumed }), ..activation };
    let taken = |by| {
        let step = Step::Taken { by, time: Duration::from_ns(900) };
        Record::Switch(Switch { tid: 0, at: ns(1_000_003_500), cpu: 1, step })
    };
    let switch = |step| Record::Switch(Switch { tid: 7, at: ns(1_000_003_500), cpu: 1, step });
    let idle = TaskRecord {
        begin: Begin::Seen,
        nice: None,
        reservation: None,
        policy: Policy::Idle,
        ..task.clone()
    };
    vec![
        Record::Task(Box::new(task)),
        Record::Known(Box::new(idle)),
        Record::Activation(activation),
        Record::Activation(timed),
        Record::Activation(without_sleep),
        Record::Activation(wide),
        Record::Activation(counted),
        Record::Activation(disturbed),
        Record::Activation(ready),
        Record::Renamed { tid: 7, sequence: 8, name: "new".to_owned() },
        Record::Command { tid: 7, sequence: 9, command: "/bin/new".to_owned() },
        switch(Step::In),
        switch(Step::Preempted),
        switch(Step::Asleep { interruptible: false }),
        switch(Step::Woken { by: 9 }),
        switch(Step::Stopped),
        switch(Step::Throttled),
        switch(Step::Moved { to: 3 }),
        switch(Step::Blocked(Blocked { call: "fsync", object: Some("robot.log"), owner: 0 })),
        switch(Step::Blocked(Blocked { call: "futex", object: None, owner: 9 })),
        switch(Step::Faulted { minor: 3, major: 1 }),
        taken(Taker::Device { number: 24, name: "nvme0q1" }),
        taken(Taker::Softirq(7)),
        taken(Taker::Hypervisor),
        Record::Busy { tid: 8, sequence: 7, cpu: Duration::from_ns(3_000) },
        Record::ClockSet { at: ns(1_000_003_500), by_ns: -5_000_000_000 },
        Record::Lost { since: ns(1_000_003_300), until: ns(1_000_003_450) },
        // Earlier than the one before.
        Record::Exit { tid: 7, sequence: 10, at: ns(1_000_003_400) },
        Record::Last { tid: 8, sequence: 8, at: ns(1_000_003_600) },
    ]
}
