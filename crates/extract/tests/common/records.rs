//! Records of several threads, from ordinary to adversarial.

use proptest::prelude::*;
use punctual_extract::{Options, StreamOptions};
use punctual_model::{Call, Duration, FileClass, Instant, Object, Policy, Separator, Window};
use punctual_trace::{Activation, Begin, Record, Resumed, Step, Switch, TaskRecord};

pub fn options(horizon: usize, merge_transitions: bool) -> Options {
    Options { stream: StreamOptions { curve_horizon: horizon, wcet_horizon: horizon }, merge_transitions }
}

/// What a thread does next.
#[derive(Clone, Debug)]
pub enum Act {
    Separates(Separation),
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

/// How a thread comes to one separation.
#[derive(Clone, Debug)]
pub struct Separation {
    pub runs: u64,
    pub place: u8,
    /// Which of several files a descriptor is at the time.
    pub file: u8,
    /// `None`: the call did not wait.
    pub sleeps: Option<u64>,
    /// How much of the sleep's end is not known.
    pub unseen: u64,
    /// How long before (or after) the call's end the next job was due.
    pub due: Option<i64>,
    pub after: u64,
    pub resumes: bool,
    /// Clocks that run backwards: by this much.
    pub back: u64,
}

const PLACES: u8 = 48;

fn separator(place: u8, file: u8) -> Separator {
    match place {
        0 => Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } },
        1 => Separator::SUSPENSION,
        2 => Separator { call: Call::FutexWait, object: Object::Address(0x1000) },
        3 => Separator { call: Call::SchedYield, object: Object::None },
        _ => {
            let object = Object::File { class: FileClass::Pipe, fd: i32::from(place), identity: 1_000 + u64::from(file) };
            Separator { call: if place % 2 == 0 { Call::Read } else { Call::Poll }, object }
        }
    }
}

fn separation(places: u8, wild: bool) -> impl Strategy<Value = Separation> {
    let rare = |weight| if wild { weight } else { 0 };
    let (runs, place, file) = (1..5_000_u64, 0..places, prop_oneof![30 => Just(0_u8), 1 + rare(5) => 0..3_u8]);
    let sleeps =
        prop_oneof![12 => (1..9_000_u64).prop_map(Some), 1 + rare(5) => Just(None), 1 => (0_u64..45).prop_map(|power| Some(1 << power))];
    let unseen = prop_oneof![8 => Just(0), 1 => 0..3_000_u64];
    let due = prop_oneof![3 => Just(None), 1 => (-200_i64..5_000).prop_map(Some)];
    let after = prop_oneof![9 => Just(0), 1 => 1..500_u64];
    let (resumes, back) =
        (prop_oneof![60 => Just(true), 1 + rare(5) => Just(false)], prop_oneof![40 => Just(0), 1 + rare(2) => 0..20_000_u64]);
    (runs, place, file, sleeps, unseen, due, after, resumes, if wild { back.boxed() } else { Just(0).boxed() }).prop_map(
        |(runs, place, file, sleeps, unseen, due, after, resumes, back)| {
            // Outside of calls that separate there are only sleeps.
            let sleeps = if place == 1 { sleeps.or(Some(5)) } else { sleeps };
            Separation { runs, place, file, sleeps, unseen, due: due.filter(|_| place == 0), after, resumes, back }
        },
    )
}

fn act(places: u8, calm: u32, wild: bool) -> impl Strategy<Value = Act> {
    let begins = prop_oneof![Just(Begin::Seen), Just(Begin::Policy), Just(Begin::Priority), Just(Begin::Affinity), Just(Begin::Exec)];
    prop_oneof![
        calm => separation(places, wild).prop_map(Act::Separates),
        1 => begins.prop_map(Act::Begins),
        2 => any::<bool>().prop_map(move |stale| Act::Known { stale: stale && wild }),
        1 => (0..3_u8).prop_map(Act::Renamed),
        1 => (0..3_u8).prop_map(Act::Command),
        1 => prop_oneof![Just(Act::Exits), Just(Act::Last)],
        1 => (1..5_u32).prop_map(Act::Loses),
        1 => Just(Act::Switches),
    ]
}

/// Records of up to four threads: `most` of them at most.
pub fn records(most: usize) -> impl Strategy<Value = Vec<Record>> {
    let places = prop_oneof![3 => Just(1_u8), 2 => Just(3_u8), 3 => Just(6_u8), 1 => Just(PLACES)];
    let calm = prop_oneof![Just(20_u32), Just(100), Just(1_000)];
    let acts = (places, calm, prop::bool::weighted(0.3), 1..5_u8)
        .prop_flat_map(move |(places, calm, wild, threads)| prop::collection::vec((0..threads, act(places, calm, wild)), 0..most));
    let first = prop_oneof![8 => Just(0_u32), 1 => Just(u32::MAX - 20)];
    (acts, first, prop::bool::weighted(0.9)).prop_map(|(acts, first, introduced)| World::new(first, introduced).tell(acts))
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
        let threads = (0..4).map(|tid| Thread { tid: 100 + tid, sequence: first, cpu: 0, alive: false }).collect();
        World { threads, now: 1 << 33, introduced, records: Vec::new() }
    }

    fn tell(mut self, acts: Vec<(u8, Act)>) -> Vec<Record> {
        for (number, act) in acts {
            let thread = &mut self.threads[usize::from(number)];
            // Mostly, nothing is heard of a thread before it is said what it is.
            if self.introduced && !thread.alive && !matches!(act, Act::Begins(Begin::Seen) | Act::Known { .. }) {
                self.records.push(begins(thread, self.now, Begin::Seen));
            }
            thread.alive = true;
            let (tid, at) = (thread.tid, Instant::from_ns(self.now));
            let record = match act {
                Act::Separates(separation) => {
                    let activation = separate(thread, &mut self.now, &separation);
                    thread.sequence = thread.sequence.wrapping_add(1);
                    Record::Activation(activation)
                }
                Act::Begins(begin) => begins(thread, self.now, begin),
                Act::Known { stale } => {
                    let Record::Task(mut task) = begins(thread, self.now, Begin::Priority) else { unreachable!("a task record") };
                    thread.sequence = task.sequence;
                    task.sequence = task.sequence.wrapping_sub(u32::from(stale));
                    Record::Known(task)
                }
                Act::Renamed(name) => Record::Renamed { tid, sequence: next(thread), name: format!("name {name}") },
                Act::Command(command) => Record::Command { tid, sequence: next(thread), command: format!("command {command}") },
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

fn begins(thread: &mut Thread, now: u64, begin: Begin) -> Record {
    let sequence = next(thread);
    Record::Task(Box::new(TaskRecord {
        tid: thread.tid,
        pid: 50 + thread.tid / 102,
        sequence,
        at: Instant::from_ns(now),
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
    let resumed = Resumed { release, start: Instant::from_ns(start), suspended_after: Duration::from_ns(after) };
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
