//! Records of several threads, from ordinary to adversarial.

use proptest::prelude::*;
use punctual_extract::{Options, StreamOptions};
use punctual_model::{
    Call, Disturbance, Duration, FileClass, Instant, Object, ObjectName, Policy, Separator, Window,
};
use punctual_trace::{Activation, Begin, Ready, Record, Resumed, Step, Switch, TaskRecord};

pub fn options(horizon: usize, merge_transitions: bool) -> Options {
    Options {
        stream: StreamOptions { curve_horizon: horizon, wcet_horizon: horizon, ..StreamOptions::default() },
        merge_transitions,
    }
}

/// What a thread does next.
#[derive(Clone, Debug)]
pub enum Act {
    Separates(Separation),
    Busy(u32),
    SetsClock(i32),
    Begins(Begin),
    Known {
        stale: bool,
    },
    Renamed(u8),
    Command(u8),
    Exits,
    Last,
    /// Some of its records are lost.
    Loses(u32),
    Switches,
}

/// How a thread reaches a separating call.
#[derive(Clone, Debug)]
pub struct Separation {
    pub runs: u64,
    pub place: u8,
    /// Which of several files the descriptor currently is.
    pub file: u8,
    /// `None`: the call did not wait.
    pub sleeps: Option<u64>,
    /// Width of the window in which the sleep ended.
    pub unseen: u64,
    /// How long before (or after) the end of the call the next job was due.
    pub due: Option<i64>,
    pub after: u64,
    pub resumes: bool,
    pub expirations: u64,
    pub disturbance: Option<Disturbance>,
    /// Clocks that run backwards: by this much.
    pub back: u64,
}

const PLACES: u8 = 48;

fn named(address: u64, name: &str) -> Object {
    Object::Address { address, name: ObjectName::new(name) }
}

/// The same records of another run, in which the program is elsewhere in memory. Addresses without a name
/// stay.
pub fn moved(records: &[Record]) -> Vec<Record> {
    let mut records = records.to_vec();
    for record in &mut records {
        if let Record::Activation(activation) = record {
            if let Object::Address { address, name: Some(_) } = &mut activation.separator.object {
                *address += 0x5500_0000_0000;
            }
        }
    }
    records
}

fn separator(place: u8, file: u8) -> Separator {
    match place {
        0 => Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } },
        1 => Separator::SUSPENSION,
        2 => Separator { call: Call::FutexWait, object: Object::address(0x1000) },
        3 => Separator { call: Call::SchedYield, object: Object::None },
        4 => Separator { call: Call::FutexWait, object: named(0x2000, "robot:lock") },
        6 => Separator { call: Call::FutexWait, object: named(0x3000, "robot+0x4080") },
        _ => {
            let object = Object::File {
                class: FileClass::Pipe,
                fd: i32::from(place),
                identity: 1_000 + u64::from(file),
            };
            Separator { call: if place % 2 == 0 { Call::Read } else { Call::Poll }, object }
        }
    }
}

/// What was ready at the end of a poll: one of three descriptors, or several; rarely that is not known.
fn ready(separation: &Separation) -> Ready {
    let first = (separation.runs % 3) as u32;
    let keys: &[u32] = match separation.runs % 64 {
        _ if separator(separation.place, 0).call != Call::Poll => &[],
        0 => &[],
        1..8 => &[first, first + 1],
        _ => &[first],
    };
    Ready::new(keys).unwrap_or_default()
}

