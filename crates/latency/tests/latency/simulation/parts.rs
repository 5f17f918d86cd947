//! What every latency of a simulated kernel was made of, found from its events by definition: each stretch
//! between two events belongs to the innermost of what was under way, with the future known.

use std::collections::BTreeMap;

/// Parts, in the order of the state machine: D_POID, D_PSD, D_ST, D_PAIE, the rest.
pub const PARTS: usize = 5;
const POID: usize = 0;
const PSD: usize = 1;
const ST: usize = 2;
const PAIE: usize = 3;
const REST: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Event {
    what: u8,
    at: u64,
    is_idle: bool,
    resched: bool,
    extra: u64,
}

/// One latency, by definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub ready: u64,
    pub end: u64,
    /// By source.
    pub interrupts: BTreeMap<u32, u64>,
    pub parts: [u64; PARTS],
    /// When each part first began.
    pub first: [Option<u64>; PARTS],
    /// Of a part of one section: how long that had been open at the wake-up, without interrupts.
    pub before: [Option<u64>; PARTS],
}

/// What a stretch between two events was.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    until: u64,
    owner: Owner,
    /// Number of the thread's section, which goes on after interrupts.
    section: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Interrupt(u32),
    Thread(usize),
}

fn parse(events: &str) -> Vec<Event> {
    let event = |line: &str| {
        let mut words = line.split(' ');
        let what = words.next().unwrap().as_bytes()[0];
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        Event { what, at: numbers[0], is_idle: numbers[1] == 1, resched: numbers[2] == 1, extra: numbers[3] }
    };
    events.lines().map(event).collect()
}

/// For each call of the scheduler: where it begins with the disabling of preemption for it, where its masking
/// of interrupts is, and where it ends, as numbers of events.
fn calls(events: &[Event]) -> Vec<(usize, usize, usize)> {
    let mut calls = Vec::new();
    for (called, event) in events.iter().enumerate().filter(|(_, event)| event.what == b's') {
        let begin = match event.is_idle {
            true => called,
            false => events[..called].iter().rposition(|it| it.what == b'D').unwrap(),
        };
        let after = |from: usize, what: u8| events[from..].iter().position(|it| it.what == what);
        let Some(masked) = after(called, b'd').map(|at| called + at) else { continue };
        let Some(returned) = after(called, b'x').map(|at| called + at) else { continue };
        let end = match events[returned].is_idle {
            true => returned,
            false => returned + after(returned, b'E').unwrap(),
        };
        calls.push((begin, masked, end));
    }
    calls
}

/// All of a run, without gaps.
fn stretches(events: &[Event]) -> Vec<Stretch> {
    let calls = calls(events);
    let (mut irqs_off, mut preempt_off) = (false, false);
    let mut serving = None;
    let (mut section, mut previous) = (0, None);
    let mut all = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match event.what {
            b'd' => irqs_off = true,
            b'e' => irqs_off = false,
            b'D' => preempt_off = true,
            b'E' => preempt_off = false,
            b'i' => serving = Some(event.extra),
            b'o' => serving = None,
            _ => {}
        }
        let Some(next) = events.get(index + 1) else { break };
        let call = calls.iter().find(|(begin, _, end)| (*begin..*end).contains(&index));
        let thread = match call {
            Some((_, masked, _)) if index >= *masked => ST,
            Some(_) => PSD,
            None if event.is_idle && !event.resched => REST,
            None if event.is_idle || irqs_off || preempt_off || serving == Some(0) => POID,
            None if event.resched => PAIE,
            None => REST,
        };
        if previous.replace(thread) != Some(thread) {
            section += 1;
        }
        let owner = match serving {
            Some(source) if source > 0 => Owner::Interrupt(source as u32),
            _ => Owner::Thread(thread),
        };
        let nmi = if next.what == b'n' { next.at - next.extra } else { next.at };
        all.push(Stretch { from: event.at, until: nmi, owner, section });
        all.push(Stretch { from: nmi, until: next.at, owner: Owner::Interrupt(1), section });
    }
    all.retain(|stretch| stretch.until > stretch.from);
    all
}

/// Every latency of a run, of threads that this processor wakes.
pub fn expected(events: &str) -> Vec<Expected> {
    latencies(events, true)
}

/// The same if another processor wakes the threads: then no interrupt does.
pub fn expected_elsewhere(events: &str) -> Vec<Expected> {
    latencies(events, false)
}

fn latencies(events: &str, is_here: bool) -> Vec<Expected> {
    let events = parse(events);
    let stretches = stretches(&events);
    let mut found = Vec::new();
    let mut ready = None;
    let mut entered = None;
    for event in &events {
        match event.what {
            b'i' if event.extra > 0 => entered = Some(event.at),
            b'o' => entered = None,
            b'w' => ready = Some(entered.filter(|_| is_here).unwrap_or(event.at)),
            b'r' => found.push(latency(&stretches, ready.take().unwrap(), event.at)),
            _ => {}
        }
    }
    found
}

fn latency(stretches: &[Stretch], ready: u64, end: u64) -> Expected {
    let mut expected = Expected { ready, end, ..Expected::default() };
    let mut sections = [0; PARTS];
    let mut previous = None;
    for stretch in stretches {
        let (from, until) = (stretch.from.max(ready), stretch.until.min(end));
        if from >= until {
            continue;
        }
        match stretch.owner {
            Owner::Interrupt(source) => *expected.interrupts.entry(source).or_default() += until - from,
            Owner::Thread(part) => {
                expected.parts[part] += until - from;
                expected.first[part].get_or_insert(from);
                if previous.replace(stretch.section) != Some(stretch.section) {
                    sections[part] += 1;
                    expected.before[part] =
                        (sections[part] == 1).then(|| open_before(stretches, stretch.section, ready));
                }
            }
        }
    }
    expected
}

/// How long a section had been open at `ready`.
fn open_before(stretches: &[Stretch], section: u64, ready: u64) -> u64 {
    let own = stretches.iter().filter(|it| it.section == section && matches!(it.owner, Owner::Thread(_)));
    own.map(|stretch| stretch.until.min(ready).saturating_sub(stretch.from)).sum()
}
