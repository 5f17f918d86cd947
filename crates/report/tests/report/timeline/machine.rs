//! A machine that schedules threads at random, and remembers what it did.

use proptest::prelude::*;
use punctual_model::{Instant, Platform, Policy};
use punctual_trace::{About, Begin, Record, Step, Switch, TaskRecord};

pub const CPUS: u32 = 3;
/// Threads 101, 102, …; 101 is the first of its process, which has all of them.
pub const FIRST: u32 = 101;

/// A stretch that a thread ran on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    pub from: u64,
    /// `None` where it still runs in the end.
    pub until: Option<u64>,
    pub cpu: u32,
    pub tid: u32,
}

/// How a thread that does not run waits, as Perfetto shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub from: u64,
    pub until: Option<u64>,
    pub tid: u32,
    pub state: &'static str,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub steps: Vec<Switch>,
    pub runs: Vec<Run>,
    pub waits: Vec<Wait>,
    /// Who woke whom, and when.
    pub wakes: Vec<(u64, u32, u32)>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Since when, on which processor.
    Runs(u64, u32),
    /// Since when, and how.
    Waits(u64, &'static str),
}

/// What the scheduler does next: after so many nanoseconds (steps of one processor are never a single one
/// apart), on a processor, something that a number chooses.
pub type Act = (u64, u32, u32, u32);

pub fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec((2..1_000u64, 0..CPUS, any::<u32>(), any::<u32>()), 0..most)
}

/// Runs `threads` threads, all asleep at first.
pub fn history(threads: u32, acts: &[Act]) -> History {
    let mut history = History::default();
    let mut states = vec![State::Waits(0, "S"); threads as usize];
    let mut now = 1_000_000;
    for &(after, cpu, what, who) in acts {
        now += after;
        let at = Instant::from_ns(now);
        let running = states.iter().position(|state| matches!(state, State::Runs(_, on) if *on == cpu));
        let chosen = |wanted: fn(&str) -> bool| {
            let able: Vec<usize> = (0..states.len())
                .filter(|place| matches!(states[*place], State::Waits(_, state) if wanted(state)))
                .collect();
            (!able.is_empty()).then(|| able[who as usize % able.len()])
        };
        let mut step =
            |place: usize, step| history.steps.push(Switch { tid: FIRST + place as u32, at, cpu, step });
        if what % 3 == 0 {
            // An interrupt (0), a thread that is not watched (7), or who runs here.
            let by = running.map_or([0, 7][who as usize / 7 % 2], |place| FIRST + place as u32);
            let Some(place) = chosen(|state| state != "R" && state != "R+") else { continue };
            step(place, Step::Woken { by });
            history.wakes.push((now, by, FIRST + place as u32));
            wait_ends(&mut history, place, states[place], now);
            states[place] = State::Waits(now, "R");
            continue;
        }
        let next = chosen(|state| state == "R" || state == "R+");
        if let Some(place) = running {
            let (how, state) = [
                (Step::Preempted, "R+"),
                (Step::Asleep { interruptible: true }, "S"),
                (Step::Asleep { interruptible: false }, "D"),
            ][what as usize / 3 % 3];
            step(place, how);
            if let State::Runs(from, cpu) = states[place] {
                history.runs.push(Run { from, until: Some(now), cpu, tid: FIRST + place as u32 });
            }
            states[place] = State::Waits(now, state);
        }
        if let Some(place) = next {
            history.steps.push(Switch { tid: FIRST + place as u32, at, cpu, step: Step::In });
            wait_ends(&mut history, place, states[place], now);
            states[place] = State::Runs(now, cpu);
        }
    }
    for (place, state) in states.iter().enumerate() {
        let tid = FIRST + place as u32;
        match *state {
            State::Runs(from, cpu) => history.runs.push(Run { from, until: None, cpu, tid }),
            State::Waits(0, _) => {}
            State::Waits(from, state) => history.waits.push(Wait { from, until: None, tid, state }),
        }
    }
    history.runs.sort_unstable();
    history.waits.sort_unstable();
    history
}

/// The first wait of a thread began before anything was seen of it.
fn wait_ends(history: &mut History, place: usize, state: State, now: u64) {
    if let State::Waits(from @ 1.., state) = state {
        history.waits.push(Wait { from, until: Some(now), tid: FIRST + place as u32, state });
    }
}

pub fn about() -> About {
    About {
        platform: Platform { kernel: "6.12.43+deb13-amd64".into(), machine: "x86_64".into(), cpus: CPUS },
        host: "plant".into(),
        source: "punctual 0.1.0".into(),
        clock: "CLOCK_MONOTONIC".into(),
        clock_zero: Some(1_700_000_000_000_000_000),
        from: Instant::from_ns(500_000),
        switches: true,
        latency: false,
    }
}

/// How a thread of the machine comes into view.
pub fn seen(tid: u32) -> TaskRecord {
    TaskRecord {
        tid,
        pid: FIRST,
        sequence: 0,
        at: Instant::from_ns(600_000),
        begin: Begin::Seen,
        name: format!("worker{}", tid - FIRST),
        command: "/usr/bin/plant --fast".into(),
        policy: Policy::Fifo,
        priority: 80,
        nice: None,
        reservation: None,
        affinity: "0-2".into(),
    }
}

/// Everything that a recording of the machine has.
pub fn records(threads: u32, steps: &[Switch]) -> Vec<Record> {
    let tasks = (FIRST..FIRST + threads).map(|tid| Record::Task(Box::new(seen(tid))));
    tasks.chain(steps.iter().copied().map(Record::Switch)).collect()
}