fn separation(places: u8, wild: bool, waits: u32) -> impl Strategy<Value = Separation> {
    let rare = |weight| if wild { weight } else { 0 };
    let (runs, place, file) =
        (1..5_000_u64, 0..places, prop_oneof![30 => Just(0_u8), 1 + rare(5) => 0..3_u8]);
    // Now and then longer than curves reach.
    let long = if wild { 48..54_u64 } else { 0..45 };
    let sleeps = prop_oneof![
        waits => (1..9_000_u64).prop_map(Some),
        20 + rare(100) => Just(None),
        waits.div_ceil(12) => long.prop_map(|power| Some((1 << power) + power)),
    ];
    let unseen = prop_oneof![80 => Just(0), 10 => 0..3_000_u64, 1 + rare(20) => Just(u64::MAX)];
    let due = prop_oneof![3 => Just(None), 1 => (-200_i64..5_000).prop_map(Some)];
    let after = prop_oneof![9 => Just(0), 1 => 1..500_u64];
    let disturbances = [Disturbance::Signal, Disturbance::Ending, Disturbance::Stall];
    let disturbance =
        prop::option::weighted(if wild { 0.2 } else { 0.01 }, prop::sample::select(disturbances.to_vec()));
    let disturbances = (prop_oneof![9 => Just(0_u64), 1 => 1..4_u64], disturbance);
    let (resumes, back) = (
        prop_oneof![60 => Just(true), 1 + rare(5) => Just(false)],
        prop_oneof![40 => Just(0), 1 + rare(2) => 0..20_000_u64],
    );
    let back = if wild { back.boxed() } else { Just(0).boxed() };
    (runs, place, file, sleeps, unseen, due, after, resumes, back, disturbances).prop_map(
        |(runs, place, file, sleeps, unseen, due, after, resumes, back, (expirations, disturbance))| {
            // Outside of separating calls there are only sleeps.
            let sleeps = if place == 1 { sleeps.or(Some(5)) } else { sleeps };
            let due = due.filter(|_| place == 0);
            Separation {
                runs,
                place,
                file,
                sleeps,
                unseen,
                due,
                after,
                resumes,
                expirations,
                disturbance,
                back,
            }
        },
    )
}

fn act(places: u8, calm: u32, wild: bool, waits: u32) -> impl Strategy<Value = Act> {
    let begins = prop_oneof![
        Just(Begin::Seen),
        Just(Begin::Policy),
        Just(Begin::Priority),
        Just(Begin::Affinity),
        Just(Begin::Exec)
    ];
    prop_oneof![
        calm => separation(places, wild, waits).prop_map(Act::Separates),
        1 => begins.prop_map(Act::Begins),
        2 => any::<bool>().prop_map(move |stale| Act::Known { stale: stale && wild }),
        1 => (0..3_u8).prop_map(Act::Renamed),
        1 => (0..3_u8).prop_map(Act::Command),
        1 => prop_oneof![Just(Act::Exits), Just(Act::Last)],
        1 => (1..5_u32).prop_map(Act::Loses),
        1 => Just(Act::Switches),
        1 => any::<u32>().prop_map(Act::Busy),
        1 => any::<i32>().prop_map(Act::SetsClock),
    ]
}

/// Records of up to four threads: `most` of them at most.
pub fn records(most: usize) -> impl Strategy<Value = Vec<Record>> {
    let places = prop_oneof![3 => Just(1_u8), 2 => Just(3_u8), 3 => Just(6_u8), 1 => Just(PLACES)];
    let calm = prop_oneof![Just(20_u32), Just(100), Just(1_000)];
    // Some hardly ever wait: their event has already happened.
    let waits = prop_oneof![9 => Just(240_u32), 1 => Just(1)];
    let acts = (places, calm, prop::bool::weighted(0.3), waits, 1..5_u8).prop_flat_map(
        move |(places, calm, wild, waits, threads)| {
            prop::collection::vec((0..threads, act(places, calm, wild, waits)), 0..most)
        },
    );
    let first = prop_oneof![8 => Just(0_u32), 1 => Just(u32::MAX - 20)];
    (acts, first, prop::bool::weighted(0.9))
        .prop_map(|(acts, first, introduced)| World::new(first, introduced).play(acts))
}

struct Thread {
    tid: u32,
    sequence: u32,
    cpu: u64,
    alive: bool,
}

/// Makes records of what threads do.
struct World {
    threads: Vec<Thread>,
    now: u64,
    introduced: bool,
    records: Vec<Record>,
}

impl World {
    fn new(first: u32, introduced: bool) -> World {
        let threads =
            (0..4).map(|tid| Thread { tid: 100 + tid, sequence: first, cpu: 0, alive: false }).collect();
        World { threads, now: 1 << 33, introduced, records: Vec::new() }
    }

    fn play(mut self, acts: Vec<(u8, Act)>) -> Vec<Record> {
        for (number, act) in acts {
            let thread = &mut self.threads[usize::from(number)];
            // Usually a thread is introduced before anything else.
            if self.introduced
                && !thread.alive
                && !matches!(act, Act::Begins(Begin::Seen) | Act::Known { .. })
            {
                self.records.push(begins_as(thread.tid, next(thread), self.now, Begin::Seen));
            }
            thread.alive = true;
            let (tid, at) = (thread.tid, Instant::from_ns(self.now));
            let record = match act {
                Act::Separates(separation) => {
                    let activation = separate(thread, &mut self.now, &separation);
                    thread.sequence = thread.sequence.wrapping_add(1);
                    Record::Activation(activation)
                }
                Act::Begins(begin) => begins_as(thread.tid, next(thread), self.now, begin),
                Act::Known { stale } => {
                    let sequence = thread.sequence.wrapping_sub(u32::from(stale));
                    match begins(tid, sequence, self.now) {
                        Record::Task(task) => Record::Known(task),
                        other => other,
                    }
                }
                Act::Renamed(name) => {
                    Record::Renamed { tid, sequence: next(thread), name: format!("name {name}") }
                }
                Act::Command(command) => {
                    Record::Command { tid, sequence: next(thread), command: format!("command {command}") }
                }
                Act::Exits => {
                    thread.alive = false;
                    Record::Exit { tid, sequence: next(thread), at }
                }
                Act::Last => {
                    thread.alive = false;
                    Record::Last { tid, sequence: next(thread), at }
                }
                Act::Loses(some) => {
                    thread.sequence = thread.sequence.wrapping_add(some);
                    continue;
                }
                Act::Busy(cpu) => {
                    Record::Busy { tid, sequence: next(thread), cpu: Duration::from_ns(cpu.into()) }
                }
                Act::SetsClock(by) => Record::ClockSet { at, by_ns: by.into() },
                Act::Switches => Record::Switch(Switch { tid, at, cpu: 0, step: Step::In }),
            };
            self.records.push(record);
        }
        self.records
    }
}

fn next(thread: &mut Thread) -> u32 {
    thread.sequence = thread.sequence.wrapping_add(1);
    thread.sequence.wrapping_sub(1)
}

/// A thread comes into view.
pub fn begins(tid: u32, sequence: u32, at: u64) -> Record {
    begins_as(tid, sequence, at, Begin::Seen)
}

fn begins_as(tid: u32, sequence: u32, at: u64, begin: Begin) -> Record {
    Record::Task(Box::new(TaskRecord {
        tid,
        pid: 50 + tid / 102,
        sequence,
        at: Instant::from_ns(at),
        begin,
        name: format!("thread {sequence}"),
        command: if sequence % 3 == 0 { "same".into() } else { format!("command {sequence}") },
        policy: if begin == Begin::Policy { Policy::Other } else { Policy::Fifo },
        priority: sequence % 90,
        nice: None,
        reservation: None,
        affinity: "0-1".into(),
    }))
}

fn separate(thread: &mut Thread, now: &mut u64, separation: &Separation) -> Activation {
    *now = *now + separation.runs - separation.back.min(*now / 2);
    thread.cpu = (thread.cpu + separation.runs).saturating_sub(separation.back / 2);
    let stop = *now;
    let release = separation.sleeps.map(|sleeps| {
        *now += sleeps;
        let earliest = Instant::from_ns(*now - separation.unseen.min(sleeps));
        Window::new(earliest, Instant::from_ns(*now)).expect("in order")
    });
    let late = if release.is_some() { 3 } else { 0 };
    let start = *now + late;
    let after = if release.is_some() { separation.after } else { 0 };
    *now = start + after;
    let resumed = Resumed {
        release,
        start: Instant::from_ns(start),
        suspended_after: Duration::from_ns(after),
        expirations: separation.expirations,
        disturbance: separation.disturbance,
        ready: ready(separation),
    };
    Activation {
        tid: thread.tid,
        sequence: thread.sequence,
        separator: separator(separation.place, separation.file),
        slept: release.is_some(),
        stop: Instant::from_ns(stop),
        cpu: Duration::from_ns(thread.cpu),
        arrival: separation.due.map(|before| Instant::from_ns(start.saturating_add_signed(-before))),
        resumed: separation.resumes.then_some(resumed),
    }
}

/// A sleep at a futex, from `stop` to `release`, by a thread that takes no processor time.
pub fn sleep(tid: u32, sequence: u32, stop: u64, release: u64) -> Activation {
    let resumed = Resumed::new(Some(Window::at(Instant::from_ns(release))), Instant::from_ns(release + 10));
    Activation {
        tid,
        sequence,
        separator: separator(2, 0),
        slept: true,
        stop: Instant::from_ns(stop),
        cpu: Duration::ZERO,
        arrival: None,
        resumed: Some(resumed),
    }
}

/// Ordinary threads, each with its own period all the time: sleeps until known times, waits for events (some
/// already happened, some with an unseen end), sleeps inside jobs, and the records that a recording repeats
/// now and then. They are repeated more often than in a real one, so that a short recording has as many as
/// one of millions.
pub fn ordinary(threads: u32, activations: usize) -> Vec<Record> {
    let mut random = 1_u64;
    let mut below = move |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let mut all: Vec<_> = (0..threads)
        .map(|tid| (u64::from(1 + tid % 7) * 1_000_000, Thread { tid, sequence: 0, cpu: 0, alive: true }))
        .collect();
    let mut records: Vec<Record> =
        all.iter_mut().map(|(_, thread)| begins(thread.tid, next(thread), 1_000)).collect();
    for number in 0..activations {
        if number % 25 == 24 {
            let knows = |thread: &Thread, now| match begins(thread.tid, thread.sequence, now) {
                Record::Task(task) => Record::Known(task),
                other => other,
            };
            records.extend(all.iter().map(|(now, thread)| knows(thread, *now)));
        }
        let Some((now, thread)) = all.iter_mut().min_by_key(|(now, _)| *now) else { break };
        let period = u64::from(1 + thread.tid % 7) * 1_000_000;
        let timed = thread.tid % 2 == 0;
        let separation = |place, sleeps, unseen, due, after| {
            let runs = 50_000 + u64::from(thread.tid);
            Separation {
                runs,
                place,
                file: 0,
                sleeps,
                unseen,
                due,
                after,
                resumes: true,
                expirations: 0,
                disturbance: None,
                back: 0,
            }
        };
        let late = below(20_000);
        let sleep = (period - 50_000 - *now % period + late).max(1);
        let next_step = match below(50) {
            0 if !timed => separation(2, None, 0, None, 0),
            1 => separation(if timed { 0 } else { 2 }, Some(sleep), 5_000, timed.then_some(late as i64), 0),
            2..10 if thread.tid % 5 == 0 => separation(6, Some(10_000), 0, None, 500),
            _ if timed => separation(0, Some(sleep), 0, Some(late as i64), 0),
            _ => separation(2, Some(sleep), 0, None, 0),
        };
        records.push(Record::Activation(separate(thread, now, &next_step)));
        thread.sequence = thread.sequence.wrapping_add(1);
    }
    let end = all.iter().map(|(now, _)| *now).max().unwrap_or_default();
    records.extend(all.iter_mut().map(|(_, thread)| Record::Last {
        tid: thread.tid,
        sequence: next(thread),
        at: Instant::from_ns(end),
    }));
    records
}
